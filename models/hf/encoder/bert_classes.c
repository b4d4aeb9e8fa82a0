/* models/hf/encoder/bert_classes.c - the labels of a classification head: `id2label` of
 * config.json. In a model's file they are one text with a label on each line. */
#include <stdlib.h>
#include <string.h>

#include "bert_family.h"
#include "models/message.h"
#include "models/model_internal.h"

enum { LABEL = WF_MOST_LABEL + 1 };

/* ---- read ------------------------------------------------------------------------------------ */

static bool read_label(const hf_object *o, const hf_object *labels, int64_t i, char label[LABEL],
                       char *message) {
    char key[24];
    snprintf(key, sizeof key, "%lld", (long long)i);
    const hf_value *v = wf_hf_find(labels, key);
    return (v && wf_hf_string(v, label, LABEL) && wf_class_name_ok(label, strlen(label))) ||
           fail(message, "%s: 'id2label' has no label of one line for %s, of at most %d bytes",
                o->file, key, (int)WF_MOST_LABEL);
}

static bool has_label(const wf_text *t, const char *label) {
    const char *text = t->length ? t->at : NULL;
    size_t n = strlen(label);
    for (const char *name = NULL; (name = wf_class_next(text, name));)
        if (strcspn(name, "\n") == n && memcmp(name, label, n) == 0) return true;
    return false;
}

static bool put_label(wf_text *t, const hf_object *o, const char *label, char *message) {
    if (has_label(t, label))
        return fail(message, "%s: 'id2label' has '%.60s' twice", o->file, label);
    if (t->length) wf_text_puts(t, "\n");
    wf_text_puts(t, label);
    return !t->lacks || fail(message, "out of memory");
}

static bool read_all(const hf_object *o, const hf_object *labels, int64_t classes, wf_text *t,
                     char *message) {
    char label[LABEL];
    if (labels && labels->n != classes)
        return fail(message, "%s: 'id2label' has %d labels for %lld classes", o->file, labels->n,
                    (long long)classes);
    for (int64_t i = 0; i < classes; i++) {
        if (!labels)
            snprintf(label, sizeof label, "LABEL_%lld", (long long)i);
        else if (!read_label(o, labels, i, label, message))
            return false;
        if (!put_label(t, o, label, message)) return false;
    }
    return true;
}

bool wf_hf_bert_read_classes(const hf_object *o, int64_t classes, wf_hf *out, char *message) {
    static const hf_constant single = { "problem_type", "\"single_label_classification\"", NULL };
    const hf_value *type = wf_hf_find(o, single.name);
    hf_object labels = { 0 };
    wf_text t = { 0 };
    if (!classes) return true;
    if (classes < 2 || classes > WF_MOST_CLASSES)
        return fail(message, "%s: its head has %lld outputs, which are no classes", o->file,
                    (long long)classes);
    if (type && !wf_hf_check_constant(o, type, &single, message)) return false;
    bool named = wf_hf_find(o, "id2label");
    bool ok = (!named || wf_hf_object_in(&labels, o, "id2label", message)) &&
              read_all(o, named ? &labels : NULL, classes, &t, message);
    wf_hf_object_free(&labels);
    if (!ok) {
        free(t.at);
        return false;
    }
    out->class_names = t.at;
    return true;
}

/* ---- written --------------------------------------------------------------------------------- */

/* Writes the label of class i. Without labels it is LABEL_i, as in transformers. */
static void put_name(wf_text *t, const char *name, int64_t i) {
    char label[LABEL];
    if (name)
        snprintf(label, LABEL, "%.*s", (int)strcspn(name, "\n"), name);
    else
        snprintf(label, LABEL, "LABEL_%lld", (long long)i);
    wf_hf_put_string(t, label);
}

bool wf_hf_bert_put_classes(wf_text *t, const char *names, int64_t classes, char *message) {
    const char *name = NULL;
    if (!classes) return true;
    if (names && !wf_class_names_fit(names, classes, message)) return false;
    wf_hf_put_key(t, "id2label");
    for (int64_t i = 0; i < classes; i++) {
        name = wf_class_next(names, name);
        wf_hf_put_as(t, "%s\"%lld\": ", i ? ", " : "{", (long long)i);
        put_name(t, name, i);
    }
    wf_hf_put_as(t, "}");
    wf_hf_put_key(t, "label2id");
    for (int64_t i = 0; i < classes; i++) {
        name = wf_class_next(names, i ? name : NULL);
        wf_hf_put_as(t, i ? ", " : "{");
        put_name(t, name, i);
        wf_hf_put_as(t, ": %lld", (long long)i);
    }
    wf_hf_put_as(t, "}");
    wf_hf_put_name(t, "problem_type", "single_label_classification");
    return true;
}
