/* models/hf/object.h - inside models/hf: a folder's files, and JSON objects. An object is a list of
 * pairs of a key and a value, sorted by key. The value stays JSON text until it is read as a type.
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
    const char *text; /* [bytes] the value's JSON text in the file */
    size_t bytes;
} hf_value;

typedef struct hf_object {
    const char *file; /* the file's name in the folder */
    hf_value *values;
    int n;
    char *text, *keys; /* the file's text, and a copy in which the keys are decoded in place */
} hf_object;

/* The list of names in files.c. wf_hf_file_name returns name i, or NULL after the last.
 * wf_hf_is_file is true for a name in the list. */
const char *wf_hf_file_name(int i);
bool wf_hf_is_file(const char *name);
/* Writes the path of a file, whose name must be in this list. False: the path is too long. */
enum { HF_PATH = 4096 };
bool wf_hf_path(char path[HF_PATH], const char *folder, const char *name);

/* Read a file's bytes and add a '\0'. The caller frees them. NULL with message. */
char *wf_hf_read(const char *folder, const char *name, size_t *bytes, char *message);
bool wf_hf_exists(const char *folder, const char *name);

/* Read an object. False with message: the file cannot be read, is no object, or has a key twice.
 * Free o in either case. */
bool wf_hf_object_read(hf_object *o, const char *folder, const char *name, char *message);
/* Like wf_hf_object_read, but if the file does not exist, o is empty and the result is true. */
bool wf_hf_object_read_if(hf_object *o, const char *folder, const char *name, char *message);
/* wf_hf_object_parse parses a text, which then belongs to o. wf_hf_object_in parses the object that
 * is the value of a key in `outer`. False with message; free o in either case. */
bool wf_hf_object_parse(hf_object *o, const char *name, char *text, size_t bytes, char *message);
bool wf_hf_object_in(hf_object *o, const hf_object *outer, const char *key, char *message);
void wf_hf_object_free(hf_object *o);

/* The value of a key. NULL: the key is missing, or its value is null. */
const hf_value *wf_hf_find(const hf_object *o, const char *key);

/* Read a value as one type. False: it has another type, or is a string of `size` bytes or more. */
bool wf_hf_is_null(const hf_value *v);
bool wf_hf_int(const hf_value *v, int64_t *out);
bool wf_hf_real(const hf_value *v, double *out);
bool wf_hf_bool(const hf_value *v, bool *out);
bool wf_hf_string(const hf_value *v, char *out, size_t size);
/* Read a token's id, from 0 to INT32_MAX, which may stand in a list of length 1. */
bool wf_hf_id(const hf_value *v, int64_t *out);
/* Read an array of n numbers. False: the value is no such array. */
bool wf_hf_reals(const hf_value *v, double *out, int n);
/* Write the value's text without the white space outside of its strings. Like snprintf it returns
 * the length needed. */
size_t wf_hf_compact(const hf_value *v, char *out, size_t size);
/* Write the beginning of the text that wf_hf_compact writes, short enough for a message; returns
 * out. */
enum { HF_SHOWN = 64 };
const char *wf_hf_show(const hf_value *v, char out[HF_SHOWN]);
/* Writes the message that v, a value in o, is not `want`. Always returns false. */
bool wf_hf_wrong(const hf_object *o, const hf_value *v, const char *want, char *message);
/* Reads the value of a key as true or false; *out stays as it is if the key is missing. False with
 * message. */
bool wf_hf_flag(const hf_object *o, const char *key, bool *out, char *message);
/* Read an array of at most `most` ids; with depth 2 each id is in an array of its own. Returns how
 * many there are; -1: the value is no such array, or out of memory. */
int wf_hf_ids(const hf_value *v, int depth, int32_t *ids, int most);
/* True if the value is an array that contains this string. */
bool wf_hf_lists(const hf_value *v, const char *string);

/* True if a list has this name. The list ends after `most` names or with NULL, and may be NULL. */
bool wf_hf_listed(const char *const *names, int most, const char *name);
#define HF_LISTED(names, name) wf_hf_listed(names, (int)(sizeof(names) / sizeof *(names)), name)

#endif
