/* models/hf/hf_text.c - texts that grow, which become files of a folder, and the notes of an import
 * or export. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file/json.h"
#include "core/file_internal.h"
#include "folder.h"
#include "models/message.h"

void wf_hf_put_text(hf_text *t, const char *part, size_t n) {
    if (t->failed || n > SIZE_MAX / 4 - t->n) {
        t->failed = true;
        return;
    }
    if (t->n + n >= t->room) {
        size_t room = 2 * (t->n + n) + 256;
        char *more = realloc(t->text, room);
        if (!more) {
            t->failed = true;
            return;
        }
        t->text = more;
        t->room = room;
    }
    memcpy(t->text + t->n, part, n);
    t->n += n;
}

static void put_bytes(void *to, const char *bytes, size_t n) {
    wf_hf_put_text(to, bytes, n);
}

void wf_hf_put_string(hf_text *t, const char *s) {
    wf_json_quote(put_bytes, t, s);
}

void wf_hf_put_token(hf_text *t, const char *key, const char *piece) {
    wf_hf_put_text(t, ",\n  ", 4);
    wf_hf_put_string(t, key);
    wf_hf_put_text(t, ": ", 2);
    wf_hf_put_string(t, piece);
}

void wf_hf_put_as(hf_text *t, const char *format, ...) {
    char part[WF_MESSAGE];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(part, sizeof part, format, args);
    va_end(args);
    wf_hf_put_text(t, part, (size_t)n);
}

void wf_hf_put_key(hf_text *t, const char *name) {
    wf_hf_put_as(t, "%s  \"%s\": ", t->n ? ",\n" : "{\n", name);
}

void wf_hf_put_int(hf_text *t, const char *name, int64_t value) {
    wf_hf_put_key(t, name);
    wf_hf_put_as(t, "%lld", (long long)value);
}

void wf_hf_put_flag(hf_text *t, const char *name, bool value) {
    wf_hf_put_key(t, name);
    wf_hf_put_as(t, "%s", value ? "true" : "false");
}

const char *wf_hf_real_text(double value, char text[WF_REAL_TEXT]) {
    double back = value;
    for (int digits = 1; digits <= 17; digits++)
        if (wf_parse_real(wf_format_real(value, digits, text), &back) && back == value) break;
    return text;
}

void wf_hf_put_real(hf_text *t, const char *name, double value) {
    char text[WF_REAL_TEXT];
    wf_hf_put_key(t, name);
    wf_hf_put_as(t, "%s", wf_hf_real_text(value, text));
}

void wf_hf_put_row(hf_text *t, const hf_key *row, const void *c, const char *activation) {
    const void *at = (const char *)c + row->offset;
    if (row->type == HF_ACTIVATION) {
        wf_hf_put_key(t, row->name);
        wf_hf_put_string(t, activation ? activation
                                       : wf_hf_activation_name(*(const wf_activation *)at));
    } else if (row->type == HF_FLAG)
        wf_hf_put_flag(t, row->name, *(const bool *)at);
    else if (row->type == HF_REAL)
        wf_hf_put_real(t, row->name, *(const double *)at);
    else
        wf_hf_put_int(t, row->name, *(const int64_t *)at);
}

bool wf_hf_put_file(hf_text *t, const char *name, wf_hf_put put_file, void *user, char *message) {
    bool ok =
        t->failed ? fail(message, "out of memory") : put_file(user, name, t->text, t->n, message);
    free(t->text);
    *t = (hf_text){ 0 };
    return ok;
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
