/* tools/train/session.c - opens a training: the checkpoint, the data, the model, the plan, and the
 * first lines of output. See session.h. */
#include "session.h"
#include "core/file_internal.h"
#include "core/graph_internal.h"
#include "core/run_internal.h"
#include "models/encoder.h"
#include "models/model_internal.h"
#include "nn/trainer_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "models/choices.h"
#include "ranks/ranks.h"
#include "saving.h"
#include "tools/cli/numbers.h"
#include "tools/cli/options/uses.h"
#include "tools/cli/output.h"
#include "tools/data/language.h"

/* ---- opening --------------------------------------------------------------------------------- */

static void refuse_weights(const session *s) {
    fail(&train_program,
         "%s holds the weights of a training but not the state of its optimizer: resume the file "
         "that the training was saved to (-o without .best)",
         s->set->run.model);
}

static wf_file *open_checkpoint(const session *s) {
    if (!s->set->run.resume) return NULL;
    if (!s->set->run.model)
        usage_error(&train_program, "--resume needs the file to go on with: -o FILE");
    if (access(s->set->run.model, F_OK) != 0 && errno == ENOENT)
        fail(&train_program,
             "%s is not there: a training writes it first after --save-every steps. Start anew "
             "without --resume",
             s->set->run.model);
    check_model_file(&train_program, s->set->run.model);
    wf_file *f = wf_file_open(s->set->run.model);
    if (!wf_file_ok(f)) fail(&train_program, "%s", wf_file_error(f));
    const char *kind = wf_file_meta(f, "weft.kind");
    if (!setting_in_file(f, "step"))
        fail(&train_program, "%s holds a model but no training: it can't be resumed",
             s->set->run.model);
    if (kind && strcmp(kind, "checkpoint") != 0) refuse_weights(s);
    return f;
}

/* Opens the file of --init, the model to start from; for a resumed training, the model that it once
 * started from. NULL: no --init. */
static wf_file *open_init(const session *s) {
    if (!s->set->model.init) return NULL;
    check_model_file(&train_program, s->set->model.init);
    wf_file *f = wf_file_open(s->set->model.init);
    if (!wf_file_ok(f)) fail(&train_program, "%s", wf_file_error(f));
    wf_model_hash(f, s->set->model.init_hash);
    return f;
}

/* "m.safetensors" -> "m.best.safetensors" */
static void name_best(session *s) {
    if (!s->set->run.model || !settings_task(s->set)->text || !settings_validates(s->set)) return;
    const char *dot = strrchr(s->set->run.model, '.'), *slash = strrchr(s->set->run.model, '/');
    size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - s->set->run.model)
                                                 : strlen(s->set->run.model);
    if (strlen(s->set->run.model) + 6 < sizeof s->best_path)
        snprintf(s->best_path, sizeof s->best_path, "%.*s.best%s", (int)stem, s->set->run.model,
                 s->set->run.model + stem);
}

static bool is_there(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && s.st_size > 0;
}

/* Finds the loss of the best weights that an earlier part of a resumed training kept. Exits if the
 * file of best weights belongs to another training, because it would be replaced. */
static void find_best(session *s, const wf_file *f) {
    s->best_kept = INFINITY;
    if (!f || !*s->best_path) return;
    wf_file *best = wf_file_open(s->best_path);
    bool own = identity_same(f, best);
    if (own) s->best_kept = settings_state(s->set, best).best;
    wf_file_free(best);
    if (!own && is_there(s->best_path) && !s->set->run.dry_run)
        fail(&train_program,
             "%.150s is not of this training, which would replace it: move it to another place",
             s->best_path);
}

/* Exits if the model file, the best weights, the page or the log exist already. The training that
 * wrote them may have taken hours, so only --overwrite replaces them. */
static void refuse_to_replace(const session *s) {
    if (s->set->run.model && is_there(s->set->run.model))
        usage_error(&train_program,
                    "%.150s is there already: --resume goes on with a training, --overwrite "
                    "replaces it",
                    s->set->run.model);
    if (*s->best_path && is_there(s->best_path))
        usage_error(&train_program,
                    "%.150s is there already, best weights without their training: --init takes "
                    "them into a training of another name, --overwrite replaces them",
                    s->best_path);
    const char *const records[] = { s->set->run.page, s->set->run.log };
    for (int i = 0; i < 2; i++)
        if (records[i] && is_there(records[i]))
            usage_error(&train_program,
                        "%.150s is there already, from a training: give another name, or "
                        "--overwrite",
                        records[i]);
}

