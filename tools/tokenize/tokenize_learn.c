/* tools/tokenize/tokenize_learn.c - learns a tokenizer.json from lines; see tokenize_learn.h. */
#include "tokenize_learn.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/op.h"
#include "tools/cli/output.h"
#include "tools/data/lines.h"

typedef struct reader {
    lines in;
    char message[WF_MESSAGE]; /* why a line could not be read */
} reader;

static int next_line(void *from, const char **line, size_t *bytes) {
    reader *r = from;
    char *text;
    switch (lines_next(&r->in, true, &text)) {
    case LINE_READ:
        *line = text;
        *bytes = r->in.length;
        return 1;
    case LINE_TOO_LONG:
        snprintf(r->message, sizeof r->message, "line %" PRId64 " is longer than a megabyte",
                 r->in.number + 1);
        return -1;
    case LINE_FAILED:
        snprintf(r->message, sizeof r->message, "it can't be read: %.200s", lines_failure(&r->in));
        return -1;
    default:
        return 0;
    }
}

/* The text to add to a message of the library: which option helps. "": none does. */
static const char *option_for(const char *message) {
    if (strstr(message, "but this text is enough for"))
        return ": lower --vocab-size or give more text";
    if (strncmp(message, "vocab_size", 10) == 0) return ": raise --vocab-size";
    return "";
}

static void write_text(const program *p, const char *path, const char *text) {
    char message[WF_MESSAGE];
    output out;
    if (!output_open(&out, path, message)) fail(p, "%s", message);
    fputs(text, out.stream);
    if (!output_close(&out, message)) fail(p, "%s", message);
}

void tokenizer_learn(const program *p, const wf_json_learn_options *o, const char *input,
                     const char *path) {
    const char *name = input ? input : "stdin";
    char message[WF_MESSAGE];
    reader r = { .message = "" };
    if (!lines_open(&r.in, input)) fail(p, "%s can't be read: %s", name, strerror(errno));
    char *json = wf_json_learn(o, next_line, &r, message);
    if (!json && *r.message) fail(p, "%s: %s", name, r.message);
    if (!json) fail(p, "%s: %s%s", name, message, option_for(message));
    lines_close(&r.in);
    write_text(p, path, json);
    free(json);
}
