/* tests/own_names.c - a program whose functions have names without a prefix, such as fuse and run,
 * which the library must leave to programs.
 *
 * The program is linked with the whole static library. If the library had an external function of
 * one of these names, without the prefix wf_, the linker would report two definitions. */
#include <stdbool.h>
#include <stdio.h>

#include <weft/models/text.h>
#include <weft/models/transformer.h>

static int calls;
#define OWN(name)                                                                                  \
    void name(void);                                                                               \
    void name(void) {                                                                              \
        calls++;                                                                                   \
    }
OWN(graph_add)
OWN(graph_alloc)
OWN(graph_intern)
OWN(fuse)
OWN(find)
OWN(fail)
OWN(run)
OWN(is_poison)
OWN(copy_view)
OWN(leaf_data)
OWN(memory_new)
OWN(room_take)
OWN(plan_fail)
OWN(plan_value)
OWN(feed_of)
OWN(report_reset)
OWN(run_rows)
OWN(options_ok)
OWN(style_of)
OWN(picture_make)
OWN(attention_rows)
OWN(likeliest)
OWN(draw_tokens)
OWN(decoder_step)
OWN(length_penalty)

int main(void) {
    graph_add(), fuse(), find(), fail();
    wf_graph *g = wf_graph_new(NULL);
    wf_tensor *t = wf_add(wf_constant(g, 1), wf_constant(g, 2));
    float sum = 0;
    wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = &t, .n_fetch = 1 });
    bool ok = wf_run(p) && wf_fetch(p, t, &sum, sizeof sum) && sum == 3 && calls == 4;
    if (!ok) fprintf(stderr, "%s %s\n", wf_error(g), wf_plan_error(p));
    wf_plan_free(p), wf_graph_free(g);
    return !ok;
}
