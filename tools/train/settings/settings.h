/* tools/train/settings/settings.h - the settings of `train`: its table of options, and what the
 * settings mean.
 *
 * Rows marked `stored` are settings of the training. The checkpoint keeps them, and a resume takes
 * them from there. Other options say where to stop and what to print; a resume may change them. */
#ifndef WEFT_TOOLS_TRAIN_SETTINGS_H
#define WEFT_TOOLS_TRAIN_SETTINGS_H

#include "models/model.h"
#include "tools/cli/options/options.h"
#include "tools/sources/dataset.h"

/* Indices in LEARN_WORDS: tasks on numbers, tasks on text, files of pairs, running text, files of
 * pairs for an encoder, running text with hidden tokens, files of lines and labels, running
 * text with spans taken out. */
enum {
    LEARN_COPY,
    LEARN_REVERSE,
    LEARN_SORT,
    LEARN_ADD,
    LEARN_DATE,
    LEARN_TEXT,
    LEARN_LM,
    LEARN_PAIRS,
    LEARN_MASK,
    LEARN_CLASSIFY,
    LEARN_SPANS
};

/* Indices in LIKE_WORDS: classes of Hugging Face's transformers, and Marian's translators. */
enum { LIKE_NONE, LIKE_MARIAN, LIKE_BART, LIKE_T5, LIKE_FIREFOX };

/* The model: its architecture and sizes, or the file of the model that it starts from. */
typedef struct model_settings {
    int arch, preset, like, form;
    int norm, norm_kind, positions, activation, feed_forward, bias, tie, embedding_norm, decoder;
    int64_t d_model, d_ff, heads, kv_heads, layers, enc_layers, dec_layers;
    const char *init, *freeze;
    int64_t lora; /* rank of adapters; 0: none */
    double lora_alpha;
    const char *lora_targets;
    int quantize_aware; /* a wf_quantize */
    int base_weights;   /* format of the weights beside adapters; -1: that of the file */
    /* no option: hash of the model in `init`; "": there was none */
    char init_hash[OPTION_TEXT_SIZE];
    bool started; /* no option: the training started, or will start, from a model's file */
    /* no options, but what follows from them: the architecture; whether it is decoder-only, so that
     * a source and its output share one sequence */
    const wf_model_kind *kind;
    bool in_one_row;
} model_settings;

/* The recipe: regularisation, optimizer and schedule. */
typedef struct recipe_settings {
    int optimizer, schedule;
    double dropout, attention_dropout, label_smoothing, alignment_weight;
    double lr, beta1, beta2, eps, momentum, weight_decay, clip_norm, ema;
    int64_t seed, warmup, lr_steps;
    /* no option: --lr-steps before a resume stretched the schedule; 0: it was not stretched */
    int64_t planned_steps;
    int64_t usual_epochs; /* no option: epochs of the recipe, which depend on the data's size */
    bool warmup_follows;  /* no option: --max-steps has made the default warm-up shorter */
} recipe_settings;

/* The data: where they come from, and how they are tokenized, held out and cut into batches. */
typedef struct data_settings {
    int task;
    /* no options, but what settings_complete finds from --task: its row, whose flags are all false
     * before; whether pairs are read from files */
    const source_kind *kind;
    bool from_files;
    int64_t min_len, max_len;
    const char *train, *train_src, *train_tgt, *valid, *valid_src, *valid_tgt;
    const char *alignments;
    const char *text, *text_eval, *document_marker;
    int64_t text_eval_size, valid_size;
    int64_t held; /* no option: maximum number of pairs of --train held out for validation */
    /* tokenizer: a wf_token_kind; tokenizer_tgt: 0 for the same kind, otherwise 1 + the kind */
    int tokenizer, tokenizer_tgt;
    const char *spm_src, *spm_tgt;
    const char *tokenizer_json, *end_token;
    int64_t vocab_size, min_freq;
    bool share_vocab;
    int64_t batch_size, max_tokens, accum;
    char chosen[160]; /* no option: describes the settings that were chosen by the data */
} data_settings;

/* The run: where it stops, on which hardware it computes, what it writes. With the other settings
 * given, none of it changes the bits of a step. */
typedef struct run_settings {
    int64_t max_steps, epochs, patience;
    double max_time;
    int64_t threads, processes;
    int64_t simulated_ranks; /* ranks of a dry run; 0: none */
    const char *network;
    const char *command; /* no option: the name by which the program was called */
    const char *model, *log, *curve, *page, *tensorboard;
    int64_t log_every, valid_every, save_every;
    bool resume, overwrite, quiet, json, profile, dry_run, recompute;
} run_settings;

typedef struct settings {
    model_settings model;
    recipe_settings recipe;
    data_settings data;
    run_settings run;
} settings;

extern program train_program;
/* The settings of the one command line, with their defaults until options_parse changes them. */
settings *settings_new(void);

/* Fill in settings that were not given, and exit if settings contradict each other. `f`: the
 * checkpoint of a resume, or NULL; `init`: the model to start from, or NULL. */
void settings_complete(settings *set, const wf_file *f, const wf_file *init);
bool settings_validates(const settings *set); /* true if something is held out for validation */

/* ---- settings_data.c: the data --------------------------------------------------------------- */

source_options settings_source(settings *set);
bool settings_one_table(const settings *set); /* true if both sides share embeddings */

/* ---- settings_steps.c: steps and the learning rate ------------------------------------------- */

/* Complete steps and schedule by the updates of an epoch (0: generated data have no epochs). Exits
 * if they contradict each other. */
void settings_complete_steps(settings *set, int64_t updates);
wf_schedule settings_schedule(const settings *set);
bool settings_has_horizon(const settings *set); /* true if the schedule ends at some step */
/* true if --max-steps alone ends a new training before its schedule ends */
bool settings_stops_early(const settings *set);
/* true if a new training of `steps` steps, `updates` in an epoch, warms up before the last step */
bool settings_warm_before(const settings *set, int64_t updates, int64_t steps);

/* ---- settings_model.c: the model and its trainer --------------------------------------------- */

/* Take from the file at `path` the architecture, the tokenizer, and defaults that depend on the
 * model (--max-len; of adapters, rate and targets). Exits if it cannot be trained. */
void settings_from_model(settings *set, const wf_file *f, const char *path);
wf_training_config settings_training(const settings *set);
/* The model of the checkpoint f; f NULL: the model of `init`; both NULL: a new one. With --lora it
 * is that of `init` with adapters. Exits if it cannot be made, or does not suit the data, whose
 * start and end ids it determines. */
wf_model *settings_open_model(const settings *set, dataset *d, const wf_file *f, wf_file *init);
int64_t settings_frozen(const settings *set, const wf_model *m); /* values of frozen parameters */
enum { FREEZE_SIZE = 4096 }; /* bytes of all prefixes of --freeze, with a '\0' */
/* The trainer of a model; NULL: out of memory, otherwise see wf_trainer_error. pool and transport
 * are those of wf_trainer_options. */
wf_trainer *settings_trainer(const settings *set, wf_model *m, wf_pool *pool,
                             wf_transport *transport);

#endif
