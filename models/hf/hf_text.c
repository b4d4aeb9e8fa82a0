/* models/hf/hf_text.c - texts that grow, which become files of a folder, and the notes of an import. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file/json.h"
#include "folder.h"

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
