/* tools/train/step.c - one update, from a batch or from several. See step.h; by several ranks:
 * ranks.c. */
#include "step.h"

#include "ranks.h"

bool fetch_sums(const session *s, wf_plan *p, batch_sums *sums) {
    const wf_model *m = s->model;
    return wf_fetch(p, m->loss.loss, &sums->loss, sizeof sums->loss) &&
           wf_fetch(p, m->loss.nll, &sums->nll, sizeof sums->nll) &&
           wf_fetch(p, m->loss.count, &sums->count, sizeof sums->count) &&
           wf_fetch(p, m->correct, &sums->correct, sizeof sums->correct);
}

void add_to_interval(session *s, const batch_sums *sums) {
    interval *r = &s->recent;
    r->loss += sums->loss, r->nll += sums->nll;
    r->tokens += sums->count, r->correct += sums->correct;
}

static bool add_batch(session *s, wf_plan *p) {
    batch_sums sums;
    if (!fetch_sums(s, p, &sums)) return false;
    add_to_interval(s, &sums);
    return true;
}

static bool feed_rates(session *s, wf_plan *p, int64_t step) {
    const wf_model *m = s->model;
    double rates[3];
    wf_optimizer_rates(&m->training.optimizer, wf_schedule_rate(&s->schedule, step), step, rates);
    return wf_feed_reals(p, m->optimizer.rates, rates, (int)wf_count(m->optimizer.rates));
}

void next_batch(session *s, int64_t step, int64_t part) {
    if (dataset_batch(&s->dataset, step, part, &s->batch)) return;
    fail(&train_program, "out of memory for a batch: lower --max-tokens or --batch-size");
}

/* An update from one batch. */
static bool step_at_once(session *s, int64_t step) {
    const wf_model *m = s->model;
    wf_plan *p = s->plan;
    float norm;
    wf_random_step(p, (uint64_t)step, 0);
    next_batch(s, step, 0);
    bool ok = batch_feed(&s->batch, p, m) && feed_rates(s, p, step) && wf_run(p) &&
              add_batch(s, p) && wf_fetch(p, m->optimizer.norm, &norm, sizeof norm);
    if (ok) s->norm = norm;
    return ok;
}

/* An update from the sums of several: that of one large batch, up to rounding. */
static bool step_in_parts(session *s, int64_t step) {
    const wf_model *m = s->model;
    int64_t parts = dataset_parts(&s->dataset, step);
    wf_plan *p = s->plan;
    float norm;
    for (int64_t part = 0; part < parts; part++) {
        wf_random_step(p, (uint64_t)step, (uint32_t)part);
        next_batch(s, step, part);
        if (!batch_feed(&s->batch, p, m) || !wf_feed_micro_batch(p, &m->optimizer, part, parts) ||
            !wf_run(p) || !add_batch(s, p))
            return false;
    }
    s->failed = s->apply;
    bool ok = feed_rates(s, s->apply, step) && wf_run(s->apply) &&
              wf_fetch(s->apply, m->optimizer.accumulation.norm, &norm, sizeof norm);
    if (ok) s->norm = norm;
    return ok;
}

static bool average(session *s, int64_t step) {
    const wf_model *m = s->model;
    double rate = wf_optimizer_average_rate(&m->training.optimizer, step);
    s->failed = s->average;
    return wf_feed_reals(s->average, m->optimizer.average_rate, &rate, 1) && wf_run(s->average);
}

static bool step_alone(session *s, int64_t step) {
    s->failed = s->plan;
    if (!(s->set->accum > 1 ? step_in_parts : step_at_once)(s, step)) return false;
    return s->set->ema <= 0 || average(s, step);
}

bool run_step(session *s, int64_t step) {
    if (!(s->ranks ? ranks_step : step_alone)(s, step)) return false;
    s->recent.steps++;
    return true;
}
