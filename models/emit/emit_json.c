/* models/emit/emit_json.c - a tokenizer.json as C; see json_emitter.h. Its steps become calls of
 * functions in plain C, one after another, over tables. */
#include <stdlib.h>
#include <string.h>

#include "json_emitter.h"
#include "models/text/characters/characters.h"
#include "models/text/json/json_text.h"

/* The C file has room for the text that the steps make of a line: at most MOST_TIMES the bytes of
 * the longest line, and MORE_BYTES. It refuses a line whose text becomes longer. */
enum { MOST_TIMES = 4, MORE_BYTES = 64 };

bool wf_refuse_part(char *message, const char *what, const char *type) {
    return fail(message, "the %s '%.60s' of a tokenizer.json has no form in C", what, type);
}

bool wf_write_span(json_emitter *e, wf_text *t, wf_span text) {
    if (text.bytes > LONGEST_STRING || (text.bytes && memchr(text.text, 0, text.bytes)))
        return fail(e->message,
                    "a text of a tokenizer.json with a zero byte or more than %d bytes "
                    "has no form in C",
                    LONGEST_STRING);
    wf_write_literal(t, text);
    return true;
}

static bool write_steps(json_emitter *e, const wf_text_steps *s, const step_row *rows,
                        const char *what) {
    for (size_t i = 0; i < s->n; i++) {
        const char *type = s->at[i].kind->type;
        const step_row *row = rows;
        while (row->type && strcmp(row->type, type) != 0) row++;
        if (!row->type) return wf_refuse_part(e->message, what, type);
        if (!row->write(e, &s->at[i])) return false;
    }
    return true;
}

static void free_emitter(json_emitter *e) {
    for (size_t i = 0; i < e->n_sets; i++) wf_text_free(&e->sets[i]);
    free(e->sets);
}

/* ---- added tokens ---------------------------------------------------------------------------- */

enum { ASKS_SINGLE = 1, ASKS_LEFT = 2, ASKS_RIGHT = 4 }; /* as in plain_words.c */

static bool is_word(uint32_t code) {
    return wf_has_flag(code, IS_WORD);
}

static unsigned char asks_of(const wf_added_token *t) {
    return (unsigned char)(t->single_word * ASKS_SINGLE + t->left_strip * ASKS_LEFT +
                           t->right_strip * ASKS_RIGHT);
}

/* The added tokens that are normalized, or those that are not, for the C tables: texts, ids, and
 * the ASKS_ bits of each; `all` is the OR of these bits. */
typedef struct added_list {
    const char **texts;
    int32_t *ids;
    unsigned char *asks, all;
    int64_t n;
} added_list;

static bool collect(added_list *l, const wf_added_tokens *a, bool normal, char *message) {
    *l = (added_list){ .texts = calloc(a->n + 1, sizeof *l->texts),
                       .ids = calloc(a->n + 1, sizeof *l->ids),
                       .asks = calloc(a->n + 1, 1) };
    if (!l->texts || !l->ids || !l->asks) return fail(message, "out of memory");
    for (size_t i = 0; i < a->n; i++) {
        const wf_added_token *t = &a->at[i];
        if (t->normalized != normal) continue;
        if (memchr(t->normal.text, 0, t->normal.bytes))
            return fail(message, "an added token with a zero byte has no form in C");
        l->texts[l->n] = t->normal.text;
        l->ids[l->n] = t->id;
        l->all |= l->asks[l->n++] = asks_of(t);
    }
    return true;
}

static bool write_list(json_emitter *e, const added_list *l, const char *kind) {
    char name[40];
    int spaces = l->all & (ASKS_LEFT | ASKS_RIGHT) ? wf_write_set_of(e, wf_is_space) : 0;
    int words = l->all & ASKS_SINGLE ? wf_write_set_of(e, is_word) : 0;
    if (spaces < 0 || words < 0) return false;
    snprintf(name, sizeof name, "source_%s", kind);
    if (!wf_write_pieces(e->tables, name, "Tokens that are cut out of a text.", l->texts, l->n,
                         e->message))
        return false;
    snprintf(name, sizeof name, "source_%s_order", kind);
    wf_write_order(e->tables, name, l->texts, l->n);
    snprintf(name, sizeof name, "source_%s_ids", kind);
    wf_write_ids(e->tables, name, "Their ids.", l->ids, l->n);
    snprintf(name, sizeof name, "source_%s_asks", kind);
    wf_write_bytes(e->tables, name, "Their demands.", l->asks, l->n);
    wf_text_print(e->tables,
                  "static const added_tokens source_%s_tokens = {\n"
                  "    { source_%s, source_%s_order, %n }, source_%s_ids, source_%s_asks, ",
                  kind, kind, kind, l->n, kind, kind);
    if (l->all & (ASKS_LEFT | ASKS_RIGHT))
        wf_text_print(e->tables, "&source_set_%d, ", spaces);
    else
        wf_text_puts(e->tables, "0, ");
    if (l->all & ASKS_SINGLE)
        wf_text_print(e->tables, "&source_set_%d,\n};\n\n", words);
    else
        wf_text_puts(e->tables, "0,\n};\n\n");
    return true;
}

