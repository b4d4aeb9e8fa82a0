/* models/hf/object.h - inside models/hf: a folder's files, and a JSON object as pairs of a key and
 * a value that is text until someone asks for more.
 *
 *     hf_object o;
 *     if (!wf_hf_object_read(&o, folder, "config.json", message)) return false;
 *     const hf_value *v = wf_hf_find(&o, "d_model");
 *     if (v && wf_hf_int(v, &width)) ...
 *     wf_hf_object_free(&o); */
#ifndef WEFT_MODELS_HF_OBJECT_H
#define WEFT_MODELS_HF_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hf_value {
    const char *key;
    const char *text; /* [bytes] as it stands in the file */
    size_t bytes;
} hf_value;

typedef struct hf_object {
    const char *file; /* its name in the folder */
    hf_value *values;
    int n;
    char *text, *keys; /* the file's text; and once more, decoded in place */
} hf_object;

/* The list of names in files.c: the i-th, NULL past the last; is it one of them? */
const char *wf_hf_file_name(int i);
bool wf_hf_is_file(const char *name);
/* The path of such a file; false: too long. */
enum { HF_PATH = 4096 };
bool wf_hf_path(char path[HF_PATH], const char *folder, const char *name);

/* A file's bytes with a '\0' behind them, to be freed; NULL with message. */
char *wf_hf_read(const char *folder, const char *name, size_t *bytes, char *message);
bool wf_hf_exists(const char *folder, const char *name);

/* A key twice is refused, and what is no object. o is to be freed either way. */
bool wf_hf_object_read(hf_object *o, const char *folder, const char *name, char *message);
/* Parse a text, which is taken over; or the value of a key. */
bool wf_hf_object_parse(hf_object *o, const char *name, char *text, size_t bytes, char *message);
bool wf_hf_object_in(hf_object *o, const hf_object *outer, const char *key, char *message);
void wf_hf_object_free(hf_object *o);

/* NULL: it is not there, or it is null. */
const hf_value *wf_hf_find(const hf_object *o, const char *key);

/* The value as one of a type; false: it is of another. */
bool wf_hf_is_null(const hf_value *v);
bool wf_hf_int(const hf_value *v, int64_t *out);
bool wf_hf_real(const hf_value *v, double *out);
bool wf_hf_bool(const hf_value *v, bool *out);
bool wf_hf_string(const hf_value *v, char *out, size_t size);
/* n numbers in brackets. */
bool wf_hf_reals(const hf_value *v, double *out, int n);
/* Its text without white space outside strings, in the way of snprintf. */
size_t wf_hf_compact(const hf_value *v, char *out, size_t size);
/* The beginning of that, as much as a sentence has room for; returns out. */
enum { HF_SHOWN = 64 };
const char *wf_hf_show(const hf_value *v, char out[HF_SHOWN]);
/* Ids in brackets; depth 2: each in brackets of its own. How many, or -1. */
int wf_hf_ids(const hf_value *v, int depth, int32_t *ids, int most);
/* Is this string one of an array? */
bool wf_hf_lists(const hf_value *v, const char *string);

#endif
