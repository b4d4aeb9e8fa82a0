/* tests/models/test_emit_text.c - tokenizers in the C file of a model: the emitted functions give
 * the ids of wf_tokenizer_encode and the text of wf_tokenizer_decode, to the byte, for every kind
 * of tokenizer; and the translations of the library's search. WEFT_EMIT_CC names another compiler,
 * as in suite `emit`. */
#include <stdio.h>

#include "core/base/utf8.h"
#include "models/model_emit.h"
#include "models/text_internal.h"
#include "spm_files.h"
#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/emitted.h"
#include "tests/support/models.h"
#include "tests/support/wall.h"
#include "texts.h"

TESTS(emit_text)

/* -O0, because the files have thousands of lines of tables. */
#define STRICT STRICT_FLAGS " -O0"

enum { LINES = 1100, OUTPUTS = 300, MOST_BYTES = 500, MOST_IDS = 12, MANY_IDS = 4000 };

/* ---- lines ----------------------------------------------------------------------------------- */

static const char story[] =
    "A man in a blue shirt is standing on a ladder cleaning a window .\n"
    "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche .\n"
    "Two men aren't here, and it's 12:30 o'clock; we'll see 1999 of them...\n"
    "Ein kleines Mädchen klettert in ein Spielhaus aus Holz .\tTab and  two spaces\n"
    "日本語の文 と français, naïve café \xF0\x9F\x98\x80 !\n"
    "the lower the slower , the newest low , the widest and newest shows\n";

#define BLANKS "                                                  "

static const char *const hostile[] = {
    "",
    " ",
    "\t\v\f ",
    "\n",
    "\r\n",
    "a\r",
    "a\r\r\n",
    "<s> </s> <unk> <pad>",
    "@@ a@@ b</w> </w>",
    "e\xCC\x81\xCC\x81\xCC\xA3 cafe\xCC\x81",
    "\xE2\x96\x81\xE2\x96\x81 a \xE2\x96\x81",
    "\xE2\x90\x80\xE2\x90\xA1 \xE2\x90\xA0 \xE2\x90\x8A",
    "\x01\x02\x7f\x1b[0m",
    ">>fra<< Haus",
    ">><<",
    ">>",
    "it's we'll I'd 'tis 'll 're've",
    "  two  spaces  ",
    "\xEF\xAC\x81 \xE2\x91\xA0 \xEF\xBC\xA1 abc ab",
    "\xC2\xA0nb\xE3\x80\x80sp\xE2\x80\x83x",
    "\xF4\x8F\xBF\xBF \xEF\xBF\xBF",
    "\xFF\xFE abc",
    "\xC3",
    "ab\xE2\x96",
    "\xF0\x9F\x98",
    "\xED\xA0\x80",
    "\xC0\x80 x",
    "x\ry",
    "x\ny",
    "?"
    "?/ \\ \" %d",
    "......!!!!!",
    "a blue" BLANKS BLANKS BLANKS "\t \tblue" BLANKS "\t",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    "aaa",
};

/* Groups of code points from which lines are drawn: scripts, marks, symbols, emoji, private and
 * unassigned code points. */
static const struct {
    int32_t first, last;
} groups[] = { { 0x20, 0x7E },       { 0x1, 0x1F },        { 0x80, 0x24F },
               { 0x300, 0x36F },     { 0x370, 0x52F },     { 0x590, 0x6FF },
               { 0x900, 0x97F },     { 0xE00, 0xE7F },     { 0x1100, 0x11FF },
               { 0x1E00, 0x1FFF },   { 0x2000, 0x206F },   { 0x2070, 0x2BFF },
               { 0x3000, 0x31FF },   { 0x4E00, 0x9FFF },   { 0xAC00, 0xD7A3 },
               { 0xF900, 0xFB4F },   { 0xFE00, 0xFFFF },   { 0x1D400, 0x1D4FF },
               { 0x1F1E6, 0x1F1FF }, { 0x1F300, 0x1F6FF }, { 0x2F800, 0x2FA1F },
               { 0xE0000, 0xE007F }, { 0x10000, 0x10FFFF } };

