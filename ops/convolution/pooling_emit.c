/* ops/convolution/pooling_emit.c - maxima of windows as C (core/emit/emitter.h). */
#include "pooling.h"

/* Writes C that declares the convolution with these windows, in which every channel is an image of
 * its own. */
static bool emit_windows(wf_emitter *e, const wf_call *c, const wf_view *x, const wf_view *y) {
    const pool *p = c->attrs;
    wf_view image = *x, windows = *y;
    image.shape[0] *= image.shape[1];
    image.shape[1] = windows.shape[1] = 1;
    return wf_emit_convolution(e, c, &p->window, &image, &windows, p->kernel, false);
}

bool wf_emit_max_pool2d(wf_emitter *e, const wf_call *c) {
    if (wf_view_count(&c->out[0]) == 0) return true;
    if (!emit_windows(e, c, &c->in[0], &c->out[0])) return false;
    wf_emit_result(e, 1, "place");
    wf_emit_text(e, "largest_of_windows(&c, x, out, place);\n");
    return true;
}

bool wf_emit_max_pool2d_scatter(wf_emitter *e, const wf_call *c) {
    const wf_view *x = &c->out[0], *y = &c->in[0];
    if (wf_view_count(x) == 0) return true;
    if (!emit_windows(e, c, x, y)) return false;
    wf_emit_text(e, "for (int i = 0; i < %n; i++) out[i] = 0;\n", wf_view_count(x));
    wf_emit_text(e, "for (int i = 0; i < %n; i++) {\n", wf_view_count(y));
    wf_emit_text(e, "int at = place_of_largest(&c, i, place[i]);\n");
    wf_emit_text(e, "if (at >= 0) out[i / %n * %n + at] += dy[i];\n}\n", y->shape[2] * y->shape[3],
                 x->shape[2] * x->shape[3]);
    return true;
}

bool wf_emit_max_pool2d_gather(wf_emitter *e, const wf_call *c) {
    const wf_view *x = &c->in[0], *y = &c->out[0];
    if (wf_view_count(x) == 0) return true;
    if (!emit_windows(e, c, x, y)) return false;
    wf_emit_text(e, "for (int i = 0; i < %n; i++) {\n", wf_view_count(y));
    wf_emit_text(e, "int at = place_of_largest(&c, i, place[i]);\n");
    wf_emit_text(e, "out[i] = at >= 0 ? x[i / %n * %n + at] : 0.0f;\n}\n",
                 y->shape[2] * y->shape[3], x->shape[2] * x->shape[3]);
    return true;
}
