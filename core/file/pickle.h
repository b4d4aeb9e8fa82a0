/* core/file/pickle.h - inside core/file: the few pickle opcodes that a state_dict needs.
 *
 * A pickle is a program for a stack machine, which may call anything. This machine calls nothing.
 * The three functions and the storage types that torch.save uses become values of their own kind;
 * every other name or opcode is an error that names it. Results are values that point into the
 * pickle's bytes and into the arrays below. */
#ifndef WEFT_CORE_FILE_PICKLE_H
#define WEFT_CORE_FILE_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most bytes of a pickle; a larger one is refused. A tensor takes about 250 bytes of a pickle.
 * For each byte of it the machine takes at most some 25 bytes of memory. */
#define WF_PICKLE_MAX (1 << 25)

typedef enum wf_pickle_kind {
    WF_PICKLE_NONE,
    WF_PICKLE_BOOL,    /* `number` is 0 or 1 */
    WF_PICKLE_INT,     /* `number` is its value */
    WF_PICKLE_FLOAT,   /* a float was read; its number is not kept */
    WF_PICKLE_STRING,  /* UTF-8: `count` bytes at `number` */
    WF_PICKLE_TUPLE,   /* `count` values, the first is values[number] */
    WF_PICKLE_LIST,    /* its items: lists[number] */
    WF_PICKLE_DICT,    /* its keys and values: lists[number] */
    WF_PICKLE_GLOBAL,  /* a row of the table of names */
    WF_PICKLE_STORAGE, /* a tuple: "storage", its type, key, location, elements */
    WF_PICKLE_TENSOR,  /* a tuple: storage, offset, shape, strides, ... */
    WF_PICKLE_MARK     /* used inside the machine only */
} wf_pickle_kind;

typedef struct wf_pickle_value {
    wf_pickle_kind kind;
    uint32_t count;
    int64_t number;
} wf_pickle_value;

typedef struct wf_pickle_item {
    wf_pickle_value key, value; /* items of a list have no key */
    size_t next;                /* 1 + the index of the next item; 0: this is the last */
} wf_pickle_item;

typedef struct wf_pickle_list {
    size_t first, last; /* 1 + the index of the item; 0: the list is empty */
} wf_pickle_list;

typedef struct wf_pickle {
    const unsigned char *bytes;
    size_t size, at;
    bool ended; /* the pickle is incomplete: more bytes are needed */
    char *error;
    wf_pickle_value *stack, *memo, *values;
    wf_pickle_item *items;
    wf_pickle_list *lists;
    size_t depth, stack_room, n_memo, memo_room, n_values, values_room, n_items, items_room,
        n_lists, lists_room;
} wf_pickle;

/* Run the pickle that begins at p->at, and set p->at to its end. False with p->error[256]. */
bool wf_pickle_run(wf_pickle *p, wf_pickle_value *result);
void wf_pickle_free(wf_pickle *p); /* frees the stack, memo and values */

const char *wf_pickle_kind_name(wf_pickle_value v); /* such as "a dict" */
/* the safetensors name of the element type that a storage type has; NULL: v is no storage type */
const char *wf_pickle_dtype(wf_pickle_value storage_type);
bool wf_pickle_is_text(const wf_pickle *p, wf_pickle_value v, const char *text);

#endif