/* Parts of lines that are difficult for steps of a tokenizer.json. */
static const char *const odd[] = { " ",
                                   "  ",
                                   "\n",
                                   "\r\n",
                                   "\t",
                                   "a",
                                   "1",
                                   "1234567",
                                   "'s",
                                   "'LL",
                                   "n't",
                                   " .",
                                   "##",
                                   "<0x41>",
                                   "\xCC\x81",
                                   "\xCC\xA3\xCC\x81",
                                   "\xE2\x80\x8D",
                                   "\xEF\xB8\x8F",
                                   "\xC2\xA0",
                                   "\xE3\x80\x80",
                                   "\xE2\x96\x81",
                                   "\xC2\xAD",
                                   "\xEF\xBF\xBD",
                                   "\xC4\xB0",
                                   "\xC5\xBF",
                                   "\xE2\x84\xAA",
                                   "\xC3\x9F",
                                   "<s>",
                                   "</s>",
                                   "<mask>",
                                   "[MASK]",
                                   "[CLS]",
                                   "<|endoftext|>",
                                   "<unk>",
                                   "<extra_id_0>",
                                   "word",
                                   "TOK",
                                   "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8",
                                   "e\xCC\x81\xCC\xA3",
                                   "\xEF\xAC\x81",
                                   "\xC2\xBD",
                                   "\xD9\xA3",
                                   "\xE0\xA4\x95\xE0\xA5\x8D\xE0\xA4\xB7",
                                   "\xE7\x8C\xAB",
                                   "\xF0\x9F\x91\xA9\xE2\x80\x8D",
                                   "\xF0\x9F\x87\xA9\xF0\x9F\x87\xAA",
                                   "CamelCase",
                                   "snake_case",
                                   "http://a.b/c?d=e" };

/* Writes code points of a group, one odd part several times, or a part of the story. Returns the
 * number of bytes. */
static size_t draw_part(uint64_t key, char *to) {
    size_t n = 0, times = 1 + (size_t)(number(10, key) * 5);
    int kind = (int)(number(11, key) * 3);
    size_t i = (size_t)(number(12, key) * COUNT_OF(groups)), k = 0;
    if (kind == 2) {
        size_t from = (size_t)(number(12, key) * (double)(sizeof story - 60));
        while (wf_utf8_continues(story[from])) from++;
        for (size_t end = from + 40; from < end || wf_utf8_continues(story[from]); from++)
            to[n++] = story[from];
        return n;
    }
    if (kind == 1) i = (size_t)(number(12, key) * COUNT_OF(odd));
    for (; k < times; k++) {
        int32_t width = groups[kind ? 0 : i].last - groups[kind ? 0 : i].first + 1;
        int32_t code = groups[kind ? 0 : i].first + (int32_t)(number(13, key + k) * width);
        if (kind)
            n += strlen(strcpy(to + n, odd[i]));
        else
            n += wf_utf8_put(to + n, code);
    }
    return n;
}

static size_t draw_parts(uint64_t key, char line[MOST_BYTES]) {
    size_t n = 0, parts = 1 + (size_t)(number(3, key) * 7);
    for (size_t i = 0; i < parts && n < MOST_BYTES - 120; i++)
        n += draw_part(key + 100 * i, line + n);
    return n;
}

/* Draws a line: a hostile one, odd parts, any bytes, or a part of the story, as it is or with bytes
 * changed. Returns the number of bytes. */
static size_t draw_line(int i, char line[MOST_BYTES]) {
    uint64_t key = (uint64_t)i * 1000;
    size_t n = 1 + (size_t)(number(3, key) * (i % 50 ? 60 : MOST_BYTES - 1));
    if (i < COUNT_OF(hostile)) return strlen(strcpy(line, hostile[i]));
    if (i % 2) return draw_parts(key, line);
    for (size_t k = 0; k < n; k++) {
        size_t from = (size_t)(number(4, key) * (double)(sizeof story - 1));
        line[k] = story[(from + k) % (sizeof story - 1)];
        if (i % 4 == 0) line[k] = (char)(int)(number(5, key + k) * 256);
        if (i % 8 == 2 && number(6, key + k) < 0.1) line[k] = (char)(int)(number(5, key + k) * 256);
        if (i % 4 && (line[k] == '\n' || line[k] == '\r')) line[k] = ' ';
    }
    return n;
}