/* Write added tokens of one kind. Normalized ones are cut out after the normalizers, the others
 * before. */
static bool write_added(json_emitter *e, const wf_added_tokens *a, bool normal) {
    const char *kind = normal ? "normal" : "added";
    added_list l;
    bool ok = collect(&l, a, normal, e->message) && (!l.n || write_list(e, &l, kind));
    if (ok && l.n) {
        wf_text_print(e->body, "    cut_added(&w->words, &source_%s_tokens);\n", kind);
        e->cuts = true;
        e->parts = e->parts || e->expands;
    }
    free(l.texts), free(l.ids), free(l.asks);
    return ok;
}

/* ---- around a line --------------------------------------------------------------------------- */

/* Ids before and behind a line. */
typedef struct around {
    int32_t before[WF_MOST_AROUND], after[WF_MOST_AROUND];
    int n_before, n_after;
} around;

static bool put_before(around *a, const int32_t *ids, size_t n) {
    if (n > (size_t)(WF_MOST_AROUND - a->n_before)) return false;
    memmove(a->before + n, a->before, (size_t)a->n_before * sizeof *a->before);
    if (n) memcpy(a->before, ids, n * sizeof *ids);
    a->n_before += (int)n;
    return true;
}

static bool put_after(around *a, const int32_t *ids, size_t n) {
    if (n > (size_t)(WF_MOST_AROUND - a->n_after)) return false;
    if (n) memcpy(a->after + a->n_after, ids, n * sizeof *ids);
    a->n_after += (int)n;
    return true;
}

/* Collect the ids around the line in a template. False: the line is not in it exactly once, or
 * there are too many ids. */
static bool add_template(around *a, const wf_post_processor *k) {
    size_t text = 0, n = k->single.n;
    const wf_template_part *parts = k->single.at;
    while (text < n && parts[text].text < 0) text++;
    bool ok = text < n && !parts[text].text;
    for (size_t i = text; ok && i-- > 0;) ok = put_before(a, k->ids + parts[i].first, parts[i].n);
    for (size_t i = text + 1; ok && i < n; i++)
        ok = parts[i].text < 0 && put_after(a, k->ids + parts[i].first, parts[i].n);
    return ok;
}

static bool find_around(around *a, const wf_post *p, char *message) {
    bool ok = true;
    for (size_t i = 0; ok && i < p->n; i++) {
        const wf_post_processor *k = &p->at[i];
        if (k->kind == PROCESS_TEMPLATE) ok = add_template(a, k);
        if (k->kind == PROCESS_BERT || k->kind == PROCESS_ROBERTA)
            ok = put_before(a, &k->start, 1) && put_after(a, &k->end, 1);
    }
    return ok || fail(message, "what a tokenizer.json puts around a line has no form in C");
}

