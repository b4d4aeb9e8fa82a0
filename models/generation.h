/* weft/models/generation.h - the settings for decoding in a model's file.
 *
 * An imported model was made for a certain search or for sampling: a beam size, a stopping rule,
 * banned tokens, a first token that names the language. Its file stores these settings as metadata,
 * such as "generate.beam", and programs use them as defaults. "generate.not-done" lists settings
 * that this library does not support, so that programs can report them.
 *
 * Every `message` has room for 256 bytes, or is NULL. */
#ifndef WEFT_MODELS_GENERATION_H
#define WEFT_MODELS_GENERATION_H

#include "decode.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WF_MOST_BANNED = 64,
    WF_MOST_FORCED = 8,
    WF_GENERATION_META = 22, /* most metadata pairs */
    WF_GENERATION_TEXT = 1024
};

typedef struct wf_generation {
    wf_decode_options options; /* settings of the search, without the lists that follow */
    int32_t banned[WF_MOST_BANNED], forced[WF_MOST_FORCED];
    int n_banned, n_forced;
    int32_t begin_banned[WF_MOST_BANNED];
    int n_begin_banned;
    /* settings that the model was made for and this library does not support: "name=value;
     * name=value", or empty */
    char not_done[WF_GENERATION_TEXT];
} wf_generation;

/* g's options, with pointers to the lists in g. g must live as long as the result. */
WF_API wf_decode_options wf_generation_options(const wf_generation *g);

/* Read the settings in a model's file. Settings that the file lacks keep their values in g. Ids
 * must be in the vocabulary of m, unless m is NULL. False with message if a setting is invalid;
 * then g does not change. */
WF_API bool wf_generation_from_meta(const wf_file *f, const wf_model *m, wf_generation *g,
                                    char *message);

#ifdef __cplusplus
}
#endif
#endif
