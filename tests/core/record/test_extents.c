/* tests/core/record/test_extents.c - every op with an extent: a named size that is not known while
 * recording, and bound later.
 *
 * A row of the table of ops (op_cases.h) is recorded again, with the extent "N" in place of all
 * axes of one size. With N bound to that size, it must give the row's values and gradients. Rows
 * with literal sizes in their expression (a reshape to 5 by 3) cannot be recorded so. The tally
 * counts the rows that can, and a test fails if they become few. */
#include "tests/ops/op_cases.h"
#include "tests/suites.h"

TESTS(extents)

typedef struct named {
    const op_case *row;
    wf_graph *g;
    wf_tensor *x[MAX_CASE_OPERANDS], *wrt[MAX_CASE_OPERANDS], *out[MAX_OUTPUTS];
    int n, n_wrt, n_out;
} named;

enum { NONE = -1 }; /* a size that no axis has */

/* Records the row on inputs whose axes of size `size` are N. Returns false if that fails. */
static bool open_named(named *w, const op_case *row, int64_t size) {
    *w = (named){ .row = row, .g = new_graph(WF_F64) };
    int64_t N = wf_extent(w->g, "N", 1 << 20);
    for (; w->n < MAX_CASE_OPERANDS && row->in[w->n].domain != NO_OPERAND; w->n++) {
        const operand *o = &row->in[w->n];
        int64_t shape[WF_MAX_DIMS];
        char name[] = { (char)('a' + w->n), '\0' };
        for (int i = 0; i < o->ndim; i++) shape[i] = o->shape[i] == size ? N : o->shape[i];
        wf_dtype dtype = o->domain == DOMAIN_IDS ? WF_I32 : WF_F64;
        w->x[w->n] = wf_input(w->g, name, dtype, o->ndim, shape);
        if (differentiable(o)) w->wrt[w->n_wrt++] = w->x[w->n];
    }
    wf_tensor *y = w->out[w->n_out++] = row->build(w->x);
    if (!wf_ok(w->g)) return false;
    if (y->dtype == WF_I32 || !w->n_wrt || refuses_gradients(y)) return true;
    wf_tensor *loss = wf_sum(wf_sin(wf_scale(y, 1.3)), WF_ALL_AXES, false);
    ck_assert_msg(wf_grad(loss, w->wrt, w->n_wrt, w->out + 1), "%s: %s", row->name, wf_error(w->g));
    w->n_out += w->n_wrt;
    return true;
}

static void feed_operand(const named *w, wf_plan *p, int which) {
    int64_t n = operand_count(&w->row->in[which]);
    double *data = operand_values(w->row, which);
    int32_t *ids = malloc((size_t)n * sizeof *ids + 1);
    ck_assert_ptr_nonnull(ids);
    bool real = w->x[which]->dtype == WF_F64;
    for (int64_t i = 0; !real && i < n; i++) ids[i] = (int32_t)data[i];
    ck_assert_msg(
        wf_feed(p, w->x[which], real ? (void *)data : (void *)ids, wf_bound_bytes(p, w->x[which])),
        "%s: %s", w->row->name, wf_plan_error(p));
    free(ids), free(data);
}

/* Runs the row with N bound to size. N is bound to another size first, so that a layout that is not
 * computed anew would show. */
static void run_named(const named *w, int64_t size, values *out) {
    wf_plan *p = wf_plan_new(w->g, &(wf_plan_options){ .fetch = w->out,
                                                       .n_fetch = w->n_out,
                                                       .feed = w->x,
                                                       .n_feed = w->n,
                                                       .training = w->row->random });
    ck_assert_msg(wf_plan_ok(p), "%s: %s", w->row->name, wf_plan_error(p));
    wf_bind(p, "N", size + 3), wf_plan_memory(p);
    ck_assert(wf_bind(p, "N", size == NONE ? 1 : size));
    for (int i = 0; i < w->n; i++) feed_operand(w, p, i);
    ck_assert_msg(wf_run(p), "%s: %s", w->row->name, wf_plan_error(p));
    for (int i = 0; i < w->n_out; i++) out[i].data = plan_values(p, w->out[i], &out[i].count);
    wf_plan_free(p);
}

static void compare_size(const op_case *row, int64_t size, const values *want, int n) {
    named w;
    values got[MAX_OUTPUTS];
    if (open_named(&w, row, size)) {
        run_named(&w, size, got);
        for (int i = 0; i < n; i++)
            ck_assert_msg(distance(got[i], want[i]) <= 1e-13, "%s with %lld by name: output %d: %g",
                          row->name, (long long)size, i, distance(got[i], want[i]));
        free_values(got, n);
        tally_note(TALLY_EXTENTS, 0);
    }
    wf_graph_free(w.g);
}

static int sizes_of(const op_case *row, int64_t *sizes) {
    int n = 0;
    for (int i = 0; i < MAX_CASE_OPERANDS; i++)
        for (int a = 0; a < row->in[i].ndim; a++) {
            bool seen = row->in[i].shape[a] < 1;
            for (int k = 0; k < n; k++) seen |= sizes[k] == row->in[i].shape[a];
            if (!seen) sizes[n++] = row->in[i].shape[a];
        }
    return n;
}

TEST_ROWS(row_takes_named_sizes, op_case_count) {
    const op_case *row = &op_cases[_i];
    int64_t sizes[MAX_CASE_OPERANDS * WF_MAX_DIMS];
    named w;
    values want[MAX_OUTPUTS];
    if (row->update) return; /* leaves have no names for their sizes */
    ck_assert_msg(open_named(&w, row, NONE), "%s: %s", row->name, wf_error(w.g));
    run_named(&w, NONE, want);
    int n = sizes_of(row, sizes);
    for (int k = 0; k < n; k++) compare_size(row, sizes[k], want, w.n_out);
    free_values(want, w.n_out);
    end_graph(w.g);
}

TEST(most_rows_take_named_sizes) {
    int taken = 0;
    for (int i = 0; i < op_case_count; i++) {
        int64_t sizes[MAX_CASE_OPERANDS * WF_MAX_DIMS];
        named w;
        int n = op_cases[i].update ? 0 : sizes_of(&op_cases[i], sizes);
        for (int k = 0; k < n; k++) {
            taken += open_named(&w, &op_cases[i], sizes[k]);
            wf_graph_free(w.g);
        }
    }
    ck_assert_int_ge(taken, 2 * op_case_count);
}
