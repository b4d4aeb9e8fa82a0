/* tools/train/train.c - trains a model on a task or on text, saves it, and says how well it
 * does on unseen sequences.
 *
 * The model file is the checkpoint: a resumed training goes on as if it had never stopped, bit for
 * bit, because the data and the dropout of a step are functions of (seed, step). Not here: the
 * options (settings.c), what is opened first (session.c), the data (dataset.c), the words
 * (report.c), the evaluation (evaluate.c). */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "diagnose.h"
#include "forecast.h"
#include "metadata.h"
#include "ops/base/scalars.h"
#include "ranks.h"
#include "signals.h"
#include "tools/cli/command.h"
#include "tools/cli/numbers.h"
#include "tools/cli/output.h"
#include "tools/data/language.h"
#include "train.h"

/* ---- progress -------------------------------------------------------------------------------- */

/* The interval so far as a line; a new interval begins if it was printed. */
static void report_progress(session *s, bool line) {
    const interval *r = &s->recent;
    double per_step = s->trained_seconds / (double)(s->at.step - s->first_step);
    int64_t updates = dataset_updates(&s->dataset);
    progress p = {
        .step = s->at.step,
        .total = s->set->max_steps,
        .epoch = updates ? (double)s->at.step / (double)updates : 0,
        .loss = r->loss / r->tokens,
        .nll = r->nll / r->tokens,
        .accuracy = r->correct / r->tokens,
        .tokens_per_second = r->tokens / r->seconds,
        .norm = s->norm,
        .exchange_share = s->ranks ? r->exchanging / r->seconds : -1,
        .bytes_sent = s->did.sent,
        .rate = wf_schedule_rate(&s->schedule, s->at.step),
        .elapsed = wf_seconds_now() - s->started,
        .remaining = per_step * (double)(s->set->max_steps - s->at.step),
    };
    report_bar(&s->report, &p);
    if (!line) return;
    report_step(&s->report, &p);
    series_add(&s->history.train, (double)s->at.step, p.loss);
    s->recent = (interval){ 0 };
}

/* ---- saving -------------------------------------------------------------------------------- */

/* The checkpoint, or the best weights alone. All ranks call it, and rank 0 writes. */
static bool write_model(session *s, const char *path, bool checkpoint) {
    char message[WF_MESSAGE], target[PATH_SIZE];
    settings_meta kept;
    int n = 0;
    wf_meta *pairs = metadata_new(s, &kept, &n);
    if (!pairs) fail(&train_program, "out of memory");
    if (!checkpoint) pairs[n++] = (wf_meta){ "weft.kind", "best" };
    if (s->leads && !output_target(path, target)) snprintf(target, sizeof target, "%s", path);
    bool ok = true;
    if (checkpoint || s->leads)
        ok = wf_model_save(s->model, s->leads ? target : path, checkpoint ? s->trainer : NULL,
                           pairs, n, message);
    free(pairs);
    if (s->ranks && s->ranks->code) ranks_leave(s);
    if (s->leads && !ok) {
        report_clear(&s->report);
        warn(&train_program, "step %lld is not saved: %s", (long long)s->at.step, message);
    }
    return checkpoint ? ok : ranks_agree(s, ok);
}

static bool save(session *s) {
    if (!s->set->model || s->saved_step == s->at.step) return true;
    if (!write_model(s, s->set->model, true)) return false;
    s->saved_step = s->at.step;
    json_int(event(&s->report, "save"), "step", s->at.step);
    event_send(&s->report);
    return true;
}

/* ---- evaluating ---------------------------------------------------------------------------- */

/* The averages in the place of the weights, and back: they are what is judged and kept as best. */
static void swap_averages(session *s) {
    if (s->set->ema > 0 && !wf_trainer_swap_averages(s->trainer))
        ranks_failed(s, wf_trainer_error(s->trainer));
}

