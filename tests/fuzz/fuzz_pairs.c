/* tests/fuzz/fuzz_pairs.c - any bytes as a file of pairs (source TAB target): refused with a
 * message, or its lines are valid text. The same pairs are read from two files, one for each side,
 * and are unchanged in the corpus. The first byte chooses the corpus's limits. */
#include "fuzz.h"
#include "models/text.h"
#include "models/text_internal.h"
#include "tools/data/corpus.h"

#define BYTE_ORDER_MARK "\xEF\xBB\xBF" /* a reader drops one at the start of a file */

typedef struct side {
    char *text;
    size_t size;
} side;

/* Bytes are ids. */
static int64_t encode(void *user, const char *line, size_t bytes, int32_t *ids, int64_t capacity,
                      char *message) {
    (void)user, (void)message;
    for (size_t i = 0; i < bytes && (int64_t)i < capacity; i++) ids[i] = (unsigned char)line[i];
    return (int64_t)bytes;
}

static void append(side *s, const char *text, size_t bytes) {
    memcpy(s->text + s->size, text, bytes);
    s->size += bytes;
    s->text[s->size++] = '\n';
}

/* Reads the pairs, and appends their texts to the files of both sides. Returns the number of pairs;
 * -1 if they are refused, or if a text ends with '\r', which would end a line in a side's file. */
static int64_t take_apart(const char *path, side sides[2]) {
    bool other = false;
    pair_lines p;
    char message[256] = "";
    int64_t pairs = 0;
    fuzz_must(pairs_open(&p, path, NULL, message));
    for (; pairs_next(&p, message); pairs++)
        for (int i = 0; i < 2; i++) {
            fuzz_must(p.bytes[i] > 0 && wf_text_check(p.text[i], p.bytes[i], NULL));
            fuzz_must(!memchr(p.text[i], '\t', p.bytes[i]) && !memchr(p.text[i], '\n', p.bytes[i]));
            other |= p.text[i][p.bytes[i] - 1] == '\r';
            append(&sides[i], p.text[i], p.bytes[i]);
        }
    fuzz_must(p.failed || p.number == pairs);
    if (p.failed) fuzz_must_say(message);
    bool failed = p.failed;
    pairs_close(&p);
    return failed || other ? -1 : pairs;
}

/* Reads the pairs from a file of sources and a file of targets: the texts must be the same as from
 * one file with TABs. */
static void put_together(const side sides[2], int64_t pairs) {
    char path[2][32], message[256] = "";
    int file[2];
    pair_lines p;
    const char *line, *at[2];
    size_t bytes;
    for (int i = 0; i < 2; i++)
        file[i] = fuzz_file(sides[i].text, sides[i].size, path[i]), at[i] = sides[i].text + 3;
    fuzz_must(pairs_open(&p, path[0], path[1], message));
    pairs_reader reader = { .pairs = &p, .side = { true, true }, .message = message };
    for (int64_t i = 0; i < 2 * pairs; i++) {
        fuzz_must(pairs_line(&reader, &line, &bytes) == 1);
        fuzz_must(memcmp(line, at[i % 2], bytes) == 0 && at[i % 2][bytes] == '\n');
        at[i % 2] += bytes + 1;
    }
    fuzz_must(pairs_line(&reader, &line, &bytes) == 0);
    pairs_close(&p);
    for (int i = 0; i < 2; i++) fuzz_unfile(file[i]);
}

static void kept(const char *path, uint8_t choice, const side sides[2], int64_t pairs) {
    text_encoder e = { encode, NULL, choice & 1 ? 256 : 1 << 17, 0 };
    corpus_limits limits = { .tokens = { 1 + (choice >> 1) % 64, 60 }, .in_memory = 4096 };
    pair_lines p;
    corpus c;
    int32_t ids[64];
    char message[256] = "";
    int64_t line = 1, at = 0;
    const char *text[2] = { sides[0].text + 3, sides[1].text + 3 };
    fuzz_must(corpus_new(&c, (text_encoder[2]){ e, e }, &limits, message));
    fuzz_must(pairs_open(&p, path, NULL, message));
    bool ok = corpus_read(&c, &p, message);
    if (!ok) fuzz_must_say(message);
    fuzz_must(ok == (c.pairs > 0) && c.pairs + c.too_long == pairs);
    for (; ok && line <= pairs; line++) {
        bool here = at < c.pairs && corpus_at(&c, at)->line == line;
        for (int i = 0; i < 2; i++) {
            size_t n = (size_t)(strchr(text[i], '\n') - text[i]);
            if (here) {
                fuzz_must(n <= (size_t)limits.tokens[i] && corpus_at(&c, at)->length[i] == (int)n);
                corpus_ids(&c, at, i, ids);
                for (size_t k = 0; k < n; k++) fuzz_must(ids[k] == (unsigned char)text[i][k]);
            }
            text[i] += n + 1;
        }
        at += here;
    }
    fuzz_must(!ok || at == c.pairs);
    pairs_close(&p);
    corpus_free(&c);
}

FUZZ_TARGET(pairs) {
    if (!size) return 0;
    char path[32];
    side sides[2];
    int file = fuzz_file(data + 1, size - 1, path);
    for (int i = 0; i < 2; i++) {
        sides[i] = (side){ malloc(2 * size + 8), 3 };
        fuzz_must(sides[i].text);
        memcpy(sides[i].text, BYTE_ORDER_MARK, 3);
    }
    int64_t pairs = take_apart(path, sides);
    for (int i = 0; i < 2; i++) sides[i].text[sides[i].size] = '\0';
    if (pairs > 0) put_together(sides, pairs), kept(path, data[0], sides, pairs);
    for (int i = 0; i < 2; i++) free(sides[i].text);
    fuzz_unfile(file);
    return 0;
}
