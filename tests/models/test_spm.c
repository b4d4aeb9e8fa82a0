/* tests/models/test_spm.c - SentencePiece: pieces, ids and texts as recorded from the library
 * sentencepiece (record_spm.py), tokenizers in a model's file, and refused models. */
#include <stdio.h>
#include <unistd.h>

#include "models/text_internal.h"
#include "spm_files.h"
#include "tests/models/texts.h"
#include "tests/suites.h"
#include "tests/support/support.h"
#include "tests/support/wall.h"

TESTS(spm)

/* ---- as the library -------------------------------------------------------------------------- */

static void encodes(wf_spm *m, wf_tokenizer *t, wf_span line, recorded *r) {
    char message[WF_MESSAGE] = "";
    int n = (int)take_number(r);
    const unsigned char *ids = take_shorts(r, n), *lengths = take_shorts(r, n);
    int32_t *own = malloc(((size_t)n + 1) * sizeof *own);
    ck_assert_msg(wf_spm_encode(m, line, message) == n, "%.*s: %s", (int)line.bytes, line.text,
                  message);
    ck_assert_int_eq(wf_tokenizer_encode(t, line.text, line.bytes, own, n, message), n);
    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(m->tokens[i].id, short_at(ids, i));
        ck_assert_uint_eq(m->tokens[i].text.bytes, (unsigned)short_at(lengths, i));
        ck_assert_int_eq(own[i], short_at(ids, i));
    }
    wf_span theirs = take_text(r);
    char *text = malloc(theirs.bytes + 1);
    ck_assert_int_eq(wf_tokenizer_decode(t, own, n, text, theirs.bytes + 1), (int64_t)theirs.bytes);
    ck_assert_mem_eq(text, theirs.text, theirs.bytes);
    free(own), free(text);
}

TEST(lines_are_cut_and_joined_as_by_the_library) {
    char message[WF_MESSAGE] = "";
    recorded r = open_recorded("spm.bin");
    wf_span model;
    int models = 0, done = 0;
    for (; next_model(&r, &model); models++) {
        wf_spm *m = wf_spm_read(model.text, model.bytes, message);
        ck_assert_msg(m != NULL, "%s", message);
        wf_tokenizer *t = tokenizer_of(model);
        for (uint32_t n = take_number(&r); n > 0; n--, done++) {
            wf_span line = take_text(&r);
            encodes(m, t, line, &r);
        }
        wf_spm_free(m), wf_tokenizer_free(t);
    }
    ck_assert_int_eq(models, 9);
    ck_assert_int_eq(done, 9 * 300);
    close_recorded(&r);
}

/* ---- as transformers' MarianTokenizer -------------------------------------------------------- */

typedef struct marian {
    recorded r;
    wf_span source, target;
    const char **pieces;
    char *texts;
    int64_t n;
    int32_t end;
} marian;

static marian open_marian(void) {
    marian m = { .r = open_recorded("marian.bin") };
    m.source = take_text(&m.r), m.target = take_text(&m.r);
    m.n = take_number(&m.r);
    m.pieces = calloc((size_t)m.n, sizeof *m.pieces);
    m.texts = malloc(m.r.rest.bytes);
    char *at = m.texts;
    for (int64_t i = 0; i < m.n; i++) {
        wf_span piece = take_text(&m.r);
        m.pieces[i] = memcpy(at, piece.text, piece.bytes);
        at += piece.bytes;
        *at++ = '\0';
    }
    return m;
}

static void close_marian(marian *m) {
    close_recorded(&m->r);
    free(m->pieces), free(m->texts);
}

static wf_sentencepiece_options marian_options(marian *m, bool source) {
    wf_span model = source ? m->source : m->target;
    return (wf_sentencepiece_options){ .model = model.text,
                                       .bytes = model.bytes,
                                       .pieces = m->pieces,
                                       .n_pieces = m->n,
                                       .special = { (int32_t)m->n - 1, 1, -1, 0 },
                                       .after = &m->end,
                                       .n_after = source,
                                       .language_codes = true };
}

static wf_tokenizer *marian_tokenizer(marian *m, bool source) {
    char message[WF_MESSAGE] = "";
    wf_sentencepiece_options o = marian_options(m, source);
    wf_tokenizer *t = wf_tokenizer_from_sentencepiece(&o, message);
    ck_assert_msg(t != NULL, "%s", message);
    return t;
}

