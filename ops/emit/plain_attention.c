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
 * 0 for none; compared with 0, or added if additive. window 0: all keys. A weight is kept where a
 * half word of random bits is below the threshold. adds: dk and dv are added to what is there. */
typedef struct head {
    int queries, keys, k_width, v_width, window, causal, additive, drops, adds;
    float scale, keep_scale;
    uint32_t threshold;
    uint64_t key, stream, element;
    matrix q, k, v, mask, y, stats, dy, dq, dk, dv;
} head;

/* The keys before the padding at the end that one mask shuts for all queries. */
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

/* at [width, n] = scale times the transpose of rows [from, from + n) of x. */
static void turn(const matrix *x, int from, int n, int width, float scale, float *at) {
    for (int j = 0; j < width; j++)
        for (int s = 0; s < n; s++) at[j * n + s] = scale * element(x, from + s, j);
}

/* y += by (scale row i of x). Rows whose elements are neighbours have a loop that compilers
 * vectorise. */
static void add_row(const matrix *x, int i, int width, float by, float scale, float *restrict y) {
    const float *restrict row = x->data + i * x->row;
    if (x->column == 1)
        for (int j = 0; j < width; j++) y[j] = multiply_add(by, scale * row[j], y[j]);
    else
        for (int j = 0; j < width; j++) y[j] = multiply_add(by, scale * row[j * x->column], y[j]);
}

/* score[s] = row t of q times column s of kt [width, n]. */
static void scores_of(const matrix *q, int t, int width, int n, const float *kt, float *score) {
    for (int s = 0; s < n; s++) score[s] = 0;
    for (int j = 0; j < width; j++) {
        float x = element(q, t, j);
        for (int s = 0; s < n; s++) score[s] = multiply_add(x, kt[j * n + s], score[s]);
    }
}

/* -inf where query t does not see keys [first, first + n), or where the mask shuts them. */
static void mask_scores(const head *h, int t, int first, int n, int from, int to, float *score) {
    float_bits infinity;
    infinity.word = UINT32_C(0x7f800000);
    for (int s = 0; s < n; s++) {
        int key = first + s;
        float m = h->mask.data ? element(&h->mask, t, key) : 1.0f;
        if (h->mask.data && h->additive) score[s] += m;
        if (key < from || key >= to || (!h->additive && m == 0)) score[s] = -infinity.number;
    }
}

static int is_kept(const head *h, int t, int s) {
    uint32_t word[4];
    uint64_t e = h->element + (uint64_t)t * (uint64_t)h->keys + (uint64_t)s;
    if (!h->drops) return 1;
    philox(h->key, e / 8, h->stream, word);
    return (word[e / 2 % 4] >> (e % 2 ? 16 : 0) & 0xffff) < h->threshold;
}

/* The sum of a line of 16 lanes, by halves. */
static float sum_of_line(const float lane[16]) {
    float sum[16];
    for (int i = 0; i < 16; i++) sum[i] = lane[i];
    for (int apart = 8; apart >= 1; apart /= 2)
        for (int i = 0; i < apart; i++) sum[i] += sum[i + apart];
    return sum[0];
}

/* Query t and the keys [first, first + n): y becomes y less + p v, total likewise; score has n
 * scores on entry, and their exponentials p, not yet divided by the total, on return. */
static void attend(const head *h, int t, int first, int n, int from, int to, float *score,
                   float *top, float *total) {
    float *y = h->y.data + t * h->y.row, lane[16], high = *top, shift;
    float_bits infinity;
    infinity.word = UINT32_C(0x7f800000);
    for (int i = 0; i < 16; i++) lane[i] = 0;
    for (int s = 0; s < n; s++) high = score[s] > high ? score[s] : high;
    if (high > *top && first > 0) {
        float less = exp_below(*top - high);
        for (int j = 0; j < h->v_width; j++) y[j] *= less;
        *total *= less;
    }
    *top = high;
    shift = high == -infinity.number ? 0.0f : high;
    for (int s = 0; s < n; s++) {
        score[s] = exp_below(score[s] - shift);
        lane[s % 16] += score[s];
    }
    for (int s = from > first ? from - first : 0; s < n && first + s < to; s++) {
        float p = is_kept(h, t, first + s) ? score[s] : 0.0f;
        add_row(&h->v, first + s, h->v_width, p, 1.0f, y);
    }
    *total += sum_of_line(lane);
}

/* y = dropout(softmax(scale q k^T, masked)) v, keys in blocks of 128. scratch: k_width + 1 floats
 * for each key, at most 128, and 2 for each query. */
static void attention_head(const head *h, float *scratch) {
    int block = h->keys < 128 ? h->keys : 128;
    float *kt = scratch, *score = kt + block * h->k_width, *top = score + block;
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

/* The weights p of query t after dropout, and ds, for n keys of which it sees [from, to). p has
 * scores on entry, ds the products of dy and v. */
static void weights_of_query(const head *h, int t, int n, float *p, float *ds) {
    float_bits infinity;
    float lane[16], top = h->stats.data[t], inverse = h->stats.data[h->stats.row + t];
    float scale = h->drops ? h->keep_scale : 1.0f;
    infinity.word = UINT32_C(0x7f800000);
    for (int i = 0; i < 16; i++) lane[i] = 0;
    for (int j = 0; j < h->v_width; j++)
        lane[j % 16] = multiply_add(element(&h->dy, t, j), element(&h->y, t, j), lane[j % 16]);
    float delta = sum_of_line(lane);
    for (int s = 0; s < n; s++) {
        float weight = inverse * exp_below(p[s] - top);
        int kept = is_kept(h, t, s);
        float dp = kept ? ds[s] * scale : 0.0f;
        ds[s] = p[s] != -infinity.number ? weight * (dp - delta) : 0.0f;
        p[s] = kept ? weight * scale : 0.0f;
    }
}

/* dq, dk and dv of a head. scratch: keys (k_width + v_width + 2) floats. */
static void attention_head_backward(const head *h, float *scratch) {
    int n = keys_in_use(h), from, to;
    float *kt = scratch, *vt = kt + n * h->k_width, *p = vt + n * h->v_width, *ds = p + n;
    turn(&h->k, 0, n, h->k_width, h->scale, kt);
    turn(&h->v, 0, n, h->v_width, 1.0f, vt);
    for (int s = 0; !h->adds && s < h->keys; s++) {
        for (int j = 0; j < h->k_width; j++) h->dk.data[s * h->dk.row + j] = 0;
        for (int j = 0; j < h->v_width; j++) h->dv.data[s * h->dv.row + j] = 0;
    }
    for (int t = 0; t < h->queries; t++) {
        float *dq = h->dq.data + t * h->dq.row;
        for (int j = 0; j < h->k_width; j++) dq[j] = 0;
        keys_of_query(h, t, n, &from, &to);
        scores_of(&h->q, t, h->k_width, n, kt, p);
        scores_of(&h->dy, t, h->v_width, n, vt, ds);
        mask_scores(h, t, 0, n, from, to, p);
        weights_of_query(h, t, n, p, ds);
        for (int s = from; s < to; s++) {
            add_row(&h->k, s, h->k_width, ds[s], h->scale, dq);
            add_row(&h->q, t, h->k_width, ds[s], h->scale, h->dk.data + s * h->dk.row);
            add_row(&h->dy, t, h->v_width, p[s], 1.0f, h->dv.data + s * h->dv.row);
        }
    }
}
