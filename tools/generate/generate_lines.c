/* tools/generate/generate_lines.c - reads lines and writes results; see generate.h.
 *
 * A window of lines is sorted by length, so that batches have little padding. Results are written
 * in the order of the input, each as soon as all earlier ones are written. The window has the lines
 * that have arrived, so that a pipe is answered without waiting for its end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "generate.h"
#include "models/model_internal.h"
#include "models/text_internal.h"

enum { WINDOW = 64 }; /* batches in a window */

const char *input_name(const job *j) {
    return j->set->input ? j->set->input : "stdin";
}

static void *room_for(const job *j, size_t n, size_t size) {
    void *room = calloc(n ? n : 1, size);
    if (!room) fail(j->program, "out of memory: --batch-size or --beam lowers the need");
    return room;
}

/* ---- references ------------------------------------------------------------------------------ */

static _Noreturn void refuse_counts(const job *j, int64_t n) {
    fail(j->program, "%s has %lld lines and %s has %lld: a reference is needed for each line",
         input_name(j), (long long)n, j->set->reference, (long long)j->n_reference);
}

static void keep_reference(job *j, const lines *l, const char *line) {
    const char *path = j->set->reference;
    char message[WF_MESSAGE];
    size_t n = (size_t)j->n_reference;
    if (j->language.text && !wf_text_check(line, l->length, message))
        fail(j->program, "%s, line %lld: %s%s", path, (long long)l->number, message,
             lines_remedy(l, message));
    if (!wf_grow(&j->reference, &j->reference_room, n + 1, sizeof *j->reference) ||
        !(j->reference[n] = strdup(line)))
        fail(j->program, "out of memory for the lines of %s", path);
    j->n_reference++;
}

/* Warns if the references look like a file of pairs, source TAB target. */
static void warn_of_pairs(const job *j) {
    int64_t tabs = 0;
    for (int64_t i = 0; i < j->n_reference; i++) tabs += strchr(j->reference[i], '\t') != NULL;
    if (j->n_reference && tabs == j->n_reference && !j->model->start_first)
        warn(j->program,
             "%s has a TAB in every line, as files of pairs have, and outputs are compared with "
             "whole lines: cut -f 2 writes the targets alone",
             j->set->reference);
}

void open_references(job *j) {
    const char *path = j->set->reference;
    lines l;
    char *line;
    if (!path) return;
    if (!lines_open(&l, path)) fail(j->program, "%s can't be read: %s", path, strerror(errno));
    line_status status;
    while ((status = lines_next(&l, true, &line)) == LINE_READ) keep_reference(j, &l, line);
    if (status == LINE_TOO_LONG)
        fail(j->program, "%s, line %lld: it is longer than a megabyte", path,
             (long long)l.number + 1);
    if (status == LINE_FAILED) fail(j->program, "%s can't be read: %s", path, lines_failure(&l));
    lines_close(&l);
    warn_of_pairs(j);
    int64_t n = lines_in(&j->in.file, lseek(j->in.file.file, 0, SEEK_CUR));
    if (n >= 0 && n != j->n_reference) refuse_counts(j, n);
    j->metrics = memory_or_fail(j->program, metrics_new());
}

/* ---- a batch --------------------------------------------------------------------------------- */

typedef struct batch_rows {
    int n, s, t; /* number of sentences; longest source and longest target */
    int32_t *src, *src_length, *tgt, *tgt_length;
    /* for random draws: number of each sentence's line, from 0; unequal for parts of a line */
    int64_t *index;
} batch_rows;

/* The lengths of a sentence and its index in the window, for sorting. */
typedef struct place {
    int64_t src_length, tgt_length, index;
} place;

static int from_long_to_short(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->src_length != y->src_length) return x->src_length < y->src_length ? 1 : -1;
    if (x->tgt_length != y->tgt_length) return x->tgt_length < y->tgt_length ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

