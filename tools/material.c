/* tools/material.c - where batches come from. See material.h. */
#include "material.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "language.h"
#include "text_tasks.h"

enum { MESSAGE = 256, TASK_PAIRS = 100000, LONGEST = 1 << 15 };

static bool out_of_memory(char *message) {
    snprintf(message, MESSAGE, "out of memory");
    return false;
}

/* ---- lines of a task on text ----------------------------------------------------------------- */

/* Pairs of a stream, one after the other; as lines: of both sides, in turns. */
typedef struct made_pairs {
    text_task_kind kind;
    task_stream stream;
    uint64_t seed;
    int64_t n, at;
    bool side[2], second;
    char text[2][TEXT_TASK_BYTES];
} made_pairs;

static made_pairs make_pairs(const material_options *o, task_stream stream, int64_t n) {
    return (made_pairs){
        .kind = (text_task_kind)o->text_task, .stream = stream, .seed = o->batches.seed, .n = n
    };
}

static bool next_made(made_pairs *p) {
    if (p->at == p->n) return false;
    task_pair(p->kind, p->seed, p->stream, (uint64_t)p->at++, p->text[0], p->text[1]);
    return true;
}

static int made_line(void *from, const char **line, size_t *bytes) {
    made_pairs *p = from;
    int side = p->second;
    if (!side && !next_made(p)) return 0;
    p->second = !side && p->side[1];
    if (!p->side[side]) return made_line(from, line, bytes);
    *line = p->text[side], *bytes = strlen(*line);
    return 1;
}

/* ---- vocabularies ---------------------------------------------------------------------------- */

/* The library does not know what the option is called. */
static void name_option(const material_options *o, char *message) {
    size_t n = strlen(message);
    if (o->tokens.vocab_size && strncmp(message, "vocab_size", 10) == 0)
        snprintf(message + n, MESSAGE - n, ": raise --vocab-size");
}

static wf_tokenizer *learn(const material_options *o, bool src, bool tgt, char *message) {
    wf_tokenizer *t = NULL;
    if (o->text_task >= 0) {
        made_pairs made = make_pairs(o, STREAM_TRAIN, TASK_PAIRS);
        made.side[0] = src, made.side[1] = tgt, made.second = !src;
        if (made.second && !next_made(&made)) return NULL;
        wf_tokenizer *made_from = wf_tokenizer_learn(&o->tokens, made_line, &made, message);
        if (!made_from) name_option(o, message);
        return made_from;
    }
    pair_lines from_files;
    char why[MESSAGE] = "";
    if (!pairs_open(&from_files, o->train[0], o->train[1], message)) return NULL;
    pairs_reader reader = { .pairs = &from_files, .side = { src, tgt }, .message = why };
    t = wf_tokenizer_learn(&o->tokens, pairs_line, &reader, message);
    if (!t && *why) memcpy(message, why, MESSAGE);
    if (!t) name_option(o, message);
    pairs_close(&from_files);
    return t;
}

static bool open_tokenizers(material *m, const material_options *o, const wf_file *f,
                            char *message) {
    wf_tokenizer **t = m->tokenizer;
    if (f) return tokenizers_open(t, f, message);
    t[0] = learn(o, true, o->shared, message);
    if (o->shared || !t[0]) return (t[1] = t[0]) != NULL;
    return (t[1] = learn(o, false, true, message)) != NULL;
}

static int64_t encode(void *user, const char *line, size_t bytes, int32_t *ids, int64_t capacity,
                      char *message) {
    return wf_tokenizer_encode(user, line, bytes, ids, capacity, message);
}

/* ---- corpora --------------------------------------------------------------------------------- */

static bool new_corpus(const material *m, corpus *c, int64_t most, char *message) {
    text_encoder encoder[2];
    for (int i = 0; i < 2; i++)
        encoder[i] = (text_encoder){ encode, m->tokenizer[i], wf_tokenizer_size(m->tokenizer[i]) };
    return corpus_new(c, encoder, &(corpus_limits){ .tokens = { most, most } }, message);
}

static bool add_made(corpus *c, made_pairs *made, char *message) {
    while (next_made(made)) {
        const char *text[2] = { made->text[0], made->text[1] };
        if (!corpus_add(c, text, (size_t[]){ strlen(text[0]), strlen(text[1]) }, made->at, message))
            return false;
    }
    return corpus_seal(c, message);
}

static bool read_pairs(corpus *c, const char *const path[2], char *message) {
    pair_lines from_files;
    if (!pairs_open(&from_files, path[0], path[1], message)) return false;
    bool ok = corpus_read(c, &from_files, message);
    pairs_close(&from_files);
    return ok;
}

static bool keep_line(held *h, const char *const text[2], const size_t bytes[2], int64_t pair) {
    char ***lists[] = { &h->source, &h->reference };
    for (int i = 0; i < 2; i++) {
        char **list = realloc(*lists[i], (size_t)(pair + 1) * sizeof *list);
        if (!list) return false;
        *lists[i] = list;
        if (!(list[pair] = malloc(bytes[i] + 1))) return false;
        memcpy(list[pair], text[i], bytes[i]);
        list[pair][bytes[i]] = '\0';
    }
    return true;
}

