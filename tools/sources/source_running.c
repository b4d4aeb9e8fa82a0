/* tools/sources/source_running.c - running text: one file, or the end of the text, is held out. The
 * vocabulary and the model are learned from the rest. See dataset.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "core/base/utf8.h"
#include "dataset.h"
#include "models/choices.h"
#include "models/text_internal.h"
#include "spm_file.h"
#include "tools/cli/numbers.h"
#include "tools/cli/refused.h"
#include "tools/data/language.h"
#include "tools/data/lines.h"

enum { LEAST_SHARE = 10 }; /* at most 1 / LEAST_SHARE of the text is held out */
enum { MOST_IDS = 2 * LONGEST_PART };

/* The files of a running text, and the length of the part to learn from. */
typedef struct origin {
    const running_options *options;
    spool text, eval;
    size_t stop; /* number of bytes to learn from, extended to the end of a line */
} origin;

static bool unreadable(const char *path, const char *why, char *message) {
    return refused(message, "%.72s can't be read: %.160s", path, why);
}

/* Finds the size of a text. A pipe or a gzip file is read to its end for this, and kept, so that it
 * can then be read from any offset. */
static bool size_of(spool *s, const char *path, size_t *size, char *message) {
    static char part[1 << 16];
    if (!s->keeps) {
        *size = (size_t)s->first.st_size;
        return true;
    }
    for (*size = 0;;) {
        ssize_t got = spool_read(s, *size, part, sizeof part);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return unreadable(path, spool_failure(s), message);
        if (got == 0) return true;
        *size += (size_t)got;
    }
}

static bool open_origin(origin *from, const running_options *o, char *message) {
    *from = (origin){ .options = o, .text.in.file = -1, .eval.in.file = -1 };
    if (!spool_open(&from->text, o->text)) return unreadable(o->text, strerror(errno), message);
    size_t size, held = o->eval ? 0 : (size_t)o->eval_bytes;
    if (!size_of(&from->text, o->text, &size, message)) return false;
    if (!size) return refused(message, "%.150s is empty", o->text);
    from->stop = size - (held < size / LEAST_SHARE ? held : size / LEAST_SHARE);
    if (!o->eval) return true;
    return spool_open(&from->eval, o->eval) || unreadable(o->eval, strerror(errno), message);
}

/* ---- the vocabulary -------------------------------------------------------------------------- */

typedef struct part_reader {
    documents text;
    char failure[WF_MESSAGE]; /* why the text cannot be read; else "" */
} part_reader;

static int next_part(void *from, const char **text, size_t *bytes) {
    part_reader *r = from;
    text_status status;
    do status = documents_next(&r->text, text, bytes);
    while (status == TEXT_MARKER);
    if (status == TEXT_PART) return 1;
    if (status == TEXT_END) return 0;
    snprintf(r->failure, sizeof r->failure, "%s", spool_failure(r->text.from));
    return -1;
}

static wf_tokenizer *learn(const dataset *m, origin *from, char *message) {
    const running_options *o = from->options;
    char why[WF_MESSAGE];
    part_reader r = { .failure = "" };
    if (m->kind->masks)
        return json_tokenizer_open(o->json, m->kind->spans ? JSON_SPANS : JSON_MASKS, NULL,
                                   message);
    if (o->json) return json_tokenizer_open(o->json, JSON_RUNNING, o->end_token, message);
    documents_start(&r.text, &from->text, 0, from->stop, o->marker);
    wf_tokenizer *t = wf_tokenizer_learn(&o->tokens, next_part, &r, why);
    documents_close(&r.text);
    bool too_few = strncmp(why, "vocab_size", 10) == 0;
    if (*r.failure) unreadable(o->text, r.failure, message);
    if (!t && !*r.failure)
        snprintf(message, WF_MESSAGE, "%.80s: %.150s%s", o->text, why,
                 too_few ? ": raise --vocab-size" : text_input_remedy(&from->text.in, why));
    return t;
}

