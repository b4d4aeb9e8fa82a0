/* models/emit/emit_sentencepiece.c - the tables of a SentencePiece tokenizer. See
 * text_emitter.h. */
#include <stdlib.h>
#include <string.h>

#include "models/text/sentencepiece/sentencepiece.h"
#include "text_emitter.h"

/* ---- orders ---------------------------------------------------------------------------------- */

typedef bool (*choice)(const wf_spm *m, size_t i);

static bool is_text(const wf_spm *m, size_t i) {
    return m->pieces[i].type == SPM_NORMAL || m->pieces[i].type == SPM_USER_DEFINED;
}

static bool is_symbol(const wf_spm *m, size_t i) {
    return m->pieces[i].type == SPM_USER_DEFINED;
}

/* Is piece i found by its text? If an unknown, control or byte piece has the text of a normal
 * piece, the text finds that piece and not the normal one. */
static bool is_found(const wf_spm *m, size_t i) {
    return wf_spm_id(m, m->pieces[i].text) == (int32_t)i;
}

/* Write the order of the pieces for which `chosen` is true. Returns their number. */
static int64_t write_order(wf_text *t, const char *name, const wf_spm *m, choice chosen) {
    const char **some = calloc(m->n + 1, sizeof *some);
    if (!some) t->lacks = true;
    for (size_t i = 0; some && i < m->n; i++)
        if (chosen(m, i)) some[i] = m->texts[i];
    int64_t n = some ? wf_write_order(t, name, some, (int64_t)m->n) : 0;
    free(some);
    return n;
}

/* ---- rules ----------------------------------------------------------------------------------- */