static batch_rows fill_rows(const job *j, const place *p, int n) {
    batch_rows b = { .n = n };
    for (int i = 0; i < n; i++) {
        if (p[i].src_length > b.s) b.s = (int)p[i].src_length;
        if (p[i].tgt_length > b.t) b.t = (int)p[i].tgt_length;
    }
    size_t rows = (size_t)n;
    b.src = room_for(j, rows * (size_t)b.s, sizeof *b.src);
    b.tgt = room_for(j, rows * (size_t)b.t, sizeof *b.tgt);
    b.src_length = room_for(j, rows, sizeof *b.src_length);
    b.tgt_length = room_for(j, rows, sizeof *b.tgt_length);
    b.index = room_for(j, rows, sizeof *b.index);
    for (int i = 0; i < n; i++) {
        const sentence *s = &j->window[p[i].index];
        memcpy(b.src + (int64_t)i * b.s, s->ids, (size_t)s->src_length * sizeof *s->ids);
        memcpy(b.tgt + (int64_t)i * b.t, s->ids + s->src_length,
               (size_t)s->tgt_length * sizeof *s->ids);
        b.src_length[i] = (int32_t)s->src_length;
        b.tgt_length[i] = (int32_t)s->tgt_length;
        b.index[i] = s->line - 1 + (s->part > 1 ? (s->part - 1) << 40 : 0);
    }
    return b;
}

static void generate_rows(job *j, const batch_rows *b, const place *p) {
    wf_decoded *results = room_for(j, (size_t)b->n, sizeof *results);
    begin_stream(j);
    if (!wf_decode(j->decoder, b->n, b->s, b->src, b->src_length, b->index, &j->options, results))
        fail(j->program, "%s", wf_decoder_error(j->decoder));
    for (int i = 0; i < b->n; i++) {
        sentence *s = &j->window[p[i].index];
        s->decoded = results[i];
        if (s->decoded.n > 0) {
            j->tokens += s->decoded.best->length + 1;
            j->unfinished += s->decoded.best->cut;
            j->filled +=
                s->decoded.best->cut && wf_model_room(j->model, s->src_length) < j->set->max_new;
        }
    }
    free(results);
}

/* Removes forced first tokens from the score, because the model did not choose them. */
static void forgive_forced(const job *j, sentence *s) {
    for (int i = 0; i < j->options.n_forced && i < s->tgt_length; i++) {
        s->total -= s->log_probs[i];
        s->log_probs[i] = 0;
    }
}

static void score_rows(job *j, const batch_rows *b, const place *p) {
    size_t rows = (size_t)b->n, steps = (size_t)b->t + 1;
    double *log_probs = room_for(j, rows * steps, sizeof *log_probs);
    double *totals = room_for(j, rows, sizeof *totals);
    if (!wf_score(j->decoder, b->n, b->s, b->src, b->src_length, b->t, b->tgt, b->tgt_length,
                  log_probs, totals))
        fail(j->program, "%s", wf_decoder_error(j->decoder));
    for (size_t i = 0; i < rows; i++) {
        sentence *s = &j->window[p[i].index];
        size_t n = (size_t)s->tgt_length + 1;
        s->total = totals[i];
        s->log_probs = room_for(j, n, sizeof *s->log_probs);
        memcpy(s->log_probs, log_probs + i * steps, n * sizeof *log_probs);
        forgive_forced(j, s);
        j->tokens += (int64_t)n;
    }
    free(log_probs), free(totals);
}

/* ---- the window ------------------------------------------------------------------------------ */

static void free_sentence(sentence *s) {
    wf_decoded_free(&s->decoded, 1);
    free(s->ids), free(s->source), free(s->log_probs);
    free_words(s);
    *s = (sentence){ 0 };
}

/* Writes all finished results that do not follow an unfinished one. */
static void write_ready(job *j) {
    for (; j->written < j->n && j->window[j->written].done; j->written++) {
        sentence *s = &j->window[j->written];
        j->answered += !s->more;
        write_answer(j, s);
        if (j->set->attention || j->set->draw) draw_attention(j, s);
        if (j->set->explain) explain_answer(j, s);
        if (j->metrics) compare_answer(j, s);
        free_sentence(s);
    }
    if (j->line.failed && !ferror(j->out)) fail(j->program, "out of memory");
    flush_or_fail(j->program, j->out, j->set->output);
}

