/* models/emit/emit_kinds.c - the tables of words, characters and byte pairs; see text_emitter.h. */
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"
#include "models/text/byte_level/byte_level.h"
#include "models/text/characters/characters.h"
#include "text_emitter.h"

const char *wf_pieces_name(const text_emitter *x, int side) {
    if (x->is_joint) return "pieces";
    return side ? "target_pieces" : "source_pieces";
}

static bool lacks(const wf_text *t, char *message) {
    return t->lacks && !fail(message, "out of memory");
}

/* All pieces by id. The caller frees the array. NULL: out of memory. */
static const char **pieces_of(const wf_tokenizer *t) {
    int64_t n = wf_tokenizer_size(t);
    const char **pieces = calloc((size_t)n + 1, sizeof *pieces);
    for (int64_t id = 0; pieces && id < n; id++) pieces[id] = wf_tokenizer_piece(t, (int32_t)id);
    return pieces;
}

/* Write all pieces, once for a tokenizer that both sides share. */
static bool write_all_pieces(text_emitter *x, int side, const wf_tokenizer *t, char *message) {
    if (x->is_joint && x->has_pieces) return true;
    const char **pieces = pieces_of(t);
    x->has_pieces = true;
    bool ok = pieces || fail(message, "out of memory");
    ok = ok && wf_write_pieces(&x->tables, wf_pieces_name(x, side), "Pieces by their ids.", pieces,
                               wf_tokenizer_size(t), message);
    free(pieces);
    return ok;
}

/* ---- words and characters -------------------------------------------------------------------- */

/* Write the vocabulary of a kind of tokenizer that has no merges. Special pieces are left out. */
static bool write_vocabulary(text_emitter *x, const wf_tokenizer *t, char *message) {
    const char **pieces = pieces_of(t);
    if (!pieces) return fail(message, "out of memory");
    for (int id = 0; id < WF_SPECIAL_IDS; id++) pieces[id] = NULL;
    int64_t n = wf_write_order(&x->tables, "source_order", pieces, wf_tokenizer_size(t));
    free(pieces);
    wf_text_print(&x->tables, "static const vocabulary source_text = { %s, source_order, %n };\n\n",
                  wf_pieces_name(x, 0), n);
    return !lacks(&x->tables, message);
}

static bool encode_plain(text_emitter *x, wf_tokenizer *t, char *message) {
    static const char *const functions[] = { [WF_WORDS] = "encode_words",
                                             [WF_CHARACTERS] = "encode_characters",
                                             [WF_TEXT_CHARACTERS] = "encode_running" };
    wf_text_print(&x->encode, "    (void)w;\n    return %s(&source_text, line, n, to);\n",
                  functions[t->kind]);
    return write_all_pieces(x, 0, t, message) && write_vocabulary(x, t, message);
}

/* Write a table from bytes to ids (WF_BYTES) or to symbols (WF_BYTE_BPE). */
static void write_bytes(text_emitter *x, const wf_tokenizer *t) {
    int32_t bytes[256];
    char spelled[CODE_POINT];
    for (int byte = 0; byte < 256; byte++) {
        wf_span s = { spelled, wf_spell_byte((unsigned char)byte, spelled) };
        int32_t piece = wf_strings_find(&t->pieces, s.text, s.bytes);
        if (t->kind == WF_BYTES)
            bytes[byte] = piece < 0 ? WF_UNK_ID : piece + WF_SPECIAL_IDS;
        else
            bytes[byte] = wf_character_symbol(t, s, false);
    }
    wf_write_ids(&x->tables, "source_bytes", "What single bytes are.", bytes, 256);
}

static bool encode_bytes(text_emitter *x, wf_tokenizer *t, char *message) {
    write_bytes(x, t);
    wf_text_puts(&x->encode, "    (void)w;\n    return encode_bytes(source_bytes, line, n, to);\n");
    (void)message;
    return true;
}

/* ---- byte pairs ------------------------------------------------------------------------------ */

typedef struct ranked {
    wf_merge merge;
    int32_t rank;
} ranked;

static int by_pair(const void *a, const void *b) {
    const wf_merge *x = &((const ranked *)a)->merge, *y = &((const ranked *)b)->merge;
    if (x->left != y->left) return x->left < y->left ? -1 : 1;
    return (x->right > y->right) - (x->right < y->right);
}

void wf_write_merges(wf_text *t, const wf_merges *m) {
    ranked *all = malloc((m->n + 1) * sizeof *all);
    if (!all) t->lacks = true;
    for (size_t i = 0; all && i < m->n; i++) all[i] = (ranked){ m->at[i], (int32_t)i };
    if (all) qsort(all, m->n, sizeof *all, by_pair);
    wf_text_puts(t, "/* Merges: left, right, rank, result. */\n"
                    "static const merge source_merges[] = {");
    for (size_t i = 0; all && i < m->n; i++)
        wf_text_print(t, i % 4 ? " { %d, %d, %d, %d }," : "\n    { %d, %d, %d, %d },",
                      (int)all[i].merge.left, (int)all[i].merge.right, (int)all[i].rank,
                      (int)all[i].merge.result);
    wf_text_puts(t, m->n ? "\n};\n\n" : " { 0, 0, 0, 0 } };\n\n");
    free(all);
}

