/* tests/tools/test_corpus.c - lines encoded to ids and put into batches: pairs that are kept and
 * pairs that are too long, and the order of the batches, which depends on seed and epoch alone.
 *
 * The encoder of these tests gives a byte its value as an id, and leaves out '~', so that a line
 * may have no tokens. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "core/base/random.h"
#include "tests/models/text_files.h"
#include "tests/suites.h"
#include "tests/support/faults.h"
#include "tools/data/batches.h"

#include <signal.h>
#include <sys/resource.h>

TESTS(corpus)

/* ---- the corpus ------------------------------------------------------------------------------ */

static int64_t encode_bytes(void *user, const char *line, size_t bytes, int32_t *ids,
                            int64_t capacity, char *why) {
    int64_t n = 0;
    int32_t shift = *(const int32_t *)user;
    for (size_t i = 0; i < bytes; i++) {
        if (line[i] == '^') return snprintf(why, 256, "a caret"), -1;
        if (line[i] == '~') continue;
        if (n < capacity) ids[n] = shift + (unsigned char)line[i];
        n++;
    }
    return n;
}

/* An offset that is added to ids: with it an id takes four bytes, without it two. */
enum { FAR = 100000 };
static int32_t no_shift = 0, far_shift = FAR;

static void new_corpus(corpus *c, int32_t *shift, int64_t most, size_t in_memory) {
    text_encoder e = { encode_bytes, shift, *shift + 256, 0 };
    corpus_limits limits = { .tokens = { most, most }, .in_memory = in_memory };
    ck_assert_msg(corpus_new(c, (text_encoder[]){ e, e }, &limits, message), "%s", message);
}

/* Makes pair i of a corpus: two lines of 1 to 20 letters. */
static void make_pair(int64_t i, char text[2][32], size_t bytes[2]) {
    for (int side = 0; side < 2; side++) {
        bytes[side] = 1 + (size_t)(number(11, (uint64_t)(2 * i + side)) * 20);
        for (size_t k = 0; k < bytes[side]; k++)
            text[side][k] = (char)('a' + (int)(number(12, (uint64_t)(i * 64) + k) * 26));
    }
}

static void fill_corpus(corpus *c, int64_t n, int32_t *shift, size_t in_memory) {
    char text[2][32];
    size_t bytes[2];
    new_corpus(c, shift, 32, in_memory);
    for (int64_t i = 0; i < n; i++) {
        make_pair(i, text, bytes);
        ck_assert_msg(corpus_add(c, (const char *[]){ text[0], text[1] }, bytes, i + 1, message),
                      "%s", message);
    }
    ck_assert_msg(corpus_seal(c, message), "%s", message);
}

/* Ids that are stored in memory or in a mapped file, with two or four bytes each, are read back. */
TEST_ROWS(what_is_kept_comes_back, 4) {
    int32_t *shift = _i % 2 ? &far_shift : &no_shift;
    size_t in_memory = _i / 2 ? 1 : 0;
    corpus c;
    int64_t n = 5000, total[2] = { 0 };
    char text[2][32];
    size_t bytes[2];
    make_folder();
    fill_corpus(&c, n, shift, in_memory);
    ck_assert_int_eq(c.pairs, n);
    ck_assert_int_eq(c.id_bytes, _i % 2 ? 4 : 2);
    ck_assert_int_eq(c.tokens.file >= 0, in_memory == 1);
    ck_assert_int_eq(c.index.size, (size_t)n * 24);
    for (int64_t i = n - 1; i >= 0; i--) {
        make_pair(i, text, bytes);
        const corpus_pair *p = corpus_at(&c, i);
        ck_assert_int_eq(p->line, i + 1);
        for (int side = 0; side < 2; side++) {
            int32_t ids[32];
            ck_assert_int_eq(p->length[side], (int64_t)bytes[side]);
            corpus_ids(&c, i, side, ids);
            for (size_t k = 0; k < bytes[side]; k++)
                ck_assert_int_eq(ids[k], *shift + text[side][k]);
            total[side] += p->length[side];
        }
    }
    ck_assert(c.total[0] == total[0] && c.total[1] == total[1]);
    ck_assert(c.longest[0] == 20 && c.longest[1] == 20);
    corpus_free(&c);
    remove_folder();
}

