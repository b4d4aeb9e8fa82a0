/* models/text/json/post_processors.h - inside models: what is done with the tokens of a text: they
 * are cut short, special tokens are put around them, and they are padded. */
#ifndef WEFT_MODELS_TEXT_POST_PROCESSORS_H
#define WEFT_MODELS_TEXT_POST_PROCESSORS_H

#include "text_steps.h"

typedef struct wf_line_token {
    int32_t id, type;
    uint32_t from, to;    /* the token stands for bytes [from, to) of its text */
    uint32_t lead, trail; /* characters of white space at its ends */
    bool second;          /* it is of the second text */
} wf_line_token;

/* Tokens of one or two texts. A post-processor may leave more than two parts; part i ends at
 * ends[i]. */
typedef struct wf_line_tokens {
    wf_line_token *at;
    size_t n, capacity;
    size_t *ends;
    size_t n_parts, ends_capacity;
} wf_line_tokens;

typedef enum {
    NOT_A_PROCESSOR,
    PROCESS_BYTES,
    PROCESS_TEMPLATE,
    PROCESS_BERT,
    PROCESS_ROBERTA
} wf_process_kind;

/* A part of a template: input text 0 or 1, or the ids of a special token. */
typedef struct wf_template_part {
    int text; /* input text 0 or 1; -1: a special token */
    int32_t type;
    size_t first, n; /* ids, in wf_post_processor.ids */
} wf_template_part;

typedef struct wf_template {
    wf_template_part *at;
    size_t n, capacity;
    size_t added; /* the number of ids that the template adds */
} wf_template;

typedef struct wf_post_processor {
    wf_process_kind kind;
    bool trim, prefix_space;
    int32_t start, end; /* BERT, RoBERTa */
    wf_template single, pair;
    int32_t *ids;
    size_t n_ids, ids_capacity;
} wf_post_processor;

enum { CUT_LONGEST, CUT_FIRST, CUT_SECOND };

typedef struct wf_post {
    wf_post_processor *at;
    size_t n, capacity;
    bool trims; /* true: a processor needs the tokens' lead and trail */
    bool truncates, cut_left;
    int64_t most, stride;
    int strategy;
    bool pads, pad_left;
    int64_t pad_to, pad_multiple; /* pad_to 0: the text's own length */
    int32_t pad_id, pad_type;
    wf_line_tokens next;
} wf_post;

/* Reads the fields "post_processor", "truncation" and "padding" of the file. */
bool wf_post_read(wf_post *p, const json_tree *tree, char *message);
void wf_post_free(wf_post *p);
/* Truncates the tokens t of one or two texts (one part each), adds special tokens if `special` is
 * true, and pads. Afterwards the parts of t have no meaning. texts: the two texts, which give the
 * bytes of the white space that a processor trims off the tokens' offsets. */
bool wf_post_apply(wf_post *p, wf_line_tokens *t, const wf_span texts[2], bool special,
                   char *message);
bool wf_line_token_add(wf_line_tokens *t, wf_line_token token, char *message);
bool wf_line_tokens_end(wf_line_tokens *t, char *message); /* ends a part */

#endif
