/* models/file/config_file.c - a configuration as text in a file's metadata, by the field table of
 * its model kind.
 *
 * A file that names no kind holds a Transformer: it was written before there were other kinds. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file_internal.h"
#include "model_file.h"
#include "models/message.h"
#include "models/model_internal.h"

#define MODEL "weft.model" /* the key of the metadata that has the name of the model's kind */

/* ---- one field ------------------------------------------------------------------------------- */

/* A choice is an enum, and fields are read and written as int: both must have the same size. */
_Static_assert(sizeof(wf_activation) == sizeof(int) && sizeof(wf_positions) == sizeof(int), "enum");

static int64_t get(const wf_config_field *row, const void *config) {
    const char *at = (const char *)config + row->offset;
    int64_t wide;
    int32_t narrow;
    int choice;
    unsigned bits;
    bool yes;
    switch (row->type) {
    case WF_FIELD_INT32:
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    case WF_FIELD_BOOL:
        memcpy(&yes, at, sizeof yes);
        return yes;
    case WF_FIELD_CHOICE:
        memcpy(&choice, at, sizeof choice);
        return choice;
    case WF_FIELD_BIT:
        memcpy(&bits, at, sizeof bits);
        return (bits & row->bit) != 0;
    default:
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
}

static void set(const wf_config_field *row, void *config, int64_t value) {
    char *at = (char *)config + row->offset;
    int32_t narrow = (int32_t)value;
    int choice = (int)value;
    unsigned bits;
    bool yes = value != 0;
    switch (row->type) {
    case WF_FIELD_INT32:
        memcpy(at, &narrow, sizeof narrow);
        break;
    case WF_FIELD_BOOL:
        memcpy(at, &yes, sizeof yes);
        break;
    case WF_FIELD_CHOICE:
        memcpy(at, &choice, sizeof choice);
        break;
    case WF_FIELD_BIT:
        memcpy(&bits, at, sizeof bits);
        bits = yes ? bits | row->bit : bits & ~row->bit;
        memcpy(at, &bits, sizeof bits);
        break;
    default:
        memcpy(at, &value, sizeof value);
    }
}

static double *real_at(const wf_config_field *row, const void *config) {
    return (double *)((uintptr_t)config + row->offset);
}

/* ---- writing --------------------------------------------------------------------------------- */

const char *wf_field_text(const wf_config_field *row, const void *config,
                          char text[WF_CONFIG_TEXT]) {
    if (row->type == WF_FIELD_REAL) return wf_format_real(*real_at(row, config), 17, text);
    if (row->name) return row->name((int)get(row, config));
    snprintf(text, WF_CONFIG_TEXT, "%lld", (long long)get(row, config));
    return text;
}

int wf_config_to_meta(const wf_model *m, wf_config_text *text, wf_meta *meta) {
    const wf_model_kind *kind = m->kind;
    int n = 0;
    meta[n++] = (wf_meta){ MODEL, kind->name };
    for (int i = 0; i < kind->n_fields; i++)
        meta[n++] = (wf_meta){ kind->fields[i].key,
                               wf_field_text(&kind->fields[i], m->config, text->of[i]) };
    return n;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool parse_whole(const char *text, int64_t *value) {
    char *end;
    if (!isdigit((unsigned char)text[text[0] == '-']))
        return false; /* strtoll alone would skip white space */
    errno = 0;
    long long v = strtoll(text, &end, 10);
    *value = v;
    return !*end && !errno && v >= INT32_MIN && v <= INT32_MAX;
}

static bool read_real(const wf_config_field *row, const char *text, void *config, char *message) {
    if (isdigit((unsigned char)text[0]) && wf_parse_real(text, real_at(row, config))) return true;
    return fail(message, "'%s' is '%.64s', not a number", row->key, text);
}

/* Reads a whole number or the name of a choice. Early files store choices as numbers. */
static bool parse_field(const wf_config_field *row, const char *text, int64_t *value,
                        char *message) {
    for (int i = 0; row->name && row->name(i); i++)
        if (strcmp(text, row->name(i)) == 0) {
            *value = i;
            return true;
        }
    if (parse_whole(text, value)) return true;
    return row->names ? fail(message, "'%s' is '%.64s', not one of %s", row->key, text, row->names)
                      : fail(message, "'%s' is '%.64s', not a whole number", row->key, text);
}

bool wf_field_read(const wf_config_field *row, const char *text, void *config, char *message) {
    int64_t value = 0;
    if (row->type == WF_FIELD_REAL) return read_real(row, text, config, message);
    if (!parse_field(row, text, &value, message)) return false;
    set(row, config, value);
    bool negative = row->type == WF_FIELD_CHOICE && value < 0;
    return (!negative && get(row, config) == value) ||
           fail(message, "'%s' cannot be %.64s", row->key, text);
}

static bool read_field(const wf_file *f, const wf_config_field *row, void *config, char *message) {
    const char *text = wf_file_meta(f, row->key);
    if (!text) text = row->before;
    if (text) return wf_field_read(row, text, config, message);
    return fail(message, "no '%s' in the metadata: this is not a model that weft has written",
                row->key);
}

const wf_model_kind *wf_config_from_file(const wf_file *f, wf_any_config *config, char *message) {
    if (!wf_file_ok(f)) return fail(message, "%s", wf_file_error(f)), NULL;
    const char *name = wf_file_meta(f, MODEL);
    const wf_model_kind *kind = wf_model_kind_of(name);
    if (!kind)
        return fail(message, "'" MODEL "' is '%.64s', which no model of weft is called", name),
               NULL;
    *config = (wf_any_config){ 0 };
    for (int i = 0; i < kind->n_fields; i++)
        if (!read_field(f, &kind->fields[i], config, message)) return NULL;
    return kind->check(config, message) ? kind : NULL;
}

wf_model *wf_model_record(const wf_file *f, const wf_training_config *training, wf_dtype real,
                          uint64_t seed, char *message) {
    wf_any_config c;
    const wf_model_kind *kind = wf_config_from_file(f, &c, message);
    return kind ? kind->record(&c, training, real, seed, message) : NULL;
}

bool wf_model_describe(const wf_file *f, char *text, char *message) {
    wf_any_config c;
    const wf_model_kind *kind = wf_config_from_file(f, &c, message);
    if (!kind) return false;
    if (!text) return fail(message, "there is no place for the description");
    kind->describe(&c, text);
    return true;
}

bool wf_model_read_block(const wf_file *f, wf_block_options *o, char *message) {
    wf_any_config c;
    const wf_model_kind *kind = wf_config_from_file(f, &c, message);
    if (!kind) return false;
    if (!o) return fail(message, "there is no place for the options of a layer");
    *o = kind->block(&c);
    return true;
}