static void put_number(FILE *to, int64_t number) {
    int32_t n = (int32_t)number;
    ck_assert_int_eq(fwrite(&n, sizeof n, 1, to), 1);
}

static FILE *create(const char *path) {
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    return file;
}

/* Writes lines to `in`, and their ids by the tokenizer to `out`. Returns how many lines have
 * ids. */
static int write_lines(wf_tokenizer *t, FILE *in, FILE *out) {
    static int32_t ids[MANY_IDS];
    char line[MOST_BYTES + 1], message[WF_MESSAGE];
    int good = 0;
    put_number(in, LINES);
    for (int i = 0; i < LINES; i++) {
        size_t bytes = draw_line(i, line);
        int64_t n = wf_tokenizer_encode(t, line, bytes, ids, MANY_IDS, message);
        ck_assert_int_le(n, MANY_IDS);
        put_number(in, (int64_t)bytes);
        fwrite(line, 1, bytes, in);
        put_number(out, n);
        if (n > 0) fwrite(ids, sizeof *ids, (size_t)n, out);
        good += n > 0;
    }
    return good;
}

/* Outputs at random, and their text. */
static void write_outputs(wf_tokenizer *t, FILE *in, FILE *out) {
    static char text[1 << 16];
    int32_t ids[MOST_IDS];
    put_number(in, OUTPUTS);
    for (int i = 0; i < OUTPUTS; i++) {
        int n = (int)(number(8, (uint64_t)i) * (MOST_IDS + 1));
        for (int k = 0; k < n; k++)
            ids[k] =
                (int32_t)(number(9, (uint64_t)(i * MOST_IDS + k)) * (double)wf_tokenizer_size(t));
        int64_t bytes = wf_tokenizer_decode(t, ids, n, text, sizeof text);
        ck_assert(bytes >= 0 && bytes < (int64_t)sizeof text);
        put_number(in, n);
        fwrite(ids, sizeof *ids, (size_t)n, in);
        put_number(out, bytes);
        fwrite(text, 1, (size_t)bytes, out);
    }
}

/* ---- the emitted file ------------------------------------------------------------------------ */

static const char program[] =
    "#include <stdio.h>\n#include <string.h>\n#include \"model.c\"\n"
    "static _Alignas(64) unsigned char memory[model_MEMORY];\n"
    "static char line[model_LINE], text[model_TEXT];\n"
    "static int32_t ids[4000];\n"
    "static int32_t take(void) {\n"
    "    int32_t n = 0;\n"
    "    return fread(&n, 4, 1, stdin) == 1 ? n : -1;\n"
    "}\n"
    "int main(void) {\n"
    "    static model m;\n"
    "    memset(memory, 0xff, sizeof memory);\n"
    "    model_start(&m, memory);\n"
    "    for (int32_t left = take(); left > 0; left--) {\n"
    "        id_list to = { ids, 4000, 0 };\n"
    "        size_t n = (size_t)take();\n"
    "        if (fread(line, 1, n, stdin) != n) return 1;\n"
    "        int32_t found = encode_line(text_of(&m), line, n, &to) ? -1 : to.n;\n"
    "        fwrite(&found, 4, 1, stdout);\n"
    "        if (found > 0) fwrite(ids, 4, (size_t)found, stdout);\n"
    "    }\n"
    "    for (int32_t left = take(); left > 0; left--) {\n"
    "        text_out to = { text, sizeof text, 0 };\n"
    "        int32_t n = take(), bytes;\n"
    "        if (fread(ids, 4, (size_t)n, stdin) != (size_t)n) return 1;\n"
    "        decode_line(text_of(&m), ids, n, &to);\n"
    "        bytes = (int32_t)to.n;\n"
    "        fwrite(&bytes, 4, 1, stdout);\n"
    "        fwrite(text, 1, to.n, stdout);\n"
    "    }\n"
    "    return 0;\n"
    "}\n";

