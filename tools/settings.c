/* tools/settings.c - what `train` can be told. See settings.h.
 *
 * The defaults are a recipe that works: a peak rate of 3e-3 after 200 steps of warm-up, linear
 * decay, clipping at 1, no dropout. */
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
settings set = {
    .task = -1, .min_len = 3, .max_len = 12,
    .positions = WF_POSITIONS_SINUSOIDAL, .activation = WF_RELU, .tie = WF_TIE_NONE,
    .optimizer = WF_ADAM, .beta1 = 0.9, .beta2 = 0.98, .eps = 1e-9,
    .momentum = 0.9, .weight_decay = 0.01, .clip_norm = 1,
    .lr = 3e-3, .schedule = WF_LINEAR_DECAY, .warmup = 200,
    .batch_size = 32, .seed = 1,
    .log_every = 100, .valid_every = 500, .valid_size = 1000, .save_every = 500,
};
/* clang-format on */

#define STORED .stored = true

static option rows[] = {
    GROUP("What to learn"),
    CHOICE("task", set.task, TASK_WORDS, "sequences of tokens 1..19, made as they are needed",
           STORED),
    COUNT("min-len", set.min_len, 2, TASK_MAX_LEN, "tokens in the shortest sequence", STORED),
    COUNT("max-len", set.max_len, 2, TASK_MAX_LEN, "tokens in the longest", STORED),

    GROUP("Model"),
    CHOICE("preset", set.preset, "tiny|small|base", "sizes to start from: width 64, 256 or 512"),
    COUNT("d-model", set.d_model, 2, 16384, "width", .fallback = "the preset's", STORED),
    COUNT("d-ff", set.d_ff, 1, 65536, "inner width of the feed-forward layers",
          .fallback = "the preset's", STORED),
    COUNT("heads", set.heads, 1, 1024, "attention heads; a divisor of the width",
          .fallback = "the preset's", STORED),
    COUNT("layers", set.layers, 1, 256, "layers of the encoder, and of the decoder",
          .fallback = "the preset's"),
    COUNT("enc-layers", set.enc_layers, 1, 256, "layers of the encoder", .fallback = "--layers",
          STORED),
    COUNT("dec-layers", set.dec_layers, 1, 256, "layers of the decoder", .fallback = "--layers",
          STORED),
    REAL("dropout", set.dropout, 0, 0.9, "of embeddings, residuals and inner layers", STORED),
    REAL("attention-dropout", set.attention_dropout, 0, 0.9, "of attention weights", STORED),
    CHOICE("norm", set.norm, "pre|post", "LayerNorm before or after each sublayer", STORED),
    CHOICE("positions", set.positions, "none|sinusoidal|learned",
           "what tells the model about order", STORED),
    CHOICE("activation", set.activation, "relu|gelu|gelu-tanh|silu", "of the feed-forward layers",
           STORED),
    CHOICE("tie", set.tie, "none|decoder|all",
           "share the output's table with no, the decoder's, or both embeddings", STORED),

    GROUP("Optimisation"),
    CHOICE("optimizer", set.optimizer, "sgd|adam|adamw", "how parameters follow their gradients",
           STORED),
    REAL("lr", set.lr, 1e-9, 1e6, "learning rate at its peak", STORED),
    CHOICE("lr-schedule", set.schedule, "constant|linear|cosine|inverse-sqrt|noam",
           "the rate after the warm-up", STORED),
    COUNT("warmup", set.warmup, 0, 1e9, "steps in which the rate rises", STORED),
    COUNT("lr-steps", set.lr_steps, 1, 1e12, "where linear and cosine schedules end",
          .fallback = "enough for the task", STORED),
    REAL("beta1", set.beta1, 0, 0.9999, "Adam's average of gradients", STORED),
    REAL("beta2", set.beta2, 0, 0.999999, "Adam's average of their squares", STORED),
    REAL("eps", set.eps, 1e-30, 1, "Adam's guard of the division", STORED),
    REAL("momentum", set.momentum, 0, 0.9999, "of SGD", STORED),
    REAL("weight-decay", set.weight_decay, 0, 1, "of AdamW; matrices only", STORED),
    REAL("label-smoothing", set.label_smoothing, 0, 0.9,
         "share of the target spread over all tokens", STORED),
    REAL("clip-norm", set.clip_norm, 0, 1e9, "largest norm of the gradient; 0 does not clip",
         STORED),

    GROUP("Steps"),
    COUNT("batch-size", set.batch_size, 1, 65536, "sequences in a step", STORED),
    COUNT("seed", set.seed, 0, 9007199254740991, "of parameters, data and dropout", STORED),
    COUNT("max-steps", set.max_steps, 1, 1e12, "stop after this step",
          .fallback = "enough for the task"),
    REAL("max-time", set.max_time, 0.001, 1e9, "stop after so many seconds", .fallback = "none"),
    COUNT("threads", set.threads, 1, 256, "the result does not depend on it",
          .fallback = "processors, at most 8"),

    GROUP("Output"),
    NAME("model", set.model, "the model and all that a resume needs, in one safetensors file",
         .letter = 'o'),
    FLAG("resume", set.resume, "go on from the model file; settings come from there"),
    COUNT("save-every", set.save_every, 0, 1e12, "steps between saves; 0: at the end only"),
    COUNT("valid-every", set.valid_every, 0, 1e12, "steps between validations; 0: at the end only"),
    COUNT("valid-size", set.valid_size, 0, 1e6,
          "unseen sequences in a validation, and in the test at the end; 0: neither is made"),
    COUNT("log-every", set.log_every, 1, 1e12, "steps between lines"),
    NAME("log", set.log, "write events as JSON, one object a line"),
    FLAG("json", set.json, "the same on stdout, in place of the result as text"),
    NAME("curve", set.curve, "draw losses over steps as an SVG"),
    FLAG("profile", set.profile, "say at the end where the time went, by op"),
    FLAG("quiet", set.quiet, "say nothing on stderr but errors and warnings"),
};

