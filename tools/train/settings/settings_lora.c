/* tools/train/settings/settings_lora.c - low-rank adapters beside the frozen model of --init. See
 * settings.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "defaults.h"
#include "models/encoder.h"
#include "models/language_model.h"
#include "models/model_internal.h"
#include "models/text_internal.h"
#include "models/transformer.h"
#include "settings_file.h"

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
