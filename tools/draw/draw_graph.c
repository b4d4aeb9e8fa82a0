/* tools/draw/draw_graph.c - the program `graph`: shows a model, a part of one or a formula: as a
 * picture, with its numbers, step by step, or as a page.
 *
 * This file has the options. subject.h and formula.h make the graph that is shown; graph_values.h,
 * step_debugger.h and graph_page.h show it; emit/emit_program.h writes it as C. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formula.h"
#include "graph_page.h"
#include "graph_values.h"
#include "models/choices.h"
#include "models/model_internal.h"
#include "step_debugger.h"
#include "tools/cli/options/options.h"
#include "tools/cli/options/uses.h"
#include "tools/cli/output.h"
#include "tools/cli/terminal.h"
#include "tools/emit/emit_options.h"

enum { MODULES, OPERATIONS };

typedef struct settings {
    int of, level, norm;
    const char *model, *output, *formula, *html, *source, *target, *commands;
    int64_t depth, d_model, d_ff, heads, layers, batch_size, length, runs, threads;
    emit_request c;
    bool backward, plan, force, values, second, table, step;
    leaf_text leaves[MOST_LEAVES];
    int n_leaves;
} settings;

/* Static, because the rows of the option table hold addresses of these settings. */
static settings told = { .of = SUBJECT_TRANSFORMER,
                         .level = -1,
                         .c.model.weights = -1,
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
    CHOICE("of", told.of, SUBJECT_WORDS,
           "what to draw. transformer: the whole model, of any kind. attention, encoder-layer, "
           "decoder-layer: this part of it. A decoder-only model has no encoder-layer, and an "
           "encoder has no decoder-layer. Refused with --formula, --emit-c and --emit-html"),
    CHOICE("level", told.level, "module|op",
           "what each box of the picture is. module: a module, such as a linear layer. op: an "
           "operation. Refused with --values, --step, --html, --emit-c and --emit-html, and with "
           "--formula unless --plan is given",
           .fallback = "op with --of attention; else module"),
    COUNT("depth", told.depth, 1, 32,
          "with --level module: number of levels of modules within modules to draw. Refused "
          "wherever --level is refused",
          .fallback = "down to attention and linear layers"),
    STRING(
        "formula", told.formula, "TEXT",
        "draw this formula with its numbers, in place of a model. It may have + - * / @ (matrix "
        "product) ^ (power), parentheses, variables, and functions: softmax, sum, transpose and "
        "others, or an op of the library. An option with the name of a variable sets its values: "
        "--x \"1 2 3; 4 5 6\" is a matrix of two rows. A --config file can't set variables"),
    FLAG("backward", told.backward,
         "also show the operations that compute the gradients of the loss with respect to all "
         "parameters. In a picture their lines are dashed. Refused with --values, which always has "
         "the gradients, and with --emit-c and --emit-html"),
    FLAG("force", told.force,
         "draw a picture as Graphviz text even if it has more than 5,000 nodes, which is refused "
         "otherwise"),

#include "number_rows.inc"

    GROUP("Model"),
    MODEL("model", told.model,
          "model file that train or convert wrote. It may also be a word without a dash. Without a "
          "file, the model is a new encoder-decoder Transformer with the sizes below. --emit-c "
          "and --emit-html need a file, and --formula refuses one",
          .letter = 'm'),
    COUNT(
        "d-model", told.d_model, 1, 16384,
        "without --model and --formula: width of the model, the number of values in an embedding"),
    COUNT("heads", told.heads, 1, 1024,
          "without --model and --formula: number of attention heads in each layer. It must divide "
          "--d-model"),
    COUNT("d-ff", told.d_ff, 1, 65536,
          "without --model, --formula and --of attention: inner width of the feed-forward layers"),
    COUNT("layers", told.layers, 1, 256,
          "number of layers in the encoder, and also in the decoder. Refused with --model, with "
          "--formula, and for a part (--of)"),
    CHOICE("norm", told.norm, WF_NAMES(WF_NORM_NAMES),
           "without --model, --formula and --of attention: place of the LayerNorm, before (pre) or "
           "after (post) each sublayer"),

    GROUP("Plan"),
    FLAG("plan", told.plan,
         "run the graph, and draw it with the time, number of parallel tasks and memory of each "
         "operation. Only one of --values, --step, --plan, --html and --emit-c is possible"),
    COUNT("batch-size", told.batch_size, 1, 4096,
          "number of sequences in the batch that --plan and --html run, or --values and --step for "
          "a layer. With --emit-c --train of text it is the maximum",
          .fallback = "8; 1 with --values or --step; as train with --emit-c"),
    COUNT("length", told.length, 1, 4096,
          "number of tokens in each sequence of the batch that --batch-size describes. With "
          "--emit-c --train of text it is the maximum: of a source and of a target, or of a window",
          .fallback = "32; 4 with --values or --step; as train with --emit-c"),
    COUNT("runs", told.runs, 1, 1e6,
          "with --plan or --html: number of timed runs. The mean of their times is shown"),
    COUNT("threads", told.threads, 1, 256, "with --plan or --html: number of threads that compute"),

    EMIT_OPTIONS(told.c),

    GROUP("Output"),
    DRAWN(
        "output", told.output,
        "file for the Graphviz text, the C or the page of --emit-html; - is stdout. An existing "
        "file is replaced if weft wrote it. The program \"dot\" of the package graphviz draws the "
        "text; --html needs no other program. Refused with --step, --html, --table and --dry-run",
        .letter = 'o', .fallback = "stdout"),
    DRAWN("html", told.html,
          "file for an HTML page in place of Graphviz text. Its modules can be folded, and each "
          "node has its formula, shape, gradient, time and bytes. It shows the graph as recorded, "
          "as rewritten by fusion and as planned, and the plan's memory. An existing file is "
          "replaced only if it is a page of weft. Only one of --values, --step, --plan, --html and "
          "--emit-c is possible"),
};

