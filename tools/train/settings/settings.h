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
/* Complete steps and schedule by the updates of an epoch (0: generated data have no epochs). Exits
 * if they contradict each other. */
void settings_complete_steps(settings *set, int64_t updates);

/* The row of the data to learn from. All its flags are false while --task is not known. */
const source_kind *settings_task(const settings *set);
/* Advice in messages: how to make a tokenizer.json. settings_learns is the text for its %s. */
#define MAKES_ONE "\"tokenize --learn %s --vocab-size 8000 -i TEXT -o FILE\" makes one"
const char *settings_learns(const settings *set);
bool settings_from_files(const settings *set); /* true if pairs are read from files */
bool settings_one_table(const settings *set);  /* true if both sides share embeddings */
/* The architecture of the model. */
const wf_model_kind *settings_kind(const settings *set);
/* true if the model is decoder-only, so that a source and its output share one sequence */
bool settings_in_one_row(const settings *set);
bool settings_has_horizon(const settings *set); /* true if the schedule ends at some step */
/* true if --max-steps alone ends a new training before its schedule ends */
bool settings_stops_early(const settings *set);
/* true if a new training of `steps` steps, `updates` in an epoch, warms up before the last step */
bool settings_warm_before(const settings *set, int64_t updates, int64_t steps);
bool settings_validates(const settings *set); /* true if something is held out for validation */
source_options settings_source(settings *set);
wf_token_kind settings_tokenizer(const settings *set, int side);
wf_training_config settings_training(const settings *set);
/* Make a new model; NULL with message[256]. */
wf_model *settings_model(const settings *set, const dataset *m, char *message);
/* True if the model can be made. False with message[256]: options contradict each other. */
bool settings_model_ok(const settings *set, const dataset *m, char *message);
wf_schedule settings_schedule(const settings *set);
/* The trainer of a model; NULL: out of memory, otherwise see wf_trainer_error. pool and transport
 * are those of wf_trainer_options. */
wf_trainer *settings_trainer(const settings *set, wf_model *m, wf_pool *pool,
                             wf_transport *transport);

/* ---- settings_file.c: starting from a model -------------------------------------------------- */

/* True if the training started, or will start, from a model's file, which then determines the
 * sizes. */
bool settings_started(const settings *set);
/* Exits if an option was given that the model's file determines. */
void settings_refuse_sizes(const char *because);
/* Take from the file at `path` the architecture, the tokenizer, and defaults that depend on the
 * model (--max-len; of adapters, rate and targets). Exits if it cannot be trained. */
void settings_from_model(settings *set, const wf_file *f, const char *path);
/* The model in the file, without anything about its training, and with a head for the labels of m
 * if these are learned; NULL with message[256]. */
wf_model *settings_start(const settings *set, const dataset *m, const wf_file *init, char *message);

/* ---- settings_frozen.c: what is not trained -------------------------------------------------- */

/* The n parameters of m that are trained; the caller frees the array. NULL: out of memory. */
wf_tensor **settings_trained(const settings *set, const wf_model *m, int *n);
/* Exit if a prefix fits no parameter, or no parameter is left to train. */
void settings_check_freeze(const settings *set, const wf_model *m);
int64_t settings_frozen(const settings *set, const wf_model *m); /* number of frozen values */
enum { FREEZE_SIZE = 4096 }; /* bytes of all prefixes, with a '\0' */

/* ---- settings_refuse.c ----------------------------------------------------------------------- */

/* Exit if settings contradict --like, or if sides with two vocabularies share one embedding. */
void settings_refuse_unlike(const settings *set);
/* Exit if an option was given that would have no effect. */
void settings_refuse_idle(const settings *set);
/* Exit if the settings are not possible for running text, or for labels. */
void settings_refuse_running(const settings *set);

#endif
