/* ops/elementwise/integer.c - elementwise ops on i32: ids, counts, positions. An op that accepts
 * i32 has a row in integer.inc; its form for reals is a row of unary.inc or binary.inc. */
#include "integer.h"

#include "ops/base/op_base.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"

/* x reduced modulo 2^32 to the range of i32. Rows of integer.inc call it here, and in emitted files
 * a function of this name. */
static inline int32_t wf_wrap(uint32_t x) {
    return x <= INT32_MAX ? (int32_t)x : (int32_t)(x - 0x80000000u) + INT32_MIN;
}

/* floor(a / b) for b != 0; -2^31 / -1 wraps around. */
static inline int32_t floor_divided(int32_t a, int32_t b) {
    int64_t quotient = (int64_t)a / b;
    return wf_wrap((uint32_t)(quotient - ((int64_t)a % b != 0 && (a < 0) != (b < 0))));
}

/* ---- loops: false for a division by 0 -------------------------------------------------------- */

typedef bool loop_of_two(const wf_runs *r);
typedef void loop_of_one(int64_t n, const int32_t *xs, int32_t *y);

/* Calls loop(n, a, step of a, b, step of b, y). A run's steps are 0 or 1, and are passed as
 * constants where a's is 1, so that compilers can use vectors. */
#define BY_STEPS(loop, n, a, step_a, b, step_b, y)                                                 \
    ((step_a) && (step_b) ? loop(n, a, 1, b, 1, y)                                                 \
     : (step_a)           ? loop(n, a, 1, b, 0, y)                                                 \
                          : loop(n, a, 0, b, step_b, y))

#define LOOP(name, fails, value)                                                                   \
    static inline __attribute__((always_inline)) bool loop_##name(                                 \
        int64_t n, const int32_t *as, int64_t sa, const int32_t *bs, int64_t sb, int32_t *y) {     \
        const int32_t first_a = *as, first_b = *bs;                                                \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const int32_t a = sa ? as[i] : first_a, b = sb ? bs[i] : first_b;                      \
            if (fails) return false;                                                               \
            y[i] = value;                                                                          \
        }                                                                                          \
        return true;                                                                               \
    }                                                                                              \
    static bool name##_integers(const wf_runs *r) {                                                \
        return BY_STEPS(loop_##name, r->n, r->in[0], r->step[0], r->in[1], r->step[1], r->out);    \
    }
#define INTEGER(name, value) LOOP(name, false, value)
#define ENTIRE(name, value) LOOP(name, b == 0, value)
#define INTEGER_UNARY(name, value)                                                                 \
    static void name##_integer(int64_t n, const int32_t *xs, int32_t *y) {                         \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const int32_t x = xs[i];                                                               \
            y[i] = value;                                                                          \
        }                                                                                          \
    }
#include "integer.inc"

/* The loop of each row; its value as text, for emitted files; whether it divides. */
#define INTEGER_UNARY(name, value)
#define INTEGER(name, value) [WF_BINARY_##name] = { name##_integers, #value, false },
#define ENTIRE(name, value) [WF_BINARY_##name] = { name##_integers, #value, true },
static const struct {
    loop_of_two *loop;
    const char *value;
    bool entire;
} of_two[WF_BINARY_COUNT] = {
#include "integer.inc"
};

#define INTEGER_UNARY(name, value) [WF_UNARY_##name] = { name##_integer, #value },
#define INTEGER(name, value)
#define ENTIRE INTEGER
static const struct {
    loop_of_one *loop;
    const char *value;
} of_one[WF_UNARY_COUNT] = {
#include "integer.inc"
};

bool wf_emit_binary(wf_emitter *e, const wf_call *c, enum wf_binary f, const char *value) {
    if (c->out[0].dtype != WF_I32) return wf_emit_choice(e, c, value);
    if (of_two[f].entire && !wf_emit_fails_if(e, c, "b == 0")) return false;
    return wf_emit_choice(e, c, of_two[f].value);
}

bool wf_emit_unary(wf_emitter *e, const wf_call *c, enum wf_unary f, const char *value) {
    return wf_emit_choice(e, c, c->out[0].dtype == WF_I32 ? of_one[f].value : value);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

bool wf_takes_integers(enum wf_binary f) {
    return of_two[f].loop != NULL;
}

bool wf_takes_integer(enum wf_unary f) {
    return of_one[f].loop != NULL;
}

bool wf_run_integers(const wf_call *c, enum wf_binary f, int64_t task) {
    wf_runs r;
    for (wf_runs_start(&r, c, task, true); wf_runs_next(&r);)
        if (!of_two[f].loop(&r)) return wf_fail(c, "an integer is divided by 0");
    return true;
}

bool wf_run_integer(const wf_call *c, enum wf_unary f, int64_t task) {
    wf_runs r;
    for (wf_runs_start(&r, c, task, false); wf_runs_next(&r);) of_one[f].loop(r.n, r.in[0], r.out);
    return true;
}

bool wf_run_integer_where(const wf_call *c, int64_t task) {
    wf_view condition = { .dtype = c->in[0].dtype };
    wf_runs r;
    for (wf_runs_start(&r, c, task, true); wf_runs_next(&r);) {
        const int32_t *a = r.in[1], *b = r.in[2];
        int32_t *y = r.out;
        condition.data = (void *)(uintptr_t)r.in[0];
        for (int64_t i = 0; i < r.n; i++)
            y[i] = wf_get(&condition, i * r.step[0]) != 0 ? a[i * r.step[1]] : b[i * r.step[2]];
    }
    return true;
}