static bool add_pair(corpus *c, const char *src, const char *tgt, int64_t line) {
    return corpus_add(c, (const char *[]){ src, tgt }, (size_t[]){ strlen(src), strlen(tgt) }, line,
                      message);
}

TEST(long_pairs_are_left_out) {
    corpus c;
    char text[128];
    new_corpus(&c, &no_shift, 4, 0);
    ck_assert(add_pair(&c, "abcd", "abcd", 1) && add_pair(&c, "abcde", "a", 2));
    ck_assert_str_eq(corpus_skipped(&c, text), "skipped 1 of 2 pairs: longer than 4 tokens");
    ck_assert(add_pair(&c, "a", "abcde", 3) && add_pair(&c, "a~~~~~b", "xy", 4));
    ck_assert(c.pairs == 2 && c.too_long == 2);
    ck_assert(corpus_seal(&c, message));
    ck_assert_int_eq(corpus_at(&c, 1)->line, 4);
    c.limits.tokens[1] = 9;
    ck_assert_str_eq(corpus_skipped(&c, text),
                     "skipped 2 of 4 pairs: longer than 4 source or 9 target tokens");
    c.too_long = 0;
    ck_assert_str_eq(corpus_skipped(&c, text), "");
    corpus_free(&c);

    new_corpus(&c, &no_shift, 4, 0);
    ck_assert(add_pair(&c, "abcde", "abcde", 1) && !corpus_seal(&c, message));
    assert_contains(message, "more than 4 source or 4 target tokens: raise --max-len");
    corpus_free(&c);
    new_corpus(&c, &no_shift, 4, 0);
    ck_assert(!add_pair(&c, "a", "~~", 7));
    ck_assert_str_eq(message, "line 7: the target: no tokens in it: take the pair out");
    ck_assert(!add_pair(&c, "a^", "b", 8));
    ck_assert_str_eq(message, "line 8: the source: a caret");
    pair_lines p = { .path = { "both" }, .text = { "a", "~" }, .bytes = { 1, 1 }, .number = 9 };
    ck_assert(!corpus_take(&c, &p, message));
    ck_assert_str_eq(message, "both: line 9: the target: no tokens in it: take the pair out");
    c.limits.targets = true; /* targets alone are lines, not pairs */
    ck_assert(!add_pair(&c, "", "~~", 7));
    ck_assert_str_eq(message, "line 7: the target: no tokens in it: take the line out");
    ck_assert(!corpus_seal(&c, message));
    ck_assert_str_eq(message, "there are no pairs");
    corpus_free(&c);
}

TEST(a_corpus_of_files) {
    corpus c;
    pair_lines p;
    make_folder();
    write_file(0, TEXT("one\ntwo\nlonger than eight\nthree\n"));
    write_file(1, TEXT("eins\nzwei\nx\ndrei\n"));
    new_corpus(&c, &no_shift, 8, 0);
    ck_assert(pairs_open(&p, path[0], path[1], message) && corpus_read(&c, &p, message));
    ck_assert(c.pairs == 3 && c.too_long == 1 && corpus_at(&c, 2)->line == 4);
    pairs_close(&p), corpus_free(&c);
    write_file(1, TEXT("eins\n~\nx\ndrei\n"));
    new_corpus(&c, &no_shift, 8, 0);
    ck_assert(pairs_open(&p, path[0], path[1], message) && !corpus_read(&c, &p, message));
    assert_contains(message, "b.txt: line 2: the target: no tokens in it");
    pairs_close(&p), corpus_free(&c);
    write_file(1, TEXT("eins\nzwei\n"));
    new_corpus(&c, &no_shift, 8, 0);
    ck_assert(pairs_open(&p, path[0], path[1], message) && !corpus_read(&c, &p, message));
    assert_contains(message, "has 4 lines and");
    pairs_close(&p), corpus_free(&c);
    remove_folder();
}

