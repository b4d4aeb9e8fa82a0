/* tests/models/tokenizer_peer.c - tokens of texts on stdin, for tokenizer_peer.py, which compares
 * them with those of the library tokenizers.
 *
 *     tokenizer_peer FILE.json            the tokens of each text, and what they decode to
 *     tokenizer_peer FILE.json --time     seconds to load the file, and to encode all texts
 *
 * Numbers have 32 bits, low byte first. The input is a sequence of texts, each a length and its
 * bytes; -1 comes before the two texts of a pair, -2 before a text that gets no special tokens. An
 * answer is the number of tokens; the id, type, begin and end of each; and the decoded text with
 * and without special tokens. A number below 0 is followed by an error message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "models/json_tokenizer.h"

enum { MESSAGE = 256, MOST = 1 << 22 };

static wf_json_token tokens[MOST];
static int32_t ids[MOST];
static char decoded[1 << 26];

static char *read_all(FILE *f, size_t *bytes) {
    size_t capacity = 1 << 16;
    char *text = malloc(capacity);
    *bytes = 0;
    for (size_t n; text && (n = fread(text + *bytes, 1, capacity - *bytes, f)) > 0;) {
        *bytes += n;
        if (*bytes == capacity) text = realloc(text, capacity *= 2);
    }
    return text;
}

static void put_number(int32_t n) {
    fwrite(&n, sizeof n, 1, stdout);
}

static void put_text(const char *text, size_t bytes) {
    put_number((int32_t)bytes);
    fwrite(text, 1, bytes, stdout);
}

static void put_decoded(wf_json_tokenizer *t, int64_t n, bool skip) {
    char message[MESSAGE];
    int64_t bytes = wf_json_tokenizer_decode(t, ids, n, skip, decoded, sizeof decoded, message);
    if (bytes < 0 || bytes >= (int64_t)sizeof decoded) bytes = 0;
    put_text(decoded, (size_t)bytes);
}

typedef struct text {
    const char *at;
    size_t bytes;
} text;

static int32_t number(text *from) {
    int32_t n;
    memcpy(&n, from->at, sizeof n);
    from->at += sizeof n;
    from->bytes -= sizeof n;
    return n;
}

static text next_text(text *from, int32_t bytes) {
    text t = { from->at, (size_t)bytes };
    from->at += t.bytes;
    from->bytes -= t.bytes;
    return t;
}

static int64_t encode(wf_json_tokenizer *t, text *from, char *message) {
    int32_t n = number(from);
    bool special = n != -2;
    if (n == -2) n = number(from);
    bool pair = n < 0;
    text a = next_text(from, pair ? number(from) : n), b = { NULL, 0 };
    if (pair) b = next_text(from, number(from));
    return wf_json_tokenizer_encode(t, a.at, a.bytes, b.at, b.bytes, special, tokens, MOST,
                                    message);
}

static void answer(wf_json_tokenizer *t, text *from) {
    char message[MESSAGE] = "";
    int64_t n = encode(t, from, message);
    put_number((int32_t)n);
    if (n < 0) {
        put_text(message, strlen(message));
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        ids[i] = tokens[i].id;
        put_number(tokens[i].id);
        put_number(tokens[i].type);
        put_number((int32_t)tokens[i].begin);
        put_number((int32_t)tokens[i].end);
    }
    put_decoded(t, n, false);
    put_decoded(t, n, true);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv) {
    char message[MESSAGE] = "";
    size_t bytes;
    FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
    char *json = f ? read_all(f, &bytes) : NULL;
    double start = seconds();
    wf_json_tokenizer *t = wf_json_tokenizer_load(json, json ? bytes : 0, message);
    double loaded = seconds();
    if (!t) {
        fprintf(stderr, "tokenizer_peer: %s\n", message);
        return 1;
    }
    text from = { read_all(stdin, &bytes), 0 };
    from.bytes = bytes;
    char *begin = (char *)from.at;
    if (argc > 2) {
        double began = seconds();
        while (from.bytes) encode(t, &from, message);
        printf("%.6f %.6f\n", loaded - start, seconds() - began);
    }
    while (from.bytes) answer(t, &from);
    wf_json_tokenizer_free(t);
    free(begin), free(json), fclose(f);
    return 0;
}
