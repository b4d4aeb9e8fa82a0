/* tests/core/picture/test_dot.c - pictures of graphs as Graphviz text, and the program `graph`.
 *
 * The tests read the text: nodes, edges, clusters, labels. Where Graphviz is installed, it must
 * accept the text too. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/picture.h"
#include "nn/nn.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(dot)

static const wf_dot_options modules = { .modules = true };

static char *draw(wf_tensor *const *fetch, int n, const wf_dot_options *options) {
    char message[256];
    char *text = wf_dot(fetch, n, options, message);
    ck_assert_msg(text, "%s", message);
    return text;
}

/* Counts the lines that hold both `part` and `other`. */
static int count_lines(const char *text, const char *part, const char *other) {
    int n = 0;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        size_t length = (size_t)(strchr(line, '\n') - line);
        char copy[4096];
        ck_assert_uint_lt(length, sizeof copy);
        memcpy(copy, line, length), copy[length] = '\0';
        n += strstr(copy, part) && strstr(copy, other);
    }
    return n;
}

static int count_nodes(const char *text) {
    return count_lines(text, "tooltip=", "label=") + count_lines(text, "legend", "shape=");
}

static int count_clusters(const char *text) {
    return count_lines(text, "subgraph cluster_", "");
}

static void assert_lacks(const char *text, const char *part) {
    ck_assert_msg(!strstr(text, part), "\"%s\" should not hold \"%s\"", text, part);
}

/* Fails if Graphviz prints an error or a warning for the text. Passes if it is not installed. */
static void assert_graphviz(const char *text) {
    char command[400], path[] = "/tmp/weft-dot-XXXXXX";
    if (system("command -v dot > /dev/null 2>&1") != 0) return;
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    size_t n = strlen(text);
    ck_assert(write(file, text, n) == (ssize_t)n && close(file) == 0);
    snprintf(command, sizeof command, "test -z \"$(dot -Tsvg -o /dev/null %s 2>&1)\"", path);
    int status = system(command);
    if (status == 0) unlink(path);
    ck_assert_msg(status == 0, "dot does not like %s", path);
}

/* ---- a small net ----------------------------------------------------------------------------- */

typedef struct net {
    wf_graph *g;
    wf_tensor *loss, *params[8], *grads[8];
    int n;
} net;

/* Records residual layers x + relu(linear(x)), and the sum of squares as a loss. */
static net net_of(int layers) {
    net m = { .g = new_graph(WF_F32) };
    int64_t B = wf_extent(m.g, "B", 64);
    wf_tensor *x = wf_input(m.g, "x", WF_F32, SHAPE(B, 8)); /* [B, 8] */
    for (int i = 0; i < layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "body.layers.%d", i);
        wf_scope(m.g, name);
        struct wf_linear_layer l = wf_linear_new(m.g, "linear", 8, 8, true);
        m.params[m.n++] = l.weight, m.params[m.n++] = l.bias;
        x = wf_add(x, wf_relu(wf_linear(&l, x))); /* [B, 8] */
    }
    wf_scope(m.g, "loss");
    m.loss = wf_square_sum(x); /* [] */
    wf_scope(m.g, "");
    return m;
}

TEST(operations_parameters_and_shapes_are_shown) {
    net m = net_of(1);
    char *text = draw(&m.loss, 1, NULL);
    assert_contains(text, "<B>x</B>");
    assert_contains(text, "[B,8] f32");
    assert_contains(text, "weight<BR/>[8,8] f32");
    assert_contains(text, "<B>matmul</B>");
    assert_contains(text, "<B>relu</B>");
    assert_contains(text, "<B>loss</B>");
    /* body holds one module only, so both names are on one line */
    assert_contains(text, "<B>body.layers.0</B>");
    assert_contains(text, "<B>linear</B>");
    assert_contains(text, "<B>result</B>");
    assert_contains(text, "<B>legend</B>");
    assert_lacks(text, "0x");
    ck_assert_int_eq(count_clusters(text), 3);
    assert_graphviz(text);
    free(text);
    end_graph(m.g);
}

TEST(names_of_tensors_are_shown) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(2, 3));
    wf_tensor *view = wf_named(wf_transpose(x, 0, 1), "columns");
    wf_scope(g, "head");
    wf_tensor *y = wf_named(wf_exp(wf_relu(view)), "a<b");
    char *text = draw(&y, 1, NULL);
    /* the view has a name, so it is drawn as a node; without one it would be a label of an edge */
    assert_contains(text, "<BR/><I>columns</I>");
    assert_contains(text, "<B>exp</B><BR/><I>a&#60;b</I>");
    assert_contains(text, "<B>a&#60;b</B>"); /* the result */
    assert_contains(text, "tooltip=\"head.a&#60;b\"");
    assert_graphviz(text);
    free(text), end_graph(g);
}

