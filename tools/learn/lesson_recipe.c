/* tools/learn/lesson_recipe.c - computes layers step by step, and finds the step that a learner
 * has wrong. See lesson_recipe.h. */
#include "lesson_recipe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lesson_blocks.h"

enum { VALUES = RECIPE_INPUTS + RECIPE_STEPS };

typedef struct value {
    double *x; /* [rows, D] */
    int rows;
} value;

/* ---- computing ------------------------------------------------------------------------------- */

static bool attend(const sample *s, const recipe *c, const recipe_step *p, value q, value kv,
                   double *weights, double *y) {
    struct attention_weights w = attention_of(s, p->weights, 0);
    const float *keep = s->in[c->keep];
    float *mask = calloc((size_t)(q.rows * kv.rows) + 1, sizeof *mask);
    bool ok = mask && (p->mask != LOOKS_AT_TOKENS || kv.rows == s->count[c->keep]);
    for (int i = 0; ok && i < q.rows * kv.rows; i++) {
        int row = i / kv.rows, column = i % kv.rows;
        mask[i] = 1;
        if (p->mask == LOOKS_BACK) mask[i] = column <= row;
        if (p->mask == LOOKS_AT_TOKENS) mask[i] = keep[column];
    }
    if (ok)
        block_heads(&w, q.x, q.rows, kv.x, kv.rows, mask, s->size['D'], s->size['H'], 0, weights,
                    y);
    free(mask);
    return ok;
}

static bool take_step(const sample *s, const recipe *c, const recipe_step *p, const value *v,
                      double *shown, value *to) {
    int D = s->size['D'];
    value a = v[p->a], b = v[p->b];
    *to = (value){ room((int64_t)a.rows * D), a.rows };
    if (p->kind == STEP_ATTEND) return attend(s, c, p, a, b, p->shown ? shown : NULL, to->x);
    if (p->kind == STEP_ADD) {
        for (int i = 0; a.rows == b.rows && i < a.rows * D; i++) to->x[i] = a.x[i] + b.x[i];
        return a.rows == b.rows;
    }
    struct norm_weights norm = norm_of(s, p->weights, 0);
    struct ff_weights ff = ff_of(s, p->weights, 0);
    if (p->kind == STEP_NORM) block_norm(&norm, a.x, a.rows, D, 0, to->x);
    if (p->kind == STEP_FF) block_ff(&ff, a.x, a.rows, D, s->size['F'], 0, to->x);
    return true;
}

