/* tools/output.h - files to be written, looked at before the work begins. */
#ifndef WEFT_TOOLS_OUTPUT_H
#define WEFT_TOOLS_OUTPUT_H

#include <stdbool.h>

/* Could `path` be created or replaced? If not, message[256] says why. Nothing is changed. */
bool output_writable(const char *path, char *message);

/* Are these two names of one existing file? */
bool same_file(const char *a, const char *b);

#endif
