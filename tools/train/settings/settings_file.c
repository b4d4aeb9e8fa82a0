/* tools/train/settings/settings_file.c - the settings in a checkpoint, which a save writes and a
 * resume reads. See settings_file.h. */
#include "settings_file.h"
#include "models/model_internal.h"
#include "tools/data/language.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void setting_key(const char *name, char key[OPTION_TEXT_SIZE]) {
    snprintf(key, OPTION_TEXT_SIZE, "train.%s", name);
}

const char *setting_in_file(const wf_file *f, const char *name) {
    char key[OPTION_TEXT_SIZE];
    setting_key(name, key);
    return wf_file_meta(f, key);
}

static void data_mark(uint64_t hash, char mark[OPTION_TEXT_SIZE]) {
    snprintf(mark, OPTION_TEXT_SIZE, "%016llx", (unsigned long long)hash);
}

/* Metadata that no option sets: the training's state. */
enum { STATE_ROWS = 3 };
static void state_rows(training_state *at, option row[STATE_ROWS]) {
    row[0] = (option)COUNT("step", at->step, 0, 1e12, "");
    row[1] = (option)REAL("best", at->best, 0, INFINITY, "");
    row[2] = (option)COUNT("without", at->since_best, 0, 1e12, "");
}

static void add_meta(settings_meta *meta, const char *name, const char *value) {
    assert(meta->n < SETTINGS_META);
    setting_key(name, meta->keys[meta->n]);
    snprintf(meta->values[meta->n], OPTION_TEXT_SIZE, "%s", value);
    meta->pairs[meta->n] = (wf_meta){ meta->keys[meta->n], meta->values[meta->n] };
    meta->n++;
}

/* Adds to the metadata: the hash of the model from which the training started, the number of pairs
 * that it holds out, whether --valid and --alignments were given, and the values of --base-weights
 * and --freeze. */
static void add_start(const settings *set, settings_meta *meta) {
    if (set->model.started) add_meta(meta, "init", set->model.init_hash);
    char number[OPTION_TEXT_SIZE];
    snprintf(number, sizeof number, "%lld", (long long)set->data.held);
    if (set->data.held) add_meta(meta, "held", number);
    if (set->data.valid || set->data.valid_src) add_meta(meta, "valid", "named");
    if (set->data.alignments) add_meta(meta, "alignments", "named");
    if (set->model.base_weights >= 0)
        add_meta(meta, "base-weights",
                 option_text(option_find(&train_program, "base-weights"), number));
    if (set->model.freeze) {
        add_meta(meta, "freeze", "");
        meta->pairs[meta->n - 1].value = set->model.freeze;
    }
}

void settings_to_meta(const settings *set, const training_state *at, const dataset *m,
                      settings_meta *meta) {
    char text[OPTION_TEXT_SIZE];
    training_state now = *at;
    option row[STATE_ROWS];
    meta->n = 0;
    state_rows(&now, row);
    for (int i = 0; i < STATE_ROWS; i++)
        if (row[i].kind != OPTION_REAL || isfinite(now.best))
            add_meta(meta, row[i].name, option_text(&row[i], text));
    if (m->hash) {
        data_mark(m->hash, text);
        add_meta(meta, "data", text);
    }
    if (m->valid_hash) {
        data_mark(m->valid_hash, text);
        add_meta(meta, "valid-data", text);
    }
    for (const option *o = train_program.options; o < train_program.options + train_program.n; o++)
        if (o->stored && !(o->of_model && set->model.started))
            add_meta(meta, o->name, option_text(o, text));
    add_start(set, meta);
}

training_state settings_state(const settings *set, const wf_file *f) {
    char message[256];
    training_state at = { .best = INFINITY };
    option row[STATE_ROWS];
    state_rows(&at, row);
    for (int i = 0; i < STATE_ROWS; i++) {
        const char *text = setting_in_file(f, row[i].name);
        if (!text && i > 0) continue; /* nothing was validated */
        if (!text || !option_set(&row[i], text, message))
            fail(&train_program, "%s: %s", set->run.model, text ? message : "it has no step");
    }
    return at;
}

/* Exits if another text is used for validation than before: the lowest loss decides which weights
 * are kept, and losses on different texts cannot be compared. Older files do not say which text it
 * was. */
static void check_valid_data(const settings *set, const wf_file *f, const dataset *m) {
    char mark[OPTION_TEXT_SIZE];
    const char *stored = setting_in_file(f, "valid-data");
    if (!stored || !m->valid_hash) return;
    data_mark(m->valid_hash, mark);
    if (strcmp(stored, mark) == 0) return;
    bool running = m->kind->running;
    const char *pairs = set->data.valid_src ? "--valid-src and --valid-tgt" : "--valid";
    fail(&train_program,
         "%s was validated on %s: give it the same %s as before, or begin another training with "
         "its weights: --init %s -o NEW",
         set->run.model, running ? "another text than this" : "other pairs than these",
         running ? "--text-eval" : pairs, set->run.model);
}

