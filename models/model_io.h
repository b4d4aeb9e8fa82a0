/* weft/models/model_io.h - a model in one file: the configuration, the weights and, with a trainer,
 * everything that resuming a training needs. It is a part of model.h, and implemented in
 * models/file/model_file.c.
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
typedef struct wf_adapters wf_adapters;

/* Save the configuration, the weights and meta. With a trainer, which must be the model's, its
 * moments and averages are saved too, and all ranks must call, as for wf_trainer_save. The
 * metadata "weft.kind" is "checkpoint" or "model", unless meta sets it; "weft.model" is the kind's
 * name. Parameters that a program has added to the graph are stored under their names. From a
 * model with adapters these alone are saved, with their options, and "weft.kind" is "checkpoint" or
 * "adapters". */
WF_API bool wf_model_save(const wf_model *m, const char *path, wf_trainer *trainer,
                          const wf_meta *meta, int n_meta, char *message);
/* Read the configuration, record the model and load the weights. To resume a training, call
 * wf_trainer_resume with the same file afterwards. A file that names no kind holds a Transformer.
 * NULL with a message. */
WF_API wf_model *wf_model_load(const wf_file *f, const wf_training_config *training, wf_dtype real,
                               uint64_t seed, char *message);
/* The second half of wf_model_load: loads the weights. Names are those of torch.nn.Transformer,
 * with packed or separate q, k, v, and tied tables under any of their names. If the file does not
 * fit, the model does not change. Added parameters are loaded if both the file and the graph have
 * them: record them after wf_model_load, then load the weights again. An added parameter that the
 * file lacks keeps its values; one that the graph lacks is skipped. */
WF_API bool wf_model_load_weights(wf_model *m, const wf_file *f, char *message);

/* ---- adapters (model.h) in a file of their own: adapters/adapter_file.c ---------------------- */

/* Read the options of the adapters in a file; their targets live until wf_file_free. False with
 * message: the file has none, or they are not valid. */
WF_API bool wf_model_read_adapters(const wf_file *f, wf_adapters *out, char *message);
/* Load adapters into a model that was loaded with the same options of adapters. All are loaded or
 * none. */
WF_API bool wf_model_load_adapters(wf_model *m, const wf_file *f, char *message);
/* Add the products of a file's adapters to the weights of a model without adapters: W becomes W +
 * alpha / rank B A. m is in f32, and none of its matrices is kept as bf16 or int8. If an adapter
 * does not fit, the model does not change. */
WF_API bool wf_model_merge_adapters(wf_model *m, const wf_file *f, char *message);

#ifdef __cplusplus
}
#endif
#endif