static bool write_around(json_emitter *e, const wf_post *p, around *a) {
    *a = (around){ .n_before = 0 };
    if (!find_around(a, p, e->message)) return false;
    wf_write_ids(e->tables, "source_before", "What stands before a line.", a->before, a->n_before);
    wf_write_ids(e->tables, "source_after", "What stands behind a line.", a->after, a->n_after);
    return true;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void find_sizes(json_emitter *e) {
    double most = (double)(MOST_TIMES * e->x->e->line + MORE_BYTES);
    e->bytes = e->bytes < most ? e->bytes + 1 : most;
    if (e->characters > e->bytes) e->characters = e->bytes;
    e->x->room = (int64_t)e->bytes;
    e->x->has_words = true;
}

static bool write_line(json_emitter *e, const wf_json_parts *p) {
    around a;
    wf_text_puts(e->body, "    begin_words(&w->words, line, n);\n");
    if (!write_added(e, p->added, false) ||
        !write_steps(e, p->normalizers, wf_emitted_normalizers, "normalizer") ||
        !write_added(e, p->added, true) ||
        !write_steps(e, p->pre_tokenizers, wf_emitted_cutters, "pre-tokenizer") ||
        !write_around(e, p->post, &a))
        return false;
    find_sizes(e);
    wf_text_print(e->body, "    put_ids(to, source_before, %d);\n", a.n_before);
    if (!wf_write_word_model(e, p->model)) return false;
    wf_text_print(e->body, "    put_ids(to, source_after, %d);\n    return status;\n", a.n_after);
    return true;
}

bool wf_emit_json(text_emitter *x, wf_tokenizer *t, char *message) {
    const wf_json_parts p = wf_json_tokenizer_parts(t->json->tokenizer);
    double line = (double)x->e->line;
    json_emitter e = { .x = x,
                       .side = "source",
                       .tables = &x->tables,
                       .body = &x->encode,
                       .bytes = line,
                       .characters = line,
                       .message = message };
    if (p.post->truncates || p.post->pads)
        return fail(message, "a tokenizer.json that truncates or pads lines has no form in C");
    wf_text_puts(&x->encode, "    int status = 0;\n");
    bool ok = write_line(&e, &p);
    free_emitter(&e);
    return ok;
}

/* ---- outputs --------------------------------------------------------------------------------- */

/* The text that an id has in outputs. */
static wf_span text_of_id(const wf_json_parts *p, int32_t id) {
    const wf_added_token *added = wf_added_find(p->added, id);
    return added ? added->normal : wf_id_text(&p->model->vocabulary, id);
}

/* The texts of all ids, for the tables. Silent ids give no text in an output. */
typedef struct id_texts {
    const char **pieces;
    int32_t *silent, n_silent;
    size_t longest;
} id_texts;

static bool find_texts(id_texts *l, const wf_json_parts *p, int64_t n, char *message) {
    *l = (id_texts){ .pieces = calloc((size_t)n + 1, sizeof *l->pieces),
                     .silent = calloc((size_t)n + 1, sizeof *l->silent) };
    if (!l->pieces || !l->silent) return fail(message, "out of memory");
    for (int32_t id = 0; id < n; id++) {
        wf_span s = text_of_id(p, id);
        if (!s.text || wf_strings_find(&p->added->specials, s.text, s.bytes) >= 0) {
            l->silent[l->n_silent++] = id;
            continue;
        }
        if (memchr(s.text, 0, s.bytes))
            return fail(message, "a token with a zero byte has no form in C");
        l->pieces[id] = s.text;
        if (s.bytes > l->longest) l->longest = s.bytes;
    }
    return true;
}

/* Is ByteLevel the only decoder? Its bytes go straight to the output, without lists of texts. */
static bool is_level(const wf_text_steps *s) {
    return s->n == 1 && strcmp(s->at[0].kind->type, "ByteLevel") == 0;
}

static bool write_decoders(json_emitter *e, const wf_json_parts *p, const id_texts *l) {
    text_emitter *x = e->x;
    wf_write_ids(e->tables, "target_silent", "Ids that give no text.", l->silent, l->n_silent);
    wf_text_print(e->body,
                  "    begin_lists(&w->lists, target_pieces, target_silent, %d, ids, n, %d);\n",
                  (int)l->n_silent, (int)!p->has_decoder);
    if (!p->has_decoder) e->bytes += 1;
    if (!write_steps(e, p->decoders, wf_emitted_decoders, "decoder")) return false;
    wf_text_puts(e->body, "    put_lists(&w->lists, to);\n");
    double raw = e->bytes * (double)x->e->output + MORE_BYTES;
    if (raw > INT32_MAX / 4)
        return fail(e->message, "its text takes 2^31 bytes or more, which has no form in C");
    x->longest = (int64_t)e->bytes;
    x->raw = (int64_t)raw;
    x->tokens = x->e->output + 1;
    return true;
}

bool wf_emit_json_text(text_emitter *x, const wf_tokenizer *t, char *message) {
    const wf_json_parts p = wf_json_tokenizer_parts(t->json->tokenizer);
    json_emitter e = {
        .x = x, .side = "target", .tables = &x->tables, .body = &x->decode, .message = message
    };
    int64_t n = wf_tokenizer_size(t);
    id_texts l;
    bool ok = find_texts(&l, &p, n, message) &&
              wf_write_pieces(&x->tables, "target_pieces",
                              "Pieces by their ids; \"\" gives no text.", l.pieces, n, message);
    e.bytes = (double)l.longest + 1;
    if (ok && is_level(p.decoders)) {
        x->longest = 3 * ((int64_t)l.longest + 1); /* a byte may become U+FFFD, which has 3 bytes */
        wf_text_puts(&x->decode, "    (void)w;\n    decode_level(target_pieces, ids, n, to);\n");
    } else if (ok) {
        ok = write_decoders(&e, &p, &l);
    }
    free_emitter(&e);
    free(l.pieces), free(l.silent);
    return ok;
}