static void same_ids(wf_tokenizer *t, marian *m) {
    char message[WF_MESSAGE] = "";
    wf_span line = take_text(&m->r);
    int n = (int)take_number(&m->r);
    const unsigned char *ids = take_shorts(&m->r, n);
    int32_t *own = malloc(((size_t)n + 1) * sizeof *own);
    ck_assert_msg(wf_tokenizer_encode(t, line.text, line.bytes, own, n, message) == n, "%.*s: %s",
                  (int)line.bytes, line.text, message);
    for (int i = 0; i < n; i++)
        ck_assert_msg(own[i] == short_at(ids, i), "%.*s: id %d is %d, not %d", (int)line.bytes,
                      line.text, i, (int)own[i], short_at(ids, i));
    free(own);
}

static void same_text(wf_tokenizer *t, marian *m) {
    int n = (int)take_number(&m->r);
    const unsigned char *ids = take_shorts(&m->r, n);
    int32_t own[64];
    ck_assert_int_le(n, COUNT_OF(own));
    for (int i = 0; i < n; i++) own[i] = short_at(ids, i);
    wf_span theirs = take_text(&m->r);
    char *text = malloc(theirs.bytes + 1);
    int64_t bytes = wf_tokenizer_decode(t, own, n, text, theirs.bytes + 1);
    ck_assert_msg(bytes == (int64_t)theirs.bytes && !memcmp(text, theirs.text, theirs.bytes),
                  "'%s', not '%.*s'", text, (int)theirs.bytes, theirs.text);
    free(text);
}

TEST(a_vocabulary_of_its_own_is_used_as_by_marian) {
    marian m = open_marian();
    wf_tokenizer *source = marian_tokenizer(&m, true), *target = marian_tokenizer(&m, false);
    uint32_t many = take_number(&m.r);
    ck_assert_int_eq(wf_tokenizer_size(source), m.n);
    ck_assert_int_eq(wf_tokenizer_special(source, WF_PAD_ID), (int32_t)m.n - 1);
    ck_assert_int_eq(wf_tokenizer_special(source, WF_START_ID), -1);
    ck_assert_int_eq(wf_tokenizer_special(source, WF_END_ID), 0);
    ck_assert_str_eq(wf_tokenizer_piece(source, 2), ">>fra<<");
    for (uint32_t i = 0; i < many; i++) same_ids(source, &m), same_text(target, &m);
    ck_assert_uint_ge(many, 300);
    wf_tokenizer_free(source), wf_tokenizer_free(target);
    close_marian(&m);
}

/* ---- what stands around a line --------------------------------------------------------------- */

TEST(ids_stand_around_a_line) {
    marian m = open_marian();
    wf_sentencepiece_options o = marian_options(&m, true), again;
    int32_t before[] = { 5, 6 }, ids[8] = { 0 };
    char message[WF_MESSAGE] = "";
    o.before = before, o.n_before = 2;
    wf_tokenizer *t = wf_tokenizer_from_sentencepiece(&o, message);
    ck_assert_int_eq(wf_tokenizer_encode(t, ">>fra<<\n", 8, ids, 8, message), 4);
    ck_assert(ids[0] == 5 && ids[1] == 6 && ids[2] == 2 && ids[3] == 0);
    ck_assert_int_eq(wf_tokenizer_encode(t, ">>fra<<", 7, ids + 4, 1, message), 4);
    ck_assert(ids[4] == 5 && ids[5] == 0);
    ck_assert_int_eq(wf_tokenizer_encode(t, "", 0, NULL, 0, message), 3);
    ck_assert_int_eq(wf_tokenizer_decode(t, (int32_t[]){ 5, 6, 0, 1 }, 4, NULL, 0), 0);
    ck_assert_int_eq(wf_tokenizer_decode(t, (int32_t[]){ (int32_t)m.n }, 1, NULL, 0), -1);
    ck_assert_int_eq(wf_tokenizer_decode(t, (int32_t[]){ -1 }, 1, NULL, 0), -1);
    ck_assert(wf_tokenizer_encode(t, NULL, 3, NULL, 0, message) == -1);
    ck_assert(wf_tokenizer_sentencepiece(t, &again) && again.language_codes);
    ck_assert(again.n_before == 2 && again.before[1] == 6 && again.n_after == 1);
    ck_assert_int_eq(again.n_pieces, m.n);
    ck_assert_uint_eq(wf_tokenizer_vocabulary(t, message, 8), 0);
    ck_assert_uint_eq(wf_tokenizer_codes(t, message, 8), 0);
    wf_tokenizer_free(t), close_marian(&m);
}

