/* weft/models/model_emit.h - a model that decodes, with its search, as one C file that needs no
 * library; and the training of a model as such a file. It is core/emit.h for a whole model. */
#ifndef WEFT_MODELS_MODEL_EMIT_H
#define WEFT_MODELS_MODEL_EMIT_H

#include "decode.h"
#include "text.h"

#include "../core/emit.h"
#include "../nn/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wf_model_emit_options {
    /* an identifier of C: the prefix of everything that the file declares; NULL: "model" */
    const char *name;
    /* the most tokens of a source and of an output; 0, or more than the model has room for: as
     * many as it has room for, or as the search allows */
    int64_t max_source, max_output;
    /* number of sources that are decoded at once, 1 to 1,024; 0: 1 */
    int64_t batch;
    /* a greedy or a beam search; NULL: wf_decode_defaults */
    const wf_decode_options *search;
    /* tokenizers that turn lines into sources and outputs into lines; one object if both sides
     * share it. Both NULL: lines are ids; one NULL is refused */
    wf_tokenizer *source_text, *target_text;
    /* most bytes of a line, up to 2^24; 0: 8 for each token of a source, at least 1,024 */
    int64_t max_line;
    /* for a model in int8: at most this many layers of the decoder keep rounded inputs instead of
     * keys and values, as wf_emit's options say */
    int64_t recomputed;
    /* the file has model_attend, model_weights and model_log_probs too: see below */
    bool attention;
    /* each is NULL, or receives a number of bytes: of the memory for a run; of the weights */
    int64_t *memory_bytes, *weight_bytes;
    /* receives the bytes of a file of weights, which the text then does not have, as wf_emit's
     * options say; or NULL */
    wf_emit_weights *weights_file;
    /* name of that file, which the program looks for in its own folder; NULL: the option `name`
     * followed by ".weights" */
    const char *weights_name;
} wf_model_emit_options;

/* The model as the text of a C11 file, which allocates nothing and calls nothing. Matrices in int8
 * (wf_pack_weights) stay so. A program gives it model_MEMORY bytes, aligned to 64, by
 * model_start(&m, memory).
 *
 * model_generate(&m, source, n, output) writes the best output for n source ids, of at most
 * model_OUTPUT, and returns its length; -1 if an id is not in the vocabulary, n is not 1 to
 * model_SOURCE, or logits are not finite. The prompt of a decoder-only model may be empty. It is
 * the output that wf_decode finds, and model_score(&m) its score, to the bit. The score is 0
 * without an output, or if an encoder-decoder gets a line without tokens.
 *
 * model_translate(&m, line, bytes, out, size) reads a line of text, or of ids, and writes the
 * output for it with a '\0' into `size` bytes; model_TEXT are enough, unless rules of SentencePiece
 * lengthen outputs. It returns the output's length without that '\0', or an error: model_BAD_LINE,
 * model_LONG_LINE (above model_LINE bytes), model_NO_ROOM, model_NO_OUTPUT. A line without tokens
 * has an empty output. A line with too many is cropped, as the program `generate` does, whose
 * output it is to the byte.
 *
 * With a `batch` above 1, model_generate_batch(&m, tasks, n) finds the outputs for n sources of any
 * number, model_BATCH of them at once, and model_translate_batch(&m, lines, n) those for lines: the
 * same as alone, to the bit. A model_task has source, n and output, and gets length and score; a
 * model_line has line, bytes, out and size, and gets the result of model_translate and the score,
 * which is 0 for a line without tokens. A source whose search is over stays in the batch until all
 * searches are over. model_score has no meaning after these calls. The program reads model_BATCH
 * lines, or all that are left, before it answers them.
 *
 * With `attention`, model_attend(&m, tokens) computes all attention weights and log-probabilities
 * of the last source and its best output. It writes the decoder's model_ATTENDED tokens and returns
 * how many of them are not padding, or -1 if the model cannot read them. model_weights(&m, map,
 * layer) then points to the weights of that attention map and layer, [heads, queries, keys], and
 * model_log_probs(&m) to [tokens, ids]. In these arrays sources are padded to model_SOURCE tokens,
 * and outputs to model_ATTENDED.
 *
 * With a file of weights, model_start(&m, memory, file, size) takes that file's bytes. It returns
 * 0; or 1 if the bytes are not those of this model's file, and model_generate then returns -1.
 *
 * With -DMODEL_MAIN the file is a program, which reads lines and writes lines; a line break within
 * an output is escaped. Its argument is the path of a file of weights. The result is malloc'ed.
 * NULL with message[256]: what wf_emit refuses; an encoder-only model; a search that draws, has
 * rules that change logits, forced tokens, several outputs, a beam above 64, or a listener; a batch
 * above 1,024, or with attention; a tokenizer of another size, with a piece above 4,095 bytes, or,
 * in byte-pair encoding by SentencePiece, with unused pieces; a tokenizer.json that truncates or
 * pads lines, or has a part without a form in C, which the message names. */
