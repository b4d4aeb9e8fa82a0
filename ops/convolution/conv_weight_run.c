/* ops/convolution/conv_weight_run.c - how conv2d_weight runs: it computes, for each weight, the sum
 * over images and positions.
 *
 * The planes of x are those of the convolution; dy is transposed, so that the output channels of a
 * position are a row. The sum over the positions of a band, a few rows of dy that stay in the
 * first-level cache, is one chain; bands, chunks and images are added in order. If there are few
 * weights, images and chunks are divided into up to MOST_PARTS parts, whose sums are added at the
 * end. Otherwise each task has some of the channels of x. The division depends on shapes alone. */
#include <string.h>

#include "convolution.h"

enum { X, DY }; /* operands */
enum { SMALL_WEIGHT = 1 << 17, MOST_PARTS = 8, CHANNELS = 16, BAND = 24 << 10 /* bytes */ };

typedef struct weight_run {
    conv_layout layout;
    /* output channels, rounded up to whole vectors; rows of dy that are used at a time */
    int64_t lanes, band;
    /* parts of the work, each with a sum of its own; units, the chunks into which the images are
     * cut: the number of all of them */
    int64_t parts, units;
    /* blocks of channels of x, if these are divided; taps of a channel */
    int64_t blocks, kernel;
    size_t planes, offsets, sum; /* bytes of planes, of offsets, and of the sums of a part */
} weight_run;

static bool plan_weight(wf_call *c, void *plan) {
    weight_run *r = plan;
    const wf_view *w = &c->out[0], *dy = &c->in[DY];
    conv_layout *l = &r->layout;
    size_t unit = wf_dtype_size(dy->dtype);
    *r = (weight_run){ 0 };
    if (wf_view_count(w) == 0) return true;
    if (!wf_conv_lay_out(c, l, c->attrs, false, &c->in[X], dy, w)) return false;
    r->lanes = round_up(l->targets, WF_KERNEL(l->type, vector));
    int64_t widest =
        /* a width that is the same for all kernel tables, so that the order of additions is, too */
        round_up(l->targets, WF_WIDEST);
    int64_t row = widest * l->side[1].target * (int64_t)unit;
    r->band = row ? BAND / row : 1;
    if (r->band < 1) r->band = 1;
    if (r->band > l->chunk) r->band = l->chunk;
    r->units = l->images * l->chunks;
    r->kernel = w->shape[2] * w->shape[3];
    bool small = l->groups * l->taps * widest <= SMALL_WEIGHT;
    r->parts = !small || r->units < 1 ? 1 : r->units < MOST_PARTS ? r->units : MOST_PARTS;
    r->blocks = small ? 1 : (l->sources + CHANNELS - 1) / CHANNELS;
    r->planes = (size_t)round_up(l->sources * l->channel + WF_WIDEST, WF_WIDEST) * unit;
    r->offsets = (size_t)round_up(l->taps, 8) * sizeof(int64_t);
    r->sum = (size_t)(l->groups * l->taps * r->lanes) * unit;
    c->work_bytes = r->offsets + (size_t)r->parts * r->sum;
    c->scratch_bytes = r->planes + (size_t)(r->band * l->side[1].target * r->lanes) * unit;
    return true;
}

static int64_t final_blocks(const weight_run *r) {
    return (r->layout.sources + CHANNELS - 1) / CHANNELS;
}

static int64_t tasks_weight(const wf_call *c, int phase) {
    const weight_run *r = c->plan;
    if (phase > 2 || r->lanes == 0) return 0;
    if (phase == 0) return 1;
    return r->layout.groups * (phase == 1 ? r->parts * r->blocks : final_blocks(r));
}

/* The sums of a part, from one channel of a group on: [taps, lanes]. */
static void *sums_of(const weight_run *r, const wf_call *c, int64_t part, int64_t group,
                     int64_t channel) {
    wf_view work = { .data = c->work, .dtype = r->layout.type };
    char *first = (char *)c->work + r->offsets + (size_t)part * r->sum;
    work.data = first;
    return wf_at(&work, (group * r->layout.taps + channel * r->kernel) * r->lanes);
}

/* Sets *from to the first channel of x that block `block` of `blocks` has, and returns how many it
 * has. A block after the last channel has 0 or fewer. */
static int64_t channels_of(const weight_run *r, int64_t block, int64_t blocks, int64_t *from) {
    int64_t sources = r->layout.sources, size = (sources + blocks - 1) / blocks;
    *from = block * size;
    return sources - *from < size ? sources - *from : size;
}

