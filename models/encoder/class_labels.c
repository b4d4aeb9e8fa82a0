/* models/encoder/class_labels.c - the labels of classes. A model's file stores them as one text
 * with a label on each line, as many as the head has classes. */
#include <string.h>

#include "models/encoder.h"
#include "models/file/model_file.h"
#include "models/message.h"
#include "models/model_internal.h"

bool wf_class_name_ok(const char *line, size_t bytes) {
    return line && bytes > 0 && bytes <= WF_MOST_LABEL && !memchr(line, '\n', bytes) &&
           !memchr(line, '\r', bytes) && !memchr(line, '\t', bytes);
}

const char *wf_class_next(const char *text, const char *name) {
    if (!name) return text;
    const char *end = strchr(name, '\n');
    return end ? end + 1 : NULL;
}

bool wf_class_names_fit(const char *text, int64_t classes, char *message) {
    int64_t n = 0;
    for (const char *name = NULL; (name = wf_class_next(text, name));) {
        n++;
        if (wf_class_name_ok(name, strcspn(name, "\n"))) continue;
        return fail(message, "its label %lld has not 1 to %d bytes of one line, without TABs",
                    (long long)n, (int)WF_MOST_LABEL);
    }
    return n == classes || fail(message, "it names %lld labels, but has %lld classes", (long long)n,
                                (long long)classes);
}

bool wf_class_names_check(const wf_file *f, char *message) {
    wf_any_config config;
    const wf_encoder_config *c = (const wf_encoder_config *)&config;
    const wf_model_kind *kind = wf_config_from_file(f, &config, message);
    if (!kind) return false;
    const char *text = wf_file_meta(f, WF_CLASS_NAMES);
    bool classifies = kind == &wf_encoder_kind && c->classes;
    return !text || !classifies || wf_class_names_fit(text, c->classes, message);
}
