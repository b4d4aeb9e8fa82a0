/* tests/targets/record_plans.c - writes the plans that a program runs as C files, each with its
 * first runs: their inputs, and what they must compute.
 *
 * It is linked into the program with -Wl,--wrap=wf_run,--wrap=wf_run_state,--wrap=wf_plan_free and
 * weft's static library, so that a trainer's runs are recorded, too. WEFT_RECORD is the beginning
 * of the files' names: with "mlp", plan number 1 is mlp_1.c. That file has the functions that
 * answers.h calls: it answers each line of mlp_1.lines with the checksums of the next run's
 * results. mlp_1.expected has the checksums of the library's results. The first MOST_PLANS plans
 * are named on stdout, also those that wf_emit cannot write in C; others are not recorded.
 *
 * A plan is recorded for RUNS runs, or until its extents change, it is freed, or another plan of
 * its graph runs, which may change its weights. A plan with a state is recorded for its first run,
 * at position 0. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/emit.h"
#include "core/emit/c_text.h"
#include "core/plan/plan.h"

enum { RUNS = 20, MOST_PLANS = 8, ROOM = 256 };

typedef struct recorded_plan {
    const wf_plan
        *plan; /* only compared; NULL once it is freed, for another may have its address */
    const wf_graph *graph;
    bool with_state;
    char *model; /* text of wf_emit; NULL: wf_emit failed, or the file has been written */
    wf_text values, runs, expected, results;
    int n_runs;
    int64_t most; /* elements of a result */
    int64_t size[MAX_EXTENTS];
    bool is_open;
} recorded_plan;

static recorded_plan plans[MOST_PLANS];
static int n_plans;
static pid_t process;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* With --wrap the linker binds the program's calls to the first three functions, and calls of the
 * last three to the library's functions. */
bool record_run(wf_plan *p) __asm__("__wrap_wf_run");
bool record_run_state(wf_plan *p, wf_state *s) __asm__("__wrap_wf_run_state");
void record_free(wf_plan *p) __asm__("__wrap_wf_plan_free");
bool library_run(wf_plan *p) __asm__("__real_wf_run");
bool library_run_state(wf_plan *p, wf_state *s) __asm__("__real_wf_run_state");
void library_free(wf_plan *p) __asm__("__real_wf_plan_free");

/* ---- what a run reads and computes ----------------------------------------------------------- */

static void name_of(const wf_tensor *t, char name[ROOM]) {
    wf_identifier(called(t), name, ROOM);
}

