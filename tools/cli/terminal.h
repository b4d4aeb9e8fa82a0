/* tools/cli/terminal.h - the standard streams, and what may stand on a terminal.
 *
 * Names, values, paths and tokens come from elsewhere, and a terminal obeys what stands in them:
 * everything said to people goes through here. Results on stdout are the user's own and stay as
 * they are. */
#ifndef WEFT_TOOLS_CLI_TERMINAL_H
#define WEFT_TOOLS_CLI_TERMINAL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The first call of every main. Descriptors 0, 1 and 2 are taken if they were closed, so that no
 * file gets their numbers: they fail as closed ones do. A closed pipe and a limit on the size of
 * files show as failed writes, not as signals. A line on stderr stays in one piece. Exits with 1 if
 * there is no descriptor left. */
void terminal_open(void);

/* True for control characters: those that move the cursor, ring, hide text or reorder it; and
 * for -1, no code point. A tab is none. */
bool is_control(int32_t code);
enum { REPLACED = 0xFFFD }; /* the replacement character */

void put_code(FILE *out, int32_t code);               /* as UTF-8 */
int put_clean(FILE *out, const char *text, int most); /* at most so many bytes of text (-1: all),
                                                       * without controls; returns columns */

/* Prints a formatted sentence without control characters; lines: newlines are kept. */
void say_clean(FILE *out, bool lines, const char *format, va_list arguments);

#endif
