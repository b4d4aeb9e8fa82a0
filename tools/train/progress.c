/* tools/train/progress.c - prints the progress of a training. See progress.h. */
#include "progress.h"

#include <math.h>
#include <string.h>

#include "core/base/clock.h"
#include "ops/base/scalars.h"
#include "tools/cli/numbers.h"

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
