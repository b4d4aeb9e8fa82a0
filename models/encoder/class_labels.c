/* models/encoder/class_labels.c - the labels of classes. See class_labels.h. */
#include "class_labels.h"

#include <string.h>

#include "models/encoder.h"
#include "models/file/model_file.h"
#include "models/message.h"
#include "models/model_internal.h"

bool wf_class_name_ok(const char *name, size_t bytes) {
    return bytes > 0 && bytes <= WF_MOST_LABEL && !memchr(name, '\n', bytes) &&
           !memchr(name, '\r', bytes) && !memchr(name, '\t', bytes);
}

const char *wf_class_next(const char **rest, size_t *bytes) {
    const char *name = *rest;
    if (!name) return NULL;
    *bytes = strcspn(name, "\n");
    *rest = name[*bytes] ? name + *bytes + 1 : NULL;
    return name;
}

bool wf_class_names_fit(const char *text, int64_t classes, char *message) {
    const char *rest = text, *name;
    size_t bytes;
    int64_t n = 0;
    while ((name = wf_class_next(&rest, &bytes))) {
        n++;
        if (wf_class_name_ok(name, bytes)) continue;
        return fail(message, "its label %lld has not 1 to %d bytes of one line, without TABs",
                    (long long)n, (int)WF_MOST_LABEL);
    }
    return n == classes ||
           fail(message, "it has %lld labels for %lld classes", (long long)n, (long long)classes);
}

bool wf_class_names_in(const wf_file *f, const char **text, char *message) {
    wf_any_config config;
    const wf_encoder_config *c = (const wf_encoder_config *)&config;
    const wf_model_kind *kind = wf_config_from_file(f, &config, message);
    bool classifies = kind == &wf_encoder_kind && c->classes;
    *text = classifies ? wf_file_meta(f, WF_CLASS_NAMES) : NULL;
    return kind && (!*text || wf_class_names_fit(*text, c->classes, message));
}
