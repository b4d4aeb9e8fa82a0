/* ops/convolution/conv_run.c - how conv2d and conv_transpose2d run.
 *
 * First the weights are packed in the order in which tiles of output channels read them, and the
 * place of every tap in the planes is computed. A unit of work is a chunk of rows of one image and
 * one group of channels: its planes are made, and from them one tile of channels after another is
 * computed. A result is one chain of multiply-adds over channels, rows and columns of the kernel,
 * which starts with the bias. */
#include <assert.h>
#include <string.h>

#include "convolution.h"

/* LEAST_TASK: about the fewest multiply-adds of a task; BIAS: index of the operand */
enum { LEAST_TASK = 1 << 16, BIAS = 2 };

typedef struct conv_run {
    conv_layout layout;
    int64_t tile, tiles; /* output channels in a tile; tiles in a group */
    /* distance from one channel of a tile to the next in the scratch memory, in elements */
    int64_t results;
    /* distance in w from one source channel to the next, and from one target channel to the next */
    int64_t w_source, w_target;
    int64_t units, together; /* number of units of work; most units of a task */
    /* bytes of a unit's planes; bytes of the taps' places, which the packed weights follow in the
     * work memory */
    size_t planes, packed;
} conv_run;

static bool plan_run(wf_call *c, conv_run *r, bool transposed) {
    const wf_view *w = &c->in[1], *y = &c->out[0];
    conv_layout *l = &r->layout;
    *r = (conv_run){ 0 };
    if (wf_view_count(y) == 0) return true;
    if (!wf_conv_lay_out(c, l, c->attrs, transposed, &c->in[0], y, w)) return false;
    int64_t most = WF_KERNEL(l->type, conv_rows), kernel = w->shape[2] * w->shape[3];
    size_t unit = wf_dtype_size(l->type);
    r->tiles = (l->targets + most - 1) / most;
    r->tile = (l->targets + r->tiles - 1) / r->tiles;
    r->results = round_up(l->chunk * l->planes.columns, WF_WIDEST) + WF_WIDEST;
    r->w_source = transposed ? l->targets * kernel : kernel;
    r->w_target = transposed ? kernel : l->sources * kernel;
    r->units = l->images * l->groups * l->chunks;
    double cost =
        (double)l->chunk * (double)l->planes.columns * (double)l->taps * (double)l->targets;
    r->together = cost < LEAST_TASK ? (int64_t)(LEAST_TASK / (cost + 1)) + 1 : 1;
    r->planes = (size_t)round_up(l->sources * l->channel + WF_WIDEST, WF_WIDEST) * unit;
    r->packed = (size_t)round_up(l->taps, 8) * sizeof(int64_t);
    c->work_bytes = r->packed + (size_t)(l->groups * l->targets * l->taps) * unit;
    c->scratch_bytes = r->planes + (size_t)(r->tile * r->results) * unit;
    return true;
}

static bool plan_conv(wf_call *c, void *plan) {
    return plan_run(c, plan, false);
}

static bool plan_transpose(wf_call *c, void *plan) {
    return plan_run(c, plan, true);
}

static int64_t tasks_conv(const wf_call *c, int phase) {
    const conv_run *r = c->plan;
    if (phase > 1 || r->units == 0) return 0;
    return phase == 0 ? r->layout.groups * r->tiles : wf_task_count(r->units, r->together);
}

/* A tile of output channels of a group: *from is its first channel. Returns how many it has. */
static int64_t tile_of(const conv_run *r, int64_t tile, int64_t *from) {
    *from = tile * r->tile;
    return r->layout.targets - *from < r->tile ? r->layout.targets - *from : r->tile;
}

/* Packs the weights of a phase and tile in the order of the sum: for each tap one weight of each
 * channel. w: the weights of the group. Returns the end of the packed weights. */
static char *pack_phase(const conv_run *r, const int64_t phase[2], int64_t from, int64_t rows,
                        const char *w, char *to) {
    const conv_layout *l = &r->layout;
    size_t unit = wf_dtype_size(l->type);
    int64_t e, width = l->side[1].kernel;
    for (int64_t s = 0; s < l->sources; s++)
        for (int64_t ky = 0; ky < l->side[0].kernel; ky++) {
            if (!wf_conv_tap(&l->side[0], phase[0], ky, &e)) continue;
            for (int64_t kx = 0; kx < width; kx++) {
                if (!wf_conv_tap(&l->side[1], phase[1], kx, &e)) continue;
                int64_t at = s * r->w_source + ky * width + kx;
                for (int64_t t = from; t < from + rows; t++, to += unit)
                    memcpy(to, w + (size_t)(at + t * r->w_target) * unit, unit);
            }
        }
    return to;
}

