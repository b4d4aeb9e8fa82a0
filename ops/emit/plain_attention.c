/* ops/emit/plain_attention.c - attention for emitted files.
 * See plain_numbers.c. */

/* ---- attention ---------------------------------------------------------------------------- */

/* A matrix: element (i, j) lies at data[i row + j column]. */
typedef struct matrix {
    float *data;
    int row, column;
} matrix;

static inline float element(const matrix *x, int i, int j) {
    return x->data[i * x->row + j * x->column];
}

/* One head: q [queries, k_width], k [keys, k_width], v [keys, v_width], y as q but v_width wide.
 * stats [2, queries]: the largest score of a query and 1 / the sum of its exponentials. mask: data
 * 0 for none; compared with 0, or added if additive. window 0: all keys. If drops is set, a weight
 * is kept where its 16 random bits are below the threshold. */
typedef struct head {
    int queries, keys, k_width, v_width, window, causal, additive, drops;
    float scale, keep_scale;
    uint32_t threshold;
    uint64_t key, stream, element;
    matrix q, k, v, mask, y, stats;
} head;

/* The gradients of a head, each with the shape of its value. adds: dk and dv are added to what is
 * there. */
typedef struct head_gradients {
    int adds;
    matrix dy, dq, dk, dv;
} head_gradients;

/* The number of keys before the padding at the end, if one mask for all queries excludes that
 * padding. */
static int keys_in_use(const head *h) {
    float_bits infinity;
    int n = h->keys;
    infinity.word = UINT32_C(0x7f800000);
    if (!h->mask.data || (h->mask.row != 0 && h->queries > 1)) return n;
    for (; n > 0; n--) {
        float m = element(&h->mask, 0, n - 1);
        if (h->additive ? m != -infinity.number : m != 0) break;
    }
    return n;
}

/* Query t sees keys [*from, *to) of the first n. */
static void keys_of_query(const head *h, int t, int n, int *from, int *to) {
    int last = t + h->keys - h->queries;
    *to = h->causal && last + 1 < n ? last + 1 : n;
    *from = h->window > 0 && last - h->window + 1 > 0 ? last - h->window + 1 : 0;
    if (*to < 0) *to = 0;
    if (*from > *to) *from = *to;
}

/* n rounded up to a multiple of 16, a line. The scores of a query are padded to whole lines, so
 * that loops over them have no remainder. */
static inline int whole_lines(int n) {
    return (n + 15) / 16 * 16;
}

/* at [width, whole lines] = scale times the transpose of rows [from, from + n) of x, with zeros
 * behind the n columns. */
static void turn(const matrix *x, int from, int n, int width, float scale, float *at) {
    int row = whole_lines(n);
    for (int j = 0; j < width; j++) {
        for (int s = 0; s < n; s++) at[j * row + s] = scale * element(x, from + s, j);
        for (int s = n; s < row; s++) at[j * row + s] = 0;
    }
}

/* y += by * scale * row i of x. Rows whose elements are neighbours have a loop that compilers
 * vectorise. */
static void add_row(const matrix *x, int i, int width, float by, float scale, float *restrict y) {
    const float *restrict row = x->data + i * x->row;
    int whole = x->column == 1 ? width / 16 * 16 : 0;
    for (int j = 0; j < whole; j += 16)
        for (int l = j; l < j + 16; l++) y[l] = multiply_add(by, scale * row[l], y[l]);
    for (int j = whole; j < width; j++) y[j] = multiply_add(by, scale * row[j * x->column], y[j]);
}

/* y += the sum over rows i in [from, to) of by[i] * scale * row i of x. */
static void add_rows(const matrix *x, int from, int to, int width, const float *restrict by,
                     float scale, float *restrict y) {
    int whole = x->column == 1 ? width / 16 * 16 : 0;
    for (int j = 0; j < whole; j += 16) {
        const float *restrict row = x->data + j;
        float sum[16];
        for (int l = 0; l < 16; l++) sum[l] = y[j + l];
        for (int i = from; i < to; i++)
            for (int l = 0; l < 16; l++)
                sum[l] = multiply_add(by[i], scale * row[i * x->row + l], sum[l]);
        for (int l = 0; l < 16; l++) y[j + l] = sum[l];
    }
    for (int i = from; i < to; i++)
        for (int j = whole; j < width; j++)
            y[j] = multiply_add(by[i], scale * element(x, i, j), y[j]);
}

