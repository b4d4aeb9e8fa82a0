/* weft/models/generation.h - how a model's file says that it is generated with.
 *
 * A model that comes from elsewhere was made for one way of searching: a beam, a rule of when to
 * stop, tokens that are never put out, a first token that names the language; or to be drawn from.
 * They stand in the metadata of its file, "generate.beam" and the like, and programs take them for
 * defaults. "generate.not-done" lists settings that this library does not have, to be told.
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
    WF_GENERATION_META = 22, /* pairs */
    WF_GENERATION_TEXT = 1024
};

typedef struct wf_generation {
    wf_decode_options options; /* of a search; without its lists, which are these: */
    int32_t banned[WF_MOST_BANNED], forced[WF_MOST_FORCED];
    int n_banned, n_forced;
    int32_t begin_banned[WF_MOST_BANNED];
    int n_begin_banned;
    char not_done[WF_GENERATION_TEXT]; /* what else the model was made to be searched with, and is
                                        * not done here: "name=value; name=value". Or empty */
} wf_generation;

/* The options with the lists of g, which must live as long. */
WF_API wf_decode_options wf_generation_options(const wf_generation *g);

/* Does the file say anything? */
WF_API bool wf_generation_in_file(const wf_file *f);
/* Reads settings; those that the file lacks keep their values in g. Ids must be in the vocabulary
 * of m, unless that is NULL. False, with the reason in message and g unchanged, if a setting is
 * invalid. */
WF_API bool wf_generation_from_meta(const wf_file *f, const wf_model *m, wf_generation *g,
                                    char *message);

/* For a model's file: the pairs, whose values are in text, and how many. */
typedef struct wf_generation_text {
    char of[WF_GENERATION_META][WF_GENERATION_TEXT];
} wf_generation_text;
WF_API int wf_generation_to_meta(const wf_generation *g, wf_generation_text *text,
                                 wf_meta pairs[WF_GENERATION_META]);

#ifdef __cplusplus
}
#endif
#endif
