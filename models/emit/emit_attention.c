/* models/emit/emit_attention.c - the plan that computes a model's attention weights for a given
 * output, and the functions that return pointers to them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_emitter.h"
#include "models/message.h"
#include "models/model_internal.h"

enum { VALUE_NAME = 96 };

/* Give a value a label, unless it has one: the emitted functions are named after labels. The label
 * stays in the graph. */
static wf_tensor *named(wf_tensor *t, const char *name) {
    return t->label ? t : wf_named(t, name);
}

wf_plan *wf_attention_values_plan(model_emitter *e) {
    const wf_model *m = e->model;
    wf_tensor *feed[3] = { m->tgt, m->src, m->src_length };
    int n = 0;
    int64_t most = 1;
    for (int i = 0; i < m->n_maps; i++) most += m->maps[i].layers;
    wf_tensor **fetch = calloc((size_t)most, sizeof *fetch);
    if (!fetch) return NULL;
    for (int i = 0; i < m->n_maps; i++) {
        for (int64_t layer = 0; layer < m->maps[i].layers; layer++) {
            char name[VALUE_NAME];
            snprintf(name, sizeof name, "weights_of_%s_%lld", m->maps[i].name, (long long)layer);
            fetch[n++] = named(m->maps[i].weights[layer], name);
        }
    }
    fetch[n++] = named(m->log_probs, "log_probs");
    wf_plan *p = wf_plan_new(
        m->graph,
        &(wf_plan_options){ .fetch = fetch, .n_fetch = n, .feed = feed, .n_feed = m->src ? 3 : 1 });
    free(fetch);
    return p;
}

/* Write to `to` the name of the C function that returns a pointer to a value. False with message:
 * the value is not contiguous, so the plans have no such function. */
static bool see(const model_emitter *e, const wf_tensor *t, const char *plans,
                char to[2 * VALUE_NAME], char *message) {
    char name[VALUE_NAME], call[2 * VALUE_NAME];
    wf_identifier(t->label, name, sizeof name);
    snprintf(to, 2 * VALUE_NAME, "%.40s_see_%s", e->name, name);
    snprintf(call, sizeof call, "%.150s(", to);
    return strstr(plans, call) || fail(message, "%s does not lie in one piece", t->label);
}

static void write_reading(model_emitter *e) {
    wf_text *t = &e->text;
    wf_text_print(t,
                  "enum { %s_ATTENDED = %n }; /* tokens that the decoder reads at once */\n\n"
                  "static int read_attention(%s *m, const search *s, const int32_t *tokens) {\n"
                  "    m->tgt = tokens;\n",
                  e->name, e->attended, e->name);
    wf_text_puts(t, e->model->src ? "    m->src = s->source;\n    m->src_length = &s->n_source;\n"
                                  : "    (void)s;\n");
    wf_text_print(t, "    return %s_attention(m);\n}\n\n", e->name);
}

bool wf_write_attention(model_emitter *e, const char *plans, char *message) {
    wf_text *t = &e->text;
    const wf_model *m = e->model;
    char name[2 * VALUE_NAME];
    write_reading(e);
    wf_text_print(t,
                  "/* [heads, queries, keys]: weights of a layer of the model's attention; a null\n"
                  " * pointer: there is no such layer. */\n"
                  "const float *%s_weights(const %s *m, int map, int layer) {\n",
                  e->name, e->name);
    for (int i = 0; i < m->n_maps; i++) {
        for (int layer = 0; layer < m->maps[i].layers; layer++) {
            if (!see(e, m->maps[i].weights[layer], plans, name, message)) return false;
            wf_text_print(t, "    if (map == %d && layer == %d) return %s(m); /* %s */\n", i, layer,
                          name, m->maps[i].name);
        }
    }
    if (!see(e, m->log_probs, plans, name, message)) return false;
    wf_text_print(t,
                  "    return 0;\n}\n\n"
                  "/* [tokens, ids]: log-probabilities of the token after each one. */\n"
                  "const float *%s_log_probs(const %s *m) {\n    return %s(m);\n}\n\n",
                  e->name, e->name, name);
    wf_add_plain_file(t, wf_attention_text, e->name);
    return true;
}