/* Exits if a file that will be written cannot or must not be. This is checked at the start, because
 * a training may take hours. */
static void check_files(const session *s) {
    used_file best = { "the best weights beside --model", s->best_path, -1, USE_NEW_MODEL };
    check_uses(&train_program, &best, *s->best_path ? 1 : 0);
    if (!s->set->run.resume && !s->set->run.overwrite && !s->set->run.dry_run) refuse_to_replace(s);
}

/* Opens the data. f: the checkpoint of a resume, or NULL; model: the file whose vocabulary is used
 * (f, or that of --init), or NULL. */
static void open_dataset(session *s, const wf_file *f, const wf_file *model) {
    char message[WF_MESSAGE];
    const source_options o = settings_source(s->set);
    if (!dataset_open(&s->dataset, source_of_word(s->set->data.task), &o, model, message))
        fail(&train_program, "%s", message);
    if (f) settings_check_data(s->set, f, &s->dataset);
    settings_complete_steps(s->set, dataset_updates(&s->dataset));
}

bool session_evaluates(const session *s) {
    return dataset_holds(&s->dataset);
}

/* The file that the model is read from; NULL: the model is new. */
static const char *model_path(const session *s) {
    return s->set->run.resume ? s->set->run.model : s->set->model.init;
}

/* Takes the start and end ids of text from the model; for running text, only if the model puts a
 * start token before an empty prompt alone. Exits if other data, such as a task on numbers, have
 * other ids than the model, or if the model does not begin running text with a start token. */
static void check_ids(session *s) {
    const wf_model *m = s->model;
    batch_ids *ids = &s->dataset.ids;
    const source_kind *kind = s->dataset.kind;
    bool running = kind->running && !kind->masks;
    if (kind->text && (!running || m->start_if_empty)) {
        ids->start = m->start_id;
        ids->end = m->end_id;
    }
    if (m->start_id != ids->start || m->end_id != ids->end || (running && !m->start_first))
        fail(&train_program,
             "%s: its model was not made for this task: it begins or ends outputs with other ids",
             model_path(s));
}

/* Checks a model that was read from a file: its kind must be that of the training, its vocabularies
 * and labels must have as many entries as those of the data. */
static void check_model(const session *s) {
    if (s->model->kind != settings_kind(s->set))
        fail(&train_program, "%s: its model is of kind %s, and this training of kind %s%s",
             model_path(s), wf_model_kind_name(s->model->kind),
             wf_model_kind_name(settings_kind(s->set)),
             wf_encoder_of(s->model) ? "; --task pairs, mask and classify train an encoder" : "");
    const int64_t of_model[] = { s->model->src_vocab, s->model->tgt_vocab };
    char message[WF_MESSAGE];
    for (int i = 0; i < 2; i++)
        if (!vocabulary_fits(i, dataset_vocab(&s->dataset, i), of_model[i], message))
            fail(&train_program, "%s: %s", model_path(s), message);
    const wf_encoder *e = wf_encoder_of(s->model);
    if (s->dataset.kind->classifies && e && e->config.classes != s->dataset.classes.n)
        fail(&train_program, "%s: it names %lld labels, but has %lld classes", model_path(s),
             (long long)s->dataset.classes.n, (long long)e->config.classes);
}

static wf_model *new_model(const session *s, char *message) {
    if (!settings_model_ok(s->set, &s->dataset, message))
        usage_error(&train_program, "%s", message);
    wf_model *m = settings_model(s->set, &s->dataset, message);
    if (m) settings_check_freeze(s->set, m);
    return m;
}

/* The model of --init with adapters: new ones, or those of the checkpoint. */
static wf_model *adapted_model(const session *s, const wf_file *f, wf_file *init, char *message) {
    const char *base = f ? wf_file_meta(f, WF_ADAPTER_BASE_FILE) : NULL;
    if (!init)
        usage_error(&train_program,
                    "%s has adapters without their model: name it with --init MODEL%s%s",
                    s->set->run.model, base ? ", which was " : "", base ? base : "");
    wf_file_drop_loaded(init);
    wf_model *m = settings_start(s->set, &s->dataset, init, message);
    if (!m || !f || wf_model_load_adapters(m, f, message)) return m;
    wf_model_free(m);
    return NULL;
}

