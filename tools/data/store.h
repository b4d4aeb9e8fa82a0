/* tools/data/store.h - a store for bytes that are appended once and then read at random, and may be
 * more than fit in memory.
 *
 * Up to a limit the bytes stay in memory. Beyond it they go to a file without a name, which leaves
 * nothing behind however the program ends. It is in $TMPDIR, else in /tmp. It is mapped for
 * reading, so the kernel decides which pages stay in memory. Every `message` has room for 256
 * bytes. */
#ifndef WEFT_TOOLS_DATA_STORE_H
#define WEFT_TOOLS_DATA_STORE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct store {
    const char *data; /* all bytes, once the store is sealed */
    size_t size;
    char *buffer; /* bytes in memory: all of them, or those not yet in the file */
    size_t used, capacity, in_memory;
    int file; /* -1: none */
} store;

/* in_memory: the limit, 0 for 64 MiB; at least 4 KiB stay in memory */
void store_new(store *s, size_t in_memory);
bool store_append(store *s, const void *bytes, size_t n, char *message);
bool store_seal(store *s, char *message); /* ends appending; data can be read then */
void store_free(store *s);                /* does nothing for a store of zeros */

#endif