static evaluation evaluated(session *s, task_stream stream, const char *name) {
    evaluation v;
    char message[WF_MESSAGE];
    double began = wf_seconds_now();
    swap_averages(s);
    bool ok = evaluate(&s->evaluator, stream, &v, message);
    if (!ok) ranks_failed(s, message);
    swap_averages(s);
    jsonl *e = event(&s->report, name);
    json_int(e, "step", s->at.step);
    if (v.counts.judged) json_int(e, "exact", v.counts.exact);
    json_int(e, "sequences", v.counts.sequences);
    json_real(e, "loss", v.nll / v.tokens);
    json_real(e, "accuracy", v.correct / v.tokens);
    if (v.bytes > 0) json_real(e, "bits_per_byte", bits_per_byte(&v));
    if (s->dataset.kind->text && v.counts.judged) {
        json_real(e, "bleu", bleu_score(&v.counts.text.bleu[BLEU_NONE]).score);
        json_real(e, "bleu_13a", bleu_score(&v.counts.text.bleu[BLEU_13A]).score);
        json_real(e, "chrf", chrf_score(&v.counts.text.chrf));
        json_real(e, "cer", error_rate(&v.counts.text.characters));
        json_real(e, "wer", error_rate(&v.counts.text.words));
    }
    json_real(e, "seconds", wf_seconds_now() - began);
    event_send(&s->report);
    series_add(&s->history.valid, (double)s->at.step, v.nll / v.tokens);
    return v;
}

/* The weights are kept beside the model whenever the loss is the lowest so far. */
static void keep_best(session *s, double loss) {
    training_state at = s->at;
    if (!*s->best_path || loss >= s->best_kept) return;
    s->at.best = loss;
    swap_averages(s);
    s->best_lost = !write_model(s, s->best_path, false);
    if (!s->best_lost) s->best_kept = loss;
    swap_averages(s);
    s->at = at;
}

/* Sentences are judged by BLEU; single words, numbers and sequences of few symbols are right or
 * wrong. */
static bool are_sentences(const session *s) {
    enum { FEW = 256 };
    if (s->set->task != LEARN_TEXT) return false;
    const wf_tokenizer *t = s->dataset.tokenizer[SIDE_TGT];
    wf_token_kind kind = wf_tokenizer_kind(t);
    if (kind == WF_CHARACTERS || kind == WF_TEXT_CHARACTERS) return false;
    return kind != WF_WORDS || wf_tokenizer_size(t) > FEW;
}

/* Error rate of words if tokens are words, else of characters. */
static int error_text(const session *s, const evaluation *v, char *text, size_t size) {
    bool words = wf_tokenizer_kind(s->dataset.tokenizer[SIDE_TGT]) == WF_WORDS;
    const edit_counts *e = words ? &v->counts.text.words : &v->counts.text.characters;
    return snprintf(text, size, "%s error rate %.2f %%", words ? "word" : "character",
                    100 * error_rate(e));
}

static void scores_text(const session *s, const evaluation *v, char text[120]) {
    if (are_sentences(s)) {
        snprintf(text, 120, "BLEU %.2f", bleu_score(&v->counts.text.bleu[BLEU_13A]).score);
        return;
    }
    int n = snprintf(text, 120, "exact match %lld/%lld", (long long)v->counts.exact,
                     (long long)v->counts.judged);
    if (!s->dataset.kind->text) return;
    n += snprintf(text + n, 120 - (size_t)n, ", ");
    error_text(s, v, text + n, 120 - (size_t)n);
}