void settings_check_data(const settings *set, const wf_file *f, const dataset *m) {
    char mark[OPTION_TEXT_SIZE];
    const char *stored = setting_in_file(f, "data");
    data_mark(m->hash, mark);
    if (m->hash && (!stored || strcmp(stored, mark) != 0))
        fail(&train_program, "%s was trained on %s: give it the same files as before%s%s%s",
             set->run.model, m->kind->running ? "another text than this" : "other pairs than these",
             set->model.lora ? "" : ", or begin another training with its weights: --init ",
             set->model.lora ? "" : set->run.model, set->model.lora ? "" : " -o NEW");
    check_valid_data(set, f, m);
}

/* True for --lr-steps on the command line, the one stored setting that a resume may change. Its
 * stored value is then in planned_steps. */
static bool changes_steps(settings *set, const option *o, const char *stored) {
    option row = *o;
    char message[256];
    row.value = &set->recipe.planned_steps;
    return o->value == &set->recipe.lr_steps && o->seen && option_set(&row, stored, message);
}

/* Takes a setting from the file. If it was given on the command line it must be equal. */
static void take_from_file(settings *set, const wf_file *f, option *o, char *differences,
                           size_t size) {
    char given[OPTION_TEXT_SIZE], message[256];
    const char *stored = setting_in_file(f, o->name);
    if (!stored) stored = o->before;
    if (!stored)
        fail(&train_program, "%s lacks the setting --%s: it can't be resumed", set->run.model,
             o->name);
    if (changes_steps(set, o, stored)) return;
    option_text(o, given);
    if (!option_set(o, stored, message)) fail(&train_program, "%s: %s", set->run.model, message);
    if (!o->seen || strcmp(given, stored) == 0) return;
    size_t n = strlen(differences);
    snprintf(differences + n, size - n, "%s--%s %s, not %s", n ? "; " : "", o->name, stored, given);
}

/* Refuses a model of --init that this training did not start from. A file of adapters needs the
 * weights that its model had then, and the model may have been trained further since. */
_Noreturn static void refuse_start(const settings *set, const wf_file *f) {
    wf_adapters own;
    if (wf_model_read_adapters(f, &own, NULL))
        usage_error(&train_program,
                    "%s has adapters of other weights than those that %s has now: name a copy with "
                    "the weights of then, or train new adapters, without --resume: --init %s "
                    "--lora %lld -o NEW",
                    set->run.model, set->model.init, set->model.init, (long long)own.rank);
    usage_error(&train_program,
                "%s was not started from the model in %s: leave --init out, or train anew without "
                "--resume",
                set->run.model, set->model.init);
}

/* Takes from the checkpoint which model the training started from. If --init names a model, it must
 * be the same one. */
static void take_start(settings *set, const wf_file *f) {
    const char *stored = setting_in_file(f, "init");
    if (stored && strlen(stored) >= sizeof set->model.init_hash)
        fail(&train_program, "%s: it does not say which model it started from", set->run.model);
    if (set->model.init && (!stored || strcmp(stored, set->model.init_hash) != 0))
        refuse_start(set, f);
    snprintf(set->model.init_hash, sizeof set->model.init_hash, "%s", stored ? stored : "");
    set->model.started = *set->model.init_hash;
}