/* ---- in a model's file ----------------------------------------------------------------------- */

static char path[64];
static void make_path(void) {
    strcpy(path, "/tmp/weft-spm-XXXXXX");
    close(mkstemp(path));
}
static void remove_path(void) {
    remove(path);
}

static wf_file *through_file(const wf_meta *pairs, int n) {
    char message[WF_MESSAGE] = "";
    ck_assert_msg(wf_file_save(path, NULL, 0, pairs, n, message), "%s", message);
    wf_file *f = wf_file_open(path);
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    return f;
}

static void returns(wf_tokenizer *t, int pairs_expected) {
    char message[WF_MESSAGE] = "";
    wf_meta pairs[WF_TOKENIZER_META], again[WF_TOKENIZER_META];
    wf_sentencepiece_options o, p;
    int n = 0, n_again = 0;
    ck_assert(wf_tokenizer_to_meta(t, "src_tokenizer", pairs, &n, message));
    ck_assert_int_eq(n, pairs_expected);
    wf_file *f = through_file(pairs, n);
    wf_tokenizer *u = wf_tokenizer_from_meta(f, "src_tokenizer", message);
    ck_assert_msg(u != NULL, "%s", message);
    ck_assert_int_eq(wf_tokenizer_kind(u), WF_SENTENCEPIECE);
    ck_assert(wf_tokenizer_to_meta(u, "src_tokenizer", again, &n_again, message));
    ck_assert_int_eq(n_again, n);
    for (int i = 0; i < n; i++) ck_assert_str_eq(pairs[i].value, again[i].value);
    ck_assert(wf_tokenizer_sentencepiece(t, &o) && wf_tokenizer_sentencepiece(u, &p));
    ck_assert_uint_eq(o.bytes, p.bytes);
    ck_assert_mem_eq(o.model, p.model, o.bytes);
    wf_file_free(f), wf_tokenizer_free(u);
}

SETUP(make_path, remove_path)

TEST(a_model_file_holds_it) {
    marian m = open_marian();
    wf_sentencepiece_options o = marian_options(&m, true);
    const char *pieces[] = { "<unk>", "\"\\\n\x01\xE2\x96\x81", NULL, "b" };
    int32_t before[] = { 3, 3 };
    wf_tokenizer *plain = tokenizer_of(m.source), *given = marian_tokenizer(&m, true);
    o = (wf_sentencepiece_options){ .model = m.source.text,
                                    .bytes = m.source.bytes - 0,
                                    .pieces = pieces,
                                    .n_pieces = 4,
                                    .special = { -1, 0, -1, -1 },
                                    .before = before,
                                    .n_before = 2 };
    wf_tokenizer *odd = wf_tokenizer_from_sentencepiece(&o, NULL);
    ck_assert_ptr_nonnull(odd);
    ck_assert_ptr_null(wf_tokenizer_piece(odd, 2));
    returns(plain, 3), returns(given, 6), returns(odd, 5);
    wf_tokenizer_free(plain), wf_tokenizer_free(given), wf_tokenizer_free(odd);
    close_marian(&m);
}

