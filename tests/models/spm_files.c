/* tests/models/spm_files.c - reading what record_spm.py recorded; see spm_files.h. */
#include "spm_files.h"

#include "tests/support/support.h"
#include "texts.h"

recorded open_recorded(const char *name) {
    size_t bytes;
    char *text = data_text(name, &bytes);
    return (recorded){ text, { text, bytes } };
}

void close_recorded(recorded *r) {
    free(r->text);
}

static const unsigned char *take(recorded *r, size_t bytes) {
    const char *at = r->rest.text;
    ck_assert_uint_le(bytes, r->rest.bytes);
    r->rest.text += bytes, r->rest.bytes -= bytes;
    return (const unsigned char *)at;
}

uint32_t take_number(recorded *r) {
    const unsigned char *b = take(r, 4);
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

wf_span take_text(recorded *r) {
    size_t bytes = take_number(r);
    return (wf_span){ (const char *)take(r, bytes), bytes };
}

const unsigned char *take_shorts(recorded *r, int n) {
    return take(r, 2 * (size_t)n);
}

bool next_model(recorded *r, wf_span *model) {
    if (!r->rest.bytes) return false;
    *model = take_text(r);
    return true;
}

void pass_lines(recorded *r) {
    for (uint32_t n = take_number(r); n > 0; n--) {
        take_text(r);
        take_shorts(r, 2 * (int)take_number(r));
        take_text(r);
    }
}

wf_tokenizer *tokenizer_of(wf_span model) {
    char message[WF_MESSAGE] = "";
    wf_sentencepiece_options o;
    bool ok = wf_sentencepiece_defaults(model.text, model.bytes, &o, message);
    wf_tokenizer *t = ok ? wf_tokenizer_from_sentencepiece(&o, message) : NULL;
    ck_assert_msg(t != NULL, "%s", message);
    return t;
}
