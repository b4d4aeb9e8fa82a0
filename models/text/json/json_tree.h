/* models/text/json/json_tree.h - inside models: a JSON text as a tree, for a file whose fields may
 * come in any order.
 *
 * The values are an array in the order of the text. An array or object is followed by its values;
 * `next` is the first value after all of these. Strings are decoded in the text, which must live as
 * long as the tree. Nesting is limited and nothing recurses.
 *
 *     for (size_t i = wf_tree_first(t, list); i; i = wf_tree_next(t, list, i)) ... */
#ifndef WEFT_MODELS_TEXT_JSON_TREE_H
#define WEFT_MODELS_TEXT_JSON_TREE_H

#include "models/text/tokenizer.h"

typedef enum {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
} json_kind;

/* The value 0 is the whole text, which is an object; so 0 also says that there is no value. */
typedef struct json_value {
    uint32_t begin, bytes; /* text of a string or number */
    uint32_t next;         /* the first value after this one and those in it */
    uint32_t kind;
} json_value;

typedef struct json_tree {
    const char *text;
    json_value *values;
    size_t n, capacity;
} json_tree;

/* Reads and decodes the text in place. False with message. Free the tree in either case. */
bool wf_tree_read(json_tree *t, char *text, size_t bytes, char *message);
void wf_tree_free(json_tree *t);

/* The first value in an array or object, and the one after i; 0: there is none. In an object keys
 * and their values alternate. */
size_t wf_tree_first(const json_tree *t, size_t list);
size_t wf_tree_next(const json_tree *t, size_t list, size_t i);

/* The number of values in an array or object at all depths, with keys: an upper bound for its own
 * elements that costs no search. 0 for other values. */
size_t wf_tree_at_most(const json_tree *t, size_t list);

json_kind wf_tree_kind(const json_tree *t, size_t i);
wf_span wf_tree_text(const json_tree *t, size_t i); /* of a string or number */
bool wf_tree_is(const json_tree *t, size_t i, const char *text);
/* The value of a key; of several the last, as serde does. 0: there is none. */
size_t wf_tree_find(const json_tree *t, size_t object, const char *key);
/* Like wf_tree_find, but a value that is null gives 0, too. */
size_t wf_tree_given(const json_tree *t, size_t object, const char *key);
/* Reads a whole number from 0 to `most`. False: the value is no such number. */
bool wf_tree_size(const json_tree *t, size_t i, int64_t most, int64_t *out);
/* Reads a number as serde_json does, which may differ from the nearest one by a rounding. False:
 * the value is no number, or too large. */
bool wf_tree_real(const json_tree *t, size_t i, double *out);

#endif
