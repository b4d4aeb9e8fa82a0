/* models/choices.h - inside weft: the names of what can be chosen, in options, messages and files
 * alike. One row per enumerator.
 *
 *     CHOICE("activation", set.activation, WF_NAMES(WF_ACTIVATION_NAMES), "of the layers")
 *     wf_activation_name(WF_GELU_TANH)          "gelu-tanh"; NULL: no activation has this number
 *
 * Never change the name or the number of a row, because files store both. An enumerator without a
 * row gives a warning (-Wswitch). A row in the wrong order is a compile error. */
#ifndef WEFT_MODELS_CHOICES_H
#define WEFT_MODELS_CHOICES_H

#include "models/decode.h"
#include "models/encoder.h"
#include "models/model.h"
#include "models/text.h"

/* clang-format off */
/* Architectures that write text, with their names in options. The row (id, name) stands for the
 * wf_model_kind called wf_<id>_kind. A file that names no architecture holds the first one. */
#define WF_MODEL_NAMES(ROW) \
    ROW(transformer, "transformer") ROW(language_model, "language") \
    /* new architectures go above */
/* Architectures that read text and write none. */
#define WF_READER_NAMES(ROW) ROW(encoder, "encoder")
#define WF_ACTIVATION_NAMES(ROW) WF_ACTIVATIONS(ROW) /* nn/blocks.h */
#define WF_POSITIONS_NAMES(ROW) \
    ROW(WF_POSITIONS_NONE, "none") ROW(WF_POSITIONS_SINUSOIDAL, "sinusoidal") \
    ROW(WF_POSITIONS_LEARNED, "learned") ROW(WF_POSITIONS_ROTARY, "rotary") \
    ROW(WF_POSITIONS_HALVES, "sinusoidal-halves") ROW(WF_POSITIONS_FAIRSEQ, "sinusoidal-fairseq") \
    ROW(WF_POSITIONS_SINUSOIDAL_ROTARY, "sinusoidal-rotary") \
    ROW(WF_POSITIONS_TENSOR2TENSOR, "sinusoidal-tensor2tensor")
#define WF_TIE_NAMES(ROW) \
    ROW(WF_TIE_NONE, "none") ROW(WF_TIE_DECODER, "decoder") ROW(WF_TIE_ALL, "all") \
    ROW(WF_TIE_INPUTS, "inputs")
#define WF_OPTIMIZER_NAMES(ROW) \
    ROW(WF_SGD, "sgd") ROW(WF_ADAM, "adam") ROW(WF_ADAMW, "adamw") ROW(WF_RMSPROP, "rmsprop") \
    ROW(WF_ADAGRAD, "adagrad") ROW(WF_LION, "lion")
#define WF_SCHEDULE_NAMES(ROW) \
    ROW(WF_CONSTANT_RATE, "constant") ROW(WF_LINEAR_DECAY, "linear") ROW(WF_COSINE, "cosine") \
    ROW(WF_INVERSE_SQRT, "inverse-sqrt") ROW(WF_NOAM, "noam")
/* Kinds of tokenizers that options can name. WF_TOKEN_NAMES has all kinds. */
#define WF_LEARNED_NAMES(ROW) \
    ROW(WF_WORDS, "word") ROW(WF_CHARACTERS, "char") ROW(WF_BPE, "bpe") \
    ROW(WF_BYTES, "byte") ROW(WF_TEXT_CHARACTERS, "text-char") ROW(WF_BYTE_BPE, "byte-bpe") \
    ROW(WF_SENTENCEPIECE, "sentencepiece") ROW(WF_BYTE_LEVEL, "byte-level")
#define WF_TOKEN_NAMES(ROW) WF_LEARNED_NAMES(ROW) ROW(WF_JSON_TEXT, "json")

#define WF_PENALTY_NAMES(ROW) \
    ROW(WF_PENALTY_NONE, "none") ROW(WF_PENALTY_GNMT, "gnmt") ROW(WF_PENALTY_AVERAGE, "avg")
#define WF_STOP_NAMES(ROW) \
    ROW(WF_STOP_FULL, "full") ROW(WF_STOP_PRESENT, "present") ROW(WF_STOP_LONGEST, "longest") \
    ROW(WF_STOP_SHRINK, "shrink")