static void write_text(const char *path, const char *text) {
    FILE *file = create(path);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* A model with the vocabularies of these tokenizers. */
static wf_model *model_of(const wf_tokenizer *source, const wf_tokenizer *target) {
    wf_transformer_config c = small_config();
    c.src_vocab = wf_tokenizer_size(source);
    c.tgt_vocab = wf_tokenizer_size(target);
    c.start_id = c.end_id = 0;
    c.max_len = 40;
    c.encoder_layers = c.decoder_layers = 1;
    return open_model(&c, NULL, WF_F32, 3);
}

static char *emit(wf_model *m, wf_tokenizer *source, wf_tokenizer *target, char *message) {
    return wf_model_emit(m,
                         &(wf_model_emit_options){
                             .max_output = MOST_IDS, .source_text = source, .target_text = target },
                         message);
}

/* A model with two tokenizers: compares the emitted encoding by the source's and decoding by the
 * target's with the library. `row`: see compiles_row. */
static void same_text(wf_tokenizer *source, wf_tokenizer *target, int least, int row) {
    char message[WF_MESSAGE] = "";
    wf_model *m = model_of(source, target);
    char *text = emit(m, source, target, message);
    ck_assert_msg(text, "%s", message);
    write_text("model.c", text);
    write_text("main.c", program);
    free(text);
    close_model(m);
    if (!compiles_row(row)) return;
    FILE *in = create("in"), *out = create("expected");
    int good = write_lines(source, in, out);
    write_outputs(target, in, out);
    ck_assert_int_ge(good, least);
    ck_assert(fclose(in) == 0 && fclose(out) == 0);
    run("%s " STRICT " main.c -o main && ./main < in > got && cmp got expected",
        emitted_compiler());
    ck_assert_msg(result.status == 0, "%s%s", result.out, result.err);
}

SETUP(enter_folder, leave_folder)

/* ---- kinds that are learned ------------------------------------------------------------------ */

static const wf_token_kind learned[] = { WF_WORDS,           WF_CHARACTERS, WF_BPE,       WF_BYTES,
                                         WF_TEXT_CHARACTERS, WF_BYTE_BPE,   WF_BYTE_LEVEL };

TEST_ROWS(text_is_that_of_a_learned_tokenizer, COUNT_OF(learned)) {
    if (!has_emitted_compiler("emit_text")) return;
    wf_tokenizer *t = learn_kind(learned[_i], story);
    same_text(t, t, LINES / 3, _i);
    bool other = _i % 2 && compiles("clang");
    if (!SANITIZED) compile_alone(other ? "clang" : emitted_compiler()); /* as in try_emitted */
    wf_tokenizer_free(t);
}

TEST(each_side_may_have_its_own_kind) {
    if (!has_emitted_compiler("emit_text")) return;
    wf_tokenizer *t[COUNT_OF(learned)];
    for (int i = 0; i < COUNT_OF(learned); i++) t[i] = learn_kind(learned[i], story);
    for (int i = 0; i < COUNT_OF(learned); i += 2)
        same_text(t[i], t[(i + 2) % COUNT_OF(learned)], LINES / 3, i + 1);
    for (int i = 0; i < COUNT_OF(learned); i++) wf_tokenizer_free(t[i]);
}

/* Merged pieces that the vocabulary lacks are split again, as by subword-nmt. */
TEST(a_limited_vocabulary_splits_pieces_again) {
    if (!has_emitted_compiler("emit_text")) return;
    char message[WF_MESSAGE] = "";
    wf_tokenizer *all = learn_kind(WF_BPE, story);
    char *codes = text_of(all, wf_tokenizer_codes), *vocabulary = strdup("");
    size_t n = 0;
    for (int32_t id = 0; id < wf_tokenizer_size(all); id++) {
        const char *piece = wf_tokenizer_piece(all, id);
        vocabulary = realloc(vocabulary, n + strlen(piece) + 2);
        if (id % 3) n += (size_t)sprintf(vocabulary + n, "%s\n", piece);
    }
    wf_tokenizer *t = wf_tokenizer_read(WF_BPE, vocabulary, n, codes, strlen(codes), message);
    ck_assert_msg(t, "%s", message);
    same_text(t, t, LINES / 3, 0);
    free(codes), free(vocabulary);
    wf_tokenizer_free(all), wf_tokenizer_free(t);
}

/* ---- tokenizer.json -------------------------------------------------------------------------- */

/* A tokenizer.json that is learned with these special tokens, and in which the text `what` is then
 * replaced. */
typedef struct json_row {
    const char *special, *what, *by;
} json_row;

static const json_row jsons[] = {
    { "<s>,<pad>,</s>", "\"add_prefix_space\":false", "\"add_prefix_space\":true" },
    { "<s>,</s>", "\"added_tokens\":[",
      "\"added_tokens\":[{\"id\":300,\"content\":\"blue\",\"single_word\":false,\"lstrip\":false,"
      "\"rstrip\":false,\"normalized\":false,\"special\":false},"
      "{\"id\":301,\"content\":\"blue shi\",\"single_word\":false,\"lstrip\":false,"
      "\"rstrip\":false,\"normalized\":false,\"special\":false},"
      "{\"id\":302,\"content\":\"ß\",\"single_word\":false,\"lstrip\":false,"
      "\"rstrip\":false,\"normalized\":false,\"special\":true}," },
    /* added tokens of white space within the white space that another added token strips */
    { "<s>,</s>", "\"added_tokens\":[",
      "\"added_tokens\":[{\"id\":300,\"content\":\"blue\",\"single_word\":false,\"lstrip\":true,"
      "\"rstrip\":true,\"normalized\":false,\"special\":false},"
      "{\"id\":301,\"content\":\"  \",\"single_word\":false,\"lstrip\":false,"
      "\"rstrip\":true,\"normalized\":false,\"special\":false},"
      "{\"id\":302,\"content\":\"\\t\",\"single_word\":false,\"lstrip\":true,"
      "\"rstrip\":false,\"normalized\":false,\"special\":false}," },
};

static wf_tokenizer *json_tokenizer(const char *json) {
    char message[WF_MESSAGE] = "";
    wf_tokenizer *t = wf_tokenizer_from_json(
        &(wf_json_text_options){ json, strlen(json), 0, { -1, -1, -1, -1 } }, message);
    ck_assert_msg(t, "%s", message);
    return t;
}

static wf_tokenizer *learn_json(const json_row *r) {
    char message[WF_MESSAGE] = "";
    const wf_json_learn_options o = { WF_LEARN_BPE, 300, 2, 0, false, r->special };
    char *json = wf_json_learn(&o, next_of, &(lines){ story }, message);
    ck_assert_msg(json, "%s", message);
    const char *at = r->what ? strstr(json, r->what) : json;
    ck_assert_ptr_nonnull(at);
    size_t room = strlen(json) + (r->by ? strlen(r->by) : 0) + 1;
    char *changed = malloc(room);
    snprintf(changed, room, "%.*s%s%s", (int)(at - json), json, r->by ? r->by : "",
             at + (r->what ? strlen(r->what) : 0));
    wf_tokenizer *t = json_tokenizer(changed);
    free(json), free(changed);
    return t;
}

TEST_ROWS(text_is_that_of_a_tokenizer_json, COUNT_OF(jsons)) {
    if (!has_emitted_compiler("emit_text")) return;
    wf_tokenizer *t = learn_json(&jsons[_i]);
    same_text(t, t, LINES / 3, _i + 1);
    wf_tokenizer_free(t);
}

static wf_tokenizer *recorded_json(const char *name) {
    char path[80];
    size_t bytes;
    snprintf(path, sizeof path, "tokenizer/%s.json", name);
    char *json = data_text(path, &bytes);
    wf_tokenizer *t = json_tokenizer(json);
    free(json);
    return t;
}

/* Recorded files in the form of well-known models, and others that contain the remaining types of
 * steps. */
static const char *const recorded_jsons[] = {
    "llama3",        "qwen2",           "roberta",     "clip",          "llama2",
    "gemma",         "xlm-r",           "unigram-nmt", "added-bert",    "words-digits",
    "pieces-digits", "chars-fused",     "bytes-nfkd",  "split-removed", "decode-replace",
    "untagged",      "learned-unigram",
};

TEST_ROWS(text_is_that_of_a_recorded_tokenizer_json, COUNT_OF(recorded_jsons)) {
    if (!has_emitted_compiler("emit_text")) return;
    wf_tokenizer *t = recorded_json(recorded_jsons[_i]);
    same_text(t, t, LINES / 3, _i);
    if (!SANITIZED && _i % 9 == 0)
        compile_alone(_i && compiles("clang") ? "clang" : emitted_compiler());
    wf_tokenizer_free(t);
}

static const struct {
    const char *file, *why;
} other_jsons[] = {
    { "ctc-words", "the decoder 'CTC' of" },
    { "scripts", "the pre-tokenizer 'UnicodeScripts' of" },
    { "oddities", "repeats a group without an end" },
    { "replace", "the normalizer 'Replace' of" },
    { "cut-left", "truncates or pads lines" },
};

TEST_ROWS(another_tokenizer_json_is_refused_by_its_parts, COUNT_OF(other_jsons)) {
    char message[WF_MESSAGE] = "";
    wf_tokenizer *t = recorded_json(other_jsons[_i].file);
    wf_model *m = model_of(t, t);
    ck_assert(!emit(m, t, t, message));
    ck_assert_msg(strstr(message, other_jsons[_i].why), "%s", message);
    ck_assert_msg(strstr(message, "no form in C"), "%s", message);
    wf_tokenizer_free(t);
    close_model(m);
}

/* Byte fallback together with a prefix or a suffix of words is not emitted: the library tokenizers
 * would also spell these in bytes, and no known model needs it. */
TEST(bytes_beside_a_suffix_are_refused) {
    char message[WF_MESSAGE] = "";
    wf_tokenizer *t = json_tokenizer(
        "{\"version\":\"1.0\",\"added_tokens\":[],\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"},"
        "\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"end_of_word_suffix\":\"</w>\","
        "\"byte_fallback\":true,\"vocab\":{\"<unk>\":0,\"a</w>\":1,\"<0x41>\":2,\"a\":3,\"b\":4},"
        "\"merges\":[]}}");
    wf_model *m = model_of(t, t);
    ck_assert(!emit(m, t, t, message));
    ck_assert_msg(strstr(message, "byte_fallback beside a prefix or a suffix has no form"), "%s",
                  message);
    wf_tokenizer_free(t);
    close_model(m);
}

