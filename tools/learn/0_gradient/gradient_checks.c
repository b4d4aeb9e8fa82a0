/* tools/learn/0_gradient/gradient_checks.c - checks exercise 0: its tasks and known mistakes.
 *
 * A tape is described by its length and a formula in postfix notation: "n7 | x y * x + tanh z
 * -". */
#include <math.h>
#include <string.h>

#include "gradient_task.h"
#include "ops/ops.h"
#include "tools/learn/lesson.h"

static const char *const symbols[] = { "", "+", "-", "*", "/", "tanh", "exp", "relu" };
enum { OPERATIONS = sizeof symbols / sizeof *symbols, MOST_NODES = 32 };

/* ---- slopes ---------------------------------------------------------------------------------- */

enum { A, B };
enum {
    TANH_OF_A,
    NOT_SQUARED,
    OWN_FACTOR,
    SUB_SIGN,
    DIV_SIGN,
    DIV_ONCE,
    DIV_BY_A,
    EXP_OF_A,
    RELU_ALL,
    RELU_VALUE,
    ADD_FACTORS,
    TANH_TWICE,
    EXP_TWICE,
    DIV_SLOPE_OF_B,
    TANH_PLUS,
    RELU_MINUS,
    SIGMOID,
    DIV_QUOTIENT
};

static double value_of(enum operation operation, double a, double b) {
    switch (operation) {
    case LEAF:
        return a;
    case ADD:
        return a + b;
    case SUB:
        return a - b;
    case MUL:
        return a * b;
    case DIV:
        return a / b;
    case TANH:
        return tanh(a);
    case EXP:
        return exp(a);
    case RELU:
        return a > 0 ? a : 0;
    }
    return 0;
}

static enum operation operation_of(const char *word, size_t length) {
    for (int i = 1; i < OPERATIONS; i++)
        if (strlen(symbols[i]) == length && strncmp(symbols[i], word, length) == 0)
            return (enum operation)i;
    return LEAF;
}

static enum operation operation_in(const sample *s) {
    const char *word = strchr(s->text, '|') + 2;
    return operation_of(word, strlen(word));
}

/* The operands a and b of element i. b is moved away from 0, because it may be a divisor. */
static void operands(const sample *s, int i, double *a, double *b) {
    *a = s->in[A][i];
    *b = s->in[B][i] < 0 ? s->in[B][i] - 0.5 : s->in[B][i] + 0.5;
}

static const double unset = -12345.6789;

static void run_slopes(const sample *s, float *const *out) {
    for (int i = 0; i < s->size['n']; i++) {
        double a, b, da = unset, db = unset;
        enum operation op = operation_in(s);
        operands(s, i, &a, &b);
        slopes(op, a, b, value_of(op, a, b), &da, &db);
        if (op >= TANH && da != unset) db = 0;
        if (da != unset) out[0][i] = (float)da;
        if (db != unset) out[1][i] = (float)db;
    }
}

/* Builds one step of a tape with weft's op of the same name. */
static wf_tensor *record(enum operation operation, wf_tensor *a, wf_tensor *b) {
    switch (operation) {
    case LEAF:
        return a;
    case ADD:
        return wf_add(a, b);
    case SUB:
        return wf_sub(a, b);
    case MUL:
        return wf_mul(a, b);
    case DIV:
        return wf_div(a, b);
    case TANH:
        return wf_tanh(a);
    case EXP:
        return wf_exp(a);
    case RELU:
        return wf_relu(a);
    }
    return NULL;
}

static void weft_slopes(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    double b[MOST_NODES], unused;
    int64_t n = s->size['n'];
    for (int i = 0; i < n; i++) operands(s, i, &unused, &b[i]);
    wf_tensor *both[] = { in[A], wf_constant_array(g, WF_F64, 1, &n, b) };
    wf_tensor *y = record(operation_in(s), both[A], both[B]);
    wf_grad(wf_sum(y, WF_ALL_AXES, false), both, 2, out);
}