#define WF_LIMIT_NAMES(ROW) \
    ROW(WF_LIMIT_END, "end") ROW(WF_LIMIT_FREE_END, "free-end") ROW(WF_LIMIT_NO_END, "no-end")
#define WF_ROTARY_STRETCH_NAMES(ROW) \
    ROW(WF_ROTARY_PLAIN, "plain") ROW(WF_ROTARY_LINEAR, "linear") ROW(WF_ROTARY_LLAMA3, "llama3")
#define WF_DENSE_ACTIVATION_NAMES(ROW) WF_DENSE_ACTIVATIONS(ROW) /* encoder.h */
#define WF_NORM_KIND_NAMES(ROW) WF_NORM_KINDS(ROW) /* layers.h */
#define WF_DECODER_KIND_NAMES(ROW) WF_DECODER_KINDS(ROW) /* nn/blocks.h */

/* The place of norms: before or after each sublayer. Only options use these names: configurations
 * and files store norm_first, 1 or 0, instead. */
typedef enum { WF_NORM_PRE, WF_NORM_POST } wf_norm_place;
#define WF_NORM_NAMES(ROW) ROW(WF_NORM_PRE, "pre") ROW(WF_NORM_POST, "post")

/* The number format of weight matrices in memory. */
typedef enum { WF_WEIGHTS_F32, WF_WEIGHTS_BF16, WF_WEIGHTS_INT8 } wf_weight_format;
#define WF_WEIGHT_FORMAT_NAMES(ROW) \
    ROW(WF_WEIGHTS_F32, "f32") ROW(WF_WEIGHTS_BF16, "bf16") ROW(WF_WEIGHTS_INT8, "int8")

/* How matrices are rounded in training. */
#define WF_QUANTIZE_NAMES(ROW) \
    ROW(WF_QUANTIZE_NONE, "none") ROW(WF_QUANTIZE_INT8, "int8") ROW(WF_QUANTIZE_MARIAN, "marian")

/* The names in a table's rows as one string, such as "relu|gelu|gelu-tanh|silu". */
#define WF_NAME_ONLY(name, ...) name
#define WF_NAME_AFTER(value, ...) "|" WF_NAME_ONLY(__VA_ARGS__, )
#define WF_NAMES(rows) (&rows(WF_NAME_AFTER)[1])

#define WF_NAME_PLACE(value, ...) value##_PLACE,
#define WF_NAME_ASSERT(value, ...) \
    _Static_assert((int)value == (int)value##_PLACE, WF_NAME_ONLY(__VA_ARGS__, ));
#define WF_NAME_CASE(value, ...) case value: return WF_NAME_ONLY(__VA_ARGS__, );
#define WF_NAMES_OF(type, rows) \
    enum { rows(WF_NAME_PLACE) }; \
    rows(WF_NAME_ASSERT) \
    static inline const char *type##_name(int value) { \
        switch ((type)value) { rows(WF_NAME_CASE) } \
        return NULL; \
    }
WF_NAMES_OF(wf_activation, WF_ACTIVATION_NAMES)
WF_NAMES_OF(wf_positions, WF_POSITIONS_NAMES)
WF_NAMES_OF(wf_tie, WF_TIE_NAMES)
WF_NAMES_OF(wf_optimizer_kind, WF_OPTIMIZER_NAMES)
WF_NAMES_OF(wf_schedule_kind, WF_SCHEDULE_NAMES)
WF_NAMES_OF(wf_token_kind, WF_TOKEN_NAMES)
WF_NAMES_OF(wf_length_penalty, WF_PENALTY_NAMES)
WF_NAMES_OF(wf_stop, WF_STOP_NAMES)
WF_NAMES_OF(wf_limit_rule, WF_LIMIT_NAMES)
WF_NAMES_OF(wf_norm_place, WF_NORM_NAMES)
WF_NAMES_OF(wf_weight_format, WF_WEIGHT_FORMAT_NAMES)
WF_NAMES_OF(wf_quantize, WF_QUANTIZE_NAMES)
WF_NAMES_OF(wf_norm_kind, WF_NORM_KIND_NAMES)
WF_NAMES_OF(wf_decoder_kind, WF_DECODER_KIND_NAMES)
WF_NAMES_OF(wf_dense_activation, WF_DENSE_ACTIVATION_NAMES)
WF_NAMES_OF(wf_rotary_stretch, WF_ROTARY_STRETCH_NAMES)
/* clang-format on */

#endif
