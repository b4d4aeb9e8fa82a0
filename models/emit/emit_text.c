/* models/emit/emit_text.c - the part of a model's C file that turns lines into ids and ids into
 * lines. See text_emitter.h. */
#include <string.h>

#include "models/model_internal.h"
#include "models/text_internal.h"
#include "text_emitter.h"

enum { LEAST_LINE = 1024, BYTES_OF_TOKEN = 8, DIGITS_OF_ID = 12 };

/* ---- sizes ----------------------------------------------------------------------------------- */

/* The bytes of text_work, which write_memory writes: the sum of its fields, with their padding. */
static int64_t bytes_of_work(const text_emitter *x) {
    const model_emitter *e = x->e;
    int64_t ids = 4 * (2 * (e->source + 1) + e->output + 1);
    int64_t links = x->links ? 36 * x->links + 4 : 0, paths = x->has_paths ? 12 * (x->room + 1) : 0;
    int64_t words = x->has_words ? 9 * x->room + 64 : 0, lists = x->tokens ? x->raw + 64 : 0;
    if (x->has_codes) words += 8 * x->room + 8;
    if (x->has_best) words += 16 * (x->room + 2);
    if (x->tokens) lists += 16 * (x->tokens + 1);
    return (ids + links + paths + words + lists + x->room + x->raw + 128 + 63) / 64 * 64;
}

/* The number of tokens that are kept of a line with too many. A decoder-only model leaves room for
 * an output, as in tools/generate/. */
static int64_t kept_tokens(const model_emitter *e) {
    int64_t most = wf_model_longest_source(e->model), half = most - most / 2, kept = half;
    if (e->model->src) return e->source;
    if (e->search.max_len_b < (double)(most - half)) kept = most - (int64_t)e->search.max_len_b;
    return kept < e->source ? kept : e->source;
}

/* The n ids that a tokenizer of SentencePiece or byte level puts behind every line. NULL and 0 for
 * other kinds. */
static const int32_t *ids_behind(const wf_tokenizer *t, int64_t *n) {
    wf_sentencepiece_options s;
    wf_byte_level_options b;
    *n = 0;
    if (wf_tokenizer_sentencepiece(t, &s)) {
        *n = s.n_after;
        return s.after;
    }
    if (!wf_tokenizer_byte_level(t, &b)) return NULL;
    *n = b.n_after;
    return b.after;
}

static void write_numbers(text_emitter *x, int64_t around) {
    wf_text *t = &x->e->text;
    const model_emitter *e = x->e;
    int64_t n;
    const int32_t *behind = ids_behind(e->tokenizers[0], &n);
    if (!e->model->src) n = 0;
    int64_t kept = n < e->source ? n : e->source;
    wf_text_print(t, "enum {\n    KEEPS_END = %d, /* 1: of long lines the end is read */\n",
                  !e->model->src && e->model->start_first);
    wf_text_print(t, "    KEPT = %n,   /* tokens kept of a line that has too many */\n",
                  kept_tokens(e));
    wf_text_print(t, "    AROUND = %n, /* tokens of a line without text */\n", around);
    wf_text_print(t, "    BEHIND = %n, /* of these, tokens behind a line */\n", kept);
    wf_text_print(t, "    UNKNOWN = %d,\n    SPECIAL_IDS = %d,\n", WF_UNK_ID, WF_SPECIAL_IDS);
    wf_text_print(t, "    LONGEST_CHUNK = %d,\n    WF_UTF8_MOST = 4,\n", LONGEST_CHUNK);
    wf_text_print(t, "    BAD_TEXT = %s_BAD_LINE,\n    LONG_TEXT = %s_LONG_LINE", e->name, e->name);
    wf_text_puts(t, ",\n    IS_SKIPPED = 0, /* what an id is in an output */\n    IS_PIECE,\n"
                    "    IS_BYTE,\n    IS_SURFACE,\n    IS_RAW,\n    IS_CONTROL");
    if (x->links) wf_text_print(t, ",\n    LINKS = %n", x->links);
    if (x->room) wf_text_print(t, ",\n    ROOM = %n", x->room);
    if (x->raw) wf_text_print(t, ",\n    RAW = %n", x->raw);
    if (x->tokens) wf_text_print(t, ",\n    TOKENS = %n", x->tokens);
    if (x->choices) wf_text_print(t, ",\n    CHOICES = %n", x->choices);
    if (x->affix) wf_text_print(t, ",\n    LONGEST_AFFIX = %n", x->affix);
    wf_text_puts(t, "\n};\n\n");
    wf_write_ids(t, "behind", "The tokens behind a line.", behind ? behind + n - kept : NULL, kept);
}

static void write_sizes(text_emitter *x) {
    wf_text *t = &x->e->text;
    const char *of = x->e->name;
    wf_text_print(t,
                  "\n/* ---- text ---- */\n\n#include <stdbool.h>\n#include <stddef.h>\n\nenum {\n"
                  "    %s_LINE = %n, /* most bytes of a line */\n"
                  "    %s_TEXT = %n, /* bytes that an output takes at most, with its zero */\n",
                  of, x->e->line, of, x->e->output * x->longest + 1);
    wf_text_print(t,
                  "    %s_BAD_LINE = -1,  /* the line is not valid text, or not ids */\n"
                  "    %s_LONG_LINE = -2, /* the line is too long, perhaps once normalised */\n"
                  "    %s_NO_ROOM = -3,   /* the output needs more bytes than it may have */\n"
                  "    %s_NO_OUTPUT = -4  /* the logits are not finite */\n};\n\n",
                  of, of, of, of);
}

/* ---- what the plain C calls ------------------------------------------------------------------ */

