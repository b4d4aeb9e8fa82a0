/* tools/train/progress.c - prints the first lines of a training and its progress. See
 * progress.h. */
#include "progress.h"

#include <math.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/run_internal.h"
#include "models/choices.h"
#include "ops/base/scalars.h"
#include "session.h"
#include "tools/cli/numbers.h"
#include "tools/data/language.h"

/* ---- the first lines ------------------------------------------------------------------------- */

static const char *batch_text(const settings *set, char buffer[80]) {
    int n = 0;
    if (set->data.batch_size)
        n = snprintf(buffer, 80, "batches of %lld", (long long)set->data.batch_size);
    if (set->data.kind->text && set->data.max_tokens)
        snprintf(buffer + n, 80 - (size_t)n, "%s at most %lld tokens", n ? " and" : "batches of",
                 (long long)set->data.max_tokens);
    return buffer;
}

static void announce_dataset(session *s) {
    const dataset *m = &s->dataset;
    report *r = &s->report;
    char word[OPTION_TEXT_SIZE];
    option_text(option_find(&train_program, "task"), word);
    if (!s->set->run.model && !s->set->run.dry_run)
        say(r, "output   the model will not be kept: -o FILE would save it");
    if (m->kind->announce && s->leads) m->kind->announce(m, r);
    if (*s->set->data.chosen)
        say(r, "chosen   by the size of the data: %s; options override it", s->set->data.chosen);
    if (dataset_updates(m))
        say(r, "task     %s, seed %lld, %lld steps in an epoch", word,
            (long long)s->set->recipe.seed, (long long)dataset_updates(m));
    else
        say(r, "task     %s, %lld to %lld tokens, seed %lld", word, (long long)s->set->data.min_len,
            (long long)s->set->data.max_len, (long long)s->set->recipe.seed);
}

static void announce_stretch(session *s) {
    char numbers[2][OPTION_TEXT_SIZE];
    double next = wf_schedule_rate(&s->schedule, s->at.step + 1);
    say(&s->report, "schedule %lld steps in place of %lld: the rate goes on at %s, of a peak of %s",
        (long long)s->set->recipe.lr_steps, (long long)s->set->recipe.planned_steps,
        shortest(next, numbers[0]), shortest(s->set->recipe.lr, numbers[1]));
}

/* Says so if --max-steps ends a new training before its learning rate has fallen to 0. The schedule
 * is not shortened, because a resume may continue it. Prints options with which both end at that
 * step, with a shorter --warmup if the present one would last until then. */
static void announce_early_stop(session *s) {
    if (!settings_stops_early(s->set)) return;
    enum { SHARE = 10 };
    char shorter[40] = "";
    long long steps = (long long)s->set->run.max_steps;
    if (!settings_warm_before(s->set, dataset_updates(&s->dataset), steps))
        snprintf(shorter, sizeof shorter, " --warmup %lld", steps / SHARE);
    say(&s->report,
        "schedule the rate falls to 0 at step %lld, and --max-steps %lld ends before%s; --lr-steps "
        "%lld%s ends both",
        (long long)s->set->recipe.lr_steps, steps,
        s->set->recipe.warmup_follows
            ? ": the warm-up is a part of these steps, and a resume keeps it"
            : "",
        steps, shorter);
}

/* Warns about a new training with fewer than 20 steps, because they change the weights very little:
 * few pairs make few steps in an epoch. Silent if --epochs or --max-steps was given. */
static void announce_few(session *s) {
    enum { FEW = 20, ENOUGH = 100 };
    const program *p = &train_program;
    int64_t steps = s->set->run.max_steps, updates = dataset_updates(&s->dataset);
    bool fixed = option_seen(p, "batch-size") || s->set->data.batch_size == 1;
    bool said = option_seen(p, "epochs") || option_seen(p, "max-steps") || s->set->run.resume;
    if (!updates || steps >= FEW || said) return;
    say(&s->report,
        "steps    %lld in all, which change little: --epochs %lld would make about a hundred%s",
        (long long)steps, (long long)((ENOUGH + updates - 1) / updates),
        fixed ? "" : ", and --batch-size N gives smaller batches");
}

