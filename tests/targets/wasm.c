/* tests/targets/wasm.c - answers a line in WebAssembly for wasm.js. See answers.h. */
#include "answers.h"

#define EXPORT(name) __attribute__((export_name(#name)))

static char given[model_LINE];

EXPORT(start) void start(void);
void start(void) {
    begin_answers();
}

/* Where the line is written, and its most bytes. */
EXPORT(line) char *line(void);
char *line(void) {
    return given;
}

EXPORT(most) int most(void);
int most(void) {
    return model_LINE;
}

/* Answers n bytes of it, or collects them. Returns the bytes at result(). */
EXPORT(answer_it) int answer_it(int n);
int answer_it(int n) {
    return answer(given, n);
}

/* Answers the lines that are collected. Returns the bytes at result(). */
EXPORT(answer_others) int answer_others(void);
int answer_others(void) {
    return answer_rest();
}

EXPORT(result) const char *result(void);
const char *result(void) {
    return answer_line;
}