/* A validation whose turn it is: a resumed training makes the same ones. */
static void validate(session *s) {
    evaluation_free(&s->judged);
    evaluation v = s->judged = evaluated(s, STREAM_VALID, "valid");
    double loss = v.nll / v.tokens;
    s->judged_step = s->at.step;
    int64_t updates = dataset_updates(&s->dataset);
    progress p = { .step = s->at.step,
                   .total = s->set->max_steps,
                   .epoch = updates ? (double)s->at.step / (double)updates : 0,
                   .loss = loss,
                   .nll = loss,
                   .accuracy = v.correct / v.tokens };
    char scores[120] = "";
    if (v.counts.judged) scores_text(s, &v, scores);
    if (v.bytes > 0) snprintf(scores, sizeof scores, "%.4f bits per byte", bits_per_byte(&v));
    report_valid(&s->report, &p, scores);
    s->at.since_best = loss < s->at.best ? 0 : s->at.since_best + 1;
    if (loss < s->at.best) s->at.best = loss;
    keep_best(s, loss);
}

/* The one figure of the kind of data; all of them are in the log. */
static void result_text(const session *s, const evaluation *v, char text[METRIC_TEXT]) {
    if (are_sentences(s))
        bleu_text(&v->counts.text.bleu[BLEU_13A], BLEU_13A, text);
    else
        snprintf(text, METRIC_TEXT, "exact match %lld/%lld", (long long)v->counts.exact,
                 (long long)v->counts.judged);
}

/* Results are text on stdout, or events. */
static bool prints(const session *s) {
    return s->leads && !s->set->json;
}

/* Of running text: what it is worth, and what it writes. */
static void say_running(session *s, const evaluation *v) {
    enum { TOKENS = 200 };
    char size[OPTION_TEXT_SIZE], message[WF_MESSAGE];
    say(&s->report,
        "\nOn %s that it has never seen: %.4f bits per byte, loss %.4g per token, perplexity %.5g, "
        "token accuracy %.2f %%",
        bytes_text(v->bytes, size), bits_per_byte(v), v->nll / v->tokens, wf_exp_of(v->nll / v->tokens),
        100 * v->correct / v->tokens);
    swap_averages(s);
    char *text =
        s->leads ? write_sample(&s->evaluator, TOKENS, (uint64_t)s->set->seed, message) : NULL;
    if (s->leads && !text) fail(&train_program, "%s", message);
    swap_averages(s);
    if (!s->leads) return;
    say(&s->report, "What it writes:\n%s", text);
    json_text(event(&s->report, "sample"), "text", text);
    event_send(&s->report);
    free(text);
    if (prints(s)) printf("%.4f bits per byte\n", bits_per_byte(v)), fflush(stdout);
}

/* Of sequences: how many come out right. */
static void say_sequences(session *s, const evaluation *v) {
    say(&s->report,
        "\nOn %lld sequences it has never seen: loss %.4g per token, perplexity %.5g, token "
        "accuracy %.2f %%",
        (long long)v->counts.sequences, v->nll / v->tokens, wf_exp_of(v->nll / v->tokens),
        100 * v->correct / v->tokens);
    char text[METRIC_TEXT];
    if (s->dataset.kind->text && v->counts.judged && !are_sentences(s)) {
        error_text(s, v, text, sizeof text);
        say(&s->report, "%s", text);
    }
    if (v->counts.judged) say(&s->report, "source | reference | output");
    for (int i = 0; i < SAMPLES; i++)
        if (v->samples[i]) say(&s->report, "  %s", v->samples[i]);
    if (!prints(s) || !v->counts.judged) return;
    result_text(s, v, text);
    printf("%s\n", text);
    fflush(stdout);
}

static void test(session *s) {
    bool in_files = !s->dataset.kind->batches(&s->dataset, STREAM_TEST);
    bool judged = in_files && s->judged_step == s->at.step;
    evaluation v = judged     ? s->judged
                   : in_files ? evaluated(s, STREAM_VALID, "valid")
                              : evaluated(s, STREAM_TEST, "test");
    (v.bytes > 0 ? say_running : say_sequences)(s, &v);
    if (in_files) keep_best(s, v.nll / v.tokens);
    if (!judged) evaluation_free(&v);
}

/* ---- the training -------------------------------------------------------------------------- */