/* The packed weights of a tile. They are sorted by phase. */
static char *packed_of(const conv_run *r, const wf_call *c, int64_t group, int64_t from) {
    const conv_layout *l = &r->layout;
    return (char *)c->work + r->packed +
           (size_t)((group * l->targets + from) * l->taps) * wf_dtype_size(l->type);
}

static void pack(const conv_run *r, const wf_call *c, int64_t group, int64_t tile) {
    const conv_layout *l = &r->layout;
    int64_t from, rows = tile_of(r, tile, &from), phase[2];
    const char *w = wf_at(&c->in[1], group * l->targets * l->taps);
    char *to = packed_of(r, c, group, from);
    for (phase[0] = 0; phase[0] < wf_conv_phases(&l->side[0]); phase[0]++)
        for (phase[1] = 0; phase[1] < wf_conv_phases(&l->side[1]); phase[1]++)
            to = pack_phase(r, phase, from, rows, w, to);
}

/* The unit that is being computed. */
typedef struct unit {
    const conv_run *run;
    const wf_call *call;
    int64_t image, group, row, rows; /* rows [row, row + rows) of each phase */
    void *planes, *results;
} unit;

/* Writes the results of a tile to their places in y. */
static void put_results(const unit *u, const int64_t phase[2], int64_t channel, int64_t channels,
                        int64_t rows, int64_t columns) {
    const conv_layout *l = &u->run->layout;
    const conv_side *v = &l->side[0], *h = &l->side[1];
    wf_view from = { .data = u->results, .dtype = l->type };
    for (int64_t i = 0; i < channels; i++) {
        int64_t plane = (u->image * l->groups + u->group) * l->targets + channel + i;
        int64_t row = u->row * v->scatter + phase[0];
        WF_KERNEL(
            l->type,
            conv_results(rows, columns, wf_at(&from, i * u->run->results), l->planes.columns,
                         wf_at(&u->call->out[0], (plane * v->target + row) * h->target + phase[1]),
                         v->scatter * h->target, h->scatter));
    }
}

/* The number of elements of a phase along an axis. */
static int64_t phase_count(const conv_side *s, int64_t r) {
    return r < s->target ? (s->target - r - 1) / s->scatter + 1 : 0;
}

/* Computes the part of a tile that belongs to one phase. Its taps begin at `first` among the tile's
 * taps. */
static void run_phase(const unit *u, const int64_t phase[2], int64_t tile, int64_t first,
                      int64_t terms) {
    const conv_layout *l = &u->run->layout;
    int64_t from, channels = tile_of(u->run, tile, &from), bias = u->group * l->targets + from;
    int64_t rows = phase_count(&l->side[0], phase[0]) - u->row,
            columns = phase_count(&l->side[1], phase[1]);
    if (rows > u->rows) rows = u->rows;
    if (rows <= 0 || columns <= 0) return;
    wf_conv_tile t = { .rows = channels, .terms = terms, .y_row = u->run->results };
    t.positions = (rows - 1) * l->planes.columns + columns;
    t.offset = (const int64_t *)u->call->work + first;
    t.x = u->planes;
    t.y = u->results;
    t.weights = packed_of(u->run, u->call, u->group, from) +
                (size_t)(first * channels) * wf_dtype_size(l->type);
    t.start = u->call->in[BIAS].ndim < 0 ? NULL : wf_at(&u->call->in[BIAS], bias);
    WF_KERNEL(l->type, conv_tile(&t));
    put_results(u, phase, from, channels, rows, columns);
}

static void run_unit(const conv_run *r, const wf_call *c, int64_t which, char *scratch) {
    const conv_layout *l = &r->layout;
    int64_t chunk = which % l->chunks, phase[2], first = 0;
    unit u = { .run = r, .call = c, .planes = scratch, .results = scratch + r->planes };
    u.group = which / l->chunks % l->groups;
    u.image = which / l->chunks / l->groups;
    u.rows = wf_conv_chunk(l, chunk, &u.row);
    wf_conv_fill(l, &c->in[0], u.image, u.group * l->sources, l->sources, chunk, u.planes);
    for (phase[0] = 0; phase[0] < wf_conv_phases(&l->side[0]); phase[0]++) {
        int64_t row = l->sources * wf_conv_taps(&l->side[0], phase[0]);
        for (phase[1] = 0; phase[1] < wf_conv_phases(&l->side[1]); phase[1]++) {
            int64_t terms = row ? row * wf_conv_taps(&l->side[1], phase[1]) : 0;
            for (int64_t tile = 0; tile < r->tiles; tile++)
                run_phase(&u, phase, tile, first, terms);
            first += terms;
        }
    }
    assert(first <= l->taps);
}

