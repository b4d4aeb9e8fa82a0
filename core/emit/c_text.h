/* core/emit/c_text.h - text that grows, also for files and pictures, and names in C. Not
 * installed. */
#ifndef WEFT_CORE_EMIT_C_TEXT_H
#define WEFT_CORE_EMIT_C_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text that grows. When memory runs out, `lacks` becomes true and the text no longer changes. */
typedef struct wf_text {
    char *at;
    size_t length, capacity;
    bool lacks;
} wf_text;

void wf_text_add(wf_text *t, const char *text, size_t length);
void wf_text_puts(wf_text *t, const char *text);
/* Append formatted text: %s text, %d int, %n int64_t, %f and %g a double as a constant of type
 * float or double, %u a uint64_t constant. With `marks`, each number of %n stands between the bytes
 * WF_NUMBER_BEGINS and WF_NUMBER_ENDS. */
enum { WF_NUMBER_BEGINS = 1, WF_NUMBER_ENDS = 2 };
void wf_text_format(wf_text *t, bool marks, const char *format, va_list arguments);
/* Append n between the two marks of %n. */
void wf_text_number(wf_text *t, int64_t n);
void wf_text_print(wf_text *t, const char *format, ...);
/* Append text formatted as by wf_text_format, with marks around the numbers of %n. */
void wf_text_marked(wf_text *t, const char *format, ...);
/* Append text that stands inside a comment of C: a space divides the two characters that would end
 * the comment or begin another, and replaces control characters and backslashes. */
void wf_text_comment(wf_text *t, const char *text);
/* The text as a string, "" if there is none. */
const char *wf_text_of(const wf_text *t);
void wf_text_free(wf_text *t);
/* Append the lines of `code`, each indented by its depth in braces. */
void wf_text_indent(wf_text *t, const char *code);

/* The number as a constant of type float or double that reads back as the same number. C has no
 * literal for an infinity or a NaN, so these are written as quotients. Returns text. */
enum { WF_CONSTANT_TEXT = 40 };
const char *wf_c_constant(double x, bool is_float, char text[WF_CONSTANT_TEXT]);

/* Can the character stand in an identifier, and begin one? */
bool wf_is_word(char c);
bool wf_begins_word(char c);
/* Write a name as an identifier of C: other characters become '_', and a first digit gets '_' in
 * front. Returns the length of the whole identifier, as snprintf does. */
size_t wf_identifier(const char *name, char *to, size_t size);
/* Find `word` as a whole identifier in text. NULL: it is not there. */
const char *wf_find_word(const char *text, const char *word);

/* The comment above the values of the leaves, which stand at the end of an emitted file. */
#define WF_VALUES_TITLE "/* The leaves' values: parameters, buffers, constants. */\n"

/* Put before `code` the blocks of C functions that it uses. Empty strings in `lines` separate
 * blocks. A block is used if the name that it defines occurs in `code`, or in a later block that is
 * used. Blocks that the text `there` (or NULL) has already are left out. False: out of memory. */
bool wf_add_blocks(wf_text *code, const char *const *lines, const char *there);
/* wf_add_blocks with the functions of plain C in ops/emit/ */
bool wf_add_plain(wf_text *code, const char *there);
/* Does the plain C define this name? */
bool wf_plain_defines(const char *name);

#endif