/* Takes the ids around a window, and that of the mask. */
static bool take_mask(dataset *m, char *message) {
    int32_t around[2], pad = wf_tokenizer_special(m->tokenizer[0], WF_PAD_ID);
    if (!mask_ids_of(m->tokenizer[0], around, &m->mask, message)) return false;
    m->ids = (batch_ids){ .start = around[0], .end = around[1], .pad = pad < 0 ? 0 : pad };
    return true;
}

/* Takes the ids that stand for spans, and those around a line. */
static bool take_spans(dataset *m, const running_options *o, char *message) {
    const wf_tokenizer *t = m->tokenizer[0];
    int32_t pad = wf_tokenizer_special(t, WF_PAD_ID), end = wf_tokenizer_special(t, WF_END_ID);
    m->n_sentinels = sentinels_of(t, m->sentinel);
    if (!m->n_sentinels)
        return refused(message,
                       "the vocabulary has no token <extra_id_0>, which stands for a span");
    m->n_around = wf_tokenizer_encode(m->tokenizer[0], "", 0, m->around, 2, message);
    if (m->n_around < 0) return false;
    if (m->n_around > 2)
        return refused(message, "the tokenizer puts %lld tokens around a line, more than two",
                       (long long)m->n_around);
    m->n_before = m->n_around == 2 || (m->n_around && m->around[0] != end);
    m->ids = (batch_ids){ .start = wf_tokenizer_special(m->tokenizer[SIDE_TGT], WF_START_ID),
                          .end = end,
                          .pad = pad < 0 ? 0 : pad };
    m->window = malloc((size_t)o->window * sizeof *m->window);
    return m->window || refused(message, "out of memory");
}

static bool open_tokenizer(dataset *m, origin *from, const wf_file *f, char *message) {
    if (f && !tokenizers_open(m->tokenizer, f, message)) return false;
    if (!f) m->tokenizer[0] = m->tokenizer[1] = learn(m, from, message);
    if (m->kind->spans) return m->tokenizer[0] && take_spans(m, from->options, message);
    if (m->kind->masks) return m->tokenizer[0] && take_mask(m, message);
    /* a text begins after an end token, so the end token is also the start token */
    int32_t end = wf_tokenizer_special(m->tokenizer[0], WF_END_ID);
    m->ids = (batch_ids){ .start = end, .end = end };
    return m->tokenizer[0];
}

/* ---- ids ------------------------------------------------------------------------------------- */

static bool add_part(dataset *m, int side, const char *text, size_t bytes, char *message) {
    /* a part has at most a token for each byte; but a tokenizer.json may make the text longer
     * first, so there is room for twice as many */
    static int32_t ids[MOST_IDS];
    /* where tokens are hidden, line breaks are left out: they would become spaces after each
     * line */
    bool whole = !m->kind->masks;
    size_t shown = bytes;
    while (!whole && shown && (text[shown - 1] == '\n' || text[shown - 1] == '\r')) shown--;
    /* the tokenizer of targets: that of sources may add an end token after each line, and a window
     * has several lines */
    wf_tokenizer *t = m->tokenizer[SIDE_TGT];
    int64_t n = wf_tokenizer_encode_text(t, text, shown, ids, MOST_IDS, message);
    if (n > MOST_IDS)
        return refused(message, "%zu bytes become %lld tokens, more than %d", bytes, (long long)n,
                       MOST_IDS);
    int32_t unknown = wf_tokenizer_special(m->tokenizer[0], WF_UNK_ID);
    for (int64_t i = 0; i < n; i++) m->unknown[side] += ids[i] == unknown;
    for (size_t i = 0; i < bytes; i++) m->zeros[side] += text[i] == '\0';
    return n >= 0 && stream_add(&m->stream[side], ids, n, (int64_t)bytes, message);
}

/* Notes the first byte that is not UTF-8, for a warning. Byte tokenizers encode it all the same. */
static void note_encoding(dataset *m, int side, size_t at, const char *text, size_t bytes) {
    size_t good = bytes ? wf_utf8_prefix(text, bytes) : 0;
    if (good < bytes && !m->foreign[side]) m->foreign[side] = (int64_t)(at + good) + 1;
}