/* ---- SentencePiece --------------------------------------------------------------------------- */

static bool has_unused(wf_span model) {
    wf_spm *m = wf_spm_read(model.text, model.bytes, NULL);
    bool unused = m->unused && m->kind == SPM_BPE;
    wf_spm_free(m);
    return unused;
}

TEST(text_is_that_of_a_sentencepiece_model) {
    if (!has_emitted_compiler("emit_text")) return;
    char message[WF_MESSAGE] = "";
    recorded r = open_recorded("spm.bin");
    wf_span model;
    int written = 0;
    while (next_model(&r, &model)) {
        wf_tokenizer *t = tokenizer_of(model);
        pass_lines(&r);
        if (has_unused(model)) {
            wf_model *m = model_of(t, t);
            ck_assert(!emit(m, t, t, message) && strstr(message, "unused pieces"));
            close_model(m);
        } else {
            same_text(t, t, LINES * 3 / 4, written++);
        }
        wf_tokenizer_free(t);
    }
    ck_assert_int_ge(written, 6);
    close_recorded(&r);
}

/* A tokenizer with its pieces in another order, and codes of languages behind them. */
static wf_tokenizer *with_pieces(wf_span model, bool codes) {
    char message[WF_MESSAGE] = "";
    static const int32_t before[] = { 2, 7 }, after[] = { 1 };
    const char *pieces[3000] = { "<s>", "</s>", "<unk>", ">>fra<<" };
    wf_tokenizer *plain = tokenizer_of(model);
    int32_t n = 4, all = (int32_t)wf_tokenizer_size(plain);
    for (int32_t i = 3; i < all && n < 2990; i++)
        if (i % 7) pieces[n++] = wf_tokenizer_piece(plain, all + 2 - i);
    pieces[n] = "__de__";
    wf_sentencepiece_options o = { .model = model.text,
                                   .bytes = model.bytes,
                                   .pieces = pieces,
                                   .n_pieces = n + 1,
                                   .special = { -1, 2, 0, 1 },
                                   .before = before,
                                   .after = after,
                                   .n_before = 2,
                                   .n_after = 1,
                                   .language_codes = codes,
                                   .added = codes ? 0 : n };
    wf_tokenizer *t = wf_tokenizer_from_sentencepiece(&o, message);
    ck_assert_msg(t, "%s", message);
    wf_tokenizer_free(plain);
    return t;
}