static void next_batch(session *s, int64_t step, int64_t part) {
    if (dataset_batch(&s->dataset, step, part, &s->batch)) return;
    fail(&train_program, "out of memory for a batch: lower --max-tokens or --batch-size");
}

static void add_to_interval(session *s, const wf_progress *now, double seconds) {
    interval *r = &s->recent;
    s->norm = now->norm;
    r->loss += now->sums[0];
    r->nll += now->sums[1];
    r->correct += now->sums[2];
    r->tokens += now->count;
    r->exchanging += now->exchanging;
    s->exchanged += now->exchanging;
    r->steps++;
    s->did.sent = now->sent;
    s->did.received = now->received;
    s->did.exchanging = now->exchanging;
    s->did.seconds = seconds;
}

/* Why the last step failed: the trainer's reason, or that of a batch that could not be fed. */
static const char *step_error(const session *s) {
    const char *why = wf_trainer_error(s->trainer);
    return *why ? why : wf_plan_error(wf_trainer_plan(s->trainer));
}

/* One update, of this process's batches and of other ranks'. False: wf_trainer_error says why. */
static bool run_step(session *s, int64_t step) {
    wf_trainer *t = s->trainer;
    double began = wf_seconds_now();
    int64_t from, to, parts = dataset_parts(&s->dataset, step);
    wf_progress now;
    bool ok = wf_trainer_begin(t, parts, &from, &to);
    for (int64_t part = from; ok && part < to; part++) {
        next_batch(s, step, part);
        ok = batch_feed(&s->batch, wf_trainer_plan(t), s->model) && wf_trainer_add(t, part);
    }
    /* other ranks wait for this one's gradients */
    if (!ok && s->ranks) fail(&train_program, "step %lld: %s", (long long)step, step_error(s));
    s->did = (step_work){ .batches = to - from, .parts = parts };
    ok = ok && wf_trainer_update(t, &now);
    if (s->ranks && s->ranks->code) ranks_leave(s);
    if (s->ranks) ranks_notice(s);
    if (ok) add_to_interval(s, &now, wf_seconds_now() - began);
    return ok;
}

/* A step that could not be made: nothing was updated, and the file is as it was. */
static int step_failed(session *s, int64_t step) {
    char name[256], why[256] = "";
    report *r = &s->report;
    report_clear(r);
    bool found = s->ranks ? ranks_find_non_finite(s, step, name, why)
                          : find_non_finite(s->model, wf_trainer_optimizer(s->trainer), &s->batch,
                                            (uint64_t)step, name);
    if (!s->leads) return found ? EXIT_NON_FINITE : EXIT_FAILED;
    if (!found) {
        warn(&train_program, "step %lld: %s", (long long)step, s->ranks ? why : step_error(s));
        return EXIT_FAILED;
    }
    warn(&train_program, "step %lld: the %s is not finite; lower --lr or --clip-norm",
         (long long)step, name);
    if (s->set->model && s->saved_step >= 0)
        say(r, "%s keeps step %lld", s->set->model, (long long)s->saved_step);
    jsonl *e = event(r, "nonfinite");
    json_int(e, "step", step);
    json_text(e, "tensor", name);
    event_send(r);
    return EXIT_NON_FINITE;
}

/* Ranks go by what they agreed on in the last step. */
static int stop_signal(const session *s) {
    return s->ranks ? s->signalled : caught_signal();
}

static bool late(const session *s, double now) {
    if (s->ranks) return s->late;
    return s->set->max_time > 0 && now - s->started >= s->set->max_time;
}

/* The command that goes on: what the checkpoint does not hold is typed again. */
static void say_saved(session *s, const char *signal) {
    char *command = command_again(&train_program, s->set->command, "--resume");
    say(&s->report, "%s: saved step %lld; go on with: %s", signal, (long long)s->at.step,
        command ? command : "--resume");
    free(command);
}

