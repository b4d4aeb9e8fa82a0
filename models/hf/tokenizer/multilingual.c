/* models/hf/tokenizer/multilingual.c - reads and writes the tokenizers of M2M100, NLLB and mBART.
 * They have one SentencePiece model for all languages, but their own ids for its pieces, and
 * language tokens after these.
 *
 * In tokenization_*.py of transformers, M2M100's vocab.json has the ids of pieces. The others
 * use fairseq's ids: <s>, <pad>, </s>, <unk>, and then the model's ids plus one. Languages come
 * after the pieces, or as tokenizer_config.json lists them in "added_tokens_decoder". Text is cut
 * as the library sentencepiece cuts it; README.md says where transformers 5 differs. */
#include <stdlib.h>
#include <string.h>

#include "core/file/json.h"
#include "languages.h"
#include "models/hf/folder.h"
#include "models/message.h"
#include "models/text_internal.h"

#define SPM "sentencepiece.bpe.model"
#define SETTINGS "tokenizer_config.json"
enum { NAME = HF_LANGUAGE, FAIRSEQ = 4 };
static const char *const fairseq[FAIRSEQ] = { "<s>", "<pad>", "</s>", "<unk>" };

typedef struct many {
    const hf_languages *languages;
    const hf_config *c;
    int64_t rows; /* of the model's tables */
    void *model;  /* the .spm file */
    size_t bytes;
    wf_tokenizer *plain; /* a tokenizer of the .spm file alone */
    hf_object settings, vocabulary;
    const char **pieces; /* [rows] pieces by id; NULL: the id has none */
    int64_t added, n;    /* the first id of an added token; the id after the last token */
    char *names;         /* texts of the added tokens */
} many;

static void many_free(many *m) {
    free(m->model), free(m->pieces), free(m->names);
    wf_tokenizer_free(m->plain);
    wf_hf_object_free(&m->settings), wf_hf_object_free(&m->vocabulary);
}

/* ---- which tokenizer ------------------------------------------------------------------------- */

/* Reads a string of tokenizer_config.json; "" if it is missing. */
static bool setting(const many *m, const char *key, char text[NAME], char *message) {
    const hf_value *v = wf_hf_find(&m->settings, key);
    *text = '\0';
    return !v || wf_hf_string(v, text, NAME) || fail(message, SETTINGS ": '%s' is no name", key);
}

/* Finds the tokenizer's class. Older folders have it in config.json, or not at all: "". */
static bool find_class(const many *m, const char *folder, char class[NAME], char *message) {
    hf_object config;
    if (!setting(m, "tokenizer_class", class, message)) return false;
    bool ok = *class || wf_hf_object_read(&config, folder, "config.json", message);
    if (*class || !ok) return ok;
    const hf_value *v = wf_hf_find(&config, "tokenizer_class");
    ok = !v || wf_hf_string(v, class, NAME) ||
         fail(message, "config.json: 'tokenizer_class' is no name");
    wf_hf_object_free(&config);
    return ok;
}

static bool is_class(const char *class, const char *name) {
    size_t n = strlen(name);
    return strncmp(class, name, n) == 0 && (!class[n] || strcmp(class + n, "Fast") == 0);
}

static int64_t added_of(const hf_languages *l) {
    return wf_hf_language_count(l) + !l->vocabulary;
}

/* Chooses the family's row: by the class of the tokenizer, or without one by whether vocab.json
 * exists; language_codes must match, too. If several remain, the vocabulary's size decides. */
