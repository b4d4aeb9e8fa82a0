/* tools/cli/terminal.h - the standard streams, and clean text for terminals.
 *
 * Names, values, paths and tokens come from outside and may contain control characters, which a
 * terminal would obey. So all messages are written by these functions. Results on stdout belong to
 * the user and stay as they are. */
#ifndef WEFT_TOOLS_CLI_TERMINAL_H
#define WEFT_TOOLS_CLI_TERMINAL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The first call of every main. If descriptors 0, 1 and 2 were closed, they are occupied, so that
 * no file gets their numbers; they still fail like closed ones. A closed pipe and a limit on the
 * size of files show as failed writes, not as signals. A line on stderr stays in one piece. Exits
 * with 1 if there is no descriptor left. */
void terminal_open(void);

/* True for control characters, which move the cursor, ring, hide text or reorder it; and for -1, an
 * invalid code point. A tab is not one. */
bool is_control(int32_t code);
enum { REPLACED = 0xFFFD }; /* the replacement character */

void put_code(FILE *out, int32_t code); /* as UTF-8 */
/* Write text so that it stays one line: line breaks as \n and \r, with `columns` also tabs as \t.
 * Returns how many characters were escaped. Bytes that are not valid UTF-8 are written
 * unchanged. */
int64_t put_line(FILE *out, const char *text, size_t n, bool columns);
/* writes at most so many bytes of text (-1: all), with U+FFFD for each control character; returns
 * the number of characters */
int put_clean(FILE *out, const char *text, int most);

/* Draw a bar in the current line of stderr, and remove it. Messages remove it themselves. */
void bar_draw(const char *text);
void bar_clear(void);

/* Print a formatted sentence, with U+FFFD in place of control characters. lines: newlines stay. */
void say_clean(FILE *out, bool lines, const char *format, va_list arguments);

#endif
