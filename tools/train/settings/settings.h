/* tools/train/settings/settings.h - what `train` can be told: its table of options, and what the settings
 * mean.
 *
 * Rows marked `stored` are settings: they are kept in the checkpoint, and a resume takes them from
 * there. The others say where to stop and what to print; a resume may change them. */
#ifndef WEFT_TOOLS_TRAIN_SETTINGS_H
#define WEFT_TOOLS_TRAIN_SETTINGS_H

#include "models/model.h"
#include "tools/cli/options/options.h"
#include "tools/sources/dataset.h"

/* Places in LEARN_WORDS: tasks of numbers, tasks on text, files of pairs, running text. */
enum { LEARN_COPY, LEARN_REVERSE, LEARN_SORT, LEARN_ADD, LEARN_DATE, LEARN_TEXT, LEARN_LM };

/* The model: its architecture and sizes, or the file of the model that it starts from. */
typedef struct model_settings {
    int arch, preset, like, form;
    int norm, norm_kind, positions, activation, feed_forward, bias, tie, embedding_norm;
    int64_t d_model, d_ff, heads, kv_heads, layers, enc_layers, dec_layers;
    const char *init, *freeze;
    char init_hash[OPTION_TEXT_SIZE]; /* no option: of the model in `init`; "": there was none */
} model_settings;

/* The recipe: regularisation, optimizer and schedule. */
typedef struct recipe_settings {
    int optimizer, schedule;
    double dropout, attention_dropout, label_smoothing;
    double lr, beta1, beta2, eps, momentum, weight_decay, clip_norm, ema;
    int64_t seed, warmup, lr_steps;
    int64_t planned_steps; /* no option: --lr-steps before a resume stretched it; 0: it did not */
    int64_t usual_epochs;  /* no option: epochs that the recipe takes, by the data's size */
} recipe_settings;

/* The data: where they come from, how they are tokenized, held out and cut into batches. */
typedef struct data_settings {
    int task;
    int64_t min_len, max_len;
    const char *train, *train_src, *train_tgt, *valid, *valid_src, *valid_tgt;
    const char *text, *text_eval, *document_marker;
    int64_t text_eval_size, valid_size;
    int64_t held;                 /* no option: pairs of --train that are held back, at most */
    int tokenizer, tokenizer_tgt; /* the second: 0: as the first; else 1 + the kind */
    const char *spm_src, *spm_tgt;
    int64_t vocab_size, min_freq;
    bool share_vocab;
    int64_t batch_size, max_tokens, accum;
    char chosen[160]; /* no option: the settings that followed the data, in words */
} data_settings;

/* The run: where it stops, on what it computes, what it writes. Nothing of it changes the bits. */
typedef struct run_settings {
    int64_t max_steps, epochs, patience;
    double max_time;
    int64_t threads, processes;
    int64_t simulated_ranks; /* those of a dry run; 0: none */
    const char *network;
    const char *command; /* no option: the program as it was called */
    const char *model, *log, *curve, *page, *tensorboard;
    int64_t log_every, valid_every, save_every;
    bool resume, overwrite, quiet, json, profile, dry_run;
} run_settings;

typedef struct settings {
    model_settings model;
    recipe_settings recipe;
    data_settings data;
    run_settings run;
} settings;

extern program train_program;
/* The defaults; options_parse of the program changes them. There is one, as there is one command
 * line. */
settings *settings_new(void);

/* Fill in what was not given, and refuse what contradicts itself. `f`: the checkpoint of a resume,
 * or NULL; `init`: the model to start from, or NULL. */
void settings_complete(settings *set, const wf_file *f, const wf_file *init);
/* Completes steps and schedule from the updates in an epoch (0: it never ends). */
void settings_complete_steps(settings *set, int64_t updates);

bool settings_text(
    const settings *set); /* it is text that is to be learned, from files or made up */