/* score[s] = row t of q times column s of kt [width, whole lines]. */
static void scores_of(const matrix *q, int t, int width, int n, const float *restrict kt,
                      float *restrict score) {
    int row = whole_lines(n);
    for (int s = 0; s < row; s += 16) {
        float sum[16];
        for (int l = 0; l < 16; l++) sum[l] = 0;
        for (int j = 0; j < width; j++) {
            float x = element(q, t, j);
            for (int l = 0; l < 16; l++) sum[l] = multiply_add(x, kt[j * row + s + l], sum[l]);
        }
        for (int l = 0; l < 16; l++) score[s + l] = sum[l];
    }
}

/* Apply the mask to the scores of query t for keys [first, first + n). An additive mask is added. A
 * score is -inf if its key is outside [from, to) or excluded by the mask; so are the scores behind
 * these n, up to a whole line. */
static void mask_scores(const head *h, int t, int first, int n, int from, int to, float *score) {
    const matrix *mask = &h->mask;
    float_bits infinity;
    infinity.word = UINT32_C(0x7f800000);
    for (int s = 0; s < n && mask->data && h->additive; s++)
        score[s] += element(mask, t, first + s);
    for (int s = 0; s < n && mask->data && !h->additive; s++)
        if (element(mask, t, first + s) == 0) score[s] = -infinity.number;
    for (int s = 0; s < from - first && s < n; s++) score[s] = -infinity.number;
    for (int s = to - first < n ? to - first : n; s < whole_lines(n); s++)
        score[s] = -infinity.number;
}

/* Drops some of n weights of query t, from key `first` on. If `scales` is not 0, the others are
 * multiplied by keep_scale. */
static void drop_weights(const head *h, int t, int first, int n, int scales, float *weight) {
    uint64_t e = h->element + (uint64_t)t * (uint64_t)h->keys + (uint64_t)first;
    float by = scales ? h->keep_scale : 1.0f;
    dropout(n, weight, by, h->threshold, h->key, h->stream, e, weight);
}

/* The sum of a line of 16 lanes, by halves. */
static float sum_of_line(const float lane[16]) {
    float sum[16];
    for (int i = 0; i < 16; i++) sum[i] = lane[i];
    for (int apart = 8; apart >= 1; apart /= 2)
        for (int i = 0; i < apart; i++) sum[i] += sum[i + apart];
    return sum[0];
}

/* Combines query t with keys [first, first + n). On entry score has their scores, on return the
 * exponentials p of these, not yet divided by the total. y becomes y less + p v, where `less` is 1
 * unless the largest score so far has grown; total changes in the same way. */
static void attend(const head *h, int t, int first, int n, int from, int to, float *score,
                   float *top, float *total) {
    float *y = h->y.data + t * h->y.row, lane[16], high[16], shift;
    int row = whole_lines(n);
    float_bits infinity;
    infinity.word = UINT32_C(0x7f800000);
    for (int l = 0; l < 16; l++) lane[l] = 0;
    for (int l = 0; l < 16; l++) high[l] = *top;
    for (int s = 0; s < row; s += 16)
        for (int l = 0; l < 16; l++) high[l] = score[s + l] > high[l] ? score[s + l] : high[l];
    for (int l = 1; l < 16; l++) high[0] = high[l] > high[0] ? high[l] : high[0];
    if (high[0] > *top && first > 0) {
        float less = exp_below(*top - high[0]);
        for (int j = 0; j < h->v_width; j++) y[j] *= less;
        *total *= less;
    }
    *top = high[0];
    shift = high[0] == -infinity.number ? 0.0f : high[0];
    for (int s = 0; s < row; s++) score[s] = exp_below(score[s] - shift);
    for (int s = 0; s < row; s += 16)
        for (int l = 0; l < 16; l++) lane[l] += score[s + l];
    *total += sum_of_line(lane);
    if (h->drops) drop_weights(h, t, first, n, 0, score);
    matrix v = { h->v.data + first * h->v.row, h->v.row, h->v.column };
    add_rows(&v, from > first ? from - first : 0, to - first < n ? to - first : n, h->v_width,
             score, 1.0f, y);
}

/* y = dropout(softmax(scale q k^T, masked)) v, keys in blocks of 128. scratch: k_width + 1 floats
 * for each key of a block, in whole lines, and 2 for each query. */