/* Takes --freeze from the checkpoint. Exits if the command line has another value. */
static void take_freeze(settings *set, const wf_file *f) {
    static char kept[FREEZE_SIZE]; /* a copy, because the file will be closed */
    const char *stored = setting_in_file(f, "freeze");
    if (set->model.freeze && (!stored || strcmp(stored, set->model.freeze) != 0))
        usage_error(&train_program, "%s was trained with %s%s, not --freeze %s: leave it out",
                    set->run.model, stored ? "--freeze " : "nothing frozen", stored ? stored : "",
                    set->model.freeze);
    if (stored && strlen(stored) >= sizeof kept)
        fail(&train_program, "%s: its --freeze is too long", set->run.model);
    set->model.freeze = stored ? strcpy(kept, stored) : NULL;
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

/* Takes the targets of a checkpoint's adapters, and the format of the frozen weights. Exits if the
 * command line has other ones. */
static void take_lora(settings *set, const wf_file *f) {
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

void settings_refuse_sizes(const char *because) {
    const program *p = &train_program;
    option_no_effect(p,
                     "preset|like|form|layers|share-vocab|spm-src|spm-tgt|tokenizer-json|end-token",
                     true, because);
    for (const option *o = p->options; o < p->options + p->n; o++)
        if (o->of_model) option_no_effect(p, o->name, true, because);
}

#define LEAVE_OUT "a resume takes it from the file: leave it out"

static bool has_setting(const wf_file *f, const char *name, const char *value) {
    const char *stored = setting_in_file(f, name);
    return stored && strcmp(stored, value) == 0;
}

static bool has_layers(const wf_file *f, const char *number) {
    return has_setting(f, "enc-layers", number) && has_setting(f, "dec-layers", number);
}

/* True if the file has the sizes and the form that are the defaults of a word, such as --preset
 * tiny. Options on the command line are left out, because they are compared by themselves; settings
 * of the recipe, too, because the rate may follow the width. False for a word without such
 * defaults. */
static bool has_defaults(const wf_file *f, const char *word) {
    bool any = false;
    for (const option *o = train_program.options; o < train_program.options + train_program.n;
         o++) {
        const char *value = o->seen ? NULL : option_default(o, word);
        bool layers = strcmp(o->name, "layers") == 0;
        if (!value || (!o->of_model && !layers)) continue;
        if (layers ? !has_layers(f, value) : !has_setting(f, o->name, value)) return false;
        any = true;
    }
    return any;
}

/* True if both sides of the file have one vocabulary. */
static bool has_one_vocabulary(const wf_file *f) {
    char message[WF_MESSAGE];
    wf_tokenizer *t[2];
    if (!tokenizers_open(t, f, message)) return false;
    bool same = same_pieces(t[SIDE_SRC], t[SIDE_TGT]);
    tokenizers_close(t);
    return same;
}

/* True if an option that is for new trainings alone has the value that the checkpoint has. */
static bool says_the_same(const wf_file *f, const option *o) {
    char text[OPTION_TEXT_SIZE];
    const char *value = option_text(o, text);
    if (strcmp(o->name, "layers") == 0) return has_layers(f, value);
    if (strcmp(o->name, "share-vocab") == 0) return has_one_vocabulary(f);
    if (o->kind != OPTION_CHOICE) return false;
    return has_defaults(f, value);
}

/* Refuses another number of layers than the file has, with both numbers. */
static void refuse_layers(const settings *set, const wf_file *f, const option *o) {
    char given[OPTION_TEXT_SIZE];
    const char *enc = setting_in_file(f, "enc-layers"), *dec = setting_in_file(f, "dec-layers");
    if (strcmp(o->name, "layers") != 0 || !enc || !dec) return;
    usage_error(&train_program,
                "%s was trained with --enc-layers %s and --dec-layers %s, not --layers %s: leave "
                "it out, or train anew without --resume",
                set->run.model, enc, dec, option_text(o, given));
}

/* Refuses options of a new training (`of_new`). Some are ignored instead: --overwrite, because a
 * resume replaces no other training's files; and, if the training did not start with --init,
 * --layers, --share-vocab, --preset, --like and --form that agree with the checkpoint. */
static void refuse_new(const settings *set, const wf_file *f) {
    for (option *o = train_program.options; o < train_program.options + train_program.n; o++) {
        if (!o->of_new || !o->seen) continue;
        bool same = o->value == &set->run.overwrite || (!set->model.started && says_the_same(f, o));
        if (!same && !set->model.started) refuse_layers(set, f, o);
        option_no_effect(&train_program, o->name, !same, LEAVE_OUT);
        o->seen = false;
    }
}

void settings_from_file(settings *set, const wf_file *f) {
    char differences[400] = "";
    take_start(set, f);
    take_freeze(set, f);
    take_lora(set, f);
    if (set->model.started) settings_refuse_sizes(LEAVE_OUT);
    for (option *o = train_program.options; o < train_program.options + train_program.n; o++)
        if (o->stored && !(o->of_model && set->model.started))
            take_from_file(set, f, o, differences, sizeof differences);
    refuse_new(set, f);
    if (*differences)
        usage_error(&train_program,
                    "%s was trained with %s: leave these out, or train anew without --resume",
                    set->run.model, differences);
    if (set->data.min_len > set->data.max_len || set->recipe.lr_steps < 1)
        fail(&train_program, "%s: its settings contradict each other", set->run.model);
}

/* Exits if a resume has alignments and the training had none, or the reverse. */
static void check_alignments(const settings *set, const wf_file *f) {
    bool had = f && setting_in_file(f, "alignments"), has = set->data.alignments;
    if (!f || had == has) return;
    usage_error(&train_program,
                had ? "%s was trained with --alignments: name that file again"
                    : "%s was trained without --alignments: leave it out, or start from the model "
                      "by --init",
                set->run.model);
}

static void complete_held(settings *set, const wf_file *f) {
    const char *stored = f ? setting_in_file(f, "held") : NULL;
    bool named = set->data.valid || set->data.valid_src;
    set->data.held = named ? 0 : set->data.valid_size;
    if (f) set->data.held = stored ? strtoll(stored, NULL, 10) : 0;
    bool was_named = f && setting_in_file(f, "valid");
    if (was_named && !named && (!option_seen(&train_program, "valid-size") || set->data.valid_size))
        usage_error(&train_program,
                    "%s was validated with --valid: name that file again, or go on without by "
                    "--valid-size 0",
                    set->run.model);
    if (f && !named && set->data.valid_size && set->data.valid_size != set->data.held) {
        if (option_seen(&train_program, "valid-size"))
            usage_error(&train_program,
                        "%s was trained with --valid-size %lld, not %lld: leave it out",
                        set->run.model, (long long)set->data.held, (long long)set->data.valid_size);
        set->data.valid_size = set->data.held;
    }
}

void settings_complete_held(settings *set, const wf_file *f) {
    if (set->data.from_files) complete_held(set, f);
    check_alignments(set, f);
}