static bool add_all(dataset *m, int side, documents *d, const char *path, char *message) {
    const char *text;
    size_t bytes;
    char why[WF_MESSAGE];
    for (;;) {
        size_t at = documents_at(d);
        bool ok = true;
        switch (documents_next(d, &text, &bytes)) {
        case TEXT_FAILED:
            return unreadable(path, spool_failure(d->from), message);
        case TEXT_END:
            return true;
        case TEXT_MARKER:
            ok = stream_end_document(&m->stream[side], why);
            break;
        case TEXT_PART:
            ok = add_part(m, side, text, bytes, why);
            note_encoding(m, side, at, text, bytes);
        }
        if (!ok)
            return refused(message, "%.80s, from byte %zu: %.80s%s", path, at, why,
                           text_input_remedy(&d->from->in, why));
    }
}

/* Tokenizes the text from `begin` to *end. *end becomes the offset where it stopped. */
static bool open_stream(dataset *m, int side, spool *s, size_t begin, size_t *end, const char *path,
                        const char *marker, char *message) {
    documents d;
    int64_t vocab = wf_tokenizer_size(m->tokenizer[0]);
    if (!stream_new(&m->stream[side], vocab, m->ids.end, 0, message)) return false;
    documents_start(&d, s, begin, *end, marker);
    bool ok = add_all(m, side, &d, path, message);
    *end = documents_at(&d);
    documents_close(&d);
    return ok && stream_seal(&m->stream[side], message);
}

static bool open_streams(dataset *m, origin *from, char *message) {
    const running_options *o = from->options;
    size_t learned = from->stop, end = SIZE_MAX;
    if (!open_stream(m, LEARNED, &from->text, 0, &learned, o->text, o->marker, message))
        return false;
    if (o->eval)
        return open_stream(m, HELD, &from->eval, 0, &end, o->eval, o->marker, message) &&
               (m->stream[HELD].bytes ||
                refused(message, "%.150s has no text to validate with", o->eval));
    return open_stream(m, HELD, &from->text, learned, &end, o->text, o->marker, message);
}

/* True if the files are text. False with a message: a file has zero bytes and is not UTF-8. Either
 * of the two alone may be in a text. */
static bool is_text(const dataset *m, const running_options *o, char *message) {
    for (int side = LEARNED; side <= HELD; side++)
        if (m->zeros[side] && m->foreign[side])
            return refused(message,
                           "%.150s is no text: it is not UTF-8 at byte %lld, and %lld bytes are "
                           "zero",
                           side == HELD && o->eval ? o->eval : o->text,
                           (long long)m->foreign[side] - 1, (long long)m->zeros[side]);
    return true;
}

static bool open_windows(dataset *m, const running_options *o, char *message) {
    const token_stream *s = m->stream;
    return windows_new(&m->windows[LEARNED], &s[LEARNED], o->window, o->rows, false, o->seed,
                       message) &&
           (!s[HELD].bytes ||
            windows_new(&m->windows[HELD], &s[HELD], o->window, o->rows, true, 0, message));
}

/* ---- the whole ------------------------------------------------------------------------------- */

static uint64_t hash_of(const token_stream *s) {
    return wf_fnv1a((uint64_t)s->n, s->ids.data, (uint64_t)(s->n * s->id_bytes));
}

