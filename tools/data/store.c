/* tools/data/store.c - stores bytes in memory, or in a file without a name. See store.h. */
#include "store.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/op.h"
#include "tools/cli/output.h"
#include "tools/cli/refused.h"

enum { SMALLEST = 4096, IN_MEMORY = 64 << 20 };

static const char *folder(void) {
    const char *name = getenv("TMPDIR");
    return name && *name ? name : "/tmp";
}

static bool failed(const char *what, char *message) {
    return refused(message, "%s in %s: %s; TMPDIR names another folder", what, folder(),
                   strerror(errno));
}

static bool open_file(store *s, char *message) {
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/weft-XXXXXX", folder());
    if (n >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return failed("no temporary file", message);
    }
    s->file = mkstemp(path);
    if (s->file < 0) return failed("no temporary file", message);
    unlink(path);
    return true;
}

static bool write_all(const store *s, const char *bytes, size_t n, char *message) {
    return write_whole(s->file, bytes, n) || failed("the temporary file can't be written", message);
}

/* Writes the buffer to the file. */
static bool spill(store *s, char *message) {
    if (s->file < 0 && !open_file(s, message)) return false;
    if (!write_all(s, s->buffer, s->used, message)) return false;
    s->used = 0;
    return true;
}

static bool grow(store *s, size_t capacity, char *message) {
    char *grown = realloc(s->buffer, capacity);
    if (!grown) return refused(message, "out of memory");
    s->buffer = grown;
    s->capacity = capacity;
    return true;
}

void store_new(store *s, size_t in_memory) {
    if (!in_memory) in_memory = IN_MEMORY;
    *s = (store){ .file = -1, .in_memory = in_memory < SMALLEST ? SMALLEST : in_memory };
}

bool store_append(store *s, const void *bytes, size_t n, char *message) {
    assert(!s->data);
    size_t wanted = s->capacity ? s->capacity : SMALLEST;
    while (wanted < s->in_memory && wanted - s->used < n) wanted *= 2;
    if (wanted > s->in_memory) wanted = s->in_memory;
    if (s->file < 0 && wanted > s->capacity && !grow(s, wanted, message)) return false;
    if (s->capacity - s->used < n && !spill(s, message)) return false;
    if (s->capacity < n && !write_all(s, bytes, n, message)) return false;
    if (s->capacity >= n) {
        memcpy(s->buffer + s->used, bytes, n);
        s->used += n;
    }
    s->size += n;
    return true;
}

bool store_seal(store *s, char *message) {
    assert(!s->data);
    s->data = s->buffer;
    if (s->file < 0) return true;
    if (!spill(s, message)) return false;
    void *map = mmap(NULL, s->size, PROT_READ, MAP_PRIVATE, s->file, 0);
    if (map == MAP_FAILED) return failed("the temporary file can't be mapped", message);
    free(s->buffer);
    s->data = map;
    s->buffer = NULL;
    s->used = s->capacity = 0;
    return true;
}

void store_free(store *s) {
    bool opened = s->in_memory && s->file >= 0;
    if (opened && s->data && !s->buffer) munmap((void *)(uintptr_t)s->data, s->size);
    if (opened) close(s->file);
    free(s->buffer);
    *s = (store){ .file = -1 };
}
