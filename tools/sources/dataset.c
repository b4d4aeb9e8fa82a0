/* tools/sources/dataset.c - batches from any kind of training data. See dataset.h. */
#include "dataset.h"

#include <assert.h>
#include <string.h>

#include "models/decode.h"
#include "tools/data/language.h"

/* ---- the rows -------------------------------------------------------------------------------- */

static int count_words(const char *words) {
    int n = *words != '|';
    for (; *words; words++) n += *words == '|';
    return n;
}

const source_kind *source_of_word(int word) {
#define KIND(name, words) { &source_##name, words },
    static const struct {
        const source_kind *kind;
        const char *words;
    } rows[] = { SOURCES(KIND) };
#undef KIND
    for (size_t i = 0; word >= 0 && i < sizeof rows / sizeof *rows; i++) {
        int n = count_words(rows[i].words);
        if (word < n) return rows[i].kind;
        word -= n;
    }
    return NULL;
}

/* ---- opening --------------------------------------------------------------------------------- */

bool dataset_open(dataset *m, const source_kind *kind, const source_options *o, const wf_file *f,
                  char *message) {
    assert(o->accum >= 1);
    *m = (dataset){ .kind = kind, .accum = o->accum, .epoch = -1 };
    m->longer = wf_decode_defaults().max_len_b;
    if (!kind->open(m, o, f, message)) return false;
    for (int side = 0; dataset_is_text(m) && side < 2; side++)
        m->vocab[side] = wf_tokenizer_size(m->tokenizer[side]);
    return true;
}

void dataset_free(dataset *m) {
    if (!m->kind) return;
    if (m->kind->close) m->kind->close(m);
    tokenizers_close(m->tokenizer);
    *m = (dataset){ 0 };
}

int64_t dataset_vocab(const dataset *m, int side) {
    assert(side == 0 || side == 1);
    return m->vocab[side];
}

const char *dataset_unit(const dataset *m) {
    if (m->kind->masks) return m->kind->spans ? "tokens" : "hidden";
    return m->kind->encoder ? "lines" : "tokens";
}

bool dataset_is_text(const dataset *m) {
    return m->tokenizer[SIDE_TGT];
}

bool dataset_holds(const dataset *m) {
    return m->kind->batches(m, STREAM_VALID) > 0;
}

/* ---- batches --------------------------------------------------------------------------------- */

int64_t dataset_updates(const dataset *m) {
    return (m->kind->batches(m, STREAM_TRAIN) + m->accum - 1) / m->accum;
}

/* The number of a step's first batch. Puts the batches of its epoch in order, if that was not
 * done. */
static int64_t first_batch(dataset *m, int64_t step) {
    assert(step >= 1);
    int64_t updates = dataset_updates(m);
    if (!updates) return (step - 1) * m->accum;
    int64_t epoch = (step - 1) / updates;
    if (m->epoch != epoch && m->kind->arrange) m->kind->arrange(m, epoch);
    m->epoch = epoch;
    return (step - 1) % updates * m->accum;
}

int64_t dataset_parts(dataset *m, int64_t step) {
    int64_t n = m->kind->batches(m, STREAM_TRAIN);
    int64_t left = n ? n - first_batch(m, step) : m->accum;
    return left < m->accum ? left : m->accum;
}

bool dataset_batch(dataset *m, int64_t step, int64_t part, batch *out) {
    assert(part >= 0 && part < dataset_parts(m, step));
    return m->kind->fill(m, STREAM_TRAIN, first_batch(m, step) + part, out);
}