static void announce_idle(session *s) {
    const long long accum = s->set->data.accum;
    const long long ranks = s->transport->size;
    char advice[80] = "";
    if (dataset_is_text(&s->dataset))
        snprintf(advice, sizeof advice, ", as --accum says: give --accum %lld", ranks);
    say(&s->report, "         ranks without a batch: %lld; batches in an update: %lld%s",
        ranks - accum, accum, advice);
}

/* True if `convert --to hf` will leave the tokenizer of this new model out. */
static bool keeps_tokenizer_here(const settings *set) {
    wf_token_kind kind = (wf_token_kind)set->data.tokenizer;
    bool goes_out = kind == WF_SENTENCEPIECE || kind == WF_JSON_TEXT;
    return set->model.like == LIKE_T5 && set->data.kind->text && !goes_out && !set->model.init &&
           !set->run.resume;
}

void announce(session *s, double memory) {
    char words[3][OPTION_TEXT_SIZE], numbers[3][OPTION_TEXT_SIZE], limit[80], model[WF_MESSAGE];
    report *r = &s->report;
    double parameters = (double)wf_model_parameter_count(s->model);
    bool frozen = s->set->model.freeze || s->set->model.lora;
    announce_dataset(s);
    wf_model_text(s->model, model);
    say(r, "model    %s", model);
    say(r, "         %s parameters%s%s", thousands(parameters, numbers[0]),
        frozen ? ", frozen of them: " : "",
        frozen ? thousands((double)settings_frozen(s->set, s->model), numbers[1]) : "");
    if (keeps_tokenizer_here(s->set))
        say(r,
            "         convert --to hf leaves this tokenizer out; one of --spm-src FILE is written");
    if (s->set->model.init && !s->set->run.resume)
        say(r, "start    the weights in %s", s->set->model.init);
    if (s->set->model.lora && !s->set->run.resume && !option_seen(&train_program, "lr"))
        say(r, "rate     of adapters: 0.01, above a width of 128 divided by width / 128; --lr "
               "overrides it");
    if (s->set->model.quantize_aware)
        say(r, "int8     matrices are rounded in every forward pass, in validations too: %s",
            wf_quantize_name(s->set->model.quantize_aware));
    say(r, "recipe   %s, %s, peak rate %s after %lld steps, then %s; clipped at %s",
        option_text(option_find(&train_program, "optimizer"), words[0]), batch_text(s->set, limit),
        shortest(s->set->recipe.lr, numbers[0]), (long long)s->set->recipe.warmup,
        option_text(option_find(&train_program, "lr-schedule"), words[1]),
        shortest(s->set->recipe.clip_norm, numbers[1]));
    announce_early_stop(s);
    announce_few(s);
    if (s->transport)
        say(r, "machine  %d ranks of %lld threads, %s kernels, %s of memory each",
            s->transport->size, (long long)wf_pool_threads(s->pool), wf_isa(),
            bytes_text(memory, numbers[0]));
    else
        say(r, "machine  %lld threads, %s kernels, %s of memory",
            (long long)wf_pool_threads(s->pool), wf_isa(), bytes_text(memory, numbers[0]));
    if (s->transport && s->set->data.accum < s->transport->size) announce_idle(s);
    if (s->set->run.resume)
        say(r, "resumed  %s after step %lld", s->set->run.model, (long long)s->at.step);
    if (s->set->run.resume && s->kept.best < INFINITY)
        say(r, "best     %s, loss %.4g: a lower loss replaces it", s->kept.best_path, s->kept.best);
    if (s->set->recipe.planned_steps) announce_stretch(s);
    jsonl *e = event(r, "run");
    for (const option *o = train_program.options; o < train_program.options + train_program.n; o++)
        if (o->stored && !(o->of_model && s->set->model.started))
            json_text(e, o->name, option_text(o, words[0]));
    if (s->set->model.started) json_text(e, "init", s->set->model.init_hash);
    if (s->set->model.freeze) json_text(e, "freeze", s->set->model.freeze);
    json_int(e, "step", s->at.step);
    json_real(e, "parameters", parameters);
    json_real(e, "memory", memory);
    json_int(e, "threads", wf_pool_threads(s->pool));
    json_int(e, "ranks", wf_transport_size(s->transport));
    json_text(e, "isa", wf_isa());
    event_send(r);
}

