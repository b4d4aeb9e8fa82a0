/* tests/tools/test_stream.c - running text: its documents, the store of its tokens, the windows
 * (rows of batches) that are cut out of it, and a dataset of them. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "tests/models/text_files.h"
#include "tests/suites.h"
#include "tools/sources/dataset.h"

TESTS(stream)

/* ---- documents ------------------------------------------------------------------------------- */

/* The parts of the text from `from` to `stop`, each in brackets, with "|" between documents. */
static const char *parts_of(size_t from, size_t stop, const char *marker) {
    static char all[1 << 12];
    documents d;
    spool s;
    const char *text;
    size_t bytes, n = 0;
    text_status status;
    ck_assert(spool_open(&s, path[0]));
    documents_start(&d, &s, from, stop, marker);
    while ((status = documents_next(&d, &text, &bytes)) > TEXT_END)
        n += (size_t)(status == TEXT_MARKER
                          ? snprintf(all + n, sizeof all - n, "|")
                          : snprintf(all + n, sizeof all - n, "[%.*s]", (int)bytes, text));
    ck_assert_int_eq(status, TEXT_END);
    documents_close(&d), spool_close(&s);
    return all;
}

TEST(lines_and_markers) {
    make_folder();
    write_file(0, TEXT("one\r\n\n***\ntwo ***\n***\r\nthree"));
    ck_assert_str_eq(parts_of(0, SIZE_MAX, "***"), "[one\r\n][\n]|[two ***\n]|[three]");
    ck_assert_str_eq(parts_of(0, SIZE_MAX, NULL),
                     "[one\r\n][\n][***\n][two ***\n][***\r\n][three]");
    ck_assert_str_eq(parts_of(0, 7, "***"), "[one\r\n][\n]|"); /* to the end of a line */
    ck_assert_str_eq(parts_of(10, SIZE_MAX, "***"), "[two ***\n]|[three]");
    remove_folder();
}

/* A line that is longer than the buffer is read in pieces, of which none ends within a
 * character. */
TEST_ROWS(a_long_line_comes_in_pieces, 4) {
    enum { N = 3 * LONGEST_PART };
    static char text[N + 1];
    static const char *const characters[] = { "a", "ß", "日", "😀" };
    size_t width = strlen(characters[_i]), n = 1, pieces = 0;
    text[0] = 'x'; /* so that no character ends where the buffer ends */
    while (n + width <= N) memcpy(text + n, characters[_i], width), n += width;
    make_folder();
    write_file(0, text, n);
    documents d;
    spool s;
    const char *part;
    size_t bytes, at = 0;
    ck_assert(spool_open(&s, path[0]));
    documents_start(&d, &s, 0, 5, NULL);
    for (; documents_next(&d, &part, &bytes) == TEXT_PART; at += bytes, pieces++) {
        ck_assert_int_eq(memcmp(part, text + at, bytes), 0);
        ck_assert_uint_eq(documents_at(&d), at + bytes);
        ck_assert_uint_eq((at + bytes - 1) % width, 0);
    }
    ck_assert(at == n && pieces >= 3);
    documents_close(&d), spool_close(&s), remove_folder();
}

/* ---- ids ------------------------------------------------------------------------------------- */

/* Fills a stream with the tokens 0, 1, ..., n-1 in documents of `length`, with the end token 9
 * before each and at the end. */
static void fill_stream(token_stream *s, int64_t vocab, int n, int length) {
    ck_assert(stream_new(s, vocab, 9, 1, message));
    for (int32_t i = 0; i < n; i++) {
        ck_assert(stream_add(s, &i, 1, 2, message));
        if ((i + 1) % length == 0) ck_assert(stream_end_document(s, message));
    }
    ck_assert_msg(stream_seal(s, message), "%s", message);
}

