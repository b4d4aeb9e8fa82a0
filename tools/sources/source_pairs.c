/* tools/sources/source_pairs.c - pairs of text, from files or from a task on text. See
 * dataset.h. */
#include "dataset.h"
#include "models/model_internal.h"
#include "models/text_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/random.h"
#include "models/choices.h"
#include "spm_file.h"
#include "text_tasks.h"
#include "tools/cli/numbers.h"
#include "tools/cli/refused.h"
#include "tools/data/language.h"

enum { TASK_PAIRS = 100000 };

/* ---- pairs ----------------------------------------------------------------------------------- */

/* Where pairs come from: files that are read several times, or a task on text. */
typedef struct origin {
    /* a copy for this source, in which settings that depend on the data are changed */
    dataset_options *options;
    spool train[2], valid[2], alignments;
    uint64_t held_below; /* training pairs with a hash below this are held out; 0: none */
} origin;

static void close_origin(origin *o) {
    for (int i = 0; i < 2; i++) spool_close(&o->train[i]), spool_close(&o->valid[i]);
    spool_close(&o->alignments);
}

static bool open_files(spool *s, const char *const *path, int n, char *message) {
    for (int i = 0; i < n; i++) {
        if (!path[i] || spool_open(&s[i], path[i])) continue;
        return refused(message, "%.150s can't be read: %s", path[i], strerror(errno));
    }
    return true;
}

static bool open_origin(origin *o, dataset_options *options, char *message) {
    *o = (origin){ .options = options };
    for (int i = 0; i < 2; i++) o->train[i].in.file = o->valid[i].in.file = -1;
    o->alignments.in.file = -1;
    bool ok =
        options->text_task >= 0 || (open_files(o->train, options->train, 2, message) &&
                                    open_files(o->valid, options->valid, 2, message) &&
                                    open_files(&o->alignments, &options->alignments, 1, message));
    if (!ok) close_origin(o);
    return ok;
}

/* The pairs of a stream: lines of files, or pairs of a task on text. */
typedef struct stream_pairs {
    pair_lines lines;
    text_task_kind kind;
    task_stream stream;
    uint64_t seed;
    int64_t n;
    char text[2][TEXT_TASK_BYTES];
} stream_pairs;

static bool make_pair(void *user, int64_t number, const char *text[2]) {
    stream_pairs *p = user;
    if (number == p->n) return false;
    task_pair(p->kind, p->seed, p->stream, (uint64_t)number, p->text[0], p->text[1]);
    for (int i = 0; i < 2; i++) text[i] = p->text[i];
    return true;
}

static bool is_held(const origin *from, const pair_lines *p) {
    return survey_hash(p, from->options->batches.seed) < from->held_below;
}

static bool is_learned(const void *from, const pair_lines *p) {
    return !is_held(from, p);
}

static bool is_validated(const void *from, const pair_lines *p) {
    return is_held(from, p);
}

/* Start reading the pairs of a stream: those to learn from, or those that are held out. p must not
 * move until pairs_close(&p->lines). */
static void start_pairs(stream_pairs *p, origin *from, task_stream stream) {
    const dataset_options *o = from->options;
    bool train = stream == STREAM_TRAIN, first = train || !o->valid[0];
    spool *files = first ? from->train : from->valid;
    *p = (stream_pairs){ .kind = (text_task_kind)o->text_task, .stream = stream };
    p->seed = o->batches.seed;
    p->n = train ? TASK_PAIRS : o->valid_size;
    if (o->text_task < 0)
        pairs_start(&p->lines, (spool *[]){ &files[0], &files[1] }, first ? o->train : o->valid);
    else
        pairs_make(&p->lines, "the task", make_pair, p);
    p->lines.targets = o->targets;
    p->lines.aligned = first && o->alignments;
    if (!from->held_below || !first) return;
    p->lines.wanted = train ? is_learned : is_validated;
    p->lines.filter = from;
}

/* Reads the pairs once, to set options that depend on the data and to choose the pairs that are
 * held out. */
static bool look(origin *from, char *message) {
    enum { SHARE = 100 };
    dataset_options *o = from->options;
    if (o->text_task >= 0 || (!o->held && !o->follow.lines)) return true;
    stream_pairs pairs;
    survey s;
    start_pairs(&pairs, from, STREAM_TRAIN);
    bool ok = survey_read(&s, &pairs.lines, o->batches.seed, message);
    pairs_close(&pairs.lines);
    int64_t held = s.pairs / SHARE < o->held ? s.pairs / SHARE : o->held;
    if (ok && o->follow.lines) o->follow.lines(o->follow.user, &s, o);
    if (ok) from->held_below = survey_threshold(&s, held);
    survey_free(&s);
    return ok;
}

