/* models/emit/plain_file.c - a file of plain C with the prefix of a model. */
#include <string.h>

#include "model_emitter.h"

/* Append a line. In code, outside comments and strings, "model" and "model_..." get the prefix. */
static void add_line(wf_text *t, const char *line, const char *name, bool *in_comment) {
    bool in_string = false;
    for (const char *at = line; *at;) {
        size_t n = 1;
        if (*in_comment || strncmp(at, "/*", 2) == 0) {
            const char *end = strstr(at, "*/");
            *in_comment = !end;
            n = end ? (size_t)(end + 2 - at) : strlen(at);
        } else if (wf_is_word(*at)) {
            while (wf_is_word(at[n])) n++;
            if (!in_string && strncmp(at, "model", 5) == 0 && (n == 5 || at[5] == '_')) {
                wf_text_puts(t, name);
                at += 5;
                n -= 5;
            }
        } else if (*at == '"') {
            in_string = !in_string;
        }
        wf_text_add(t, at, n);
        at += n;
    }
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