/* Ids of two or of four bytes are read back from a temporary file as they were written. */
TEST_ROWS(ids_come_back, 2) {
    enum { N = 40000 };
    static int32_t ids[N];
    token_stream s;
    make_folder();
    fill_stream(&s, _i ? 1 << 17 : 1 << 16, N, 7);
    ck_assert_int_eq(s.id_bytes, _i ? 4 : 2);
    ck_assert_int_eq(s.documents, (N + 6) / 7);
    ck_assert(s.n == N + s.documents + 1 && s.bytes == 2 * N && s.ids.file >= 0);
    stream_ids(&s, 0, 18, ids);
    ck_assert(ids[0] == 9 && ids[1] == 0 && ids[7] == 6 && ids[8] == 9 && ids[9] == 7);
    stream_ids(&s, s.n - 2, 2, ids);
    ck_assert(ids[0] == N - 1 && ids[1] == 9);
    stream_free(&s), remove_folder();
}

/* ---- windows --------------------------------------------------------------------------------- */

/* Counts how often each token of the stream is a label. Labels are the tokens that follow the
 * inputs. */
static void count_places(const windows *w, batch *b, int *count) {
    int32_t all[512];
    stream_ids(w->of, 0, w->of->n, all);
    for (int64_t i = 0; i < w->batches; i++) {
        ck_assert(windows_fill(w, i, b));
        ck_assert_int_eq(b->S, 0);
        for (int64_t row = 0; row < b->B; row++) {
            const int32_t *tgt = b->tgt + row * b->T, *labels = b->labels + row * b->T;
            int64_t at = 0; /* all ids but the end tokens are different */
            while (memcmp(all + at, tgt, 3 * sizeof *all) != 0) at++;
            for (int64_t t = 0; t < b->T; t++) {
                ck_assert(labels[t] == WF_IGNORE_LABEL ||
                          (tgt[t] == all[at + t] && labels[t] == all[at + t + 1]));
                if (labels[t] != WF_IGNORE_LABEL) count[at + t + 1]++;
            }
        }
    }
}

/* Held-out windows contain every token as a label once, in order; the last window may be short. */
TEST_ROWS(every_token_is_judged_once, 3) {
    token_stream s;
    windows w;
    batch b = { 0 };
    int count[512] = { 0 };
    make_folder();
    fill_stream(&s, 300, 200 + _i, 61);
    ck_assert(windows_new(&w, &s, 8, 5, true, 1, message));
    ck_assert_int_eq(w.n, (s.n - 1 + 7) / 8);
    count_places(&w, &b, count);
    for (int64_t i = 1; i < s.n; i++) ck_assert_int_eq(count[i], 1);
    batch_free(&b), windows_free(&w), stream_free(&s), remove_folder();
}

/* In an epoch no token is a label twice, and nearly all are once. The next epoch has windows that
 * begin elsewhere. The same epoch again has the same windows. */
TEST(epochs_are_cut_and_shuffled) {
    token_stream s;
    windows w, again;
    batch b = { 0 }, c = { 0 };
    int all[512] = { 0 };
    make_folder();
    fill_stream(&s, 300, 250, 61);
    ck_assert(windows_new(&w, &s, 8, 3, false, 7, message));
    ck_assert(windows_new(&again, &s, 8, 3, false, 7, message));
    ck_assert(w.n == (s.n - 1) / 8 - 1 && w.batches == w.n / 3);
    for (int epoch = 0; epoch < 60; epoch++) {
        int count[512] = { 0 }, learned = 0;
        windows_epoch(&w, epoch);
        count_places(&w, &b, count);
        for (int64_t i = 0; i < s.n; i++) {
            ck_assert_int_le(count[i], 1);
            learned += count[i], all[i] += count[i];
        }
        ck_assert_int_eq(learned, (int)(w.batches * 3 * 8));
    }
    for (int64_t i = 1; i < s.n; i++) ck_assert_int_gt(all[i], 0);
    windows_epoch(&w, 1), windows_fill(&w, 2, &b);
    windows_epoch(&again, 4), windows_epoch(&again, 1), windows_fill(&again, 2, &c);
    ck_assert_int_eq(memcmp(b.tgt, c.tgt, 24 * sizeof *b.tgt), 0);
    windows_epoch(&again, 0), windows_fill(&again, 2, &c);
    ck_assert_int_ne(memcmp(b.tgt, c.tgt, 24 * sizeof *b.tgt), 0);
    batch_free(&b), batch_free(&c), windows_free(&w), windows_free(&again);
    stream_free(&s), remove_folder();
}

