/* tests/targets/answers.h - answers lines of text with a model's emitted C file, and gives the bits
 * of their scores.
 *
 * A program of emit_targets.sh is compiled with the emitted file in front (-include model.c). It
 * provides the lines, and writes what answer() and answer_rest() give: "SCORE\tTEXT\n", where SCORE
 * is the 64 bits of the score in hexadecimal and TEXT has its line breaks escaped, as `generate`
 * escapes them. With ANSWERED_TOGETHER above 1, lines are collected until that many are there. */
#ifndef WEFT_TESTS_TARGETS_ANSWERS_H
#define WEFT_TESTS_TARGETS_ANSWERS_H

#ifndef ANSWERED_TOGETHER
#define ANSWERED_TOGETHER 1
#endif
enum { MOST_ANSWER = ANSWERED_TOGETHER * (2 * model_TEXT + 32) };

static _Alignas(64) unsigned char answer_memory[model_MEMORY];
static char answer_line[MOST_ANSWER];
static model answering;

/* Writes the bits of a score into answer_line. Returns the next place. */
static int put_score(double score, int at) {
    union {
        double score;
        uint64_t bits;
    } put;
    put.score = score;
    for (int i = 0; i < 16; i++)
        answer_line[at++] = "0123456789abcdef"[put.bits >> (60 - 4 * i) & 15];
    return at;
}

/* Writes a character of the text at place `at` of answer_line. Returns the next place. */
static int put_escaped(char c, int at) {
    if (c == '\n' || c == '\r') answer_line[at++] = '\\';
    if (c == '\n') c = 'n';
    if (c == '\r') c = 'r';
    answer_line[at++] = c;
    return at;
}

static int put_answer(double score, const char *text, int bytes, int at) {
    at = put_score(score, at);
    answer_line[at++] = '\t';
    for (int i = 0; i < bytes; i++) at = put_escaped(text[i], at);
    answer_line[at++] = '\n';
    return at;
}

#if ANSWERED_TOGETHER == 1
static char answer_text[model_TEXT];

/* Answers a line of n bytes without its '\n'. The answer is put into answer_line. Returns the
 * number of its bytes; below 0: the model's error. */
static int answer(const char *line, int n) {
    int bytes = model_translate(&answering, line, (size_t)n, answer_text, sizeof answer_text);
    return bytes < 0 ? bytes : put_answer(model_score(&answering), answer_text, bytes, 0);
}

static int answer_rest(void) {
    return 0;
}
#else
static char collected[ANSWERED_TOGETHER][model_LINE], answer_texts[ANSWERED_TOGETHER][model_TEXT];
static model_line collected_lines[ANSWERED_TOGETHER];
static int n_collected;

/* Answers the lines that are collected. Returns the bytes of all answers, or the first error. */
static int answer_rest(void) {
    int at = 0;
    model_translate_batch(&answering, collected_lines, n_collected);
    for (int i = 0; i < n_collected; i++) {
        const model_line *l = &collected_lines[i];
        if (l->result < 0) return l->result;
        at = put_answer(l->score, l->out, l->result, at);
    }
    n_collected = 0;
    return at;
}

/* Collects a line. Returns 0, or what answer_rest returns if a batch is full. */
static int answer(const char *line, int n) {
    model_line *l = &collected_lines[n_collected];
    for (int i = 0; i < n && i < model_LINE; i++) collected[n_collected][i] = line[i];
    l->line = collected[n_collected];
    l->bytes = (size_t)n;
    l->out = answer_texts[n_collected];
    l->size = model_TEXT;
    n_collected++;
    return n_collected == ANSWERED_TOGETHER ? answer_rest() : 0;
}
#endif

static void begin_answers(void) {
    model_start(&answering, answer_memory);
}

#endif
