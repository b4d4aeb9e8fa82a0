/* tests/fuzz/judge_file.h - what must hold of a file of tensors, whatever its bytes were: refused
 * with a sentence, or every entry is within the data, of the length that its shape says, and found
 * again by its name. */
#ifndef WEFT_TESTS_FUZZ_JUDGE_FILE_H
#define WEFT_TESTS_FUZZ_JUDGE_FILE_H

#include "core/file.h"
#include "fuzz.h"

static inline uint64_t sum(const void *data, size_t bytes) {
    uint64_t s = 0;
    for (size_t i = 0; i < bytes; i++) s += ((const unsigned char *)data)[i];
    return s;
}

/* Reads all bytes of an entry, so that a sanitizer sees those that are outside the file. */
static inline void look_at(const wf_file *f, const wf_entry *e, size_t size) {
    fuzz_must(e && e->name && e->dtype && e->ndim >= 0 && e->ndim <= WF_MAX_DIMS);
    fuzz_must(e->bytes <= size && wf_file_find(f, e->name) == e);
    int64_t count = 1;
    for (int i = 0; i < e->ndim; i++) {
        fuzz_must(e->shape[i] >= 0);
        if (!e->shape[i]) count = 0;
    }
    for (int i = 0; i < e->ndim && count; i++) count *= e->shape[i];
    fuzz_must((count == 0) == (e->bytes == 0));
    if (strcmp(e->dtype, "F32") == 0) fuzz_must((uint64_t)count * 4 == e->bytes);
    fuzz_must(sum(e->data, e->bytes) <= 255 * (uint64_t)e->bytes);
}

static inline void judge_file(const wf_file *f, size_t size) {
    fuzz_must(f);
    int n = wf_file_count(f), n_meta = wf_file_meta_count(f);
    if (wf_file_ok(f))
        fuzz_must(!*wf_file_error(f));
    else
        fuzz_must_say(wf_file_error(f));
    fuzz_must(wf_file_ok(f) || (n == 0 && n_meta == 0));
    for (int i = 0; i < n; i++) look_at(f, wf_file_at(f, i), size);
    for (int i = 0; i < n_meta; i++) {
        wf_meta pair = wf_file_meta_at(f, i);
        fuzz_must(pair.key && pair.value && wf_file_meta(f, pair.key) == pair.value);
    }
}

#endif
