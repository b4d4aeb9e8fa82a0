/* tests/ops/test_random_graphs.c - graphs that random_graphs.py generated, with PyTorch's values:
 * compares values, gradients and second-order gradients, with fused ops, in f32 and f64. The script
 * can generate any number of others. Also ops on extreme numbers, recorded by
 * record_extremes.py. */
#include "graph_text.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(random_graphs)

enum { PARTS = 16 };

/* Compares the weighted sum of a tensor's elements with that of PyTorch. */
static void compare_recorded(const graph_want *want, const double *have, int64_t count,
                             wf_dtype real, int graph) {
    double dot = 0, bound = 1e-11 * want->size + 1e-6 * want->error + 1e-12;
    ck_assert_msg(count == want->count, "graph %d, node %d: %lld elements", graph, want->node,
                  (long long)count);
    for (int64_t k = 0; k < count; k++) dot += (2 * graph_hash(1, (uint32_t)k) - 1) * have[k];
    if (real == WF_F32)
        bound = 1e-5 * want->size + 20 * want->error * (double)count + 1e-5;
    else
        bound *= (double)(count + 1);
    ck_assert_msg(fabs(dot - want->dot) <= bound, "graph %d, node %d, %s: %.17g, not %.17g", graph,
                  want->node, wf_dtype_name(real), dot, want->dot);
    tally_note(real == WF_F32 ? TALLY_TORCH_F32 : TALLY_TORCH_F64, 0);
}

static void replay(graph_program *p, wf_dtype real, int graph) {
    static graph_record r;
    ck_assert_msg(graph_record_new(&r, p, real, 0), "graph %d: %s", graph, r.problem);
    ck_assert_int_gt(p->wants, 0);
    wf_plan *plan = graph_plan(&r, p->show, p->shown, NULL);
    ck_assert_msg(wf_plan_ok(plan) && wf_run(plan), "graph %d: %s", graph, wf_plan_error(plan));
    for (int k = 0; k < p->wants; k++) {
        int64_t count;
        double *have = graph_values(&r, plan, p->want[k].node, &count);
        ck_assert_msg(have != NULL, "graph %d: %s", graph, wf_plan_error(plan));
        compare_recorded(&p->want[k], have, count, real, graph);
        free(have);
    }
    wf_plan_free(plan);
    graph_record_free(&r);
}

TEST_ROWS(graphs_are_those_of_pytorch, PARTS) {
    char path[512];
    FILE *file = fopen(source_path("tests/data/random_graphs.txt", path, sizeof path), "r");
    graph_program p;
    int graphs = 0;
    ck_assert_msg(file != NULL, "cannot read %s", path);
    for (; graph_program_read(&p, file); graphs++) {
        for (wf_dtype real = WF_F32; real <= WF_F64 && graphs % PARTS == _i; real++)
            replay(&p, real, graphs);
        graph_program_free(&p);
    }
    fclose(file);
    ck_assert_int_ge(graphs, 300);
}

/* ---- ops at the ends of the types ------------------------------------------------------------ */

static bool is_close(double have, double want, double relative, double absolute) {
    if (isnan(want)) return isnan(have);
    return have == want || fabs(have - want) <= relative * fabs(want) + absolute;
}

/* Compares a node with a line exact32 or exact64, "NODE RELATIVE ABSOLUTE v0 v1 ...". Returns the
 * number of elements that were compared. */
static int compare_exact(graph_record *r, wf_plan *plan, char *at, int graph) {
    int node = (int)strtol(at, &at, 10), compared = 0;
    double relative = strtod(at, &at), absolute = strtod(at, &at);
    int64_t count;
    double *have = graph_values(r, plan, node, &count);
    ck_assert_ptr_nonnull(have);
    for (int64_t k = 0; k < count; k++) {
        while (*at == ' ') at++;
        if (strncmp(at, "any", 3) == 0) {
            at += 3;
            continue;
        }
        double want = strtod(at, &at);
        ck_assert_msg(is_close(have[k], want, relative, absolute),
                      "program %d, node %d, element %d: %.17g, not %.17g", graph, node, (int)k,
                      have[k], want);
        compared++;
    }
    free(have);
    return compared;
}

static int replay_exact(graph_program *p, wf_dtype real, int graph) {
    static graph_record r;
    const char *name = real == WF_F32 ? "exact32 " : "exact64 ";
    int compared = 0;
    ck_assert_msg(graph_record_new(&r, p, real, 0), "program %d: %s", graph, r.problem);
    wf_plan *plan = graph_plan(&r, p->show, p->shown, NULL);
    ck_assert_msg(wf_plan_ok(plan) && wf_run(plan), "program %d: %s", graph, wf_plan_error(plan));
    char *text = p->text;
    for (int k = 0; k < p->lines; k++, text += strlen(text) + 1)
        if (strncmp(text, name, 8) == 0) compared += compare_exact(&r, plan, text + 8, graph);
    wf_plan_free(plan);
    graph_record_free(&r);
    return compared;
}

TEST_ROWS(ops_at_the_ends_of_types_are_those_of_pytorch, PARTS) {
    char path[512];
    FILE *file = fopen(source_path("tests/data/extremes.txt", path, sizeof path), "r");
    graph_program p;
    int programs = 0, compared = 0;
    ck_assert_msg(file != NULL, "cannot read %s", path);
    for (; graph_program_read(&p, file); programs++) {
        for (wf_dtype real = WF_F32; real <= WF_F64 && programs % PARTS == _i; real++)
            compared += replay_exact(&p, real, programs);
        graph_program_free(&p);
    }
    fclose(file);
    ck_assert_int_ge(programs, 1000);
    ck_assert_int_ge(compared, 1000);
}
