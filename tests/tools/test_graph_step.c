/* tests/tools/test_graph_step.c - `graph --step`, the debugger: every node of an example in order,
 * its commands, a broken mask, and the first node that is not finite. */
#include <math.h>
#include <stdio.h>

#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/support.h"

TESTS(graph_step)

SETUP(enter_folder, leave_folder)

#define MODEL                                                                                      \
    "train --task copy --d-model 16 --heads 2 --layers 1 --d-ff 16 --batch-size 4 --lr-steps "     \
    "1000 "                                                                                        \
    "--warmup 5 --quiet --threads 1 --max-steps 3 -o m.safetensors"
#define SCORES "--q '1 0; 0 1; 1 1' --k '1 0; 0 1; 1 1' --v '1; 2; 4' --step "

/* ---- the walk -------------------------------------------------------------------------------- */

/* Checks the output of a whole walk in the file `all`: stops are numbered, and the operands of a
 * node are at earlier stops. Returns the number of stops. */
static int assert_walk(void) {
    int n = 0, of = 0, at, total, operand;
    char line[512];
    FILE *f = fopen("all", "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f)) {
        bool indented = line[0] == ' ' && line[1] == ' ' && line[2] > ' ' && line[2] != '=';
        if (line[0] >= '1' && line[0] <= '9' && sscanf(line, "%d/%d  ", &at, &total) == 2) {
            ck_assert_int_eq(at, n + 1);
            n = at;
            of = total;
        } else if (indented && strstr(line, " f32 [") && sscanf(line + 13, "%d ", &operand) == 1)
            ck_assert_msg(operand < n, "%d: %s", n, line);
    }
    fclose(f);
    ck_assert_int_eq(n, of);
    return n;
}

TEST(without_a_terminal_all_nodes_are_written) {
    ok(MODEL);
    ok("graph --step m.safetensors --source '3 1 2' > all; head -n 60 all");
    assert_contains(result.out, "source: 3 1 2\ntarget: ");
    assert_contains(result.out, "  input  src\n  = i32 [1,3]  1 to 3, mean 2\n    [[3 1 2]]\n");
    assert_contains(result.out, "embedding  src_embedding\n  embedding(table, ids): table[ids]");
    assert_contains(result.out, "\n  with       scale = 4, shift = 0\n"); /* sqrt(16) */
    ok("grep 'attention  transformer.encoder.layers.0.self_attn' all; tail -n 1 all");
    assert_contains(result.out, "none of ");
    int forward = assert_walk();
    ck_assert_int_gt(forward, 100);
    ok("graph --step m.safetensors --source '3 1 2' --target '3 1 2' --backward > all; "
       "grep -c 'recorded by the gradient rule of' all; tail -n 1 all");
    int backward = 0, nodes = 0;
    ck_assert_int_eq(sscanf(result.out, "%d\nnone of %d", &backward, &nodes), 2);
    ck_assert_int_gt(backward, 50);
    ck_assert_int_eq(assert_walk(), nodes);
    ck_assert_int_gt(nodes, forward + backward / 2);
}

/* graph --step shows the log-probabilities that generate --score computes. */
TEST(the_walk_has_the_log_probabilities_of_generate) {
    double p[4];
    char expected[64];
    ok(MODEL);
    ok("printf '3 1 2\\t3 1 2\\n' | generate m.safetensors --score --json --quiet --weights f32 | "
       "sed 's/.*\"log_probs\":.//'");
    ck_assert_int_eq(sscanf(result.out, "%lf,%lf,%lf,%lf", p, p + 1, p + 2, p + 3), 4);
    ok("graph --step m.safetensors --source '3 1 2' --target '3 1 2' --commands "
       "'/log_softmax; v'");
    for (int i = 0; i < 4; i++) {
        snprintf(expected, sizeof expected, " %.5g ", p[i]);
        assert_contains(result.out, expected);
    }
    assert_contains(result.out, "\n    [0,3,*] ");
}

