/* models/text/sentencepiece/spm_model.c - reads a .spm file: a protocol buffer (proto2) with
 * pieces, settings of their training, and rules for normalising text. See spm.h.
 *
 * A message consists of fields: a number and a type, then the value. As in protobuf, a field that
 * is unknown or has an unexpected type is skipped. A length that exceeds its message is an
 * error. */
#include "core/file/lfs.h"
#include "spm.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* ---- protocol buffers ------------------------------------------------------------------------ */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

typedef struct field {
    uint32_t number;
    int type;
    uint64_t value; /* value of a varint; bits of a fixed-size field */
    wf_span bytes;
} field;

static bool take_varint(wf_span *rest, uint64_t *value) {
    *value = 0;
    for (int shift = 0; shift < 70 && rest->bytes; shift += 7) {
        unsigned char c = (unsigned char)*wf_span_take(rest, 1).text;
        *value |= (uint64_t)(c & 0x7F) << shift;
        if (c < 0x80) return true;
    }
    return false;
}

static bool take_fixed(wf_span *rest, size_t bytes, uint64_t *value) {
    *value = 0;
    if (rest->bytes < bytes) return false;
    for (size_t i = bytes; i-- > 0;) *value = *value << 8 | (unsigned char)rest->text[i];
    wf_span_take(rest, bytes);
    return true;
}

static bool take_field(wf_span *rest, field *f) {
    uint64_t tag, length;
    if (!take_varint(rest, &tag) || tag >> 3 == 0 || tag > UINT32_MAX) return false;
    *f = (field){ .number = (uint32_t)(tag >> 3), .type = (int)(tag & 7) };
    if (f->type == VARINT) return take_varint(rest, &f->value);
    if (f->type == FIXED64) return take_fixed(rest, 8, &f->value);
    if (f->type == FIXED32) return take_fixed(rest, 4, &f->value);
    if (f->type != BYTES || !take_varint(rest, &length) || length > rest->bytes) return false;
    f->bytes = wf_span_take(rest, (size_t)length);
    return true;
}

static bool broken(const wf_spm *m, wf_span rest, char *message) {
    return fail(message, "not a SentencePiece model, or a part of one: byte %zu",
                (size_t)(rest.text - m->file));
}

/* ---- the messages ---------------------------------------------------------------------------- */

static bool read_piece(wf_spm *m, wf_span rest, char *message) {
    field f;
    wf_spm_piece piece = { .text = { rest.text, 0 }, .type = SPM_NORMAL };
    while (rest.bytes) {
        if (!take_field(&rest, &f)) return broken(m, rest, message);
        uint32_t bits = (uint32_t)f.value;
        if (f.number == 1 && f.type == BYTES) piece.text = f.bytes;
        if (f.number == 2 && f.type == FIXED32) memcpy(&piece.score, &bits, sizeof bits);
        if (f.number == 3 && f.type == VARINT && f.value >= SPM_NORMAL && f.value <= SPM_BYTE)
            piece.type = (wf_spm_type)f.value;
    }
    if (m->n == INT32_MAX || !wf_grow(&m->pieces, &m->pieces_capacity, m->n + 1, sizeof piece))
        return fail(message, "out of memory");
    m->pieces[m->n++] = piece;
    return true;
}

/* Reads the ids of special pieces: fields 40 to 43. */
static void read_special(wf_spm *m, const field *f) {
    static const int which[] = { WF_UNK_ID, WF_START_ID, WF_END_ID, WF_PAD_ID };
    if (f->number >= 40 && f->number <= 43) m->special[which[f->number - 40]] = (int32_t)f->value;
}

static bool read_trainer(wf_spm *m, wf_span rest, char *message) {
    field f;
    while (rest.bytes) {
        if (!take_field(&rest, &f)) return broken(m, rest, message);
        if (f.number == 44 && f.type == BYTES) m->unknown_surface = f.bytes;
        if (f.type != VARINT) continue;
        read_special(m, &f);
        if (f.number == 3 && f.value >= SPM_UNIGRAM && f.value <= SPM_CHAR)
            m->kind = (wf_spm_kind)f.value;
        if (f.number == 24) m->normalizer.suffix = f.value != 0;
        if (f.number == 35) m->byte_fallback = f.value != 0;
    }
    return true;
}

static bool read_normalizer(wf_spm *m, wf_span rest, wf_spm_normalizer *n, wf_span *map,
                            char *message) {
    field f;
    while (rest.bytes) {
        if (!take_field(&rest, &f)) return broken(m, rest, message);
        if (f.number == 2 && f.type == BYTES) *map = f.bytes;
        if (f.type != VARINT) continue;
        if (f.number == 3) n->dummy_prefix = f.value != 0;
        if (f.number == 4) n->remove_extra = f.value != 0;
        if (f.number == 5) n->escape = f.value != 0;
    }
    return true;
}