/* Add the positions of one chunk of an image to the sums of n channels at dw. */
static void add_chunk(const weight_run *r, const wf_call *c, int64_t which, int64_t group,
                      int64_t channel, int64_t n, void *dw, char *scratch) {
    const conv_layout *l = &r->layout;
    int64_t image = which / l->chunks, width = l->side[1].target, row, size;
    int64_t rows = wf_conv_chunk(l, which % l->chunks, &row);
    wf_view planes = { .data = scratch, .dtype = l->type };
    void *turned = scratch + r->planes;
    wf_conv_fill(l, &c->in[X], image, group * l->sources + channel, n, which % l->chunks, scratch);
    size = l->side[0].target * width;
    for (int64_t at = 0; at < rows; at += r->band) {
        wf_conv_weights w = { .terms = n * r->kernel, .lanes = r->lanes, .columns = width };
        int64_t from = (image * l->groups + group) * l->targets * size + (row + at) * width;
        w.rows = rows - at < r->band ? rows - at : r->band;
        w.x_row = l->planes.columns;
        w.offset = c->work;
        w.x = wf_at(&planes, at * l->planes.columns);
        w.dy = turned;
        w.dw = dw;
        WF_KERNEL(l->type, transpose(l->targets, w.rows * width, wf_at(&c->in[DY], from), size,
                                     turned, r->lanes));
        WF_KERNEL(l->type, conv_weight_rows(&w));
    }
}

static void sum_part(const weight_run *r, const wf_call *c, int64_t task, char *scratch) {
    const conv_layout *l = &r->layout;
    int64_t part = task / (l->groups * r->blocks), group = task / r->blocks % l->groups, channel;
    int64_t n = channels_of(r, task % r->blocks, r->blocks, &channel);
    size_t unit = wf_dtype_size(l->type);
    if (n <= 0) return;
    void *dw = sums_of(r, c, part, group, channel);
    memset(dw, 0, (size_t)(n * r->kernel * r->lanes) * unit);
    if (r->lanes > l->targets) /* set to 0 the lanes that belong to no channel */
        memset(scratch + r->planes, 0, (size_t)(r->band * l->side[1].target * r->lanes) * unit);
    for (int64_t u = r->units * part / r->parts; u < r->units * (part + 1) / r->parts; u++)
        add_chunk(r, c, u, group, channel, n, dw, scratch);
}

/* Sum part 0 + part 1 + ..., for some channels of x, and put it into the order of the weights. */
static void join_parts(const weight_run *r, const wf_call *c, int64_t task) {
    const conv_layout *l = &r->layout;
    int64_t blocks = final_blocks(r), group = task / blocks, channel;
    int64_t n = channels_of(r, task % blocks, blocks, &channel);
    if (n <= 0) return;
    void *sum = sums_of(r, c, 0, group, channel);
    for (int64_t part = 1; part < r->parts; part++)
        WF_KERNEL(l->type,
                  accumulate(n * r->kernel * r->lanes, sums_of(r, c, part, group, channel), sum));
    void *dw = wf_at(&c->out[0], group * l->targets * l->taps + channel * r->kernel);
    WF_KERNEL(l->type, transpose(n * r->kernel, l->targets, sum, r->lanes, dw, l->taps));
}

static bool eval_weight(const wf_call *c, int phase, int64_t task, void *scratch) {
    const weight_run *r = c->plan;
    if (phase == 0)
        wf_conv_offsets(&r->layout, c->work);
    else if (phase == 1)
        sum_part(r, c, task, scratch);
    else
        join_parts(r, c, task);
    return true;
}

static bool emit_weight(wf_emitter *e, const wf_call *c) {
    const weight_run *r = c->plan;
    if (r->lanes == 0) return true;
    const wf_view *w = &c->out[0];
    if (!wf_emit_convolution(e, c, c->attrs, &c->in[X], &c->in[DY], &w->shape[2], false))
        return false;
    wf_emit_text(e, "convolve_weight(&c, %n, %n, %n, x, dy, out);\n", r->parts, r->layout.chunk,
                 r->band);
    return true;
}

static double flops_weight(const wf_call *c) {
    const wf_view *w = &c->out[0];
    double channel = (double)wf_view_count(w) / (double)(w->shape[0] ? w->shape[0] : 1);
    return 2 * (double)wf_view_count(&c->in[DY]) * channel;
}

const wf_kernel wf_conv2d_weight_kernel = { .plan_bytes = sizeof(weight_run),
                                            .plan = plan_weight,
                                            .tasks = tasks_weight,
                                            .eval = eval_weight,
                                            .flops = flops_weight,
                                            .emit = emit_weight };
