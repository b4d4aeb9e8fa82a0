/* models/emit/program/plain_stdin.c - the updates that the program of a training reads from stdin.
 * embed.sh makes text of this file. */

#ifdef MODEL_MAIN
#include <stdio.h>

/* Read an integer. Returns 1; 0 at the end of the input; -1 if there is no integer of 32 bits. */
static int read_number(int32_t *number) {
    long long n;
    int found = scanf("%lld", &n);
    if (found == EOF) return 0;
    if (found != 1 || n < INT32_MIN || n > INT32_MAX) return -1;
    *number = (int32_t)n;
    return 1;
}

static int read_numbers(int32_t *numbers, int n) {
    for (int i = 0; i < n; i++)
        if (read_number(&numbers[i]) != 1) return 0;
    return 1;
}

/* Read a batch into the arrays. Returns 0 if they have no room for its sizes, or if numbers are
 * missing. */
static int read_batch(model_batch *b, int32_t *src, int32_t *src_length, int32_t *tgt,
                      int32_t *labels) {
    int32_t B, S = 0, T;
    if (read_number(&B) != 1 || (HAS_SOURCE && read_number(&S) != 1) || read_number(&T) != 1)
        return 0;
    if (B < 1 || B > MOST_ROWS || S < 0 || S > MOST_SOURCE || T < 1 || T > MOST_TARGET) return 0;
    *b = (model_batch){ B, S, T, src, src_length, tgt, labels };
    return (!HAS_SOURCE || (read_numbers(src, B * S) && read_numbers(src_length, B))) &&
           read_numbers(tgt, B * T) && read_numbers(labels, B * T);
}

/* Read the batches of the next update. Returns their number; 0: there is none; -1: they cannot be
 * read. */
static int next_update(model_batch *batches, int64_t step) {
    static int32_t src[MOST_BATCHES][MOST_ROWS * MOST_SOURCE + 1];
    static int32_t src_length[MOST_BATCHES][MOST_ROWS];
    static int32_t tgt[MOST_BATCHES][MOST_ROWS * MOST_TARGET];
    static int32_t labels[MOST_BATCHES][MOST_ROWS * MOST_TARGET];
    int32_t n;
    int found = read_number(&n);
    (void)step;
    if (found < 1) return found;
    if (n < 1 || n > MOST_BATCHES) return -1;
    for (int i = 0; i < n; i++)
        if (!read_batch(&batches[i], src[i], src_length[i], tgt[i], labels[i])) return -1;
    return n;
}
#endif
