/* tools/train/train.c - trains a model on a task or on text, saves it, and evaluates it on unseen
 * sequences.
 *
 * The model file is the checkpoint: a resumed training goes on as if it had never stopped, bit for
 * bit, because the data and the dropout of a step are functions of (seed, step). Other files have
 * the options (settings.c), opening (session.c), data (dataset.c), messages (report.c), validations
 * (validation.c), and output for watching (telemetry.c). */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "diagnose.h"
#include "ranks/forecast.h"
#include "ranks/ranks.h"
#include "saving.h"
#include "signals.h"
#include "telemetry.h"
#include "tools/cli/numbers.h"
#include "tools/cli/options/command.h"
#include "train.h"
#include "validation.h"

/* ---- progress -------------------------------------------------------------------------------- */

/* Updates the progress bar. With `line` the interval so far is also written, as a line and as
 * telemetry, and a new interval begins. */
static void report_progress(session *s, bool line) {
    const interval *r = &s->work.recent;
    double per_step = s->work.seconds / (double)(s->at.step - s->work.first_step);
    int64_t updates = dataset_updates(&s->dataset);
    progress p = {
        .step = s->at.step,
        .unit = dataset_unit(&s->dataset),
        .total = s->set->run.max_steps,
        .epoch = updates ? (double)s->at.step / (double)updates : 0,
        .loss = r->loss / r->tokens,
        .nll = r->nll / r->tokens,
        .alignment = s->model->alignment ? r->alignment / r->tokens : -1,
        .accuracy = r->correct / r->tokens,
        .speed = r->tokens / r->seconds,
        .norm = s->work.norm,
        .exchange_share = s->transport ? r->exchanging / r->seconds : -1,
        .bytes_sent = s->work.last.sent,
        .rate = wf_schedule_rate(&s->schedule, s->at.step),
        .elapsed = wf_seconds_now() - s->work.started,
        .remaining = per_step * (double)(s->set->run.max_steps - s->at.step),
    };
    if (line) {
        report_step(&s->report, &p);
        telemetry_step(s, &p);
        s->work.recent = (interval){ 0 };
    }
    /* after report_step: without a bar it prints a line only if none was printed for 30 s */
    report_bar(&s->report, &p);
}

/* ---- the training -------------------------------------------------------------------------- */

static void add_to_interval(session *s, const wf_progress *now, double seconds) {
    interval *r = &s->work.recent;
    s->work.norm = now->norm;
    r->loss += now->sums[0];
    r->nll += now->sums[1];
    r->correct += now->sums[2];
    if (s->model->alignment) r->alignment += now->sums[3];
    r->tokens += now->count;
    r->exchanging += now->exchanging;
    s->work.exchanged += now->exchanging;
    r->steps++;
    s->work.last.sent = now->sent;
    s->work.last.received = now->received;
    s->work.last.exchanging = now->exchanging;
    s->work.last.seconds = seconds;
}

/* Makes one update from the batches of this process and of other ranks. False: see
 * wf_trainer_error. */
static bool run_step(session *s, int64_t step) {
    wf_trainer *t = s->trainer;
    double began = wf_seconds_now();
    int64_t from = 0, to = 0, parts = dataset_parts(&s->dataset, step);
    wf_progress now;
    bool ok = wf_trainer_begin(t, parts, &from, &to);
    for (int64_t part = from; ok && part < to; part++) {
        if (!dataset_batch(&s->dataset, step, part, &s->batch))
            fail(&train_program, "out of memory for a batch: lower --max-tokens or --batch-size");
        ok = batch_feed(&s->batch, wf_trainer_plan(t), s->model) && wf_trainer_add(t, part);
    }
    /* exits, because the other ranks wait for this one's gradients */
    if (!ok && s->transport)
        fail(&train_program, "step %lld: %s", (long long)step, wf_trainer_error(t));
    s->work.last = (step_work){ .batches = to - from, .parts = parts };
    ok = ok && wf_trainer_update(t, &now);
    if (s->transport) ranks_notice(s);
    if (ok) add_to_interval(s, &now, wf_seconds_now() - began);
    return ok;
}

/* Reports a step that failed: nothing was updated, and the file is unchanged. Returns the exit
 * code. */
static int step_failed(session *s, int64_t step) {
    char name[256], why[256];
    report *r = &s->report;
    report_clear(r);
    bool found = diagnose(s, step, name, why);
    if (!s->leads) return found ? EXIT_NON_FINITE : EXIT_FAILED;
    if (!found) {
        warn(&train_program, "step %lld: %s", (long long)step, why);
        return EXIT_FAILED;
    }
    warn(&train_program, "step %lld: the %s is not finite; lower --lr or --clip-norm",
         (long long)step, name);
    if (s->set->run.model && s->kept.step >= 0)
        say(r, "%s keeps step %lld", s->set->run.model, (long long)s->kept.step);
    jsonl *e = event(r, "nonfinite");
    json_int(e, "step", step);
    json_text(e, "tensor", name);
    event_send(r);
    return EXIT_NON_FINITE;
}