static const struct {
    wf_meta pairs[4];
    const char *says;
} lies[] = {
    { { { "t.special", "0" } }, "t: there is no SentencePiece model, or it has no special ids" },
    { { { "t.model", "AAAA" } }, "t: there is no SentencePiece model, or it has no special ids" },
    { { { "t.model", "AAAA" }, { "t.special", "-1,0,1" } }, "t: 3 special ids: 4" },
    { { { "t.model", "AAAA" }, { "t.special", "-1,0,1,-2" } }, "'-1,0,1,-2' are not some ids" },
    { { { "t.model", "AAAA" }, { "t.special", "-1,0,1, 2" } }, "are not some ids" },
    { { { "t.model", "AAAA" }, { "t.special", "-1,0,1," } }, "are not some ids" },
    { { { "t.model", "AAAA" }, { "t.special", "0,0,1,99999999999" } }, "are not some ids" },
    { { { "t.model", "AAA" }, { "t.special", "0,0,0,0" } }, "is not in base 64" },
    { { { "t.model", "A===" }, { "t.special", "0,0,0,0" } }, "is not in base 64" },
    { { { "t.model", "AA A" }, { "t.special", "0,0,0,0" } }, "is not in base 64" },
    { { { "t.model", "AAAA" }, { "t.special", "0,0,0,0" } }, "t: not a SentencePiece model" },
    { { { "t.model", "" }, { "t.special", "0,0,0,0" } }, "t: no piece is the unknown one" },
    { { { "t.model", "" }, { "t.special", "0,0,0,0" }, { "t.vocabulary", "[]" } },
      "t: the vocabulary has no piece" },
    { { { "t.model", "" }, { "t.special", "0,0,0,0" }, { "t.vocabulary", "[1]" } },
      "t: the vocabulary: " },
    { { { "t.model", "" }, { "t.special", "0,0,0,0" }, { "t.vocabulary", "[\"a\"" } },
      "t: the vocabulary: " },
    { { { "t.model", "" }, { "t.special", "0,0,0,0" }, { "t.vocabulary", "[\"a\"] x" } },
      "t: the vocabulary: " },
    { { { "t.model", "" }, { "t.special", "0,0,0,0" }, { "t.codes", "a b" } },
      "t: codes are 'a b', not 'language'" },
    { { { "t.model", "" }, { "t.special", "0,0,0,0" }, { "t.before", "x" } },
      "'x' are not some ids" },
};

TEST_ROWS(a_lying_model_file_is_told, COUNT_OF(lies)) {
    char message[WF_MESSAGE] = "";
    wf_meta pairs[5] = { { "t.kind", "sentencepiece" } };
    int n = 1;
    for (int i = 0; i < 4 && lies[_i].pairs[i].key; i++) pairs[n++] = lies[_i].pairs[i];
    wf_file *f = through_file(pairs, n);
    ck_assert_ptr_null(wf_tokenizer_from_meta(f, "t", message));
    assert_contains(message, lies[_i].says);
    wf_file_free(f);
}

SETUP(NULL, NULL)

/* ---- options --------------------------------------------------------------------------------- */

static bool refuses(const wf_sentencepiece_options *o, const char *says) {
    char message[WF_MESSAGE] = "";
    wf_tokenizer *t = wf_tokenizer_from_sentencepiece(o, message);
    if (!t) assert_contains(message, says);
    wf_tokenizer_free(t);
    return !t;
}

TEST(ids_and_pieces_that_are_not_there_are_told) {
    marian m = open_marian();
    int32_t far = (int32_t)m.n;
    const char *twice[] = { "a", "b", "a" }, *bad[] = { "a", "\xFF" };
    wf_sentencepiece_options good = marian_options(&m, true), o;
    o = good, o.special[WF_PAD_ID] = far;
    ck_assert(refuses(&o, "the id of padding is"));
    o = good, o.special[WF_END_ID] = -2;
    ck_assert(refuses(&o, "the id of the end is -2"));
    o = good, o.special[WF_UNK_ID] = -1;
    ck_assert(refuses(&o, "the id of the unknown piece is -1"));
    o = good, o.after = &far;
    ck_assert(refuses(&o, "the id of what stands around a line is"));
    o = good, o.after = NULL;
    ck_assert(refuses(&o, "there are no ids to put around a line"));
    o = good, o.n_before = -1;
    ck_assert(refuses(&o, "there are no ids to put around a line"));
    o = good, o.n_before = WF_MOST_AROUND + 1;
    ck_assert(refuses(&o, "more than 64 ids before a line"));
    o = good, o.n_pieces = 0;
    ck_assert(refuses(&o, "a vocabulary of 0 pieces"));
    o = good, o.pieces = twice, o.n_pieces = 3, o.special[WF_PAD_ID] = 2;
    ck_assert(refuses(&o, "piece 2 of the vocabulary, 'a', is there twice"));
    o = good, o.pieces = bad, o.n_pieces = 2, o.special[WF_PAD_ID] = 0;
    ck_assert(refuses(&o, "piece 1 of the vocabulary is not UTF-8"));
    o = good, o.pieces = NULL;
    ck_assert(refuses(&o, "the id of padding"));
    o = good, o.pieces = NULL, o.special[WF_PAD_ID] = -1;
    ck_assert(refuses(&o, "the id of the unknown piece is 1, but the model has 0"));
    close_marian(&m);
}