static program self = {
    .name = "graph",
    .purpose =
        "shows a model, a part of it or a formula: as a picture, with its numbers, or step by step",
    .examples =
        "  graph --of attention -o attention.dot && dot -Tsvg attention.dot -o attention.svg\n"
        "  graph --of transformer --model copy.safetensors | dot -Tsvg > transformer.svg\n"
        "  graph --of encoder-layer --plan --d-model 256 | dot -Tpng > plan.png\n"
        "  graph --formula \"softmax(x @ w)\" --x \"1 2 3\" --w \"1 0; 0 1; 1 1\" --table\n"
        "  graph --step copy.safetensors --source \"3 1 2\"\n"
        "  graph --html model.html copy.safetensors\n"
        "  graph --emit-c copy.safetensors --max-length 20 -o copy.c\n"
        "  graph --emit-c copy.safetensors --train --from-start -o training.c\n",
    .options = rows,
    .n = sizeof rows / sizeof *rows,
    .operand_name = "[MODEL]",
    .by_place = { "model" },
};

/* ---- leaves of a formula: options without a row in the table --------------------------------- */

static bool is_leaf_option(const char *word) {
    static const char *const usual[] = { "help", "version", "config", "dump-config" };
    size_t n = strcspn(word, "=");
    if (strncmp(word, "--", 2) != 0 || n < 3 || option_named(&self, word + 2, n - 2)) return false;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (strlen(usual[i]) == n - 2 && !strncmp(word + 2, usual[i], n - 2)) return false;
    return true;
}

static void take_leaf(settings *set, char *name, char *values) {
    char *equals = strchr(name, '=');
    if (equals) {
        *equals = '\0';
        values = equals + 1;
    }
    if (!values) usage_error(&self, "%s needs a value", name);
    if (set->n_leaves == MOST_LEAVES)
        usage_error(&self, "a formula has at most %d variables", MOST_LEAVES);
    set->leaves[set->n_leaves++] = (leaf_text){ name + 2, values };
}

/* With --formula, removes "--x VALUES" from the command line. Returns how many words are left. */
static int take_leaves(settings *set, int argc, char **argv) {
    int left = 0;
    bool formula = false;
    for (int i = 1; i < argc; i++)
        formula |= !strcmp(argv[i], "--formula") || !strncmp(argv[i], "--formula=", 10);
    for (int i = 0; i < argc; i++) {
        bool value = i > 0 && !strcmp(argv[i - 1], "--formula");
        if (!formula || i == 0 || value || !is_leaf_option(argv[i])) {
            argv[left++] = argv[i];
            continue;
        }
        bool whole = strchr(argv[i], '=') != NULL;
        take_leaf(set, argv[i], whole || i + 1 == argc ? NULL : argv[i + 1]);
        i += !whole;
    }
    return left;
}

/* ---- options --------------------------------------------------------------------------------- */

/* Chooses the view, of which there may be only one. A formula is shown with its numbers. */
static void choose_view(settings *set) {
    int views = set->values + set->step + set->plan + (set->html != NULL) + set->c.asked;
    if (views + set->c.page > 1)
        usage_error(&self,
                    "--values, --step, --plan, --html and --emit-... are one at a time: give one");
    set->c.asked |= set->c.page;
    if (set->c.asked && !set->model) usage_error(&self, "--emit-... needs the file of a model");
    if (set->formula && !views) set->values = true;
    bool shown = set->values || set->step;
    if (shown && !option_seen(&self, "batch-size")) set->batch_size = 1;
    if (shown && !option_seen(&self, "length")) set->length = 4;
}