static void open_model(session *s, const wf_file *f, wf_file *init) {
    char message[WF_MESSAGE];
    const wf_file *file = f ? f : init;
    wf_training_config training = settings_training(s->set);
    if (s->set->model.lora)
        s->model = adapted_model(s, f, init, message);
    else if (f)
        s->model = wf_model_load(f, &training, WF_F32, (uint64_t)s->set->recipe.seed, message);
    else if (init)
        s->model = settings_start(s->set, &s->dataset, init, message);
    else
        s->model = new_model(s, message);
    if (!s->model && file) fail(&train_program, "%s: %s", model_path(s), message);
    if (!s->model) fail(&train_program, "%s", message);
    if (!wf_ok(s->model->graph)) fail(&train_program, "%s", wf_error(s->model->graph));
    if (file) {
        check_model(s);
        check_ids(s);
    }
    if (file && !metadata_carry(&s->carried, file, s->model)) fail(&train_program, "out of memory");
    if (f) s->at = settings_state(s->set, f);
    s->first_step = s->at.step;
    s->saved_step = f ? s->at.step : -1;
    if (s->at.step >= s->set->run.max_steps)
        usage_error(&train_program,
                    "%s has done %lld steps already: more --epochs or --max-steps go on",
                    s->set->run.model, (long long)s->at.step);
}

/* Exits if the file lacks the moments or averages of the trainer. Files of best weights lack them,
 * and older ones are not marked as such. */
static void check_state(const session *s, const wf_file *f) {
    const wf_optimizer *o = wf_trainer_optimizer(s->trainer);
    bool moments = !o->n_moments || wf_file_find(f, o->moments[0][0]->name);
    bool averages = !o->averages || wf_file_find(f, o->averages[0]->name);
    if (!moments || !averages) refuse_weights(s);
}

/* Opens the trainer. f: the checkpoint of a resume, or NULL. */
static void open_trainer(session *s, const wf_file *f) {
    s->trainer = settings_trainer(s->set, s->model, s->pool, s->transport);
    if (!s->trainer) fail(&train_program, "out of memory");
    if (!wf_trainer_ok(s->trainer)) ranks_failed(s, wf_trainer_error(s->trainer));
    if (f) check_state(s, f);
    if (f && !wf_trainer_resume(s->trainer, f, s->at.step))
        fail(&train_program, "%s: %s", s->set->run.model, wf_trainer_error(s->trainer));
}

/* Bytes of the optimizer's moments and averages. */
static double state_bytes(const session *s) {
    const wf_optimizer *o = wf_trainer_optimizer(s->trainer);
    double bytes = 0;
    for (int i = 0; i < o->n; i++)
        bytes += (double)wf_bytes(o->params[i]) * (o->n_moments + (o->averages != NULL));
    return bytes;
}

