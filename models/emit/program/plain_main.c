/* models/emit/program/plain_main.c - the program in the C file of a model: a filter, which writes a
 * line for each line that it reads, as `generate` does. In the C file plain_main_lines.c follows,
 * or plain_main_batch.c for several lines at once. embed.sh makes text of this file. */

#ifdef MODEL_MAIN
#include <stdio.h>

enum { INPUT_ENDS = -100 };

/* Read a line without its line break, a carriage return before that, and a byte order mark in the
 * first line. Returns the number of its bytes, or INPUT_ENDS, or model_LONG_LINE. */
static int read_input(char *line, int is_first) {
    int n = 0, c = getchar();
    if (c == EOF) return INPUT_ENDS;
    for (; c != '\n' && c != EOF; c = getchar()) {
        if (n == model_LINE + 4) return model_LONG_LINE;
        line[n++] = (char)c;
    }
    int mark = is_first && n >= 3 && line[0] == '\357' && line[1] == '\273' && line[2] == '\277';
    if (n > 3 * mark && line[n - 1] == '\r') n--;
    if (mark) n -= 3;
    for (int i = 0; mark && i < n; i++) line[i] = line[i + 3];
    return n > model_LINE ? model_LONG_LINE : n;
}

/* Line breaks within an output are escaped, so that each line of input gets one line of output. */
static void write_output(const char *out, int n) {
    for (int i = 0; i < n; i++)
        if (out[i] == '\n' || out[i] == '\r')
            printf(out[i] == '\n' ? "\\n" : "\\r");
        else
            putchar(out[i]);
    putchar('\n');
}

static const char *sentence_of(int error) {
    if (error == model_LONG_LINE) return "it is too long";
    if (error == model_BAD_LINE) return WHAT_A_LINE_IS;
    if (error == model_NO_ROOM) return "its output is too long";
    return "the model finds no output";
}

/* Say why line `number` has no output. Returns the program's status. */
static int refuse_line(int number, int error) {
    fflush(stdout);
    fprintf(stderr, "line %d: %s\n", number, sentence_of(error));
    return 1;
}