static bool eval_conv(const wf_call *c, int phase, int64_t task, void *scratch) {
    const conv_run *r = c->plan;
    int64_t from, to;
    if (phase == 0) {
        if (task == 0) wf_conv_offsets(&r->layout, c->work);
        pack(r, c, task / r->tiles, task % r->tiles);
        return true;
    }
    wf_task_range(r->units, r->together, task, &from, &to);
    for (int64_t which = from; which < to; which++) run_unit(r, c, which, scratch);
    return true;
}

bool wf_emit_convolution(wf_emitter *e, const wf_call *c, const conv *a, const wf_view *x,
                         const wf_view *y, const int64_t kernel[2], bool transposed) {
    static const char *const names[] = { "source", "target",  "kernel",
                                         "stride", "padding", "dilation" };
    /* The written C sets one member after another, because compilers call memcpy for a list of
     * values. */
    wf_emit_text(e,
                 "convolution c;\nc.images = %n;\nc.groups = %n;\nc.sources = %n;\n"
                 "c.targets = %n;\nc.transposed = %d;\n",
                 x->shape[0], a->groups, x->shape[1] / a->groups, y->shape[1] / a->groups,
                 (int)transposed);
    for (int k = 0; k < (int)(sizeof names / sizeof *names); k++) {
        int64_t of[2];
        for (int i = 0; i < 2; i++) {
            int64_t all[] = { x->shape[2 + i], y->shape[2 + i], kernel[i],
                              a->stride[i],    a->padding[i],   a->dilation[i] };
            of[i] = all[k];
            double reach = (double)(kernel[i] - 1) * (double)a->dilation[i] + (double)a->padding[i];
            if (reach + (double)y->shape[2 + i] * (double)a->stride[i] > INT32_MAX / 2)
                return wf_fail(c, "%s is too large for a form in C", wf_show(c, x));
        }
        for (int i = 0; i < 2; i++) wf_emit_text(e, "c.%s[%d] = %n;\n", names[k], i, of[i]);
    }
    return true;
}

static bool emit_conv(wf_emitter *e, const wf_call *c, bool transposed) {
    const wf_view *y = &c->out[0];
    if (wf_view_count(y) == 0) return true;
    if (!wf_emit_convolution(e, c, c->attrs, &c->in[0], y, &c->in[1].shape[2], transposed))
        return false;
    wf_emit_text(e, "convolve(&c, x, weight, %s, out);\n", wf_emit_operand(e, BIAS));
    return true;
}

static bool emit_conv2d(wf_emitter *e, const wf_call *c) {
    return emit_conv(e, c, false);
}

static bool emit_transpose(wf_emitter *e, const wf_call *c) {
    return emit_conv(e, c, true);
}

/* Every weight is multiplied once for each position of the smaller image, which is the result of a
 * convolution, or the operand of a transposed one. */
static double flops_of(const wf_call *c, const wf_view *small) {
    const wf_view *w = &c->in[1];
    double channel = (double)wf_view_count(w) / (double)(w->shape[0] ? w->shape[0] : 1);
    return 2 * (double)wf_view_count(small) * channel;
}

static double flops_conv(const wf_call *c) {
    return flops_of(c, &c->out[0]);
}

static double flops_transpose(const wf_call *c) {
    return flops_of(c, &c->in[0]);
}

const wf_kernel wf_conv2d_kernel = { .plan_bytes = sizeof(conv_run),
                                     .plan = plan_conv,
                                     .tasks = tasks_conv,
                                     .eval = eval_conv,
                                     .flops = flops_conv,
                                     .emit = emit_conv2d };

const wf_kernel wf_conv_transpose2d_kernel = { .plan_bytes = sizeof(conv_run),
                                               .plan = plan_transpose,
                                               .tasks = tasks_conv,
                                               .eval = eval_conv,
                                               .flops = flops_transpose,
                                               .emit = emit_transpose };
