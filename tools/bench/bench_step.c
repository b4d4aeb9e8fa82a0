/* tools/bench/bench_step.c - steps of a whole model: training, forward, decoding.
 *
 * Models, sizes and settings are those of tests/models/torch_peer.py: dropout 0.1, Adam at a rate
 * of 1e-4, random ids. The limit of a training step is its roofline: its arithmetic at the measured
 * peak, and then Adam's pass over the parameters at the measured bandwidth. These do not overlap,
 * because clipping and the check for NaN need all gradients before the first update; with
 * --unguarded they could overlap, but the limit is the same sum. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_model.h"
#include "core/base/random.h"
#include "tools/cli/numbers.h"

static const double dropout = 0.1, rate = 1e-4, clip = 1;

/* The values of --weights: name in the output, layout, and bytes of an element. */
static const struct kept {
    const char *name;
    wf_layout layout;
    double bytes;
} kept[] = { { "f32", WF_PANELS, 4 },
             { "bf16", WF_PANELS_BF16, 2 },
             { "int8", WF_PANELS_INT8, 1 } };

typedef struct bench_model {
    bench_settings *set;
    workload size;
    wf_model *model;
    wf_pool *pool;
    wf_trainer *trainer;
    wf_plan *plan; /* in training, the trainer's plan */
    wf_decoder *decoder;
    wf_decoded *decoded;
    int32_t *src, *src_length, *tgt, *labels, *out;
    int64_t tokens; /* to decode for each sentence */
} bench_model;

/* ---- a model and a batch --------------------------------------------------------------------- */

static int32_t *new_ids(int64_t n) {
    return memory_or_fail(&bench_program, calloc((size_t)n, sizeof(int32_t)));
}

/* Random ids other than the start. */
static int32_t *random_ids(int64_t n, int64_t vocabulary, uint64_t stream) {
    int32_t *ids = new_ids(n);
    for (int64_t i = 0; i < n; i++)
        ids[i] =
            (int32_t)(1 + wf_philox4x32(1, (uint64_t)i, stream).v[0] % (uint64_t)(vocabulary - 1));
    return ids;
}

static void open_batch(bench_model *b) {
    const workload *w = &b->size;
    b->src = random_ids(w->batch * w->src, w->config.src_vocab, 0);
    b->tgt = random_ids(w->batch * w->tgt, w->config.tgt_vocab, 1);
    b->labels = random_ids(w->batch * w->tgt, w->config.tgt_vocab, 2);
    b->src_length = new_ids(w->batch);
    b->out = new_ids(w->batch * w->tgt);
    b->decoded = memory_or_fail(&bench_program, calloc((size_t)w->batch, sizeof *b->decoded));
    for (int64_t i = 0; i < w->batch; i++) b->src_length[i] = (int32_t)w->src;
}

static wf_model *new_model(const bench_settings *set, const workload *w) {
    char message[WF_MESSAGE];
    wf_training_config training = { .dropout = dropout,
                                    .attention_dropout = dropout,
                                    .activation_dropout = dropout };
    wf_model *m = wf_transformer_new(&w->config, set->mode == MODE_TRAIN ? &training : NULL, WF_F32,
                                     1, message);
    if (!m) fail(&bench_program, "%s", message);
    if (!wf_ok(m->graph)) fail(&bench_program, "%s", wf_error(m->graph));
    return m;
}

static void open_bench_model(bench_model *b, bench_settings *set) {
    char message[WF_MESSAGE];
    *b = (bench_model){ .set = set, .size = workload_of(set->preset) };
    if (b->set->batch) b->size.batch = b->set->batch;
    b->model = new_model(b->set, &b->size);
    if (b->set->mode != MODE_TRAIN && /* packed, as generate has weights */
        !wf_pack_weights(b->model->graph, kept[b->set->weights].layout, message))
        fail(&bench_program, "%s", message);
    b->pool = wf_pool_new((int)b->set->threads);
    open_batch(b);
}

static void close_bench_model(bench_model *b) {
    wf_decoder_free(b->decoder);
    wf_plan_free(b->trainer ? NULL : b->plan);
    wf_trainer_free(b->trainer);
    wf_model_free(b->model);
    wf_pool_free(b->pool);
    free(b->src), free(b->src_length), free(b->tgt), free(b->labels), free(b->out);
    free(b->decoded);
}

