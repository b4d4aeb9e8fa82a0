/* tools/cli/append.h - files that grow by records, such as a log: whoever reads one meanwhile, or after a
 * power cut, finds whole records. */
#ifndef WEFT_TOOLS_CLI_APPEND_H
#define WEFT_TOOLS_CLI_APPEND_H

#include <stdbool.h>
#include <stddef.h>

/* The descriptor of the file; keep: records go behind what is there. -1: errno. */
int append_open(const char *path, bool keep);
/* False with errno: nothing was added. A record that does not fit is taken back, because half of it
 * would spoil the next one too. */
bool append_record(int file, const void *bytes, size_t n);

#endif
