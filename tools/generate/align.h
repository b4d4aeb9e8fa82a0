/* tools/generate/align.h - which word of a source each word of its output came from, by the
 * cross-attention of the last decoder layer.
 *
 * The weights are those of one head if the model was trained to align with it, otherwise the mean
 * of all heads. A word's weight is the sum over the source's tokens in it, and the mean over the
 * output's tokens in it. Tokens that belong to no word, such as an end, are left out. */
#ifndef WEFT_TOOLS_GENERATE_ALIGN_H
#define WEFT_TOOLS_GENERATE_ALIGN_H

#include "attention_maps.h"
#include "tools/alignment/line_words.h"

/* ALIGN_HARD links each word of the output to its likeliest source word; ALIGN_SOFT writes all
 * weights instead of links; ALIGN_ABOVE links words whose weight is above a threshold. */
typedef enum { ALIGN_OFF, ALIGN_HARD, ALIGN_SOFT, ALIGN_ABOVE } align_kind;
typedef struct align_rule {
    align_kind kind;
    double threshold;
} align_rule;

/* Read "hard", "soft" or a threshold from 0 to 1. False: it is none of these. */
bool align_rule_read(const char *text, align_rule *rule);

/* The words of a line: word[i] is the number of the word that token i of n belongs to, or NO_WORD;
 * `words` is how many there are. */
typedef struct token_words {
    int32_t *word;
    int64_t n, words;
} token_words;

typedef struct alignment {
    int64_t src, tgt; /* words */
    float *weights;   /* [tgt, src] */
    int64_t *best;    /* [tgt]: the likeliest source word; -1: there is none */
} alignment;

/* The number of heads in the last layer of cross-attention; 0: the model has none. */
int64_t align_heads(const wf_model *m);
/* Compute the alignment from the attention of the last attention_run. head -1: the mean of all
 * heads. `out` may have more tokens than the output, such as an end token, and these are ignored.
 * False: out of memory. */
bool alignment_new(alignment *l, attention *a, int head, const token_words *src,
                   const token_words *out);
void alignment_free(alignment *l);

/* Write " |||", and then either " s-t" for every link, ordered by source word, or for every output
 * word a space and its weights, separated by commas. */
void alignment_text(const alignment *l, align_rule rule, FILE *out);
/* Add the field "alignment" to a JSON object that has fields already: by rule a list of links,
 * [[s,t],...], or the rows of weights. */
void alignment_json(const alignment *l, align_rule rule, jsonl *out);

#endif
