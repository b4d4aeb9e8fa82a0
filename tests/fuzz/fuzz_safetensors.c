/* tests/fuzz/fuzz_safetensors.c - any bytes as a model's file: refused with a sentence, or every
 * entry is within the data, of the length that its shape says, and found again by its name. A graph
 * takes all of what it was given, or stays as it was. */
#include "core/save.h"
#include "fuzz.h"
#include "mutator.h"
#include "ops/ops.h"

static uint64_t sum(const void *data, size_t bytes) {
    uint64_t s = 0;
    for (size_t i = 0; i < bytes; i++) s += ((const unsigned char *)data)[i];
    return s;
}

/* Reads what it is given to the last byte, so that the sanitizer sees it. */
static void look_at(const wf_file *f, const wf_entry *e, size_t size) {
    fuzz_must(e && e->name && e->dtype && e->ndim >= 0 && e->ndim <= WF_MAX_DIMS);
    fuzz_must(e->bytes <= size && wf_file_find(f, e->name) == e);
    int64_t count = 1;
    for (int i = 0; i < e->ndim; i++) {
        fuzz_must(e->shape[i] >= 0);
        if (!e->shape[i]) count = 0;
    }
    for (int i = 0; i < e->ndim && count; i++) count *= e->shape[i];
    fuzz_must((count == 0) == (e->bytes == 0));
    if (strcmp(e->dtype, "F32") == 0) fuzz_must((uint64_t)count * 4 == e->bytes);
    fuzz_must(sum(e->data, e->bytes) <= 255 * (uint64_t)e->bytes);
}

/* Every entry that is not loaded has a reason. */
static void judge_item(void *user, const wf_load_item *item) {
    ++*(int *)user;
    fuzz_must((item->outcome == WF_LOADED) == !*item->reason);
}

/* Into a graph with two leaves of usual names, which may be renamed ones. */
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
    fuzz_must(f);
    int n = wf_file_count(f), n_meta = wf_file_meta_count(f);
    fuzz_must(wf_file_ok(f) == !*wf_file_error(f));
    fuzz_must(wf_file_ok(f) || (n == 0 && n_meta == 0));
    for (int i = 0; i < n; i++) look_at(f, wf_file_at(f, i), size);
    for (int i = 0; i < n_meta; i++) {
        wf_meta pair = wf_file_meta_at(f, i);
        fuzz_must(pair.key && pair.value && wf_file_meta(f, pair.key) == pair.value);
    }
    load_into_graph(f, 0);
    load_into_graph(f, WF_ALLOW_MISSING | WF_ALLOW_UNEXPECTED | WF_ALLOW_MISFITS);
    wf_file_free(f);
    return 0;
}

FUZZ_MUTATOR
