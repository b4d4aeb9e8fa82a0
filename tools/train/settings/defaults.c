/* tools/train/settings/defaults.c - default settings that depend on the size of the data. See
 * defaults.h. */
#include "defaults.h"

#include <math.h>

#include "ops/base/scalars.h"

/* clang-format off */
/* The fourth row is the recipe of the README's translator: 29,000 pairs of captions with 29 tokens
 * a pair, in batches of 4,096 tokens. The fifth is for 120,000 words of 8 letters, which have as
 * many tokens as these captions; a model learns them better in 30 epochs than in 18, and with less
 * dropout. */
static const pair_defaults by_pairs[] = {
    /* pairs  batch epochs dropout */
    {     100,   16,  200,  0.3  },
    {    1000,   24,  100,  0.3  },
    {   10000,   80,   40,  0.25 },
    {   29000,  147,   26,  0.2  },
    {  120000,  147,   30,  0.05 },
    { 1000000,  292,    6,  0.05 },
    { 10000000, 292,    2,  0.05 },
};

/* The fourth row is a recipe for 3 MB of manual pages. */
static const text_defaults by_bytes[] = {
    /* bytes   ids windows epochs dropout */
    {   10000,  300,   2,  40,  0.2 },
    {  100000,  512,   4,  30,  0.2 },
    {  300000, 1024,   6,  20,  0.1 },
    { 3000000, 4096,  16,  10,  0   },
    { 30000000, 4096, 16,   4,  0   },
    { 300000000, 4096, 16,  2,  0   },
};

/* Vocabulary size of byte-pair encoding, by the bytes of text that it is learned from. */
static const struct { double bytes, ids; } by_text[] = {
    { 10000, 300 }, { 100000, 1000 }, { 500000, 3000 }, { 1800000, 8000 },
};
/* clang-format on */

enum { SHORT = 24, VERY_SHORT = 20, REPEATED = 20, MOST_SYMBOLS = SURVEY_TYPES / 2 };
enum { LEAST_TOKENS = 256, MOST_TOKENS = 4096 };

/* The place of `size` between the rows a and b on a logarithmic scale: 0 at a, 1 at b, limited to
 * these. */
static double place(double size, double a, double b) {
    double x = wf_log_of(size / a) / wf_log_of(b / a);
    if (x < 0) return 0;
    return x > 1 ? 1 : x;
}

static double straight(double a, double b, double x) {
    return a + (b - a) * x;
}

static double geometric(double a, double b, double x) {
    return a * wf_pow_of(b / a, x);
}

#define ROWS(table) (int)(sizeof table / sizeof *table)

pair_defaults defaults_for_pairs(double pairs) {
    int i = 0;
    while (i < ROWS(by_pairs) - 2 && by_pairs[i + 1].pairs < pairs) i++;
    const pair_defaults *a = &by_pairs[i], *b = a + 1;
    double x = place(pairs, a->pairs, b->pairs);
    return (pair_defaults){ pairs, geometric(a->batch, b->batch, x),
                            geometric(a->epochs, b->epochs, x),
                            straight(a->dropout, b->dropout, x) };
}

text_defaults defaults_for_text(double bytes) {
    int i = 0;
    while (i < ROWS(by_bytes) - 2 && by_bytes[i + 1].bytes < bytes) i++;
    const text_defaults *a = &by_bytes[i], *b = a + 1;
    double x = place(bytes, a->bytes, b->bytes);
    return (
        text_defaults){ bytes, geometric(a->ids, b->ids, x), geometric(a->windows, b->windows, x),
                        geometric(a->epochs, b->epochs, x), straight(a->dropout, b->dropout, x) };
}

int64_t defaults_ids(double bytes) {
    int i = 0;
    while (i < ROWS(by_text) - 2 && by_text[i + 1].bytes < bytes) i++;
    double x = place(bytes, by_text[i].bytes, by_text[i + 1].bytes);
    return llround(geometric(by_text[i].ids, by_text[i + 1].ids, x));
}

int64_t defaults_batch_tokens(double batch, double tokens_per_pair) {
    double tokens = batch * tokens_per_pair;
    if (tokens < LEAST_TOKENS) return LEAST_TOKENS;
    return tokens > MOST_TOKENS ? MOST_TOKENS : llround(tokens);
}

wf_token_kind defaults_tokenizer(const survey_side *side, int64_t pairs) {
    double length = (double)side->characters / (double)pairs;
    bool single = side->one_word >= 0.95 * (double)pairs;
    bool repeated = side->words >= (double)REPEATED * side->types;
    if (side->types < MOST_SYMBOLS && repeated) return WF_WORDS;
    if (single && length <= SHORT) return WF_CHARACTERS;
    return length <= VERY_SHORT ? WF_CHARACTERS : WF_BPE;
}

int64_t defaults_warmup(int64_t recipe, int64_t steps, bool is_long) {
    int64_t most = steps * (is_long ? 3 : 1) / 10;
    return recipe < most ? recipe : most;
}

double defaults_rate(double rate, double width) {
    enum { USUAL = 128 };
    return width > USUAL ? rate * USUAL / width : rate;
}