/* The values of an input as an array of the file, and a statement that sets it. */
static void record_input(recorded_plan *r, wf_plan *p, const feed *f) {
    char name[ROOM];
    size_t n = wf_bound_bytes(p, f->tensor) / 4;
    size_t row = f->row_index && f->shape[0] ? n / (size_t)f->shape[0] : n;
    bool is_int = f->tensor->dtype == WF_I32;
    name_of(f->tensor, name);
    wf_text_print(&r->values, "static const %s run_%d_%s[%n] = {", is_int ? "int32_t" : "float",
                  r->n_runs, name, (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        size_t at = f->row_index ? (size_t)f->row_index[i / row] * row + i % row : i;
        wf_text_puts(&r->values, i % 8 ? " " : "\n    ");
        if (is_int)
            wf_text_print(&r->values, "%n,", (int64_t)((const int32_t *)f->data)[at]);
        else
            wf_text_print(&r->values, "%f,", (double)((const float *)f->data)[at]);
    }
    wf_text_puts(&r->values, "\n};\n\n");
    wf_text_print(&r->runs, "        m->plan.%s = run_%d_%s;\n", name, r->n_runs, name);
}

static void record_inputs(recorded_plan *r, wf_plan *p) {
    wf_text_print(&r->runs, "    case %d:\n", r->n_runs);
    for (int i = 0; i < p->n_feeds; i++)
        if (p->feeds[i].needed && p->feeds[i].data) record_input(r, p, &p->feeds[i]);
    if (strstr(r->model, "uint64_t run_step;"))
        wf_text_print(&r->runs,
                      "        m->plan.run_step = %u;\n        m->plan.run_micro_batch = %n;\n",
                      p->step, (int64_t)p->micro_batch);
    wf_text_puts(&r->runs, "        break;\n");
}

/* FNV-1a over the values as numbers of 32 bits. */
static uint64_t checksum_of(const uint32_t *value, size_t n) {
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++) sum = (sum ^ value[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static bool is_result(const planned *n) {
    return n->fetched && !(n->node->op && n->node->op->writes);
}

/* Statements that copy a result and append the checksum of its bits to an answer. */
static void write_result(recorded_plan *r, const wf_tensor *t, const char *name, int64_t n) {
    wf_text *to = &r->results;
    char getter[2 * ROOM];
    snprintf(getter, sizeof getter, "plan_get_%s(const plan *m, int position", name);
    wf_text_print(to, "    plan_get_%s(&m->plan, %sfetched.%s);\n", name,
                  strstr(r->model, getter) ? "0, " : "", t->dtype == WF_I32 ? "integers" : "reals");
    wf_text_print(to, "    at = put_name(\"%s\", out, at);\n", name);
    wf_text_print(to, "    at = put_sum(checksum_of(fetched.words, %n), out, at);\n", n);
    if (n > r->most) r->most = n;
}

/* The checksum of a value of n elements goes into the line of the run. */
static void record_result(recorded_plan *r, const char *name, const uint32_t *data, size_t n) {
    char line[ROOM + 32];
    snprintf(line, sizeof line, "%s %016llx ", name, (unsigned long long)checksum_of(data, n));
    wf_text_puts(&r->expected, line);
}

static void record_fetch(recorded_plan *r, wf_plan *p, const wf_tensor *t) {
    size_t bytes = wf_bound_bytes(p, t);
    uint32_t *data = malloc(bytes + 4);
    char name[ROOM];
    if (!data || !wf_fetch(p, t, data, bytes)) exit(3);
    name_of(t, name);
    record_result(r, name, data, bytes / 4);
    if (r->n_runs == 0) write_result(r, t, name, (int64_t)(bytes / 4));
    free(data);
}

/* A leaf that the run has updated. */
static void record_leaf(recorded_plan *r, const wf_tensor *t) {
    size_t n = (size_t)wf_count(t);
    uint32_t *data = malloc(n * 4 + 4);
    char name[ROOM];
    if (!data || !wf_read(t, data, n * 4)) exit(3);
    wf_identifier(t->name, name, sizeof name);
    record_result(r, name, data, n);
    free(data);
    if (r->n_runs) return;
    if ((int64_t)n > r->most) r->most = (int64_t)n;
    wf_text_print(&r->results,
                  "    for (int i = 0; i < %n; i++)\n"
                  "        fetched.reals[i] = m->plan.weights[at_%s_%d + i];\n"
                  "    at = put_name(\"%s\", out, at);\n"
                  "    at = put_sum(checksum_of(fetched.words, %n), out, at);\n",
                  (int64_t)n, name, t->id, name, (int64_t)n);
}

static void record_results(recorded_plan *r, wf_plan *p) {
    for (int i = 0; i < p->n_nodes; i++) {
        const wf_tensor *t = p->nodes[i].node;
        if (is_result(&p->nodes[i])) record_fetch(r, p, t);
        for (int k = 0; p->nodes[i].fetched && t->op && k < t->n_in; k++)
            if (t->op->writes >> k & 1 && t->in[k]) record_leaf(r, t->in[k]);
    }
    wf_text_puts(&r->expected, "\n");
    r->n_runs++;
}

/* ---- the files ------------------------------------------------------------------------------- */

static const char *const driver[] = {
    "static uint64_t checksum_of(const uint32_t *value, int n) {\n",
    "    uint64_t sum = UINT64_C(0xcbf29ce484222325);\n",
    "    for (int i = 0; i < n; i++) sum = (sum ^ value[i]) * UINT64_C(0x100000001b3);\n",
    "    return sum;\n}\n\n",
    "static int put_name(const char *name, char *out, int at) {\n",
    "    while (*name) out[at++] = *name++;\n    out[at++] = ' ';\n    return at;\n}\n\n",
    "static int put_sum(uint64_t sum, char *out, int at) {\n",
    "    for (int i = 60; i >= 0; i -= 4) out[at++] = \"0123456789abcdef\"[sum >> i & 15];\n",
    "    out[at++] = ' ';\n    return at;\n}\n\n",
    NULL
};

static void write_driver(const recorded_plan *r, FILE *f) {
    bool updates = strstr(r->model, "void *arena, float *weights)") != NULL;
    fprintf(f, "\n/* ---- the runs that were recorded ---- */\n\n#include <stddef.h>\n\n%s",
            wf_text_of(&r->values));
    fprintf(f,
            "typedef struct model {\n    plan plan;\n    int runs;\n    double last;\n} model;\n"
            "enum {\n    model_MEMORY = plan_ARENA%s,\n    model_LINE = 16,\n"
            "    model_TEXT = 1 << 14\n};\n\n",
            updates ? " + 4 * plan_WEIGHTS" : "");
    fprintf(f,
            "static union {\n    float reals[%lld];\n    int32_t integers[%lld];\n"
            "    uint32_t words[%lld];\n} fetched;\n\n",
            (long long)r->most, (long long)r->most, (long long)r->most);
    for (int i = 0; driver[i]; i++) fputs(driver[i], f);
    fprintf(f,
            "void model_start(model *m, unsigned char *memory);\n"
            "void model_start(model *m, unsigned char *memory) {\n"
            "    plan_start(&m->plan, memory%s);\n    m->runs = 0;\n}\n\n",
            updates ? ", (float *)(void *)(memory + plan_ARENA)" : "");
    fprintf(f,
            "static void set_inputs(model *m) {\n    switch (m->runs) {\n%s"
            "    default:\n        break;\n    }\n}\n\n",
            wf_text_of(&r->runs));
    fprintf(f,
            "int model_translate(model *m, const char *line, size_t n, char *out, size_t size);\n"
            "int model_translate(model *m, const char *line, size_t n, char *out, size_t size) {\n"
            "    int at = 0;\n    (void)line;\n"
            "    (void)n;\n    (void)size;\n    set_inputs(m);\n"
            "    if (plan_run(&m->plan%s)) return -1;\n",
            r->with_state ? ", 0" : "");
    fprintf(f,
            "%s"
            "    m->last = fetched.reals[0];\n    m->runs++;\n    return at;\n}\n\n"
            "double model_score(const model *m);\n"
            "double model_score(const model *m) {\n    return m->last;\n}\n",
            wf_text_of(&r->results));
}

static FILE *open_file(int number, const char *ending) {
    char path[ROOM];
    snprintf(path, sizeof path, "%s_%d.%s", getenv("WEFT_RECORD"), number, ending);
    FILE *f = fopen(path, "w");
    if (!f) exit(3);
    return f;
}

/* Writes the files of a plan whose recording has ended. */
static void end_plan(recorded_plan *r) {
    int number = (int)(r - plans) + 1;
    r->is_open = false;
    if (!r->model || !r->n_runs || process != getpid()) return;
    FILE *f = open_file(number, "c");
    fputs(r->model, f);
    write_driver(r, f);
    bool ok = fclose(f) == 0;
    f = open_file(number, "expected");
    fputs(wf_text_of(&r->expected), f);
    ok = fclose(f) == 0 && ok;
    f = open_file(number, "lines");
    for (int i = 0; i < r->n_runs; i++) fprintf(f, "%d\n", i);
    ok = fclose(f) == 0 && ok;
    if (!ok) exit(3);
    free(r->model);
    r->model = NULL;
}

static void end_all(void) {
    for (int i = 0; i < n_plans; i++)
        if (plans[i].is_open) end_plan(&plans[i]);
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Fetches and feeds without a name have that of their op, which several may have. */
static void name_values(wf_plan *p) {
    static char names[MOST_PLANS][64][16];
    int n = 0;
    for (int i = 0; i < p->n_nodes && n < 64; i++) {
        wf_tensor *t = p->graph->nodes[p->nodes[i].node->id];
        bool is_named = t != p->nodes[i].node || t->label || t->kind != WF_COMPUTED;
        if (is_named || !(is_result(&p->nodes[i]) || p->nodes[i].feed >= 0)) continue;
        snprintf(names[n_plans][n], sizeof names[n_plans][n], "value_%d", t->id);
        t->label = names[n_plans][n++];
    }
}

static recorded_plan *begin_plan(wf_plan *p) {
    char message[WF_MESSAGE];
    name_values(p);
    if (n_plans == 0) process = getpid();
    if (n_plans == 0) atexit(end_all);
    recorded_plan *r = &plans[n_plans++];
    *r = (recorded_plan){
        .plan = p, .graph = p->graph, .with_state = p->with_state, .is_open = true, .most = 1
    };
    memcpy(r->size, p->size, sizeof r->size);
    r->model = wf_emit(&p, 1, &(wf_emit_options){ .name = "plan" }, message);
    if (process == getpid())
        printf("record_plans: %d: %s\n", n_plans, r->model ? "written" : message);
    return r;
}

static recorded_plan *plan_of(wf_plan *p) {
    for (int i = 0; i < n_plans; i++)
        if (plans[i].plan == p) return &plans[i];
    return n_plans < MOST_PLANS ? begin_plan(p) : NULL;
}

/* Records the inputs of a run of p. Returns the plan's record, or NULL if this run is not
 * recorded. */
static recorded_plan *before_run(wf_plan *p) {
    recorded_plan *r = wf_plan_ok(p) && getenv("WEFT_RECORD") ? plan_of(p) : NULL;
    for (int i = 0; i < n_plans; i++)
        if (plans[i].is_open && &plans[i] != r && plans[i].graph == p->graph) end_plan(&plans[i]);
    if (!r || !r->is_open) return NULL;
    bool goes_on = r->model && r->n_runs < (p->with_state ? 1 : RUNS) &&
                   memcmp(r->size, p->size, sizeof r->size) == 0;
    if (!goes_on || !wf_plan_prepare(p, p->with_state ? p->size[0] : 0)) {
        end_plan(r);
        return NULL;
    }
    record_inputs(r, p);
    return r;
}

static bool after_run(recorded_plan *r, wf_plan *p, bool ok) {
    if (r && ok) record_results(r, p);
    if (r && !ok) r->is_open = false;
    pthread_mutex_unlock(&lock);
    return ok;
}

bool record_run(wf_plan *p) {
    pthread_mutex_lock(&lock);
    recorded_plan *r = before_run(p);
    return after_run(r, p, library_run(p));
}

bool record_run_state(wf_plan *p, wf_state *s) {
    pthread_mutex_lock(&lock);
    recorded_plan *r = before_run(p);
    return after_run(r, p, library_run_state(p, s));
}

void record_free(wf_plan *p) {
    pthread_mutex_lock(&lock);
    for (int i = 0; p && i < n_plans; i++) {
        if (plans[i].plan != p) continue;
        if (plans[i].is_open) end_plan(&plans[i]);
        plans[i].plan = NULL;
    }
    pthread_mutex_unlock(&lock);
    library_free(p);
}
