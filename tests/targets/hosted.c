/* tests/targets/hosted.c - answers the lines of stdin on a machine with a C library. See
 * answers.h. */
#include "answers.h"

#include <stdio.h>

/* Returns the bytes of a line; -1 at the end. */
static int read_one(char *line) {
    int n = 0, c = getchar();
    if (c == EOF) return -1;
    for (; c != '\n' && c != EOF && n < model_LINE; c = getchar()) line[n++] = (char)c;
    return n;
}

/* Returns 0 if the model had an error instead of answers. */
static int write_answers(int bytes) {
    if (bytes < 0) return 0;
    fwrite(answer_line, 1, (size_t)bytes, stdout);
    return 1;
}

int main(void) {
    static char line[model_LINE];
    begin_answers();
    for (int n; (n = read_one(line)) >= 0;)
        if (!write_answers(answer(line, n))) return 1;
    return !write_answers(answer_rest());
}