/* dy/da and dy/db of each operation, correct or with mistakes. */
static void model_slope(enum operation operation, double a, double b, uint64_t m, double *da,
                        double *db) {
    double y = value_of(operation, a, b);
    *da = 0;
    *db = 0;
    switch (operation) {
    case LEAF:
        break;
    case ADD:
        *da = HAS(m, ADD_FACTORS) ? b : 1;
        *db = HAS(m, ADD_FACTORS) ? a : 1;
        break;
    case SUB:
        *da = 1;
        *db = HAS(m, SUB_SIGN) ? 1 : -1;
        break;
    case MUL:
        *da = HAS(m, OWN_FACTOR) ? a : b;
        *db = HAS(m, OWN_FACTOR) ? b : a;
        break;
    case DIV:
        *da = HAS(m, DIV_BY_A) ? b : 1 / b;
        *db = (HAS(m, DIV_SIGN) ? a : -a) / (HAS(m, DIV_ONCE) ? b : b * b);
        if (HAS(m, DIV_QUOTIENT)) *da = a / b;
        if (HAS(m, DIV_SLOPE_OF_B)) *db = (HAS(m, DIV_SIGN) ? 1 : -1) / (b * b);
        break;
    case TANH:
        *da = 1 - y * y;
        if (HAS(m, TANH_OF_A)) *da = 1 - a * a;
        if (HAS(m, NOT_SQUARED)) *da = 1 - y;
        if (HAS(m, TANH_PLUS)) *da = 1 + y * y;
        if (HAS(m, SIGMOID)) *da = y * (1 - y);
        if (HAS(m, TANH_TWICE)) *da = 1 - tanh(y) * tanh(y);
        break;
    case EXP:
        *da = HAS(m, EXP_OF_A) ? a : y;
        if (HAS(m, EXP_TWICE)) *da = exp(y);
        break;
    case RELU:
        *da = a > 0 || HAS(m, RELU_ALL);
        if (HAS(m, RELU_VALUE)) *da = y;
        if (HAS(m, RELU_MINUS) && a <= 0) *da = -1;
        break;
    }
}

static void model_slopes(const sample *s, uint64_t m, double *const *out) {
    for (int i = 0; i < s->size['n']; i++) {
        double a, b;
        operands(s, i, &a, &b);
        model_slope(operation_in(s), a, b, m, &out[0][i], &out[1][i]);
    }
}

static const lesson_task slopes_task = {
    .name = "slopes",
    .formula = "da = dy/da and db = dy/db of one operation, as 1 and 1 for y = a + b",
    .in = { [A] = { "a", "n", ARRAY_VALUES, 0 }, [B] = { "b", "n", ARRAY_VALUES, 0 } },
    .out = { { "da", "n", 0, 0 }, { "db", "n", 0, 0 } },
    .cases = { "n6 | +", "n6 | -", "n6 | *", "n6 | /", "n6 | tanh", "n6 | exp", "n6 | relu" },
    .learner = run_slopes,
    .weft = weft_slopes,
    .model = model_slopes,
    .mistakes = {
        [TANH_OF_A] = { "tanh from its operand", "1 - a * a is in the place of 1 - y * y: the "
                        "slope of tanh comes from its result." },
        [NOT_SQUARED] = { "tanh: y is not squared",
                          "The slope of tanh is 1 - y * y, and not 1 - y." },
        [OWN_FACTOR] = { "product: its own factor",
                         "A factor gets the other one: of y = a * b, dy/da is b." },
        [SUB_SIGN] = { "difference: no minus",
                       "Of y = a - b, y falls where b rises: dy/db is -1." },
        [DIV_SIGN] = { "quotient: no minus", "Of y = a / b, a larger divisor makes a smaller "
                       "quotient: dy/db is -a / (b * b)." },
        [DIV_ONCE] = { "quotient: b is not squared",
                       "Of y = a / b, dy/db is -a / (b * b), and not -a / b." },
        [DIV_BY_A] = { "quotient: multiplied by b", "Of y = a / b, dy/da is 1 / b, and not b." },
        [EXP_OF_A] = { "exp: its operand", "The slope of exp is exp itself: y, and not a." },
        [RELU_ALL] = { "relu: 1 everywhere", "Below 0 relu is flat, and its slope is 0." },
        [RELU_VALUE] = { "relu: its value", "The slope of relu is 1 above 0, and not y." },
        [ADD_FACTORS] = { "sum: taken for a product", "Of y = a + b, both slopes are 1." },
        [TANH_PLUS] = { "tanh: plus", "The slope of tanh is 1 - y * y: it is never above 1." },
        [RELU_MINUS] = { "relu: -1 below 0", "Below 0 relu is flat, and its slope is 0. (-1 is "
                         "that of the absolute value.)" },
        [SIGMOID] = { "tanh: the slope of the sigmoid",
                      "y * (1 - y) belongs to 1 / (1 + exp(-x)). The slope of tanh is 1 - y * y." },
        [DIV_QUOTIENT] = { "quotient: dy/da is y",
                           "Of y = a / b, dy/da is 1 / b: a itself is not in its slope." },
        [TANH_TWICE] = { "tanh: taken twice", "y is tanh(a) already: the slope is 1 - y * y." },
        [EXP_TWICE] = { "exp: taken twice", "y is exp(a) already, and the slope of exp: it is y." },
        [DIV_SLOPE_OF_B] = { "quotient: a is missing", "-1 / (b * b) is the slope of 1 / b. Of y = "
                             "a / b it is a times that." },
    },
};