/* ---- files by hand --------------------------------------------------------------------------- */

/* Appends a piece of less than 2^14 bytes to a model. */
static size_t add_piece(unsigned char *model, size_t at, wf_spm_type type, const char *text,
                        size_t bytes) {
    size_t inner = bytes + 3 + 2;
    unsigned char *to = model + at;
    *to++ = 0x0A, *to++ = (unsigned char)(inner | 0x80), *to++ = (unsigned char)(inner >> 7);
    *to++ = 0x0A, *to++ = (unsigned char)(bytes | 0x80), *to++ = (unsigned char)(bytes >> 7);
    memcpy(to, text, bytes), to += bytes;
    *to++ = 0x18, *to++ = (unsigned char)type;
    return (size_t)(to - model);
}

/* The time of each step through a line grows with the longest piece, so the length of pieces is
 * limited. */
TEST(a_piece_has_1024_bytes_at_most) {
    static unsigned char model[4096];
    static char long_text[1025];
    char message[WF_MESSAGE] = "";
    memset(long_text, 'a', sizeof long_text);
    size_t unknown = add_piece(model, 0, SPM_UNKNOWN, "<unk>", 5);
    wf_spm *m = wf_spm_read(model, add_piece(model, unknown, SPM_NORMAL, long_text, 1024), message);
    ck_assert_msg(m, "%s", message);
    wf_spm_free(m);
    ck_assert_ptr_null(
        wf_spm_read(model, add_piece(model, unknown, SPM_NORMAL, long_text, 1025), message));
    assert_contains(message, "piece 1 has 1025 bytes, more than 1024");
}

/* A text may be both a normal piece and a control symbol, as in the library sentencepiece: they
 * have different ids. */
TEST(ids_tell_pieces_of_one_text_apart) {
    static unsigned char model[256];
    static const int32_t ids[] = { 1, 2, 1 };
    char message[WF_MESSAGE] = "", text[16];
    size_t bytes = add_piece(model, 0, SPM_UNKNOWN, "<unk>", 5);
    bytes = add_piece(model, bytes, SPM_NORMAL, "a", 1);
    bytes = add_piece(model, bytes, SPM_CONTROL, "a", 1);
    wf_sentencepiece_options o;
    ck_assert_msg(wf_sentencepiece_defaults(model, bytes, &o, message), "%s", message);
    wf_tokenizer *t = wf_tokenizer_from_sentencepiece(&o, message);
    ck_assert_msg(t, "%s", message);
    ck_assert_int_eq(wf_tokenizer_decode(t, ids, 3, text, sizeof text), 2);
    ck_assert_str_eq(text, "aa");
    wf_tokenizer_free(t);
}

#define UNK "\x0A\x09\x0A\x05<unk>\x18\x02"
#define PIECE(text) "\x0A\x03\x0A\x01" text
#define MODEL(kind) "\x12\x02\x18" kind