/* The signal that stops the training, or 0. Ranks use the one that they agreed on last. */
static int stop_signal(const session *s) {
    return s->transport ? s->signalled : caught_signal();
}

/* Writes options with which a new training's schedule ends after about `steps` steps. False: this
 * one is resumed, or `steps` are less than an epoch or no more than the warm-up. */
static bool shorter_schedule(const session *s, double steps, char text[80]) {
    int64_t updates = dataset_updates(&s->dataset), n = (int64_t)steps;
    bool in_epochs = updates && !option_seen(&train_program, "max-steps") &&
                     !option_seen(&train_program, "lr-steps");
    if (s->set->run.resume) return false;
    if (in_epochs) n = n / updates * updates;
    if (in_epochs)
        snprintf(text, 80, "--epochs %lld", (long long)(n / updates));
    else
        snprintf(text, 80, "--max-steps %lld --lr-steps %lld", (long long)n, (long long)n);
    return settings_warm_before(s->set, updates, n);
}

/* Says so if the training ended in the middle of its schedule: the model is then weaker than the
 * same number of steps could make it. */
static void say_unfinished(session *s) {
    char options[80];
    double peak = s->set->recipe.lr, now = wf_schedule_rate(&s->schedule, s->at.step);
    bool early = settings_has_horizon(s->set) && s->at.step < s->set->recipe.lr_steps;
    if (!early || s->at.step == 0) return;
    say(&s->report,
        "the schedule of the learning rate ends at step %lld; the rate is %.3g now, of a peak of "
        "%.3g: a model gets better while it falls to 0",
        (long long)s->set->recipe.lr_steps, now, peak);
    if (s->late && shorter_schedule(s, (double)s->at.step, options))
        say(&s->report, "a new training with %s ends its schedule in about this time", options);
}

/* Prints the command that resumes, with the options that the checkpoint does not store. */
static void say_saved(session *s, const char *reason) {
    char *command = command_again(&train_program, s->set->run.command, "--resume");
    say(&s->report, "%s: saved step %lld; go on with: %s", reason, (long long)s->at.step,
        command ? command : "--resume");
    free(command);
    say_unfinished(s);
}

static int stopped_by_signal(session *s) {
    const char *name = signal_name(stop_signal(s));
    bool saved = save(s);
    telemetry_write(s, false);
    jsonl *e = event(&s->report, "signal");
    json_int(e, "step", s->at.step);
    json_text(e, "signal", name);
    event_send(&s->report);
    if (s->set->run.model && saved && s->at.step >= s->set->run.max_steps)
        say(&s->report, "%s: saved step %lld, the last one: the training is finished", name,
            (long long)s->at.step);
    else if (s->set->run.model && saved)
        say_saved(s, name);
    else
        say(&s->report, "%s: stopped after step %lld; nothing saved", name, (long long)s->at.step);
    return EXIT_SIGNAL + stop_signal(s);
}

static bool due(int64_t step, int64_t every) {
    return every && step % every == 0;
}

/* Makes steps until the last one, the end of the time, a signal, a step that fails, or --patience
 * validations without a lower loss. */
static int train(session *s) {
    const run_settings *run = &s->set->run;
    s->work.started = wf_seconds_now();
    while (s->at.step < run->max_steps && !stop_signal(s)) {
        double began = wf_seconds_now();
        if (!s->transport) s->late = run->max_time > 0 && began - s->work.started >= run->max_time;
        if (s->late) break;
        if (!run_step(s, s->at.step + 1)) return step_failed(s, s->at.step + 1);
        s->at.step++;
        s->work.recent.seconds += wf_seconds_now() - began;
        s->work.seconds += wf_seconds_now() - began;
        report_progress(s, due(s->at.step, run->log_every) || s->at.step == run->max_steps);
        if (dataset_holds(&s->dataset) && due(s->at.step, run->valid_every)) validate(s);
        if (due(s->at.step, run->save_every) && s->at.step < run->max_steps) {
            save(s); /* a failure is reported, and the training goes on */
            if (!dataset_holds(&s->dataset)) telemetry_write(s, false); /* else validations do */
        }
        if (run->patience && s->at.since_best >= run->patience) {
            say(&s->report, "stopped: %lld validations without a lower loss than %.4g",
                (long long)s->at.since_best, s->at.best);
            break;
        }
    }
    return stop_signal(s) ? stopped_by_signal(s) : EXIT_DONE;
}

