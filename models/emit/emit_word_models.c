/* models/emit/emit_word_models.c - the models of a tokenizer.json as C; see json_emitter.h. */
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"
#include "json_emitter.h"

enum { MOST_AFFIX = 64 };

/* ---- pieces ---------------------------------------------------------------------------------- */

/* The texts of the vocabulary by id, with NULL for an id that has none. The caller frees the array.
 * NULL with message: the texts have no form in C, or out of memory. */
static const char **texts_by_id(const wf_word_model *m, char *message) {
    const wf_ids_of_text *v = &m->vocabulary;
    const char **texts = calloc(v->n_ids + 1, sizeof *texts);
    bool ok = texts || fail(message, "out of memory");
    for (int32_t i = 0; ok && i < v->texts.n; i++)
        ok = v->by_id[v->ids[i]] == i ||
             fail(message, "a tokenizer.json with two tokens of one id has no form in C");
    for (size_t id = 0; ok && id < v->n_ids; id++) {
        int32_t i = v->by_id[id];
        if (i >= 0 && v->ids[i] == (int32_t)id) texts[id] = wf_strings_at(&v->texts, i);
        if (texts[id] && strlen(texts[id]) != wf_strings_span(&v->texts, i).bytes)
            ok = fail(message, "a token with a zero byte has no form in C");
    }
    if (ok) return texts;
    free(texts);
    return NULL;
}

/* Write all pieces and their order. *n: how many the order has. */
static bool write_pieces(json_emitter *e, const wf_word_model *m, int64_t *n) {
    const char **texts = texts_by_id(m, e->message);
    bool ok = texts && wf_write_pieces(e->tables, "source_pieces", "Pieces of the vocabulary.",
                                       texts, (int64_t)m->vocabulary.n_ids, e->message);
    if (ok) *n = wf_write_order(e->tables, "source_order", texts, (int64_t)m->vocabulary.n_ids);
    free(texts);
    return ok;
}

/* If the model falls back to bytes, and has a token for at least one byte, write the ids of single
 * bytes, and return true. */
static bool write_bytes(json_emitter *e, const wf_word_model *m) {
    bool any = false;
    for (int i = 0; m->byte_fallback && i < 256; i++) any = any || m->bytes[i] >= 0;
    if (any) wf_write_ids(e->tables, "source_bytes", "The ids of single bytes.", m->bytes, 256);
    return any;
}

/* ---- byte pairs ------------------------------------------------------------------------------ */

static bool ends_as(wf_span s, wf_span with) {
    return s.bytes >= with.bytes &&
           memcmp(s.text + s.bytes - with.bytes, with.text, with.bytes) == 0;
}

/* Is the text a character, with or without the prefix and the suffix? */
static bool is_character(const wf_word_model *m, wf_span s) {
    for (int way = 0; way < 4; way++) {
        wf_span part = s;
        size_t prefix = way & 1 ? m->prefix.bytes : 0, suffix = way & 2 ? m->suffix.bytes : 0;
        if (prefix && (s.bytes < prefix || memcmp(s.text, m->prefix.text, prefix) != 0)) continue;
        part = (wf_span){ s.text + prefix, s.bytes - prefix };
        if (suffix && !ends_as(part, m->suffix)) continue;
        part.bytes -= suffix;
        if (part.bytes && wf_utf8_length(part.text, part.bytes) == part.bytes) return true;
    }
    return false;
}

/* Write the pieces with which merging begins: characters, or all pieces if the model looks up whole
 * words first. */
static bool write_characters(json_emitter *e, const wf_word_model *m, int64_t *n) {
    const wf_ids_of_text *v = &m->vocabulary;
    const char **all = texts_by_id(m, e->message);
    int32_t *ids = calloc(v->n_ids + 1, sizeof *ids);
    int64_t found = 0;
    bool ok = all && (ids || fail(e->message, "out of memory"));
    for (size_t id = 0; ok && id < v->n_ids; id++) {
        if (!all[id] || !*all[id]) continue;
        wf_span text = { all[id], strlen(all[id]) };
        if (!m->ignore_merges && !is_character(m, text)) continue;
        all[found] = all[id];
        ids[found++] = (int32_t)id;
    }
    ok = ok && wf_write_pieces(e->tables, "source_characters",
                               m->ignore_merges ? "Pieces of the vocabulary." : "Characters.", all,
                               found ? found : 1, e->message);
    if (ok) *n = wf_write_order(e->tables, "source_order", all, found);
    if (ok) wf_write_ids(e->tables, "source_ids", "Their ids.", ids, found);
    free(all), free(ids);
    return ok;
}

