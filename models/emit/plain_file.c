/* models/emit/plain_file.c - copies an embedded C file with the prefix of a model; and the
 * functions that read a file of weights. */
#include <string.h>

#include "text_emitter.h"

/* The length of the token at `at`: a comment, or its part in this line; a word; or one
 * character. */
static size_t end_of_part(const char *at, bool *in_comment) {
    size_t n = 1;
    if (*in_comment || strncmp(at, "/*", 2) == 0) {
        const char *end = strstr(at, "*/");
        *in_comment = !end;
        return end ? (size_t)(end + 2 - at) : strlen(at);
    }
    while (wf_is_word(*at) && wf_is_word(at[n])) n++;
    return n;
}

/* Append a line. In code, outside comments and strings, `name` replaces "model" in the words
 * "model" and "model_...". */
static void add_line(wf_text *t, const char *line, const char *name, bool *in_comment) {
    bool in_string = false;
    for (const char *at = line; *at;) {
        bool is_code = !*in_comment && !in_string && wf_is_word(*at);
        size_t n = end_of_part(at, in_comment);
        if (is_code && strncmp(at, "model", 5) == 0 && (n == 5 || at[5] == '_')) {
            wf_text_puts(t, name);
            at += 5;
            n -= 5;
        } else if (*at == '"') {
            in_string = !in_string;
        }
        wf_text_add(t, at, n);
        at += n;
    }
}

size_t wf_code_length(const char *plans) {
    const char *values = strstr(plans, WF_VALUES_TITLE);
    return values ? (size_t)(values - plans) : strlen(plans);
}

bool wf_plain_has_word(const char *const *lines, const char *name) {
    bool in_comment = false;
    for (; *lines; lines++)
        for (const char *at = *lines; *at;) {
            bool is_code = !in_comment && wf_is_word(*at);
            size_t n = end_of_part(at, &in_comment);
            if (is_code && strncmp(at, name, n) == 0 && !name[n]) return true;
            at += n;
        }
    return false;
}

void wf_add_plain_file(wf_text *t, const char *const *lines, const char *name) {
    bool in_comment = false;
    for (; *lines; lines++) {
        if (**lines)
            add_line(t, *lines, name, &in_comment);
        else
            wf_text_puts(t, "\n");
    }
}

/* FILE_NAME is the last part of `path`, since the program looks in its own folder. */
void wf_write_weights_reader(wf_text *t, const char *path, const char *name) {
    const char *folder = path ? strrchr(path, '/') : NULL;
    wf_text_puts(t, "#define FILE_NAME ");
    if (path)
        wf_write_string(t, folder ? folder + 1 : path);
    else
        wf_text_print(t, "\"%s.weights\"", name);
    wf_text_puts(t, "\n");
    wf_add_plain_file(t, wf_weights_text, name);
}
