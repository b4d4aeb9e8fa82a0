/* tools/cli/append.h - files to which records are appended, such as a log. A program that reads the
 * file meanwhile, or after a power cut, finds whole records. */
#ifndef WEFT_TOOLS_CLI_APPEND_H
#define WEFT_TOOLS_CLI_APPEND_H

#include <stdbool.h>
#include <stddef.h>

/* Open a file for appending; returns its descriptor. keep: keep its old records. -1: see errno. */
int append_open(const char *path, bool keep);
/* Append a record. False with errno: nothing was added. A record that fits only in part is removed
 * again, because it would damage the next one, too. */
bool append_record(int file, const void *bytes, size_t n);

#endif
