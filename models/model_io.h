/* weft/models/model_io.h - a model in one file: configuration, weights and, with a trainer, all that a
 * training goes on from. Part of model.h. models/file/model_file.c
 *
 * Every `message` has room for 256 bytes, or is NULL. */
#ifndef WEFT_MODELS_MODEL_IO_H
#define WEFT_MODELS_MODEL_IO_H

#include "../core/file.h"
#include "../nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* model.h */
typedef struct wf_model wf_model;
typedef struct wf_training_config wf_training_config;

/* The configuration, the weights, meta; with a trainer, which is then the model's, also its moments
 * and averages, and the call is collective: wf_trainer_write. The metadata's "weft.kind" says which it
 * is, "checkpoint" or "model", or what meta has for it; "weft.model" is the model's name. Parameters
 * that a program has added to the graph are stored, too, under their names. */
WF_API bool wf_model_save(const wf_model *m, const char *path, wf_trainer *trainer,
                          const wf_meta *meta, int n_meta, char *message);
/* Read the configuration, record the model, load the weights. A training goes on by
 * wf_trainer_resume with the same file. A file that names no model is a Transformer's. NULL with a
 * message. */
WF_API wf_model *wf_model_load(const wf_file *f, const wf_training_config *training, wf_dtype real,
                               uint64_t seed, char *message);
/* The first half of it: with initial weights. */
WF_API wf_model *wf_model_record(const wf_file *f, const wf_training_config *training,
                                 wf_dtype real, uint64_t seed, char *message);
/* And the second. Names of torch.nn.Transformer; packed or separate q, k, v; tied tables under any
 * of their names. A file that does not fit leaves the model as it was. Added parameters are loaded
 * if the file and the graph have them: record them after wf_model_load, then load the weights
 * again; one that the file lacks keeps its values, one that the graph lacks stays in the file. */
WF_API bool wf_model_load_weights(wf_model *m, const wf_file *f, char *message);
/* Has the file, as I8, every matrix that m keeps as WF_PANELS_INT8, and is there one? Else to load them
 * would round what is not rounded yet. */
WF_API bool wf_model_rounded(const wf_model *m, const wf_file *f);
/* Describe a file, as "a Transformer of width 64, 4 heads, ...", in text [256]. */
WF_API bool wf_model_describe(const wf_file *f, char *text, char *message);
/* The options of the layers of the model in a file. */
WF_API bool wf_model_read_block(const wf_file *f, wf_block_options *o, char *message);

#ifdef __cplusplus
}
#endif
#endif
