/* tests/targets/wasm.c - answers a line in WebAssembly for wasm.js. See answers.h. */
#include "answers.h"

#define EXPORT(name) __attribute__((export_name(#name)))

static char given[model_LINE];

EXPORT(start) void start(void);
void start(void) {
    begin_answers();
}

/* line: the place to which wasm.js writes a line; most: the greatest number of its bytes. */
EXPORT(line) char *line(void);
char *line(void) {
    return given;
}

EXPORT(most) int most(void);
int most(void) {
    return model_LINE;
}

/* Answers the line of n bytes at line(), or collects it. Returns the number of bytes of the answer
 * at result(); 0: there is none yet; below 0: an error. */
EXPORT(answer_it) int answer_it(int n);
int answer_it(int n) {
    return answer(given, n);
}

/* Answers the lines that are collected. Returns the number of bytes of the answers at result(). */
EXPORT(answer_others) int answer_others(void);
int answer_others(void) {
    return answer_rest();
}

EXPORT(result) const char *result(void);
const char *result(void) {
    return answer_line;
}
