/* models/emit/plain_ids.c - the program in the C file of a model that reads and writes ids: lines
 * of ids in, lines of ids out. embed.sh makes text of this file. */

#ifdef MODEL_MAIN
#include <stdio.h>

/* Read a line of at most `most` ids. Returns their number; -1: the input has ended; -2: the line is
 * no such list. */
static int read_ids(int32_t *ids, int most) {
    int n = 0, digits = 0, c = getchar(), bad = 0;
    int32_t id = 0;
    if (c == EOF) return -1;
    for (;; c = getchar()) {
        if (c >= '0' && c <= '9') {
            if (id < 100000000) id = id * 10 + (int32_t)(c - '0');
            digits++;
            continue;
        }
        if (digits && n < most) ids[n] = id;
        n += digits > 0;
        digits = 0;
        id = 0;
        if (c == '\n' || c == EOF) break;
        if (c != ' ' && c != '\t' && c != '\r') bad = 1;
    }
    return bad || n > most ? -2 : n;
}

int main(void) {
    static _Alignas(64) unsigned char memory[model_MEMORY];
    static int32_t source[model_SOURCE + 1], output[model_OUTPUT + 1];
    static model m;
    model_start(&m, memory);
    for (int line = 1, n; (n = read_ids(source, model_SOURCE)) != -1; line++) {
        n = n < 0 ? -1 : model_generate(&m, source, n, output);
        if (n < 0) {
            fprintf(stderr, "line %d: not %d to %d ids from 0 to %d\n", line, DECODER_ONLY ? 0 : 1,
                    (int)model_SOURCE, SOURCE_VOCABULARY - 1);
            return 1;
        }
        for (int i = 0; i < n; i++) printf(i ? " %d" : "%d", (int)output[i]);
        printf("\n");
    }
    return fflush(stdout) || ferror(stdin) ? 1 : 0;
}
#endif