TEST(a_folder_that_is_not_there) {
    corpus c;
    bool ok = true;
    ck_assert_int_eq(setenv("TMPDIR", "/nowhere", 1), 0);
    new_corpus(&c, &no_shift, 100, 1);
    for (int64_t i = 0; i < 10000 && ok; i++) ok = add_pair(&c, "some text", "and more", i);
    ck_assert(!ok);
    assert_contains(message, "no temporary file in /nowhere: No such file or directory; TMPDIR");
    corpus_free(&c);
}

static bool append(store *s, size_t n) {
    static const char bytes[100000];
    return store_append(s, bytes, n, message);
}

/* Pieces that are smaller and larger than the store's buffer of 6,000 bytes are read back. The
 * buffer overflows into a temporary file: in /tmp, since TMPDIR is not set or empty, or in
 * TMPDIR. */
TEST_ROWS(a_store_holds_what_it_is_given, 3) {
    static const size_t sizes[] = { 1, 4095, 1, 5000, 0, 100000, 3, 4096, 8192, 7 };
    store s;
    char byte = 0;
    size_t n = 0;
    make_folder();
    ck_assert_int_eq(_i == 0 ? unsetenv("TMPDIR") : _i == 1 ? setenv("TMPDIR", "", 1) : 0, 0);
    store_new(&s, 6000);
    for (int i = 0; i < COUNT_OF(sizes); i++, n++, byte++) {
        ck_assert(append(&s, sizes[i]) && store_append(&s, &byte, 1, message));
        n += sizes[i];
        ck_assert_int_eq(s.size, n + 1);
    }
    ck_assert(s.file >= 0 && store_seal(&s, message));
    n = 0;
    for (int i = 0; i < COUNT_OF(sizes); i++, n++) {
        n += sizes[i];
        ck_assert_int_eq(s.data[n], i);
    }
    store_free(&s), store_free(&s);
    remove_folder();
}

/* A full disk is reported, whether it is met by appended data or by data that were still in
 * memory. */
TEST(a_store_says_that_its_file_is_full) {
    struct rlimit old, limit;
    store s;
    make_folder();
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    for (rlim_t room = 0; room < 20000; room += 3000) {
        limit = old, limit.rlim_cur = room;
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
        store_new(&s, 4096);
        bool ok = append(&s, 3000) && append(&s, 3000) && append(&s, 9000) && append(&s, 3000) &&
                  store_seal(&s, message);
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
        ck_assert_int_eq(ok, room >= 18000);
        if (!ok) assert_contains(message, "the temporary file can't be written in /tmp/weft-");
        store_free(&s);
    }
    char far[5000];
    memset(far, 'f', sizeof far - 1), far[sizeof far - 1] = '\0';
    ck_assert_int_eq(setenv("TMPDIR", far, 1), 0);
    store_new(&s, 4096);
    ck_assert(append(&s, 4000) && !append(&s, 4000));
    assert_contains(message, "no temporary file in fff");
    store_free(&s);
    remove_folder();
}

/* Random bytes with many newlines and TABs are read as a corpus, or refused with one message. */
TEST(any_bytes_are_read_or_refused) {
    static const char common[] = "abc \t\t\n\r\xC3\xA9";
    int read = 0;
    make_folder();
    for (uint64_t k = 0; k < 400; k++) {
        char text[200];
        size_t n = (size_t)(number(k, 999) * (k % 2 ? 8 : sizeof text));
        for (size_t i = 0; i < n; i++) {
            double u = number(k, i);
            text[i] = u < 0.97 ? common[(int)(u / 0.97 * (sizeof common - 1))] : (char)(u * 25600);
        }
        if (k % 4 == 1) n = (size_t)snprintf(text, sizeof text, "%c\t%c", 'a' + (int)k % 26, 'b');
        write_file(0, text, n);
        corpus c;
        pair_lines p;
        message[0] = '\0';
        new_corpus(&c, &no_shift, 50, 1);
        ck_assert(pairs_open(&p, path[0], NULL, message));
        bool ok = corpus_read(&c, &p, message);
        read += ok;
        ck_assert(ok ? c.pairs > 0 : message[0] && !strchr(message, '\n'));
        pairs_close(&p), corpus_free(&c);
    }
    ck_assert(read > 90 && read < 400);
    remove_folder();
}

