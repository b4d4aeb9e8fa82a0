/* tests/models/spm_files.h - what record_spm.py recorded, for the suites spm and emit_text. */
#ifndef WEFT_TESTS_MODELS_SPM_FILES_H
#define WEFT_TESTS_MODELS_SPM_FILES_H

#include <stdint.h>

#include "models/text/sentencepiece/spm.h"

typedef struct recorded { /* tests/data/spm.bin or marian.bin, and the part not read yet */
    char *text;
    wf_span rest;
} recorded;

recorded open_recorded(const char *name);
void close_recorded(recorded *r);
uint32_t take_number(recorded *r);
wf_span take_text(recorded *r);                       /* after its length */
const unsigned char *take_shorts(recorded *r, int n); /* n numbers of 16 bits */
static inline int short_at(const unsigned char *shorts, int64_t i) {
    return shorts[2 * i] | shorts[2 * i + 1] << 8;
}

/* Finds the next model in the file, behind the lines of the last one. Returns false at the end. */
bool next_model(recorded *r, wf_span *model);
void pass_lines(recorded *r);

/* Makes a tokenizer of a valid model, with the special ids that the model names. */
wf_tokenizer *tokenizer_of(wf_span model);

#endif
