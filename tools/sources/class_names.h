/* tools/sources/class_names.h - the labels of classes that lines belong to, and the number of each:
 * its place among the sorted labels, or in the text of a model's file.
 *
 * A model's file keeps them as a text with a label on each line. Every `message` has room for 256
 * bytes. */
#ifndef WEFT_TOOLS_SOURCES_CLASS_NAMES_H
#define WEFT_TOOLS_SOURCES_CLASS_NAMES_H

#include "tools/data/pairs.h"

typedef struct class_name {
    char *text;
    int64_t number;
} class_name;

typedef struct class_names {
    class_name *sorted; /* [n], in the order of class_names_learn */
    int64_t n;
    size_t capacity;
    char *text; /* all names, a line each; NULL: there are no classes */
} class_names;

/* Learn the labels from the targets of pairs. Labels that are whole numbers come first, in numeric
 * order, and then the others, in the order of their bytes. False: see message. */
bool class_names_learn(class_names *c, pair_lines *p, char *message);
/* Take the labels from the text in a model's file, which wf_class_names_check has accepted. False:
 * out of memory. */
bool class_names_take(class_names *c, const char *text, char *message);
void class_names_free(class_names *c);

/* The number of a label; -1: the label is unknown. */
int64_t class_names_find(const class_names *c, const char *name, size_t bytes);

#endif
