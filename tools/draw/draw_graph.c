/* tools/draw/draw_graph.c - writes a model, or a part of one, as a graph for Graphviz: to be looked at. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/picture.h"
#include "models/choices.h"
#include "subject.h"
#include "tools/cli/options.h"
#include "tools/cli/output.h"
#include "tools/cli/terminal.h"
#include "tools/cli/uses.h"

enum { MODULES, OPERATIONS };

typedef struct settings {
    int of, level, norm;
    const char *model, *output;
    int64_t depth, d_model, d_ff, heads, layers, batch_size, length, runs, threads;
    bool backward, plan, force;
} settings;

/* Static, because the rows of the option table hold addresses of these settings. */
static settings told = { .of = SUBJECT_TRANSFORMER,
                         .level = -1,
                         .norm = WF_NORM_POST,
                         .d_model = 512,
                         .d_ff = 2048,
                         .heads = 8,
                         .layers = 6,
                         .batch_size = 8,
                         .length = 32,
                         .runs = 5,
                         .threads = 1 };

static option rows[] = {
    GROUP("What is drawn"),
    CHOICE("of", told.of, SUBJECT_WORDS, "the whole model, or a part of it"),
    CHOICE("level", told.level, "module|op", "a box for each module, or for each operation",
           .fallback = "op of an attention, else module"),
    COUNT("depth", told.depth, 1, 32, "levels of modules shown",
          .fallback = "down to attention and linear layers"),
    FLAG("backward", told.backward, "the gradient too, dashed"),
    FLAG("force", told.force, "draw more than 5,000 nodes"),

    GROUP("Model"),
    MODEL("model", told.model,
          "a model that train wrote, a translator or a language model; without one, an "
          "encoder-decoder Transformer of these sizes:",
          .letter = 'm'),
    COUNT("d-model", told.d_model, 1, 16384, "width"),
    COUNT("heads", told.heads, 1, 1024, "attention heads; a divisor of the width"),
    COUNT("d-ff", told.d_ff, 1, 65536, "inner width of the feed-forward layers"),
    COUNT("layers", told.layers, 1, 256, "layers of the encoder, and of the decoder"),
    CHOICE("norm", told.norm, WF_NAMES(WF_NORM_NAMES), "LayerNorm before or after each sublayer"),

    GROUP("Plan"),
    FLAG("plan", told.plan, "compile it, run it, and show each operation's time, tasks and memory"),
    COUNT("batch-size", told.batch_size, 1, 4096, "sentences in a batch"),
    COUNT("length", told.length, 1, 4096, "tokens in each"),
    COUNT("runs", told.runs, 1, 1e6, "runs under the clock, of which the mean is shown"),
    COUNT("threads", told.threads, 1, 256, "that run it"),

    GROUP("Output"),
    OUTPUT("output", told.output, "Graphviz text; - is stdout", .letter = 'o', .fallback = "stdout"),
};

static program self = {
    .name = "graph",
    .purpose = "draws a model or a part of it as Graphviz text",
    .examples =
        "  graph --of attention -o attention.dot && dot -Tsvg attention.dot -o attention.svg\n"
        "  graph --of transformer --model copy.safetensors | dot -Tsvg > transformer.svg\n"
        "  graph --of encoder-layer --plan --d-model 256 | dot -Tpng > plan.png\n",
    .options = rows,
    .n = sizeof rows / sizeof *rows,
};

static void refuse_idle_options(const settings *set) {
    static const char *const sizes[] = { "d-model", "heads", "d-ff", "layers", "norm" };
    static const char *const plans[] = { "batch-size", "length", "runs", "threads" };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        option_no_effect(&self, sizes[i], set->model != NULL, "the model file says it");
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        option_no_effect(&self, plans[i], !set->plan, "nothing runs without --plan");
    option_no_effect(&self, "depth", set->level == OPERATIONS, "--level op shows every operation");
    option_no_effect(&self, "layers", set->of != SUBJECT_TRANSFORMER, "one layer is drawn");
    option_no_effect(&self, "d-ff", set->of == SUBJECT_ATTENTION,
                     "an attention has no feed-forward layer");
    option_no_effect(&self, "norm", set->of == SUBJECT_ATTENTION, "an attention has no norm");
}

static bool modules(const settings *set) {
    return set->level == MODULES || (set->level < 0 && set->of != SUBJECT_ATTENTION);
}

/* Levels of modules that are drawn: below them are the operations of an attention or a linear layer. */
static int depth(const settings *set) {
    static const int enough[] = { [SUBJECT_ATTENTION] = 1,
                                  [SUBJECT_ENCODER_LAYER] = 2,
                                  [SUBJECT_DECODER_LAYER] = 2,
                                  [SUBJECT_TRANSFORMER] = 5 };
    return set->depth ? (int)set->depth : enough[set->of];
}

/* The sizes of a layer. */
static wf_block_options sizes(const settings *set, const wf_file *f) {
    char message[WF_MESSAGE];
    wf_block_options o = { .d_model = set->d_model,
                           .num_heads = set->heads,
                           .dim_feedforward = set->d_ff,
                           .activation = WF_RELU,
                           .norm_first = set->norm == WF_NORM_PRE,
                           .bias = true,
                           .layer_norm_eps = 1e-5 };
    if (f && !wf_model_read_block(f, &o, message)) fail(&self, "%s: %s", set->model, message);
    if (f && o.num_heads == 0 && set->of != SUBJECT_TRANSFORMER)
        fail(&self, "%s: its model has no such layers", set->model);
    if (o.num_heads && o.d_model % o.num_heads)
        usage_error(&self, "--d-model %lld can't be split among --heads %lld", (long long)o.d_model,
                    (long long)o.num_heads);
    return o;
}

static void write_text(const settings *set, const char *text) {
    char message[WF_MESSAGE];
    output o = { .stream = stdout };
    if (set->output && !output_open(&o, set->output, message)) fail(&self, "%s", message);
    fputs(text, o.stream);
    if (set->output && !output_close(&o, message)) fail(&self, "%s", message);
}

static void draw(const settings *set, const subject *s) {
    char message[WF_MESSAGE];
    wf_pool *pool = set->plan && set->threads > 1 ? wf_pool_new((int)set->threads) : NULL;
    wf_plan *plan =
        set->plan ? subject_plan(s, set->batch_size, set->length, (int)set->runs, pool, message)
                  : NULL;
    if (set->plan && !plan) fail(&self, "%s", message);
    wf_dot_options options = { .title = s->title,
                               .backward = set->backward,
                               .plan = plan,
                               .modules = modules(set),
                               .depth = depth(set),
                               .force = set->force };
    char *text = wf_dot(s->fetch, s->n, &options, message);
    if (!text) fail(&self, "%s", message);
    write_text(set, text);
    free(text);
    wf_plan_free(plan);
    wf_pool_free(pool);
}

int main(int argc, char **argv) {
    char message[WF_MESSAGE];
    const settings *set = &told;
    terminal_open();
    options_parse(&self, argc, argv);
    refuse_idle_options(set);
    check_uses(&self, NULL, 0);
    wf_file *f = set->model ? wf_file_open(set->model) : NULL;
    if (f && !wf_file_ok(f)) fail(&self, "%s", wf_file_error(f));
    wf_block_options o = sizes(set, f);
    subject s;
    if (!subject_new(&s, (subject_kind)set->of, &o, set->layers, f, set->backward, message))
        fail(&self, "%s", message);
    draw(set, &s);
    subject_free(&s);
    wf_file_free(f);
    return close_stdout(&self, EXIT_DONE);
}
