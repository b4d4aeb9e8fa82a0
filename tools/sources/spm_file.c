/* tools/sources/spm_file.c - makes the vocabulary of a new model from a .spm file or
 * tokenizer.json. See spm_file.h. */
#include "spm_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/op.h"
#include "tools/cli/refused.h"
#include "tools/data/text_input.h"

static const char *const specials[WF_SPECIAL_IDS] = { "<pad>", "<unk>", "<s>", "</s>" };

/* True if the piece is one of weft's special symbols, by its id in the file or by its name. */
static bool is_special(const wf_sentencepiece_options *own, int32_t id, const char *piece) {
    for (int i = 0; i < WF_SPECIAL_IDS; i++)
        if (id == own->special[i] || strcmp(piece, specials[i]) == 0) return true;
    return false;
}

/* The pieces of the .spm file in the order of the new model's ids; the caller frees the array.
 * NULL: out of memory. */
static const char **order(const wf_tokenizer *t, const wf_sentencepiece_options *own, int64_t *n) {
    int64_t size = wf_tokenizer_size(t);
    const char **pieces = calloc((size_t)size + WF_SPECIAL_IDS, sizeof *pieces);
    if (!pieces) return NULL;
    for (*n = 0; *n < WF_SPECIAL_IDS; ++*n) pieces[*n] = specials[*n];
    for (int32_t id = 0; id < size; id++) {
        const char *piece = wf_tokenizer_piece(t, id);
        if (piece && !is_special(own, id, piece)) pieces[(*n)++] = piece;
    }
    return pieces;
}

/* Makes the tokenizer from the pieces of the .spm file. */
static wf_tokenizer *make(const wf_sentencepiece_options *own, bool source, char *message) {
    static const int32_t end = WF_END_ID;
    wf_sentencepiece_options o = { .model = own->model, .bytes = own->bytes };
    wf_tokenizer *t = wf_tokenizer_from_sentencepiece(own, message), *ordered = NULL;
    if (!t) return NULL;
    const char **pieces = order(t, own, &o.n_pieces);
    for (int i = 0; i < WF_SPECIAL_IDS; i++) o.special[i] = i;
    o.pieces = pieces;
    if (source) {
        o.after = &end;
        o.n_after = 1;
    }
    if (pieces)
        ordered = wf_tokenizer_from_sentencepiece(&o, message);
    else
        snprintf(message, WF_MESSAGE, "out of memory");
    free(pieces);
    wf_tokenizer_free(t);
    return ordered;
}

/* Makes the tokenizer with the file's own ids. */
static wf_tokenizer *make_own(const wf_sentencepiece_options *own, bool source, spm_ids ids,
                              char *message) {
    wf_sentencepiece_options o = *own;
    bool padding = ids == SPM_PADDING_STARTS;
    if (!padding && o.special[WF_END_ID] < 0) {
        refused(message,
                "Marian needs an id of the end: train it with --eos_id=0 --unk_id=1 --bos_id=-1");
        return NULL;
    }
    if (padding && (o.special[WF_PAD_ID] < 0 || o.special[WF_END_ID] < 0)) {
        refused(message,
                "T5 needs ids of padding and of the end: train it with --pad_id=0 --eos_id=1 "
                "--unk_id=2 --bos_id=-1");
        return NULL;
    }
    o.special[WF_START_ID] = o.special[padding ? WF_PAD_ID : WF_END_ID];
    if (source) {
        o.after = &o.special[WF_END_ID];
        o.n_after = 1;
    }
    return wf_tokenizer_from_sentencepiece(&o, message);
}

wf_tokenizer *sentencepiece_open(const char *path, bool source, spm_ids ids, char *message) {
    wf_sentencepiece_options own;
    size_t bytes;
    char why[WF_MESSAGE];
    char *model = spool_whole(path, &bytes, message);
    if (!model) return NULL;
    bool ok = wf_sentencepiece_defaults(model, bytes, &own, why);
    wf_tokenizer *t = NULL;
    if (ok) t = ids ? make_own(&own, source, ids, why) : make(&own, source, why);
    if (!t) snprintf(message, WF_MESSAGE, "%.100s: %.150s", path, why);
    free(model);
    return t;
}

/* ---- tokenizer.json -------------------------------------------------------------------------- */

static int32_t id_of(const wf_tokenizer *t, const char *piece) {
    for (int32_t id = 0; id < wf_tokenizer_size(t); id++) {
        const char *text = wf_tokenizer_piece(t, id);
        if (text && strcmp(text, piece) == 0) return id;
    }
    return -1;
}

/* The id of the first of two pieces that the vocabulary has; -1: it has neither. */
static int32_t id_of_either(const wf_tokenizer *t, const char *piece, const char *other) {
    int32_t id = id_of(t, piece);
    return id >= 0 ? id : id_of(t, other);
}

static bool ids_around(wf_tokenizer *t, int32_t around[2], char *message) {
    if (wf_tokenizer_encode(t, "", 0, around, 2, message) == 2) return true;
    return refused(message, "it does not put one token before a line and one after it, as [CLS] "
                            "and [SEP]");
}