static bool read_model(wf_spm *m, char *message) {
    wf_span rest = { m->file, m->file_bytes }, map = { 0 }, back = { 0 };
    field f;
    while (rest.bytes) {
        bool ok = take_field(&rest, &f);
        if (!ok) return broken(m, rest, message);
        if (f.type != BYTES) continue;
        if (f.number == 1) ok = read_piece(m, f.bytes, message);
        if (f.number == 2) ok = read_trainer(m, f.bytes, message);
        if (f.number == 3) ok = read_normalizer(m, f.bytes, &m->normalizer, &map, message);
        if (f.number == 5) ok = read_normalizer(m, f.bytes, &m->denormalizer, &back, message);
        if (!ok) return false;
    }
    m->denormalizes = back.bytes > 0;
    return wf_spm_rules(&m->normalizer, map, message) &&
           wf_spm_rules(&m->denormalizer, back, message);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static bool is_normal(wf_spm_type type) {
    return type == SPM_NORMAL || type == SPM_USER_DEFINED || type == SPM_UNUSED;
}

static int digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte of a piece "<0x0A>"; -1: it has another form. */
static int byte_of(wf_span s) {
    if (s.bytes != 6 || memcmp(s.text, "<0x", 3) || s.text[5] != '>') return -1;
    int high = digit(s.text[3]), low = digit(s.text[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}

static bool take_byte(wf_spm *m, int32_t id, char *message) {
    int byte = byte_of(m->pieces[id].text);
    if (!m->byte_fallback)
        return fail(message, "piece %d is a byte, but the model has no byte fallback", (int)id);
    if (byte < 0) return fail(message, "piece %d is no byte: <0x00> to <0xFF>", (int)id);
    m->bytes[byte] = id;
    return true;
}

/* Adds a piece to the strings and ids of its type. */
static bool number_piece(wf_spm *m, int32_t id, char *message) {
    wf_spm_piece p = m->pieces[id];
    bool normal = is_normal(p.type);
    wf_strings *s = normal ? &m->normal : &m->reserved;
    int32_t n = s->n;
    if (wf_strings_add(s, p.text.text, p.text.bytes) < 0) return fail(message, "out of memory");
    bool other = m->kind == SPM_BPE && wf_strings_find(normal ? &m->reserved : &m->normal,
                                                       p.text.text, p.text.bytes) >= 0;
    if (s->n == n || other)
        return fail(message, "piece %d, '%.*s', is there twice", (int)id,
                    p.text.bytes < 80 ? (int)p.text.bytes : 80, p.text.text);
    (normal ? m->normal_ids : m->reserved_ids)[n] = id;
    if (normal && p.text.bytes > m->longest) m->longest = p.text.bytes;
    return true;
}

static bool check_piece(wf_spm *m, int32_t id, char *message) {
    wf_spm_piece p = m->pieces[id];
    if (!p.text.bytes) return fail(message, "piece %d is empty", (int)id);
    if (p.text.bytes > WF_SPM_LONGEST)
        return fail(message, "piece %d has %zu bytes, more than %d", (int)id, p.text.bytes,
                    WF_SPM_LONGEST);
    if (memchr(p.text.text, '\0', p.text.bytes))
        return fail(message, "piece %d has a zero byte in it", (int)id);
    if (!isfinite(p.score)) return fail(message, "the score of piece %d is no number", (int)id);
    if (p.type == SPM_UNKNOWN && m->unknown >= 0)
        return fail(message, "pieces %d and %d are both the unknown one", (int)m->unknown, (int)id);
    if (p.type == SPM_UNKNOWN) m->unknown = id;
    m->unused |= p.type == SPM_UNUSED;
    if (p.type == SPM_NORMAL && p.score < m->lowest) m->lowest = p.score;
    return p.type != SPM_BYTE || take_byte(m, id, message);
}

static bool check_all(wf_spm *m, char *message) {
    for (size_t i = 0; i < m->n; i++)
        if (!check_piece(m, (int32_t)i, message) || !number_piece(m, (int32_t)i, message))
            return false;
    if (m->unknown < 0) return fail(message, "no piece is the unknown one");
    for (int i = 0; i < 256 && m->byte_fallback; i++)
        if (m->bytes[i] < 0) return fail(message, "there is no piece for byte <0x%02X>", i);
    return m->kind != SPM_UNIGRAM || m->lowest < FLT_MAX ||
           fail(message, "no piece is a normal one, which has a score");
}

/* Builds a trie of all normal pieces, or of those that the user defined. */
static bool build_trie(wf_spm *m, wf_trie *trie, bool users) {
    size_t n = 0;
    wf_trie_key *keys = malloc((m->n + 1) * sizeof *keys);
    for (size_t i = 0; keys && i < m->n; i++)
        if (users ? m->pieces[i].type == SPM_USER_DEFINED : is_normal(m->pieces[i].type))
            keys[n++] = (wf_trie_key){ m->pieces[i].text, (int32_t)i };
    bool ok = keys && wf_trie_build(trie, keys, n);
    free(keys);
    return ok;
}

static bool index_pieces(wf_spm *m, char *message) {
    m->normal_ids = calloc(m->n + 1, sizeof *m->normal_ids);
    m->reserved_ids = calloc(m->n + 1, sizeof *m->reserved_ids);
    m->texts = calloc(m->n + 1, sizeof *m->texts);
    if (!m->normal_ids || !m->reserved_ids || !m->texts) return fail(message, "out of memory");
    if (!check_all(m, message)) return false;
    for (int32_t i = 0; i < m->normal.n; i++)
        m->texts[m->normal_ids[i]] = wf_strings_at(&m->normal, i);
    for (int32_t i = 0; i < m->reserved.n; i++)
        m->texts[m->reserved_ids[i]] = wf_strings_at(&m->reserved, i);
    if (m->unused && !(m->split = calloc(m->n, sizeof *m->split)))
        return fail(message, "out of memory");
    if (!build_trie(m, &m->symbols, true) ||
        (m->kind == SPM_UNIGRAM && !build_trie(m, &m->trie, false)))
        return fail(message, "out of memory");
    if (m->symbols.nodes) m->normalizer.symbols = &m->symbols;
    return true;
}

/* ---- reading --------------------------------------------------------------------------------- */

wf_spm *wf_spm_read(const void *bytes, size_t n, char *message) {
    wf_spm *m = calloc(1, sizeof *m);
    if (m) m->file = wf_copy(bytes, n);
    if (!m || !m->file) {
        fail(message, "out of memory");
        wf_spm_free(m);
        return NULL;
    }
    m->file_bytes = n;
    /* defaults for fields that the file lacks */
    m->kind = SPM_UNIGRAM;
    m->unknown_surface = (wf_span){ " \xE2\x81\x87 ", 5 };
    m->special[WF_PAD_ID] = -1;
    m->special[WF_UNK_ID] = 0;
    m->special[WF_START_ID] = 1;
    m->special[WF_END_ID] = 2;
    m->normalizer =
        (wf_spm_normalizer){ .dummy_prefix = true, .remove_extra = true, .escape = true };
    m->denormalizer = m->normalizer;
    m->unknown = -1;
    for (int i = 0; i < 256; i++) m->bytes[i] = -1;
    m->lowest = FLT_MAX;
    bool pointer = wf_lfs_pointer(bytes, n);
    if (pointer) fail(message, "%s", WF_LFS_SENTENCE);
    if (!pointer && read_model(m, message) && index_pieces(m, message)) return m;
    wf_spm_free(m);
    return NULL;
}

void wf_spm_free(wf_spm *m) {
    if (!m || m->others-- > 0) return;
    wf_strings_free(&m->normal), wf_strings_free(&m->reserved);
    wf_trie_free(&m->trie), wf_trie_free(&m->symbols);
    free(m->normal_ids), free(m->reserved_ids), free(m->pieces), free(m->split), free(m->texts);
    free(m->line.at), free(m->tokens), free(m->best), wf_merger_free(&m->merger);
    free(m->stack), free(m->file), free(m);
}

int32_t wf_spm_id(const wf_spm *m, wf_span text) {
    int32_t i = wf_strings_find(&m->reserved, text.text, text.bytes);
    if (i >= 0) return m->reserved_ids[i];
    i = wf_strings_find(&m->normal, text.text, text.bytes);
    return i >= 0 ? m->normal_ids[i] : m->unknown;
}

int32_t wf_spm_encode_id(const wf_spm *m, wf_span text) {
    int32_t i = text.bytes <= m->longest ? wf_strings_find(&m->normal, text.text, text.bytes) : -1;
    int32_t id = i >= 0 ? m->normal_ids[i] : m->unknown;
    return m->pieces[id].type == SPM_UNUSED ? m->unknown : id;
}

bool wf_spm_add(wf_spm *m, wf_span text, int32_t id) {
    if (!wf_grow(&m->tokens, &m->tokens_capacity, m->n_tokens + 1, sizeof *m->tokens)) return false;
    m->tokens[m->n_tokens++] = (wf_spm_token){ text, id };
    return true;
}