TEST(a_text_shorter_than_a_window_is_refused) {
    token_stream s;
    windows w;
    make_folder();
    fill_stream(&s, 300, 5, 9);
    ck_assert(!windows_new(&w, &s, 8, 3, false, 7, message));
    ck_assert_str_eq(message, "the text has only 7 tokens, and a training example takes 9 of them: "
                              "give more text, or a --max-len below 7");
    ck_assert(windows_new(&w, &s, 6, 3, false, 7, message) && w.n == 1 && w.rows == 1);
    windows_free(&w), stream_free(&s), remove_folder();
}

/* ---- a dataset ------------------------------------------------------------------------------- */

static running_options of_text(void) {
    return (running_options){ .text = path[0],
                              .eval_bytes = 20,
                              .marker = "--",
                              .tokens = wf_tokenizer_defaults(WF_BYTES),
                              .window = 4,
                              .rows = 2,
                              .seed = 3 };
}

static bool open_dataset(dataset *m, const running_options *o, char *why) {
    return dataset_open(m, &source_running, &(source_options){ .running = *o, .accum = 1 }, NULL,
                        why);
}

#define TEN_LINES "aaaaaaaaa\nbbbbbbbbb\nccccccccc\n--\nddddddddd\neeeeeeeee\n"

/* The held-out text is the end, from the start of a line on, and at most a tenth of the whole. */
TEST(the_end_is_held_back) {
    dataset m;
    make_folder();
    running_options o = of_text();
    write_file(0, TEXT(TEN_LINES TEN_LINES TEN_LINES TEN_LINES));
    ck_assert_msg(open_dataset(&m, &o, message), "%s", message);
    ck_assert(m.stream[LEARNED].bytes == 180 && m.stream[HELD].bytes == 20 && dataset_holds(&m));
    ck_assert(m.stream[LEARNED].documents == 4 && m.stream[HELD].documents == 1);
    ck_assert_int_eq(m.stream[LEARNED].n, 180 + 5);
    dataset_free(&m);
    o.eval_bytes = 0;
    ck_assert(open_dataset(&m, &o, message) && !dataset_holds(&m));
    dataset_free(&m);
    o.eval = path[1];
    write_file(1, TEXT("xyzxyz\n"));
    ck_assert(open_dataset(&m, &o, message) && m.stream[HELD].bytes == 7);
    ck_assert_int_eq(m.stream[LEARNED].bytes, 200);
    dataset_free(&m), remove_folder();
}

TEST(what_cannot_be_read_is_said) {
    dataset m;
    make_folder();
    running_options o = of_text();
    o.text = "/nowhere";
    ck_assert(!open_dataset(&m, &o, message));
    ck_assert_str_eq(message, "/nowhere can't be read: No such file or directory");
    dataset_free(&m);
    o = of_text(), write_file(0, TEXT(""));
    ck_assert(!open_dataset(&m, &o, message));
    ck_assert_ptr_nonnull(strstr(message, "a.txt is empty"));
    dataset_free(&m);
    write_file(0, TEXT("good text\nbad \xff text\nand so on and on and on\n"));
    o.tokens = wf_tokenizer_defaults(WF_TEXT_CHARACTERS), o.eval_bytes = 0;
    ck_assert(!open_dataset(&m, &o, message));
    ck_assert_ptr_nonnull(strstr(message, "a.txt: line 2: not UTF-8 at byte 4"));
    dataset_free(&m), remove_folder();
}