/* Shows how many lines have results, also those that wait for an earlier one. */
static void show_progress(job *j) {
    int64_t done = j->answered;
    for (int64_t i = j->written; i < j->n; i++) done += j->window[i].done && !j->window[i].more;
    so_far_show(&j->progress, done);
}

static void answer_window(job *j) {
    double begin = wf_seconds_now();
    so_far_work(&j->progress);
    place *p = room_for(j, (size_t)j->n, sizeof *p);
    int64_t n = 0;
    for (int64_t i = 0; i < j->n; i++) {
        const sentence *s = &j->window[i];
        if (!s->done) p[n++] = (place){ s->src_length, s->tgt_length, i };
    }
    qsort(p, (size_t)n, sizeof *p, from_long_to_short);
    for (int64_t first = 0; first < n; first += j->set->batch_size) {
        int64_t left = n - first;
        batch_rows b =
            fill_rows(j, p + first, (int)(left < j->set->batch_size ? left : j->set->batch_size));
        (j->set->score ? score_rows : generate_rows)(j, &b, p + first);
        for (int i = 0; i < b.n; i++) j->window[p[first + i].index].done = true;
        free(b.src), free(b.tgt), free(b.src_length), free(b.tgt_length), free(b.index);
        write_ready(j);
        show_progress(j);
    }
    so_far_rest(&j->progress);
    write_ready(j);
    free(p);
    j->sentences += n;
    j->n = j->written = 0;
    j->seconds += wf_seconds_now() - begin;
}

void open_window(job *j) {
    char message[WF_MESSAGE];
    /* outputs are streamed one after the other */
    int64_t batch = j->set->stream ? 1 : j->set->batch_size;
    j->room = batch == 1 ? 1 : batch * WINDOW;
    j->window = room_for(j, (size_t)j->room, sizeof *j->window);
    j->ids = room_for(j, 2 * (size_t)j->language.max_len, sizeof *j->ids);
    j->around = language_read(&j->language, SIDE_SRC, "", 0, j->ids, j->language.max_len, message);
    if (j->around < 0) fail(j->program, "%s", message);
}

/* ---- lines ----------------------------------------------------------------------------------- */

_Noreturn void refuse_line(job *j, const char *why) {
    if (j->set->prompt) fail(j->program, "--prompt: %s", why);
    answer_window(j);
    fail(j->program, "%s, line %lld: %s%s", input_name(j), (long long)j->in.number, why,
         lines_remedy(&j->in, why));
}

/* Puts the forced first tokens before a target's ids, unless it begins with them. Returns the
 * number of ids; -1: too many, so the line is skipped. */
static int64_t read_target(job *j, const char *text, size_t bytes, int32_t *ids, int64_t most) {
    const wf_decode_options *o = &j->options;
    int64_t n = read_side(j, SIDE_TGT, text, bytes, ids, most);
    if (n < 0) return n;
    if (n >= o->n_forced && !memcmp(ids, o->forced, (size_t)o->n_forced * sizeof *ids)) return n;
    if (o->n_forced > most)
        refuse_line(j, "the tokens that begin every output leave no room for the target");
    n = shorten_target(j, n, most - o->n_forced);
    if (n < 0) return n;
    memmove(ids + o->n_forced, ids, (size_t)n * sizeof *ids);
    memcpy(ids, o->forced, (size_t)o->n_forced * sizeof *ids);
    return n + o->n_forced;
}

/* Gives an empty answer to a line that is too long. */
static void skip(sentence *s) {
    s->src_length = s->tgt_length = 0;
    s->done = s->skipped = true;
}

/* source<TAB>target */
static void read_pair(job *j, sentence *s, char *line, size_t bytes) {
    char *tab = memchr(line, '\t', bytes);
    if (!tab)
        refuse_line(j, "there is no tab between a source and a target; paste SOURCES TARGETS makes "
                       "such lines");
    size_t left = (size_t)(tab - line), right = bytes - left - 1;
    if (memchr(tab + 1, '\t', right)) refuse_line(j, "there is a second tab: one pair a line");
    *tab = '\0';
    s->src_length = read_side(j, SIDE_SRC, line, left, j->ids, wf_model_longest_source(j->model));
    if (s->src_length == j->around && j->model->src)
        refuse_line(j, "there is no source before the tab");
    if (s->src_length >= 0)
        s->tgt_length = read_target(j, tab + 1, right, j->ids + s->src_length,
                                    wf_model_room(j->model, s->src_length));
    note_source_words(j, s, line, left);
    note_target_words(j, s, tab + 1, right);
    if (s->src_length < 0 || s->tgt_length < 0) skip(s);
}

