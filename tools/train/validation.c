/* tools/train/validation.c - prints and keeps the results of validation and of the final test. See
 * validation.h. */
#include "validation.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/run_internal.h"
#include "ops/base/scalars.h"
#include "ranks/ranks.h"
#include "saving.h"
#include "signals.h"
#include "telemetry.h"
#include "tools/cli/numbers.h"
#include "tools/data/language.h"

/* Swaps weights and averages; a second call swaps them back. With --ema, the averages are evaluated
 * and kept as best. */
static void swap_averages(session *s) {
    if (s->set->recipe.ema > 0 && !wf_trainer_swap_averages(s->trainer))
        ranks_failed(s, wf_trainer_error(s->trainer));
}

/* Adds the test to the curve, if the training was not validated at this step. */
static void add_test(session *s, double loss) {
    series *curve = &s->telemetry.history.of[VALID_LOSS];
    bool there = curve->n && curve->x[curve->n - 1] >= (double)s->at.step;
    if (!there) series_add(curve, (double)s->at.step, loss);
}

static evaluation evaluated(session *s, task_stream stream, const char *name) {
    evaluation v;
    char message[WF_MESSAGE];
    double began = wf_seconds_now();
    wf_plan_release(wf_trainer_plan(s->trainer));
    swap_averages(s);
    signals_validate(true);
    bool ok = evaluate(&s->evaluator, stream, &v, message);
    signals_validate(false);
    if (!ok) ranks_failed(s, message);
    if (s->leads && stream == STREAM_VALID) telemetry_validation(s, &v);
    swap_averages(s);
    jsonl *e = event(&s->report, name);
    json_int(e, "step", s->at.step);
    if (v.counts.judged) json_int(e, "exact", v.counts.exact);
    json_int(e, "sequences", v.counts.sequences);
    json_real(e, "loss", v.nll / v.tokens);
    json_real(e, "accuracy", v.correct / v.tokens);
    if (v.bytes > 0) json_real(e, "bits_per_byte", bits_per_byte(&v));
    if (dataset_is_text(&s->dataset) && v.counts.judged) {
        json_real(e, "bleu", bleu_score(&v.counts.text.bleu[BLEU_NONE]).score);
        json_real(e, "bleu_13a", bleu_score(&v.counts.text.bleu[BLEU_13A]).score);
        json_real(e, "chrf", chrf_score(&v.counts.text.chrf));
        json_real(e, "cer", error_rate(&v.counts.text.characters));
        json_real(e, "wer", error_rate(&v.counts.text.words));
    }
    json_real(e, "seconds", wf_seconds_now() - began);
    event_send(&s->report);
    if (stream == STREAM_TEST) add_test(s, v.nll / v.tokens);
    return v;
}

/* Saves the weights, or with --ema the averages, as best ones if the loss is the lowest so far. */
static void keep_best(session *s, double loss) {
    training_state at = s->at;
    if (!*s->kept.best_path || loss >= s->kept.best) return;
    s->at.best = loss;
    swap_averages(s);
    s->kept.best_lost = !write_model(s, s->kept.best_path, false);
    if (!s->kept.best_lost) s->kept.best = loss;
    swap_averages(s);
    s->at = at;
}

/* True if targets are sentences: text whose tokens are not characters and not words of a small
 * vocabulary. They are judged by BLEU, other targets as right or wrong. */
static bool are_sentences(const session *s) {
    enum { FEW = 256 };
    if (s->set->data.task != LEARN_TEXT) return false;
    const wf_tokenizer *t = s->dataset.tokenizer[SIDE_TGT];
    wf_token_kind kind = wf_tokenizer_kind(t);
    if (kind == WF_CHARACTERS || kind == WF_TEXT_CHARACTERS) return false;
    return kind != WF_WORDS || wf_tokenizer_size(t) > FEW;
}

/* Writes the error rate of words if tokens are words, else of characters. */
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
    if (!dataset_is_text(&s->dataset)) return;
    n += snprintf(text + n, 120 - (size_t)n, ", ");
    error_text(s, v, text + n, 120 - (size_t)n);
}

/* True if the loss of vectors of pairs is no better than chance, as at first, or after steps that
 * were too large. */
static bool is_chance(const evaluation *v) {
    return v->chance > 0 && v->nll > 0.99 * v->chance;
}

/* Makes a regular validation. A resumed training validates after the same steps. */
void validate(session *s) {
    evaluation_free(&s->judged);
    evaluation v = s->judged = evaluated(s, STREAM_VALID, "valid");
    double loss = v.nll / v.tokens;
    s->judged_step = s->at.step;
    int64_t updates = dataset_updates(&s->dataset);
    progress p = { .step = s->at.step,
                   .unit = dataset_unit(&s->dataset),
                   .total = s->set->run.max_steps,
                   .epoch = updates ? (double)s->at.step / (double)updates : 0,
                   .loss = loss,
                   .nll = loss,
                   .accuracy = v.correct / v.tokens,
                   .learned = s->dataset.same };
    char scores[120] = "";
    if (v.counts.judged) scores_text(s, &v, scores);
    if (v.bytes > 0) snprintf(scores, sizeof scores, "%.4f bits per byte", bits_per_byte(&v));
    if (is_chance(&v)) snprintf(scores, sizeof scores, "no better than chance");
    report_valid(&s->report, &p, scores);
    s->at.since_best = loss < s->at.best ? 0 : s->at.since_best + 1;
    if (loss < s->at.best) s->at.best = loss;
    keep_best(s, loss);
    telemetry_write(s, false);
}