static void refuse_idle_sizes(const settings *set) {
    static const char sizes[] = "d-model|heads|d-ff|layers|norm";
    option_no_effect(&self, sizes, set->model != NULL, "the model file says it");
    option_no_effect(&self, sizes, set->formula != NULL, "a formula has no layers");
    option_no_effect(&self, "model|of", set->formula != NULL, "the formula is drawn");
    option_no_effect(&self, "layers", set->of != SUBJECT_TRANSFORMER, "one layer is drawn");
    option_no_effect(&self, "d-ff", set->of == SUBJECT_ATTENTION,
                     "an attention has no feed-forward layer");
    option_no_effect(&self, "norm", set->of == SUBJECT_ATTENTION, "an attention has no norm");
}

static void refuse_idle_runs(const settings *set) {
    bool runs = set->plan || set->html;
    bool shown = set->values || set->step;
    bool model = !set->formula && set->of == SUBJECT_TRANSFORMER;
    static const char counts[] = "batch-size|length", lines[] = "source|target";
    option_no_effect(&self, "runs|threads", !runs, "nothing is timed without --plan or --html");
    option_no_effect(&self, counts, !runs && !shown && !set->c.training,
                     "nothing runs without --plan or --html");
    option_no_effect(&self, counts, set->formula != NULL, "a formula has no sentences");
    option_no_effect(&self, counts, shown && model, "the example is one line");
    option_no_effect(&self, lines, !shown, "only --values and --step have an example");
    option_no_effect(&self, lines, !model, "only a whole model reads lines");
    option_no_effect(&self, "second", !set->values, "only --values shows derivatives");
    option_no_effect(&self, "table", !set->values, "only --values is a table");
    option_no_effect(&self, "commands", !set->step, "only --step takes commands");
    option_no_effect(&self, "output", set->step || set->html, "no Graphviz text is written");
    option_no_effect(&self, "output", set->table, "a table is printed on stdout");
}

static void refuse_idle_options(const settings *set) {
    refuse_idle_sizes(set);
    refuse_idle_runs(set);
    refuse_idle_emission(&self, &set->c);
    option_no_effect(&self, "depth|level|force", set->step || set->html, "no picture is drawn");
    option_no_effect(&self, "level", set->values, "--values shows every operation");
    option_no_effect(&self, "depth", set->level == OPERATIONS || set->values,
                     "--level op shows every operation");
    option_no_effect(&self, "backward", set->values, "--values shows the gradient in each node");
}

static bool modules(const settings *set) {
    return set->level == MODULES || (set->level < 0 && set->of != SUBJECT_ATTENTION);
}

/* The number of module levels to draw: down to attentions and linear layers, as modules. */
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

/* If the text went to a terminal, prints what the text is and what to do with it. */
static void say_text(const settings *set, const char *what, const char *next) {
    bool seen = !set->output && isatty(STDOUT_FILENO);
    fflush(stdout);
    if (seen) warn(&self, "the text above is %s: %s", what, next);
}

static void say_dot(const settings *set) {
    say_text(set, "a graph in the DOT language",
             "-o FILE.dot keeps it, and dot -Tsvg FILE.dot -o FILE.svg draws it, if the package "
             "graphviz is there; --html FILE.html needs no other program");
}

static void write_page(const settings *set, const subject *s, wf_plan *plan) {
    char message[WF_MESSAGE];
    output o;
    if (!output_open(&o, set->html, message)) fail(&self, "%s", message);
    if (!graph_page_write(o.stream, s, plan, message)) fail(&self, "%s", message);
    if (!output_close(&o, message)) fail(&self, "%s", message);
}

static void draw(const settings *set, const subject *s) {
    char message[WF_MESSAGE];
    bool runs = set->plan || set->html;
    wf_pool *pool = runs && set->threads > 1 ? wf_pool_new((int)set->threads) : NULL;
    wf_plan *plan =
        runs ? subject_plan(s, set->batch_size, set->length, (int)set->runs, pool, message) : NULL;
    if (runs && !plan) fail(&self, "%s", message);
    if (set->html) write_page(set, s, plan);
    wf_dot_options options = { .title = s->title,
                               .backward = set->backward,
                               .plan = plan,
                               .modules = modules(set),
                               .depth = depth(set),
                               .force = set->force };
    char *text = set->html ? NULL : wf_dot(s->fetch, s->n, &options, message);
    if (!set->html && !text) fail(&self, "%s", message);
    if (text) write_text(set, text);
    if (text) say_dot(set);
    free(text);
    wf_plan_free(plan);
    wf_pool_free(pool);
}

/* ---- with numbers ---------------------------------------------------------------------------- */

