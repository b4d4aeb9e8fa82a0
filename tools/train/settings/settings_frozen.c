/* tools/train/settings/settings_frozen.c - frozen parameters, chosen by prefixes of their names, and
 * low-rank adapters beside a frozen model. See settings.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_internal.h"
#include "defaults.h"
#include "models/encoder.h"
#include "models/language_model.h"
#include "models/model_internal.h"
#include "models/text_internal.h"
#include "models/transformer.h"
#include "settings_file.h"

enum { MOST = 4096 }; /* bytes of all prefixes, with a '\0' */

/* True if the name begins with the first of the prefixes. An empty prefix fits no name. */
static bool begins(const char *name, const char *prefix) {
    size_t n = strcspn(prefix, ",");
    return n && strncmp(name, prefix, n) == 0;
}

/* The next prefix of the list; NULL: there are no more. */
static const char *next(const char *prefix) {
    const char *comma = strchr(prefix, ',');
    return comma ? comma + 1 : NULL;
}

static bool frozen(const char *prefixes, const char *name) {
    for (; prefixes; prefixes = next(prefixes))
        if (begins(name, prefixes)) return true;
    return false;
}

/* With adapters, they alone are trained. */
static bool is_frozen(const settings *set, const wf_tensor *param) {
    return set->model.lora ? !wf_from_hook(param) : frozen(set->model.freeze, param->name);
}

wf_tensor **settings_trained(const settings *set, const wf_model *m, int *n) {
    int all = wf_parameters(m->graph, NULL, NULL, 0);
    wf_tensor **params = calloc((size_t)all + 1, sizeof(wf_tensor *));
    *n = 0;
    if (!params) return NULL;
    wf_parameters(m->graph, NULL, params, all);
    for (int i = 0; i < all; i++)
        if (!is_frozen(set, params[i])) params[(*n)++] = params[i];
    return params;
}

int64_t settings_frozen(const settings *set, const wf_model *m) {
    int64_t n = 0;
    for (int id = 0; id < wf_node_count(m->graph); id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        if (t->kind == WF_PARAM && is_frozen(set, t)) n += wf_count(t);
    }
    return n;
}

/* Exits if a prefix fits no parameter. A tied table has only the first of its names. */
static void check_prefix(const wf_model *m, const char *prefix) {
    int length = (int)strcspn(prefix, ",");
    for (int id = 0; id < wf_node_count(m->graph); id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        if (t->kind == WF_PARAM && begins(t->name, prefix)) return;
    }
    for (int i = 1; i < m->n_tied; i++)
        if (begins(m->tied[i], prefix))
            usage_error(&train_program, "--freeze %.*s: in this model that is one table with %s",
                        length, prefix, m->tied[0]);
    usage_error(&train_program,
                "--freeze '%.*s': no parameter's name begins with it; inspect lists the names in a "
                "model file",
                length, prefix);
}

void settings_check_freeze(const settings *set, const wf_model *m) {
    if (!set->model.freeze) return;
    int64_t n = settings_frozen(set, m);
    if (n && n == wf_model_parameter_count(m))
        usage_error(&train_program, "--freeze %s leaves nothing to train", set->model.freeze);
    if (!wf_ok(m->graph)) return; /* a failed graph may lack names, and has its own error message */
    for (const char *prefix = set->model.freeze; prefix; prefix = next(prefix))
        check_prefix(m, prefix);
}

/* A checkpoint stores the list, and a resume must be able to read it. */
void settings_refuse_freeze(const settings *set) {
    char why[WF_MESSAGE];
    if (!set->model.freeze) return;
    size_t n = strlen(set->model.freeze);
    if (n >= MOST) usage_error(&train_program, "--freeze: more than %d characters", MOST - 1);
    if (!wf_text_check(set->model.freeze, n, why)) usage_error(&train_program, "--freeze: %s", why);
}

