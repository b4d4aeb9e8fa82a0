/* tools/cli/append.h - files to which records are appended, such as a log. A record is written by
 * one call, if the system takes all of it at once; so a program that reads the file meanwhile finds
 * whole records. */
#ifndef WEFT_TOOLS_CLI_APPEND_H
#define WEFT_TOOLS_CLI_APPEND_H

#include <stdbool.h>
#include <stddef.h>

/* Open a file for appending; returns its descriptor. keep: keep its old records. -1: see errno. */
int append_open(const char *path, bool keep);
/* Append a record. False with errno: nothing was added. A record that fits only in part is removed
 * again, because the next record would continue its line. */
bool append_record(int file, const void *bytes, size_t n);

#endif