static const struct {
    const char *bytes;
    size_t n;
    const char *says;
} damaged[] = {
#define FILE(bytes, says) { bytes, sizeof(bytes) - 1, says },
    /* clang-format off */
    FILE("", "no piece is the unknown one")
    FILE("no model at all", "not a SentencePiece model, or a part of one: byte ")
    FILE("\x0A", "not a SentencePiece model, or a part of one: byte 1")
    FILE("\x0A\x05\x0A\x01", "not a SentencePiece model")
    FILE("\x0A\x02\x0A\x05", "not a SentencePiece model")
    FILE("\x0B\x0C", "not a SentencePiece model")
    FILE("\x02\x00", "not a SentencePiece model")
    FILE("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", "not a SentencePiece model")
    FILE("\x0D\x00\x00", "not a SentencePiece model")
    FILE("\x09\x00\x00", "not a SentencePiece model")
    FILE("\x12\x02\x18\x80", "not a SentencePiece model")
    FILE("\x1A\x02\x18\x80", "not a SentencePiece model")
    FILE(UNK "\x0A\x00", "piece 1 is empty")
    FILE(UNK PIECE("\0"), "piece 1 has a zero byte in it")
    FILE(UNK PIECE("a") PIECE("a"), "piece 2, 'a', is there twice")
    FILE(UNK PIECE("a") "\x0A\x05\x0A\x01" "a\x18\x03" MODEL("\x02"), "piece 2, 'a', is there twice")
    FILE(UNK UNK, "pieces 0 and 1 are both the unknown one")
    FILE(UNK, "no piece is a normal one")
    FILE(PIECE("a"), "no piece is the unknown one")
    FILE(UNK "\x0A\x08\x0A\x01" "a\x15\x00\x00\xC0\x7F", "the score of piece 1 is no number")
    FILE(UNK "\x0A\x08\x0A\x01" "a\x15\x00\x00\x80\x7F", "the score of piece 1 is no number")
    FILE(UNK PIECE("a") "\x0A\x0A\x0A\x06<0x00>\x18\x06", "piece 2 is a byte, but the model has no byte")
    FILE("\x12\x03\x98\x02\x01" UNK PIECE("a") "\x0A\x0A\x0A\x06<0xaa>\x18\x06", "piece 2 is no byte")
    FILE("\x12\x03\x98\x02\x01" UNK PIECE("a") "\x0A\x0A\x0A\x06<0xAA>\x18\x06", "there is no piece for byte <0x00>")
    FILE(UNK PIECE("a") "\x1A\x06\x12\x04\x00\x04\x00\x00", "the normalisation rules are cut off")
    FILE(UNK PIECE("a") "\x1A\x08\x12\x06\x00\x04\x00\x00\x00\x00", "are longer than their field")
    FILE(UNK PIECE("a") "\x1A\x08\x12\x06\x01\x00\x00\x00\x00\x00", "the normalisation rules have 1 bytes")
    FILE(UNK PIECE("a") "\x1A\x08\x12\x06\x00\x00\x00\x00\x00\x00", "the normalisation rules have 0 bytes")
    /* clang-format on */
};

TEST_ROWS(a_damaged_file_is_told, COUNT_OF(damaged)) {
    char message[WF_MESSAGE] = "";
    wf_sentencepiece_options o;
    ck_assert(!wf_sentencepiece_defaults(damaged[_i].bytes, damaged[_i].n, &o, message));
    assert_contains(message, damaged[_i].says);
    o = (wf_sentencepiece_options){ .model = damaged[_i].bytes, .bytes = damaged[_i].n };
    ck_assert(refuses(&o, damaged[_i].says));
}

/* Unknown fields, types of fields and types of pieces are skipped, as by protobuf. */
TEST(what_is_not_known_is_passed_over) {
    static const char file[] = UNK PIECE("a") "\x08\x05\x52\x01x\x0A\x0C\x08\x01\x0A\x01"
                                              "b\x18\x63\x75\x01\x02\x03\x04";
    wf_span model = { file, sizeof file - 1 };
    int32_t ids[4];
    wf_tokenizer *t = tokenizer_of(model);
    ck_assert_int_eq(wf_tokenizer_size(t), 3);
    ck_assert_int_eq(wf_tokenizer_special(t, WF_END_ID), -1);
    ck_assert_int_eq(wf_tokenizer_encode(t, "ba", 2, ids, 4, NULL), 3);
    ck_assert(ids[0] == 0 && ids[1] == 2 && ids[2] == 1);
    wf_tokenizer_free(t);
}

/* ---- without memory -------------------------------------------------------------------------- */

static bool says_why(bool ok, const char *message) {
    must(ok || message[0], "a failure without a message");
    return ok;
}

/* The options that are read repeatedly. */
static const wf_sentencepiece_options *options;
static const wf_file *file_of_one;

static bool say_life(wf_tokenizer *t) {
    char message[WF_MESSAGE] = "", text[64];
    int32_t ids[128];
    wf_meta pairs[WF_TOKENIZER_META];
    const char *line = ">>fra<< 1996 aaa <user> \xD0\x9C\xEF\xBC\xA1 abc e\xCC\x81";
    int64_t n = wf_tokenizer_encode(t, line, strlen(line), ids, 128, message);
    if (!says_why(n >= 0, message) || n > 128) return false;
    wall_say(ids, (size_t)n * sizeof *ids);
    n = wf_tokenizer_decode(t, ids, n, text, sizeof text);
    if (n < 0) return false;
    wall_say(text, (size_t)n < sizeof text ? (size_t)n : sizeof text);
    int n_pairs = 0;
    if (!says_why(wf_tokenizer_to_meta(t, "t", pairs, &n_pairs, message), message)) return false;
    for (int i = 0; i < n_pairs; i++) wall_say(pairs[i].value, strlen(pairs[i].value));
    return true;
}