bool recipe_compute(const sample *s, const recipe *c, double *const *out, int n_out) {
    value v[VALUES] = { { NULL, 0 } };
    bool ok = true;
    int last = c->inputs + c->steps - 1;
    for (int i = 0; i < c->inputs; i++) {
        int k = c->in[i].array;
        v[i] = (value){ doubles_of(s->in[k], s->count[k]), s->size[(unsigned char)c->in[i].rows] };
    }
    /* The attention weights begin as NaN, because their step may be left out. */
    int64_t looks = (int64_t)s->size['H'] * s->size['T'] * s->size['S'];
    for (int64_t i = 0; n_out > 1 && i < looks; i++) out[0][i] = NAN;
    for (int i = 0; ok && i < c->steps; i++)
        ok = take_step(s, c, &c->step[i], v, out[0], &v[c->inputs + i]);
    ok = ok && v[last].rows == v[0].rows;
    if (ok)
        memcpy(out[n_out - 1], v[last].x, (size_t)(v[last].rows * s->size['D']) * sizeof(double));
    for (int i = 0; i <= last; i++) free(v[i].x);
    return ok;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* 1: these steps give the learner's numbers; 0: they do not; -1: sizes forbid them. */
static int recipe_explains(const result *r, const recipe *c) {
    double *out[LESSON_OUTPUTS] = { NULL };
    for (int k = 0; k < r->n_out; k++) out[k] = room(r->count[k]);
    int answer = recipe_compute(&r->s, c, out, r->n_out) ? numbers_explain(r, out) : -1;
    for (int k = 0; k < r->n_out; k++) free(out[k]);
    return answer;
}

static bool explains_all(const results *r, const recipe *c) {
    if (recipe_explains(first_wrong(r), c) != 1) return false;
    for (int i = 0; i < r->n; i++)
        if (recipe_explains(&r->of[i], c) == 0) return false;
    return true;
}

/* ---- changes --------------------------------------------------------------------------------- */

static const char *name_of(const recipe *c, int v) {
    return v < c->inputs ? c->in[v].name : c->step[v - c->inputs].name;
}

/* Tries recipes in which one step reads another value. Sums are tried last, because a norm of x + x
 * is a norm of x. */
static bool find_other_value(const results *r, const recipe *right, bool sums, finding *f) {
    for (int i = 0; i < right->steps; i++) {
        if (sums != (right->step[i].kind == STEP_ADD)) continue;
        for (int side = 0; side < 2; side++) {
            bool two = right->step[i].kind == STEP_ATTEND || right->step[i].kind == STEP_ADD;
            for (int v = 0; v < right->inputs + i && (side == 0 || two); v++) {
                recipe c = *right;
                int *slot = side == 0 ? &c.step[i].a : &c.step[i].b, was = *slot;
                *slot = v;
                if (v == was || !explains_all(r, &c)) continue;
                snprintf(f->name, sizeof f->name, "%s is made of %s", c.step[i].name,
                         name_of(&c, v));
                snprintf(f->sentence, sizeof f->sentence,
                         "Where %s is made, %s is read in the place of %s.", c.step[i].name,
                         name_of(&c, v), name_of(&c, was));
                return true;
            }
        }
    }
    return false;
}

/* Tries recipes in which all readers of a value read an earlier value, so that the steps between
 * the two are left out. */
static bool find_left_out(const results *r, const recipe *right, finding *f) {
    for (int out = right->inputs; out < right->inputs + right->steps; out++) {
        for (int v = 0; v < out; v++) {
            recipe c = *right;
            for (int i = 0; i < c.steps; i++) {
                if (c.step[i].a == out) c.step[i].a = v;
                if (c.step[i].b == out) c.step[i].b = v;
            }
            if (!explains_all(r, &c)) continue;
            snprintf(f->name, sizeof f->name, "%s is not used", name_of(&c, out));
            snprintf(f->sentence, sizeof f->sentence,
                     "These are the numbers if %s stands where %s is to be read.", name_of(&c, v),
                     name_of(&c, out));
            return true;
        }
    }
    return false;
}

/* Tries recipes with one more step, which adds an operand of a sum to that sum again. */
static bool find_twice(const results *r, const recipe *right, finding *f) {
    for (int i = 0; i < right->steps; i++) {
        if (right->step[i].kind != STEP_ADD || right->steps == RECIPE_STEPS) continue;
        for (int side = 0; side < 2; side++) {
            recipe c = *right;
            int sum = c.inputs + i, twice = side == 0 ? c.step[i].a : c.step[i].b;
            memmove(&c.step[i + 1], &c.step[i], (size_t)(c.steps - i) * sizeof *c.step);
            c.steps++;
            for (int k = i + 1; k < c.steps; k++) {
                if (c.step[k].a >= sum) c.step[k].a++;
                if (c.step[k].b >= sum) c.step[k].b++;
            }
            c.step[i + 1].a = sum;
            c.step[i + 1].b = twice;
            if (!explains_all(r, &c)) continue;
            snprintf(f->name, sizeof f->name, "%s is added twice", name_of(right, twice));
            snprintf(f->sentence, sizeof f->sentence, "In %s it is to be added once.",
                     right->step[i].name);
            return true;
        }
    }
    return false;
}

/* True if r is explained by pre-norm in one sublayer, v + f(norm(v)), where the exercise asks for
 * post-norm, norm(v + f(v)). The steps f, sum, norm then become norm, f, sum. */
static bool find_pre_norm(const results *r, const recipe *right, finding *f) {
    for (int i = 0; i + 2 < right->steps; i++) {
        const recipe_step *part = &right->step[i];
        int v = part[1].a, made = right->inputs + i;
        if (part[1].kind != STEP_ADD || part[2].kind != STEP_NORM || part->a != v) continue;
        recipe c = *right;
        c.step[i] = part[2];
        c.step[i].a = v;
        c.step[i + 1] = *part;
        c.step[i + 1].a = made;
        if (part->kind == STEP_ATTEND && part->b == v) c.step[i + 1].b = made;
        c.step[i + 2] = part[1];
        c.step[i + 2].a = v;
        c.step[i + 2].b = made + 1;
        if (!explains_all(r, &c)) continue;
        snprintf(f->name, sizeof f->name, "norm before %s instead of after", part->name);
        snprintf(f->sentence, sizeof f->sentence,
                 "This part is x + f(norm(x)), where x is %s. It is asked for as norm(x + f(x)).",
                 name_of(right, v));
        return true;
    }
    return false;
}

static bool find_other_mask(const results *r, const recipe *right, finding *f) {
    static const char *const words[] = { "no mask", "the causal mask", "the mask of padding" };
    for (int i = 0; i < right->steps; i++) {
        for (step_mask mask = LOOKS_EVERYWHERE; mask <= LOOKS_AT_TOKENS; mask++) {
            recipe c = *right;
            step_mask was = c.step[i].mask;
            c.step[i].mask = mask;
            if (c.step[i].kind != STEP_ATTEND || mask == was || !explains_all(r, &c)) continue;
            snprintf(f->name, sizeof f->name, "%s with %s", c.step[i].name, words[mask]);
            snprintf(f->sentence, sizeof f->sentence, "It is made with %s.", words[was]);
            return true;
        }
    }
    return false;
}

bool find_step(const results *r, finding *f) {
    const recipe *c = r->task->steps;
    return c &&
           (find_pre_norm(r, c, f) || find_other_value(r, c, false, f) || find_left_out(r, c, f) ||
            find_other_value(r, c, true, f) || find_twice(r, c, f) || find_other_mask(r, c, f));
}
