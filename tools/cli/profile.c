/* tools/cli/profile.c - sums the time of a plan's steps by op. See report.h. */
#include "report.h"

#include <stdlib.h>
#include <string.h>

#include "core/op.h"
#include "numbers.h"

static int slowest_first(const void *a, const void *b) {
    const profile_row *x = a, *y = b;
    return x->seconds != y->seconds ? (x->seconds < y->seconds) - (x->seconds > y->seconds)
                                    : strcmp(x->op, y->op);
}

static profile_row *row_of(profile_row *rows, int *n, const char *op) {
    for (int i = 0; i < *n; i++)
        if (strcmp(rows[i].op, op) == 0) return &rows[i];
    rows[*n] = (profile_row){ .op = op };
    return &rows[(*n)++];
}

/* Fills rows, which has space for every step of the plan. Returns how many rows there are. */
static int sum_by_op(wf_plan *plan, int steps, profile_row *rows) {
    int n = 0;
    wf_step step;
    for (int i = 0; i < steps; i++) {
        if (!wf_step_at(plan, i, &step) || step.runs == 0) continue;
        profile_row *r = row_of(rows, &n, step.op ? step.op->name : "copy");
        r->seconds += step.seconds;
        r->calls += step.runs;
        r->flops += step.flops * (double)step.runs;
        r->bytes += step.bytes * (double)step.runs;
    }
    qsort(rows, (size_t)n, sizeof *rows, slowest_first);
    return n;
}

profile_row *profile_rows(wf_plan *plan, int *n) {
    int steps = wf_step_count(plan);
    profile_row *rows = calloc(steps > 0 ? (size_t)steps : 1, sizeof *rows);
    *n = rows ? sum_by_op(plan, steps, rows) : 0;
    return rows;
}

static void print_row(report *r, const profile_row *x, double total) {
    char calls[OPTION_TEXT_SIZE];
    double seconds = x->seconds > 0 ? x->seconds : 1e-9, share = total > 0 ? x->seconds / total : 0;
    say(r, "%-28s %12s %10.3f s %6.1f %% %9.2f %9.2f", x->op, thousands((double)x->calls, calls),
        x->seconds, 100 * share, x->flops / seconds / 1e9, x->bytes / seconds / 1e9);
}

static void send_row(report *r, const profile_row *x) {
    jsonl *e = event(r, "profile");
    json_text(e, "op", x->op);
    json_int(e, "calls", x->calls);
    json_real(e, "seconds", x->seconds);
    json_real(e, "flops", x->flops);
    json_real(e, "bytes", x->bytes);
    event_send(r);
}

void report_profile(report *r, wf_plan *plan) {
    int n;
    profile_row *rows = profile_rows(plan, &n);
    if (!rows) {
        report_failed(r, "there is no profile");
        return;
    }
    profile_row all = { .op = "all" };
    for (int i = 0; i < n; i++) {
        all.seconds += rows[i].seconds;
        all.flops += rows[i].flops;
        all.bytes += rows[i].bytes;
        all.calls += rows[i].calls;
    }
    say(r, "\n%-28s %12s %12s %8s %9s %9s", "op", "calls", "time", "share", "GFLOP/s", "GB/s");
    for (int i = 0; i < n; i++) {
        print_row(r, &rows[i], all.seconds);
        send_row(r, &rows[i]);
    }
    print_row(r, &all, all.seconds);
    free(rows);
}