static bool life(void) {
    char message[WF_MESSAGE] = "";
    wf_tokenizer *t = file_of_one ? wf_tokenizer_from_meta(file_of_one, "t", message)
                                  : wf_tokenizer_from_sentencepiece(options, message);
    bool ok = says_why(t != NULL, message) && say_life(t);
    wf_tokenizer_free(t);
    return ok;
}

static void survive(const wf_sentencepiece_options *o, const wf_file *f, bool persistent) {
    const wall_work work = { "tokenizer", life, false };
    options = o, file_of_one = f;
    wall_fail_each(&work, persistent);
}

SETUP(make_path, remove_path)

/* Each allocation fails in turn while a tokenizer is made from a recorded model, from one with
 * another list of pieces, or from metadata, and while it is used. */
TEST_ROWS(every_failure_is_survived, 2) {
    recorded r = open_recorded("spm.bin");
    marian m = open_marian();
    wf_span model;
    wf_meta pairs[WF_TOKENIZER_META];
    for (; next_model(&r, &model); pass_lines(&r)) {
        wf_sentencepiece_options o;
        ck_assert(wf_sentencepiece_defaults(model.text, model.bytes, &o, NULL));
        survive(&o, NULL, _i);
    }
    wf_sentencepiece_options o = marian_options(&m, true);
    survive(&o, NULL, _i);
    wf_tokenizer *t = marian_tokenizer(&m, true);
    int n = 0;
    ck_assert(wf_tokenizer_to_meta(t, "t", pairs, &n, NULL));
    wf_file *f = through_file(pairs, n);
    survive(NULL, f, _i);
    wf_file_free(f), wf_tokenizer_free(t), close_marian(&m), close_recorded(&r);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static int refused, worked;

/* The model must be refused with one message, or give a tokenizer that works. */
static void works_or_says(const char *bytes, size_t n, wf_span line) {
    char message[WF_MESSAGE] = "";
    int32_t ids[256];
    wf_sentencepiece_options o;
    wf_tokenizer *t = wf_sentencepiece_defaults(bytes, n, &o, message)
                          ? wf_tokenizer_from_sentencepiece(&o, message)
                          : NULL;
    t ? worked++ : refused++;
    ck_assert(t || *message);
    if (!t) return;
    int64_t made = wf_tokenizer_encode(t, line.text, line.bytes, ids, COUNT_OF(ids), message);
    ck_assert(made >= 0 || *message);
    if (made > COUNT_OF(ids)) made = COUNT_OF(ids);
    for (int64_t i = 0; i < made; i++) ck_assert(ids[i] >= 0 && ids[i] < wf_tokenizer_size(t));
    if (made > 0) ck_assert_int_ge(wf_tokenizer_decode(t, ids, made, NULL, 0), 0);
    wf_tokenizer_free(t);
}

static const char hard_line[] =
    "aaab <user> \xEF\xBC\xA1\xEF\xAC\x81 e\xCC\x81 1996 \xFF\xE2\x96\x81 "
    "\xE6\x97\xA5\xE6\x9C\xAC \xD1\x84 abc  \xC2\xA0!";

SETUP(NULL, NULL)

/* Each damaged model is in a block of exactly its size, so that a sanitizer sees a read behind
 * it. */
TEST(every_truncation_and_many_flips_are_told_or_work) {
    recorded r = open_recorded("spm.bin");
    wf_span model, line = { hard_line, sizeof hard_line - 1 };
    uint32_t random = 2018;
    refused = worked = 0;
    for (; next_model(&r, &model); pass_lines(&r)) {
        for (size_t n = model.bytes; n > 0; n -= n < 400 ? 1 : n / 200) {
            char *part = malloc(n);
            memcpy(part, model.text, n);
            works_or_says(part, n, line);
            free(part);
        }
        for (int i = 0; i < 1112; i++) {
            char *copy = malloc(model.bytes);
            memcpy(copy, model.text, model.bytes);
            random = random * 1664525 + 1013904223;
            size_t bit = random % (8 * model.bytes);
            copy[bit / 8] = (char)(copy[bit / 8] ^ 1 << bit % 8);
            works_or_says(copy, model.bytes, line);
            free(copy);
        }
    }
    ck_assert_int_ge(refused, 500);
    ck_assert_int_ge(worked, 500);
    close_recorded(&r);
}
