/* tests/fuzz/test_fuzz.c - runs each fuzz target on the inputs of its folder in fuzz/corpus/,
 * without a fuzzer: seeds, and inputs that once failed. fuzz/run.sh looks for more. */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <stdio.h>

#include "tests/models/texts.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(fuzz)

#define TARGETS(ROW)                                                                               \
    ROW(safetensors)                                                                               \
    ROW(model)                                                                                     \
    ROW(state_dict)                                                                                \
    ROW(torch_file)                                                                                \
    ROW(vocabulary)                                                                                \
    ROW(codes)                                                                                     \
    ROW(byte_level)                                                                                \
    ROW(spm)                                                                                       \
    ROW(tokenizer)                                                                                 \
    ROW(hf)                                                                                        \
    ROW(marian) ROW(text) ROW(json) ROW(settings) ROW(pairs) ROW(metrics) ROW(shortlist) ROW(links)

#define DECLARE(name) int fuzz_##name(const uint8_t *data, size_t size);
TARGETS(DECLARE)

static const struct {
    const char *name;
    int (*run)(const uint8_t *data, size_t size);
} targets[] = {
#define TARGET(name) { #name, fuzz_##name },
    TARGETS(TARGET)
};

/* Copies the bytes into a block of exactly their size, so that a sanitizer sees a read behind
 * it. */
static void run(int target, const char *text, size_t bytes) {
    uint8_t *data = malloc(bytes ? bytes : 1);
    ck_assert_ptr_nonnull(data);
    memcpy(data, text, bytes);
    ck_assert_int_eq(targets[target].run(data, bytes), 0);
    free(data);
}

static void replay(int target, const char *text, size_t bytes) {
    for (size_t n = bytes; n + 8 > bytes; n--) { /* and without its last bytes */
        run(target, text, n);
        if (!n) break;
    }
}

/* Runs the target on every truncation of an input, and on some copies with a flipped bit (run.sh
 * --damage flips more). */
static void damage(int target, char *text, size_t bytes) {
    static uint32_t random = 2018;
    for (size_t n = 0; n < bytes; n++) run(target, text, n);
    for (int i = 0; bytes && i < 800; i++) {
        random = random * 1664525 + 1013904223;
        size_t bit = random % (8 * bytes);
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        run(target, text, bytes);
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
    }
}

/* Runs the target on each file of its corpus. Returns the number of files. */
static int each(int target, bool damaged) {
    char folder[512], path[1024];
    int count = 0;
    size_t bytes;
    source_path("tests/fuzz/corpus/", folder, sizeof folder);
    strcat(folder, targets[target].name);
    DIR *dir = opendir(folder);
    ck_assert_msg(dir != NULL, "%s", folder);
    for (struct dirent *e; (e = readdir(dir));) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        char *text = file_text(path, &bytes);
        if (damaged)
            damage(target, text, bytes);
        else
            replay(target, text, bytes);
        free(text), count++;
    }
    closedir(dir);
    return count;
}

TEST_ROWS(the_corpus_holds, COUNT_OF(targets)) {
    ck_assert_int_ge(each(_i, false), 5);
}

TEST(damaged_texts_of_folders_hold) {
    for (int i = 0; i < COUNT_OF(targets); i++)
        if (strcmp(targets[i].name, "hf") == 0) ck_assert_int_ge(each(i, true), 15);
}