/* The lines of the pairs that were kept: the corpus says which. */
static bool keep_lines(held *h, pair_lines *from, made_pairs *made, char *message) {
    for (int64_t pair = 0; pair < h->corpus.pairs; pair++) {
        int64_t line = corpus_at(&h->corpus, pair)->line;
        const char *const *text =
            from ? from->text : (const char *[]){ made->text[0], made->text[1] };
        size_t length[2];
        while (from ? from->number < line : made->at < line)
            if (!(from ? pairs_next(from, message) : next_made(made))) return false;
        for (int i = 0; i < 2; i++) length[i] = from ? from->bytes[i] : strlen(text[i]);
        if (!keep_line(h, text, length, pair)) return out_of_memory(message);
    }
    return true;
}

static bool order_held(held *h, char *message) {
    batches_limits limits = { .sentences = 64, .accum = 1 };
    return batches_new(&h->order, &h->corpus, &limits, message);
}

static bool hold_made(material *m, held *h, const material_options *o, task_stream stream,
                      char *message) {
    made_pairs first = make_pairs(o, stream, o->valid_size), again = first;
    return new_corpus(m, &h->corpus, LONGEST, message) && add_made(&h->corpus, &first, message) &&
           keep_lines(h, NULL, &again, message) && order_held(h, message);
}

static bool hold_files(material *m, held *h, const material_options *o, char *message) {
    pair_lines from_files;
    if (!new_corpus(m, &h->corpus, o->max_tokens, message) ||
        !read_pairs(&h->corpus, o->valid, message) ||
        !pairs_open(&from_files, o->valid[0], o->valid[1], message))
        return false;
    bool ok = keep_lines(h, &from_files, NULL, message) && order_held(h, message);
    pairs_close(&from_files);
    return ok;
}

static void free_held(held *h) {
    for (int64_t i = 0; i < h->corpus.pairs; i++) {
        if (h->reference) free(h->reference[i]);
        if (h->source) free(h->source[i]);
    }
    free(h->reference), free(h->source);
    batches_free(&h->order);
    corpus_free(&h->corpus);
}

static bool hold_back(material *m, const material_options *o, char *message) {
    if (o->text_task >= 0)
        return !o->valid_size || (hold_made(m, &m->valid, o, STREAM_VALID, message) &&
                                  hold_made(m, &m->test, o, STREAM_TEST, message));
    return !o->valid[0] || hold_files(m, &m->valid, o, message);
}

static bool open_training(material *m, const material_options *o, char *message) {
    made_pairs made = make_pairs(o, STREAM_TRAIN, TASK_PAIRS);
    if (!new_corpus(m, &m->train, o->max_tokens, message)) return false;
    bool read = o->text_task >= 0 ? add_made(&m->train, &made, message)
                                  : read_pairs(&m->train, o->train, message);
    return read && batches_new(&m->order, &m->train, &o->batches, message);
}

/* ---- opening --------------------------------------------------------------------------------- */

void material_numbers(material *m, const task *t) {
    *m = (material){ .numbers = *t, .epoch = -1 };
}

bool material_text(material *m, const material_options *o, const wf_file *f, char *message) {
    *m = (material){ .text = true, .epoch = -1 };
    m->ids = (batch_ids){ .start = WF_START_ID, .end = WF_END_ID, .pad = WF_PAD_ID };
    return open_tokenizers(m, o, f, message) && open_training(m, o, message) &&
           hold_back(m, o, message);
}

void material_free(material *m) {
    if (!m->text) return;
    batches_free(&m->order);
    corpus_free(&m->train);
    free_held(&m->valid), free_held(&m->test);
    tokenizers_close(m->tokenizer);
    *m = (material){ 0 };
}

int64_t material_vocab(const material *m, int side) {
    return m->text ? wf_tokenizer_size(m->tokenizer[side]) : TASK_VOCAB;
}

int64_t material_updates(const material *m) {
    return m->text ? batches_updates(&m->order) : 0;
}

uint64_t material_hash(const material *m) {
    uint64_t hash = (uint64_t)m->train.pairs;
    if (!m->text) return 0;
    int64_t bytes = (m->train.total[0] + m->train.total[1]) * m->train.id_bytes;
    for (int64_t i = 0; i < bytes; i++) /* FNV-1a */
        hash = (hash ^ (unsigned char)m->train.tokens.data[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* ---- batches --------------------------------------------------------------------------------- */

/* Which update of its epoch the step makes; the epoch's order is arranged. */
static int64_t update_of(material *m, int64_t step) {
    int64_t updates = batches_updates(&m->order), epoch = (step - 1) / updates;
    if (m->epoch != epoch) batches_epoch(&m->order, epoch);
    m->epoch = epoch;
    return (step - 1) % updates;
}

int64_t material_parts(material *m, int64_t step) {
    if (!m->text) return 1;
    int64_t update = update_of(m, step);
    return batches_end(&m->order, update) - update * m->order.limits.accum;
}

bool material_batch(material *m, int64_t step, int64_t part, int64_t rows, batch *out) {
    if (!m->text) {
        batch_fill(out, &m->numbers, STREAM_TRAIN, (uint64_t)((step - 1) * rows), rows);
        return true;
    }
    return batches_fill(&m->order, update_of(m, step) * m->order.limits.accum + part, m->ids, out);
}

void material_largest(const material *m, int64_t rows, int side, int64_t *B, int64_t *S,
                      int64_t *T) {
    if (m->text) {
        batches_largest(&m->order, side, B, S, T);
        return;
    }
    *B = rows, *S = m->numbers.max_len, *T = m->numbers.max_len + 1;
}