static bool bind(bench_model *b) {
    const workload *w = &b->size;
    return wf_bind(b->plan, "B", w->batch) && wf_bind(b->plan, "S", w->src) &&
           wf_bind(b->plan, "T", w->tgt);
}

static bool feed_inputs(bench_model *b) {
    const wf_model *m = b->model;
    const workload *w = &b->size;
    size_t row = (size_t)w->batch * sizeof *b->src;
    return wf_feed(b->plan, m->src, b->src, row * (size_t)w->src) &&
           wf_feed(b->plan, m->src_length, b->src_length, row) &&
           wf_feed(b->plan, m->tgt, b->tgt, row * (size_t)w->tgt);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void name_line(line *l, char *name, size_t size, const bench_model *b, const char *what) {
    snprintf(name, size, "%s %s, %lld x %lld/%lld", b->set->preset ? "base" : "copy", what,
             (long long)b->size.batch, (long long)b->size.src, (long long)b->size.tgt);
    l->name = name;
}

/* First measures without the profile, because profiling takes time. */
static timing timed(bench_model *b, bool (*run)(void *)) {
    timing t, unused;
    if (!measure(b->set, run, b, &t)) fail(&bench_program, "%s", wf_plan_error(b->plan));
    if (!b->set->profile) return t;
    wf_profile(b->plan, true);
    if (!measure(b->set, run, b, &unused)) fail(&bench_program, "%s", wf_plan_error(b->plan));
    report_profile(&b->set->report, b->plan);
    return t;
}

/* ---- training -------------------------------------------------------------------------------- */

static void open_trainer(bench_model *b) {
    const wf_model *m = b->model;
    wf_trainer_options o = { .optimizer = wf_optimizer_defaults(WF_ADAM),
                             .schedule = { .kind = WF_CONSTANT_RATE, .peak = rate },
                             .pool = b->pool };
    o.optimizer.clip_norm = b->set->unguarded ? 0 : clip;
    o.optimizer.unguarded = b->set->unguarded;
    b->trainer = wf_trainer_new(m->graph, m->loss.loss, m->loss.count, &o);
    if (!wf_trainer_ok(b->trainer)) fail(&bench_program, "%s", wf_trainer_error(b->trainer));
    b->plan = wf_trainer_plan(b->trainer);
}

static bool train_once(void *model) {
    bench_model *b = model;
    const wf_model *m = b->model;
    return wf_trainer_begin(b->trainer, 1, NULL, NULL) && feed_inputs(b) &&
           wf_feed(b->plan, m->labels, b->labels, wf_bound_bytes(b->plan, m->labels)) &&
           wf_trainer_add(b->trainer, 0) && wf_trainer_update(b->trainer, NULL);
}

/* Reports the peak of memory beside the memory that any implementation needs: parameters, gradients
 * that wait for the norm, two moments, activations. */
static void report_memory(const bench_model *b, double parameters, double peak) {
    double waiting = b->set->unguarded ? 0 : parameters;
    double needed = 4 * (3 * parameters + waiting) + activation_bytes(&b->size);
    double arena = (double)wf_plan_memory(b->plan);
    char t[3][OPTION_TEXT_SIZE];
    say(&b->set->report, "memory: %s at most, %s by the shapes, %s of it the plan's",
        bytes_text(peak, t[0]), bytes_text(needed, t[1]), bytes_text(arena, t[2]));
    jsonl *e = event(&b->set->report, "memory");
    json_real(e, "parameters", parameters);
    json_real(e, "peak", peak);
    json_real(e, "needed", needed);
    json_real(e, "plan", arena);
    event_send(&b->set->report);
}

static void bench_training(bench_model *b, double bytes_a_second) {
    open_trainer(b);
    if (!bind(b)) fail(&bench_program, "%s", wf_plan_error(b->plan));
    double parameters = (double)wf_model_parameter_count(b->model);
    double optimizer = adam_bytes(parameters) / bytes_a_second;
    char name[80];
    line l = { .flops = training_flops(&b->size), .tokens = (double)(b->size.batch * b->size.tgt) };
    name_line(&l, name, sizeof name, b, b->set->unguarded ? "train, unguarded" : "train");
    l.time = timed(b, train_once);
    l.memory = peak_memory();
    double arithmetic = at_peak(&l.time, l.flops);
    l.limit = arithmetic + optimizer;
    print_line(b->set, &l);
    say(&b->set->report, "roofline: %.4g ms of arithmetic + %.4g ms for the optimizer",
        1e3 * arithmetic, 1e3 * optimizer);
    report_memory(b, parameters, l.memory);
}

/* ---- forward --------------------------------------------------------------------------------- */

static bool forward_once(void *model) {
    return feed_inputs(model) && wf_run(((bench_model *)model)->plan);
}

static void bench_forward(bench_model *b) {
    wf_model *m = b->model;
    wf_tensor *feed[] = { m->src, m->src_length, m->tgt };
    b->plan = wf_plan_new(
        m->graph,
        &(wf_plan_options){
            .fetch = &m->logits, .n_fetch = 1, .feed = feed, .n_feed = 3, .pool = b->pool });
    if (!bind(b)) fail(&bench_program, "%s", wf_plan_error(b->plan));
    char name[80];
    line l = { .flops = forward_flops(&b->size), .tokens = (double)(b->size.batch * b->size.tgt) };
    name_line(&l, name, sizeof name, b, "forward");
    l.time = timed(b, forward_once);
    l.limit = at_peak(&l.time, l.flops);
    l.memory = peak_memory();
    print_line(b->set, &l);
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* Makes the end token impossible, so that every sentence has its full length. */
static void forbid_end(bench_model *b) {
    wf_tensor *bias = wf_find(b->model->graph, "output.bias");
    float *values = malloc(wf_bytes(bias));
    if (!values || !wf_read(bias, values, wf_bytes(bias))) fail(&bench_program, "out of memory");
    values[b->size.config.end_id] = -1e30f;
    wf_write(bias, values, wf_bytes(bias));
    free(values);
}

static bool decode_once(void *model) {
    bench_model *b = model;
    int n = (int)b->size.batch;
    wf_decode_options o = wf_decode_defaults();
    o.max_len_a = 0;
    o.max_len_b = (double)b->tokens;
    o.beam = (int)b->set->beam;
    bool ok =
        wf_decode(b->decoder, n, (int)b->size.src, b->src, b->src_length, NULL, &o, b->decoded);
    for (int i = 0; ok && i < n; i++) {
        const wf_hypothesis *h = b->decoded[i].best;
        memcpy(b->out + i * b->tokens, h->tokens, (size_t)h->length * sizeof *b->out);
    }
    wf_decoded_free(b->decoded, n);
    return ok;
}

static timing time_decoding(bench_model *b, int64_t tokens) {
    timing t;
    b->tokens = tokens;
    if (!measure(b->set, decode_once, b, &t))
        fail(&bench_program, "%s", wf_decoder_error(b->decoder));
    return t;
}

/* ---- what rounding costs --------------------------------------------------------------------- */

/* The log-probabilities of every token after each decoded prefix, [B,T,V]. The caller frees
 * them. */
static float *score(bench_model *b) {
    wf_model *m = b->model;
    wf_tensor *feed[] = { m->src, m->src_length, m->tgt };
    size_t count = (size_t)(b->size.batch * b->size.tgt * b->size.config.tgt_vocab);
    float *values = memory_or_fail(&bench_program, malloc(count * sizeof *values));
    b->plan = wf_plan_new(
        m->graph,
        &(wf_plan_options){
            .fetch = &m->log_probs, .n_fetch = 1, .feed = feed, .n_feed = 3, .pool = b->pool });
    if (!bind(b) || !feed_inputs(b) || !wf_run(b->plan) ||
        !wf_fetch(b->plan, m->log_probs, values, count * sizeof *values))
        fail(&bench_program, "%s", wf_plan_error(b->plan));
    wf_plan_free(b->plan);
    b->plan = NULL;
    return values;
}

static int64_t likeliest(const float *row, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

static void report_rounding(bench_settings *set, int64_t rows, int64_t n, const float *rounded,
                            const float *exact) {
    double sum = 0, most = 0;
    int64_t agree = 0;
    for (int64_t r = 0; r < rows; r++, rounded += n, exact += n) {
        int64_t token = likeliest(exact, n);
        agree += likeliest(rounded, n) == token;
        for (int64_t i = 0; i < n; i++) {
            if (exact[i] < -1e20f) continue; /* the end token is forbidden */
            double apart = fabs((double)rounded[i] - (double)exact[i]);
            sum += apart;
            most = apart > most ? apart : most;
        }
    }
    double mean = sum / (double)(rows * n), share = (double)agree / (double)rows;
    say(&set->report,
        "%s against f32, the same inputs: log-probabilities %.2g apart on average, %.2g at most; "
        "%.1f %% of the likeliest tokens agree",
        kept[set->weights].name, mean, most, 100 * share);
    jsonl *e = event(&set->report, "rounding");
    json_real(e, "mean", mean);
    json_real(e, "most", most);
    json_real(e, "agree", share);
    event_send(&set->report);
}

/* Compares log-probabilities with those of the same model in f32, for the same sources and for the
 * outputs decoded from them. */
static void bench_rounding(bench_model *b) {
    const workload *w = &b->size;
    for (int64_t i = 0; i < w->batch; i++) {
        b->tgt[i * w->tgt] = w->config.start_id;
        for (int64_t t = 1; t < w->tgt; t++) b->tgt[i * w->tgt + t] = b->out[i * w->tgt + t - 1];
    }
    float *rounded = score(b);
    bench_model plain = *b;
    plain.model = new_model(b->set, w);
    forbid_end(&plain);
    float *exact = score(&plain);
    report_rounding(b->set, w->batch * w->tgt, w->config.tgt_vocab, rounded, exact);
    wf_model_free(plain.model);
    free(rounded), free(exact);
}

/* Makes the name of a line, such as "base decode bf16, beam 4, a step, 2 x 100/120". */
static void name_decoding(line *l, char *name, size_t size, const bench_model *b, const char *end) {
    const char *weights = b->set->weights ? kept[b->set->weights].name : "";
    char what[60], beam[24] = "";
    if (b->set->beam > 1) snprintf(beam, sizeof beam, ", beam %d", (int)b->set->beam);
    snprintf(what, sizeof what, "decode%s%s%s%s", *weights ? " " : "", weights, beam, end);
    name_line(l, name, size, b, what);
}

/* Seconds for one more token: (time of all tokens - time of the first one) / (tokens - 1). If the
 * first took longer than all, because the machine was busy, it is the mean over all tokens. */
static double seconds_of_token(double all, double first, int64_t tokens) {
    double more = (all - first) / (double)(tokens - 1);
    return more > 0 ? more : all / (double)tokens;
}

/* Measures decoding as a whole, and the time of one more token, for which each weight is read
 * once. */
static void bench_decoding(bench_model *b, double bytes_a_second) {
    char message[WF_MESSAGE], name[80];
    const workload *w = &b->size;
    double batch = (double)w->batch;
    if (!(b->decoder = wf_decoder_new(b->model, b->pool, message)))
        fail(&bench_program, "%s", message);
    forbid_end(b);
    timing first = time_decoding(b, 1), all = time_decoding(b, w->tgt);
    double bytes = decoding_bytes(w, kept[b->set->weights].bytes), read = bytes / bytes_a_second;
    line whole = { .time = all, .tokens = batch * (double)w->tgt, .memory = peak_memory() };
    name_decoding(&whole, name, sizeof name, b, "");
    whole.limit = at_peak(&all, encoding_flops(w)) + (double)w->tgt * read;
    print_line(b->set, &whole);
    double median = seconds_of_token(all.median, first.median, w->tgt);
    double least = seconds_of_token(all.min, first.min, w->tgt);
    line step = { .time = { median, least < median ? least : median, 0, all.runs } };
    step.bytes = bytes;
    step.tokens = batch;
    step.limit = read;
    name_decoding(&step, name, sizeof name, b, ", a step");
    print_line(b->set, &step);
    if (b->set->weights) bench_rounding(b);
}

void bench_step(bench_settings *set) {
    bench_model b;
    double bytes_a_second = set->mode == MODE_FORWARD ? 0 : set->bandwidth;
    reset_peak_memory();
    open_bench_model(&b, set);
    if (set->mode == MODE_TRAIN)
        bench_training(&b, bytes_a_second);
    else if (set->mode == MODE_FORWARD)
        bench_forward(&b);
    else
        bench_decoding(&b, bytes_a_second);
    close_bench_model(&b);
}