TEST(a_language_model_and_a_layer_are_walked_through) {
    ok("train --task copy --arch language --d-model 16 --heads 2 --layers 1 --d-ff 16 "
       "--batch-size 4 --lr-steps 1000 --quiet --threads 1 --max-steps 2 -o l.safetensors");
    ok("graph --step l.safetensors --backward > all");
    ck_assert_int_gt(assert_walk(), 120);
    ok("graph --step --of decoder-layer --d-model 8 --heads 2 --d-ff 8 --length 3 > all");
    ck_assert_int_gt(assert_walk(), 60);
}

/* ---- its commands ---------------------------------------------------------------------------- */

TEST(commands_go_and_search) {
    ok("graph --formula 'exp(a) * b' --a 0 --b 3 --step --commands 'n; n; n; p; g 4'");
    assert_contains(result.out, "1/4  parameter  a\n  = f64 []\n    0\n"
                                "2/4  exp  \n  exp(x): e^x\n  x          1 a  f64 []   0\n"
                                "  = f64 []\n    1\n"
                                "3/4  parameter  b\n");
    assert_contains(result.out, "4/4  mul  \n  mul(a, b): a b\n  a          2 exp  f64 []   1\n"
                                "  b          3 b  f64 []   3\n  = f64 []\n    3\n");
    ok("graph --formula 'exp(a) * b' --a 0 --b 3 --step --commands '/mul; /; q; nonsense'");
    ok("graph --formula 'exp(a) * b' --a 0 --b 3 --step --commands v");
    assert_contains(result.out, "1/4  parameter  a\n");
    ok("graph --formula 'exp(a) * b' --a 0 --b 3 --step --commands 'h; ?' | sort -u");
    assert_contains(result.out, "n next  p previous  g N  /WORD search  ");
    run("graph --formula 'exp(a) * b' --a 0 --b 3 --step --commands f");
    expect(1);
    assert_contains(result.out, "no node made a NaN or an infinity of finite operands");
    static const char *const bad[][2] = {
        { "p", "this is the first node" },      { "g 4; n", "this is the last node" },
        { "g 5", "g N: N is 1 to 4" },          { "g x", "g N: N is 1 to 4" },
        { "hello", "no command: hello" },       { "x", "no command: x" },
        { "/nothing", "no node has: nothing" }, { "/", "/WORD: a part of a name or an op" },
        { "z", "no node has a row of zeros" },  { "f; v", "1/4  parameter  a" },
    };
    for (int i = 0; i < COUNT_OF(bad); i++) {
        run("graph --formula 'exp(a) * b' --a 0 --b 3 --step --commands '%s'", bad[i][0]);
        expect(1);
        assert_contains(result.out, bad[i][1]);
        assert_contains(result.err, "one of them found nothing or is unknown");
    }
}

/* A search command that finds nothing prints a line, and the following commands still run. */
TEST(commands_go_on_after_a_miss) {
    run("graph --formula 'exp(a) * b' --a 0 --b 3 --step --commands 'n; y; /nothing; g 4; v'");
    expect(1);
    assert_contains(result.out, "    0\nno command: y\nno node has: nothing\n4/4  mul");
    ok("graph --formula 'exp(a) * b' --a 0 --b 3 --backward --step");
    assert_contains(result.out, "recorded by the gradient rule of 4 mul\n");
}

/* On a terminal, commands are read line by line. Passes without the program `script`, which makes a
 * terminal. */
TEST(a_terminal_is_asked_for_keys) {
    if (run("command -v script")->status) return;
    ok("printf 'n\\n/exp\\nwrong\\nq\\n' | script -qec \"graph --formula 'exp(a) * b' --a 0 --b 3 "
       "--step\" /dev/null | tr -d '\\r'");
    assert_contains(result.out, "q quit\n> 2/4  exp");
    assert_contains(result.out, "no command: wrong\n");
    ck_assert_ptr_null(strstr(result.out, "4/4"));
}