/* ---- batches --------------------------------------------------------------------------------- */

enum { PAIRS = 1200 };
static const batch_ids ids = { .start = 300, .end = 301, .pad = 302 };

static const batches_limits limits_of[] = {
    { .sentences = 32, .shuffle = true, .seed = 5 },
    { .tokens = 400, .shuffle = true, .seed = 5 },
    { .sentences = 7, .tokens = 150, .shuffle = true, .seed = 9 },
    { .tokens = 41, .shuffle = true, .seed = 0 },
    { .sentences = 50 },
    { .shuffle = true },
};

/* Compares row `row` of a batch with a pair of the corpus. */
static void assert_row(const batch *out, const corpus *c, int64_t pair, int64_t row) {
    int32_t src[32], tgt[32];
    const corpus_pair *p = corpus_at(c, pair);
    corpus_ids(c, pair, 0, src), corpus_ids(c, pair, 1, tgt);
    int32_t n = p->length[0], m = p->length[1];
    ck_assert(out->src_length[row] == n && out->answer_length[row] == m);
    for (int32_t i = 0; i < out->S; i++)
        ck_assert_int_eq(out->src[row * out->S + i], i < n ? src[i] : ids.pad);
    for (int32_t i = 0; i < out->T; i++) {
        int32_t label = i < m ? tgt[i] : i == m ? ids.end : WF_IGNORE_LABEL;
        int32_t input = i == 0 ? ids.start : i <= m ? tgt[i - 1] : ids.pad;
        ck_assert_int_eq(out->labels[row * out->T + i], label);
        ck_assert_int_eq(out->tgt[row * out->T + i], input);
        if (i < out->T - 1)
            ck_assert_int_eq(out->answer[row * (out->T - 1) + i], i < m ? tgt[i] : ids.pad);
    }
}

TEST_ROWS(an_epoch_has_every_pair_once, COUNT_OF(limits_of)) {
    const batches_limits *limits = &limits_of[_i];
    corpus c;
    batches b;
    batch out = { 0 };
    fill_corpus(&c, PAIRS, &no_shift, 0);
    ck_assert_msg(batches_new(&b, &c, limits, message), "%s", message);
    int64_t B[2], S[2], T[2], n = b.n, most[2] = { 0, 0 };
    for (int side = 0; side < 2; side++) batches_largest(&b, side, &B[side], &S[side], &T[side]);
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        int seen[PAIRS] = { 0 };
        batches_epoch(&b, epoch);
        ck_assert_int_eq(b.n, n);
        for (int64_t i = 0; i < b.n; i++) {
            ck_assert(batches_fill(&b, i, ids, &out));
            ck_assert(out.B == batches_rows(&b, i) && out.B > 0);
            ck_assert(out.B * out.S <= B[0] * S[0] && out.B * out.T <= B[1] * T[1]);
            ck_assert(!limits->sentences || out.B <= limits->sentences);
            ck_assert(!limits->tokens || out.B * (out.S + out.T) <= limits->tokens);
            int64_t longest_src = 0, longest_answer = 0;
            for (int64_t row = 0; row < out.B; row++) {
                seen[batches_pair(&b, i, row)]++;
                assert_row(&out, &c, batches_pair(&b, i, row), row);
                if (out.src_length[row] > longest_src) longest_src = out.src_length[row];
                if (out.answer_length[row] > longest_answer)
                    longest_answer = out.answer_length[row];
            }
            ck_assert(out.S == longest_src && out.T == longest_answer + 1);
            if (out.B * out.S > most[0]) most[0] = out.B * out.S;
            if (out.B * out.T > most[1]) most[1] = out.B * out.T;
        }
        for (int i = 0; i < PAIRS; i++) ck_assert_int_eq(seen[i], 1);
    }
    ck_assert_int_eq(most[0], B[0] * S[0]);
    ck_assert_int_eq(most[1], B[1] * T[1]);
    batch_free(&out), batches_free(&b), corpus_free(&c);
}

