/* tests/tools/test_graph_numbers.c - the numbers that `graph` shows: values of --formula, gradients
 * and second derivatives, as a table, as Graphviz text and as a page.
 *
 * Expected numbers are computed by graphs that the tests record; exact ones are literals. */
#define _XOPEN_SOURCE 700 /* posix_openpt */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/file/json.h"
#include "ops/ops_internal.h"
#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/support.h"
#include "tools/draw/formula.h"
#include "tools/draw/gradient_rule.h"
#include "tools/draw/node_values.h"

TESTS(graph_numbers)

SETUP(enter_folder, leave_folder)

/* ---- formulas -------------------------------------------------------------------------------- */

static const leaf_text two[] = { { "x", "1 2 3" }, { "w", "0.5 -1; 2 0.25; -3 1" } };

/* Writes into `text` the value of a formula as wf_print does. `two` holds the values of its
 * leaves. */
static void value_of(const char *formula, char *text, size_t size) {
    char message[WF_MESSAGE];
    subject s;
    bool ok = formula_subject(&s, formula, two, 2, false, message);
    ck_assert_msg(ok, "%s: %s", formula, message);
    wf_plan *p = wf_plan_new(s.graph, &(wf_plan_options){ .fetch = s.fetch, .n_fetch = 1 });
    ck_assert_msg(wf_run(p), "%s: %s", formula, wf_plan_error(p));
    ck_assert_int_lt(wf_print(p, s.fetch[0], text, size), (int)size);
    wf_plan_free(p);
    subject_free(&s);
}

typedef wf_tensor *recorder(wf_tensor *x, wf_tensor *w);

static wf_tensor *as_softmax(wf_tensor *x, wf_tensor *w) {
    return wf_softmax(wf_matmul(x, w), -1);
}
static wf_tensor *as_signs(wf_tensor *x, wf_tensor *w) {
    wf_tensor *square = wf_pow(wf_mean(x, WF_ALL_AXES, false), wf_constant(x->graph, 2));
    return wf_sub(wf_sub(wf_sum(w, WF_ALL_AXES, false), wf_neg(square)),
                  wf_constant(x->graph, 1.5));
}
static wf_tensor *as_norm(wf_tensor *x, wf_tensor *w) {
    return wf_div(wf_layer_norm(x, WF_LAST_AXIS, NULL, NULL, 1e-5),
                  wf_add(wf_exp(wf_transpose(w, -1, -2)), wf_constant(x->graph, 1)));
}
static wf_tensor *as_powers(wf_tensor *x, wf_tensor *w) {
    wf_tensor *up = wf_pow(wf_constant(x->graph, 3), wf_constant(x->graph, 2));
    return wf_add(wf_pow(wf_constant(x->graph, 2), up), wf_mul(wf_square_sum(x), wf_square_sum(w)));
}
static wf_tensor *as_choice(wf_tensor *x, wf_tensor *w) {
    wf_tensor *columns = wf_sum(wf_transpose(w, -1, -2), WF_LAST_AXIS, true);
    return wf_where(wf_greater(x, wf_constant(x->graph, 1)), wf_gelu(x), columns);
}

static const struct {
    const char *formula;
    recorder *record;
} formulas[] = {
    { "softmax(x @ w)", as_softmax },
    { "sum(w) - -mean(x)^2 - 1.5", as_signs },
    { " layer_norm ( x )/(exp(transpose(w)) + 1)", as_norm },
    { "2^3^2 + square_sum(x) * square_sum(w)", as_powers },
    { "where(greater(x, 1), gelu(x), sum_rows(transpose(w)))", as_choice },
};

TEST_ROWS(a_formula_is_what_the_ops_compute, COUNT_OF(formulas)) {
    char text[1024], expected[1024];
    wf_graph *g = wf_graph_new(&(wf_graph_options){ .real = WF_F64 });
    wf_tensor *x = wf_constant_array(g, WF_F64, 2, (int64_t[]){ 1, 3 }, (double[]){ 1, 2, 3 });
    wf_tensor *w =
        wf_constant_array(g, WF_F64, 2, (int64_t[]){ 3, 2 }, (double[]){ 0.5, -1, 2, 0.25, -3, 1 });
    wf_tensor *y = formulas[_i].record(x, w);
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = &y, .n_fetch = 1 });
    ck_assert(wf_run(p));
    wf_print(p, y, expected, sizeof expected);
    value_of(formulas[_i].formula, text, sizeof text);
    ck_assert_str_eq(text, expected);
    wf_plan_free(p);
    wf_graph_free(g);
}