static void record(const settings *set, subject *s, const wf_block_options *o, const wf_file *f) {
    char message[WF_MESSAGE];
    bool ok =
        set->formula
            ? formula_subject(s, set->formula, set->leaves, set->n_leaves, set->backward, message)
            : subject_new(s, (subject_kind)set->of, o, set->layers, f, set->backward, message);
    if (!ok && set->formula && !says_no_memory(message)) usage_error(&self, "%s", message);
    if (!ok && f) fail(&self, "%s: %s", set->model, message);
    if (!ok) fail(&self, "%s", message);
}

static void make_example(const settings *set, example *e, const subject *s, const wf_file *f) {
    char message[WF_MESSAGE];
    *e = (example){ .sentences = set->batch_size, .length = set->length };
    if (!example_new(e, s, f, set->source, set->target, message)) fail(&self, "%s", message);
}

static void write_values(const settings *set, graph_values *v, const subject *s) {
    char message[WF_MESSAGE];
    if (set->table || (!set->output && isatty(STDOUT_FILENO))) {
        if (!graph_values_table(v, stdout)) fail(&self, "out of memory");
        return;
    }
    wf_dot_options options = { .title = s->title, .force = set->force };
    char *text = graph_values_dot(v, s, options, message);
    if (!text) fail(&self, "%s", message);
    write_text(set, text);
    free(text);
}

/* A gradient that cannot be recorded spoils its graph. Then the subject is recorded again, without
 * gradients. */
static void show_values(const settings *set, subject *s, const wf_block_options *o,
                        const wf_file *f) {
    char message[WF_MESSAGE];
    graph_values v;
    example e;
    make_example(set, &e, s, f);
    bool ok = graph_values_new(&v, s, &e, true, set->second, message);
    if (!ok && !wf_ok(s->graph) && !says_no_memory(message)) {
        warn(&self, "no gradient is shown: %s", message);
        graph_values_free(&v);
        example_free(&e);
        subject_free(s);
        record(set, s, o, f);
        make_example(set, &e, s, f);
        ok = graph_values_new(&v, s, &e, false, false, message);
    }
    if (!ok) fail(&self, "%s", message);
    write_values(set, &v, s);
    graph_values_free(&v);
    example_free(&e);
}

/* ---- step by step ---------------------------------------------------------------------------- */

static int commands_done(node_list *l, const char *commands) {
    if (step_commands(l, commands, stdout) || l->failed) return EXIT_DONE;
    fflush(stdout);
    warn(&self, "--commands: one of them found nothing or is unknown, as the output says");
    return EXIT_FAILED;
}

static int step(const settings *set, const subject *s, const wf_file *f) {
    char message[WF_MESSAGE];
    node_list l;
    example e;
    int status = EXIT_DONE;
    make_example(set, &e, s, f);
    if (!node_list_of(&l, s, &e, message)) fail(&self, "%s", message);
    if (e.source) printf("source: %s\ntarget: %s\n\n", e.source, e.target);
    if (set->commands)
        status = commands_done(&l, set->commands);
    else if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
        step_interactively(&l, stdin, stdout);
    else
        status = step_all(&l, stdout) ? EXIT_DONE : EXIT_NON_FINITE;
    if (l.failed) fail(&self, "out of memory");
    node_list_free(&l);
    example_free(&e);
    return status;
}

/* ---- C --------------------------------------------------------------------------------------- */

static void write_c(const settings *set, const wf_file *f) {
    emitted e = emit_program(&self, &set->c, f, set->model, set->batch_size, set->length);
    if (set->c.dry_run) {
        printf("%s\n", e.sizes);
    } else {
        write_text(set, e.text);
        say_text(set, "a program in C", "-o FILE.c keeps it");
        emit_weights(&self, &set->c, &e);
        warn(&self, "%s", e.sizes);
    }
    free(e.text);
    free(e.weights.bytes);
}

/* ---- the program ----------------------------------------------------------------------------- */

int main(int argc, char **argv) {
    settings *set = &told;
    int status = EXIT_DONE;
    terminal_open();
    argc = take_leaves(set, argc, argv);
    options_parse(&self, argc, argv);
    choose_view(set);
    refuse_idle_options(set);
    check_uses(&self, NULL, 0);
    wf_file *f = set->model ? wf_file_open(set->model) : NULL;
    if (f && !wf_file_ok(f)) fail(&self, "%s", wf_file_error(f));
    if (set->c.asked) {
        write_c(set, f);
        wf_file_free(f);
        return close_stdout(&self, status);
    }
    wf_block_options o = sizes(set, f);
    subject s;
    record(set, &s, &o, f);
    if (set->step)
        status = step(set, &s, f);
    else if (set->values)
        show_values(set, &s, &o, f);
    else
        draw(set, &s);
    subject_free(&s);
    wf_file_free(f);
    return close_stdout(&self, status);
}
