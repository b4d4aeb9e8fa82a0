/* tests/models/text_files.h - a temporary folder for one test, in which the tested code may leave
 * no other files. */
#ifndef WEFT_TESTS_MODELS_TEXT_FILES_H
#define WEFT_TESTS_MODELS_TEXT_FILES_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/support.h"

static char message[256], folder[] = "/tmp/weft-corpus-XXXXXX", path[3][64];

static inline void make_folder(void) {
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (int i = 0; i < 3; i++) snprintf(path[i], sizeof path[i], "%s/%c.txt", folder, "abc"[i]);
    ck_assert_int_eq(setenv("TMPDIR", folder, 1), 0);
}

/* Removes the test's files and the folder, which fails if any other file was left in it. */
static inline void remove_folder(void) {
    unlink(path[0]), unlink(path[1]), unlink(path[2]);
    ck_assert_msg(rmdir(folder) == 0, "something is left in %s", folder);
}

static inline void write_file(int i, const char *text, size_t n) {
    FILE *f = fopen(path[i], "wb");
    ck_assert(f && fwrite(text, 1, n, f) == n && fclose(f) == 0);
}

#define TEXT(literal) literal, sizeof(literal) - 1

#endif