static int stopped_by_signal(session *s) {
    const char *name = stop_signal(s) == SIGINT ? "SIGINT" : "SIGTERM";
    bool saved = save(s);
    jsonl *e = event(&s->report, "signal");
    json_int(e, "step", s->at.step);
    json_text(e, "signal", name);
    event_send(&s->report);
    if (s->set->model && saved)
        say_saved(s, name);
    else
        say(&s->report, "%s: stopped after step %lld; nothing saved", name, (long long)s->at.step);
    return EXIT_SIGNAL + stop_signal(s);
}

static bool due(int64_t step, int64_t every) {
    return every && step % every == 0;
}

/* All steps, until the last, the end of the time or a signal. */
static int train(session *s) {
    s->started = wf_seconds_now();
    while (s->at.step < s->set->max_steps && !stop_signal(s)) {
        double began = wf_seconds_now();
        if (late(s, began)) break;
        if (!run_step(s, s->at.step + 1)) return step_failed(s, s->at.step + 1);
        s->at.step++;
        s->recent.seconds += wf_seconds_now() - began;
        s->trained_seconds += wf_seconds_now() - began;
        report_progress(s, due(s->at.step, s->set->log_every) || s->at.step == s->set->max_steps);
        if (session_evaluates(s) && due(s->at.step, s->set->valid_every)) validate(s);
        if (due(s->at.step, s->set->save_every) && s->at.step < s->set->max_steps)
            save(s); /* a failure is said, and the training goes on */
        if (s->set->patience && s->at.since_best >= s->set->patience) {
            say(&s->report, "stopped: %lld validations without a lower loss than %.4g",
                (long long)s->at.since_best, s->at.best);
            break;
        }
    }
    return stop_signal(s) ? stopped_by_signal(s) : EXIT_DONE;
}

/* "Learning to sort", "Learning from pairs.tsv". */
static void curve_title(const settings *set, char title[100]) {
    char word[OPTION_TEXT_SIZE];
    const char *file = set->text ? set->text : set->train ? set->train : set->train_src;
    const char *slash = file ? strrchr(file, '/') : NULL;
    option_text(option_find(&train_program, "task"), word);
    if (file)
        snprintf(title, 100, "Learning from %.80s", slash ? slash + 1 : file);
    else
        snprintf(title, 100, "Learning to %s", word);
}

static void draw_curve(session *s) {
    char title[100], message[WF_MESSAGE];
    bool harder = s->set->dropout > 0 || s->set->label_smoothing > 0;
    curve_title(s->set, title);
    s->history.train_label = harder ? "training, with dropout or smoothing" : "training";
    if (!history_draw(&s->history, s->set->curve, title, message))
        fail(&train_program, "%s", message);
}

/* After the last step: save, evaluate, draw. */
static int finish(session *s) {
    char took[OPTION_TEXT_SIZE], size[OPTION_TEXT_SIZE];
    struct stat file;
    int64_t steps = s->at.step - s->first_step;
    bool saved = save(s);
    if (s->recent.steps) report_progress(s, true);
    say(&s->report, "\n%lld steps in %s", (long long)steps, duration(s->trained_seconds, took));
    if (s->ranks)
        say(&s->report, "%.1f %% of it exchanging and waiting; %s sent by rank 0 in an update",
            100 * s->exchanged / s->trained_seconds, bytes_text((double)s->did.sent, size));
    if (s->set->model && saved && stat(s->set->model, &file) == 0)
        say(&s->report, "saved %s (%s)", s->set->model, bytes_text((double)file.st_size, size));
    if (!s->set->model) say(&s->report, "the model is not kept: -o FILE would save it");
    if (session_evaluates(s)) test(s);
    if (s->best_kept < INFINITY)
        say(&s->report, "the weights with the lowest loss, %.4g, are in %s", s->best_kept,
            s->best_path);
    if (s->set->profile) report_profile(&s->report, wf_trainer_plan(s->trainer));
    if (s->set->curve) draw_curve(s);
    return saved && !s->best_lost ? EXIT_DONE : EXIT_FAILED;
}