/* A list of numbers that grows. */
typedef struct numbers {
    int32_t *at;
    size_t n, capacity;
    bool lacks;
} numbers;

static void add_number(numbers *to, int32_t number) {
    to->lacks = to->lacks || !wf_grow(&to->at, &to->capacity, to->n + 1, sizeof *to->at);
    if (!to->lacks) to->at[to->n++] = number;
}

/* Append the ids for a symbol that is not in the vocabulary, and -1: merges are undone until each
 * part has an id, or is a single character. `stack` is work space after its present entries. */
static void add_parts(const wf_tokenizer *t, int32_t symbol, numbers *stack, numbers *parts) {
    size_t bottom = stack->n;
    add_number(stack, symbol);
    while (!stack->lacks && !parts->lacks && stack->n > bottom) {
        const wf_symbol *s = &t->about[stack->at[--stack->n]];
        if (s->id >= 0 || s->merge < 0) {
            add_number(parts, s->id < 0 ? WF_UNK_ID : s->id);
            continue;
        }
        add_number(stack, t->merges.at[s->merge].right);
        add_number(stack, t->merges.at[s->merge].left);
    }
    add_number(parts, -1);
}

static void write_symbols(text_emitter *x, const wf_tokenizer *t) {
    numbers ids = { 0 }, parts = { 0 }, stack = { 0 };
    for (int32_t symbol = 0; symbol < t->symbols.n; symbol++) {
        bool known = t->about[symbol].id >= 0;
        add_number(&ids, known ? t->about[symbol].id : (int32_t)(-1 - (int64_t)parts.n));
        if (!known) add_parts(t, symbol, &stack, &parts);
    }
    if (ids.lacks || parts.lacks || stack.lacks) x->tables.lacks = true;
    wf_write_ids(&x->tables, "source_ids", "The ids of symbols.", ids.at, (int64_t)ids.n);
    wf_write_ids(&x->tables, "source_parts", "The ids of symbols that are not in the vocabulary.",
                 parts.at, (int64_t)parts.n);
    free(ids.at), free(parts.at), free(stack.at);
}

/* Is the symbol a character, or one with the mark of a word's end? */
static bool is_character(const wf_tokenizer *t, int32_t symbol) {
    const char *text = wf_strings_at(&t->symbols, symbol);
    size_t n = wf_strings_span(&t->symbols, symbol).bytes, bytes = wf_utf8_length(text, n);
    return bytes && (bytes == n || strcmp(text + bytes, END_OF_WORD) == 0);
}

static bool write_characters(text_emitter *x, const wf_tokenizer *t, char *message) {
    size_t all = (size_t)t->symbols.n + 1, n = 0;
    const char **texts = malloc(all * sizeof *texts);
    int32_t *symbols = malloc(all * sizeof *symbols);
    bool ok = (texts && symbols) || fail(message, "out of memory");
    for (int32_t i = 0; ok && i < t->symbols.n; i++) {
        if (!is_character(t, i)) continue;
        texts[n] = wf_strings_at(&t->symbols, i);
        symbols[n++] = i;
    }
    ok = ok &&
         wf_write_pieces(&x->tables, "source_characters",
                         "Characters within a word and at its end.", texts, (int64_t)n, message);
    if (ok) {
        wf_write_order(&x->tables, "source_order", texts, (int64_t)n);
        wf_write_ids(&x->tables, "source_symbols", "Their symbols.", symbols, (int64_t)n);
        wf_text_print(&x->tables,
                      "static const word_merges source_text = {\n"
                      "    { source_characters, source_order, %n },\n    source_symbols,\n"
                      "    { source_merges, %n, source_ids, source_parts },\n};\n\n",
                      (int64_t)n, (int64_t)t->merges.n);
    }
    free(texts), free(symbols);
    return ok;
}

static bool encode_parts(text_emitter *x, wf_tokenizer *t, char *message) {
    wf_write_merges(&x->tables, &t->merges);
    write_symbols(x, t);
    x->links = x->e->line + 1;
    wf_text_puts(&x->encode, "    return encode_parts(&source_text, &w->merges, line, n, to);\n");
    return write_characters(x, t, message);
}

static bool encode_chunks(text_emitter *x, wf_tokenizer *t, char *message) {
    (void)message;
    wf_write_merges(&x->tables, &t->merges);
    write_symbols(x, t);
    write_bytes(x, t);
    x->links = LONGEST_CHUNK + 1;
    wf_text_print(&x->tables,
                  "static const byte_merges source_text = {\n"
                  "    source_bytes, { source_merges, %n, source_ids, source_parts },\n};\n\n",
                  (int64_t)t->merges.n);
    wf_text_puts(&x->encode, "    return encode_chunks(&source_text, &w->merges, line, n, to);\n");
    return true;
}

/* ---- byte level ------------------------------------------------------------------------------ */

