/* tests/models/spm_peer.c - splits lines into pieces and joins them again, for spm_peer.py, which
 * compares with the library sentencepiece.
 *
 * usage: spm_peer MODEL.spm < lines > results     each line after its length, of four bytes
 *        spm_peer MODEL.spm time < lines          CPU seconds of encoding them, and how many pieces
 *
 * A result has the number of pieces, their ids, their texts, and the text that the ids decode to.
 * Numbers have four bytes in the machine's order; a text follows its length. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "models/text/sentencepiece/spm.h"

static char *read_all(FILE *f, size_t *bytes) {
    size_t capacity = 0, n;
    char *text = NULL;
    *bytes = 0;
    do {
        if (!wf_grow(&text, &capacity, *bytes + (1 << 20), 1)) exit(2);
        n = fread(text + *bytes, 1, 1 << 20, f);
        *bytes += n;
    } while (n);
    return text;
}

static void die(const char *message) {
    fprintf(stderr, "spm_peer: %s\n", message);
    exit(2);
}

static bool next_line(wf_span *rest, wf_span *line) {
    uint32_t bytes;
    if (!rest->bytes) return false;
    memcpy(&bytes, rest->text, sizeof bytes);
    *line = (wf_span){ rest->text + sizeof bytes, bytes };
    rest->text += sizeof bytes + bytes, rest->bytes -= sizeof bytes + bytes;
    return true;
}

static void write_text(wf_span s) {
    uint32_t bytes = (uint32_t)s.bytes;
    fwrite(&bytes, sizeof bytes, 1, stdout);
    fwrite(s.text, 1, s.bytes, stdout);
}

static void compare_with_tokenizer(wf_tokenizer *t, wf_span line, const wf_spm *m) {
    size_t n = m->n_tokens;
    int32_t *ids = malloc((n + 1) * sizeof *ids);
    bool ended =
        line.bytes && (line.text[line.bytes - 1] == '\n' || line.text[line.bytes - 1] == '\r');
    if (!ended &&
        wf_tokenizer_encode(t, line.text, line.bytes, ids, (int64_t)n, NULL) != (int64_t)n)
        die("the tokenizer makes another number of ids");
    for (size_t i = 0; i < n && !ended; i++)
        if (ids[i] != m->tokens[i].id) die("the tokenizer makes other ids");
    free(ids);
}

static void write_result(wf_spm *m, wf_tokenizer *t, wf_span line) {
    char message[WF_MESSAGE];
    int64_t n = wf_spm_encode(m, line, message);
    uint32_t count = (uint32_t)n;
    if (n < 0) die(message);
    compare_with_tokenizer(t, line, m);
    wf_spm_decoder d = wf_spm_decode(m);
    fwrite(&count, sizeof count, 1, stdout);
    for (int64_t i = 0; i < n; i++) fwrite(&m->tokens[i].id, sizeof(int32_t), 1, stdout);
    for (int64_t i = 0; i < n; i++) write_text(m->tokens[i].text);
    for (int64_t i = 0; i < n; i++)
        wf_spm_decode_piece(&d, m->tokens[i].id, m->pieces[m->tokens[i].id].text);
    if (!wf_spm_decode_end(&d, message)) die(message);
    write_text((wf_span){ d.text.at, d.text.bytes });
    free(d.text.at);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv) {
    char message[WF_MESSAGE];
    size_t bytes, model_bytes;
    FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (!f) die("usage: spm_peer MODEL.spm [time] < lines");
    char *file = read_all(f, &model_bytes), *lines = read_all(stdin, &bytes);
    fclose(f);
    double start = now();
    wf_spm *m = wf_spm_read(file, model_bytes, message);
    if (!m) die(message);
    double read = now() - start;
    wf_sentencepiece_options o;
    if (!wf_sentencepiece_defaults(file, model_bytes, &o, message)) die(message);
    wf_tokenizer *t = wf_tokenizer_from_sentencepiece(&o, message);
    if (!t) die(message);
    wf_span rest = { lines, bytes }, line;
    int64_t pieces = 0;
    start = now();
    while (next_line(&rest, &line))
        if (argc > 2)
            pieces += wf_spm_encode(m, line, message);
        else
            write_result(m, t, line);
    if (argc > 2) printf("%.6f %.6f %lld\n", read, now() - start, (long long)pieces);
    wf_spm_free(m), wf_tokenizer_free(t), free(file), free(lines);
    return 0;
}