static void read_source(job *j, sentence *s, const char *line, size_t bytes) {
    s->src_length = read_side(j, SIDE_SRC, line, bytes, j->ids, wf_model_longest_source(j->model));
    /* an empty source of an encoder-decoder has an empty output */
    s->done = s->src_length == j->around && j->model->src;
    j->tabbed += j->model->src && memchr(line, '\t', bytes);
    note_source_words(j, s, line, bytes);
    if (s->src_length < 0) skip(s);
    if (j->set->json || j->set->explain) s->source = memory_or_fail(j->program, strdup(line));
}

static void keep_ids(const job *j, sentence *s) {
    size_t n = (size_t)(s->src_length + s->tgt_length);
    s->ids = room_for(j, n, sizeof *s->ids);
    memcpy(s->ids, j->ids, n * sizeof *s->ids);
}

static int64_t count_of(int32_t id, const int32_t *ids, int64_t n) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) count += ids[i] == id;
    return count;
}

/* Notes where the first unknown token is: in which word of the line, if a word by itself shows it
 * and can be printed, and in which line. */
static void note_unknown(job *j, int32_t unknown, const char *line) {
    char message[WF_MESSAGE];
    int64_t most = wf_model_longest_source(j->model);
    size_t n = 0, shown = sizeof j->first_unknown / 2;
    for (const char *word = line + strspn(line, " "); *word; word += n + strspn(word + n, " ")) {
        n = strcspn(word, " ");
        int64_t found = language_read(&j->language, SIDE_SRC, word, n, j->ids, most, message);
        if (found < 0 || found > most || !count_of(unknown, j->ids, found)) continue;
        bool plain = n <= shown;
        for (size_t i = 0; i < n; i++) plain = plain && (unsigned char)word[i] > ' ';
        if (plain) snprintf(j->first_unknown, sizeof j->first_unknown, "'%.*s', ", (int)n, word);
        break;
    }
    char where[40] = "the prompt";
    if (j->in.number) snprintf(where, sizeof where, "line %lld", (long long)j->in.number);
    size_t end = strlen(j->first_unknown);
    snprintf(j->first_unknown + end, sizeof j->first_unknown - end, "%s", where);
}

/* Counts the tokens of a source that the vocabulary does not have. */
static void count_unknown(job *j, const sentence *s, const char *line) {
    const wf_tokenizer *t = j->language.tokenizer[SIDE_SRC];
    int32_t unknown = t ? wf_tokenizer_special(t, WF_UNK_ID) : -1;
    int64_t n = unknown < 0 ? 0 : count_of(unknown, s->ids, s->src_length);
    if (n && !j->unknown) note_unknown(j, unknown, line);
    j->read += s->src_length;
    j->unknown += n;
}

static void add_sentence(job *j, char *line, size_t bytes, int64_t part, bool more) {
    if (j->n == j->room) answer_window(j);
    sentence *s = &j->window[j->n];
    *s = (sentence){ .line = j->in.number, .part = part, .more = more };
    if (j->set->score)
        read_pair(j, s, line, bytes);
    else
        read_source(j, s, line, bytes);
    keep_ids(j, s);
    count_unknown(j, s, line);
    bool fits = s->src_length >= j->low && s->src_length <= j->high;
    if (j->high && !s->done && !fits && j->last_outside != s->line) {
        j->last_outside = s->line; /* a line counts once, even if several parts are too short */
        j->out_of_range++;
    }
    j->n++;
}

/* Adds a line, split into parts if it is too long and --long-lines says so. Spaces between parts
 * are dropped. */