TEST(the_same_graph_gives_the_same_bytes) {
    for (int view = 0; view < 2; view++) {
        net a = net_of(3), b = net_of(3);
        wf_dot_options o = { .title = "twice", .modules = view == 1 };
        char *x = draw(&a.loss, 1, &o), *y = draw(&b.loss, 1, &o), *z = draw(&a.loss, 1, &o);
        ck_assert_str_eq(x, y);
        ck_assert_str_eq(x, z);
        free(x), free(y), free(z);
        end_graph(a.g), end_graph(b.g);
    }
}

TEST(repeated_layers_are_folded) {
    net one = net_of(1), three = net_of(3);
    char *a = draw(&one.loss, 1, &modules), *b = draw(&three.loss, 1, &modules);
    ck_assert_int_eq(count_nodes(a), count_nodes(b));
    ck_assert_int_eq(count_lines(a, " -> ", "label=<"), count_lines(b, " -> ", "label=<"));
    assert_contains(b, "body.layers.0-2  x3");
    assert_contains(b, "72 parameters"); /* of one layer */
    assert_contains(b, "linear");
    assert_lacks(a, "x1");
    assert_graphviz(b);
    char *all = draw(&three.loss, 1, NULL);
    assert_contains(all, "<B>2</B>");
    free(a), free(b), free(all);
    end_graph(one.g), end_graph(three.g);
}

TEST(different_layers_are_not_folded) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(4));
    for (int i = 0; i < 4; i++) {
        wf_scope(g, (const char *[]){ "layers.0", "layers.1", "layers.2", "layers.3" }[i]);
        x = i < 2 ? wf_neg(wf_exp(x)) : wf_exp(wf_neg(x));
    }
    char *text = draw(&x, 1, &modules);
    assert_contains(text, "layers.0-1  x2");
    assert_contains(text, "layers.2-3  x2");
    free(text);
    end_graph(g);
}

TEST(depth_limits_the_modules) {
    net m = net_of(3);
    char *text = draw(&m.loss, 1, &(wf_dot_options){ .modules = true, .depth = 1 });
    assert_contains(text, "<B>body</B>");
    assert_contains(text, "216 parameters");
    assert_lacks(text, "linear");
    assert_contains(text, "tooltip=\"body\"");
    ck_assert_int_eq(count_lines(text, "tooltip=", ""), 4); /* x, body, loss, result */
    free(text);
    end_graph(m.g);
}

TEST(views_are_remarks_unless_another_module_reads_them) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(2, 6));
    wf_tensor *inside = wf_neg(wf_transpose(x, 0, 1)); /* [6, 2] */
    wf_scope(g, "split");
    wf_tensor *outside = wf_transpose(wf_reshape(inside, SHAPE(2, 3, 2)), 0, 1); /* [3, 2, 2] */
    wf_scope(g, "use");
    wf_tensor *y = wf_exp(outside);
    char *text = draw(&y, 1, NULL);
    ck_assert_int_eq(count_lines(text, "tooltip=", "reshape, permute"), 1);
    ck_assert_int_eq(count_lines(text, " -> ", "permute"), 1);
    ck_assert_int_eq(count_lines(text, "tooltip=", ""), 5); /* x, neg, split, use, result */
    free(text);
    end_graph(g);
}

TEST(constants_are_part_of_their_operation) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(4)), *y = wf_mul(x, wf_constant(g, 0.125));
    char *text = draw(&y, 1, NULL);
    ck_assert_int_eq(count_lines(text, "<B>mul</B>", "0.125"), 1);
    ck_assert_int_eq(count_lines(text, "tooltip=", ""), 3);
    free(text);
    end_graph(g);
}

/* ---- gradients and updates ------------------------------------------------------------------- */

TEST(gradients_are_drawn_on_request) {
    for (int view = 0; view < 2; view++) {
        net m = net_of(2);
        wf_dot_options o = { .modules = view == 1 };
        char *before = draw(&m.loss, 1, &o);
        ck_assert(wf_grad(m.loss, m.params, m.n, m.grads));
        char *after = draw(&m.loss, 1, &o);
        ck_assert_str_eq(before, after);
        char *hidden = draw(m.grads, m.n, &o);
        assert_lacks(hidden, "dashed");
        o.backward = true;
        char *text = draw(m.grads, m.n, &o);
        assert_contains(text, "dir=back style=dashed");
        assert_contains(text, "constraint=false");
        assert_contains(text, "gradient: dashed");
        assert_contains(text, "rank=same");
        if (view) assert_contains(text, "<B>linear</B> gradient");
        assert_graphviz(text);
        free(before), free(after), free(hidden), free(text);
        end_graph(m.g);
    }
}