bool settings_running(const settings *set);    /* running text */
bool settings_from_files(const settings *set); /* pairs from files */
bool settings_in_one_row(const settings *set); /* of the model: a source stands before its output */
bool settings_has_horizon(const settings *set); /* the schedule ends at a step */
bool settings_validates(const settings *set);   /* something is held back to be judged by */
source_options settings_source(settings *set);
wf_training_config settings_training(const settings *set);
wf_optimizer_options settings_optimizer(const settings *set);
/* A new model; NULL with message[256]. */
wf_model *settings_model(const settings *set, const dataset *m, char *message);
/* Can the model be made? False with message[256]: the options contradict each other. */
bool settings_model_ok(const settings *set, const dataset *m, char *message);
/* The architecture of the model. */
const wf_model_kind *settings_kind(const settings *set);
wf_schedule settings_schedule(const settings *set);

/* ---- settings_init.c: starting from a model
 * ---------------------------------------------------- */

/* Did, or will, the training start from a model's file? Then sizes come from there. */
bool settings_started(const settings *set);
/* Which model is in the file: a hash of its configuration and its weights. */
void settings_hash_init(const wf_file *f, char hash[OPTION_TEXT_SIZE]);
/* Exits if an option was given that a model's file determines. */
void settings_refuse_sizes(const char *because);
/* Architecture and tokenizer as the file at `path` has them; exits if it can't be trained. */
void settings_from_model(settings *set, const wf_file *f, const char *path);
/* The model in the file, and nothing of how it was trained; NULL with message[256]. */
wf_model *settings_start(const settings *set, const wf_file *init, char *message);

/* ---- settings_follow.c: settings that follow the data
 * ---------------------------------------------------- */

/* Defaults of a new model for settings that were not on the command line. */
dataset_follower settings_follower(settings *set);
wf_token_kind settings_tokenizer(const settings *set, int side);
wf_tokenizer_options settings_tokens(const settings *set, int side);

/* ---- settings_freeze.c: what is not trained
 * ---------------------------------------------------- */

/* The parameters of m that are trained, n of them, to be freed; NULL: out of memory. */
wf_tensor **settings_trained(const settings *set, const wf_model *m, int *n);
/* Exit if a prefix is that of no parameter, or nothing is left to train. */
void settings_check_freeze(const settings *set, const wf_model *m);
int64_t settings_frozen(const settings *set, const wf_model *m); /* numbers in what is frozen */
/* Exits if --freeze is too long for a checkpoint's metadata, or not UTF-8. */
void settings_refuse_freeze(const settings *set);
/* Takes --freeze from the checkpoint; exits if the command line has another. */
void settings_take_freeze(settings *set, const wf_file *f);

/* ---- settings_refuse.c ----------------------------------------------------------------------- */

/* Refuse, before the training, what a folder of transformers cannot hold: --like. */
void settings_refuse_unlike(const settings *set);
/* Exit if an option that was given would have no effect. */
void settings_refuse_idle(const settings *set);
/* Exits if the settings do not suit running text. */
void settings_refuse_running(const settings *set);

/* ---- settings_file.c ------------------------------------------------------------------------- */

/* The settings and the step as metadata of the checkpoint. */
enum { SETTINGS_META = 64 };
typedef struct settings_meta {
    wf_meta pairs[SETTINGS_META];
    char keys[SETTINGS_META][OPTION_TEXT_SIZE], values[SETTINGS_META][OPTION_TEXT_SIZE];
    int n;
} settings_meta;
/* Progress of a training, as a checkpoint keeps it. */
typedef struct training_state {
    int64_t step;
    double best;        /* loss per token in validation; infinite before the first */
    int64_t since_best; /* validations since */
} training_state;
void settings_to_meta(const settings *set, const training_state *at, const dataset *m,
                      settings_meta *meta);
training_state settings_state(const settings *set,
                              const wf_file *f); /* exits if the file does not tell */

/* Takes the stored settings from the file; exits if the command line contradicts them. */
void settings_from_file(settings *set, const wf_file *f);
/* Exits if a resume has other training data than before. */
void settings_check_data(const settings *set, const wf_file *f, const dataset *m);

/* "train.<name>" of the file; NULL: it has none. */
const char *setting_in_file(const wf_file *f, const char *name);

#endif