static void write_units(wf_text *t, const char *side, const wf_spm_normalizer *r) {
    uint32_t *units = malloc((r->n_units + 1) * sizeof *units);
    char name[40];
    if (!units) t->lacks = true;
    for (size_t i = 0; units && i < r->n_units; i++) {
        const unsigned char *at = r->units + 4 * i;
        units[i] =
            (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    }
    snprintf(name, sizeof name, "%s_units", side);
    if (units)
        wf_write_units(t, name, "Texts that are replaced, as a double array.", units,
                       (int64_t)r->n_units);
    snprintf(name, sizeof name, "%s_replacements", side);
    wf_write_bytes(t, name, "By what, each with its zero.",
                   (const unsigned char *)r->replacements.text, (int64_t)r->replacements.bytes);
    free(units);
}

void wf_write_rules(wf_text *t, const char *side, const wf_spm_normalizer *r, const char *pieces,
                    int64_t n_symbols) {
    if (r->n_units) write_units(t, side, r);
    wf_text_print(t, "static const normalizer %s_rules = {\n", side);
    if (r->n_units)
        wf_text_print(t, "    %s_units, %n, %n, %s_replacements,\n", side, (int64_t)r->n_units,
                      (int64_t)r->replacements.bytes, side);
    else
        wf_text_puts(t, "    0, 0, 0, 0,\n");
    if (n_symbols)
        wf_text_print(t, "    { %s, %s_symbols, %n },\n", pieces, side, n_symbols);
    else
        wf_text_puts(t, "    { 0, 0, 0 },\n");
    wf_text_print(t, "    %d, %d, %d, %d,\n};\n\n", r->dummy_prefix, r->remove_extra, r->escape,
                  r->suffix);
}

/* ---- encoding -------------------------------------------------------------------------------- */

/* Writes the scores by which pieces compete. In a unigram model a symbol of the user's gets a score
 * that beats all others. */
static void write_scores(wf_text *t, const wf_spm *m) {
    float *scores = malloc((m->n + 1) * sizeof *scores);
    if (!scores) t->lacks = true;
    for (size_t i = 0; scores && i < m->n; i++) {
        const wf_spm_piece *p = &m->pieces[i];
        bool users = m->kind == SPM_UNIGRAM && p->type == SPM_USER_DEFINED;
        scores[i] = users ? wf_spm_user_score(p->text.bytes) : p->score;
    }
    if (scores) wf_write_floats(t, "source_scores", "Their scores.", scores, (int64_t)m->n);
    free(scores);
}

static void write_ids_of_bytes(wf_text *t, const wf_sentencepiece *s) {
    int32_t bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = s->ids ? s->ids[s->model->bytes[i]] : s->model->bytes[i];
    wf_write_ids(t, "source_bytes", "The ids of single bytes.", bytes, 256);
}

/* Write the vocabulary in which unknown text and language codes are looked up. */
static bool write_known(text_emitter *x, const wf_sentencepiece *s, const char *pieces,
                        char *message) {
    wf_text *t = &x->tables;
    if (s->ids) {
        if (!wf_write_pieces(t, "known_pieces", "All pieces by their ids.", s->pieces, s->n,
                             message))
            return false;
        int64_t n = wf_write_order(t, "known_order", s->pieces, s->n);
        wf_text_print(t, "static const vocabulary known = { known_pieces, known_order, %n };\n\n",
                      n);
    } else if (s->o.language_codes) {
        int64_t n = write_order(t, "known_order", s->model, is_found);
        wf_text_print(t, "static const vocabulary known = { %s, known_order, %n };\n\n", pieces, n);
    }
    return true;
}

static void write_encoder(text_emitter *x, const wf_sentencepiece *s, const char *pieces,
                          int64_t n) {
    wf_text *t = &x->tables;
    const wf_spm *m = s->model;
    bool scored = m->kind == SPM_UNIGRAM || m->kind == SPM_BPE;
    wf_text_print(t,
                  "static const sentencepiece source_text = {\n"
                  "    &source_rules, { %s, source_order, %n },\n    %s, %f,\n",
                  pieces, n, scored ? "source_scores" : "0",
                  m->kind == SPM_UNIGRAM ? (double)wf_spm_unknown_score(m) : 0.0);
    wf_text_print(t, "    %s, %s, %s, %s, %d,\n    source_before, %d,\n};\n\n",
                  s->ids ? "source_ids" : "0", m->byte_fallback ? "source_bytes" : "0",
                  s->ids ? "&known" : "0", s->o.language_codes ? "&known" : "0",
                  (int)s->o.special[WF_UNK_ID], s->o.n_before);
}

/* Write the body of encode_line. ROOM is enough for a line of which every byte becomes three, as a
 * space does, with spaces around it. The emitted function refuses a line that becomes longer. */
static void write_body(text_emitter *x, const wf_sentencepiece *s) {
    static const char *const cutters[] = { [SPM_UNIGRAM] = "cut_probable(&source_text, w->paths, ",
                                           [SPM_BPE] = "cut_merged(&source_text, &w->merges, ",
                                           [SPM_WORD] = "cut_words(&source_text, ",
                                           [SPM_CHAR] = "cut_characters(&source_text, " };
    x->room = 3 * x->e->line + 16;
    x->has_paths = s->model->kind == SPM_UNIGRAM;
    if (s->model->kind == SPM_BPE) x->links = x->room;
    wf_text_print(&x->encode,
                  "    text_out normal = { w->text, ROOM, 0 };\n"
                  "    int status = begin_sentence(&source_text, line, n, &normal, to);\n"
                  "    if (status) return status;\n"
                  "    if (normal.n) %sw->text, normal.n, to);\n"
                  "    put_ids(to, source_after, %d);\n    return 0;\n",
                  cutters[s->model->kind], s->o.n_after);
}

static bool write_tables(text_emitter *x, const wf_sentencepiece *s, char *message) {
    wf_text *t = &x->tables;
    const wf_spm *m = s->model;
    const char *pieces = s->ids ? "source_pieces" : wf_pieces_name(x, 0);
    if (!wf_write_pieces(t, pieces, "Pieces of the SentencePiece model.", m->texts, (int64_t)m->n,
                         message))
        return false;
    x->has_pieces = !s->ids;
    int64_t n = write_order(t, "source_order", m, is_text), symbols = 0;
    if (m->normalizer.symbols) symbols = write_order(t, "source_symbols", m, is_symbol);
    wf_write_rules(t, "source", &m->normalizer, pieces, symbols);
    if (m->kind == SPM_UNIGRAM || m->kind == SPM_BPE) write_scores(t, m);
    if (s->ids) wf_write_ids(t, "source_ids", "Their ids.", s->ids, (int64_t)m->n);
    if (m->byte_fallback) write_ids_of_bytes(t, s);
    wf_write_ids(t, "source_before", "What stands before a line.", s->o.before, s->o.n_before);
    wf_write_ids(t, "source_after", "What stands behind a line.", s->o.after, s->o.n_after);
    if (!write_known(x, s, pieces, message)) return false;
    write_encoder(x, s, pieces, n);
    return true;
}

bool wf_emit_sentencepiece(text_emitter *x, const wf_tokenizer *t, char *message) {
    const wf_sentencepiece *s = t->sentencepiece;
    if (s->model->unused && s->model->kind == SPM_BPE)
        return fail(message, "unused pieces in byte-pair encoding by SentencePiece have no form "
                             "in C");
    write_body(x, s);
    return write_tables(x, s, message);
}

/* ---- decoding -------------------------------------------------------------------------------- */

enum { IS_SKIPPED, IS_PIECE, IS_BYTE, IS_SURFACE, IS_RAW, IS_CONTROL };

static int byte_of(const wf_spm *m, int32_t piece) {
    for (int byte = 0; byte < 256; byte++)
        if (m->bytes[byte] == piece) return byte;
    return 0;
}

/* How wf_spm_decode_piece treats an id. *byte receives the byte of an IS_BYTE id. */
static int kind_of(const wf_sentencepiece *s, int32_t id, unsigned char *byte) {
    const wf_spm *m = s->model;
    const char *text = s->pieces[id];
    if (!text || wf_sentencepiece_special(s, id)) return IS_SKIPPED;
    int32_t piece = s->o.pieces ? wf_spm_id(m, (wf_span){ text, strlen(text) }) : id;
    const wf_spm_piece *p = &m->pieces[piece];
    bool same = strcmp(m->texts[piece], text) == 0;
    *byte = (unsigned char)(p->type == SPM_BYTE ? byte_of(m, piece) : 0);
    if (p->type == SPM_BYTE) return IS_BYTE;
    if (p->type == SPM_UNKNOWN) return same ? IS_SURFACE : IS_RAW;
    return p->type == SPM_CONTROL ? IS_CONTROL : IS_PIECE;
}

static void write_kinds(wf_text *t, const wf_sentencepiece *s) {
    unsigned char *kinds = calloc((size_t)s->n + 1, 1), *bytes = calloc((size_t)s->n + 1, 1);
    if (!kinds || !bytes) t->lacks = true;
    for (int32_t id = 0; kinds && bytes && id < s->n; id++)
        kinds[id] = (unsigned char)kind_of(s, id, &bytes[id]);
    if (kinds && bytes) {
        wf_write_bytes(t, "target_kinds",
                       "What ids are: 0 no text, 1 a piece, 2 a byte, 3 the unknown piece, 4 a "
                       "text, 5 a mark.",
                       kinds, s->n);
        wf_write_bytes(t, "target_bytes", "The bytes that ids are.", bytes,
                       s->model->byte_fallback ? s->n : 0);
    }
    free(kinds), free(bytes);
}

static bool write_surface(wf_text *t, const wf_spm *m, char *message) {
    enum { LONGEST_SURFACE = 63 };
    wf_span s = m->unknown_surface;
    if (s.bytes > LONGEST_SURFACE || (s.bytes && memchr(s.text, 0, s.bytes)))
        return fail(message, "an unknown piece whose text has %zu bytes has no form in C", s.bytes);
    wf_write_literal(t, s);
    return true;
}

/* Write the body of decode_line. A tokenizer with a vocabulary beside the SentencePiece model
 * decodes as the library transformers does, which strips white space. */
static void write_decoding(text_emitter *x, const wf_sentencepiece *s) {
    wf_text *t = &x->decode;
    if (s->model->denormalizes) {
        x->raw = x->e->output * x->longest + 16;
        x->longest *= 3;
        wf_text_puts(t,
                     "    text_out raw = { w->raw, RAW, 0 };\n"
                     "    decode_pieces(&target_text, ids, n, &raw);\n"
                     "    int fits = raw.n <= RAW && normalize(&target_rules, w->raw, raw.n, to);\n"
                     "    if (!fits) to->n = to->size + 1;\n");
    } else {
        wf_text_puts(t, "    (void)w;\n    decode_pieces(&target_text, ids, n, to);\n");
    }
    if (s->o.pieces)
        wf_text_puts(t, "    if (to->n > to->size) return;\n"
                        "    show_spaces(to);\n    strip_text(to);\n");
}

bool wf_emit_sentencepiece_text(text_emitter *x, const wf_tokenizer *t, char *message) {
    const wf_sentencepiece *s = t->sentencepiece;
    const wf_spm_normalizer *r = &s->model->normalizer;
    bool shared = x->is_joint && x->has_pieces;
    const char *pieces = s->ids && x->is_joint ? "known_pieces" : wf_pieces_name(x, 1);
    if (!shared && !(s->ids && x->is_joint) &&
        !wf_write_pieces(&x->tables, pieces, "Pieces by their ids.", s->pieces, s->n, message))
        return false;
    write_kinds(&x->tables, s);
    if (s->model->denormalizes)
        wf_write_rules(&x->tables, "target", &s->model->denormalizer, NULL, 0);
    wf_text_print(&x->tables,
                  "static const sentencepiece_text target_text = {\n"
                  "    %s, target_kinds, target_bytes,\n    ",
                  pieces);
    if (!write_surface(&x->tables, s->model, message)) return false;
    wf_text_print(&x->tables, ", %d, %d,\n};\n\n", r->dummy_prefix, r->remove_extra);
    if (x->longest < (int64_t)s->model->unknown_surface.bytes)
        x->longest = (int64_t)s->model->unknown_surface.bytes;
    if (x->longest < 4) x->longest = 4;
    write_decoding(x, s);
    return true;
}