static bool write_pairs(json_emitter *e, const wf_word_model *m) {
    wf_text *t = e->tables;
    int64_t n = 0;
    if (m->prefix.bytes > MOST_AFFIX || m->suffix.bytes > MOST_AFFIX)
        return fail(e->message, "a prefix or a suffix of more than %d bytes has no form in C",
                    MOST_AFFIX);
    if (m->byte_fallback && (m->prefix.bytes || m->suffix.bytes))
        return fail(e->message, "byte_fallback beside a prefix or a suffix has no form in C");
    if (!write_characters(e, m, &n)) return false;
    bool has_bytes = write_bytes(e, m);
    const char *unknown = m->has_unknown ? "IS_ERROR" : "IS_DROPPED";
    wf_write_merges(t, &m->merges);
    wf_text_print(t,
                  "static const pair_model source_text = {\n"
                  "    { source_characters, source_order, %n }, source_ids, %s,\n    ",
                  n, has_bytes ? "source_bytes" : "0");
    if (!wf_write_span(e, t, m->prefix)) return false;
    wf_text_puts(t, ", ");
    if (!wf_write_span(e, t, m->suffix)) return false;
    if (m->has_unknown && m->unknown_id >= 0)
        wf_text_print(t, ", %d", (int)m->unknown_id);
    else
        wf_text_print(t, ", %s", unknown);
    wf_text_print(t, ", %d, %d,\n    { source_merges, %n, 0, 0 },\n};\n\n", (int)m->fuse_unknown,
                  (int)m->ignore_merges, (int64_t)m->merges.n);
    e->x->affix = 2 * MOST_AFFIX;
    /* an unknown character may need a link for each of its bytes */
    e->x->links = (int64_t)(has_bytes ? e->bytes : e->characters);
    wf_text_puts(e->body, "    status = encode_pairs(&source_text, &w->merges, &w->words, to);\n");
    return true;
}

/* ---- other models ---------------------------------------------------------------------------- */

static bool write_unigram(json_emitter *e, const wf_word_model *m) {
    wf_text *t = e->tables;
    int64_t n = 0;
    if (!write_pieces(e, m, &n)) return false;
    bool has_bytes = write_bytes(e, m);
    wf_text_puts(t, "static const double source_scores[] = {");
    for (int64_t id = 0; id < m->size; id++)
        wf_text_print(t, id % 4 ? " %g," : "\n    %g,", m->scores[id]);
    wf_text_print(t,
                  "%s\n};\nstatic const probable_model source_text = {\n"
                  "    { source_pieces, source_order, %n }, source_scores, %g, %s, %d,\n};\n\n",
                  m->size ? "" : "0", n, m->lowest - WF_UNKNOWN_PENALTY,
                  has_bytes ? "source_bytes" : "0", (int)m->unknown_id);
    e->x->has_best = true;
    wf_text_puts(e->body, "    status = encode_probable(&source_text, w->best, &w->words, to);\n");
    return true;
}

static bool write_longest(json_emitter *e, const wf_word_model *m) {
    int64_t n = 0;
    bool whole = strcmp(m->kind->type, "WordLevel") == 0;
    if (!write_pieces(e, m, &n)) return false;
    wf_text_print(e->tables,
                  "static const longest_model source_text = {\n"
                  "    { source_pieces, source_order, %n }, ",
                  n);
    if (!wf_write_span(e, e->tables, m->prefix)) return false;
    wf_text_print(e->tables, ", %d, INT64_C(%n),\n};\n\n", (int)m->unknown_id, m->most_characters);
    wf_text_print(e->body, "    status = %s(&source_text, &w->words, to);\n",
                  whole ? "encode_whole" : "encode_longest");
    return true;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct {
    const char *type;
    bool (*write)(json_emitter *e, const wf_word_model *m);
} rows[] = {
    { "BPE", write_pairs },
    { "Unigram", write_unigram },
    { "WordPiece", write_longest },
    { "WordLevel", write_longest },
};

bool wf_write_word_model(json_emitter *e, const wf_word_model *m) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].type, m->kind->type) == 0) return rows[i].write(e, m);
    return wf_refuse_part(e->message, "model", m->kind->type);
}