/* ---- vocabularies ---------------------------------------------------------------------------- */

/* Adds the name of the option to a message, because the library does not know it. */
static void name_option(const dataset_options *o, char *message) {
    size_t n = strlen(message);
    if ((o->tokens[0].vocab_size || o->tokens[1].vocab_size) &&
        strncmp(message, "vocab_size", 10) == 0)
        snprintf(message + n, WF_MESSAGE - n, ": raise --vocab-size");
}

static wf_tokenizer *learn(origin *from, bool src, bool tgt, char *message) {
    stream_pairs pairs;
    char why[WF_MESSAGE] = "";
    start_pairs(&pairs, from, STREAM_TRAIN);
    pairs_reader reader = { .pairs = &pairs.lines, .side = { src, tgt }, .message = why };
    const wf_tokenizer_options *tokens = &from->options->tokens[src ? SIDE_SRC : SIDE_TGT];
    wf_tokenizer *t = wf_tokenizer_learn(tokens, pairs_line, &reader, message);
    if (!t && *why) memcpy(message, why, WF_MESSAGE);
    if (!t) name_option(from->options, message);
    pairs_close(&pairs.lines);
    return t;
}

/* Opens SentencePiece tokenizers. With separate vocabularies, that of sources adds an end token
 * after each line; a batch adds the model's end to targets. False: see message. */
static bool open_sentencepiece(wf_tokenizer *t[2], const dataset_options *o, char *message) {
    t[0] = sentencepiece_open(o->spm[0], !o->shared, o->ids, message);
    if (o->shared || !t[0]) return (t[1] = t[0]) != NULL;
    return (t[1] = sentencepiece_open(o->spm[1], false, o->ids, message)) != NULL;
}

/* Makes a copy of the tokenizer that adds the end id after a line, for sources. Targets need none,
 * because a batch adds the model's end to them. */
static wf_tokenizer *with_end(const wf_tokenizer *t, char *message) {
    wf_byte_level_options o;
    if (!wf_tokenizer_byte_level(t, &o)) return NULL;
    o.after = &o.special[WF_END_ID];
    o.n_after = 1;
    return wf_tokenizer_from_byte_level(&o, message);
}

static bool share(wf_tokenizer *t[2], const dataset_options *o, char *message) {
    t[SIDE_TGT] = t[SIDE_SRC];
    if (o->targets || wf_tokenizer_kind(t[SIDE_TGT]) != WF_BYTE_LEVEL) return true;
    t[SIDE_SRC] = with_end(t[SIDE_TGT], message);
    return t[SIDE_SRC] != NULL;
}

static bool find_tokenizers(dataset *m, origin *from, const wf_file *f, char *message) {
    wf_tokenizer **t = m->tokenizer;
    const dataset_options *o = from->options;
    bool shared = o->shared;
    if (f) return tokenizers_open(t, f, message);
    if (o->json) {
        json_need need = o->ids == SPM_PADDING_STARTS ? JSON_SPANS : JSON_PAIRS;
        if (m->kind->encoder) need = m->kind->classifies ? JSON_LINES : JSON_VECTORS;
        return (t[0] = t[1] = json_tokenizer_open(o->json, need, o->end_token, message)) != NULL;
    }
    if (o->spm[0]) return open_sentencepiece(t, o, message);
    t[0] = learn(from, true, shared, message);
    if (!t[0]) return false;
    if (shared) return share(t, o, message);
    return (t[1] = learn(from, false, true, message)) != NULL;
}

/* Opens the tokenizers. Lengths mark padding, so the padding id may be any id that both sides
 * have; an encoder without a start and an end has no outputs, so these may be any id, too. */
static bool open_tokenizers(dataset *m, origin *from, const wf_file *f, char *message) {
    if (!find_tokenizers(m, from, f, message)) return false;
    const wf_tokenizer *t = m->tokenizer[SIDE_TGT];
    int32_t pad = wf_tokenizer_special(t, WF_PAD_ID);
    m->ids.start = wf_tokenizer_special(t, WF_START_ID);
    m->ids.end = wf_tokenizer_special(t, WF_END_ID);
    if (m->ids.start < 0 && m->kind->encoder) m->ids.start = m->ids.end = 0;
    m->ids.pad = pad >= 0 && pad < wf_tokenizer_size(m->tokenizer[SIDE_SRC]) ? pad : 0;
    return true;
}