static bool choose(many *m, const char *folder, const char *family, char *message) {
    char class[NAME], set[NAME];
    bool there = wf_hf_exists(folder, "vocab.json");
    int64_t base = wf_tokenizer_size(m->plain) + 1;
    const hf_languages *l = NULL, *only = NULL, *fits = NULL;
    int n = 0;
    if (!find_class(m, folder, class, message) || !setting(m, "language_codes", set, message))
        return false;
    while ((l = wf_hf_languages_next(family, l))) {
        if (*class ? !is_class(class, l->tokenizer) : l->vocabulary != there) continue;
        if (l->set && strcmp(*set ? set : "m2m100", l->set) != 0) continue;
        only = l;
        n++;
        if (!l->vocabulary && base + added_of(l) == m->rows) fits = l;
    }
    m->languages = n == 1 ? only : fits;
    if (m->languages) return true;
    return n ? fail(message,
                    "there is no 'tokenizer_class', and the vocabulary of %lld in "
                    "config.json does not tell which of two it would be: nothing is "
                    "guessed",
                    (long long)m->rows)
             : fail(message, SETTINGS ": the tokenizer '%.60s'%s%.60s is none that a %s model has",
                    class, *set ? " with languages " : "", set, family);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Puts the pieces of the .spm file at fairseq's ids. fairseq replaces the first three pieces by
 * four of its own. */
static bool fairseq_pieces(const wf_tokenizer *plain, const char **pieces, char *message) {
    if (wf_tokenizer_special(plain, WF_UNK_ID) != 0 ||
        wf_tokenizer_special(plain, WF_START_ID) != 1 ||
        wf_tokenizer_special(plain, WF_END_ID) != 2)
        return fail(message, SPM ": its first pieces are not <unk>, <s> and </s>, as fairseq's "
                                 "ids want it");
    for (int i = 0; i < FAIRSEQ; i++) pieces[i] = fairseq[i];
    for (int32_t i = 3; i < wf_tokenizer_size(plain); i++)
        pieces[i + 1] = wf_tokenizer_piece(plain, i);
    return true;
}

static bool too_many(const many *m, const char *file, int64_t n, char *message) {
    return fail(message,
                "%s: %lld pieces and %lld added ones are more than the vocabulary in config.json, "
                "%lld",
                file, (long long)m->added, (long long)n, (long long)m->rows);
}

static bool base_pieces(many *m, const char *folder, char *message) {
    const char *file = m->languages->vocabulary ? "vocab.json" : SPM, **known = NULL;
    m->added = wf_tokenizer_size(m->plain) + 1;
    if (m->languages->vocabulary &&
        (!wf_hf_object_read(&m->vocabulary, folder, "vocab.json", message) ||
         !(known = wf_hf_pieces(&m->vocabulary, &m->added, message))))
        return false;
    m->pieces = calloc((size_t)m->rows, sizeof *m->pieces);
    bool ok = m->pieces || fail(message, "out of memory");
    ok = ok && (m->added < m->rows || too_many(m, file, 0, message));
    if (ok && known) memcpy(m->pieces, known, (size_t)m->added * sizeof *known);
    free(known);
    return ok && (m->languages->vocabulary || fairseq_pieces(m->plain, m->pieces, message));
}

/* ---- added ones ------------------------------------------------------------------------------ */

/* Adds an entry of "added_tokens_decoder". It may name a piece that exists, if the text is the
 * same. */
static bool place(many *m, const char *number, const char *content, bool special, char *message) {
    char *end;
    long long id = strtoll(number, &end, 10);
    if (*end || end == number || id < 0 || id >= m->rows)
        return fail(message,
                    SETTINGS ": the added token '%.60s' has the id '%.20s': the vocabulary "
                             "in config.json is %lld",
                    content, number, (long long)m->rows);
    if (m->pieces[id] && strcmp(m->pieces[id], content) != 0)
        return fail(message, SETTINGS ": the token %lld is added as '%.60s', but it is '%.60s'", id,
                    content, m->pieces[id]);
    if (m->pieces[id]) return true;
    if (strlen(content) >= NAME)
        return fail(message, SETTINGS ": '%.60s...' is too long for a token", content);
    if (!special)
        return fail(message,
                    SETTINGS ": '%.60s' is an added token that is not special: words that "
                             "were added to a vocabulary are not read",
                    content);
    m->pieces[id] = content;
    if (id >= m->n) m->n = id + 1;
    return true;
}

static bool read_token(struct wf_json *j, char **content, bool *special) {
    char *key;
    *content = NULL;
    *special = false;
    for (bool first = true; wf_json_key(j, &first, &key);) {
        bool is_content = strcmp(key, "content") == 0, is_special = strcmp(key, "special") == 0;
        if (is_content ? !wf_json_string(j, content) : !wf_json_skip(j)) return false;
        if (is_special) *special = j->at[-1] == 'e' && j->at[-2] == 'u'; /* true */
    }
    return !*j->error && *content;
}

static bool read_added(many *m, char *message) {
    const hf_value *v = wf_hf_find(&m->settings, "added_tokens_decoder");
    struct wf_json j;
    char *key, *content;
    bool special, ok = true;
    if (!v) return true;
    if (!(m->names = wf_copy(v->text, v->bytes))) return fail(message, "out of memory");
    wf_json_begin(&j, m->names, v->bytes);
    for (bool first = true; ok && wf_json_key(&j, &first, &key);)
        ok = read_token(&j, &content, &special)
                 ? place(m, key, content, special, message)
                 : fail(message, SETTINGS ": 'added_tokens_decoder' has no token '%.20s'", key);
    return ok &&
           (!*j.error || fail(message, SETTINGS ": 'added_tokens_decoder' is no object of tokens"));
}

/* Adds the language tokens that every folder of this tokenizer has, and with fairseq's ids a mask
 * token after them. */
static bool usual_added(many *m, char *message) {
    const hf_languages *l = m->languages;
    int64_t n = added_of(l);
    const char *rest = l->codes;
    if (m->added + n > m->rows) return too_many(m, l->vocabulary ? "vocab.json" : SPM, n, message);
    free(m->names);
    if (!(m->names = calloc((size_t)n, HF_LANGUAGE))) return fail(message, "out of memory");
    for (char *name = m->names; wf_hf_language_next(l, &rest, name); name += HF_LANGUAGE)
        m->pieces[m->n++] = name;
    if (!l->vocabulary) m->pieces[m->n++] = HF_MASK;
    return true;
}

static bool is_piece(const many *m, int64_t id, const char *piece, const char *key, char *message) {
    const char *is = id < m->added ? m->pieces[id] : NULL;
    return (is && strcmp(is, piece) == 0) ||
           fail(message, "config.json: '%s' is %lld, but that piece is '%.60s', not '%s'", key,
                (long long)id, is ? is : "", piece);
}

static bool all_pieces(many *m, const char *folder, char *message) {
    if (!base_pieces(m, folder, message)) return false;
    m->n = m->added;
    return read_added(m, message) && (m->n > m->added || usual_added(m, message)) &&
           is_piece(m, m->c->end, "</s>", "eos_token_id", message) &&
           is_piece(m, m->c->pad, "<pad>", "pad_token_id", message);
}

/* ---- both sides ------------------------------------------------------------------------------ */

static int64_t piece_id(const many *m, const char *piece) {
    for (int64_t i = 0; i < m->n; i++)
        if (m->pieces[i] && strcmp(m->pieces[i], piece) == 0) return i;
    return -1;
}

/* Sets *id to the language that a key names, or else to the language `absent`; -1: `absent` is "".
 * False with message: the language is none of this tokenizer's. */
static bool language_of(const many *m, const char *key, const char *absent, int64_t *id,
                        char *message) {
    char name[NAME], piece[2 * NAME];
    if (!setting(m, key, name, message)) return false;
    const char *code = *name ? name : absent, *around = m->languages->around;
    snprintf(piece, sizeof piece, "%s%s%s", around, code, around);
    *id = *code ? piece_id(m, piece) : -1;
    return !*code || *id >= m->added ||
           fail(message, SETTINGS ": '%s' is '%.60s', which is none of its languages", key, code);
}

static wf_tokenizer *make(const many *m, const int32_t *before, int n_before, const int32_t *after,
                          int n_after, char *message) {
    int64_t unknown = piece_id(m, "<unk>");
    if (unknown < 0)
        return fail(message, "vocab.json: the unknown piece '<unk>' is not in it"), NULL;
    const wf_sentencepiece_options o = { .model = m->model,
                                         .bytes = m->bytes,
                                         .pieces = m->pieces,
                                         .n_pieces = m->rows,
                                         .special = { (int32_t)m->c->pad, (int32_t)unknown,
                                                      (int32_t)m->c->start, (int32_t)m->c->end },
                                         .before = before,
                                         .n_before = n_before,
                                         .after = after,
                                         .n_after = n_after,
                                         .added = (int32_t)m->added };
    wf_tokenizer *t = wf_tokenizer_from_sentencepiece(&o, message);
    wf_hf_of_file(SPM, t, message);
    return t;
}

/* Makes both tokenizers. Target lines begin with the language that the search forces. Without one
 * they begin with tgt_lang, or with no language if the start token is one. */
static bool make_both(const many *m, wf_hf *out, char *message) {
    const wf_generation *g = &out->generation;
    int64_t source, target;
    if (!language_of(m, "src_lang", m->languages->source, &source, message) ||
        !language_of(m, "tgt_lang", "", &target, message))
        return false;
    if (g->n_forced && g->forced[0] >= m->added)
        target = g->forced[0];
    else if (m->c->start >= m->added)
        target = -1;
    const int32_t from = (int32_t)source, to = (int32_t)target, end = (int32_t)m->c->end;
    const int32_t behind[] = { end, from };
    out->src = m->languages->behind ? make(m, NULL, 0, behind, 2, message)
                                    : make(m, &from, 1, &end, 1, message);
    out->tgt = out->src ? make(m, &to, target >= 0, NULL, 0, message) : NULL;
    return out->tgt != NULL;
}

static bool open_spm(many *m, const char *folder, char *message) {
    wf_sentencepiece_options o;
    m->model = wf_hf_read(folder, SPM, &m->bytes, message);
    m->plain = m->model ? wf_hf_open_spm(SPM, m->model, m->bytes, &o, message) : NULL;
    return m->plain;
}

bool wf_hf_read_multilingual(const char *folder, const hf_family *family, const hf_config *c,
                             wf_hf *out, char *message) {
    many m = { .c = c, .rows = c->c.src_vocab };
    bool legacy = false;
    if (!wf_hf_exists(folder, SPM) && !wf_hf_exists(folder, "vocab.json")) {
        wf_hf_note(out->notes,
                   "there is no " SPM ", which comes with every model of this family%s: the model "
                   "reads and writes token ids",
                   wf_hf_exists(folder, "tokenizer.json") ? ", and tokenizer.json is not read"
                                                          : "");
        return true;
    }
    bool ok = wf_hf_object_read_if(&m.settings, folder, SETTINGS, message);
    const hf_value *v = ok ? wf_hf_find(&m.settings, "legacy_behaviour") : NULL;
    ok = ok && (!v || (wf_hf_bool(v, &legacy) && !legacy) ||
                fail(message, SETTINGS ": 'legacy_behaviour' is not false"));
    ok = ok && open_spm(&m, folder, message) && choose(&m, folder, family->name, message) &&
         all_pieces(&m, folder, message) && make_both(&m, out, message);
    many_free(&m);
    return ok;
}

/* ---- written --------------------------------------------------------------------------------- */

/* The parts of a tokenizer that is exported. */
typedef struct made {
    const hf_languages *languages;
    const wf_tokenizer *src;
    wf_sentencepiece_options s, t;
    /* pieces of the two languages; target NULL: target lines do not begin with a language */
    const char *source, *target;
    bool fairseq; /* the pieces have the ids that fairseq gives them */
} made;

static bool same_text(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* True if the tokenizer has exactly the row's languages, in its order. */
static bool usual_languages(const made *m, const hf_languages *l) {
    char name[HF_LANGUAGE];
    const char *rest = l->codes;
    int32_t id = m->s.added;
    while (wf_hf_language_next(l, &rest, name))
        if (!same_text(wf_tokenizer_piece(m->src, id++), name)) return false;
    if (!l->vocabulary && !same_text(wf_tokenizer_piece(m->src, id++), HF_MASK)) return false;
    while (id < m->s.n_pieces && !m->s.pieces[id]) id++;
    return id >= m->s.n_pieces;
}

/* Sets m->fairseq: whether the .spm file's pieces have the ids that fairseq gives them. False with
 * message: the file could not be read, or memory ran out. */
static bool fairseq_places(made *m, char *message) {
    wf_sentencepiece_options o;
    bool ok = wf_sentencepiece_defaults(m->s.model, m->s.bytes, &o, message);
    wf_tokenizer *plain = ok ? wf_tokenizer_from_sentencepiece(&o, message) : NULL;
    if (!plain) return false;
    int64_t n = wf_tokenizer_size(plain) + 1;
    const char **pieces = calloc((size_t)n + FAIRSEQ, sizeof *pieces);
    m->fairseq = pieces && n == m->s.added && fairseq_pieces(plain, pieces, NULL);
    for (int64_t i = 0; m->fairseq && i < n; i++) m->fairseq = same_text(pieces[i], m->s.pieces[i]);
    ok = pieces || fail(message, "out of memory");
    wf_tokenizer_free(plain);
    free(pieces);
    return ok;
}

/* True if the exported files would be read as the same pieces again. */
static bool usual_pieces(const made *m, const hf_languages *l) {
    int32_t id = 0;
    if (!l->vocabulary) return m->fairseq;
    while (id < m->s.added && m->s.pieces[id]) id++;
    return id == m->s.added;
}

/* Chooses the row whose languages the tokenizer has. If no row has them and the pieces have
 * fairseq's ids, chooses a row with these ids. NULL: no row fits. */
static const hf_languages *row_of(const made *m, const char *family) {
    bool behind = m->s.n_after == 2;
    const hf_languages *l = NULL;
    while ((l = wf_hf_languages_next(family, l)))
        if (l->behind == behind && usual_languages(m, l) && usual_pieces(m, l)) return l;
    while ((l = wf_hf_languages_next(family, l)))
        if (l->behind == behind && !l->vocabulary && usual_pieces(m, l)) return l;
    return NULL;
}

static bool around_lines(made *m, const hf_config *c) {
    const wf_sentencepiece_options *s = &m->s, *t = &m->t;
    bool behind = s->n_after == 2, ends = s->n_after && s->after[0] == c->end;
    if (!ends || s->n_after > 2 || s->n_before != !behind || t->n_after || t->n_before > 1)
        return false;
    int32_t source = behind ? s->after[1] : s->before[0], target = t->n_before ? t->before[0] : -1;
    m->source = wf_tokenizer_piece(m->src, source);
    m->target = wf_tokenizer_piece(m->src, target);
    return source >= s->added && (target < 0 || target >= s->added) && m->source;
}

static bool same_sides(const made *m, const wf_tokenizer *tgt) {
    bool same = m->s.added > 0 && m->t.added == m->s.added && m->s.bytes == m->t.bytes &&
                memcmp(m->s.model, m->t.model, m->s.bytes) == 0;
    return same && wf_hf_same_pieces(m->src, tgt);
}

static void put_code(wf_text *t, const hf_languages *l, const char *key, const char *piece) {
    char code[NAME];
    size_t n = strlen(l->around), bytes = strlen(piece);
    bool around = bytes > 2 * n && strncmp(piece, l->around, n) == 0;
    snprintf(code, sizeof code, "%.*s", (int)(around ? bytes - 2 * n : bytes),
             piece + (around ? n : 0));
    wf_hf_put_name(t, key, code);
}

/* Writes all added tokens with their ids. Languages are listed twice, because transformers 5
 * otherwise treats them as text. */
static void put_added(wf_text *t, const made *m) {
    wf_text_puts(t, ",\n  \"added_tokens_decoder\": {");
    for (int32_t id = m->s.added, n = 0; id < m->s.n_pieces; id++) {
        if (!m->s.pieces[id]) continue;
        wf_hf_put_as(t, "%s\n    \"%d\": {\"content\": ", n++ ? "," : "", (int)id);
        wf_hf_put_string(t, m->s.pieces[id]);
        wf_text_puts(t, strcmp(m->s.pieces[id], HF_MASK) == 0 ? ", \"lstrip\": true" : "");
        wf_text_puts(t, ", \"normalized\": false, \"special\": true}");
    }
    wf_text_puts(t, "\n  },\n  \"extra_special_tokens\": [");
    for (int32_t id = m->s.added, n = 0; id < m->s.n_pieces; id++) {
        if (!m->s.pieces[id] || strcmp(m->s.pieces[id], HF_MASK) == 0) continue;
        if (n++) wf_text_puts(t, ", ");
        wf_hf_put_string(t, m->s.pieces[id]);
    }
    wf_text_puts(t, "]");
}

static bool write_settings(const made *m, const hf_config *c, const wf_hf_writer *to,
                           char *message) {
    wf_text t = { 0 };
    wf_hf_put_int(&t, "model_max_length", c->c.max_len);
    wf_hf_put_name(&t, "tokenizer_class", m->languages->tokenizer);
    if (m->languages->set) wf_hf_put_name(&t, "language_codes", m->languages->set);
    put_code(&t, m->languages, "src_lang", m->source);
    if (m->target) put_code(&t, m->languages, "tgt_lang", m->target);
    put_added(&t, m);
    return wf_hf_put_object(&t, SETTINGS, to, message);
}

bool wf_hf_write_multilingual(wf_hf *hf, const hf_family *family, const hf_config *c,
                              const wf_hf_writer *to, char *message) {
    made m = { .src = hf->src };
    bool such = wf_tokenizer_sentencepiece(hf->src, &m.s) &&
                wf_tokenizer_sentencepiece(hf->tgt, &m.t) && same_sides(&m, hf->tgt) &&
                around_lines(&m, c);
    if (such && !fairseq_places(&m, message)) return false;
    if (such) m.languages = row_of(&m, family->name);
    if (!m.languages) {
        if (hf->src || hf->tgt)
            wf_hf_note(hf->notes,
                       "the folder has no tokenizer: the model's is none that a %s model of "
                       "transformers has",
                       family->name);
        return true;
    }
    return wf_hf_put_bytes(to, SPM, m.s.model, m.s.bytes, message) &&
           (!m.languages->vocabulary ||
            wf_hf_put_vocabulary(hf->src, m.s.added, "vocab.json", to, message)) &&
           write_settings(&m, c, to, message);
}