static void attention_head(const head *h, float *scratch) {
    int block = h->keys < 128 ? h->keys : 128;
    int row = whole_lines(block);
    float *kt = scratch, *score = kt + row * h->k_width, *top = score + row;
    float *total = top + h->queries;
    float_bits infinity;
    int end = keys_in_use(h), from, to;
    infinity.word = UINT32_C(0x7f800000);
    for (int t = 0; t < h->queries; t++) {
        top[t] = -infinity.number;
        total[t] = 0;
        for (int j = 0; j < h->v_width; j++) h->y.data[t * h->y.row + j] = 0;
    }
    for (int first = 0; first < end; first += block) {
        int n = end - first < block ? end - first : block;
        turn(&h->k, first, n, h->k_width, h->scale, kt);
        for (int t = 0; t < h->queries; t++) {
            keys_of_query(h, t, end, &from, &to);
            if (to <= first) continue;
            scores_of(&h->q, t, h->k_width, n, kt, score);
            mask_scores(h, t, first, n, from, to, score);
            /* Afterwards score[s] / total[t] is the weight of key first + s, if all keys are in one
             * block: with more of them, later blocks may make it less. */
            attend(h, t, first, n, from, to, score, &top[t], &total[t]);
        }
    }
    for (int t = 0; t < h->queries; t++) {
        float *stats = h->stats.data + t, inverse = total[t] == 0 ? 0.0f : 1 / total[t];
        float by = h->drops ? inverse * h->keep_scale : inverse;
        stats[0] = top[t] == -infinity.number ? 0.0f : top[t] + 0.0f;
        if (total[t] != total[t]) stats[0] = total[t];
        stats[h->stats.row] = inverse;
        for (int j = 0; j < h->v_width; j++) h->y.data[t * h->y.row + j] *= by;
    }
}

/* The weights p of query t after dropout, and ds, for n keys. p has scores on entry, ds the
 * products of dy and v. */
static void weights_of_query(const head *h, const matrix *dy, int t, int n, float *restrict p,
                             float *restrict ds) {
    float_bits infinity;
    float lane[16], top = h->stats.data[t], inverse = h->stats.data[h->stats.row + t];
    infinity.word = UINT32_C(0x7f800000);
    for (int i = 0; i < 16; i++) lane[i] = 0;
    for (int j = 0; j < h->v_width; j++)
        lane[j % 16] = multiply_add(element(dy, t, j), element(&h->y, t, j), lane[j % 16]);
    float delta = sum_of_line(lane);
    if (h->drops) drop_weights(h, t, 0, n, 1, ds);
    for (int s = 0; s < whole_lines(n); s++) {
        float weight = inverse * exp_below(p[s] - top), slope = weight * (ds[s] - delta);
        ds[s] = p[s] != -infinity.number ? slope : 0.0f;
        p[s] = weight;
    }
    if (h->drops) drop_weights(h, t, 0, n, 1, p);
}

/* dq, dk and dv of a head. scratch: keys (k_width + v_width + 2) floats, the keys in whole lines of
 * 16. */
static void attention_head_backward(const head *h, const head_gradients *g, float *scratch) {
    int n = keys_in_use(h), from, to;
    int row = whole_lines(n);
    float *kt = scratch, *vt = kt + row * h->k_width, *p = vt + row * h->v_width, *ds = p + row;
    turn(&h->k, 0, n, h->k_width, h->scale, kt);
    turn(&h->v, 0, n, h->v_width, 1.0f, vt);
    for (int s = 0; !g->adds && s < h->keys; s++) {
        for (int j = 0; j < h->k_width; j++) g->dk.data[s * g->dk.row + j] = 0;
        for (int j = 0; j < h->v_width; j++) g->dv.data[s * g->dv.row + j] = 0;
    }
    for (int t = 0; t < h->queries; t++) {
        float *dq = g->dq.data + t * g->dq.row;
        for (int j = 0; j < h->k_width; j++) dq[j] = 0;
        keys_of_query(h, t, n, &from, &to);
        scores_of(&h->q, t, h->k_width, n, kt, p);
        scores_of(&g->dy, t, h->v_width, n, vt, ds);
        mask_scores(h, t, 0, n, from, to, p);
        weights_of_query(h, &g->dy, t, n, p, ds);
        add_rows(&h->k, from, to, h->k_width, ds, h->scale, dq);
        for (int s = from; s < to; s++) {
            add_row(&h->q, t, h->k_width, ds[s], h->scale, g->dk.data + s * g->dk.row);
            add_row(&g->dy, t, h->v_width, p[s], 1.0f, g->dv.data + s * g->dv.row);
        }
    }
}
