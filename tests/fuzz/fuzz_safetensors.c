/* tests/fuzz/fuzz_safetensors.c - any bytes as a model's file: refused with a sentence, or every
 * entry is within the data, of the length that its shape says, and found again by its name. A load
 * into a graph that is refused changes no leaf. */
#include "core/file_internal.h"
#include "core/save.h"
#include "fuzz.h"
#include "judge_file.h"
#include "mutator.h"
#include "ops/ops.h"

/* Counts an item, and checks that it has a reason if it was not loaded, and none if it was. */
static void judge_item(void *user, const wf_load_item *item) {
    ++*(int *)user;
    fuzz_must((item->outcome == WF_LOADED) == !*item->reason);
}

/* Loads the file into a graph with two leaves of usual names, with and without renaming. */
static void load_into_graph(const wf_file *f, unsigned allow) {
    wf_graph *g = wf_graph_new(NULL);
    wf_param(g, "w", 1, (int64_t[]){ 1 }, wf_init_constant(3));
    wf_param(g, "m.w", 2, (int64_t[]){ 2, 1 }, wf_init_constant(3));
    const wf_rename rename = { "w", "m.w" };
    wf_load_report report;
    int items = 0;
    float w;
    wf_load_options o = { .allow = allow,
                          .renames = &rename,
                          .n_renames = (int)allow & 1,
                          .each = judge_item,
                          .user = &items };
    bool ok = wf_load(g, f, &o, &report);
    fuzz_must(ok == !*report.message && (ok || !report.loaded));
    fuzz_must(items == report.loaded + report.missing + report.unexpected + report.misfits);
    fuzz_must(wf_read(wf_find(g, "w"), &w, sizeof w) && (report.loaded || w == 3));
    wf_graph_free(g);
}

FUZZ_TARGET(safetensors) {
    wf_file *f = wf_file_parse(data, size);
    judge_file(f, size);
    load_into_graph(f, 0);
    load_into_graph(f, WF_ALLOW_MISSING | WF_ALLOW_UNEXPECTED | WF_ALLOW_MISFITS);
    wf_file_free(f);
    return 0;
}

FUZZ_MUTATOR