bool mask_ids_of(wf_tokenizer *t, int32_t around[2], int32_t *mask, char *message) {
    if (wf_tokenizer_kind(t) != WF_JSON_TEXT)
        return refused(message, "it has no tokenizer.json, which names a mask");
    *mask = id_of_either(t, "[MASK]", "<mask>");
    if (*mask < 0) return refused(message, "it has no token [MASK] or <mask>");
    return ids_around(t, around, message);
}

static bool lacks_token(const char *token, char *message) {
    return refused(message, "it has no token '%.80s'", token);
}

/* The functions below choose the special ids of a tokenizer for one json_need each. False with
 * message: the vocabulary lacks one. */

static bool for_running(wf_tokenizer *t, const char *end, int32_t *special, char *message) {
    special[WF_START_ID] = special[WF_END_ID] = id_of(t, end);
    return special[WF_END_ID] >= 0 || lacks_token(end, message);
}

/* The ids of a model that reads lines: `around` begins and ends them. */
static void take_line_ids(const wf_tokenizer *t, const int32_t around[2], int32_t *special) {
    special[WF_START_ID] = around[0];
    special[WF_END_ID] = around[1];
    special[WF_PAD_ID] = id_of_either(t, "[PAD]", "<pad>");
    special[WF_UNK_ID] = id_of_either(t, "[UNK]", "<unk>");
}

static bool for_lines(wf_tokenizer *t, const char *end, int32_t *special, char *message) {
    int32_t around[2];
    (void)end;
    if (!ids_around(t, around, message)) return false;
    take_line_ids(t, around, special);
    return true;
}

static bool for_vectors(wf_tokenizer *t, const char *end, int32_t *special, char *message) {
    static const int32_t none[2] = { -1, -1 };
    if (!for_lines(t, end, special, message)) take_line_ids(t, none, special);
    return true;
}

static bool for_masks(wf_tokenizer *t, const char *end, int32_t *special, char *message) {
    int32_t mask, around[2];
    return mask_ids_of(t, around, &mask, message) && for_lines(t, end, special, message);
}

static bool for_spans(wf_tokenizer *t, const char *end, int32_t *special, char *message) {
    (void)end;
    special[WF_PAD_ID] = special[WF_START_ID] = id_of(t, "<pad>");
    special[WF_END_ID] = id_of(t, "</s>");
    special[WF_UNK_ID] = id_of(t, "<unk>");
    if (special[WF_PAD_ID] >= 0 && special[WF_END_ID] >= 0) return true;
    return refused(message, "it has no token <pad> or no </s>: tokenize --learn unigram has both");
}

static bool for_pairs(wf_tokenizer *t, const char *end, int32_t *special, char *message) {
    int32_t start = id_of_either(t, "<s>", "[CLS]"), pad = id_of_either(t, "<pad>", "[PAD]");
    int32_t last = end ? id_of(t, end) : id_of_either(t, "</s>", "[SEP]");
    if (last < 0 && !end) last = id_of(t, "<|endoftext|>");
    special[WF_START_ID] = start >= 0 ? start : last;
    special[WF_PAD_ID] = pad >= 0 ? pad : last;
    special[WF_END_ID] = last;
    special[WF_UNK_ID] = id_of_either(t, "<unk>", "[UNK]");
    if (last >= 0) return true;
    if (end) return lacks_token(end, message);
    return refused(message, "no token </s>, [SEP] or <|endoftext|> ends an output: name one by "
                            "--end-token, or learn one by tokenize --learn --special");
}

/* Makes the tokenizer twice: without special ids, to look them up, and with them. */
wf_tokenizer *json_tokenizer_open(const char *path, json_need need, const char *end,
                                  char *message) {
    static bool (*const choose[])(wf_tokenizer *, const char *, int32_t *, char *) = {
        [JSON_RUNNING] = for_running, [JSON_LINES] = for_lines, [JSON_VECTORS] = for_vectors,
        [JSON_MASKS] = for_masks,     [JSON_SPANS] = for_spans, [JSON_PAIRS] = for_pairs
    };
    char why[WF_MESSAGE];
    wf_json_text_options o = { .special = { -1, -1, -1, -1 } };
    char *json = spool_whole(path, &o.bytes, message);
    if (!json) return NULL;
    o.json = json;
    wf_tokenizer *t = wf_tokenizer_from_json(&o, why);
    bool ok = t && choose[need](t, end, o.special, why);
    wf_tokenizer_free(t);
    t = ok ? wf_tokenizer_from_json(&o, why) : NULL;
    if (!t) snprintf(message, WF_MESSAGE, "%.80s: %.160s", path, why);
    free(json);
    return t;
}

int64_t sentinels_of(const wf_tokenizer *t, int32_t ids[WF_MOST_SENTINELS]) {
    enum { SENTINEL_TEXT = 24 };
    int64_t n = 0;
    char text[SENTINEL_TEXT];
    for (; n < WF_MOST_SENTINELS; n++) {
        snprintf(text, sizeof text, "<extra_id_%lld>", (long long)n);
        ids[n] = id_of(t, text);
        if (ids[n] < 0) break;
    }
    return n;
}
