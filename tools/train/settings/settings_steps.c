/* tools/train/settings/settings_steps.c - how many steps a training makes, and the course of its
 * learning rate. See settings.h. */
#include <assert.h>
#include <stdlib.h>

#include "defaults.h"
#include "settings.h"

wf_schedule settings_schedule(const settings *set) {
    return (wf_schedule){
        .kind = (wf_schedule_kind)set->recipe.schedule,
        .peak = set->recipe.lr,
        .warmup = set->recipe.warmup,
        .steps = set->recipe.lr_steps,
    };
}

/* The epochs of the recipe: usual_epochs, which depends on the size of the data, or else the
 * default of --epochs for the task or for --init; 0: it has none. */
static int64_t recipe_epochs(const settings *set) {
    char word[OPTION_TEXT_SIZE];
    option_text(option_find(&train_program, "task"), word);
    const char *epochs =
        option_default(option_find(&train_program, "epochs"), set->model.started ? "init" : word);
    if (set->recipe.usual_epochs) return set->recipe.usual_epochs;
    return epochs ? strtoll(epochs, NULL, 10) : 0;
}

/* The steps of the recipe. For text, those of `epochs` epochs. For copy, reverse and sort, a number
 * (with a margin) after which every seed tried gave right outputs for 1,000 unseen sequences. */
static int64_t recipe_steps(const settings *set, int64_t updates, int64_t epochs) {
    bool quick = set->data.task == LEARN_COPY || set->data.task == LEARN_REVERSE;
    if (updates) return epochs * updates;
    return quick ? 2000 : 2500;
}

bool settings_has_horizon(const settings *set) {
    return set->recipe.schedule == WF_LINEAR_DECAY || set->recipe.schedule == WF_COSINE;
}

/* Extends a schedule that has an end to --max-steps, if that is beyond it. So the rate may jump up
 * at the resumed step, but it is at most its peak. */
static void stretch(settings *set) {
    bool said = option_seen(&train_program, "lr-steps");
    if (!settings_has_horizon(set)) return;
    if (!said && set->run.max_steps > set->recipe.lr_steps) {
        set->recipe.planned_steps = set->recipe.lr_steps;
        set->recipe.lr_steps = set->run.max_steps;
    }
    if (set->recipe.planned_steps == set->recipe.lr_steps) set->recipe.planned_steps = 0;
}

/* True if --max-steps is given without --lr-steps, and ends a new training before the steps of its
 * schedule, or of its recipe if the schedule has no end. */
static bool makes_fewer(const settings *set) {
    return !set->run.resume && option_seen(&train_program, "max-steps") &&
           !option_seen(&train_program, "lr-steps") && set->run.max_steps < set->recipe.lr_steps;
}

bool settings_stops_early(const settings *set) {
    return settings_has_horizon(set) && makes_fewer(set);
}

/* Limits the default warm-up for text to a part (defaults_warmup) of the schedule's steps; or of
 * --max-steps, if that alone ends the training earlier. */
static void complete_warmup(settings *set, bool is_long) {
    int64_t whole = defaults_warmup(set->recipe.warmup, set->recipe.lr_steps, is_long);
    int64_t made = defaults_warmup(set->recipe.warmup, set->run.max_steps, is_long);
    set->recipe.warmup_follows = makes_fewer(set) && made < whole;
    set->recipe.warmup = set->recipe.warmup_follows ? made : whole;
}

bool settings_warm_before(const settings *set, int64_t updates, int64_t steps) {
    bool is_part = updates && !option_seen(&train_program, "warmup");
    return steps > (is_part ? 0 : set->recipe.warmup);
}

void settings_complete_steps(settings *set, int64_t updates) {
    assert(updates >= 0);
    const program *p = &train_program;
    int64_t recipe = recipe_steps(set, updates, set->run.epochs);
    bool pairs = updates && !set->data.kind->running;
    bool is_long =
        !set->model.started && (set->data.task == LEARN_PAIRS || set->model.like == LIKE_BART);
    if (pairs && !option_seen(p, "valid-every")) set->run.valid_every = updates;
    if (pairs && !option_seen(p, "save-every")) set->run.save_every = updates;
    if (!set->run.max_steps)
        set->run.max_steps = set->run.resume && !set->run.epochs ? set->recipe.lr_steps : recipe;
    /* lr_steps is stored. If the schedule has no end, it comes from the default epochs, so that it
     * does not depend on where this training stops */
    if (!set->recipe.lr_steps && !settings_has_horizon(set))
        set->recipe.lr_steps = recipe_steps(set, updates, recipe_epochs(set));
    if (!set->recipe.lr_steps)
        set->recipe.lr_steps = set->run.max_steps > recipe ? set->run.max_steps : recipe;
    if (set->run.resume) stretch(set);
    if (updates && !set->run.resume && !option_seen(p, "warmup")) complete_warmup(set, is_long);
    if (settings_has_horizon(set) && set->run.max_steps > set->recipe.lr_steps)
        usage_error(p,
                    "--max-steps %lld is beyond --lr-steps %lld, where the rate ends at 0: raise "
                    "--lr-steps, or leave it out",
                    (long long)set->run.max_steps, (long long)set->recipe.lr_steps);
    if (settings_has_horizon(set) && set->recipe.warmup >= set->recipe.lr_steps)
        usage_error(p, "--warmup %lld leaves nothing before --lr-steps %lld: lower it",
                    (long long)set->recipe.warmup, (long long)set->recipe.lr_steps);
}
