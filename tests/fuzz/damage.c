/* tests/fuzz/damage.c - runs a fuzz target on every truncation of each file, and on N copies with
 * one bit flipped: damage N FILE... See run.sh --damage. */
#include "core/base/random.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Copies the bytes into a block of exactly their size, so that a sanitizer sees a read behind
 * it. */
static void run(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    fuzz_must(copy);
    if (size) memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void damage(uint8_t *data, size_t size, int flips) {
    for (size_t n = 0; n <= size; n++) run(data, n);
    for (int i = 0; size && i < flips; i++) {
        size_t bit = wf_mix64((uint64_t)i) % (8 * size);
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        run(data, size);
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

int main(int argc, char **argv) {
    enum { MOST = 1 << 24 };
    static uint8_t data[MOST];
    for (int i = 2; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        size_t size = f ? fread(data, 1, MOST, f) : 0;
        if (!f || fclose(f) != 0 || size == MOST) return perror(argv[i]), 2;
        damage(data, size, atoi(argv[1]));
        printf("%s: %zu truncations, %s flips\n", argv[i], size, argv[1]);
    }
    return 0;
}
