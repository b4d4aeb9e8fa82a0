/* tests/fuzz/test_fuzz.c - every input in fuzz/corpus/ through its fuzz target, without a fuzzer:
 * seeds, and what was once found. fuzz/run.sh looks for more. */
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
    ROW(codes) ROW(spm) ROW(hf) ROW(text) ROW(json) ROW(settings) ROW(pairs) ROW(metrics)

#define DECLARE(name) int fuzz_##name(const uint8_t *data, size_t size);
TARGETS(DECLARE)

static const struct {
    const char *name;
    int (*run)(const uint8_t *data, size_t size);
} targets[] = {
#define TARGET(name) { #name, fuzz_##name },
    TARGETS(TARGET)
};

/* In memory of just its size, so that a sanitizer sees a step beyond. */
static void replay(int target, const char *path) {
    size_t bytes;
    char *text = file_text(path, &bytes);
    uint8_t *data = malloc(bytes ? bytes : 1);
    ck_assert_ptr_nonnull(data);
    memcpy(data, text, bytes);
    for (size_t n = bytes; n + 8 > bytes; n--) { /* and without its last bytes */
        ck_assert_int_eq(targets[target].run(data, n), 0);
        if (!n) break;
    }
    free(text), free(data);
}

TEST_ROWS(the_corpus_holds, COUNT_OF(targets)) {
    char folder[512], path[1024];
    int count = 0;
    source_path("tests/fuzz/corpus/", folder, sizeof folder);
    strcat(folder, targets[_i].name);
    DIR *dir = opendir(folder);
    ck_assert_msg(dir != NULL, "%s", folder);
    for (struct dirent *e; (e = readdir(dir)); count += e->d_name[0] != '.') {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.') replay(_i, path);
    }
    closedir(dir);
    ck_assert_int_ge(count, 5);
}
