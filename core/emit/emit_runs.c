/* core/emit/emit_runs.c - results of several runs of a plan, which later plans read together.
 * For example, each run of an encoder reads one sentence, and a decoder the results of all runs.
 *
 * A run leaves its results in the memory of its plan. The emitted function model_RUN_keep then
 * copies them into a block, which has room for the results of each run that is kept. */
#include <stdlib.h>

#include "emit_places.h"
#include "emit_sections.h"

/* The bytes of a storage. If runs of the plan choose a size, they are those at the largest size. */
static int64_t bytes_of(const part *q, int at) {
    return (int64_t)(q->rooms ? q->rooms[at].bytes : q->plan->now->storages[at].bytes);
}

/* The floats that the results of one run take in the block of a storage. */
static int64_t floats_of(const part *q, int at) {
    return (bytes_of(q, at) / 4 + LEAF_UNIT - 1) / LEAF_UNIT * LEAF_UNIT;
}

int64_t wf_run_floats(const part *q, int at) {
    return q->keeps && at >= 0 && q->keeps[at] >= 0 ? floats_of(q, at) : 0;
}

bool wf_place_runs(wf_emitter *e, part *q) {
    const binding *b = q->plan->now;
    q->keeps = malloc(((size_t)b->n_storages + 1) * sizeof *q->keeps);
    if (!q->keeps) return wf_emitter_lacks(e);
    for (int i = 0; i < b->n_storages; i++) q->keeps[i] = -1;
    for (int i = 0; i < q->plan->n_nodes; i++) {
        int at = wf_storage_read_later(e, q, i);
        if (at < 0 || q->keeps[at] >= 0) continue;
        int64_t floats = floats_of(q, at) * e->kept_runs;
        q->keeps[at] = wf_free_floats(e, floats);
        if (!wf_take_floats(e, q->keeps[at], floats)) return false;
    }
    return true;
}

static void write_copies(const part *q, wf_text *t) {
    const binding *b = q->plan->now;
    for (int at = 0; at < b->n_storages; at++) {
        int64_t apart = wf_run_floats(q, at);
        size_t from = q->rooms ? q->rooms[at].offset : b->storages[at].offset;
        if (apart == 0) continue;
        wf_text_print(t,
                      "    for (int i = 0; i < %n; i++)\n"
                      "        floats(m, %n)[run * %n + i] = floats(m, %n)[i];\n",
                      bytes_of(q, at) / 4, q->keeps[at], apart, q->arena + (int64_t)(from / 4));
    }
}

void wf_write_keeps(const wf_emitter *e, wf_text *t) {
    for (const part *q = e->parts; q < e->parts + e->n_parts; q++) {
        if (!q->keeps) continue;
        wf_text_print(t,
                      "\n/* Keep the results of the last run of %s as number `run`. */\n"
                      "void %s_%s_keep(const %s *m, int run) {\n"
                      "    (void)m;\n"
                      "    if (run < 0 || run >= %n) return;\n",
                      q->name, e->prefix, q->name, e->prefix, e->kept_runs);
        write_copies(q, t);
        wf_text_puts(t, "}\n");
    }
}
