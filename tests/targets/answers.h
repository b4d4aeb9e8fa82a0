/* tests/targets/answers.h - the lines of a model's emitted C file with the bits of their scores.
 *
 * A program of emit_targets.sh is compiled with the emitted file in front (-include model.c). It
 * provides the lines, and writes what answer() gives: "SCORE\tTEXT\n", where SCORE is the 64 bits
 * of model_score in hexadecimal and TEXT has its line breaks escaped, as `generate` escapes
 * them. */
#ifndef WEFT_TESTS_TARGETS_ANSWERS_H
#define WEFT_TESTS_TARGETS_ANSWERS_H

enum { MOST_ANSWER = 2 * model_TEXT + 32 };

static _Alignas(64) unsigned char answer_memory[model_MEMORY];
static char answer_text[model_TEXT];
static char answer_line[MOST_ANSWER];
static model answering;

/* Write the bits of the last score. Returns the number of digits. */
static int put_score(char *to) {
    union {
        double score;
        uint64_t bits;
    } last;
    last.score = model_score(&answering);
    for (int i = 0; i < 16; i++) to[i] = "0123456789abcdef"[last.bits >> (60 - 4 * i) & 15];
    return 16;
}

/* Write a character of the text at this place of the answer. Returns the next place. */
static int put_escaped(char c, int at) {
    if (c == '\n' || c == '\r') answer_line[at++] = '\\';
    if (c == '\n') c = 'n';
    if (c == '\r') c = 'r';
    answer_line[at++] = c;
    return at;
}

/* Answer a line of n bytes without its end. The result stands in answer_line. Returns its bytes;
 * below 0: the model's error. */
static int answer(const char *line, int n) {
    int bytes = model_translate(&answering, line, (size_t)n, answer_text, sizeof answer_text);
    if (bytes < 0) return bytes;
    int at = put_score(answer_line);
    answer_line[at++] = '\t';
    for (int i = 0; i < bytes; i++) {
        at = put_escaped(answer_text[i], at);
    }
    answer_line[at++] = '\n';
    return at;
}

static void begin_answers(void) {
    model_start(&answering, answer_memory);
}

#endif
