/* tools/generate/generate_output.c - writes results: text, also while it is
 * generated, JSON, and metrics. See generate.h. */
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"
#include "generate.h"
#include "tools/cli/jsonl.h"
#include "tools/cli/numbers.h"
#include "tools/cli/terminal.h"

/* The text of an output. Forced first tokens are part of it, unless they are special or name a
 * language, which are not text. */
char *output_text(const job *j, const wf_hypothesis *h, size_t *bytes) {
    char *line = line_of_ids(j->language.tokenizer[SIDE_TGT], h->tokens, h->length, bytes);
    if (!line) fail(j->program, "out of memory");
    return line;
}

void write_text(job *j, const char *text, size_t n) {
    if (j->set->raw || (j->set->prompt && !j->set->scores))
        fwrite(text, 1, n, j->out);
    else
        j->escaped += put_line(j->out, text, n, j->set->scores);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Writes ,"tokens":[...], as pieces of the vocabulary or as ids. */
static void json_tokens(job *j, const int32_t *ids, int64_t n) {
    char buffer[PIECE_TEXT];
    if (!j->language.text) {
        json_ints(&j->line, "tokens", ids, n);
        return;
    }
    json_open(&j->line, "tokens", '[');
    for (int64_t i = 0; i < n; i++)
        json_text(&j->line, NULL, language_piece(&j->language, SIDE_TGT, ids[i], buffer));
    json_close(&j->line, ']');
}

static void json_hypothesis(job *j, const sentence *s, const wf_hypothesis *h) {
    size_t bytes;
    char *text = output_text(j, h, &bytes);
    jsonl *line = &j->line;
    json_open(line, NULL, '{');
    json_key(line, "text");
    json_bytes(line, text, bytes);
    json_tokens(j, h->tokens, h->length);
    json_reals(line, "log_probs", h->log_probs, h->length + 1);
    json_real(line, "total", h->total);
    json_real(line, "score", h->score);
    json_bool(line, "cut", h->cut);
    align_output(j, s, h);
    json_close(line, '}');
    free(text);
}

static void json_answer(job *j, const sentence *s) {
    jsonl *line = &j->line;
    json_begin(line, "output");
    json_int(line, "line", s->line);
    if (s->part) json_int(line, "part", s->part);
    if (s->skipped) json_bool(line, "skipped", true);
    json_text(line, "source", s->source);
    json_open(line, "outputs", '[');
    for (int i = 0; i < s->decoded.n; i++) json_hypothesis(j, s, &s->decoded.best[i]);
    json_close(line, ']');
    json_end(line);
}

/* Writes the text of --prompt before its continuation, if outputs continue it. Prompts that are
 * lines of the input are not written. */
void write_prompt(job *j) {
    if (j->set->prompt && j->model->start_first)
        write_text(j, j->set->prompt, strlen(j->set->prompt));
}

/* Writes n lines for each line of the input, with --nbest n. Lines for missing outputs are
 * empty. */
static void text_answer(job *j, const sentence *s) {
    for (int64_t i = 0; i < j->set->nbest; i++) {
        if (i < s->decoded.n) {
            const wf_hypothesis *h = &s->decoded.best[i];
            size_t bytes;
            char *line = output_text(j, h, &bytes);
            if (j->set->scores) fprintf(j->out, "%.9g\t", h->score);
            if (j->set->stream) {
                end_stream(j, line, bytes);
            } else {
                write_prompt(j);
                write_text(j, line, bytes);
            }
            free(line);
            align_output(j, s, h);
        } else if (i == 0) {
            align_nothing(j);
        }
        fputc(s->more ? ' ' : '\n', j->out);
    }
}

static void skipped_score(job *j, const sentence *s) {
    if (!j->set->json) {
        align_nothing(j);
        fputc('\n', j->out);
        return;
    }
    json_begin(&j->line, "score");
    json_int(&j->line, "line", s->line);
    json_bool(&j->line, "skipped", true);
    json_end(&j->line);
}

static void score_answer(job *j, const sentence *s) {
    if (s->skipped) {
        skipped_score(j, s);
        return;
    }
    if (!j->set->json) {
        fprintf(j->out, "%.9g", s->total);
        align_given(j, s);
        fputc('\n', j->out);
        return;
    }
    json_begin(&j->line, "score");
    json_int(&j->line, "line", s->line);
    json_real(&j->line, "total", s->total);
    json_reals(&j->line, "log_probs", s->log_probs, s->tgt_length + 1);
    json_tokens(j, s->ids + s->src_length, s->tgt_length);
    align_given(j, s);
    json_end(&j->line);
}

void write_answer(job *j, const sentence *s) {
    if (j->set->score)
        score_answer(j, s);
    else if (j->set->json)
        json_answer(j, s);
    else
        text_answer(j, s);
}

/* ---- attention ------------------------------------------------------------------------------- */

static bool draw(job *j, const sentence *s) {
    attention *a = &j->attention;
    if (j->set->draw) {
        fprintf(stderr, "line %lld\n", (long long)s->line);
        return attention_text(a, stderr);
    }
    if (!attention_is_svg(j->set->attention)) return attention_json(a, &j->weights);
    j->drawn = true;
    return attention_svg(a, j->picture.stream);
}

void draw_attention(job *j, const sentence *s) {
    char message[WF_MESSAGE];
    if (s->decoded.n == 0 || j->drawn) return;
    const wf_hypothesis *h = &s->decoded.best[0];
    if (!attention_run(&j->attention, s->src_length, s->ids, h->length, h->tokens, message))
        fail(j->program, "line %lld: its attention: %s", (long long)s->line, message);
    if (!draw(j, s)) fail(j->program, "the attention could not be written: out of memory or disk");
}

/* ---- the comparison with references ---------------------------------------------------------- */

/* Joins a line's output so far and that of its next part, with a space between them. */
static char *join(const job *j, char *left, char *right) {
    if (!left) return right;
    size_t n = strlen(left), more = strlen(right);
    char *both = memory_or_fail(j->program, realloc(left, n + more + 2));
    both[n] = ' ';
    memcpy(both + n + 1, right, more + 1);
    free(right);
    return both;
}

void compare_answer(job *j, const sentence *s) {
    const char *reference = j->reference[s->line - 1];
    char *line = s->decoded.n ? output_text(j, &s->decoded.best[0], NULL) : strdup("");
    j->joined = join(j, j->joined, memory_or_fail(j->program, line));
    if (s->more) return;
    if (!metrics_add(j->metrics, j->joined, strlen(j->joined), reference, strlen(reference)))
        fail(j->program, "out of memory");
    free(j->joined);
    j->joined = NULL;
}

/* Writes "NAME":score,"NAME_signature":"...", from a text "signature = score ...". */
static void json_signed(jsonl *out, const char *name, double score, char *text) {
    char key[40];
    text[strcspn(text, " ")] = '\0';
    snprintf(key, sizeof key, "%s_signature", name);
    json_real(out, name, score);
    json_text(out, key, text);
}

static void metrics_json(job *j, const metric_counts *m) {
    char text[METRIC_TEXT];
    jsonl *out = &j->line;
    json_begin(out, "metrics");
    json_int(out, "lines", m->lines);
    json_int(out, "exact", m->exact);
    bleu_text(&m->bleu[BLEU_NONE], BLEU_NONE, text);
    json_signed(out, "bleu", bleu_score(&m->bleu[BLEU_NONE]).score, text);
    bleu_text(&m->bleu[BLEU_13A], BLEU_13A, text);
    json_signed(out, "bleu_13a", bleu_score(&m->bleu[BLEU_13A]).score, text);
    chrf_text(&m->chrf, text);
    json_signed(out, "chrf", chrf_score(&m->chrf), text);
    json_real(out, "cer", error_rate(&m->characters));
    json_real(out, "wer", error_rate(&m->words));
    json_end(out);
}

void write_metrics(job *j) {
    char text[METRIC_TEXT];
    const metric_counts *m = metrics_sums(j->metrics);
    if (j->set->json) {
        metrics_json(j, m);
        return;
    }
    fprintf(stderr, "%s\n", bleu_text(&m->bleu[BLEU_13A], BLEU_13A, text));
    fprintf(stderr, "%s\n", bleu_text(&m->bleu[BLEU_NONE], BLEU_NONE, text));
    fprintf(stderr, "%s\n", chrf_text(&m->chrf, text));
    fprintf(stderr, "CER %.4f, WER %.4f, exact match %lld/%lld\n", error_rate(&m->characters),
            error_rate(&m->words), (long long)m->exact, (long long)m->lines);
}

void say_speed(const job *j) {
    char text[4][OPTION_TEXT_SIZE], time[OPTION_TEXT_SIZE];
    double seconds = j->seconds > 0 ? j->seconds : 1e-9;
    double sentences = (double)j->sentences, tokens = (double)j->tokens;
    fprintf(stderr, "%s sentence%s, %s tokens in %s: %s sentences/s, %s tokens/s\n",
            thousands(sentences, text[0]), j->sentences == 1 ? "" : "s", thousands(tokens, text[1]),
            duration(seconds, time), thousands(sentences / seconds, text[2]),
            thousands(tokens / seconds, text[3]));
}

/* ---- streaming ------------------------------------------------------------------------------- */

/* With every token the whole output is decoded again. The new text is written as far as its
 * characters are complete; bytes that may become a character wait for the next token. So the
 * written bytes are those of the finished output. */

/* The length of the longest beginning of text[n] that ends between characters. */
static size_t complete(const char *text, size_t n) {
    size_t back = 1;
    while (back < n && back < WF_UTF8_MOST && wf_utf8_continues(text[n - back])) back++;
    bool begins = n && wf_utf8_announced(text + n - back, WF_UTF8_MOST) > back;
    return begins ? n - back : n;
}

static void write_new(job *j, const char *text, size_t n) {
    streaming *s = &j->stream;
    if (n <= s->written) return;
    write_text(j, text + s->written, n - s->written);
    s->written = n;
    flush_or_fail(j->program, j->out, j->set->output);
}

static bool hear(void *listener, int place, int32_t token) {
    job *j = listener;
    streaming *s = &j->stream;
    (void)place; /* there is only one sentence at a time */
    s->ids[s->n++] = token;
    size_t bytes;
    const wf_tokenizer *t = j->language.tokenizer[SIDE_TGT];
    char *text = memory_or_fail(j->program, line_of_ids(t, s->ids, s->n, &bytes));
    write_new(j, text, complete(text, bytes));
    free(text);
    return true;
}

void open_stream(job *j) {
    if (!j->set->stream) return;
    size_t most = (size_t)j->language.max_len + 1;
    j->stream.ids = memory_or_fail(j->program, calloc(most, sizeof *j->stream.ids));
    j->options.heard = hear;
    j->options.listener = j;
}

void begin_stream(job *j) {
    j->stream.n = 0;
    j->stream.written = 0;
}

void end_stream(job *j, const char *text, size_t bytes) {
    write_new(j, text, bytes);
}