static void write_memory(text_emitter *x, wf_text *t) {
    const char *of = x->e->name;
    wf_text_print(
        t,
        "/* The line at hand, before the model runs and after it. */\ntypedef struct text_work {\n"
        "    int32_t tokens[%s_SOURCE + 1], source[%s_SOURCE + 1], output[%s_OUTPUT + 1];\n",
        of, of, of);
    if (x->links) wf_text_puts(t, "    merger merges;\n");
    if (x->has_paths) wf_text_puts(t, "    best_path paths[ROOM + 1];\n");
    if (x->has_words) wf_text_puts(t, "    word_texts words;\n");
    if (x->has_codes) wf_text_puts(t, "    code_points codes;\n");
    if (x->has_best) wf_text_puts(t, "    probable_path best[ROOM + 1];\n");
    if (x->tokens) wf_text_puts(t, "    token_lists lists;\n");
    if (x->room && !x->has_words) wf_text_puts(t, "    char text[ROOM];\n");
    if (x->raw && !x->tokens) wf_text_puts(t, "    char raw[RAW];\n");
    wf_text_print(
        t,
        "} text_work;\n\n"
        "_Static_assert(sizeof(searches) <= %n, \"the memory has room for the search\");\n"
        "_Static_assert(sizeof(text_work) <= %n, \"the memory has room for the text\");\n\n",
        wf_search_bytes(x->e), x->bytes);
    wf_text_print(t,
                  "static text_work *text_of(const %s *m) {\n"
                  "    return (text_work *)(void *)(m->arena + %n);\n}\n\n",
                  of, x->e->text_at);
}

static void write_calls(const text_emitter *x, wf_text *t) {
    wf_text_print(
        t,
        "static int encode_line(text_work *w, const char *line, size_t n, id_list *to) {\n"
        "%s}\n\n"
        "static void decode_line(text_work *w, const int32_t *ids, int n, text_out *to) {\n"
        "%s}\n\n",
        wf_text_of(&x->encode), wf_text_of(&x->decode));
}

/* ---- both sides ------------------------------------------------------------------------------ */

static bool vocabulary_fits(const wf_tokenizer *t, int64_t vocabulary, char *message) {
    return wf_tokenizer_size(t) == vocabulary ||
           fail(message, "a tokenizer of %lld pieces for a model of %lld",
                (long long)wf_tokenizer_size(t), (long long)vocabulary);
}

static bool emit_numbers(text_emitter *x) {
    x->longest = DIGITS_OF_ID;
    wf_text_puts(&x->encode, "    (void)w;\n    return encode_numbers(line, n, to);\n");
    wf_text_puts(&x->decode, "    (void)w;\n    decode_numbers(ids, n, to);\n");
    return true;
}

static bool emit_tokenizers(text_emitter *x, char *message) {
    wf_tokenizer *const *t = x->e->tokenizers;
    const wf_model *m = x->e->model;
    return vocabulary_fits(t[0], m->src ? m->src_vocab : m->tgt_vocab, message) &&
           vocabulary_fits(t[1], m->tgt_vocab, message) && wf_emit_encoder(x, t[0], message) &&
           wf_emit_decoder(x, t[1], message);
}

bool wf_begin_text(text_emitter *x, model_emitter *e, char *message) {
    *x = (text_emitter){ .e = e, .is_joint = e->tokenizers[0] == e->tokenizers[1] };
    if (!e->has_line) e->line = BYTES_OF_TOKEN * e->source;
    if (!e->has_line && e->line < LEAST_LINE) e->line = LEAST_LINE;
    bool ok = e->tokenizers[0] ? emit_tokenizers(x, message) : emit_numbers(x);
    x->bytes = bytes_of_work(x);
    double text = (double)e->output * (double)x->longest;
    double lines = e->batch > 1 ? (double)e->batch * (text + (double)e->line) : text;
    if (ok && lines + (double)x->bytes > INT32_MAX - 64)
        return fail(message, "its text takes 2^31 bytes or more, which has no form in C");
    return ok;
}

void wf_free_text(text_emitter *x) {
    wf_text_free(&x->tables);
    wf_text_free(&x->encode);
    wf_text_free(&x->decode);
}

bool wf_write_text(text_emitter *x, char *message) {
    wf_text *t = &x->e->text, code = { 0 };
    wf_tokenizer *source = x->e->tokenizers[0];
    int64_t around = source ? wf_tokenizer_encode(source, "", 0, NULL, 0, message) : 0;
    if (around < 0) return false;
    write_sizes(x);
    write_numbers(x, around);
    wf_text_puts(&code, wf_text_of(&x->tables));
    write_memory(x, &code);
    write_calls(x, &code);
    bool lacks = x->tables.lacks || x->encode.lacks || x->decode.lacks || code.lacks;
    bool ok = !lacks && wf_add_blocks(&code, wf_blocks_text, NULL);
    if (ok) wf_text_puts(t, code.at);
    wf_text_free(&code);
    wf_add_plain_file(t, wf_translate_text, x->e->name);
    if (x->e->batch > 1) wf_add_plain_file(t, wf_translate_batch_text, x->e->name);
    wf_text_print(t, "#define WHAT_A_LINE_IS \"not %s\"\n",
                  source ? "a line of UTF-8 text" : "ids of the vocabulary");
    if (x->e->file) wf_write_weights_reader(t, x->e->file_name, x->e->name);
    wf_add_plain_file(t, wf_main_text, x->e->name);
    wf_add_plain_file(t, x->e->batch > 1 ? wf_main_batch_text : wf_main_lines_text, x->e->name);
    wf_add_plain_file(t, x->e->file ? wf_main_file_text : wf_main_array_text, x->e->name);
    return (ok && !t->lacks) || fail(message, "out of memory");
}
