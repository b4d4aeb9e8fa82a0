/* tools/train/session.c - opens a training: the checkpoint, the data, the model, the plan, and the
 * first lines of output. See session.h. */
#include "session.h"
#include "core/file_internal.h"
#include "core/graph_internal.h"
#include "core/run_internal.h"
#include "models/model_internal.h"
#include "nn/trainer_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/choices.h"
#include "ranks/ranks.h"
#include "saving.h"
#include "tools/cli/numbers.h"
#include "tools/cli/options/uses.h"
#include "tools/cli/output.h"
#include "tools/data/language.h"

/* ---- opening --------------------------------------------------------------------------------- */

_Noreturn static void refuse_weights(const char *path) {
    fail(&train_program,
         "%s holds the weights of a training but not the state of its optimizer: resume the file "
         "that the training was saved to (-o without .best)",
         path);
}

static wf_file *open_checkpoint(const char *path) {
    if (!path) usage_error(&train_program, "--resume needs the file to go on with: -o FILE");
    if (access(path, F_OK) != 0 && errno == ENOENT)
        fail(&train_program,
             "%s is not there: a training writes it first after --save-every steps. Start anew "
             "without --resume",
             path);
    check_model_file(&train_program, path);
    wf_file *f = wf_file_open(path);
    if (!wf_file_ok(f)) fail(&train_program, "%s", wf_file_error(f));
    const char *kind = wf_file_meta(f, "weft.kind");
    if (!setting_in_file(f, "step"))
        fail(&train_program, "%s holds a model but no training: it can't be resumed", path);
    if (kind && strcmp(kind, "checkpoint") != 0) refuse_weights(path);
    return f;
}

/* Opens the file of --init, the model to start from; for a resumed training, the model that it once
 * started from. */
static wf_file *open_init(model_settings *m) {
    check_model_file(&train_program, m->init);
    wf_file *f = wf_file_open(m->init);
    if (!wf_file_ok(f)) fail(&train_program, "%s", wf_file_error(f));
    wf_model_hash(f, m->init_hash);
    m->started = true;
    return f;
}

/* Opens the trainer. Exits if the checkpoint lacks its moments or averages: files of best weights
 * lack them, and older ones are not marked as such. */