void settings_take_freeze(settings *set, const wf_file *f) {
    static char kept[MOST]; /* a copy, because the file will be closed */
    const char *stored = setting_in_file(f, "freeze");
    if (set->model.freeze && (!stored || strcmp(stored, set->model.freeze) != 0))
        usage_error(&train_program, "%s was trained with %s%s, not --freeze %s: leave it out",
                    set->run.model, stored ? "--freeze " : "nothing frozen", stored ? stored : "",
                    set->model.freeze);
    if (stored && strlen(stored) >= sizeof kept)
        fail(&train_program, "%s: its --freeze is too long", set->run.model);
    set->model.freeze = stored ? strcpy(kept, stored) : NULL;
}

/* ---- low-rank adapters ---------------------------------------------------------------------- */

wf_adapters settings_adapters(const settings *set) {
    return (wf_adapters){ set->model.lora, set->model.lora_alpha, set->model.lora_targets };
}

void settings_refuse_lora(const settings *set) {
    const program *p = &train_program;
    static const char *const beside[] = { "lora-alpha", "lora-targets", "base-weights" };
    const char *targets = set->model.lora_targets;
    char why[WF_MESSAGE];
    for (int i = 0; i < 3; i++)
        option_no_effect(p, beside[i], !set->model.lora, "it is for --lora");
    if (set->model.lora && set->model.quantize_aware)
        usage_error(p, "--quantize-aware: adapters leave the matrices as they are, which it would "
                       "round: leave --lora out");
    option_no_effect(p, "freeze", set->model.lora > 0, "--lora trains adapters alone");
    if (set->model.lora && !set->model.init && !set->run.resume)
        usage_error(p, "--lora adapts a model: name it with --init MODEL");
    if (targets && !wf_text_check(targets, strlen(targets), why))
        usage_error(p, "--lora-targets: %s", why);
}

/* Matrix B of an adapter begins as zeros, so adapters need a higher rate than weights do. The rate
 * falls with the width, and comes near those of the paper and of PEFT for large models. */
void settings_scale_lora(settings *set, const wf_model *m) {
    const wf_transformer *t = wf_transformer_of(m);
    const wf_language_model *l = wf_language_model_of(m);
    const wf_encoder *e = wf_encoder_of(m);
    int64_t width = 0;
    if (!set->model.lora || option_seen(&train_program, "lr")) return;
    if (t) width = t->config.d_model;
    if (l) width = l->config.d_model;
    if (e) width = e->config.d_model;
    set->recipe.lr = defaults_rate(set->recipe.lr, (double)width);
}

/* The format of the frozen weights changes the losses, so a resume keeps it. */
static void take_format(const settings *set, const wf_file *f) {
    const char *stored = setting_in_file(f, "base-weights");
    option *o = option_find(&train_program, "base-weights");
    char given[OPTION_TEXT_SIZE], message[WF_MESSAGE];
    if (o->seen && (!stored || strcmp(stored, option_text(o, given)) != 0))
        usage_error(&train_program, "%s was trained with %s%s: leave --base-weights out",
                    set->run.model, stored ? "--base-weights " : "the weights as they are",
                    stored ? stored : "");
    if (stored && !option_set(o, stored, message))
        fail(&train_program, "%s: %s", set->run.model, message);
}

void settings_take_lora(settings *set, const wf_file *f) {
    static char *kept; /* a copy, because the file will be closed */
    wf_adapters stored;
    const char *given = set->model.lora_targets;
    if (!wf_model_read_adapters(f, &stored, NULL)) return;
    if (given && strcmp(given, stored.targets) != 0)
        usage_error(&train_program, "%s was trained with --lora-targets %s: leave it out",
                    set->run.model, stored.targets);
    free(kept);
    take_format(set, f);
    kept = strdup(stored.targets);
    if (!kept) fail(&train_program, "out of memory");
    set->model.lora_targets = kept;
}

bool settings_pack_base(const settings *set, wf_model *m, const wf_file *init, char *message) {
    return !set->model.lora ||
           wf_model_pack(m, init, set->model.base_weights, WF_ROW_MAJOR, message);
}
