/* tests/fuzz/fuzz_links.c - any bytes as the word alignment of a pair of lines: refused with a
 * message, or its links are within the pair, and are the same after they were written and read
 * again.
 *
 * The first two bytes are the numbers of words; the rest is the line. */
#include "fuzz.h"
#include "tools/alignment/links.h"

FUZZ_TARGET(links) {
    if (size < 2) return 0;
    const int64_t words[] = { data[0], data[1] };
    const char *line = (const char *)data + 2;
    char message[256] = "";
    pair_links l = { 0 }, again = { 0 };
    if (!links_read(&l, line, size - 2, words, message)) {
        fuzz_must_say(message);
        links_free(&l);
        return 0;
    }
    char *text = malloc((size_t)l.n * 32 + 1);
    size_t n = 0;
    fuzz_must(text);
    for (int64_t i = 0; i < l.n; i++) {
        fuzz_must(l.list[i].src >= 0 && l.list[i].src < words[0]);
        fuzz_must(l.list[i].tgt >= 0 && l.list[i].tgt < words[1]);
        n += (size_t)sprintf(text + n, "%d-%d ", (int)l.list[i].src, (int)l.list[i].tgt);
    }
    fuzz_must(links_read(&again, text, n, words, message) && again.n == l.n);
    fuzz_must(!l.n || memcmp(l.list, again.list, (size_t)l.n * sizeof *l.list) == 0);
    links_free(&l);
    links_free(&again);
    free(text);
    return 0;
}
