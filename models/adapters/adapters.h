/* models/adapters/adapters.h - inside models: which matrices of a model have low-rank adapters, and
 * the names of the adapters. See wf_adapters in model.h. */
#ifndef WEFT_MODELS_ADAPTERS_ADAPTERS_H
#define WEFT_MODELS_ADAPTERS_ADAPTERS_H

#include "models/file/model_file.h"

/* WF_MODULE_NAME: bytes of a module's name with its '\0'. WF_MODULE_PARTS: q, k and v, the parts of
 * a packed projection. */
enum { WF_MODULE_NAME = 256, WF_MODULE_PARTS = 3 };
#define WF_LORA_A ".lora_A.weight"
#define WF_LORA_B ".lora_B.weight"

/* A module, such as a linear layer or a part of in_proj: rows first..first+rows-1 of a matrix. */
typedef struct wf_module {
    char name[WF_MODULE_NAME]; /* "transformer.layers.0.self_attn.q_proj" */
    int64_t first, rows;
} wf_module;
/* Writes the modules of a matrix that may have adapters. A packed projection is in_proj, and then
 * its parts q_proj, k_proj and v_proj. Returns how many there are; 0: none. */
int wf_modules_of(const wf_model *m, const wf_tensor *weight,
                  wf_module modules[WF_MODULE_PARTS + 1]);
/* The adapter of a module in m's graph: A and B. False: it has none. */
bool wf_adapter_find(const wf_model *m, const char *module, wf_tensor **a, wf_tensor **b);
/* The factor of B A: alpha / rank, or 1 if alpha is 0. */
double wf_adapter_scale(const wf_adapters *o);

/* Between these two calls, recording a matrix that the targets name also records its A and B, and
 * recording a product with the matrix also adds their product. wf_adapters_end fails the graph if a
 * target is no module of the model. */
void wf_adapters_begin(wf_model *m);
void wf_adapters_end(wf_model *m);

/* ---- adapter_file.c -------------------------------------------------------------------------- */

/* The number of metadata pairs that hold the options of adapters. */
enum { WF_ADAPTER_META = 3 };
typedef struct wf_adapter_text {
    char of[WF_ADAPTER_META][WF_CONFIG_TEXT];
} wf_adapter_text;
/* True if the file holds adapters without their model. */
bool wf_has_adapters(const wf_file *f);
/* Write the options of m's adapters to meta [WF_ADAPTER_META]. The values point into text, and that
 * of the targets into m. Returns how many pairs; 0: m has no adapters. */
int wf_adapters_to_meta(const wf_model *m, wf_adapter_text *text, wf_meta *meta);

#endif
