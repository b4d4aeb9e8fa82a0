/* nn/train/trainer_file.c - saves and loads a trainer: parameters, moments, averages, number of
 * steps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file_internal.h"
#include "nn/trainer_internal.h"
#include "way.h"

static const char step_key[] = "trainer.step";
static const char averaged_key[] = "trainer.averaged_since";

/* ---- saving ---------------------------------------------------------------------------------- */

/* The contents of a file: given leaves (parameters and buffers), or all leaves of the graph. */
typedef struct contents {
    const char *path;
    wf_tensor *const *leaves; /* NULL: all */
    int n;
    const wf_meta *meta;
    int n_meta;
    const char *wrong; /* why the file cannot be written; NULL: it can */
} contents;

static bool write_here(wf_trainer *t, const contents *c) {
    char message[256] = "";
    if (c->wrong) return wf_trainer_failed(t, c->wrong);
    bool ok = c->leaves ? wf_file_save_leaves(c->path, c->leaves, c->n, c->meta, c->n_meta, message)
                        : wf_save(t->g, c->path, NULL, c->meta, c->n_meta, message);
    return ok || wf_trainer_failed(t, message);
}

/* Rank 0 writes the file, and all ranks learn if it succeeded. A rank with an earlier error takes
 * part all the same, because the others would wait for it. */
static bool write(wf_trainer *t, const contents *c) {
    bool ranks = t->way->gather != NULL;
    if (t->micro_batches && t->next > t->from)
        return wf_trainer_failed(t, "an update is not complete: save after wf_trainer_update");
    if (ranks && !t->way->gather(t)) return false;
    bool ok = wf_transport_rank(t->transport) > 0 || write_here(t, c);
    return ranks ? t->way->release(t, ok) : ok;
}

bool wf_trainer_save(wf_trainer *t, const char *path, const wf_meta *meta, int n_meta) {
    char number[32], since[32];
    if (!wf_trainer_ok(t)) return false;
    if (n_meta < 0 || (n_meta > 0 && !meta))
        return write(t, &(contents){ .wrong = "the metadata are NULL" });
    wf_meta *all = calloc((size_t)n_meta + 2, sizeof *all);
    if (!all) return write(t, &(contents){ .wrong = "out of memory" });
    contents c = { .path = path, .meta = all };
    snprintf(number, sizeof number, "%lld", (long long)t->steps);
    snprintf(since, sizeof since, "%lld", (long long)t->averaged_since);
    all[c.n_meta++] = (wf_meta){ step_key, number };
    if (t->averaged_since > 0) all[c.n_meta++] = (wf_meta){ averaged_key, since };
    if (n_meta > 0) memcpy(all + c.n_meta, meta, (size_t)n_meta * sizeof *all);
    c.n_meta += n_meta;
    bool ok = write(t, &c);
    free(all);
    return ok;
}

bool wf_trainer_write(wf_trainer *t, const char *path, wf_tensor *const *leaves, int n,
                      const wf_meta *meta, int n_meta) {
    if (!wf_trainer_ok(t)) return false;
    if (n < 0 || (n > 0 && !leaves))
        return write(t, &(contents){ .wrong = "the leaves of a file are NULL" });
    const wf_optimizer *o = &t->optimizer;
    size_t most = (size_t)n + (size_t)o->n * (WF_MOST_MOMENTS + 1);
    wf_tensor_list all = { calloc(most + 1, sizeof(wf_tensor *)), 0 };
    if (!all.data) return write(t, &(contents){ .wrong = "out of memory" });
    wf_list_add_all(&all, leaves, n);
    for (int i = 0; i < o->n; i++) wf_list_add_all(&all, o->moments[i], o->n_moments);
    if (o->averages) wf_list_add_all(&all, o->averages, o->n);
    bool ok = write(t, &(contents){ path, all.data, all.n, meta, n_meta, NULL });
    free(all.data);
    return ok;
}

/* ---- resuming -------------------------------------------------------------------------------- */

static bool resumed(wf_trainer *t, int64_t steps, int64_t averaged_since) {
    t->averaged_since = averaged_since;
    t->steps = steps;
    t->micro_batches = 0;
    t->error[0] = '\0';
    return !t->way->scatter || t->way->scatter(t);
}

/* The number of steps in the metadata, or -1 if it is missing or not a whole number. */
static int64_t steps_in(const wf_file *f, const char *key) {
    const char *text = wf_file_meta(f, key);
    double value;
    bool whole = text && wf_parse_real(text, &value) && value >= 0 && value <= 1e15;
    return whole && value == floor(value) ? (int64_t)value : -1;
}