static void draw_curve(session *s) {
    char title[RUN_TITLE], message[WF_MESSAGE];
    bool harder = s->set->recipe.dropout > 0 || s->set->recipe.label_smoothing > 0;
    telemetry_title(s->set, title);
    s->telemetry.history.train_label = harder ? "training, with dropout or smoothing" : "training";
    if (!history_draw(&s->telemetry.history, s->set->run.curve, title, message))
        fail(&train_program, "%s", message);
}

/* Repeats at the end that the model was not written, because the first message is far above, before
 * all scores. */
static void say_lost(const session *s) {
    if (!s->leads) return;
    if (s->kept.step >= 0)
        warn(&train_program,
             "what was learned after step %lld is lost: %s could not be written, and keeps that "
             "step for --resume",
             (long long)s->kept.step, s->set->run.model);
    else if (s->kept.best < INFINITY)
        warn(&train_program,
             "%s could not be written: only the best weights, in %s, are kept, and the training "
             "cannot be resumed",
             s->set->run.model, s->kept.best_path);
    else
        warn(&train_program, "nothing of this training is kept: %s could not be written",
             s->set->run.model);
}

/* After the last step: saves, evaluates, draws. */
static int finish(session *s) {
    char took[OPTION_TEXT_SIZE], size[OPTION_TEXT_SIZE];
    struct stat file;
    int64_t steps = s->at.step - s->work.first_step;
    bool saved = save(s);
    if (s->work.recent.steps) report_progress(s, true);
    say(&s->report, "\n%lld steps in %s%s", (long long)steps, duration(s->work.seconds, took),
        s->judged_step >= 0 ? ", without validations" : "");
    if (s->transport)
        say(&s->report, "%.1f %% of it exchanging and waiting; %s sent by rank 0 in an update",
            100 * s->work.exchanged / s->work.seconds, bytes_text((double)s->work.last.sent, size));
    if (s->set->run.model && saved && stat(s->set->run.model, &file) == 0)
        say(&s->report, "saved %s (%s)", s->set->run.model, bytes_text((double)file.st_size, size));
    if (s->set->run.model && saved && s->late) say_saved(s, "--max-time");
    if (!s->set->run.model) say(&s->report, "the model is not kept: -o FILE would save it");
    if (dataset_holds(&s->dataset)) test(s);
    if (s->kept.best < INFINITY)
        say(&s->report, "the weights with the lowest loss, %.4g, are in %s", s->kept.best,
            s->kept.best_path);
    if (s->set->run.profile) report_profile(&s->report, wf_trainer_plan(s->trainer));
    if (s->set->run.curve) draw_curve(s);
    telemetry_write(s, true);
    if (!saved) say_lost(s);
    return saved && !s->kept.best_lost && !s->telemetry.lost ? EXIT_DONE : EXIT_FAILED;
}

/* ---- the dry run ----------------------------------------------------------------------------- */

enum { FIRST_COUNTED = 3, MOST_TRIES = 32 };
static const double TRY_SECONDS = 2;

/* The number of steps that a dry run makes at most. Without ranks it ends when the measured steps
 * took TRY_SECONDS. Ranks have no common clock, so all of them measure one step alone: the third,
 * because the first two also make the plans, or the last of an epoch that has fewer. */
static int64_t most_tries(const session *s) {
    int64_t updates = dataset_updates(&s->dataset);
    int64_t all = updates ? updates : s->set->run.max_steps;
    int64_t most = s->transport ? FIRST_COUNTED : MOST_TRIES;
    /* the last update of an epoch may have fewer batches */
    if (s->transport && updates > 1 && updates <= most) return updates - 1;
    return all < most ? all : most;
}

/* Makes steps until they took long enough to show the load of the machine. Returns the number of
 * steps that were counted, and writes their tokens and time; -1: a step failed. */
static int64_t try_steps(session *s, double *tokens, double *seconds) {
    int64_t last = most_tries(s), first = last < FIRST_COUNTED ? last : FIRST_COUNTED, counted = 0;
    double began = wf_seconds_now();
    *seconds = 0;
    for (int64_t step = 1; step <= last && *seconds < TRY_SECONDS; step++) {
        /* the steps before `first` make the plans, so they are not counted */
        if (step <= first) {
            s->work.recent = (interval){ 0 };
            began = wf_seconds_now();
            counted = 0;
        }
        forecast_step();
        if (!run_step(s, step)) {
            s->at.step = step - 1;
            return -1;
        }
        counted++;
        if (step >= first) *seconds = wf_seconds_now() - began;
    }
    *tokens = s->work.recent.tokens;
    return counted;
}