static void open_trainer(session *s) {
    const wf_file *f = s->from;
    s->trainer = settings_trainer(s->set, s->model, s->pool, s->transport);
    if (!s->trainer) fail(&train_program, "out of memory");
    if (!wf_trainer_ok(s->trainer)) ranks_failed(s, wf_trainer_error(s->trainer));
    const wf_optimizer *o = wf_trainer_optimizer(s->trainer);
    if (f && ((o->n_moments && !wf_file_find(f, o->moments[0][0]->name)) ||
              (o->averages && !wf_file_find(f, o->averages[0]->name))))
        refuse_weights(s->set->run.model);
    if (f && !wf_trainer_resume(s->trainer, f, s->at.step))
        fail(&train_program, "%s: %s", s->set->run.model, wf_trainer_error(s->trainer));
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Bytes of the values of all parameters in memory. */
static double parameter_bytes(const wf_model *m) {
    static const double of_one[] = {
        [WF_ROW_MAJOR] = 4, [WF_PANELS] = 4, [WF_PANELS_BF16] = 2, [WF_PANELS_INT8] = 1
    };
    double bytes = 0;
    for (int id = 0; id < wf_node_count(m->graph); id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        if (t->kind == WF_PARAM) bytes += (double)wf_count(t) * of_one[wf_layout_of(t)];
    }
    return bytes;
}

static double file_bytes(const wf_file *f) {
    double bytes = 0;
    for (int i = 0; f && i < wf_file_count(f); i++) bytes += (double)wf_file_at(f, i)->bytes;
    return bytes;
}

/* Exits if this machine has less memory than `needed` bytes. */
static void check_installed(double needed, const char *what, const char *remedy) {
    double installed = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    char a[OPTION_TEXT_SIZE], b[OPTION_TEXT_SIZE];
    if (installed <= 0 || needed <= installed) return;
    fail(&train_program, "%s %s and this machine has %s: %s", what, bytes_text(needed, a),
         bytes_text(installed, b), remedy);
}

/* Exits if this machine has no memory for weights, gradients and moments alone. This is checked
 * before the first plan is made, because that fills the weights of a new model, and the system may
 * kill a program that fills more memory than there is. Ranks share the moments. */
static void check_weights(const session *s) {
    double weights = parameter_bytes(s->model), ranks = wf_transport_size(s->transport);
    double trained = weights - 4 * (double)settings_frozen(s->set, s->model);
    int kind = s->set->recipe.optimizer, moments = kind == WF_ADAM || kind == WF_ADAMW ? 2 : 0;
    if (s->set->model.lora) trained = 0;
    check_installed(s->here * (weights + trained * (1 + moments / ranks)),
                    "weights, gradients and moments of this model alone need",
                    s->set->model.started ? "--freeze and --lora need less"
                                          : "lower --d-model or --layers");
}

/* Bytes of the training plan with the largest batches. */
static double step_bytes(const session *s) {
    wf_plan *p = wf_trainer_plan(s->trainer);
    size_t most = 0;
    for (int side = 0; side < 3; side++) {
        int64_t B, S, T;
        s->dataset.kind->largest(&s->dataset, STREAM_TRAIN, side, &B, &S, &T);
        size_t step = wf_model_bind(s->model, p, B, S, T) ? wf_plan_memory(p) : 0;
        if (!step)
            fail(&train_program,
                 "%s; --batch-size, --max-tokens, --max-len or --d-model lower "
                 "the need",
                 wf_plan_error(p));
        if (step > most) most = step;
    }
    wf_plan_release(p);
    return (double)most;
}

/* Peak memory of this process in bytes, known before the first step: a plan keeps the memory of its
 * largest batch, and the step's plan gives its memory back for each validation. Exits if all ranks
 * on this machine together need more than it has. read: bytes of the files that the process which
 * started the ranks has read. */
static double memory_needed(session *s, double read) {
    char message[WF_MESSAGE];
    size_t judging[2] = { 0 }, trainer;
    double weights = parameter_bytes(s->model), step = step_bytes(s), trained = 0, saving = 0;
    if (dataset_holds(&s->dataset) && !evaluator_memory(&s->evaluator, judging, message))
        fail(&train_program, "validation: %s; --max-len or --d-model lower the need", message);
    if (!wf_trainer_memory(s->trainer, &trainer))
        fail(&train_program, "%s", wf_trainer_error(s->trainer));
    /* a save copies the saved parameters, with adapters these alone, and the optimizer's state;
     * rank 0 of several gathers the state before that */
    const wf_optimizer *o = wf_trainer_optimizer(s->trainer);
    for (int i = 0; i < o->n; i++) trained += (double)wf_bytes(o->params[i]);
    if (s->set->run.model && s->leads)
        saving = (s->transport ? 2 : 1) * ((s->set->model.lora ? trained : weights) +
                                           trained * (o->n_moments + (o->averages != NULL)));
    double alone = weights + (double)trainer + fmax(step, (double)judging[0]) + (double)judging[1] +
                   telemetry_memory(s);
    check_installed(alone * s->here + saving + read, "this training needs",
                    "lower --batch-size, --max-tokens, --d-model or --layers");
    return alone + saving;
}

/* ---- all of it ------------------------------------------------------------------------------- */

void session_read(session *s) {
    char message[WF_MESSAGE];
    settings *set = s->set;
    run_settings *run = &set->run;
    /* the settings, also those in the files */
    if (s->leads && run->model && !run->dry_run && !output_lock(run->model, message))
        fail(&train_program, "%s", message);
    if (run->resume) s->from = open_checkpoint(run->model);
    if (set->model.init) s->init = open_init(&set->model);
    settings_complete(set, s->from, s->from ? NULL : s->init);
    saving_check(s);
    /* the data, and the steps that depend on their size */
    const source_options o = settings_source(set);
    if (!dataset_open(&s->dataset, set->data.kind, &o, s->from ? s->from : s->init, message))
        fail(&train_program, "%s", message);
    if (s->from) settings_check_data(set, s->from, &s->dataset);
    settings_complete_steps(set, dataset_updates(&s->dataset));
}

/* Ranks other than 0 print only why they fail. */
static void be_silent(run_settings *run) {
    run->quiet = true;
    run->json = run->profile = false;
    run->log = run->curve = run->page = run->tensorboard = NULL;
}

static void close_files(session *s) {
    wf_file_free(s->from), wf_file_free(s->init);
    s->from = s->init = NULL;
}

void session_open(session *s) {
    char message[WF_MESSAGE];
    run_settings *run = &s->set->run;
    if (!s->leads) be_silent(run);
    /* the model, and where the training stands */
    if (!s->set->model.lora) /* the model that --lora adapts may take less memory than its file */
        check_installed(file_bytes(s->from ? s->from : s->init), "this model needs",
                        "another machine, or --init with --lora and --base-weights int8");
    s->model = settings_open_model(s->set, &s->dataset, s->from, s->init);
    saving_open(s);
    s->work.first_step = s->at.step;
    ranks_compare(s);
    /* what trains and evaluates it */
    s->schedule = settings_schedule(s->set);
    if (!run->threads) run->threads = default_threads(s->here);
    s->pool = wf_pool_new((int)run->threads);
    if (!s->pool) fail(&train_program, "out of memory");
    check_weights(s);
    open_trainer(s);
    double read = run->processes > 1 ? file_bytes(s->from) + file_bytes(s->init) : 0;
    close_files(s);
    if (dataset_holds(&s->dataset) &&
        !evaluator_new(&s->evaluator, s->model, s->pool, &s->dataset, s->transport, message))
        fail(&train_program, "%s", message);
    /* what is written */
    const char *log = run->dry_run ? NULL : run->log;
    if (!report_open(&s->report, &train_program, run->quiet, run->json, log, run->resume))
        fail(&train_program, "%s can't be written: %s", run->log, strerror(errno));
    telemetry_open(s);
    announce(s, memory_needed(s, read));
    if (run->profile || run->page) wf_profile(wf_trainer_plan(s->trainer), true);
}

bool session_close(session *s) {
    bool told = telemetry_close(s);
    told = report_close(&s->report) && told;
    evaluation_free(&s->judged);
    evaluator_free(&s->evaluator);
    wf_trainer_free(s->trainer);
    wf_model_free(s->model);
    wf_pool_free(s->pool);
    batch_free(&s->batch);
    dataset_free(&s->dataset);
    saving_close(&s->kept);
    close_files(s);
    return told;
}