/* x = 3 is an operand of x * y with y = 5, and twice of x * x. The table lists the contributions to
 * x's gradient, 2 * 3 and -5, the larger one first, and their sum. */
TEST(a_gradient_has_the_shares_of_its_consumers) {
    ok("graph --formula 'x*x - x*y' --x 3 --y 5 --table > table; cat table");
    assert_contains(result.out, "gradient           1\n");
    const char *larger = strstr(result.out, "  share by #"), *smaller;
    ck_assert_ptr_nonnull(larger);
    ck_assert_ptr_nonnull(smaller = strstr(larger + 1, "  share by #"));
    ck_assert_ptr_nonnull(strstr(larger, " 6\n"));
    ck_assert(strstr(larger, " 6\n") < smaller);
    ck_assert_ptr_nonnull(strstr(smaller, " -5\n"));
    ck_assert_ptr_null(strstr(smaller + 1, "  share by #"));
}

TEST(a_table_has_values_gradients_and_second_derivatives) {
    ok("graph --formula 'a*b + c^2' --a 2 --b -3 --c=10 --second --table");
    assert_contains(result.out, "a  []\n  value              2\n  gradient           -3\n"
                                "  second derivative  0\n");
    assert_contains(result.out, "b  []\n  value              -3\n  gradient           2\n");
    assert_contains(result.out, "c  []\n  value              10\n  gradient           20\n"
                                "  second derivative  2\n");
    assert_contains(result.out, "#6 = add(#3, #5)  []  differentiated\n  value              94\n");
    ok("graph --formula '3 * x' --x '1 -2; 0.5 4' --table");
    assert_contains(result.out, "  value              [[  1  -2]\n"
                                "                      [0.5   4]]\n"
                                "  gradient           [[3 3]\n");
}

TEST(what_has_no_gradient_is_shown_without) {
    ok("graph --formula 'greater(x, 2)' --x '1 2 3' --table");
    assert_contains(result.out, "[[0 0 1]]");
    ck_assert_ptr_null(strstr(result.out, "gradient"));
    assert_contains(result.err, "no gradient is shown: greater");
    assert_contains(result.err, "piecewise constant");
}

static const struct {
    const char *arguments;
    int status;
    const char *says;
} refusals[] = {
    { "--formula 'softmax(x @ w' --x 1", 2, "character 13: 'w' has no value" },
    { "--formula 'x' --x 1", 2, "nothing to compute" },
    { "--formula '' ", 2, "character 1: the formula ends where an operand is wanted" },
    { "--formula 'x + ' --x 1", 2, "character 5: the formula ends" },
    { "--formula 'x + )' --x 1", 2, "character 5: here a number, a name or a parenthesis" },
    { "--formula 'no(x)' --x 1", 2, "character 1: there is no function 'no'" },
    { "--formula 'adam_step(x)' --x 1", 2, "there is no function 'adam_step'" },
    { "--formula 'relu(x, x)' --x 1", 2, "relu takes 1 operand, not 2" },
    { "--formula 'add(x)' --x 1", 2, "add takes 2 operands, not 1" },
    { "--formula 'where(x,x,x,x,x)' --x 1", 2, "character 15: no function takes so many" },
    { "--formula 'exp(x' --x 1", 2, "character 6: the formula ends before a closing" },
    { "--formula 'exp(x x)' --x 1", 2, "character 7: here a comma or a closing" },
    { "--formula '((x)' --x 1", 2, "character 5: the parenthesis of character 1 is not closed" },
    { "--formula 'x x' --x 1", 2, "character 3: here the formula could end" },
    { "--formula '1.2.3 + x' --x 1", 2, "character 1: this is no number" },
    { "--formula 'x @ x' --x '1 2 3'", 2, "character 3: matmul: [1,3] x [1,3]" },
    { "--formula 'exp(x)' --x '1 2; 3'", 2, "--x: its rows are not of one length" },
    { "--formula 'exp(x)' --x '1;;2'", 2, "--x: it has a row without numbers" },
    { "--formula 'exp(x)' --x ''", 2, "--x: it has a row without numbers" },
    { "--formula 'exp(x)' --x '1 two'", 2, "--x: its values are written as '1 2 3; 4 5 6'" },
    { "--formula 'exp(x)' --x 1 --y 2", 2, "--y: the formula has no such variable" },
    { "--formula 'exp(x)' --x", 2, "--x needs a value" },
    { "--formula 'exp(x)' --x 1 --of attention", 2,
      "--of would have no effect: the formula is drawn" },
    { "--formula 'exp(x)' --x 1 --layers 3", 2,
      "--layers would have no effect: a formula has no layers" },
    { "--formula 'exp(x)' --x 1 --plan --values", 2, "one at a time" },
    { "--values", 1, "nodes, and 400 can be looked at; --step walks through them" },
    { "--second", 2, "only --values shows derivatives" },
    { "--table", 2, "only --values is a table" },
    { "--commands n", 2, "only --step takes commands" },
    { "--source 1", 2, "only --values and --step have an example" },
    { "--of attention --step --source 1", 2, "only a whole model reads lines" },
    { "--step -o a.dot", 2, "no Graphviz text is written" },
    { "--formula 'exp(x)' --x 1 --table -o a.dot", 2, "a table is printed on stdout" },
    { "--html a.html --level op", 2, "no picture is drawn" },
    { "--x 1", 2, "there is no option --x" },
};