bool open_running(dataset *m, const source_options *o, const wf_file *f, char *message) {
    running_options own = o->running;
    origin from;
    bool ok = open_origin(&from, &own, message);
    if (ok && own.follow.text) own.follow.text(own.follow.user, (double)from.stop, &own);
    ok = ok && open_tokenizer(m, &from, f, message) && open_streams(m, &from, message) &&
         is_text(m, &own, message) && open_windows(m, &own, message);
    if (ok) m->hash = hash_of(&m->stream[LEARNED]);
    if (ok && own.eval) m->valid_hash = hash_of(&m->stream[HELD]);
    m->mask_seed = own.seed;
    if (ok && own.eval_bytes && !m->stream[HELD].bytes)
        m->unheld = "a text is parted between lines, and the last is too long; --text-eval gives "
                    "another text; without it no best weights are kept";
    m->tokens = m->kind->masks ? 0 : m->stream[LEARNED].n;
    spool_close(&from.text), spool_close(&from.eval);
    return ok;
}

void close_running(dataset *m) {
    for (int side = 0; side < 2; side++) {
        windows_free(&m->windows[side]);
        stream_free(&m->stream[side]);
    }
    free(m->window);
}

/* ---- batches --------------------------------------------------------------------------------- */

const windows *windows_of(const dataset *m, task_stream stream) {
    return &m->windows[stream == STREAM_TRAIN ? LEARNED : HELD];
}

/* Counts batches. Running text has no test stream: the validation is the test. */
int64_t count_windows(const dataset *m, task_stream stream) {
    return stream == STREAM_TEST ? 0 : windows_of(m, stream)->batches;
}

void arrange_windows(dataset *m, int64_t epoch) {
    windows_epoch(&m->windows[LEARNED], epoch);
}

static bool fill(const dataset *m, task_stream stream, int64_t k, batch *out) {
    return windows_fill(windows_of(m, stream), k, out);
}

static bool find_largest(const dataset *m, task_stream stream, int side, int64_t *B, int64_t *S,
                         int64_t *T) {
    const windows *w = windows_of(m, stream);
    (void)side;
    *B = w->rows;
    *S = 0;
    *T = w->T;
    return stream != STREAM_TEST;
}

/* Running text has no sources, so there are no outputs to evaluate. */
int64_t no_sequence(const dataset *m, task_stream stream, int64_t k, int64_t i,
                    const char *text[2]) {
    (void)m;
    (void)stream;
    (void)k;
    (void)i;
    (void)text;
    return -1;
}

/* ---- what is printed ------------------------------------------------------------------------- */

static void announce_stream(report *r, const dataset *m, int side) {
    const token_stream *t = &m->stream[side];
    char numbers[4][OPTION_TEXT_SIZE];
    if (!t->bytes) return;
    say(r, "%-8s %s in %s document%s, %s tokens of %.3g bytes",
        side == HELD ? "held out" : "training", bytes_text((double)t->bytes, numbers[0]),
        thousands((double)t->documents, numbers[1]), t->documents == 1 ? "" : "s",
        thousands((double)t->n, numbers[2]), (double)t->bytes / (double)t->n);
    if (m->zeros[side])
        say(r, "         %s bytes of it are zero: is it a text?",
            thousands((double)m->zeros[side], numbers[3]));
    if (m->foreign[side])
        warn(r->program, "the text %s is not UTF-8 at byte %lld%s",
             side == HELD ? "held out" : "to learn from", (long long)m->foreign[side] - 1,
             text_input_remedy(NULL, "not UTF-8"));
    if (m->unknown[side])
        say(r, "         %s characters of it are unknown, and count for no more than a bit or two",
            thousands((double)m->unknown[side], numbers[3]));
}

void announce_running(const dataset *m, report *r) {
    for (int side = LEARNED; side <= HELD; side++) announce_stream(r, m, side);
    if (m->unheld) warn(r->program, "nothing is held out: %s", m->unheld);
    say(r, "tokens   %s, %lld ids; windows of %lld",
        wf_token_kind_name(wf_tokenizer_kind(m->tokenizer[0])), (long long)dataset_vocab(m, 0),
        (long long)m->windows[LEARNED].T);
}

const source_kind source_running = {
    .text = true,
    .running = true,
    .open = open_running,
    .close = close_running,
    .announce = announce_running,
    .batches = count_windows,
    .arrange = arrange_windows,
    .fill = fill,
    .largest = find_largest,
    .sequence = no_sequence,
};