/* Takes the labels from the model's file, or else from all training pairs, held-out ones included,
 * because a rare label may occur only in these. */
static bool find_classes(dataset *m, origin *from, const wf_file *f, char *message) {
    const char *names = f ? wf_file_meta(f, WF_CLASS_NAMES) : NULL;
    char why[WF_MESSAGE];
    stream_pairs pairs;
    if (!m->kind->classifies) return true;
    if (names && !wf_class_names_check(f, why))
        return refused(message, "the model's file: %.200s", why);
    if (names) return class_names_take(&m->classes, names, message);
    start_pairs(&pairs, from, STREAM_TRAIN);
    pairs.lines.wanted = NULL;
    bool ok = class_names_learn(&m->classes, &pairs.lines, message);
    pairs_close(&pairs.lines);
    return ok;
}

/* Encodes a line. A line without tokens does not get the tokens that are added to other lines. */
static int64_t encode(void *user, const char *line, size_t bytes, int32_t *ids, int64_t capacity,
                      char *message) {
    const side_reader *r = user;
    int64_t room = capacity > r->n_first ? capacity - r->n_first : 0;
    if (room && r->n_first) memcpy(ids, r->first, (size_t)r->n_first * sizeof *ids);
    int32_t *rest = room ? ids + r->n_first : ids;
    /* a target continues the tokens before it, so no special tokens are put around it */
    int64_t n = r->first ? wf_tokenizer_encode_text(r->tokenizer, line, bytes, rest, room, message)
                         : wf_tokenizer_encode(r->tokenizer, line, bytes, rest, room, message);
    return n > 0 ? n + r->n_first : n;
}

/* Outputs begin with the tokens that a search would force there, so that the model learns them. */
static bool open_readers(dataset *m, const wf_file *f, char *message) {
    m->generation.options = wf_decode_defaults();
    if (f && !wf_generation_from_meta(f, NULL, &m->generation, message)) return false;
    m->reader[SIDE_SRC].tokenizer = m->tokenizer[SIDE_SRC];
    m->reader[SIDE_TGT] =
        (side_reader){ m->tokenizer[SIDE_TGT], m->generation.forced, m->generation.n_forced };
    for (int i = 0; i < m->generation.n_forced; i++)
        if (m->generation.forced[i] < 0 ||
            m->generation.forced[i] >= wf_tokenizer_size(m->tokenizer[SIDE_TGT]))
            return refused(message, "generate.forced: there is no id %d",
                           (int)m->generation.forced[i]);
    return true;
}

/* ---- corpora --------------------------------------------------------------------------------- */

static bool new_corpus(dataset *m, corpus *c, const dataset_options *o, bool aligned,
                       char *message) {
    text_encoder encoder[2];
    corpus_limits limits = { .tokens = { o->max_tokens, o->max_tokens },
                             .targets = o->targets,
                             .aligned = aligned };
    for (int i = 0; i < 2; i++)
        encoder[i] = (text_encoder){ encode, &m->reader[i], wf_tokenizer_size(m->tokenizer[i]),
                                     m->reader[i].n_first };
    if (m->kind->classifies) classify_encoders(m, encoder);
    return corpus_new(c, encoder, &limits, message);
}

static bool keep_line(holdout *h, const char *const text[2], const size_t bytes[2]) {
    size_t n = (size_t)h->n;
    if (!wf_grow(&h->source, &h->room[0], n + 1, sizeof *h->source) ||
        !wf_grow(&h->reference, &h->room[1], n + 1, sizeof *h->reference))
        return false;
    h->source[n] = strndup(text[0], bytes[0]);
    h->reference[n] = strndup(text[1], bytes[1]);
    h->n++;
    return h->source[n] && h->reference[n];
}

/* Keeps the pairs that are not too long, with their lines. */
static bool read_holdout(holdout *h, pair_lines *p, char *message) {
    while (pairs_next(p, message)) {
        if (!corpus_take(&h->corpus, p, message)) return false;
        if (h->corpus.pairs > h->n && !keep_line(h, p->text, p->bytes))
            return refused(message, "out of memory");
    }
    return !p->failed && corpus_seal(&h->corpus, message);
}

