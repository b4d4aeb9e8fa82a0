/* tools/emit/emit_model.h - a model's file as one C file, with the search that `generate` makes
 * with it: graph --emit-c. */
#ifndef WEFT_TOOLS_EMIT_EMIT_MODEL_H
#define WEFT_TOOLS_EMIT_EMIT_MODEL_H

#include "models/model_emit.h"

typedef struct emitted {
    char *text;
    char sizes[WF_MESSAGE];  /* how many bytes memory, weights and C take, as text */
    wf_emit_weights weights; /* bytes of the file of weights; empty: the C file has them */
    char about[WF_MESSAGE];  /* a sentence about the model; "" if the program trains */
    bool ids;                /* its lines are ids, not text */
    /* The rest is set if the file has attention: the maps, and how many heads each has. */
    wf_attention_map maps[WF_MOST_MAPS];
    int n_maps, heads[WF_MOST_MAPS];
    int32_t end_id;                   /* the token that ends an output */
    bool start_first, start_if_empty; /* as in wf_model */
    /* the pieces of the vocabularies of source and output, as readers see them; NULL: there is no
     * such vocabulary, and tokens are shown as ids */
    char **pieces[2];
    int64_t n_pieces[2];
} emitted;

/* The format of matrices: words for an option. */
#define EMIT_WEIGHTS "f32|int8"
enum { EMIT_F32, EMIT_INT8 };

/* Settings of the C file. A field that is 0 or NULL stands for the model's own setting. */
typedef struct emit_settings {
    int64_t beam;
    int64_t batch;      /* sources that are decoded at once */
    int64_t max_length; /* most tokens of a source and of an output */
    int64_t max_line;   /* most bytes of a line */
    int64_t ram;        /* most bytes of memory */
    bool attention;     /* the file can also compute attention weights */
    const char *prefix;
    int weights; /* EMIT_F32, EMIT_INT8; -1: as the file */
    /* name of the file that gets the weights and that the program reads; NULL: the C file has
     * them as an array */
    const char *weights_file;
} emit_settings;

/* The caller frees the text and the bytes of weights; emit_page frees the pieces. False with
 * message[256]. */
bool emit_model(emitted *e, const wf_file *f, const emit_settings *set, char *message);

/* Replace e->text, a C file with the prefix "model", by a stand-alone page that has this file as
 * WebAssembly: graph --emit-html. path: of the model's file. False with message[256]. */
bool emit_page(emitted *e, const char *path, char *message);

/* Write e->sizes: so many bytes of memory and of weights. of_weights: words for the latter. */
void emitted_sizes(emitted *e, int64_t memory, int64_t weights, const char *of_weights);

#endif
