/* models/encoder/class_labels.h - for models and tools: the labels of classes, which a model's
 * file has as one text with a label on each line, WF_CLASS_NAMES. */
#ifndef WEFT_MODELS_ENCODER_CLASS_LABELS_H
#define WEFT_MODELS_ENCODER_CLASS_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/file.h"

enum { WF_MOST_LABEL = 255 }; /* bytes */

/* True if this can be a label: 1 to WF_MOST_LABEL bytes without line breaks and TABs. */
bool wf_class_name_ok(const char *name, size_t bytes);
/* The next label of such a text, and its length. *rest is the text at first, and becomes what
 * follows. NULL: there is none. */
const char *wf_class_next(const char **rest, size_t *bytes);
/* Has such a text so many labels, all of which are possible? False with message. */
bool wf_class_names_fit(const char *text, int64_t classes, char *message);
/* Find the labels of a model's file in *text. NULL: it has none, or no classes. False with message:
 * they are not as many as its classes. */
bool wf_class_names_in(const wf_file *f, const char **text, char *message);

#endif