/* Bytes of the training plan with the largest batches. */
static double step_bytes(session *s) {
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

/* Bytes of a parameter's values in memory. */
static double kept_bytes(const wf_tensor *t) {
    static const double of_one[] = {
        [WF_ROW_MAJOR] = 4, [WF_PANELS] = 4, [WF_PANELS_BF16] = 2, [WF_PANELS_INT8] = 1
    };
    return (double)wf_count(t) * of_one[wf_layout_of(t)];
}

static double parameter_bytes(const session *s) {
    double bytes = 0;
    for (int id = 0; id < wf_node_count(s->model->graph); id++)
        if (wf_node(s->model->graph, id)->kind == WF_PARAM)
            bytes += kept_bytes(wf_node(s->model->graph, id));
    return bytes;
}

/* Bytes of the parameters that are saved: with adapters, those that are trained. */
static double saved_bytes(const session *s) {
    if (!s->set->model.lora) return parameter_bytes(s);
    const wf_optimizer *o = wf_trainer_optimizer(s->trainer);
    double bytes = 0;
    for (int i = 0; i < o->n; i++) bytes += (double)wf_bytes(o->params[i]);
    return bytes;
}

static double trainer_bytes(const session *s) {
    size_t bytes;
    if (!wf_trainer_memory(s->trainer, &bytes))
        fail(&train_program, "%s", wf_trainer_error(s->trainer));
    return (double)bytes;
}

/* Bytes that a save needs: it copies parameters and state. With several ranks, twice as many,
 * because rank 0 gathers the state before that. */
static double saving_bytes(const session *s) {
    if (!s->set->run.model || !s->leads) return 0;
    return (s->transport ? 2 : 1) * (saved_bytes(s) + state_bytes(s));
}

/* Peak memory of this process in bytes, known before the first step: a plan keeps the memory of its
 * largest batch. The step's plan gives its memory back for each validation. */
static double memory_needed(session *s) {
    char message[WF_MESSAGE];
    size_t judging[2] = { 0 };
    double run = step_bytes(s);
    if (session_evaluates(s) && !evaluator_memory(&s->evaluator, judging, message))
        fail(&train_program, "validation: %s; --max-len or --d-model lower the need", message);
    if ((double)judging[0] > run) run = (double)judging[0];
    return parameter_bytes(s) + trainer_bytes(s) + run + (double)judging[1] + telemetry_memory(s) +
           saving_bytes(s);
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

/* Exits if all ranks on this machine together need more memory than it has. memory: bytes of this
 * rank; those for saving are needed by the first rank alone. started: bytes of the files that the
 * process which started the ranks has read. */
static void check_memory(const session *s, double memory, double started) {
    double saving = saving_bytes(s);
    check_installed((memory - saving) * s->here + saving + started, "this training needs",
                    "lower --batch-size, --max-tokens, --d-model or --layers");
}

/* Exits if this machine has no memory for weights, gradients and moments alone. This is checked
 * before the first plan is made, because that fills the weights of a new model, and the system may
 * kill a program that fills more memory than there is. Ranks share the moments. */
static void check_weights(const session *s) {
    double weights = parameter_bytes(s), ranks = wf_transport_size(s->transport);
    double trained = weights - 4 * (double)settings_frozen(s->set, s->model);
    int kind = s->set->recipe.optimizer, moments = kind == WF_ADAM || kind == WF_ADAMW ? 2 : 0;
    if (s->set->model.lora) trained = 0;
    check_installed(s->here * (weights + trained * (1 + moments / ranks)),
                    "weights, gradients and moments of this model alone need",
                    settings_started(s->set) ? "--freeze and --lora need less"
                                             : "lower --d-model or --layers");
}

/* ---- all of it ------------------------------------------------------------------------------- */

void session_read(session *s) {
    char message[WF_MESSAGE];
    if (s->leads && s->set->run.model && !s->set->run.dry_run &&
        !output_lock(s->set->run.model, message))
        fail(&train_program, "%s", message);
    s->from = open_checkpoint(s);
    s->init = open_init(s);
    settings_complete(s->set, s->from, s->from ? NULL : s->init);
    name_best(s);
    if (s->leads) check_files(s);
    open_dataset(s, s->from, s->from ? s->from : s->init);
}

/* Ranks other than 0 print only why they fail. */
static void be_silent(settings *set) {
    set->run.quiet = true;
    set->run.json = set->run.profile = false;
    set->run.log = set->run.curve = set->run.page = set->run.tensorboard = NULL;
}

static void close_files(session *s) {
    wf_file_free(s->from), wf_file_free(s->init);
    s->from = s->init = NULL;
}

void session_open(session *s) {
    char message[WF_MESSAGE];
    if (!s->leads) be_silent(s->set);
    if (!s->set->model.lora) /* the model that --lora adapts may take less memory than its file */
        check_installed(file_bytes(s->from ? s->from : s->init), "this model needs",
                        "another machine, or --init with --lora and --base-weights int8");
    open_model(s, s->from, s->init);
    find_best(s, s->from);
    if (s->from) identity_in(s->from, s->run);
    double started = s->set->run.processes > 1 ? file_bytes(s->from) + file_bytes(s->init) : 0;
    ranks_compare(s);
    s->schedule = settings_schedule(s->set);
    if (!s->set->run.threads) s->set->run.threads = default_threads(s->here);
    s->pool = wf_pool_new((int)s->set->run.threads);
    if (!s->pool) fail(&train_program, "out of memory");
    check_weights(s);
    open_trainer(s, s->from);
    close_files(s);
    if (session_evaluates(s) &&
        !evaluator_new(&s->evaluator, s->model, s->pool, &s->dataset, s->transport, message))
        fail(&train_program, "%s", message);
    const char *log = s->set->run.dry_run ? NULL : s->set->run.log;
    if (!report_open(&s->report, &train_program, s->set->run.quiet, s->set->run.json, log,
                     s->set->run.resume))
        fail(&train_program, "%s can't be written: %s", s->set->run.log, strerror(errno));
    telemetry_open(s);
    double memory = memory_needed(s);
    check_memory(s, memory, started);
    announce(s, memory);
    if (s->set->run.profile || s->set->run.page) wf_profile(wf_trainer_plan(s->trainer), true);
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
    metadata_drop(&s->carried);
    close_files(s);
    return told;
}
