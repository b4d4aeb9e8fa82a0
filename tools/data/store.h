/* tools/data/store.h - bytes that are appended once and then read at random, more of them than
 * memory holds if need be.
 *
 * Up to a limit they stay in memory. Beyond it they go to a file without a name (in $TMPDIR, else
 * /tmp; nothing is left behind, however the program ends), which is mapped for reading: its pages
 * are the kernel's to keep or to drop. Every `message` has room for 256 bytes. */
#ifndef WEFT_TOOLS_DATA_STORE_H
#define WEFT_TOOLS_DATA_STORE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct store {
    const char *data; /* all the bytes, once sealed */
    size_t size;
    char *buffer; /* what is in memory: everything, or what is not yet in the file */
    size_t used, capacity, in_memory;
    int file; /* -1: none */
} store;

void store_new(store *s, size_t in_memory); /* the limit; at least 4 KiB stay in memory */
bool store_append(store *s, const void *bytes, size_t n, char *message);
bool store_seal(store *s, char *message); /* nothing more comes; data can be read */
void store_free(store *s);                /* all zeros: there is none */

#endif
