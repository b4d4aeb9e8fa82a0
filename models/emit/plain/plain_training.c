/* models/emit/plain/plain_training.c - an update in the C file of a training (emit_training.c):
 * what nn/train/ does in one process, to the bit. embed.sh makes text of this file.
 *
 * In the C file these come before it: the plans, constants such as SHAPES and model_ARENA, the
 * types model_batch, model_progress and shape, the list `shapes`, and the functions set_batch,
 * set_rates, rate_of, norm_of, make_update and update_averages. */

/* Micro-batches [from, to), whose summed gradients wait to be added to others. `waiting` is a stack
 * of these: nn/train/sum_tree.h. */
typedef struct waiting_sum {
    int from, to;
} waiting_sum;

/* The state of a training, which follows the arena of the plans in memory. */
typedef struct training {
    int64_t steps;
    waiting_sum waiting[64];
    int n_waiting;
    float rates[3], at[2], average_rate[1];
    /* a batch that is padded to a shape */
    int32_t src[MOST_ROWS * MOST_SOURCE + 1], src_length[MOST_ROWS];
    int32_t tgt[MOST_ROWS * MOST_TARGET], labels[MOST_ROWS * MOST_TARGET];
} training;

_Static_assert(sizeof(training) <= WEIGHTS_AT - model_ARENA, "the memory has room for a batch");

static training *training_of(const model *m) {
    return (training *)(void *)(m->arena + model_ARENA);
}

/* The number of updates made, including those before the file was written. */
int64_t model_steps(const model *m) {
    return training_of(m)->steps;
}

/* ---- a batch ---------------------------------------------------------------------------- */

/* Copy [rows, tokens] to [most_rows, most], and fill the rest with the id `with`. */
static void pad(const int32_t *from, int rows, int tokens, int most_rows, int most, int32_t with,
                int32_t *to) {
    for (int i = 0; i < most_rows; i++)
        for (int k = 0; k < most; k++)
            to[i * most + k] = i < rows && k < tokens ? from[i * tokens + k] : with;
}

/* The first shape that has room for the batch; a null pointer: none has. */
static const shape *shape_of(const model_batch *b) {
    for (int i = 0; i < SHAPES; i++)
        if (b->B <= shapes[i].B && b->S <= shapes[i].S && b->T <= shapes[i].T) return &shapes[i];
    return 0;
}

static int is_batch(const model_batch *b) {
    if (b->B < 1 || b->T < 1 || b->S < (HAS_SOURCE ? 1 : 0) || !b->tgt || !b->labels) return 0;
    if (!HAS_SOURCE) return 1;
    if (!b->src || !b->src_length) return 0;
    for (int i = 0; i < b->B; i++)
        if (b->src_length[i] < 0 || b->src_length[i] > b->S) return 0;
    return 1;
}

/* Set the inputs to a batch. If the shape that it gets is larger, the batch is padded; padding has
 * NO_LABEL. Returns the shape; a null pointer: the batch is bad, or too large. */
static const shape *take_batch(model *m, training *t, const model_batch *b) {
    const shape *s = is_batch(b) ? shape_of(b) : 0;
    if (!s) return 0;
    if (s->B == b->B && s->S == b->S && s->T == b->T) {
        set_batch(m, b->src, b->src_length, b->tgt, b->labels);
        return s;
    }
    if (HAS_SOURCE) {
        pad(b->src, b->B, b->S, s->B, s->S, END, t->src);
        pad(b->src_length, b->B, 1, s->B, 1, 1, t->src_length);
    }
    pad(b->tgt, b->B, b->T, s->B, s->T, END, t->tgt);
    pad(b->labels, b->B, b->T, s->B, s->T, NO_LABEL, t->labels);
    set_batch(m, t->src, t->src_length, t->tgt, t->labels);
    return s;
}

/* ---- sums of gradients ------------------------------------------------------------------ */

/* Are these the two children of a node of the tree over n micro-batches? */
static int are_siblings(waiting_sum left, waiting_sum right, int n) {
    int width = left.to - left.from, rest = n - left.to;
    if ((width & (width - 1)) != 0 || left.from % width != 0) return 0;
    if (left.from / width % 2 != 0 || left.to != right.from) return 0;
    return right.to == left.to + (width < rest ? width : rest);
}

/* Set t->at for micro-batch i of n: the index of the sum where its gradient goes, and how many of
 * the waiting sums are added to it. */
static void place_sum(training *t, int i, int n) {
    waiting_sum now = { i, i + 1 };
    int added = 0;
    if (i == 0) t->n_waiting = 0;
    t->at[0] = (float)t->n_waiting;
    for (; t->n_waiting > 0 && are_siblings(t->waiting[t->n_waiting - 1], now, n); added++)
        now.from = t->waiting[--t->n_waiting].from;
    t->waiting[t->n_waiting++] = now;
    t->at[1] = (float)added;
}

/* ---- an update -------------------------------------------------------------------------- */

/* Copy member by member, because some compilers call memcpy to copy a whole struct. */
static void tell(const model_progress *now, model_progress *progress) {
    progress->step = now->step;
    progress->loss = now->loss;
    progress->count = now->count;
    progress->norm = now->norm;
    progress->rate = now->rate;
}

int model_step(model *m, const model_batch *batches, int n, model_progress *progress) {
    training *t = training_of(m);
    model_progress now = { t->steps + 1, 0, 0, 0, rate_of(t->steps + 1) };
    const shape *s = 0;
    float loss, count;
    if (n < 1 || n > MOST_BATCHES) return 1;
    set_rates(now.step, t->rates);
    for (int i = 0; i < n; i++) {
        s = take_batch(m, t, &batches[i]);
        if (!s) return 1;
        place_sum(t, i, n);
        if (s->run(m, (uint64_t)now.step, (uint32_t)i)) return 1;
        s->loss(m, &loss);
        s->count(m, &count);
        now.loss += (double)loss;
        now.count += (double)count;
    }
    if (make_update(m)) return 1;
    now.norm = norm_of(m, s);
    if (now.count > 0) now.loss /= now.count;
    t->steps = now.step;
    if (progress) tell(&now, progress);
    return update_averages(m, now.step, t->average_rate);
}
