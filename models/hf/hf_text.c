/* models/hf/hf_text.c - texts of JSON, which become files of a folder, and the notes of an import
 * or export. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file/json.h"
#include "core/file_internal.h"
#include "folder.h"
#include "models/message.h"

static void put_bytes(void *to, const char *bytes, size_t n) {
    wf_text_add(to, bytes, n);
}

void wf_hf_put_string(wf_text *t, const char *s) {
    wf_json_quote(put_bytes, t, s);
}

void wf_hf_put_as(wf_text *t, const char *format, ...) {
    char part[WF_MESSAGE];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(part, sizeof part, format, args);
    va_end(args);
    assert(n >= 0 && (size_t)n < sizeof part);
    wf_text_add(t, part, (size_t)n);
}

void wf_hf_put_key(wf_text *t, const char *name) {
    wf_hf_put_as(t, "%s  \"%s\": ", t->length ? ",\n" : "{\n", name);
}

void wf_hf_put_name(wf_text *t, const char *name, const char *value) {
    wf_hf_put_key(t, name);
    wf_hf_put_string(t, value);
}

void wf_hf_put_int(wf_text *t, const char *name, int64_t value) {
    wf_hf_put_key(t, name);
    wf_hf_put_as(t, "%lld", (long long)value);
}

void wf_hf_put_flag(wf_text *t, const char *name, bool value) {
    wf_hf_put_key(t, name);
    wf_hf_put_as(t, "%s", value ? "true" : "false");
}

const char *wf_hf_real_text(double value, char text[WF_REAL_TEXT]) {
    double back = value;
    for (int digits = 1; digits <= 17; digits++)
        if (wf_parse_real(wf_format_real(value, digits, text), &back) && back == value) break;
    return text;
}

void wf_hf_put_real(wf_text *t, const char *name, double value) {
    char text[WF_REAL_TEXT];
    wf_hf_put_key(t, name);
    wf_hf_put_as(t, "%s", wf_hf_real_text(value, text));
}

void wf_hf_put_type(wf_text *t, const char *architecture, const char *type) {
    wf_hf_put_key(t, "architectures");
    wf_hf_put_as(t, "[\"%s\"]", architecture);
    wf_hf_put_name(t, "model_type", type);
}

void wf_hf_put_row(wf_text *t, const hf_key *row, const void *c, const char *activation) {
    const void *at = (const char *)c + row->offset;
    char form[32] = "";
    if (row->type == HF_FEED_FORWARD) {
        const wf_transformer_config *of = &((const hf_config *)c)->c;
        wf_hf_t5_feed_forward_name(of->gated, of->activation, form);
        wf_hf_put_name(t, row->name, form);
    } else if (row->type == HF_ACTIVATION)
        wf_hf_put_name(t, row->name,
                       activation ? activation : wf_hf_activation_name(*(const wf_activation *)at));
    else if (row->type == HF_FLAG)
        wf_hf_put_flag(t, row->name, *(const bool *)at);
    else if (row->type == HF_REAL)
        wf_hf_put_real(t, row->name, *(const double *)at);
    else
        wf_hf_put_int(t, row->name, *(const int64_t *)at);
}

bool wf_hf_put_file(wf_text *t, const char *name, const wf_hf_writer *to, char *message) {
    bool ok = t->lacks ? fail(message, "out of memory")
                       : wf_hf_put_bytes(to, name, t->at, t->length, message);
    wf_text_free(t);
    return ok;
}

bool wf_hf_put_object(wf_text *t, const char *name, const wf_hf_writer *to, char *message) {
    wf_text_puts(t, "\n}\n");
    return wf_hf_put_file(t, name, to, message);
}

void wf_hf_note(char notes[WF_HF_NOTES], const char *format, ...) {
    char sentence[WF_MESSAGE];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    for (char *c = sentence; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F) *c = '?';
    size_t used = strlen(notes), more = strlen(sentence);
    if (used + more + 2 > WF_HF_NOTES) return;
    memcpy(notes + used, sentence, more);
    memcpy(notes + used + more, "\n", 2);
}