static bool order_holdout(holdout *h, char *message) {
    batches_limits limits = { .sentences = 64 };
    return batches_new(&h->order, &h->corpus, &limits, message);
}

static bool hold(dataset *m, holdout *h, origin *from, task_stream stream, char *message) {
    stream_pairs pairs;
    if (!new_corpus(m, &h->corpus, from->options, false, message)) return false;
    start_pairs(&pairs, from, stream);
    bool ok = read_holdout(h, &pairs.lines, message) && order_holdout(h, message);
    pairs_close(&pairs.lines);
    return ok;
}

static void free_holdout(holdout *h) {
    for (int64_t i = 0; i < h->n; i++) free(h->source[i]), free(h->reference[i]);
    free(h->source), free(h->reference);
    batches_free(&h->order);
    corpus_free(&h->corpus);
}

static bool hold_back(dataset *m, origin *from, char *message) {
    const dataset_options *o = from->options;
    bool made = o->text_task >= 0;
    if (made ? !o->valid_size : !o->valid[0] && !from->held_below) return true;
    return hold(m, &m->valid, from, STREAM_VALID, message) &&
           (!made || hold(m, &m->test, from, STREAM_TEST, message));
}

static bool open_training(dataset *m, origin *from, char *message) {
    stream_pairs pairs;
    const char *alignments = from->options->alignments;
    if (!new_corpus(m, &m->train, from->options, alignments != NULL, message)) return false;
    start_pairs(&pairs, from, STREAM_TRAIN);
    if (alignments) pairs_beside(&pairs.lines, &from->alignments, alignments);
    bool ok = corpus_read(&m->train, &pairs.lines, message);
    pairs_close(&pairs.lines);
    dataset_options *o = from->options;
    if (ok && o->follow.tokens) o->follow.tokens(o->follow.user, &m->train, o);
    return ok && batches_new(&m->order, &m->train, &o->batches, message);
}

/* ---- opening --------------------------------------------------------------------------------- */

static uint64_t hash_of(const corpus *c) {
    int64_t bytes = (c->total[0] + c->total[1]) * c->id_bytes;
    uint64_t hash = wf_fnv1a((uint64_t)c->pairs, c->tokens.data, (uint64_t)bytes);
    if (!c->limits.aligned) return hash;
    hash = wf_fnv1a(hash, c->links.ends.data, c->links.ends.size);
    return wf_fnv1a(hash, c->links.links.data, c->links.links.size);
}

bool open_pairs(dataset *m, const source_options *o, const wf_file *f, char *message) {
    dataset_options own = o->pairs;
    origin from;
    if (!open_origin(&from, &own, message)) return false;
    bool ok = look(&from, message) && open_tokenizers(m, &from, f, message) &&
              find_classes(m, &from, f, message) && open_readers(m, f, message) &&
              open_training(m, &from, message);
    if (ok) m->hash = hash_of(&m->train);
    ok = ok && hold_back(m, &from, message);
    if (ok && own.text_task < 0 && own.valid[0]) m->valid_hash = hash_of(&m->valid.corpus);
    m->same = ok && m->valid.corpus.pairs && hash_of(&m->valid.corpus) == m->hash;
    m->one_file = own.train[0] && own.train[1] && strcmp(own.train[0], own.train[1]) == 0;
    if (ok && own.text_task < 0 && !m->valid.order.n)
        m->unheld = "--valid FILE gives pairs to validate with; without them no best weights "
                    "are kept";
    m->tokens = m->kind->encoder ? 0 : m->train.pairs + m->train.total[1];
    close_origin(&from);
    return ok;
}

void close_pairs(dataset *m) {
    batches_free(&m->order);
    corpus_free(&m->train);
    free_holdout(&m->valid);
    free_holdout(&m->test);
    class_names_free(&m->classes);
}

/* ---- batches --------------------------------------------------------------------------------- */

static const holdout *holdout_of(const dataset *m, task_stream stream) {
    return stream == STREAM_TEST ? &m->test : &m->valid;
}

static const batches *batches_of(const dataset *m, task_stream stream) {
    return stream == STREAM_TRAIN ? &m->order : &holdout_of(m, stream)->order;
}

int64_t count_pairs_batches(const dataset *m, task_stream stream) {
    return batches_of(m, stream)->n;
}

