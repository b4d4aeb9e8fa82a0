/* tests/models/encoder_peer.c - values of an encoder in f64, for encoder_peer.py to compare with
 * transformers.
 *
 * usage: encoder_peer MODEL hidden|log_probs < ROWS     a row of token ids on each line
 *
 * All rows are one batch. It writes the values as the machine's doubles, padding included. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/encoder.h"

enum { MOST_ROWS = 64, MOST_TOKENS = 512, LONGEST_LINE = 1 << 14 };

static int32_t rows[MOST_ROWS][MOST_TOKENS], length[MOST_ROWS], src[MOST_ROWS * MOST_TOKENS];

static void die(const char *message) {
    fprintf(stderr, "encoder_peer: %s\n", message);
    exit(2);
}

/* Reads the rows; *longest becomes the length of the longest. Returns how many there are. */
static int read_rows(int *longest) {
    static char line[LONGEST_LINE];
    int n = 0;
    for (; n < MOST_ROWS && fgets(line, sizeof line, stdin); n++) {
        char *at = line, *end;
        for (;; at = end) {
            long id = strtol(at, &end, 10);
            if (end == at || length[n] == MOST_TOKENS) break;
            rows[n][length[n]++] = (int32_t)id;
        }
        if (length[n] > *longest) *longest = length[n];
    }
    return n;
}

int main(int argc, char **argv) {
    char message[WF_MESSAGE];
    int S = 0, B = read_rows(&S);
    if (argc != 3 || B == 0) die("a model, hidden or log_probs, and rows on stdin");
    wf_file *f = wf_file_open(argv[1]);
    wf_model *m = wf_model_load(f, NULL, WF_F64, 0, message);
    if (!m) die(message);
    wf_tensor *wanted = strcmp(argv[2], "hidden") == 0 ? m->hidden : m->log_probs;
    wf_tensor *const inputs[] = { m->src, m->src_length };
    const wf_plan_options o = { .fetch = &wanted, .n_fetch = 1, .feed = inputs, .n_feed = 2 };
    wf_plan *p = wf_plan_new(m->graph, &o);
    for (int i = 0; i < B; i++) memcpy(src + i * S, rows[i], (size_t)S * sizeof *src);
    size_t row = (size_t)B * sizeof *src;
    if (!wf_bind(p, "B", B) || !wf_bind(p, "S", S) || !wf_feed(p, m->src, src, row * (size_t)S) ||
        !wf_feed(p, m->src_length, length, row) || !wf_run(p))
        die(wf_plan_error(p));
    size_t bytes = wf_bound_bytes(p, wanted);
    double *values = malloc(bytes);
    if (!values || !wf_fetch(p, wanted, values, bytes)) die(wf_plan_error(p));
    fwrite(values, 1, bytes, stdout);
    free(values);
    wf_plan_free(p), wf_model_free(m), wf_file_free(f);
    return fflush(stdout) ? 2 : 0;
}
