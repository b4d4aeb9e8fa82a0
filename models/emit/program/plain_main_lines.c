/* models/emit/program/plain_main_lines.c - the lines of the program in the C file of a model, one
 * by one. embed.sh makes text of this file. */

/* Answer all lines of stdin. Returns the program's status. */
static int answer_lines(model *m) {
    static char line[model_LINE + 4], out[model_TEXT];
    for (int number = 1, n; (n = read_input(line, number == 1)) != INPUT_ENDS; number++) {
        if (n >= 0) n = model_translate(m, line, (size_t)n, out, sizeof out);
        if (n < 0) return refuse_line(number, n);
        write_output(out, n);
        if (fflush(stdout)) return 1;
    }
    return ferror(stdin) ? 1 : 0;
}