program train_program = {
    .name = "train",
    .purpose = "trains a Transformer to map sequences to sequences",
    .examples = "  train --task copy -o copy.safetensors\n"
                "  train --task sort --seed 7 --max-len 20 --max-steps 4000 -o sort.safetensors "
                "--curve loss.svg\n"
                "  train --resume -o sort.safetensors --max-steps 6000\n"
                "  train --task reverse --preset small --dropout 0.1 --optimizer adamw --lr 1e-3 "
                "--log log.jsonl\n",
    .options = rows,
    .n = sizeof rows / sizeof *rows,
};

/* ---- from the checkpoint ------------------------------------------------------------------- */

static void setting_key(const char *name, char key[OPTION_TEXT_SIZE]) {
    snprintf(key, OPTION_TEXT_SIZE, "train.%s", name);
}

const char *setting_in_file(const wf_file *f, const char *name) {
    char key[OPTION_TEXT_SIZE];
    setting_key(name, key);
    return wf_file_meta(f, key);
}

void settings_to_meta(int64_t step, settings_meta *meta) {
    meta->n = 0;
    option steps = { .name = "step", .kind = OPTION_COUNT, .value = &step };
    for (int i = -1; i < train_program.n; i++) {
        const option *o = i < 0 ? &steps : &rows[i];
        if (i >= 0 && !o->stored) continue;
        setting_key(o->name, meta->keys[meta->n]);
        option_text(o, meta->values[meta->n]);
        meta->pairs[meta->n] = (wf_meta){ meta->keys[meta->n], meta->values[meta->n] };
        meta->n++;
    }
}

/* A setting of the file is the setting; one on the command line must be equal to it. */
static void take_from_file(const wf_file *f, option *o, char *differences, size_t size) {
    char given[OPTION_TEXT_SIZE], message[256];
    const char *stored = setting_in_file(f, o->name);
    if (!stored)
        fail(&train_program, "%s lacks the setting --%s: it can't be resumed", set.model, o->name);
    option_text(o, given);
    if (!option_set(o, stored, message)) fail(&train_program, "%s: %s", set.model, message);
    if (!o->seen || strcmp(given, stored) == 0) return;
    size_t n = strlen(differences);
    snprintf(differences + n, size - n, "%s--%s %s, not %s", n ? "; " : "", o->name, stored, given);
}

static void settings_from_file(const wf_file *f) {
    char differences[400] = "";
    option_no_effect(&train_program, "preset", true, "a resume takes the sizes from the file");
    option_no_effect(&train_program, "layers", true, "a resume takes the sizes from the file");
    for (option *o = rows; o < rows + train_program.n; o++)
        if (o->stored) take_from_file(f, o, differences, sizeof differences);
    if (*differences)
        usage_error(&train_program,
                    "%s was trained with %s: leave these out, or train anew without --resume",
                    set.model, differences);
    if (set.min_len > set.max_len || set.lr_steps < 1)
        fail(&train_program, "%s: its settings contradict each other", set.model);
}

/* ---- filling in ---------------------------------------------------------------------------- */

static void complete_sizes(void) {
    static const struct {
        int64_t d_model, heads, layers, d_ff;
    } presets[] = {
        { 64, 4, 2, 128 },
        { 256, 8, 3, 1024 },
        { 512, 8, 6, 2048 },
    };
    if (!set.d_model) set.d_model = presets[set.preset].d_model;
    if (!set.heads) set.heads = presets[set.preset].heads;
    if (!set.d_ff) set.d_ff = presets[set.preset].d_ff;
    option_no_effect(&train_program, "layers", set.enc_layers && set.dec_layers,
                     "--enc-layers and --dec-layers say it all");
    if (!set.layers) set.layers = presets[set.preset].layers;
    if (!set.enc_layers) set.enc_layers = set.layers;
    if (!set.dec_layers) set.dec_layers = set.layers;
}

