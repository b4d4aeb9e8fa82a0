/* tools/sources/plain_tasks.c - the sequences of a task (tasks.c) in the C file of a training. Its
 * program makes from them the batches that `train` makes. Embedded as text.
 *
 * A program of your own gets them with -DMODEL_TASK: next_update makes the batches of a step. The
 * C file defines, before this text, TASK (COPY, REVERSE or SORT), ROWS, MIN_LENGTH, MAX_LENGTH,
 * LAST_STEP and task_seed. */

#if defined MODEL_MAIN || defined MODEL_TASK
enum { TOKENS = 19 };

typedef struct words {
    uint32_t v[4];
} words;

/* Philox4x32-10 */
static words random_words(uint64_t key, uint64_t low, uint64_t high) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    words x = { { (uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32) } };
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = UINT64_C(0xd2511f53) * x.v[0], p1 = UINT64_C(0xcd9e8d57) * x.v[2];
        uint32_t y0 = (uint32_t)(p1 >> 32) ^ x.v[1] ^ k0, y2 = (uint32_t)(p0 >> 32) ^ x.v[3] ^ k1;
        x = (words){ { y0, (uint32_t)p1, y2, (uint32_t)p0 } };
        k0 += UINT32_C(0x9e3779b9);
        k1 += UINT32_C(0xbb67ae85);
    }
    return x;
}

static uint64_t mixed(uint64_t h) {
    h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
    return h ^ (h >> 31);
}

/* One sequence in 16 is held out of training. */
static int is_held_out(const int32_t *src, int n) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < 4 * n; i++) {
        uint64_t byte = (uint32_t)src[i / 4] >> 8 * (i % 4) & 255;
        h = (h ^ byte) * UINT64_C(0x100000001b3);
    }
    return mixed(h) % 16 == 0;
}

static uint32_t below(uint32_t word, uint32_t n) {
    return (uint32_t)((uint64_t)word * n >> 32);
}

/* Draw sequence `index`. A quarter of them have only 1 to 6 different tokens. */
static int draw_sequence(uint64_t index, uint32_t attempt, int32_t *src) {
    uint64_t key = mixed(mixed(task_seed + 1));
    words w = random_words(key, index, (uint64_t)attempt << 32);
    int n = MIN_LENGTH + (int)below(w.v[0], MAX_LENGTH - MIN_LENGTH + 1);
    uint32_t first = 0, stride = 1, size = TOKENS;
    if (!below(w.v[1], 4)) {
        first = below(w.v[2], TOKENS);
        stride = 1 + below(w.v[3], TOKENS - 1);
        size = 1 + below(w.v[1] << 2, 6);
    }
    for (int i = 0; i < n; i++) {
        if (i % 4 == 0)
            w = random_words(key, index, (uint64_t)attempt << 32 | (uint64_t)(i / 4 + 1));
        src[i] = 1 + (int32_t)((first + stride * below(w.v[i % 4], size)) % TOKENS);
    }
    return n;
}

static int sequence_at(uint64_t index, int32_t *src, int32_t *answer) {
    int n = draw_sequence(index, 0, src);
    for (uint32_t attempt = 1; is_held_out(src, n); attempt++)
        n = draw_sequence(index, attempt, src);
    for (int i = 0; i < n; i++) {
        int32_t token = src[TASK == REVERSE ? n - 1 - i : i];
        int at = i;
        for (; TASK == SORT && at > 0 && answer[at - 1] > token; at--) answer[at] = answer[at - 1];
        answer[at] = token;
    }
    return n;
}

/* Token number `at` of the row START, answer [n], END, END, ... */
static int32_t token_at(const int32_t *answer, int n, int at) {
    if (at == 0) return START;
    return at <= n ? answer[at - 1] : END;
}

/* Write row i of a batch: the source, and as its target START, the answer and END. Without
 * HAS_SOURCE the target is the source and all of that. */
static void write_row(const model_batch *b, int i, uint64_t index, int32_t *src,
                      int32_t *src_length, int32_t *tgt, int32_t *labels) {
    static int32_t source[MAX_LENGTH], answer[MAX_LENGTH];
    int32_t *tokens = tgt + i * b->T, *next = labels + i * b->T;
    int n = sequence_at(index, source, answer), begin = HAS_SOURCE ? 0 : n;
    for (int k = 0; k < b->S; k++) src[i * b->S + k] = k < n ? source[k] : END;
    src_length[i] = (int32_t)n;
    for (int k = 0; k < begin; k++) {
        tokens[k] = source[k];
        next[k] = NO_LABEL;
    }
    for (int at = 0; begin + at < b->T; at++) {
        tokens[begin + at] = token_at(answer, n, at);
        next[begin + at] = at <= n ? token_at(answer, n, at + 1) : NO_LABEL;
    }
}

/* The batch of an update. Returns 1; 0 after the last one. */
static int next_update(model_batch *batches, int64_t step) {
    static int32_t src[ROWS * MAX_LENGTH], src_length[ROWS];
    static int32_t tgt[ROWS * (2 * MAX_LENGTH + 1)], labels[ROWS * (2 * MAX_LENGTH + 1)];
    uint64_t first = (uint64_t)(step - 1) * ROWS;
    int longest = 0;
    if (step > LAST_STEP) return 0;
    for (int i = 0; i < ROWS; i++) {
        int n = sequence_at(first + (uint64_t)i, src, tgt);
        if (n > longest) longest = n;
    }
    batches->B = ROWS;
    batches->S = HAS_SOURCE ? longest : 0;
    batches->T = HAS_SOURCE ? longest + 1 : 2 * longest + 1;
    batches->src = src;
    batches->src_length = src_length;
    batches->tgt = tgt;
    batches->labels = labels;
    for (int i = 0; i < ROWS; i++)
        write_row(batches, i, first + (uint64_t)i, src, src_length, tgt, labels);
    return 1;
}
#endif