/* Says where --max-time will end this run, if it does before the last step. */
static void say_time_limit(session *s, double all_seconds) {
    char options[80];
    double last = (double)s->set->run.max_steps, at = (double)s->at.step;
    double steps = at + s->set->run.max_time / all_seconds * (last - at);
    if (s->set->run.max_time <= 0 || steps >= last) return;
    bool fits = settings_has_horizon(s->set) && shorter_schedule(s, steps, options);
    say(&s->report, "         --max-time %g ends this run at about step %.0f of %lld%s%s%s",
        s->set->run.max_time, steps, (long long)s->set->run.max_steps,
        fits ? ", before its learning rate has fallen: " : "", fits ? options : "",
        fits ? " fits the time" : "");
}

/* Estimates how long an epoch, or all steps that are left, will take: makes some steps, and keeps
 * nothing of them. */
static int dry_run(session *s) {
    char took[OPTION_TEXT_SIZE], all[OPTION_TEXT_SIZE], tried[OPTION_TEXT_SIZE];
    double tokens, seconds;
    int64_t updates = dataset_updates(&s->dataset), n = try_steps(s, &tokens, &seconds);
    int64_t left = s->set->run.max_steps - s->at.step;
    if (n < 0) return step_failed(s, s->at.step + 1);
    duration(seconds, tried);
    if (s->transport) seconds = forecast_say(s, seconds);
    double rate = tokens / seconds, one = seconds / (double)n * (double)(updates ? updates : left);
    if (s->dataset.tokens) one = (double)s->dataset.tokens / rate; /* steps differ in tokens */
    double epochs = updates ? (double)left / (double)updates : 1;
    duration(one, took);
    if (updates)
        say(&s->report, "time     %s for an epoch, %s for %s, without validations", took,
            duration(one * epochs, all), s->at.step ? "the steps that are left" : "all");
    else
        say(&s->report, "time     %s for %lld steps, without validations", took, (long long)left);
    say(&s->report,
        "         measured over %lld step%s (%s); more programs beside it make it slower",
        (long long)n, n == 1 ? "" : "s", tried);
    say_time_limit(s, one * epochs);
    jsonl *e = event(&s->report, "dry_run");
    json_real(e, "seconds", one * epochs);
    json_real(e, speed_key(dataset_unit(&s->dataset)), rate);
    event_send(&s->report);
    return EXIT_DONE;
}

static int train_to_the_end(session *s) {
    catch_signals(s->set->run.processes <= 1, s->leads && !s->set->run.quiet);
    int status = train(s);
    if (status == EXIT_DONE) status = finish(s);
    jsonl *e = event(&s->report, "end");
    json_int(e, "step", s->at.step);
    json_int(e, "status", status);
    event_send(&s->report);
    return status;
}

/* The whole training of one rank, or of a single process. */
static int run_rank(session *s) {
    session_open(s);
    int status = (s->set->run.dry_run ? dry_run : train_to_the_end)(s);
    if (!session_close(s) && status == EXIT_DONE) status = EXIT_FAILED;
    if (s->leads) status = close_stdout(&train_program, status);
    /* waits for all ranks, because the end of one process may end the others */
    wf_barrier(s->transport);
    return status;
}

static int run_process(wf_transport *t, void *user) {
    session *s = user;
    ranks_join(s, t);
    int code = run_rank(s);
    if (code) wf_transport_fail(t, code, ""); /* the reason has been printed already */
    return code;
}

/* Runs the ranks. If the rank that failed could not report why, the reason is printed here. */
static int run_processes(session *s) {
    wf_processes_result cause;
    int code = wf_processes_run((int)s->set->run.processes, run_process, s, _exit, &cause);
    if (cause.code && *cause.why) warn(&train_program, "%s", cause.why);
    session_close(s);
    return code;
}

int train_main(int argc, char **argv, wf_transport *transport, int here) {
    session s = { .set = settings_new(),
                  .here = here,
                  .judged_step = -1,
                  .report = { .log = -1 },
                  .at = { .best = INFINITY } };
    ranks_join(&s, transport);
    s.set->run.command = argv[0];
    options_parse(&train_program, argc, argv);
    bool starts = s.set->run.processes > 1;
    if (starts && transport)
        usage_error(&train_program, "--processes %lld: there are ranks already",
                    (long long)s.set->run.processes);
    if (starts) s.here = (int)s.set->run.processes;
    if (s.set->run.simulated_ranks && s.transport)
        usage_error(&train_program, "--ranks %lld: there are ranks already",
                    (long long)s.set->run.simulated_ranks);
    if (s.set->run.simulated_ranks) forecast_join(&s);
    if (!starts && !transport) catch_early_signals(!s.set->run.quiet);
    session_read(&s);
    return starts ? run_processes(&s) : run_rank(&s);
}