/* ---- progress -------------------------------------------------------------------------------- */

bool counts_lines(const char *unit) {
    return unit && strcmp(unit, "lines") == 0;
}

const char *speed_key(const char *unit) {
    return counts_lines(unit) ? "lines_per_second" : "tokens_per_second";
}

static void heading(report *r, const progress *p) {
    if (r->titled) return;
    r->titled = true;
    char speed[24];
    snprintf(speed, sizeof speed, "%s/s", p->unit ? p->unit : "tokens");
    say(r, "%s%*s %10s %10s %8s %10s %9s %9s %8s %8s", p->epoch > 0 ? " epoch " : "", 15,
        "step        ", counts_lines(p->unit) ? "loss/line" : "loss/token", "perplexity",
        "accuracy", speed, "gradient", "rate", "elapsed", "left");
}

/* The beginning that lines of training and of validation have in common. */
static const char *beginning(const progress *p, char text[80]) {
    if (p->epoch > 0)
        snprintf(text, 80, "%6.2f %7lld/%-7lld %10.4g %10.5g %6.1f %%", p->epoch,
                 (long long)p->step, (long long)p->total, p->loss, wf_exp_of(p->nll),
                 100 * p->accuracy);
    else
        snprintf(text, 80, "%7lld/%-7lld %10.4g %10.5g %6.1f %%", (long long)p->step,
                 (long long)p->total, p->loss, wf_exp_of(p->nll), 100 * p->accuracy);
    return text;
}

static void print_step(report *r, const progress *p) {
    char text[80], speed[OPTION_TEXT_SIZE], elapsed[OPTION_TEXT_SIZE], left[OPTION_TEXT_SIZE];
    heading(r, p);
    say(r, "%s %10s %9.3g %9.3g %8s %8s", beginning(p, text), thousands(p->speed, speed), p->norm,
        p->rate, duration(p->elapsed, elapsed), duration(p->remaining, left));
}

void report_valid(report *r, const progress *p, const char *scores) {
    char text[80];
    heading(r, p);
    say(r, "%s  on %s ones%s%s", beginning(p, text), p->learned ? "learned" : "unseen",
        *scores ? ": " : "", scores);
}

void report_step(report *r, const progress *p) {
    if (!r->bar) print_step(r, p);
    jsonl *e = event(r, "step");
    json_int(e, "step", p->step);
    if (p->epoch > 0) json_real(e, "epoch", p->epoch);
    json_real(e, "loss", p->loss);
    json_real(e, "perplexity", wf_exp_of(p->nll));
    json_real(e, "accuracy", p->accuracy);
    if (p->alignment >= 0) json_real(e, "alignment_loss", p->alignment);
    json_real(e, speed_key(p->unit), p->speed);
    json_real(e, "gradient_norm", p->norm);
    json_real(e, "rate", p->rate);
    if (p->exchange_share >= 0) {
        json_real(e, "exchange_share", p->exchange_share);
        json_int(e, "bytes_sent", p->bytes_sent);
    }
    json_real(e, "seconds", p->elapsed);
    event_send(r);
}

void report_bar(report *r, const progress *p) {
    enum { CELLS = 10 };
    char cells[CELLS + 1], text[200], speed[OPTION_TEXT_SIZE], left[OPTION_TEXT_SIZE];
    double now = wf_seconds_now();
    if (!report_due(r, now)) return;
    if (!r->bar) {
        print_step(r, p);
        return;
    }
    int done = (int)(CELLS * p->step / p->total);
    for (int i = 0; i < CELLS; i++) cells[i] = i < done ? '#' : '.';
    cells[CELLS] = '\0';
    snprintf(text, sizeof text, "%lld/%lld [%s] %s left, loss %.3f, %.1f %% right, %s %s/s",
             (long long)p->step, (long long)p->total, cells, duration(p->remaining, left), p->loss,
             100 * p->accuracy, thousands(p->speed, speed), p->unit ? p->unit : "tokens");
    report_draw(r, text, now);
}