/* ---- backward -------------------------------------------------------------------------------- */

enum { LEAVES };
enum {
    NO_SEED,
    OVERWRITTEN,
    OVERWRITTEN_TOO,
    FORWARD,
    NOT_CLEARED,
    NO_CHAIN,
    FIRST_OPERAND,
    FIRST_NODE,
    SEED_VALUE,
    ONLY_A_OVERWRITTEN,
    ONLY_B_OVERWRITTEN,
    ONLY_B_OVERWRITTEN_TOO,
    VALUES_HANDED_ON,
    LAST_SKIPPED,
    SLOPES_EXCHANGED,
    EVERY_GRAD_1
};

/* Makes a case's tape with its values. False: the formula is invalid. */
static bool read_tape(const sample *s, struct node *tape) {
    int stack[MOST_NODES], top = 0, n = 0, letters[128] = { 0 };
    for (const char *at = strchr(s->text, '|') + 2; *at;) {
        size_t length = strcspn(at, " ");
        enum operation op = operation_of(at, length);
        struct node node = { .operation = op, .grad = 0.75 };
        int *seen = &letters[(unsigned char)*at];
        if (op != LEAF && op < TANH) node.b = stack[--top];
        if (op != LEAF) node.a = stack[--top];
        node.value = op == LEAF ? s->in[LEAVES][n] + 0.25
                                : value_of(op, tape[node.a].value, tape[node.b].value);
        if (op == LEAF && *seen > 0) {
            stack[top++] = *seen - 1;
        } else {
            if (op == LEAF) *seen = n + 1;
            stack[top++] = n;
            tape[n++] = node;
        }
        at += length + (at[length] == ' ');
    }
    return n == s->size['n'] && top == 1;
}

static void run_backward(const sample *s, float *const *out) {
    struct node tape[MOST_NODES];
    int n = s->size['n'];
    if (!read_tape(s, tape)) return;
    /* every grad is 0.75 before this call, which shows in the results if it is not cleared */
    backward(tape, n);
    bool touched = false;
    for (int i = 0; i < n; i++) touched = touched || tape[i].grad != 0.75;
    for (int i = 0; i < n && touched; i++) out[0][i] = (float)tape[i].grad;
}

static void weft_backward(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    struct node tape[MOST_NODES] = { 0 };
    wf_tensor *t[MOST_NODES], *grads[MOST_NODES];
    int n = s->size['n'];
    (void)in;
    if (!read_tape(s, tape)) return;
    for (int i = 0; i < n; i++) {
        struct node *y = &tape[i];
        if (y->operation == LEAF)
            t[i] = wf_constant(g, y->value);
        else
            t[i] = record(y->operation, t[y->a], t[y->b]);
    }
    wf_grad(t[n - 1], t, n, grads);
    out[0] = wf_stack(grads, n, 0);
}

static void give(struct node *to, double share, bool overwrite) {
    to->grad = overwrite ? share : to->grad + share;
}

/* Adds a node's shares to the gradients of its operands, correct or with mistakes. */
static void hand_on(struct node *tape, const struct node *y, uint64_t m) {
    bool both = HAS(m, OVERWRITTEN) || HAS(m, OVERWRITTEN_TOO);
    bool even_none = HAS(m, OVERWRITTEN_TOO) || HAS(m, ONLY_B_OVERWRITTEN_TOO);
    double da, db, dy = HAS(m, NO_CHAIN) ? 1 : y->grad;
    if (HAS(m, VALUES_HANDED_ON)) dy = y->value;
    model_slope(y->operation, tape[y->a].value, tape[y->b].value, 0, &da, &db);
    bool two = y->operation < TANH || even_none;
    if (two && HAS(m, SLOPES_EXCHANGED)) {
        double kept = da;
        da = db;
        db = kept;
    }
    give(&tape[y->a], dy * da, both || HAS(m, ONLY_A_OVERWRITTEN));
    if (two && !HAS(m, FIRST_OPERAND))
        give(&tape[y->b], dy * db, both || even_none || HAS(m, ONLY_B_OVERWRITTEN));
}