/* Steps after which a thousand unseen sequences come out right with a margin, for every seed
 * tried. */
static int64_t recipe_steps(void) {
    static const int64_t steps[] = {
        [TASK_COPY] = 2000, [TASK_REVERSE] = 2000, [TASK_SORT] = 2500
    };
    return steps[set.task];
}

static bool has_horizon(void) {
    return set.schedule == WF_LINEAR_DECAY || set.schedule == WF_COSINE;
}

static void complete_steps(void) {
    if (!set.max_steps) set.max_steps = set.resume ? set.lr_steps : recipe_steps();
    if (!set.lr_steps)
        set.lr_steps = set.max_steps > recipe_steps() ? set.max_steps : recipe_steps();
    if (has_horizon() && set.max_steps > set.lr_steps)
        usage_error(&train_program,
                    "--max-steps %lld is beyond --lr-steps %lld, where the rate ends at 0",
                    (long long)set.max_steps, (long long)set.lr_steps);
    if (has_horizon() && set.warmup >= set.lr_steps)
        usage_error(&train_program, "--warmup %lld leaves nothing before --lr-steps %lld",
                    (long long)set.warmup, (long long)set.lr_steps);
    if (!set.threads) {
        long processors = sysconf(_SC_NPROCESSORS_ONLN);
        set.threads = processors < 1 ? 1 : processors > 8 ? 8 : processors;
    }
}

static void refuse_idle_options(void) {
    const program *p = &train_program;
    bool adam = set.optimizer != WF_SGD, reports = !set.quiet || set.log || set.json;
    option_no_effect(p, "beta1", !adam, "--optimizer sgd has no such average");
    option_no_effect(p, "beta2", !adam, "--optimizer sgd has no such average");
    option_no_effect(p, "eps", !adam, "--optimizer sgd does not divide");
    option_no_effect(p, "momentum", adam, "only --optimizer sgd has momentum");
    option_no_effect(p, "weight-decay", set.optimizer != WF_ADAMW,
                     "only --optimizer adamw decays weights");
    option_no_effect(p, "lr-steps", !has_horizon(), "only linear and cosine schedules end");
    option_no_effect(p, "valid-every", !set.valid_size, "--valid-size 0 makes no validation");
    option_no_effect(p, "save-every", !set.model, "without -o nothing is saved");
    option_no_effect(p, "log-every", !reports, "--quiet without --log or --json reports nothing");
    option_no_effect(p, "profile", set.quiet && !set.log && !set.json, "--quiet says nothing");
}

void settings_complete(const wf_file *f) {
    if (f) settings_from_file(f);
    if (set.task < 0) usage_error(&train_program, "say what to learn: --task %s", TASK_WORDS);
    if (set.min_len > set.max_len)
        usage_error(&train_program, "--min-len %lld is more than --max-len %lld",
                    (long long)set.min_len, (long long)set.max_len);
    refuse_idle_options();
    complete_sizes();
    complete_steps();
}

/* ---- what the settings mean ---------------------------------------------------------------- */

wf_transformer_config settings_model(void) {
    wf_transformer_config c = wf_transformer_defaults();
    c.src_vocab = c.tgt_vocab = TASK_VOCAB;
    c.max_len = set.max_len < 64 ? 64 : set.max_len + 1; /* the start token takes a place */
    c.d_model = set.d_model, c.num_heads = set.heads, c.dim_feedforward = set.d_ff;
    c.encoder_layers = set.enc_layers, c.decoder_layers = set.dec_layers;
    c.activation = (wf_activation)set.activation;
    c.positions = (wf_positions)set.positions;
    c.tie = (wf_tie)set.tie;
    c.norm_first = c.encoder_norm = c.decoder_norm = set.norm == 0;
    c.pad_id = -1, c.start_id = TASK_START, c.end_id = TASK_END;
    return c;
}

wf_training_config settings_training(void) {
    return (wf_training_config){
        .dropout = set.dropout,
        .attention_dropout = set.attention_dropout,
        .activation_dropout = set.dropout,
        .label_smoothing = set.label_smoothing,
        .optimizer = { .kind = (wf_optimizer_kind)set.optimizer,
                       .momentum = set.momentum,
                       .beta1 = set.beta1,
                       .beta2 = set.beta2,
                       .eps = set.eps,
                       .weight_decay = set.optimizer == WF_ADAMW ? set.weight_decay : 0,
                       .clip_norm = set.clip_norm },
    };
}

wf_schedule settings_schedule(void) {
    return (wf_schedule){ (wf_schedule_kind)set.schedule, set.lr, set.warmup, set.lr_steps, 0 };
}

task settings_task(void) {
    return (task){ (task_kind)set.task, set.min_len, set.max_len, (uint64_t)set.seed };
}
