/* tools/train/identity.c - identifies the training that a model's file belongs to. See
 * identity.h. */
#include "identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/random.h"
#include "settings/settings.h"

/* True if this key is part of the identity. The position ("train.step") is not. */
static bool defines(const char *key) {
    if (strncmp(key, "train.", 6) != 0) return strstr(key, "tokenizer.") != NULL;
    const option *o = option_find(&train_program, key + 6);
    if (o && o->stored) return true;
    static const char *const rows[] = { "train.data", "train.init", "train.freeze", "train.held" };
    for (int i = 0; i < 4; i++)
        if (strcmp(key, rows[i]) == 0) return true;
    return false;
}

static uint64_t part(wf_meta pair) {
    uint64_t key = wf_hash_bytes(0, pair.key, strlen(pair.key));
    return defines(pair.key) ? wf_hash_bytes(key, pair.value, strlen(pair.value)) : 0;
}

static const char *write_down(uint64_t sum, char text[IDENTITY_TEXT]) {
    snprintf(text, IDENTITY_TEXT, "%016" PRIx64, sum);
    return text;
}

const char *identity_of(const wf_meta *pairs, int n, char text[IDENTITY_TEXT]) {
    uint64_t sum = 0;
    for (int i = 0; i < n; i++) sum += part(pairs[i]);
    return write_down(sum, text);
}

/* True if the text is the identity of a training: 16 hexadecimal digits. Older files have none, and
 * a damaged file may have any text there. */
static bool is_identity(const char *text) {
    return text && strlen(text) == IDENTITY_TEXT - 1 &&
           strspn(text, "0123456789abcdef") == IDENTITY_TEXT - 1;
}

const char *identity_in(const wf_file *f, char text[IDENTITY_TEXT]) {
    const char *stored = wf_file_meta(f, IDENTITY_KEY);
    uint64_t sum = 0;
    if (is_identity(stored)) return strcpy(text, stored);
    for (int i = 0; i < wf_file_meta_count(f); i++) sum += part(wf_file_meta_at(f, i));
    return write_down(sum, text);
}

bool identity_same(const wf_file *a, const wf_file *b) {
    char texts[2][IDENTITY_TEXT];
    return wf_file_ok(a) && wf_file_ok(b) &&
           strcmp(identity_in(a, texts[0]), identity_in(b, texts[1])) == 0;
}
