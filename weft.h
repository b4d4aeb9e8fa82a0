/* weft/weft.h - everything public at once: the page of contents of the pages of contents.
 *
 * A program may as well include only what it uses; each header includes what it needs. This list
 * is also the list of what is installed: meson.build reads it. */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

/* the version, visibility */
#include "core/export.h"
/* graphs, gradients; nodes, the values of leaves; plans, states, threads */
#include "core/graph.h"
#include "core/run.h"
#include "core/tensor.h"
/* memory that plans and programs share: zero-copy feeds and fetches, callbacks of a run */
#include "core/lend.h"
/* how an op is defined: a program may define its own */
#include "core/op.h"
/* how an op runs */
#include "core/kernel.h"
/* safetensors files */
#include "core/file.h"
/* the leaves of any graph saved and loaded */
#include "core/save.h"
/* ranks of a training that move bytes between them */
#include "core/transport.h"
/* a plan as one C file */
#include "core/emit.h"
/* pictures of graphs and plans */
#include "core/picture.h"

/* the operations: ops.h is their page of contents; custom.h is for ops of a program's own */
#include "ops/attention_ops.h"
#include "ops/convolution_ops.h"
#include "ops/create_ops.h"
#include "ops/custom.h"
#include "ops/elementwise_ops.h"
#include "ops/index_ops.h"
#include "ops/norm_ops.h"
#include "ops/ops.h"
#include "ops/product_ops.h"
#include "ops/reduce_ops.h"
#include "ops/shape_ops.h"
#include "ops/spectrum_ops.h"
#include "ops/training_ops.h"

/* layers, optimizers, schedules; and each part of it by itself */
#include "nn/attention.h"
#include "nn/blocks.h"
#include "nn/conv.h"
#include "nn/layers.h"
#include "nn/loss.h"
#include "nn/nn.h"
#include "nn/optimizer.h"
#include "nn/recurrent.h"
#include "nn/trainer.h"

/* what is common to models: plans, files */
#include "models/model.h"
#include "models/model_io.h"
/* the encoder-decoder Transformer */
#include "models/transformer.h"
/* the decoder-only one */
#include "models/language_model.h"
/* the encoder-only one */
#include "models/encoder.h"
/* outputs of a model, and how likely outputs are */
#include "models/decode.h"
#include "models/shortlist.h"
/* a model with its search as one C file */
#include "models/model_emit.h"
/* how a file says that it is generated with */
#include "models/generation.h"
/* tokenizers and vocabularies */
#include "models/text.h"
#include "models/text_formats.h"
/* a tokenizer.json */
#include "models/json_tokenizer.h"
/* folders of Hugging Face */
#include "models/hf.h"

#endif