TEST_ROWS(a_mistake_is_one_sentence, COUNT_OF(refusals)) {
    run("graph %s", refusals[_i].arguments);
    expect(refusals[_i].status);
    assert_contains(result.err, refusals[_i].says);
    ck_assert_str_eq(result.out, "");
}

TEST(nesting_is_limited) {
    ok("awk 'BEGIN { for (i = 0; i < 200; i++) printf \"(\"; printf \"x\" }' > deep");
    run("graph --formula \"$(cat deep)\" --x 1");
    expect(2);
    assert_contains(result.err, "the formula is nested too deeply");
    ok("awk 'BEGIN { for (i = 0; i < 200; i++) printf \"-\"; printf \"x\" }' > minus");
    run("graph --formula \"$(cat minus)\" --x 1");
    expect(2);
    ok("awk 'BEGIN { printf \"x\"; for (i = 0; i < 200; i++) printf \"^x\" }' > powers");
    run("graph --formula \"$(cat powers)\" --x 1");
    expect(2);
    assert_contains(result.err, "the formula is nested too deeply");
}

/* ---- as Graphviz text ------------------------------------------------------------------------ */

TEST(graphviz_text_has_the_numbers_in_the_nodes) {
    ok("graph --formula 'sum(square(x - t))' --x '1 2; 3 4' --t '0 0; 3 6' -o v.dot && cat v.dot");
    assert_contains(result.out, "<BR/>1  2<BR/>0 -2</FONT>"); /* x - t */
    assert_contains(result.out, "<I>gradient</I>");
    assert_contains(result.out, "2  4<BR/>0 -4</FONT>"); /* 2 (x - t) */
    assert_contains(result.out, "<B>square</B>");
    if (run("command -v dot")->status == 0) ok("test -z \"$(dot -Tsvg -o v.svg v.dot 2>&1)\"");
    ok("graph --values --of attention --d-model 4 --heads 2 --length 2 > a.dot && cat a.dot");
    assert_contains(result.out, "softmax over the keys");
    if (run("command -v dot")->status == 0) ok("test -z \"$(dot -Tsvg -o a.svg a.dot 2>&1)\"");
}

/* ---- formulas and attributes of ops ---------------------------------------------------------- */

TEST(attributes_are_declared_as_large_as_they_are) {
    int told = 0;
    for (int i = 0; i < wf_op_count(); i++) {
        const wf_op *op = wf_op_at(i);
        const char *at = op->attributes;
        attribute a = { .size = 0 };
        size_t largest = 1;
        if (!at) continue;
        while (next_attribute(&at, &a))
            if (a.size > largest) largest = a.size;
        size_t end = (a.from + a.size + largest - 1) / largest * largest;
        ck_assert_msg(!at && end == op->attr_bytes, "%s has %zu bytes of attributes, not %zu: %s",
                      op->name, op->attr_bytes, end, op->attributes);
        told++;
    }
    ck_assert_int_gt(told, 50);
}

static void assert_attributes(const wf_tensor *t, const char *expected) {
    char text[ATTRIBUTES_TEXT];
    while (t->op && !t->op->attributes) t = t->in[0];
    ck_assert_str_eq(attributes_text(t, text), expected);
}

static void assert_rule(wf_tensor *y, const char *expected) {
    char text[RULE_TEXT];
    ck_assert_str_eq(gradient_rule(y, text), expected);
}