TEST(updates_are_drawn_with_the_gradient) {
    net m = net_of(1);
    ck_assert(wf_grad(m.loss, m.params, 1, m.grads));
    wf_tensor *scale = wf_constant(m.g, 1), *rates = wf_input(m.g, "rates", WF_F32, SHAPE(2));
    wf_tensor *step = wf_sgd_step(m.params[0], NULL, m.grads[0], scale, rates, NULL);
    char *text = draw(&step, 1, &(wf_dot_options){ .backward = true });
    assert_contains(text, "sgd_step");
    assert_contains(text, "rates");
    assert_graphviz(text);
    free(text);
    text = draw(&step, 1, NULL);
    assert_lacks(text, "sgd_step");
    assert_lacks(text, "rates"); /* only sgd_step reads it, which is not drawn */
    free(text);
    end_graph(m.g);
}

/* ---- plans ----------------------------------------------------------------------------------- */

TEST(a_plan_adds_shapes_times_tasks_and_memory) {
    net m = net_of(1);
    wf_tensor *x = wf_find(m.g, "x");
    wf_plan *p = wf_plan_new(
        m.g, &(wf_plan_options){ .fetch = &m.loss, .n_fetch = 1, .feed = &x, .n_feed = 1 });
    wf_dot_options o = { .plan = p };
    char *text = draw(&m.loss, 1, &o); /* not bound yet: as recorded */
    assert_contains(text, "[B,8] f32");
    free(text);
    float data[3 * 8] = { 1 };
    wf_profile(p, true);
    ck_assert_msg(wf_bind(p, "B", 3) && wf_feed(p, x, data, sizeof data) && wf_run(p), "%s",
                  wf_plan_error(p));
    text = draw(&m.loss, 1, &o);
    assert_contains(text, "[3,8] f32");
    assert_contains(text, " a run, arena ");
    assert_contains(text, "1 task");
    assert_contains(text, "96 B");
    assert_lacks(text, "[B,8]");
    assert_graphviz(text);
    free(text);
    wf_plan_free(p);
    end_graph(m.g);
}

TEST(a_plan_shows_what_rules_made) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_param(g, "x", SHAPE(4, 3), wf_init_normal(1));
    wf_tensor *w = wf_param(g, "w", SHAPE(3, 5), wf_init_normal(1));
    wf_tensor *loss = wf_sum(wf_add(wf_matmul(x, w), wf_sin(wf_matmul(x, w))), WF_ALL_AXES, false);
    wf_tensor *dx;
    ck_assert(wf_grad(loss, &x, 1, &dx));
    wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = &dx, .n_fetch = 1 });
    ck_assert_msg(wf_run(p), "%s", wf_plan_error(p));
    char *text = draw(&dx, 1, &(wf_dot_options){ .plan = p, .backward = true });
    assert_contains(text, "runs as matmul");
    assert_contains(text, "computed in add");
    free(text);
    text = draw(&dx, 1, &(wf_dot_options){ .backward = true });
    assert_lacks(text, "computed in");
    free(text);
    wf_plan_free(p);
    end_graph(g);
}

/* ---- any name, any size, any mistake --------------------------------------------------------- */

/* Makes a name of characters that could end a label early, and of bytes that are not UTF-8. */
static void nasty_name(char *name, uint64_t key) {
    static const char letters[] = "\"\\{}|<>&;\n\t\x01\x7f '[]()#/*-=.,:%$a0\xc3\xa9\xff\xe2\x82";
    size_t n = 1 + (size_t)(12 * number(key, 0));
    for (size_t i = 0; i < n; i++)
        name[i] = letters[(size_t)(number(key, i + 1) * (sizeof letters - 1))];
    name[n] = '\0';
}

TEST(any_name_is_escaped) {
    for (uint64_t round = 0; round < 6; round++) {
        wf_graph *g = new_graph(WF_F32);
        wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(2));
        for (uint64_t i = 0; i < 40; i++) {
            char name[64], leaf[80];
            nasty_name(name, 1000 * round + i);
            wf_scope(g, name);
            snprintf(leaf, sizeof leaf, "%s%d", name, (int)i);
            x = wf_add(wf_neg(x), wf_param(g, leaf, SHAPE(2), wf_init_zeros()));
        }
        char title[64];
        nasty_name(title, round + 77);
        for (int view = 0; view < 2; view++) {
            char *text = draw(&x, 1, &(wf_dot_options){ .title = title, .modules = view == 1 });
            assert_graphviz(text);
            free(text);
        }
        end_graph(g);
    }
}

