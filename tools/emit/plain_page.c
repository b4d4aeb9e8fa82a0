/* tools/emit/plain_page.c - functions of a model's WebAssembly that a page calls. clang makes it
 * from the model's C file and this one. A line of text goes in; its output and attention come out.
 * Embedded as text. */

#define EXPORT(name) __attribute__((export_name(name)))

static _Alignas(64) unsigned char page_memory[model_MEMORY];
static char page_line[model_LINE], page_text[model_TEXT];
static model page_model;
static int32_t page_tokens[model_ATTENDED];

EXPORT("start") void page_start(void);
void page_start(void) {
    model_start(&page_model, page_memory);
}

/* The page writes a line here, of at most line_size() bytes. */
EXPORT("line") char *page_line_at(void);
char *page_line_at(void) {
    return page_line;
}

EXPORT("line_size") int page_line_size(void);
int page_line_size(void) {
    return model_LINE;
}

/* Translate n bytes of the line. Returns the bytes of the output, or an error below 0. */
EXPORT("translate") int page_translate(int n);
int page_translate(int n) {
    return model_translate(&page_model, page_line, (size_t)n, page_text, sizeof page_text);
}

EXPORT("text") const char *page_text_at(void);
const char *page_text_at(void) {
    return page_text;
}

/* The score of the last output. */
EXPORT("score") double page_score(void);
double page_score(void) {
    return model_score(&page_model);
}

/* ---- the last output ------------------------------------------------------------------------- */

/* Computes the attention weights for the last source and its best output. Returns the number of
 * tokens that the decoder reads, without padding; -1: there is no output, or the model cannot read
 * it. */
EXPORT("attend") int page_attend(void);
int page_attend(void) {
    return searches_of(&page_model)->at[0].n_ended ? model_attend(&page_model, page_tokens) : -1;
}

/* The functions down to page_begin return, for the last output: the tokens that the decoder reads,
 * and those of the source; the largest number that there can be of each; how many the source has;
 * and how many of the decoder's tokens come before the output. */
EXPORT("tokens") const int32_t *page_tokens_at(void);
const int32_t *page_tokens_at(void) {
    return page_tokens;
}

EXPORT("most_tokens") int page_most_tokens(void);
int page_most_tokens(void) {
    return model_ATTENDED;
}

EXPORT("source") const int32_t *page_source_at(void);
const int32_t *page_source_at(void) {
    return searches_of(&page_model)->at[0].source;
}

EXPORT("source_size") int page_source_size(void);
int page_source_size(void) {
    return searches_of(&page_model)->at[0].n_source;
}

EXPORT("most_source") int page_most_source(void);
int page_most_source(void) {
    return model_SOURCE;
}

EXPORT("begin") int page_begin(void);
int page_begin(void) {
    return searches_of(&page_model)->at[0].begin;
}

/* [heads, queries, keys] */
EXPORT("weights") const float *page_weights(int map, int layer);
const float *page_weights(int map, int layer) {
    return model_weights(&page_model, map, layer);
}

/* [most_tokens, vocabulary] */
EXPORT("log_probs") const float *page_log_probs(void);
const float *page_log_probs(void) {
    return model_log_probs(&page_model);
}

EXPORT("vocabulary") int page_vocabulary(void);
int page_vocabulary(void) {
    return VOCABULARY;
}