/* Batches of sentences of similar length have a few percent of padding. */
TEST(little_is_padding) {
    corpus c;
    batches b;
    batch out = { 0 };
    int64_t cells = 0;
    fill_corpus(&c, 20000, &no_shift, 0);
    ck_assert(batches_new(&b, &c, &(batches_limits){ .tokens = 2000 }, message));
    for (int64_t i = 0; i < b.n; i++) {
        ck_assert(batches_fill(&b, i, ids, &out));
        cells += out.B * (out.S + out.T);
    }
    double share = (double)(c.total[0] + c.total[1] + c.pairs) / (double)cells;
    ck_assert_msg(share > 0.95, "%.3f of the cells are tokens", share);
    batch_free(&out), batches_free(&b), corpus_free(&c);
}

static uint64_t hash_of_epoch(const batches *b) {
    uint64_t h = 0;
    for (int64_t i = 0; i < b->n; i++)
        for (int64_t row = 0; row < batches_rows(b, i); row++) {
            int64_t pair = batches_pair(b, i, row);
            h = wf_hash_bytes(h, &pair, sizeof pair);
        }
    return h;
}

/* The order of batches depends on seed and epoch alone. Its hash is recorded here, because a
 * resumed training relies on the same order. */
TEST(order_is_a_function_of_seed_and_epoch) {
    corpus c;
    batches b, again, other;
    batches_limits limits = limits_of[1], with_seed = limits_of[1];
    with_seed.seed++;
    make_folder();
    fill_corpus(&c, PAIRS, &no_shift, 0);
    ck_assert(batches_new(&b, &c, &limits, message) && batches_new(&again, &c, &limits, message) &&
              batches_new(&other, &c, &with_seed, message));
    uint64_t first = hash_of_epoch(&b), seen[6];
    ck_assert_msg(first == 0x3d6298abef0987fcu, "the order has changed: 0x%llxu",
                  (unsigned long long)first);
    for (int64_t epoch = 0; epoch < 6; epoch++) {
        batches_epoch(&b, epoch), batches_epoch(&other, epoch);
        seen[epoch] = hash_of_epoch(&b);
        ck_assert(seen[epoch] != hash_of_epoch(&other));
        for (int64_t k = 0; k < epoch; k++) ck_assert(seen[k] != seen[epoch]);
    }
    for (int64_t epoch = 5; epoch >= 0; epoch--) { /* backwards, and from a mapped corpus */
        batches_epoch(&again, epoch);
        ck_assert(hash_of_epoch(&again) == seen[epoch]);
    }
    corpus mapped;
    fill_corpus(&mapped, PAIRS, &no_shift, 1);
    batches_free(&other);
    ck_assert(batches_new(&other, &mapped, &limits, message));
    ck_assert(hash_of_epoch(&other) == first);
    batches_free(&b), batches_free(&again), batches_free(&other);
    corpus_free(&c), corpus_free(&mapped);
    remove_folder();
}

/* Without shuffling, batches are in the order of their lengths. With it they are not, and pairs of
 * the same lengths change places. */
TEST(shuffled_or_not) {
    corpus c;
    batches b;
    int64_t moved = 0, up = 0;
    fill_corpus(&c, PAIRS, &no_shift, 0);
    ck_assert(batches_new(&b, &c, &limits_of[4], message));
    for (int64_t i = 1; i < PAIRS; i++) {
        const corpus_pair *x = corpus_at(&c, b.order[i - 1]), *y = corpus_at(&c, b.order[i]);
        ck_assert_int_le(x->length[1], y->length[1]);
        if (x->length[1] == y->length[1] && x->length[1] % 2 == 0)
            ck_assert_int_le(x->length[0], y->length[0]);
        if (x->length[1] == y->length[1] && x->length[1] % 2 == 1)
            ck_assert_int_ge(x->length[0], y->length[0]);
    }
    uint64_t before = hash_of_epoch(&b);
    batches_epoch(&b, 1);
    ck_assert(hash_of_epoch(&b) == before);
    batches_free(&b);
    ck_assert(batches_new(&b, &c, &limits_of[0], message));
    for (int64_t i = 0; i < PAIRS; i++) {
        const corpus_pair *x = corpus_at(&c, b.sorted[i]), *y = corpus_at(&c, b.order[i]);
        ck_assert(x->length[0] == y->length[0] && x->length[1] == y->length[1]);
        moved += b.sorted[i] != b.order[i];
    }
    for (int64_t i = 1; i < b.n; i++) up += b.turn[i] > b.turn[i - 1];
    ck_assert(moved > PAIRS / 3 && up > b.n / 4 && up < 3 * b.n / 4);
    batches_free(&b), corpus_free(&c);
}