/* Forwards every result of a load to the caller, and counts the averages that were loaded. */
typedef struct listener {
    const wf_optimizer *optimizer;
    const wf_load_options *options;
    int loaded;
} listener;

static void hear(void *user, const wf_load_item *item) {
    listener *l = user;
    const wf_optimizer *o = l->optimizer;
    for (int i = 0; o->averages && i < o->n && item->outcome == WF_LOADED; i++)
        l->loaded += item->leaf == o->averages[i];
    if (l->options->each) l->options->each(l->options->user, item);
}

/* Loads leaves. If the file lacks the averages of some parameters, all averages begin anew with the
 * next update. */
static bool load(wf_trainer *t, const wf_file *f, const wf_load_options *options) {
    listener l = { &t->optimizer, options, 0 };
    int averages = t->optimizer.averages ? t->optimizer.n : 0;
    wf_load_options heard = *options;
    wf_load_report report;
    int64_t steps = steps_in(f, step_key), since = steps_in(f, averaged_key);
    heard.each = hear;
    heard.user = &l;
    if (!wf_file_ok(f)) return wf_trainer_failed(t, wf_file_error(f));
    if (steps < 0 || steps == INT64_MAX)
        return wf_trainer_failed(
            t, "the file does not say after how many steps it was saved: it is not a "
               "trainer's");
    if (!wf_load(t->g, f, &heard, &report)) return wf_trainer_failed(t, report.message);
    bool averaged = l.loaded == averages && since > 0 && since <= steps;
    return resumed(t, steps, averaged ? since : l.loaded < averages ? steps : 0);
}

bool wf_trainer_load(wf_trainer *t, const char *path, const wf_load_options *options) {
    if (!wf_trainer_ok(t)) return false;
    wf_file *f = wf_file_open(path);
    bool ok = load(t, f, options ? options : &(wf_load_options){ 0 });
    wf_file_free(f);
    return ok;
}

/* Tensors of a file, and the leaves that they will be loaded into. */
typedef struct state {
    const wf_entry **entries;
    wf_tensor **leaves;
    int n;
    /* name of a moment or average that is not in the file, although its parameter is */
    const char *lacking;
} state;

/* Looks in a file for the n tensors `kept` of a parameter, such as its moments. Returns how many
 * were found. */
static int look_up(state *s, const wf_file *f, const wf_tensor *param, wf_tensor *const *kept,
                   int n) {
    int found = 0;
    for (int k = 0; k < n; k++) {
        const wf_entry *e = wf_file_find(f, kept[k]->name);
        if (!e && wf_file_find(f, param->name)) s->lacking = kept[k]->name;
        if (!e) continue;
        s->entries[s->n] = e;
        s->leaves[s->n++] = kept[k];
        found++;
    }
    return found;
}

/* False if the file has tensors of a kind (moments or averages), `found` in number, but lacks some
 * for a parameter that it has. */
static bool complete(wf_trainer *t, state *s, int found) {
    if (found && s->lacking) {
        snprintf(t->error, sizeof t->error, "'%.200s' is in the model but not in the file",
                 s->lacking);
        return false;
    }
    s->lacking = NULL;
    return true;
}

static bool find_state(wf_trainer *t, state *s, const wf_file *f, bool *averaged) {
    const wf_optimizer *o = &t->optimizer;
    int moments = 0, averages = 0;
    for (int i = 0; i < o->n; i++)
        moments += look_up(s, f, o->params[i], o->moments[i], o->n_moments);
    if (!complete(t, s, moments)) return false;
    for (int i = 0; o->averages && i < o->n; i++)
        averages += look_up(s, f, o->params[i], &o->averages[i], 1);
    *averaged = averages;
    return complete(t, s, averages);
}

bool wf_trainer_resume(wf_trainer *t, const wf_file *f, int64_t steps) {
    char message[256] = "out of memory";
    bool averaged = false;
    if (!wf_trainer_ok(t)) return false;
    if (!wf_file_ok(f)) return wf_trainer_failed(t, wf_file_error(f));
    if (steps < 0 || steps == INT64_MAX)
        return wf_trainer_failed(t, "a number of steps below 0, or too many");
    size_t most = (size_t)t->optimizer.n * (WF_MOST_MOMENTS + 1);
    state s = { calloc(most, sizeof *s.entries), calloc(most, sizeof *s.leaves), 0, NULL };
    bool ok = s.entries && s.leaves;
    if (!ok) wf_trainer_failed(t, message);
    ok = ok && find_state(t, &s, f, &averaged);
    if (ok && !wf_file_load_leaves(s.entries, s.leaves, s.n, message))
        ok = wf_trainer_failed(t, message);
    free(s.entries);
    free(s.leaves);
    return ok && resumed(t, steps, averaged ? 0 : steps);
}