static void add_line(job *j, char *line, size_t bytes) {
    if (j->set->explain && j->in.number > 1)
        refuse_line(j, "--explain draws one line, and this is a second one");
    int64_t part = 0;
    for (size_t cut; (cut = part_that_fits(j, line, bytes)) > 0;) {
        size_t next = cut + strspn(line + cut, " \t");
        char after = line[cut];
        line[cut] = '\0';
        add_sentence(j, line, cut, ++part, next < bytes);
        line[cut] = after;
        if (next == bytes) return;
        line += next;
        bytes -= next;
    }
    add_sentence(j, line, bytes, part ? part + 1 : 0, false);
}

/* Reports that the input has more lines than references, after counting them. */
static _Noreturn void refuse_surplus(job *j) {
    char *line;
    answer_window(j);
    while (lines_next(&j->in, true, &line) == LINE_READ) continue;
    refuse_counts(j, j->in.number);
}

static void answer_prompt(job *j) {
    char *text = memory_or_fail(j->program, strdup(j->set->prompt));
    j->in.number = 1;
    if (j->set->stream) write_prompt(j);
    add_line(j, text, strlen(text));
    answer_window(j);
    free(text);
}

void answer_lines(job *j) {
    char *line;
    if (j->set->prompt) {
        answer_prompt(j);
        return;
    }
    /* outputs that a terminal shows are progress enough */
    bool watched = j->out == stdout && isatty(STDOUT_FILENO);
    so_far_begin(&j->progress, j->program, &j->in.file, j->set->quiet || j->set->draw || watched);
    for (;;) {
        switch (lines_next(&j->in, j->n == 0, &line)) {
        case LINE_READ:
            if (j->metrics && j->in.number > j->n_reference) refuse_surplus(j);
            add_line(j, line, j->in.length);
            break;
        case LINE_WAIT:
            answer_window(j);
            so_far_wait(&j->progress);
            continue;
        case LINE_END:
            answer_window(j);
            if (j->metrics && j->in.number != j->n_reference) refuse_counts(j, j->in.number);
            return;
        case LINE_TOO_LONG:
            j->in.number++;
            refuse_line(j, "it is longer than a megabyte");
        case LINE_FAILED:
            answer_window(j);
            fail(j->program, "%s can't be read: %s", input_name(j), lines_failure(&j->in));
        }
        if (j->n == j->room) answer_window(j);
    }
}

void close_window(job *j) {
    for (int64_t i = 0; i < j->n_reference; i++) free(j->reference[i]);
    free(j->reference), free(j->window), free(j->ids);
    metrics_free(j->metrics);
    lines_close(&j->in);
}

void warn_of_limits(const job *j) {
    if (!j->in.number && !j->set->quiet)
        warn(j->program, "%s has no line: nothing was read, and nothing is written", input_name(j));
    if (j->out_of_range)
        warn(j->program,
             "%lld of %lld lines have another number of tokens than the %lld..%lld that the model "
             "was trained on",
             (long long)j->out_of_range, (long long)j->in.number, (long long)j->low,
             (long long)j->high);
    warn_of_long_lines(j);
    if (j->tabbed)
        warn(
            j->program,
            "sources with a TAB, which were read with what is behind it: %lld; cut -f 1 writes the "
            "sources of pairs alone, and --score reads pairs",
            (long long)j->tabbed);
    if (j->unknown)
        warn(j->program,
             "%lld of the %lld tokens of the sources are unknown to the model's vocabulary, the "
             "first in %s",
             (long long)j->unknown, (long long)j->read, j->first_unknown);
    if (j->escaped)
        warn(j->program,
             "line breaks%s within outputs were written as \\n and the like, %lld of them: --raw "
             "writes them as they are, and --json has the text",
             j->set->scores ? " or tabs" : "", (long long)j->escaped);
    if (j->filled && j->model->start_first)
        warn(j->program,
             "%lld of %lld outputs ended before --max-new-tokens: prompt and output have at most "
             "%lld tokens together in this model",
             (long long)j->filled, (long long)j->sentences,
             (long long)wf_model_longest_source(j->model));
    /* running text seldom ends within a maximum length */
    if (j->unfinished && !j->model->start_first)
        warn(j->program, "%lld of %lld outputs were cut before an end token; %s more room",
             (long long)j->unfinished, (long long)j->sentences,
             j->set->max_new ? "--max-new-tokens gives" : "--max-len-a and --max-len-b give");
}