TEST(names_survive_their_escape) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *y = wf_neg(wf_input(g, "a<b>\"c\"&\\d", WF_F32, SHAPE(2)));
    char *text = draw(&y, 1, NULL);
    assert_contains(text, "<B>a&#60;b&#62;&#34;c&#34;&#38;&#92;d</B>");
    free(text);
    end_graph(g);
}

TEST(a_deep_path_is_no_deep_recursion) {
    wf_graph *g = new_graph(WF_F32);
    char path[240];
    for (size_t i = 0; i < sizeof path; i++) path[i] = i % 2 ? '.' : 'm';
    path[sizeof path - 1] = '\0';
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(2));
    wf_scope(g, path);
    x = wf_neg(wf_exp(x));
    char *text = draw(&x, 1, NULL);
    assert_contains(text, "m.m.m");
    assert_graphviz(text);
    free(text);
    end_graph(g);
}

TEST(too_many_nodes_are_refused_unless_forced) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(2));
    for (int i = 0; i < 4999; i++) x = wf_neg(x);
    char message[256];
    char *text = wf_dot(&x, 1, NULL, message); /* 5,000 and the result */
    ck_assert_msg(text, "%s", message);
    free(text);
    x = wf_neg(x);
    ck_assert_ptr_null(wf_dot(&x, 1, NULL, message));
    assert_contains(message, "5001 nodes");
    assert_contains(message, "force");
    text = draw(&x, 1, &(wf_dot_options){ .force = true });
    ck_assert_int_eq(count_lines(text, "tooltip=", ""), 5002);
    free(text);
    end_graph(g);
}

TEST(mistakes_have_a_sentence) {
    wf_graph *g = new_graph(WF_F32), *h = new_graph(WF_F32), *bad = wf_graph_new(NULL);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(2)), *y = wf_input(h, "y", WF_F32, SHAPE(2));
    wf_tensor *wrong = wf_poison(bad, "it went wrong"), *none = NULL;
    char message[256];
    ck_assert_ptr_null(wf_dot(NULL, 1, NULL, message));
    assert_contains(message, "no tensor");
    ck_assert_ptr_null(wf_dot(&x, 0, NULL, message));
    ck_assert_ptr_null(wf_dot((wf_tensor *[]){ x, y }, 2, NULL, message));
    assert_contains(message, "one graph");
    ck_assert_ptr_null(wf_dot((wf_tensor *[]){ x, none }, 2, NULL, message));
    ck_assert_ptr_null(wf_dot(&wrong, 1, NULL, message));
    assert_contains(message, "it went wrong");
    ck_assert_ptr_null(wf_dot(&none, 1, NULL, NULL));
    char *text = draw((wf_tensor *[]){ x, x }, 2, NULL); /* a leaf, twice */
    ck_assert_int_eq(count_lines(text, "tooltip=", ""), 3);
    free(text);
    end_graph(g), end_graph(h), wf_graph_free(bad);
}

/* ---- the program ----------------------------------------------------------------------------- */

static char *output_of(const char *arguments, int status) {
    enum { MOST = 1 << 20 };
    char command[400], *text = calloc(MOST, 1);
    const char *tools = getenv("WEFT_TOOLS");
    ck_assert_msg(tools, "set WEFT_TOOLS to the folder of the programs: build/tools");
    snprintf(command, sizeof command, "%s/graph %s 2>&1", tools, arguments);
    FILE *f = popen(command, "r");
    ck_assert(f && text);
    size_t n = fread(text, 1, MOST - 1, f);
    int end = pclose(f);
    ck_assert_msg(n < MOST - 1 && WIFEXITED(end) && WEXITSTATUS(end) == status, "%s: %s", command,
                  text);
    return text;
}

TEST(attention_can_be_read) {
    static const char *const parts[] = {
        "Q projection",      "K projection", "V projection", "Q heads", "K heads",
        "V heads",           "scale",        "mask",         "softmax", "weighted sum",
        "output projection", "[B,8,T,S]"
    };
    char *text = output_of("--of attention", 0), *again = output_of("--of attention", 0);
    ck_assert_str_eq(text, again);
    for (int i = 0; i < COUNT_OF(parts); i++) assert_contains(text, parts[i]);
    ck_assert_int_le(count_nodes(text), 40);
    assert_graphviz(text);
    free(text), free(again);
}