/* Write where the class of code points changes. Returns how often. */
static int64_t write_changes(wf_text *t) {
    numbers changes = { 0 };
    for (uint32_t c = 0, last = 0; c <= LAST_CODE_POINT; c++) {
        uint32_t class = wf_unicode_class_of(c);
        if (c == 0 || class != last) add_number(&changes, (int32_t)(c << 2 | class));
        last = class;
    }
    if (changes.lacks) t->lacks = true;
    wf_write_units(t, "source_changes",
                   "Code points from which on the class is another, times 4, plus the class.",
                   (const uint32_t *)changes.at, (int64_t)changes.n);
    free(changes.at);
    return (int64_t)changes.n;
}

static bool encode_level(text_emitter *x, wf_tokenizer *t, char *message) {
    const wf_merges *m = &t->byte_level->merges;
    const wf_byte_level_options *o = &t->byte_level->o;
    (void)message;
    wf_write_merges(&x->tables, m);
    wf_write_ids(&x->tables, "source_bytes", "The ids of single bytes.", t->byte_level->bytes, 256);
    int64_t n_changes = write_changes(&x->tables);
    wf_write_ids(&x->tables, "source_before", "What stands before a line.", o->before, o->n_before);
    wf_write_ids(&x->tables, "source_after", "What stands behind a line.", o->after, o->n_after);
    wf_text_print(&x->tables,
                  "static const byte_level source_text = {\n"
                  "    { source_bytes, { source_merges, %n, 0, 0 } },\n"
                  "    source_changes, %n, %d,\n    source_before, source_after, %d, %d,\n};\n\n",
                  (int64_t)m->n, n_changes, (int)o->prefix_space, o->n_before, o->n_after);
    x->links = x->room = x->e->line + 2;
    wf_text_puts(&x->encode,
                 "    return encode_level(&source_text, &w->merges, w->text, line, n, to);\n");
    return true;
}

/* Ids that give no text in an output get no piece. */
static bool decode_level(text_emitter *x, const wf_tokenizer *t, char *message) {
    const int64_t n = t->byte_level->o.n_pieces;
    const char **pieces = pieces_of(t);
    bool ok = pieces || fail(message, "out of memory");
    for (int32_t id = 0; ok && id < n; id++)
        if (!wf_byte_level_is_text(t->byte_level, id)) pieces[id] = NULL;
    ok = ok && wf_write_pieces(&x->tables, "target_pieces",
                               "Pieces by their ids; \"\" gives no text.", pieces, n, message);
    free(pieces);
    x->longest *= 3; /* a byte may become U+FFFD, which has 3 bytes */
    wf_text_puts(&x->decode, "    (void)w;\n    decode_level(target_pieces, ids, n, to);\n");
    return ok;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

typedef struct emitted_kind {
    bool (*encode)(text_emitter *x, wf_tokenizer *t, char *message);
    bool (*decode)(text_emitter *x, const wf_tokenizer *t, char *message);
    const char *decoder; /* the function that decodes with the pieces alone, or NULL */
} emitted_kind;

static bool encode_sentencepiece(text_emitter *x, wf_tokenizer *t, char *message) {
    return wf_emit_sentencepiece(x, t, message);
}

static const emitted_kind kinds[] = {
    [WF_WORDS] = { encode_plain, NULL, "decode_words" },
    [WF_CHARACTERS] = { encode_plain, NULL, "decode_characters" },
    [WF_BPE] = { encode_parts, NULL, "decode_parts" },
    [WF_BYTES] = { encode_bytes, NULL, "decode_spelled" },
    [WF_TEXT_CHARACTERS] = { encode_plain, NULL, "decode_running" },
    [WF_BYTE_BPE] = { encode_chunks, NULL, "decode_spelled" },
    [WF_SENTENCEPIECE] = { encode_sentencepiece, wf_emit_sentencepiece_text, NULL },
    [WF_BYTE_LEVEL] = { encode_level, decode_level, NULL },
    [WF_JSON_TEXT] = { wf_emit_json, wf_emit_json_text, NULL },
};

bool wf_emit_encoder(text_emitter *x, wf_tokenizer *t, char *message) {
    return kinds[t->kind].encode(x, t, message) && !lacks(&x->tables, message);
}

bool wf_emit_decoder(text_emitter *x, const wf_tokenizer *t, char *message) {
    const emitted_kind *k = &kinds[t->kind];
    for (int64_t id = 0; id < wf_tokenizer_size(t); id++) {
        const char *piece = wf_tokenizer_piece(t, (int32_t)id);
        int64_t bytes = piece ? (int64_t)strlen(piece) + 1 : 1;
        if (bytes > x->longest) x->longest = bytes;
    }
    if (!k->decoder) return k->decode(x, t, message) && !lacks(&x->tables, message);
    wf_text_print(&x->decode, "    (void)w;\n    %s(%s, ids, n, to);\n", k->decoder,
                  wf_pieces_name(x, 1));
    return write_all_pieces(x, 1, t, message) && !lacks(&x->tables, message);
}
