/* tests/models/texts.c - tokenizers from strings and files; see texts.h. */
#include "texts.h"

#include <stdio.h>

#include "tests/support/support.h"

int next_of(void *from, const char **line, size_t *bytes) {
    lines *l = from;
    if (!*l->rest) return 0;
    const char *end = strchr(l->rest, '\n');
    *line = l->rest;
    *bytes = end ? (size_t)(end - l->rest) + 1 : strlen(l->rest);
    l->rest += *bytes;
    return 1;
}

wf_tokenizer *learn(const wf_tokenizer_options *o, const char *text) {
    char message[MESSAGE] = "";
    wf_tokenizer *t = wf_tokenizer_learn(o, next_of, &(lines){ text }, message);
    ck_assert_msg(t != NULL, "%s", message);
    return t;
}

wf_tokenizer *learn_kind(wf_token_kind kind, const char *text) {
    wf_tokenizer_options o = wf_tokenizer_defaults(kind);
    return learn(&o, text);
}

bool learn_fails(const wf_tokenizer_options *o, const char *text, char *message) {
    wf_tokenizer *t = wf_tokenizer_learn(o, next_of, &(lines){ text }, message);
    wf_tokenizer_free(t);
    return !t;
}

enum { IDS = 1 << 12, TEXT = 1 << 16 };

static int64_t encode(wf_tokenizer *t, const char *line, int32_t *ids) {
    char message[MESSAGE] = "";
    int64_t n = wf_tokenizer_encode(t, line, strlen(line), ids, IDS, message);
    ck_assert_msg(n >= 0 && n <= IDS, "%s", message);
    return n;
}

const char *pieces_of(wf_tokenizer *t, const char *line) {
    static char text[TEXT];
    int32_t ids[IDS];
    int64_t n = encode(t, line, ids);
    size_t at = 0;
    text[0] = '\0';
    for (int64_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, TEXT - at, "%s%s", i ? " " : "",
                               wf_tokenizer_piece(t, ids[i]));
    return text;
}

const char *there_and_back(wf_tokenizer *t, const char *line) {
    static char text[TEXT];
    int32_t ids[IDS];
    int64_t n = encode(t, line, ids), length = wf_tokenizer_decode(t, ids, n, text, TEXT);
    ck_assert_int_eq(length, (int64_t)strlen(text));
    return text;
}

char *text_of(const wf_tokenizer *t, size_t (*write)(const wf_tokenizer *, char *, size_t)) {
    size_t n = write(t, NULL, 0);
    char *text = malloc(n + 1);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(write(t, text, n + 1), n);
    ck_assert_uint_eq(strlen(text), n);
    return text;
}

char *file_text(const char *path, size_t *bytes) {
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s", path);
    char *text = malloc(1 << 20);
    ck_assert_ptr_nonnull(text);
    *bytes = fread(text, 1, (1 << 20) - 1, f);
    ck_assert_msg(feof(f), "%s is too long", path);
    fclose(f);
    text[*bytes] = '\0';
    return text;
}

char *data_text(const char *name, size_t *bytes) {
    char path[512];
    snprintf(path, sizeof path, WEFT_TEST_DATA "/%s", name);
    return file_text(path, bytes);
}
