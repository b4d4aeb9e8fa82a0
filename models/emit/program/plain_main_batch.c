/* models/emit/program/plain_main_batch.c - the lines of the program in the C file of a model, BATCH
 * at once. embed.sh makes text of this file. */

/* Read at most BATCH lines; `first` is the number of the first one. The program ends at a line that
 * is too long, so no more are read after it. Returns how many lines were read. */
static int read_lines(model_line *lines, int first) {
    static char line[BATCH][model_LINE + 4], out[BATCH][model_TEXT];
    int n = 0, bytes = 0;
    while (n < BATCH && bytes != model_LONG_LINE) {
        bytes = read_input(line[n], first + n == 1);
        if (bytes == INPUT_ENDS) break;
        lines[n].line = line[n];
        lines[n].bytes = bytes < 0 ? model_LINE + 1 : (size_t)bytes;
        lines[n].out = out[n];
        lines[n].size = model_TEXT;
        n++;
    }
    return n;
}

/* Answer all lines of stdin. Returns the program's status. */
static int answer_lines(model *m) {
    static model_line lines[BATCH];
    for (int first = 1, n; (n = read_lines(lines, first)) > 0; first += n) {
        model_translate_batch(m, lines, n);
        for (int i = 0; i < n; i++) {
            if (lines[i].result < 0) return refuse_line(first + i, lines[i].result);
            write_output(lines[i].out, lines[i].result);
        }
        if (fflush(stdout)) return 1;
    }
    return ferror(stdin) ? 1 : 0;
}