static void model_backward(const sample *s, uint64_t m, double *const *out) {
    struct node tape[MOST_NODES];
    int n = s->size['n'];
    if (!read_tape(s, tape)) return;
    for (int i = 0; i < n && !HAS(m, NOT_CLEARED); i++) tape[i].grad = 0;
    for (int i = 0; i < n && HAS(m, EVERY_GRAD_1); i++) tape[i].grad = 1;
    double first = HAS(m, SEED_VALUE) ? tape[n - 1].value : 1;
    if (!HAS(m, NO_SEED)) tape[HAS(m, FIRST_NODE) ? 0 : n - 1].grad = first;
    for (int k = HAS(m, LAST_SKIPPED) ? 1 : 0; k < n; k++) {
        const struct node *y = &tape[HAS(m, FORWARD) ? k : n - 1 - k];
        if (y->operation != LEAF) hand_on(tape, y, m);
    }
    for (int i = 0; i < n; i++) out[0][i] = tape[i].grad;
}

static const lesson_task backward_task = {
    .name = "backward",
    .formula = "grad of the last node = 1; from the last to the first: grad of a += grad * da, "
               "and so b",
    .in = { [LEAVES] = { "leaves", "n", ARRAY_VALUES, 0 } },
    .out = { { "grad", "n", 0, 0 } },
    .cases = { "n3 | x y *", "n4 | x y * tanh", "n4 | x y + x *", "n7 | x y * x + tanh z -",
               "n7 | x exp y / x y - relu +", "n6 | x y / z y - *" },
    .learner = run_backward,
    .weft = weft_backward,
    .model = model_backward,
    .mistakes = {
        [NO_SEED] = { "the result has no gradient of 1", "The walk begins with the last node, "
                      "whose grad is 1. Otherwise every share is 0." },
        [OVERWRITTEN] = { "a share overwrites the one before",
                          "A node that is used twice gets two shares: add them with +=." },
        [OVERWRITTEN_TOO] = { "a share overwrites the one before, even that of no operand",
                              "A node that is used twice gets two shares: add them with +=. Here a "
                              "tanh writes 0 into node 0, too, because its b is 0." },
        [FIRST_NODE] = { "the first node has the gradient of 1",
                         "The result is the last node: tape[n - 1].grad = 1." },
        [FORWARD] = { "from front to back", "A node may hand on its grad only when it is whole, so "
                      "begin with the last node and end with the first." },
        [NOT_CLEARED] = { "old gradients are kept",
                          "Each call begins anew: set every grad to 0 first." },
        [NO_CHAIN] = { "no chain rule", "A share is the slope times the grad of the node itself. "
                       "Here it is the slope alone." },
        [FIRST_OPERAND] = { "only the first operand", "The second operand gets its share, too." },
        [SEED_VALUE] = { "the last gradient is its value", "The last node changes with itself, one "
                         "to one: its grad is 1, whatever its value." },
        [ONLY_A_OVERWRITTEN] = { "a share of a overwrites the one before", "A node that is used "
                                 "twice gets two shares: add them with +=, for a as for b." },
        [ONLY_B_OVERWRITTEN] = { "a share of b overwrites the one before", "A node that is used "
                                 "twice gets two shares: add them with +=, for b as for a." },
        [ONLY_B_OVERWRITTEN_TOO] = { "a share of b overwrites the one before, even that "
                                      "of no operand",
                                     "A node that is used twice gets two shares: add them with +=. "
                                     "Here a tanh writes 0 into node 0, too, because its b is 0." },
        [VALUES_HANDED_ON] = { "values are handed on", "A share is the slope times the node's "
                               "grad, and not times its value." },
        [LAST_SKIPPED] = { "no share arrives", "Only the last node has a gradient. The walk begins "
                           "with tape[n - 1], and a share is the slope times the grad of the node, "
                           "not of its operand." },
        [EVERY_GRAD_1] = { "every grad starts at 1", "Only the last node begins with 1, the slope "
                           "of the result itself. All others begin with 0." },
        [SLOPES_EXCHANGED] = { "the slopes of a and b exchanged",
                               "a gets the node's grad times da, and b times db." },
    },
};

static const lesson_task *const tasks[] = { &slopes_task, &backward_task };
const lesson the_lesson = { tasks, sizeof tasks / sizeof *tasks, NULL, NULL };