void arrange_pairs(dataset *m, int64_t epoch) {
    batches_epoch(&m->order, epoch);
}

static bool fill(const dataset *m, task_stream stream, int64_t k, batch *out) {
    return batches_fill(batches_of(m, stream), k, m->ids, out);
}

static bool find_largest(const dataset *m, task_stream stream, int side, int64_t *B, int64_t *S,
                         int64_t *T) {
    const batches *b = batches_of(m, stream);
    if (b->n) batches_largest(b, side, B, S, T);
    return b->n;
}

static int64_t find_sequence(const dataset *m, task_stream stream, int64_t k, int64_t i,
                             const char *text[2]) {
    const holdout *h = holdout_of(m, stream);
    int64_t pair = batches_pair(&h->order, k, i);
    text[0] = h->source[pair];
    text[1] = h->reference[pair];
    return h->corpus.total[0] ? pair : -1;
}

/* ---- what is printed ------------------------------------------------------------------------- */

/* A target that is a label is not text: its one token is not counted. */
static void announce_corpus(const dataset *m, report *r, const char *name, const corpus *c) {
    char pairs[OPTION_TEXT_SIZE], source[OPTION_TEXT_SIZE], target[OPTION_TEXT_SIZE], skipped[128];
    if (!c->pairs) return;
    thousands((double)c->pairs, pairs);
    thousands((double)c->total[0], source);
    thousands((double)c->total[1], target);
    const char *separator = c->too_long ? "; " : "", *how_many = corpus_skipped(c, skipped);
    if (m->classes.n)
        say(r, "%-8s %s lines, %s tokens%s%s", name, pairs, source, separator, how_many);
    else
        say(r, "%-8s %s pairs, %s source and %s target tokens%s%s", name, pairs, source, target,
            separator, how_many);
}

static void announce_tokens(const dataset *m, report *r) {
    wf_token_kind kind[2];
    const long long vocab[] = { dataset_vocab(m, 0), dataset_vocab(m, 1) };
    for (int i = 0; i < 2; i++) kind[i] = wf_tokenizer_kind(m->tokenizer[i]);
    const char *name = wf_token_kind_name(kind[0]);
    if (kind[0] == kind[1] && same_pieces(m->tokenizer[0], m->tokenizer[1]))
        say(r, "tokens   %s, %lld ids%s", name, vocab[0], m->classes.n ? "" : " for both sides");
    else if (kind[0] != kind[1])
        say(r, "tokens   %s, %lld ids of the source; %s, %lld of the target", name, vocab[0],
            wf_token_kind_name(kind[1]), vocab[1]);
    else
        say(r, "tokens   %s, %lld ids of the source, %lld of the target", name, vocab[0], vocab[1]);
}

static void announce_pairs(const dataset *m, report *r) {
    announce_corpus(m, r, "training", &m->train);
    if (m->one_file) say(r, "         sources and targets are the lines of one file");
    announce_corpus(m, r, "held out", &m->valid.corpus);
    if (m->unheld) say(r, "held out nothing: %s", m->unheld);
    if (m->same)
        say(r,
            "         these are the pairs that are learned: scores on them say nothing of others");
    announce_tokens(m, r);
}

const source_kind source_pairs = {
    .text = true,
    .open = open_pairs,
    .close = close_pairs,
    .announce = announce_pairs,
    .batches = count_pairs_batches,
    .arrange = arrange_pairs,
    .fill = fill,
    .largest = find_largest,
    .sequence = find_sequence,
};

/* ---- pairs for an encoder -------------------------------------------------------------------- */

/* There is no output to compare. */
int64_t find_lines(const dataset *m, task_stream stream, int64_t k, int64_t i,
                   const char *text[2]) {
    find_sequence(m, stream, k, i, text);
    return -1;
}

/* Pairs of lines with one meaning, whose vectors shall be near. They are read as a translator's
 * pairs are, with one vocabulary. The other pairs of a batch are the negatives, so nothing is drawn
 * here, and a batch is never divided: a step has the same bits for any number of ranks. */
const source_kind source_contrast = {
    .text = true,
    .encoder = true,
    .open = open_pairs,
    .close = close_pairs,
    .announce = announce_pairs,
    .batches = count_pairs_batches,
    .arrange = arrange_pairs,
    .fill = fill,
    .largest = find_largest,
    .sequence = find_lines,
};
