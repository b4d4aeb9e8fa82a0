/* tools/generate/generate_long.c - lines that are too long for the model: they are cropped, split
 * into parts that fit, skipped, or end the run. See generate.h.
 *
 * Cropping keeps a line's beginning, and the tokens that the tokenizer adds at the end of every
 * line. Of a prompt that outputs continue, it keeps the end. In a decoder-only model a source must
 * leave room for the output: for as many tokens as were asked for, but at most half of the
 * sequence. */
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"
#include "generate.h"

/* ---- what becomes of a line ------------------------------------------------------------------ */

static void note_long(job *j, const char *why) {
    /* a line counts once, even if both sides or several parts are too long */
    if (j->last_long == j->in.number) return;
    j->last_long = j->in.number;
    if (j->n_long++ > 0) return;
    j->first_long = j->in.number;
    snprintf(j->why_long, sizeof j->why_long, "%s", why);
}

/* Counts a line that is too long. False: it must be skipped. Exits with --long-lines stop. */
static bool keep_long(job *j, int side, int64_t n, int64_t most) {
    char why[WF_MESSAGE];
    language_too_long(side, n, most, why);
    if (j->set->long_lines == LONG_STOP) refuse_line(j, why);
    note_long(j, why);
    return j->set->long_lines != LONG_SKIP;
}

void warn_of_long_lines(const job *j) {
    static const char *const became[] = { "cropped", "split into parts", "skipped" };
    if (j->n_long == 0) return;
    warn(j->program, "%lld of %lld lines were too long, and were %s; the first is line %lld: %s",
         (long long)j->n_long, (long long)j->in.number, became[j->set->long_lines],
         (long long)j->first_long, j->why_long);
}

/* ---- cropping -------------------------------------------------------------------------------- */

/* How many tokens of a source can be kept, so that its sequence has room for an output. */
static int64_t kept_in_row(const job *j, int64_t most) {
    double wanted = j->set->score ? (double)most : j->options.max_len_b;
    int64_t half = most - most / 2;
    return wanted < (double)(most - half) ? most - (int64_t)wanted : half;
}

/* Copies at most `most` of the n ids of a line to `to`, the last `behind` among them. Returns how
 * many. */
static int64_t crop(const job *j, int side, const int32_t *ids, int64_t n, int64_t behind,
                    int32_t *to, int64_t most) {
    if (side == SIDE_SRC && !j->model->src) {
        int64_t kept = kept_in_row(j, most), from = j->model->start_first ? n - kept : 0;
        memcpy(to, ids + from, (size_t)kept * sizeof *to);
        return kept;
    }
    if (behind > most) behind = most;
    memcpy(to, ids, (size_t)(most - behind) * sizeof *to);
    memcpy(to + most - behind, ids + n - behind, (size_t)behind * sizeof *to);
    return most;
}

int64_t read_side(job *j, int side, const char *text, size_t bytes, int32_t *ids, int64_t most) {
    char message[WF_MESSAGE];
    int64_t n = language_read(&j->language, side, text, bytes, ids, most, message);
    if (n < 0) refuse_line(j, message);
    if (n <= most) return n;
    if (!keep_long(j, side, n, most)) return -1;
    int32_t *all = malloc((size_t)n * sizeof *all);
    if (!all) fail(j->program, "out of memory for a line of %lld tokens", (long long)n);
    if (language_read(&j->language, side, text, bytes, all, n, message) != n)
        fail(j->program, "%s", message);
    int64_t behind = language_behind(&j->language, side, text, bytes, all, n);
    n = crop(j, side, all, n, behind, ids, most);
    free(all);
    return n;
}

int64_t shorten_target(job *j, int64_t n, int64_t most) {
    if (n <= most) return n;
    return keep_long(j, SIDE_TGT, n, most) ? most : -1;
}

/* ---- splitting ------------------------------------------------------------------------------- */

/* The number of tokens in the first n bytes. */
static int64_t tokens_of(job *j, char *line, size_t n) {
    char message[WF_MESSAGE], after = line[n];
    line[n] = '\0';
    int64_t tokens = language_read(&j->language, SIDE_SRC, line, n, j->ids, 0, message);
    line[n] = after;
    if (tokens < 0) refuse_line(j, message);
    return tokens;
}

/* The end of the character, or of the token id, that contains byte `at`. */
static size_t boundary(const job *j, const char *line, size_t bytes, size_t at) {
    if (at >= bytes) return bytes;
    while (at < bytes && wf_utf8_continues(line[at])) at++;
    while (!j->language.text && at < bytes && !strchr(" \t", line[at])) at++;
    return at;
}

/* The length in bytes of the longest beginning that fits, in whole characters. The search doubles
 * the length while it fits, and then bisects. */
static size_t longest_that_fits(job *j, char *line, size_t bytes, int64_t most) {
    size_t fits = 0, over = boundary(j, line, bytes, (size_t)most);
    while (tokens_of(j, line, over) <= most) {
        if (over == bytes) return bytes;
        fits = over;
        over = boundary(j, line, bytes, 2 * over);
    }
    for (;;) {
        size_t middle = boundary(j, line, bytes, fits + 1 + (over - fits - 1) / 2);
        if (middle >= over) middle = boundary(j, line, bytes, fits + 1);
        if (middle >= over) return fits;
        if (tokens_of(j, line, middle) <= most)
            fits = middle;
        else
            over = middle;
    }
}

/* True if a sentence ends before `at`: with a full stop or the like and a space, or with an
 * ideographic full stop. */
static bool sentence_ends(const char *line, size_t at) {
    static const char *const stops[] = { "\xE3\x80\x82", "\xEF\xBC\x81", "\xEF\xBC\x9F" };
    if (at > 0 && strchr(" \t", line[at]) && strchr(".!?;:", line[at - 1])) return true;
    for (size_t i = 0; at >= 3 && i < sizeof stops / sizeof *stops; i++)
        if (memcmp(line + at - 3, stops[i], 3) == 0) return true;
    return false;
}

/* The offset of the cut: after the last sentence that ends in the latter two thirds of `fits`
 * bytes; else at the last space; else at `fits`. */
static size_t best_cut(const char *line, size_t fits) {
    for (size_t at = fits; at > fits / 3; at--)
        if (sentence_ends(line, at)) return at;
    for (size_t at = fits; at > 0; at--)
        if (strchr(" \t", line[at])) return at;
    return fits;
}

size_t part_that_fits(job *j, char *line, size_t bytes) {
    int64_t most = wf_model_longest_source(j->model);
    if (j->set->long_lines != LONG_SPLIT) return 0;
    size_t fits = longest_that_fits(j, line, bytes, most);
    if (fits == bytes) return 0;
    if (j->last_long != j->in.number) keep_long(j, SIDE_SRC, tokens_of(j, line, bytes), most);
    size_t cut = best_cut(line, fits);
    if (cut > 0 && tokens_of(j, line, cut) <= most) return cut;
    /* If even the first character has more tokens than a source may have, this is 0: the line is
     * not split, and its tokens are cropped. */
    return fits;
}
