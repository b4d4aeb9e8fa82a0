/* tools/generate/generate_stream.c - streams the text of an output: see generate.h.
 *
 * With every token the whole output is decoded again. The new text is written as far as its
 * characters are complete; bytes that may become a character wait for the next token. So the
 * written bytes are those of the finished output. */
#include <stdlib.h>

#include "core/base/utf8.h"
#include "generate.h"

/* The length of the longest beginning of text[n] that ends between characters. */
static size_t complete(const char *text, size_t n) {
    size_t back = 1;
    while (back < n && back < WF_UTF8_MOST && wf_utf8_continues(text[n - back])) back++;
    bool begins = n && wf_utf8_announced(text + n - back, WF_UTF8_MOST) > back;
    return begins ? n - back : n;
}

static void write_new(job *j, const char *text, size_t n) {
    streaming *s = &j->stream;
    if (n <= s->written) return;
    write_text(j, text + s->written, n - s->written);
    s->written = n;
    flush_or_fail(j->program, j->out, j->set->output);
}

static bool hear(void *listener, int place, int32_t token) {
    job *j = listener;
    streaming *s = &j->stream;
    (void)place; /* there is only one sentence at a time */
    s->ids[s->n++] = token;
    size_t bytes;
    char *text = line_of_ids(j->language.tokenizer[SIDE_TGT], s->ids, s->n, &bytes);
    if (!text) fail(j->program, "out of memory");
    write_new(j, text, complete(text, bytes));
    free(text);
    return true;
}

void open_stream(job *j) {
    if (!j->set->stream) return;
    j->stream.ids = calloc((size_t)j->language.max_len + 1, sizeof *j->stream.ids);
    if (!j->stream.ids) fail(j->program, "out of memory");
    j->options.heard = hear;
    j->options.listener = j;
}

void begin_stream(job *j) {
    j->stream.n = 0;
    j->stream.written = 0;
}

void end_stream(job *j, const char *text, size_t bytes) {
    write_new(j, text, bytes);
}
