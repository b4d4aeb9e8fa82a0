/* tests/core/record/test_constructors.c - every function that records, with a spoilt tensor at the
 * place of each of its operands: the graph fails, and the error begins with the function's name.
 * tests/house.sh finds a function of ops.h, loss.h or attention.h without a row. */
#include <ctype.h>
#include <stdio.h>

#include "nn/nn.h"
#include "ops/elementwise/unary.h"
#include "ops/ops_internal.h"
#include "ops/update/sums.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(constructors)

enum { MOST = 7 };

typedef struct constructor {
    const char *name, *operands;
    wf_tensor *(*call)(wf_tensor *const *t);
} constructor;

#define ROW(NAME, OPERANDS, ...)                                                                   \
    static wf_tensor *of_##NAME(wf_tensor *const *t) {                                             \
        wf_tensor *part = NULL;                                                                    \
        (void)part;                                                                                \
        return __VA_ARGS__;                                                                        \
    }
#include "constructors.inc"
#undef ROW

static const constructor rows[] = {
#define ROW(NAME, OPERANDS, ...) { #NAME, OPERANDS, of_##NAME },
#include "constructors.inc"
#undef ROW
};

static const struct shape {
    char letter;
    wf_dtype dtype;
    int ndim;
    int64_t size[4];
} shapes[] = {
    { 's', WF_F32, 0, { 0 } },          { 'v', WF_F32, 1, { 3 } },
    { 'b', WF_F32, 1, { 2 } },          { 'x', WF_F32, 2, { 2, 3 } },
    { 'a', WF_F32, 2, { 3, 3 } },       { 'c', WF_F32, 3, { 2, 2, 4 } },
    { 'r', WF_F32, 3, { 2, 2, 1 } },    { 'f', WF_F32, 3, { 2, 3, 1 } },
    { 'o', WF_F32, 3, { 3, 2, 4 } },    { 'q', WF_F32, 4, { 2, 2, 3, 4 } },
    { 'k', WF_F32, 4, { 2, 2, 1, 1 } }, { 'i', WF_I32, 1, { 2 } },
    { 'h', WF_I32, 1, { 3 } },          { 'j', WF_I32, 2, { 2, 3 } },
    { 'w', WF_F32, 1, { 480 } },        { 'z', WF_F32, 3, { 2, 2, 3 } },
    { 'e', WF_F32, 1, { 1 } },
};

/* A leaf for operand i. It is a buffer, because an update needs a leaf that can be written. */
static wf_tensor *leaf(wf_graph *g, char letter, int i) {
    char name[] = { 't', (char)('0' + i), 0 };
    for (int k = 0; k < COUNT_OF(shapes); k++)
        if (shapes[k].letter == tolower(letter))
            return wf_buffer(g, name, shapes[k].dtype, shapes[k].ndim, shapes[k].size,
                             wf_init_zeros());
    ck_abort_msg("no shape for the letter %c", letter);
    return NULL;
}

/* How an operand is spoilt. */
typedef enum spoilt { GOOD, ABSENT, FAILED, FOREIGN, UPDATE, WAYS } spoilt;

static wf_graph *another; /* graph */

static wf_tensor *spoil(wf_graph *g, spoilt how) {
    if (how == FAILED) return wf_relu(wf_find(g, "a typo"));
    if (how == FOREIGN) return wf_constant(another, 1);
    if (how == UPDATE) {
        wf_tensor *to = wf_buffer(g, "to", WF_F32, 0, NULL, wf_init_zeros());
        return wf_assign(to, wf_constant(g, 1));
    }
    return NULL;
}

/* Calls the row's function with valid operands, except for operand `at`, which is spoilt. */
static wf_tensor *call(const constructor *row, wf_graph *g, int at, spoilt how) {
    wf_tensor *t[MOST] = { 0 };
    for (int i = 0; row->operands[i]; i++) t[i] = leaf(g, row->operands[i], i);
    if (how != GOOD) t[at] = spoil(g, how);
    ck_assert(wf_ok(g));
    return row->call(t);
}

TEST_ROWS(records_what_is_good, COUNT_OF(rows)) {
    wf_graph *g = wf_graph_new(NULL);
    wf_tensor *y = call(&rows[_i], g, 0, GOOD);
    ck_assert_msg(wf_ok(g), "%s: %s", rows[_i].name, wf_error(g));
    ck_assert(y->graph == g && y->id >= 0);
    wf_graph_free(g);
}

TEST_ROWS(fails_at_what_is_spoilt, COUNT_OF(rows)) {
    const constructor *row = &rows[_i];
    char prefix[64];
    const char *way = strstr(row->name, "__"); /* of several rows of one function */
    snprintf(prefix, sizeof prefix, "%.*s: ", way ? (int)(way - row->name) : 50, row->name);
    for (int at = 0; row->operands[at]; at++)
        for (int how = ABSENT; how < WAYS; how++) {
            wf_graph *g = wf_graph_new(NULL);
            another = wf_graph_new(NULL);
            bool alone = row->operands[1] == '\0', optional = isupper(row->operands[at]);
            wf_tensor *y = call(row, g, at, (spoilt)how);
            /* If the only operand belongs to no graph or to another one, the call cannot know g. */
            bool known = !(alone && how <= FOREIGN) && !(optional && how == ABSENT);
            ck_assert_msg(!known || !wf_ok(g), "%s takes operand %d, spoilt in way %d", row->name,
                          at, how);
            ck_assert_msg(!known || y->id == -1, "%s: operand %d, way %d: no poison", row->name, at,
                          how);
            ck_assert_msg(!known || strncmp(wf_error(g), prefix, strlen(prefix)) == 0,
                          "%s: operand %d, way %d: \"%s\"", row->name, at, how, wf_error(g));
            wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = &y, .n_fetch = 1 });
            ck_assert(!known || !wf_plan_ok(p));
            wf_plan_free(p);
            wf_graph_free(g);
            wf_graph_free(another);
        }
}
