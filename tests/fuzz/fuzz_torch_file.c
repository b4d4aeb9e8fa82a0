/* tests/fuzz/fuzz_torch_file.c - any bytes as a file of torch.save's: refused with a sentence, or
 * entries that are within the data.
 *
 * The first byte says what the rest is: a whole file; a pickle, which is put into a valid ZIP
 * archive; or a state_dict's pickle and the storages behind it, which are put into the older
 * container. */
#include "core/file/crc32.h"
#include "core/file_internal.h"
#include "fuzz.h"
#include "judge_file.h"

typedef struct text {
    uint8_t *data;
    size_t size;
} text;

/* A buffer for n bytes of the input and the container around them. */
static text begin(size_t n) {
    text t = { malloc(n + 1024), 0 };
    fuzz_must(t.data);
    return t;
}

static void add(text *t, const void *data, size_t n) {
    if (n) memcpy(t->data + t->size, data, n);
    t->size += n;
}

static void add_number(text *t, uint64_t number, int n) {
    for (; n > 0; n--, number >>= 8) add(t, &(uint8_t){ (uint8_t)number }, 1);
}

/* The CRC-32. Its table is made once, because a target runs millions of times. */
static uint32_t sum_of(const uint8_t *data, size_t n) {
    static wf_crc32_table table;
    if (!table.of[0][1]) wf_crc32_fill(&table, WF_CRC32_ZIP);
    return ~wf_crc32(&table, UINT32_MAX, data, n);
}

/* A ZIP archive with the pickle as "a/data.pkl", and 24 bytes of data as "a/data/0". */
static text in_archive(const uint8_t *pickle, size_t size) {
    static const char *const names[] = { "a/data.pkl", "a/data/0" };
    static const uint8_t zeros[24];
    text t = begin(size), d = begin(0);
    for (int i = 0; i < 2; i++) {
        const uint8_t *data = i ? zeros : pickle;
        size_t n = i ? sizeof zeros : size, at = t.size, length = strlen(names[i]);
        add_number(&t, 0x04034B50, 8), add_number(&t, 0, 18), add_number(&t, length, 4);
        add(&t, names[i], length), add(&t, data, n);
        add_number(&d, 0x02014B50, 8), add_number(&d, 0, 8), add_number(&d, sum_of(data, n), 4);
        add_number(&d, n, 4), add_number(&d, n, 4), add_number(&d, length, 14);
        add_number(&d, at, 4), add(&d, names[i], length);
    }
    size_t directory = t.size;
    add(&t, d.data, d.size), add_number(&t, 0x06054B50, 8), add_number(&t, 2, 2);
    add_number(&t, 2, 2), add_number(&t, d.size, 4), add_number(&t, directory, 6);
    free(d.data);
    return t;
}

/* From the state_dict's pickle on. */
static text in_old_container(const uint8_t *pickles, size_t size) {
    static const char before[] = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
                                 "\x80\x02M\xe9\x03.\x80\x02}X\x0d\0\0\0little_endian\x88s.";
    text t = begin(size);
    add(&t, before, sizeof before - 1), add(&t, pickles, size);
    return t;
}

FUZZ_TARGET(torch_file) {
    if (!size) return 0;
    text t;
    switch (data[0] % 3) {
    case 0:
        t = begin(size);
        add(&t, data + 1, size - 1);
        break;
    case 1:
        t = in_archive(data + 1, size - 1);
        break;
    default:
        t = in_old_container(data + 1, size - 1);
    }
    t.data = realloc(t.data, t.size + !t.size); /* exactly: a sanitizer sees a step beyond */
    fuzz_must(t.data);
    wf_file *f = wf_file_parse(t.data, t.size);
    judge_file(f, t.size);
    wf_file_free(f), free(t.data);
    return 0;
}
