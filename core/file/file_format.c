/* core/file/file_format.c - dtypes, checksum and messages of safetensors files; see
 * file_format.h. */
#include "file_format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/random.h"
#include "core/op.h"

int wf_file_dtype(const char **name) {
    static const struct {
        char name[12];
        int bits;
    } dtypes[] = {
        { "BOOL", 8 },    { "F4", 4 },   { "F6_E2M3", 6 },     { "F6_E3M2", 6 },
        { "U8", 8 },      { "I8", 8 },   { "F8_E5M2", 8 },     { "F8_E4M3", 8 },
        { "F8_E8M0", 8 }, { "I16", 16 }, { "F8_E4M3FNUZ", 8 }, { "F8_E5M2FNUZ", 8 },
        { "U16", 16 },    { "F16", 16 }, { "BF16", 16 },       { "I32", 32 },
        { "U32", 32 },    { "F32", 32 }, { "C64", 64 },        { "F64", 64 },
        { "I64", 64 },    { "U64", 64 },
    };
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        if (strcmp(*name, dtypes[i].name) != 0) continue;
        *name = dtypes[i].name;
        return dtypes[i].bits;
    }
    return 0;
}

bool wf_file_order(char *message) {
    const uint16_t one = 1;
    return *(const unsigned char *)&one == 1 ||
           wf_file_fail(message, "the file's numbers are little-endian, this machine's are not: "
                                 "weft neither reads nor writes files here");
}

int wf_file_descriptor(int folder, const char *name, int flags, unsigned mode) {
    for (;;) {
        int fd = openat(folder, name, flags | O_CLOEXEC, (mode_t)mode);
        if (fd >= 0 || errno != EINTR) return fd;
    }
}

int wf_file_by_key(const void *a, const void *b) {
    return strcmp(((const wf_meta *)a)->key, ((const wf_meta *)b)->key);
}

/* Each step is a bijection of the hash, and also of the word. So a change within one 8-byte word,
 * such as a single wrong byte or bit, always changes the hash. */
uint64_t wf_file_sum_part(uint64_t h, const void *data, size_t n) {
    const unsigned char *p = data;
    uint64_t word;
    for (; n >= sizeof word; n -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        h = wf_mix_word(h, word);
    }
    word = 0;
    if (n > 0) memcpy(&word, p, n);
    return h ^ word;
}

static uint64_t hash(uint64_t h, const void *data, size_t n) {
    return wf_mix64(wf_file_sum_part(wf_mix64(h ^ n), data, n));
}

static uint64_t hash_string(uint64_t h, const char *s) {
    return hash(h, s, strlen(s));
}

uint64_t wf_file_sum_entry(uint64_t h, const wf_entry *e) {
    h = hash_string(hash_string(h, e->name), e->dtype);
    h = hash(h, e->shape, (size_t)e->ndim * sizeof *e->shape);
    return wf_mix64(h ^ e->bytes);
}

void wf_file_sum_text(uint64_t h, const wf_meta *meta, int n_meta, char text[17]) {
    for (int i = 0; i < n_meta; i++)
        if (strcmp(meta[i].key, WF_FILE_CHECKSUM) != 0)
            h = hash_string(hash_string(h, meta[i].key), meta[i].value);
    snprintf(text, 17, "%016llx", (unsigned long long)h);
}

void wf_file_say(char *message, const char *format, va_list args) {
    if (!message) return;
    vsnprintf(message, WF_MESSAGE, format, args);
    for (char *c = message; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F) *c = '?';
}

bool wf_file_fail(char *message, const char *format, ...) {
    va_list args;
    va_start(args, format);
    wf_file_say(message, format, args);
    va_end(args);
    return false;
}

bool wf_file_fail_errno(char *message, const char *what) {
    char reason[64] = "";
    strerror_r(errno, reason, sizeof reason);
    return wf_file_fail(message, "%s: %s", what, reason);
}