/* Reports the result for running text, with a sample. */
static void say_running(session *s, const evaluation *v) {
    enum { TOKENS = 200 };
    char size[OPTION_TEXT_SIZE], message[WF_MESSAGE];
    say(&s->report,
        "\nOn %s that it has never seen: %.4f bits per byte, loss %.4g per token, perplexity %.5g, "
        "token accuracy %.2f %%",
        bytes_text(v->bytes, size), bits_per_byte(v), v->nll / v->tokens,
        wf_exp_of(v->nll / v->tokens), 100 * v->correct / v->tokens);
    swap_averages(s);
    char *text = s->leads
                     ? write_sample(&s->evaluator, TOKENS, (uint64_t)s->set->recipe.seed, message)
                     : NULL;
    if (s->leads && !text) fail(&train_program, "%s", message);
    swap_averages(s);
    if (!s->leads) return;
    say(&s->report, "What it writes:\n%s", text);
    json_text(event(&s->report, "sample"), "text", text);
    event_send(&s->report);
    free(text);
}

/* Reports the result for vectors of pairs, or for labels or hidden tokens that an encoder finds. */
static void say_encoder(report *r, const source_kind *kind, const char *known,
                        const evaluation *v) {
    long long n = v->counts.sequences;
    double loss = v->nll / v->tokens;
    if (kind->masks)
        say(r,
            "\nOn %lld windows it has never seen, with hidden tokens: loss %.4g per token, "
            "perplexity %.5g",
            n, loss, wf_exp_of(loss));
    else if (kind->classifies)
        say(r, "\nOn %lld lines %s: loss %.4g per line, right labels %.2f %%", n, known, loss,
            100 * v->correct / v->tokens);
    else
        say(r, "\nOn %lld pairs %s: loss %.4g per line", n, known, loss);
    if (is_chance(v))
        say(r,
            "which is no better than chance, %.4g: all vectors may be alike; a lower --lr or a "
            "longer --warmup may help",
            v->chance / v->tokens);
}

/* Reports the result for outputs, with samples. */
static void say_outputs(session *s, const char *known, const evaluation *v) {
    report *r = &s->report;
    say(r, "\nOn %lld sequences %s: loss %.4g per token, perplexity %.5g, token accuracy %.2f %%",
        (long long)v->counts.sequences, known, v->nll / v->tokens, wf_exp_of(v->nll / v->tokens),
        100 * v->correct / v->tokens);
    if (!v->counts.judged) return;
    char text[METRIC_TEXT];
    if (dataset_is_text(&s->dataset) && !are_sentences(s)) {
        error_text(s, v, text, sizeof text);
        say(r, "%s", text);
    }
    say(r, "source | reference | output");
    for (int i = 0; i < SAMPLES; i++) {
        char *const *of = v->samples + i * SAMPLE_TEXTS;
        if (of[SAMPLE_SOURCE] && of[SAMPLE_REFERENCE] && of[SAMPLE_OUTPUT])
            say(r, "  %s | %s | %s", of[SAMPLE_SOURCE], of[SAMPLE_REFERENCE], of[SAMPLE_OUTPUT]);
    }
}

/* Prints on stdout the main figure for this kind of data; the log has all figures. */
static void print_figure(const session *s, const evaluation *v) {
    const source_kind *kind = s->dataset.kind;
    const char *right = kind->classifies ? "right labels" : "nearest in its batch";
    char text[METRIC_TEXT];
    if (v->bytes > 0)
        printf("%.4f bits per byte\n", bits_per_byte(v));
    else if (kind->encoder)
        printf("%s: %lld/%lld\n", kind->masks ? "hidden tokens found" : right, llround(v->correct),
               llround(v->tokens));
    else if (v->counts.judged && are_sentences(s))
        printf("%s\n", bleu_text(&v->counts.text.bleu[BLEU_13A], BLEU_13A, text));
    else if (v->counts.judged)
        printf("exact match %lld/%lld\n", (long long)v->counts.exact, (long long)v->counts.judged);
    fflush(stdout);
}

void test(session *s) {
    const source_kind *kind = s->dataset.kind;
    const char *known = s->dataset.same ? "it has learned from" : "it has never seen";
    bool in_files = !kind->batches(&s->dataset, STREAM_TEST);
    bool judged = in_files && s->judged_step == s->at.step;
    evaluation v = s->judged;
    if (!judged && in_files) v = evaluated(s, STREAM_VALID, "valid");
    if (!in_files) v = evaluated(s, STREAM_TEST, "test");
    if (v.bytes > 0)
        say_running(s, &v);
    else if (kind->encoder)
        say_encoder(&s->report, kind, known, &v);
    else
        say_outputs(s, known, &v);
    if (s->leads && !s->set->run.json) print_figure(s, &v);
    if (in_files) keep_best(s, v.nll / v.tokens);
    if (!judged) evaluation_free(&v);
}
