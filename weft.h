/* weft/weft.h - includes all public headers. A program may instead include only those that it uses:
 * each of them includes what it needs itself. meson.build installs the headers that are included
 * here, and weft.hpp. */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

/* the version, visibility */
#include "core/export.h"
/* graphs and gradients; plans, states and threads, which run them; nodes and the values of
 * leaves */
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
/* the transport, which moves bytes between the ranks of a data-parallel training */
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

/* layers, losses, optimizers, schedules: nn.h is their page of contents */
#include "nn/attention.h"
#include "nn/blocks.h"
#include "nn/conv.h"
#include "nn/layers.h"
#include "nn/loss.h"
#include "nn/nn.h"
#include "nn/optimizer.h"
#include "nn/recurrent.h"
#include "nn/trainer.h"

/* functions for models of all kinds: plans, files */
#include "models/model.h"
#include "models/model_io.h"
/* the encoder-decoder Transformer */
#include "models/transformer.h"
/* the decoder-only one */
#include "models/language_model.h"
/* the encoder-only one */
#include "models/encoder.h"
/* a model's outputs, by beam search or sampling, and the probabilities of given outputs */
#include "models/decode.h"
#include "models/shortlist.h"
/* a model with its search as one C file */
#include "models/model_emit.h"
/* the settings for decoding in a model's file */
#include "models/generation.h"
/* tokenizers and vocabularies */
#include "models/text.h"
#include "models/text_formats.h"
/* a tokenizer.json */
#include "models/json_tokenizer.h"
/* models and tokenizers in folders of Hugging Face */
#include "models/hf.h"

#endif
