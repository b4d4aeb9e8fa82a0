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
    series *curve = &s->history.of[VALID_LOSS];
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
    if (!*s->best_path || loss >= s->best_kept) return;
    s->at.best = loss;
    swap_averages(s);
    s->best_lost = !write_model(s, s->best_path, false);
    if (!s->best_lost) s->best_kept = loss;
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

/* Writes the main figure for this kind of data; the log has all figures. */
static void result_text(const session *s, const evaluation *v, char text[METRIC_TEXT]) {
    if (are_sentences(s))
        bleu_text(&v->counts.text.bleu[BLEU_13A], BLEU_13A, text);
    else
        snprintf(text, METRIC_TEXT, "exact match %lld/%lld", (long long)v->counts.exact,
                 (long long)v->counts.judged);
}

/* True if results are printed as text on stdout, and not sent as events. */
static bool prints(const session *s) {
    return s->leads && !s->set->run.json;
}

/* Reports bits per byte and a sample, for running text. */
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
    if (!prints(s)) return;
    printf("%.4f bits per byte\n", bits_per_byte(v));
    fflush(stdout);
}

static void say_samples(session *s, const evaluation *v) {
    say(&s->report, "source | reference | output");
    for (int i = 0; i < SAMPLES; i++) {
        char *const *text = v->samples + i * SAMPLE_TEXTS;
        if (text[SAMPLE_SOURCE] && text[SAMPLE_REFERENCE] && text[SAMPLE_OUTPUT])
            say(&s->report, "  %s | %s | %s", text[SAMPLE_SOURCE], text[SAMPLE_REFERENCE],
                text[SAMPLE_OUTPUT]);
    }
}

/* Says whether the model has learned from the pairs of the validation. */
static const char *whether_learned(const session *s) {
    return s->dataset.same ? "it has learned from" : "it has never seen";
}

/* Reports how many lines had their own partner as the nearest one of a batch. */
static void say_vectors(session *s, const evaluation *v) {
    say(&s->report, "\nOn %lld pairs %s: loss %.4g per line", (long long)v->counts.sequences,
        whether_learned(s), v->nll / v->tokens);
    if (is_chance(v))
        say(&s->report,
            "which is no better than chance, %.4g: all vectors may be alike; a lower --lr or a "
            "longer --warmup may help",
            v->chance / v->tokens);
    if (!prints(s)) return;
    printf("nearest in its batch: %lld/%lld\n", llround(v->correct), llround(v->tokens));
    fflush(stdout);
}

/* Reports how many hidden tokens were found. */
static void say_masks(session *s, const evaluation *v) {
    say(&s->report,
        "\nOn %lld windows it has never seen, with hidden tokens: loss %.4g per token, perplexity "
        "%.5g",
        (long long)v->counts.sequences, v->nll / v->tokens, wf_exp_of(v->nll / v->tokens));
    if (!prints(s)) return;
    printf("hidden tokens found: %lld/%lld\n", llround(v->correct), llround(v->tokens));
    fflush(stdout);
}

/* Reports how many lines got their labels. */
static void say_labels(session *s, const evaluation *v) {
    say(&s->report, "\nOn %lld lines %s: loss %.4g per line, right labels %.2f %%",
        (long long)v->counts.sequences, whether_learned(s), v->nll / v->tokens,
        100 * v->correct / v->tokens);
    if (!prints(s)) return;
    printf("right labels: %lld/%lld\n", llround(v->correct), llround(v->tokens));
    fflush(stdout);
}

/* Reports the share of right outputs, for sequences and pairs. */
static void say_sequences(session *s, const evaluation *v) {
    if (s->dataset.kind->encoder) {
        if (s->dataset.kind->masks)
            say_masks(s, v);
        else if (s->dataset.kind->classifies)
            say_labels(s, v);
        else
            say_vectors(s, v);
        return;
    }
    say(&s->report,
        "\nOn %lld sequences %s: loss %.4g per token, perplexity %.5g, token accuracy %.2f %%",
        (long long)v->counts.sequences, whether_learned(s), v->nll / v->tokens,
        wf_exp_of(v->nll / v->tokens), 100 * v->correct / v->tokens);
    char text[METRIC_TEXT];
    if (dataset_is_text(&s->dataset) && v->counts.judged && !are_sentences(s)) {
        error_text(s, v, text, sizeof text);
        say(&s->report, "%s", text);
    }
    if (v->counts.judged) say_samples(s, v);
    if (!prints(s) || !v->counts.judged) return;
    result_text(s, v, text);
    printf("%s\n", text);
    fflush(stdout);
}

void test(session *s) {
    bool in_files = !s->dataset.kind->batches(&s->dataset, STREAM_TEST);
    bool judged = in_files && s->judged_step == s->at.step;
    evaluation v = s->judged;
    if (!judged && in_files) v = evaluated(s, STREAM_VALID, "valid");
    if (!in_files) v = evaluated(s, STREAM_TEST, "test");
    (v.bytes > 0 ? say_running : say_sequences)(s, &v);
    if (in_files) keep_best(s, v.nll / v.tokens);
    if (!judged) evaluation_free(&v);
}