TEST(the_transformer_is_folded) {
    char *text = output_of("--of transformer --d-model 32 --heads 2 --d-ff 64", 0);
    char *again = output_of("--of transformer --d-model 32 --heads 2 --d-ff 64", 0);
    ck_assert_str_eq(text, again);
    assert_contains(text, "encoder.layers.0-5  x6");
    assert_contains(text, "decoder.layers.0-5  x6");
    assert_contains(text, "multihead_attn");
    assert_contains(text, ">4.22 k parameters"); /* of an attention: 4 (32 * 32 + 32) = 4,224 */
    ck_assert_int_le(count_nodes(text), 50);
    assert_graphviz(text);
    free(text), free(again);
}

TEST(every_subject_can_be_drawn) {
    static const char *const of[] = { "attention", "encoder-layer", "decoder-layer",
                                      "transformer" };
    static const char *const how[] = { "--level op",
                                       "--level module --backward",
                                       "--level op --backward",
                                       "--plan --batch-size 2 --length 5 --runs 1",
                                       "--plan --backward --runs 1",
                                       "--plan --depth 1 --runs 1 --threads 2" };
    char arguments[200];
    for (int i = 0; i < COUNT_OF(of) * COUNT_OF(how); i++) {
        snprintf(arguments, sizeof arguments, "--of %s --d-model 16 --heads 2 %s",
                 of[i / COUNT_OF(how)], how[i % COUNT_OF(how)]);
        char *text = output_of(arguments, 0);
        assert_contains(text, "digraph weft");
        if (strstr(arguments, "--plan")) assert_contains(text, " a run, arena ");
        if (strstr(arguments, "--backward")) assert_contains(text, "dashed");
        free(text);
    }
}

TEST(the_program_refuses_with_a_sentence) {
    static const struct {
        const char *arguments, *words;
        int status;
    } rows[] = {
        { "--of nothing", "attention", 2 },
        { "--of attention --d-model 10 --heads 3", "split", 2 },
        { "--of attention --layers 3", "no effect", 2 },
        { "--batch-size 3", "no effect", 2 },
        { "--level op --depth 2", "no effect", 2 },
        { "--model /nowhere/model.safetensors", "/nowhere/model.safetensors", 1 },
        { "--of attention -o /nowhere/a.dot", "/nowhere/a.dot", 1 },
        { "--level op --layers 200 --d-model 16 --heads 2 --d-ff 16", "more than 5000", 1 },
        { "--of attention > /dev/full", "", 1 },
    };
    for (int i = 0; i < COUNT_OF(rows); i++) {
        char *text = output_of(rows[i].arguments, rows[i].status);
        assert_contains(text, rows[i].words);
        free(text);
    }
}

TEST(numbers_are_refused_where_they_can_not_be_drawn) {
    char message[WF_MESSAGE];
    wf_graph *g = wf_graph_new(NULL), *other = wf_graph_new(NULL);
    wf_tensor *x = wf_full(g, WF_F32, 1, (int64_t[]){ 2 }, 1), *y = wf_neg(x);
    wf_tensor *elsewhere = wf_full(other, WF_F32, 1, (int64_t[]){ 2 }, 1);
    wf_plan *plan = wf_plan_new(g, &(wf_plan_options){ .fetch = &y, .n_fetch = 1 });
    ck_assert(wf_run(plan));
    const wf_dot_value right = { y, y, NULL }, no_node = { NULL, y, NULL },
                       no_value = { y, NULL, NULL }, foreign = { elsewhere, y, NULL };
    const struct {
        const wf_dot_value *values;
        int n;
        wf_plan *plan;
    } wrong[] = { { NULL, 1, plan },     { &right, -1, plan },   { &right, 1, NULL },
                  { &no_node, 1, plan }, { &no_value, 1, plan }, { &foreign, 1, plan } };
    for (int i = 0; i < COUNT_OF(wrong); i++) {
        wf_dot_options o = { .values = wrong[i].values,
                             .n_values = wrong[i].n,
                             .valued = wrong[i].plan };
        ck_assert_ptr_null(wf_dot(&y, 1, &o, message));
        assert_contains(message, "numbers to draw must be of nodes of this graph");
    }
    wf_dot_options o = { .values = &right, .n_values = 1, .valued = plan };
    char *text = wf_dot(&y, 1, &o, message);
    ck_assert_msg(text != NULL, "%s", message);
    assert_contains(text, "-1");
    free(text);
    wf_plan_free(plan);
    wf_graph_free(g);
    wf_graph_free(other);
}
