/* tools/embed/embed.h - inside the program `embed`: its settings, vectors of lines, and the search
 * among them. */
#ifndef WEFT_TOOLS_EMBED_EMBED_H
#define WEFT_TOOLS_EMBED_EMBED_H

#include "models/encoder.h"
#include "tools/cli/options/options.h"
#include "tools/data/language.h"
#include "tools/data/lines.h"

typedef enum { FORMAT_TEXT, FORMAT_NPY, FORMAT_F32, FORMAT_LABEL } vector_format;

typedef struct settings {
    const char *model, *input, *output, *search;
    const char *prompt, *search_prompt;
    int format; /* -1: labels where the model has them, else text */
    int64_t top, batch_size, threads;
    int weights; /* f32, bf16, int8; -1: as the file */
    bool quiet;
} settings;

/* A model that makes vectors, with its tokenizer and its plan. */
typedef struct embedder {
    const program *program;
    const settings *set;
    wf_pool *pool;
    int64_t threads; /* of the pool */
    wf_model *model;
    language language;
    wf_plan *plan;
    bool classes;               /* the output has log-probabilities of classes, not vectors */
    int64_t width;              /* numbers for a line: E of a vector, or C classes */
    char *labels;               /* of the classes, a line each; NULL: the file has none */
    int64_t lines, tokens, cut; /* lines and tokens that were embedded; lines that were cut */
    int32_t *ids;               /* [capacity]: of the current line */
    int64_t capacity;
    char *joined; /* [joined_size]: prompt and line */
    size_t joined_size;
} embedder;

/* ---- embed_lines.c: a file's lines become vectors -------------------------------------------- */

/* Takes the vectors [n,E] of n lines, in the order of the input. text: the lines [n], or NULL. */
typedef void (*take_vectors)(void *user, int64_t n, const float *vectors, char *const *text);

void embedder_open(embedder *e, const program *p, const settings *set);
void embedder_close(embedder *e);
/* Reads the lines of a file (NULL: stdin) as they arrive, with the prompt before each. keep: `take`
 * gets the lines, too. */
void embed_file(embedder *e, const char *path, const char *prompt, bool keep, take_vectors take,
                void *user);

/* ---- embed_search.c: the nearest lines ------------------------------------------------------- */

/* Lines and their vectors of length 1. */
typedef struct collection {
    int64_t n, width;
    size_t room_vectors, room_text;
    float *vectors; /* [n,E] */
    char **text;    /* [n] */
    wf_graph *graph;
    wf_tensor *query, *cosines; /* [B,E], [B,n] */
    wf_plan *plan;
} collection;

/* Adds vectors, which are divided by their lengths, and keeps the texts. False: out of memory. */
bool collection_add(collection *c, int64_t n, const float *vectors, char *const *text);
/* Makes the plan that computes the cosines of queries with all lines. False with message[256]. */
bool collection_open(collection *c, wf_pool *pool, char *message);
void collection_close(collection *c);
/* Compares n vectors: writes for each the `top` nearest lines, and their cosines, best first. Among
 * equal cosines the earlier line is first. Returns how many there are for each, at most `top`; -1
 * with message[256]. */
int64_t collection_search(collection *c, int64_t n, const float *vectors, int64_t top,
                          int64_t *nearest, float *cosines, char *message);

#endif
