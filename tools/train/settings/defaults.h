/* tools/train/settings/defaults.h - settings that follow the size of the data.
 *
 * Each rule is a table: a size and what was found to work there. Between two rows all is
 * interpolated over the logarithm of the size, so that nothing jumps; before the first row and after
 * the last it stays. */
#ifndef WEFT_TOOLS_TRAIN_DEFAULTS_H
#define WEFT_TOOLS_TRAIN_DEFAULTS_H

#include "models/text.h"
#include "tools/data/survey.h"

/* Defaults for pairs of text, by their number. */
typedef struct pair_defaults {
    double pairs;
    double batch; /* pairs in a batch */
    double epochs;
    double dropout;
} pair_defaults;
pair_defaults defaults_for_pairs(double pairs);

/* Defaults for running text, by its bytes. */
typedef struct text_defaults {
    double bytes;
    double ids;     /* of byte-bpe */
    double windows; /* in a batch */
    double epochs;
    double dropout;
} text_defaults;
text_defaults defaults_for_text(double bytes);

/* Tokens in a batch of so many pairs of so many tokens each, padding included. */
int64_t defaults_batch_tokens(double batch, double tokens_per_pair);
/* Ids of byte-pair encoding for so many bytes of text. */
int64_t defaults_ids(double bytes);
/* Characters for single words and what is as short, words for sequences of few symbols, such as
 * phonemes, and byte-pair encoding for sentences. */
wf_token_kind defaults_tokenizer(const survey_side *side, int64_t pairs);
/* A tenth of all steps, and no more than the recipe has. */
int64_t defaults_warmup(int64_t recipe, int64_t steps);
/* The peak rate for a width: that of 128, less in proportion beyond it. */
double defaults_rate(double rate, double width);

#endif
