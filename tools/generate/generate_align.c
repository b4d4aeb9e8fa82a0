/* tools/generate/generate_align.c - alignments beside outputs and beside given targets: see
 * generate.h, and align.h for what they are. */
#include <stdlib.h>
#include <string.h>

#include "generate.h"

/* The attention head that a model's file names for alignments; -1: it names none. */
static int aligning_head(const job *j, const wf_file *f) {
    const char *text = wf_file_meta(f, ALIGNMENT_HEAD);
    int64_t heads = align_heads(j->model);
    char *end = NULL;
    if (!text) return -1;
    long long head = strtoll(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || head >= heads)
        fail(j->program, "%s: '%s' is '%.40s', not one of its %lld heads", j->set->model,
             ALIGNMENT_HEAD, text, (long long)heads);
    return (int)head;
}

void open_alignment(job *j, const wf_file *f) {
    if (!j->set->align.kind) return;
    if (!align_heads(j->model))
        fail(j->program,
             "%s has no cross-attention, by which --alignment links the words of a source and of "
             "its output",
             j->set->model);
    j->align_head = aligning_head(j, f);
}

/* ---- words ----------------------------------------------------------------------------------- */

/* One side of the language, as an encoder of lines. */
typedef struct encoded_side {
    language *language;
    int side;
} encoded_side;

static int64_t encode_side(void *user, const char *line, size_t bytes, int32_t *ids,
                           int64_t capacity, char *message) {
    const encoded_side *e = user;
    return language_read(e->language, e->side, line, bytes, ids, capacity, message);
}

static token_words new_words(const job *j, int64_t n) {
    int32_t *word = memory_or_fail(j->program, calloc((size_t)n + 1, sizeof *word));
    return (token_words){ word, n, 0 };
}

/* The words of n tokens of a line. The first `first` tokens were forced, and belong to no word.
 * Exits if the line is invalid. */
static token_words words_of(job *j, int side, const char *line, size_t bytes, int64_t n,
                            int64_t first) {
    char message[WF_MESSAGE];
    encoded_side of = { &j->language, side };
    const text_encoder encoder = { encode_side, &of, j->language.vocab[side], 0 };
    token_words w = new_words(j, n);
    for (int64_t i = 0; i < first; i++) w.word[i] = NO_WORD;
    w.words = words_of_line(&encoder, line, bytes, n - first, w.word + first, message);
    if (w.words < 0) refuse_line(j, message);
    return w;
}

void note_source_words(job *j, sentence *s, const char *line, size_t bytes) {
    if (!j->set->align.kind || s->src_length <= 0) return;
    s->src_words = words_of(j, SIDE_SRC, line, bytes, s->src_length, 0);
}

/* How many forced first tokens were put before a target's own. */
static int64_t forced_before(job *j, const char *line, size_t bytes) {
    char message[WF_MESSAGE];
    int32_t own[WF_MOST_FORCED];
    int n = j->options.n_forced;
    int64_t found = language_read(&j->language, SIDE_TGT, line, bytes, own, n, message);
    bool own_ones = found >= n && memcmp(own, j->options.forced, (size_t)n * sizeof *own) == 0;
    return own_ones ? 0 : n;
}

void note_target_words(job *j, sentence *s, const char *line, size_t bytes) {
    if (!j->set->align.kind || s->src_length < 0 || s->tgt_length < 0) return;
    s->tgt_words = words_of(j, SIDE_TGT, line, bytes, s->tgt_length, forced_before(j, line, bytes));
}

void free_words(sentence *s) {
    free(s->src_words.word);
    free(s->tgt_words.word);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Writes the links of a source and the n tokens of a target, as text or as JSON. */
static void write_links(job *j, const sentence *s, const int32_t *ids, int64_t n,
                        const token_words *out) {
    char message[WF_MESSAGE];
    alignment l;
    if (!attention_run(&j->attention, s->src_length, s->ids, n, ids, message))
        fail(j->program, "line %lld: its alignment: %s", (long long)s->line, message);
    if (!alignment_new(&l, &j->attention, j->align_head, &s->src_words, out))
        fail(j->program, "out of memory");
    if (j->set->json)
        alignment_json(&l, j->set->align, &j->line);
    else
        alignment_text(&l, j->set->align, j->out);
    alignment_free(&l);
}

void align_output(job *j, const sentence *s, const wf_hypothesis *h) {
    if (!j->set->align.kind) return;
    token_words out = new_words(j, h->length);
    out.words = words_of_output(j->language.tokenizer[SIDE_TGT], h->tokens, h->length, out.word);
    if (out.words < 0) fail(j->program, "out of memory");
    write_links(j, s, h->tokens, h->length, &out);
    free(out.word);
}

void align_given(job *j, const sentence *s) {
    if (!j->set->align.kind) return;
    write_links(j, s, s->ids + s->src_length, s->tgt_length, &s->tgt_words);
}

void align_nothing(job *j) {
    if (j->set->align.kind && !j->set->json) fputs(" |||", j->out);
}