TEST(attributes_and_gradient_rules_are_those_of_the_nodes) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *a = wf_input(g, "first", WF_F64, SHAPE(2, 3));
    wf_tensor *b = wf_input(g, "second", WF_F64, SHAPE(2, 3));
    assert_attributes(wf_affine(a, 0.125, 2), "scale = 0.125, shift = 2");
    assert_attributes(wf_slice(a, 1, 1, WF_END), "axis = 1, from = 1, to = end");
    assert_attributes(wf_sum(a, WF_AXIS(0) | WF_AXIS(1), true), "axes = 0 1");
    assert_attributes(wf_masked_softmax(a, NULL, true), "causal");
    assert_attributes(wf_layer_norm(a, WF_LAST_AXIS, NULL, NULL, 1e-5), "eps = 1e-05");
    assert_rule(wf_mul(a, b), "da = dy * b\ndb = dy * a");
    assert_rule(wf_tanh(a), "dx = dy * affine(square(y); scale = -1, shift = 1)");
    assert_rule(wf_softmax(a, -1), "dx = softmax_backward(y, dy)");
    assert_rule(wf_greater(a, b), "none: a comparison is piecewise constant");
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    end_graph(g);
}

TEST(operands_have_the_names_of_the_formula) {
    char name[32];
    ck_assert_str_eq(operand_name(&wf_op_copy, 0, name), "x");
    for (int i = 0; i < wf_op_count(); i++) {
        const wf_op *op = wf_op_at(i);
        ck_assert_str_ne(formula_value(op), "");
        for (int k = 0; k < op->arity; k++)
            ck_assert_msg(strncmp(operand_name(op, k, name), "operand", 7) != 0, "%s, operand %d",
                          op->name, k);
    }
}

/* ---- as a page ------------------------------------------------------------------------------- */

/* How often the text has the part. */
static int times(const char *text, const char *part) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) n++;
    return n;
}

static char *page_data(const char *path) {
    static const char before[] = "<script type=\"application/json\" id=\"data\">";
    static char text[1 << 19];
    read_text(path, text, sizeof text);
    ck_assert_uint_lt(strlen(text), sizeof text - 1);
    ck_assert_int_eq(times(text, "src=") + times(text, "url("), 0);
    char *data = strstr(text, before);
    ck_assert_ptr_nonnull(data);
    *strstr(data, "</script>") = '\0';
    return data + sizeof before - 1;
}

TEST(a_page_holds_the_graph_and_its_plan) {
    ok("graph --html p.html --of encoder-layer --d-model 8 --heads 2 --d-ff 16 --backward "
       "--batch-size 2 --length 5");
    ck_assert_str_eq(result.out, "");
    char *data = page_data("p.html");
    struct wf_json j;
    char *copy = strdup(data); /* the reader writes into it */
    ck_assert(copy && wf_json_begin(&j, copy, strlen(copy)));
    ck_assert_msg(wf_json_skip(&j) && wf_json_finish(&j), "the data are no JSON");
    free(copy);
    assert_contains(data, "\"op\":\"layer_norm\"");
    assert_contains(data, "\"formula\":\"relu(x): max(x, 0)\"");
    assert_contains(data, "\"gradient\":\"dx = where(y, dy, ");
    assert_contains(data, "\"shape\":\"[B,S,8]\"");
    assert_contains(data, "\"computedIn\":");
    assert_contains(data, "\"runsAs\":");
    assert_contains(data, "\"path\":\"encoder layer.self_attn\"");
    ck_assert_int_gt(times(data, "\"seconds\":"), 20);
}

/* If Graphviz text is written to a terminal, a message says what it is; in a file or pipe there is
 * none. */
TEST(a_terminal_is_told_what_fills_it) {
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    ck_assert(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    run("cat <&%d > seen & graph --of attention > %s; status=$?; kill $!; exit $status", master,
        ptsname(master));
    expect(0);
    close(master);
    assert_contains(result.err, "graph: the text above is a graph in the DOT language: -o FILE.dot "
                                "keeps it, and dot -Tsvg FILE.dot -o FILE.svg draws it");
    ok("graph --of attention > f.dot && graph --of attention -o g.dot && cmp f.dot g.dot");
    ck_assert_str_eq(result.err, "");
}

/* A browser draws the page without an error on its console. Passes where no browser is
 * installed. */
TEST(a_browser_draws_the_page) {
    if (run("command -v chromium")->status) return;
    ok("graph --html p.html --of encoder-layer --d-model 8 --heads 2 --d-ff 16");
    ok("echo '<script>search(\"softmax\"); search(\"layer_norm\")</script>' >> p.html");
    run("timeout 60 chromium --headless --no-sandbox --disable-gpu --enable-logging=stderr "
        "--user-data-dir=$PWD/profile --virtual-time-budget=3000 --dump-dom file://$PWD/p.html "
        "> dom 2> said; grep CONSOLE said");
    ck_assert_msg(!*result.out, "the page said: %s", result.out);
    ok("grep -c 'As planned' dom && grep -c 'class=\"node picked\"' dom");
    ok("grep -o '<rect' dom | head -n 3 | tr -d '\\n'");
    assert_contains(result.out, "<rect<rect<rect");
}
