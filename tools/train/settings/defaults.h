/* tools/train/settings/defaults.h - default settings that depend on the size of the data.
 *
 * Each rule is a table of sizes and values that were found to work. Between two rows, values are
 * interpolated over the logarithm of the size, so that they do not jump. Before the first row and
 * after the last they are constant. */
#ifndef WEFT_TOOLS_TRAIN_DEFAULTS_H
#define WEFT_TOOLS_TRAIN_DEFAULTS_H

#include "models/text.h"
#include "tools/data/pairs.h"

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

/* Tokens in a batch, padding included, for `batch` pairs of tokens_per_pair tokens each, but at
 * least 256 and at most 4,096. */
int64_t defaults_batch_tokens(double batch, double tokens_per_pair);
/* Vocabulary size of byte-pair encoding for `bytes` bytes of text. */
int64_t defaults_ids(double bytes);
/* The kind of tokens for one side of the pairs: characters for single words and similarly short
 * lines; words for sequences of few different symbols, such as phonemes; byte-pair encoding for
 * sentences. */
wf_token_kind defaults_tokenizer(const survey_side *side, int64_t pairs);
/* Steps of the warm-up: `recipe`, but at most a tenth of `steps`, the steps of the schedule or of
 * --max-steps. is_long: at most three tenths, because with fewer a post-norm model learns little in
 * a short training at a high rate. */
int64_t defaults_warmup(int64_t recipe, int64_t steps, bool is_long);
/* The peak rate for a width. Above 128 it falls in proportion. */
double defaults_rate(double rate, double width);

#endif