TEST_ROWS(text_is_that_of_a_sentencepiece_model_with_other_pieces, 2) {
    if (!has_emitted_compiler("emit_text")) return;
    recorded r = open_recorded("spm.bin");
    wf_span model;
    int written = 0;
    while (next_model(&r, &model)) {
        pass_lines(&r);
        if (has_unused(model) || written == 3) continue;
        wf_tokenizer *t = with_pieces(model, _i == 0), *plain = tokenizer_of(model);
        same_text(t, _i ? t : plain, LINES * 3 / 4, written);
        if (!written++) same_text(plain, t, LINES * 3 / 4, 1);
        wf_tokenizer_free(t), wf_tokenizer_free(plain);
    }
    ck_assert_int_eq(written, 3);
    close_recorded(&r);
}

/* ---- refusals -------------------------------------------------------------------------------- */

TEST(text_that_has_no_form_is_refused) {
    char message[WF_MESSAGE] = "", *word = malloc(5000);
    memset(word, 'w', 4998);
    strcpy(word + 4998, "\n");
    wf_tokenizer *t = learn_kind(WF_WORDS, story), *longer = learn_kind(WF_WORDS, word);
    wf_model *m = model_of(t, t), *n = model_of(longer, longer);
    ck_assert(!emit(m, t, NULL, message));
    ck_assert_str_eq(message, "a tokenizer of one side alone has no form in C");
    ck_assert(!emit(m, t, longer, message) &&
              strstr(message, "a tokenizer of 5 pieces for a model"));
    ck_assert(!emit(n, longer, longer, message));
    ck_assert_str_eq(message, "a piece of 4998 bytes has no form in C: 4095 are the most");
    const wf_model_emit_options negative = { .source_text = t, .target_text = t, .max_line = -1 };
    ck_assert(!wf_model_emit(m, &negative, message) && strstr(message, "lines of -1 bytes"));
    wf_tokenizer_free(t), wf_tokenizer_free(longer);
    close_model(m), close_model(n);
    free(word);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static wf_model *failing_model;
static wf_tokenizer *failing_text;

static bool emit_once(void) {
    char message[WF_MESSAGE] = "";
    char *text = emit(failing_model, failing_text, failing_text, message);
    must(text || message[0], "no text and no message");
    if (text) wall_say(text, strlen(text));
    free(text);
    return text != NULL;
}

static void fail_each(void) {
    const wall_work work = { "emit a model with text", emit_once, false };
    failing_model = model_of(failing_text, failing_text);
    ck_assert(emit_once()); /* the first plans record nodes, which the graph keeps */
    ck_assert_int_gt(wall_fail_each(&work, false), 100);
    close_model(failing_model);
    wf_tokenizer_free(failing_text);
}

static const wf_token_kind failing[] = { WF_BPE, WF_BYTE_LEVEL };

TEST_ROWS(without_memory_there_is_a_message_and_no_file, COUNT_OF(failing)) {
    failing_text = learn_kind(failing[_i], "low lower lowest , low\n");
    fail_each();
}

TEST(without_memory_there_is_no_file_of_a_tokenizer_json) {
    failing_text = learn_json(&jsons[1]);
    fail_each();
}

TEST(without_memory_there_is_no_file_of_a_sentencepiece_model) {
    size_t bytes;
    char *model = data_text("words_en.spm", &bytes);
    failing_text = with_pieces((wf_span){ model, bytes }, true);
    fail_each();
    free(model);
}
