/* tests/fuzz/fuzz_shortlist.c - any bytes as a lexical shortlist: refused with a sentence, or its
 * candidates are ascending tokens of the vocabulary.
 *
 * The first byte chooses the vocabularies, and whether the checksum is made right; the second says
 * how many source tokens follow, a byte each; the rest is the file. */
#include "fuzz.h"
#include "models/model_internal.h"
#include "tests/support/shortlists.h"

FUZZ_TARGET(shortlist) {
    enum { MOST = 300 };
    if (size < 2 || size - 2 < data[1]) return 0;
    int64_t vocab = 1 + (data[0] >> 2) * 4, n = data[1];
    int32_t src[256], ids[MOST];
    char message[256] = "";
    size_t bytes = size - 2 - data[1];
    uint8_t *file = malloc(bytes + 1);
    fuzz_must(file);
    memcpy(file, data + 2 + n, bytes);
    if ((data[0] & 1) && bytes >= 16) seal_shortlist(file, bytes);
    for (int64_t i = 0; i < n; i++) src[i] = data[2 + i];
    wf_shortlist *l = wf_shortlist_read(file, bytes, vocab, vocab, data[0] & 2, message);
    free(file);
    if (!l) fuzz_must_say(message);
    int64_t count = wf_shortlist_candidates(l, src, n, ids, MOST);
    for (int64_t i = 0; i < count; i++) {
        fuzz_must(ids[i] >= 0 && ids[i] < vocab);
        fuzz_must(i == 0 || ids[i] > ids[i - 1]);
    }
    fuzz_must(count <= vocab);
    wf_shortlist_free(l);
    return 0;
}