WF_API char *wf_model_emit(wf_model *m, const wf_model_emit_options *options, char *message);

/* ---- training -------------------------------------------------------------------------------- */

/* A batch has B rows: sources [B,S] and targets [B,T]. S is 0 if the model is decoder-only: a row
 * of T tokens then has both. */
typedef struct wf_batch_shape {
    int64_t B, S, T;
} wf_batch_shape;

typedef struct wf_training_emit_options {
    /* an identifier of C: the prefix of everything that the file declares; NULL: "model" */
    const char *name;
    /* [n_shapes], 1 to 36: the sizes of batches that the file computes without padding */
    const wf_batch_shape *shapes;
    int n_shapes;
    /* a file that wf_model_save wrote of this model with this trainer: what the program saves has
     * its metadata. NULL: the program saves nothing */
    const wf_file *file;
    /* the key in these metadata for the number of updates; NULL: none */
    const char *step_key;
    /* each is NULL, or receives a number of bytes: of all memory; of the weights in it, which are
     * parameters, moments, averages and sums of gradients */
    int64_t *memory_bytes, *weight_bytes;
    /* a file of weights: as in wf_model_emit_options */
    wf_emit_weights *weights_file;
    const char *weights_name;
} wf_training_emit_options;

/* The training of a model as the text of a C11 file, which allocates nothing and calls nothing. It
 * goes on after the trainer's last update, with its optimizer, schedule, clipping and averages, and
 * the model's dropout and label smoothing. A program gives it model_MEMORY bytes, aligned to 64, by
 * model_begin(&m, memory). model_step(&m, batches, n, &progress) makes an update from n batches, at
 * most as many as the trainer's micro_batches. A batch has sizes and arrays as wf_batch has; rows
 * of a decoder-only model are tgt and labels alone. It returns 0; or 1 for bad data, or if the
 * gradient is not finite: then nothing is updated. model_save(&m, write, context) calls
 * write(context, bytes, n) with the parts of the safetensors file that wf_model_save would write.
 * With a file of weights, model_begin(&m, memory, file, size) takes its bytes; it returns 0, or 1
 * if these are not the right bytes.
 *
 * The weights after a step are those of the library, to the bit, if each batch has one of the
 * shapes. A batch of other sizes is padded to the smallest shape that has room for it. This changes
 * roundings and the random bits of dropout.
 *
 * With -DMODEL_MAIN the file is a program. It reads updates from stdin as whitespace-separated
 * integers: n, then for each of n batches B S T, src, src_length, tgt and labels; without a source,
 * S, src and src_length are left out. It writes the saved file to stdout after the last update, or
 * after the update whose number is its first argument. A second argument is the path of a file of
 * weights. The result is malloc'ed. NULL with message[256]: what wf_emit refuses; an encoder-only
 * model; a trainer that failed, has ranks, or needs other inputs; shapes that the model has no room
 * for; a file of another model. */
WF_API char *wf_model_emit_training(wf_model *m, wf_trainer *t,
                                    const wf_training_emit_options *options, char *message);

#ifdef __cplusplus
}
#endif
#endif