TEST(a_pair_that_no_batch_can_hold) {
    corpus c;
    batches b;
    new_corpus(&c, &no_shift, 50, 0);
    ck_assert(add_pair(&c, "abc", "abc", 1) && add_pair(&c, "abcdefghij", "abcdefghij", 9));
    ck_assert(corpus_seal(&c, message));
    ck_assert(batches_new(&b, &c, &(batches_limits){ .tokens = 21 }, message));
    batches_free(&b);
    ck_assert(!batches_new(&b, &c, &(batches_limits){ .tokens = 20 }, message));
    assert_contains(message, "the pair of line 9 takes 21 tokens and a batch at most 20");
    corpus huge = { .pairs = INT64_C(1) << 32 };
    ck_assert(!batches_new(&b, &huge, &(batches_limits){ .tokens = 0 }, message));
    ck_assert_str_eq(message, "more than 4294967295 pairs");
    corpus_free(&c);
}

/* ---- no memory ------------------------------------------------------------------------------- */

#define must(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition)) faults_pause(true), ck_abort_msg(__VA_ARGS__);                           \
    } while (0)

static bool fill_some(corpus *c) {
    char text[2][32];
    size_t bytes[2];
    for (int64_t i = 0; i < 400; i++) {
        make_pair(i, text, bytes);
        if (!corpus_add(c, (const char *[]){ text[0], text[1] }, bytes, i, message)) return false;
    }
    return corpus_seal(c, message);
}

static bool reading(size_t in_memory) {
    corpus c;
    text_encoder e = { encode_bytes, &no_shift, 256, 0 };
    corpus_limits limits = { .tokens = { 40, 40 }, .in_memory = in_memory };
    message[0] = '\0';
    if (!corpus_new(&c, (text_encoder[]){ e, e }, &limits, message)) return false;
    bool ok = fill_some(&c);
    must(ok || message[0], "no corpus and no message");
    corpus_free(&c);
    return ok;
}

static bool batching(void) {
    corpus c;
    batches b;
    batch out = { 0 };
    bool was = faults_pause(true);
    fill_corpus(&c, 300, &no_shift, 0);
    faults_pause(was);
    message[0] = '\0';
    bool ok = batches_new(&b, &c, &limits_of[1], message);
    must(ok || message[0], "no batches and no message");
    for (int64_t i = 0; ok && i < b.n; i++) ok = batches_fill(&b, i, ids, &out);
    was = faults_pause(true);
    must(!b.n || batches_fill(&b, 0, ids, &out), "a batch is not usable again");
    batch_free(&out), batches_free(&b), corpus_free(&c);
    faults_pause(was);
    return ok;
}

TEST_ROWS(every_failure_is_survived, 6) {
    make_folder();
    for (long at = 1;; at++) {
        long left;
        faults_begin(at, _i % 2);
        bool ok = _i / 2 == 2 ? batching() : reading(_i / 2 ? 1 : 0);
        long asked = faults_end(&left);
        ck_assert_msg(left == 0, "request %ld: %ld blocks leak", at, left);
        ck_assert_msg(ok == (asked < at), "request %ld of %ld", at, asked);
        if (ok) break;
        tally_note(TALLY_FAULTS, 0);
    }
    remove_folder();
}