/* How long an epoch, or all steps, will take: the first few steps are made, and nothing is kept of
 * them. */
static int dry_run(session *s) {
    enum { TRIES = 3 };
    char took[OPTION_TEXT_SIZE], all[OPTION_TEXT_SIZE];
    double tokens = 0, seconds = 0;
    int64_t updates = dataset_updates(&s->dataset), last = updates ? updates : s->set->max_steps;
    if (last > TRIES) last = TRIES;
    if (s->ranks && last > 1 && last == updates) last--; /* it may have fewer batches */
    for (int64_t step = 1; step <= last; step++) {
        double began = wf_seconds_now();
        s->recent = (interval){ 0 };
        forecast_step();
        if (!run_step(s, step)) return step_failed(s, step);
        tokens = s->recent.tokens,
        seconds = wf_seconds_now() - began; /* the first plans: not counted */
    }
    if (s->ranks) seconds = forecast_say(s, seconds);
    double total = updates ? (double)s->dataset.tokens : tokens * (double)s->set->max_steps;
    double rate = tokens / seconds, one = total / rate;
    double epochs = updates ? (double)s->set->max_steps / (double)updates : 1;
    if (updates)
        say(&s->report, "time     %s for an epoch, %s for all, without validations",
            duration(one, took), duration(one * epochs, all));
    else
        say(&s->report, "time     %s for %lld steps, without validations", duration(one, took),
            (long long)s->set->max_steps);
    jsonl *e = event(&s->report, "dry_run");
    json_real(e, "seconds", one * epochs);
    json_real(e, "tokens_per_second", rate);
    event_send(&s->report);
    return EXIT_DONE;
}

static int train_to_the_end(session *s) {
    catch_signals();
    int status = train(s);
    if (status == EXIT_DONE) status = finish(s);
    jsonl *e = event(&s->report, "end");
    json_int(e, "step", s->at.step);
    json_int(e, "status", status);
    event_send(&s->report);
    return status;
}

/* What one rank does, or all of them in one process. */
static int run_rank(session *s) {
    session_open(s);
    int status = (s->set->dry_run ? dry_run : train_to_the_end)(s);
    if (!session_close(s) && status == EXIT_DONE) status = EXIT_FAILED;
    if (s->leads) status = close_stdout(&train_program, status);
    wf_barrier(s->ranks); /* nobody's exit code ends another before it is done */
    return status;
}

static int run_process(wf_transport *t, void *user) {
    session *s = user;
    ranks_join(s, t);
    int code = run_rank(s);
    if (code) wf_transport_fail(t, code, ""); /* it is told already */
    return code;
}

/* Why it ended is told here, if the rank that failed could not say it itself. */
static int run_processes(session *s) {
    wf_processes_result cause;
    int code = wf_processes_run((int)s->set->processes, run_process, s, _exit, &cause);
    if (cause.code && *cause.why) warn(&train_program, "%s", cause.why);
    session_close(s);
    return code;
}

int train_main(int argc, char **argv, wf_transport *ranks, int here) {
    session s = { .set = settings_new(),
                  .here = here,
                  .saved_step = -1,
                  .judged_step = -1,
                  .report = { .log = -1 },
                  .at = { .best = INFINITY } };
    ranks_join(&s, ranks);
    s.set->command = argv[0];
    options_parse(&train_program, argc, argv);
    bool starts = s.set->processes > 1;
    if (starts && ranks)
        usage_error(&train_program, "--processes %lld: there are ranks already",
                    (long long)s.set->processes);
    if (starts) s.here = (int)s.set->processes;
    if (s.set->ranks && s.ranks)
        usage_error(&train_program, "--ranks %lld: there are ranks already",
                    (long long)s.set->ranks);
    if (s.set->ranks) forecast_join(&s);
    session_read(&s);
    return starts ? run_processes(&s) : run_rank(&s);
}