/* ---- a broken mask, and numbers that are not finite ------------------------------------------ */

/* A softmax row with all columns masked is zeros. The command z finds the row of the mask, and the
 * rows that depend on it. */
TEST(a_row_that_is_all_masked_is_found) {
    ok("graph --formula 'masked_softmax(q @ transpose(k), m) @ v' " SCORES
       "--m '1 1 1; 0 0 0; 1 1 1' --commands 'z; z; z'");
    assert_contains(result.out, "parameter  m\n  = f64 [3,3]  0 to 1, mean 0.6667; 3 of 9 are 0; "
                                "1 of 3 rows are all 0\n");
    assert_contains(result.out, "softmax    in masked_softmax\n  softmax(x, mask)");
    assert_contains(result.out, "\n     [      0       0       0]\n");
    assert_contains(result.out, "matmul  \n");
}

/* A wrong mask: [3,1] masks rows (queries), where [1,3] would mask columns (keys). */
TEST(a_mask_of_the_wrong_axis_is_found) {
    ok("graph --formula 'masked_softmax(q @ transpose(k), m) @ v' " SCORES
       "--m '1; 1; 0' --commands '/softmax; z'");
    assert_contains(result.out, "  mask       5 m  f64 [3,1]   1 1 0; 1 of 3 rows are all 0\n");
    assert_contains(result.out, "1 of 3 rows are all 0\n    [[");
    run("graph --formula 'masked_softmax(q @ transpose(k), m) @ v' " SCORES
        "--m '1 1 0' --commands z");
    expect(1);
    assert_contains(result.out, "no node has a row of zeros");
}

TEST(the_first_node_that_is_not_finite_is_found) {
    run("graph --formula 'exp(log(x) * 2) + 1' --x '1 -4 0' --step");
    expect(3);
    assert_contains(result.out, "the first that is not finite: 2/5  log");
    assert_contains(result.out, "; 1 NaN; 1 infinite\n  NOT FINITE, though its operands are\n");
    ck_assert_ptr_eq(strstr(strstr(result.out, "NOT FINITE") + 1, "NOT FINITE"), NULL);
    /* exp(-inf) is 0: what follows from it is finite again */
    ok("graph --formula 'exp(log(x))' --x '1 0' --step --commands 'f'");
    assert_contains(result.out, "2/3  log");
}

TEST(a_parameter_that_is_not_finite_is_named) {
    ok(MODEL);
    change_values("m.safetensors", "transformer.encoder.layers.0.linear1.weight", NAN);
    run("graph --step m.safetensors --source '3 1 2' --target '3 1 2' > all");
    expect(3);
    ok("tail -n 1 all");
    assert_contains(result.out, "the first that is not finite: ");
    assert_contains(result.out, "parameter  transformer.encoder.layers.0.linear1.weight\n");
    ok("graph --step m.safetensors --source '3 1 2' --target '3 1 2' --commands f");
    assert_contains(result.out, "linear1.weight\n");
    assert_contains(result.out, "nan");
}

/* ---- refusals -------------------------------------------------------------------------------- */

TEST(lines_that_do_not_fit_are_refused) {
    static const char *const bad[][2] = {
        { "--source 'a b'", "--source: " },
        { "--source '3 999'", "--source: " },
        { "--target '999'", "--target: " },
        { "--source \"$(yes 3 | head -n 500 | tr '\\n' ' ')\"", "--source: " },
        { "--batch-size 2", "the example is one line" },
        { "--threads 2", "nothing is timed without --plan or --html" },
    };
    ok(MODEL);
    for (int i = 0; i < COUNT_OF(bad); i++) {
        run("graph --step m.safetensors %s", bad[i][0]);
        ck_assert_int_ne(result.status, 0);
        assert_contains(result.err, bad[i][1]);
    }
    run("graph --step missing.safetensors");
    expect(1);
    run("graph --step --html a.html");
    expect(2);
}
