/* models/file/model_file.h - inside models: loads weights whose names have a prefix, for model
 * files and state_dicts; reads and writes a configuration as metadata. */
#ifndef WEFT_MODELS_FILE_MODEL_FILE_H
#define WEFT_MODELS_FILE_MODEL_FILE_H

#include "models/kind.h"

/* Like wf_model_load_weights, for tensors named `prefix` + name. Every tensor of the file must
 * belong to a parameter, or be a moment or listed as an added parameter. */
bool wf_model_load_prefixed(wf_model *m, const wf_file *f, const char *prefix, char *message);

/* ---- config_file.c --------------------------------------------------------------------------- */

enum { WF_CONFIG_META = WF_MOST_FIELDS + 1, WF_CONFIG_TEXT = 40 };
typedef struct wf_config_text {
    char of[WF_CONFIG_META][WF_CONFIG_TEXT];
} wf_config_text;
/* wf_field_text writes the value of a configuration's field as text, and returns the text, which
 * may be a constant. wf_field_read reads the value from text; false with message. */
const char *wf_field_text(const wf_config_field *row, const void *config,
                          char text[WF_CONFIG_TEXT]);
bool wf_field_read(const wf_config_field *row, const char *text, void *config, char *message);
/* Write the model's kind and configuration to meta [WF_CONFIG_META], with the values in text.
 * Returns how many pairs. */
int wf_config_to_meta(const wf_model *m, wf_config_text *text, wf_meta *meta);
/* Read a file's configuration into config. Returns its kind, or NULL with message. */
const wf_model_kind *wf_config_from_file(const wf_file *f, wf_any_config *config, char *message);

#endif
