/* models/hf/lm/lm_tokenizer.c - the tokenizer.json of a language model's folder, read and written.
 *
 * A tokenizer.json that was read is written unchanged. A tokenizer of running text in bytes, or in
 * byte-pair encoding of bytes, is written as a tokenizer.json that gives the same ids, with the
 * start token before them. */
#include <stdlib.h>
#include <string.h>

#include "lm_family.h"
#include "models/hf/tokenizer/tokenizer_parts.h"
#include "models/message.h"
#include "models/text_internal.h"

/* ---- read ------------------------------------------------------------------------------------ */

bool wf_hf_lm_read_tokenizer(const char *folder, const hf_lm_config *c, wf_hf *out, char *message) {
    const int32_t special[] = { -1, -1, c->c.start_id, c->c.end_id };
    if (wf_hf_exists(folder, "tokenizer.json"))
        return wf_hf_read_json_tokenizer(folder, c->c.vocab, special, out, message);
    wf_hf_note(out->notes, "there is no tokenizer.json: the model reads and writes token ids");
    return true;
}

/* ---- written --------------------------------------------------------------------------------- */

/* Chunks as running text has them (models/text/running.c): a run of letters, of digits or of other
 * characters, with the space before it if there is one; or white space, up to the end of a line. */
#define BLANK " \\t\\n\\u000B\\f\\r"
#define LETTER "A-Za-z\\u0080-\\uDBFF\\uDFFF"
#define CHUNKS                                                                                     \
    " ?[" LETTER "]+| ?[0-9]+| ?[^" BLANK LETTER "0-9]+|[ \\t\\u000B\\f\\r]*\\n|"                  \
    "[ \\t\\u000B\\f\\r]+(?= [^" BLANK "])|[ \\t\\u000B\\f\\r]+"

/* Writes the post-processor: it puts the start token before a text, or before a pair of texts. */
static void put_template(wf_text *t, const char *start, int32_t id) {
    wf_hf_put_as(t, "  \"post_processor\": {\"type\": \"TemplateProcessing\",\n    \"single\": [");
    for (int part = 0; part < 2; part++) {
        wf_hf_put_as(t, part ? "],\n    \"pair\": [" : "");
        wf_hf_put_as(t, "{\"SpecialToken\": {\"id\": ");
        wf_hf_put_string(t, start);
        wf_hf_put_as(t, ", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}");
        if (part) wf_hf_put_as(t, ", {\"Sequence\": {\"id\": \"B\", \"type_id\": 0}}");
    }
    wf_hf_put_as(t, "],\n    \"special_tokens\": {");
    wf_hf_put_string(t, start);
    wf_hf_put_as(t, ": {\"id\": ");
    wf_hf_put_string(t, start);
    wf_hf_put_as(t, ", \"ids\": [%d], \"tokens\": [", (int)id);
    wf_hf_put_string(t, start);
    wf_hf_put_as(t, "]}}},\n");
}

static void put_vocabulary(wf_text *t, const wf_tokenizer *from) {
    wf_text_puts(t, "\"vocab\": {");
    for (int32_t id = 0; id < wf_tokenizer_size(from); id++) {
        wf_text_puts(t, id ? ",\n      " : "\n      ");
        wf_hf_put_string(t, wf_tokenizer_piece(from, id));
        wf_hf_put_as(t, ": %d", (int)id);
    }
    wf_text_puts(t, "\n    }");
}

static bool write_running(wf_tokenizer *from, int32_t start, const wf_hf_writer *to,
                          char *message) {
    wf_text t = { 0 };
    bool merges = wf_tokenizer_merges(from) > 0;
    wf_hf_begin_json(&t, from);
    wf_hf_put_as(&t, "  \"normalizer\": null,\n  \"pre_tokenizer\": {\"type\": \"Sequence\", "
                     "\"pretokenizers\": [");
    if (merges) {
        wf_hf_put_as(&t, "\n    {\"type\": \"Split\", \"pattern\": {\"Regex\": \"");
        wf_text_add(&t, CHUNKS, strlen(CHUNKS));
        wf_hf_put_as(&t, "\"},\n      \"behavior\": \"Isolated\", \"invert\": false},");
    }
    wf_hf_put_as(&t, "\n    {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
                     "\"trim_offsets\": false, \"use_regex\": false}]},\n");
    put_template(&t, wf_tokenizer_piece(from, start), start);
    wf_hf_put_as(&t, "  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
                     "\"trim_offsets\": false, \"use_regex\": false},\n");
    wf_hf_put_bpe(&t, from, "null", "null", put_vocabulary);
    return wf_hf_put_file(&t, "tokenizer.json", to, message);
}

static bool write_settings(const wf_hf *hf, const wf_hf_writer *to, char *message) {
    wf_text t = { 0 };
    const char *start = wf_tokenizer_piece(hf->src, hf->model->start_id);
    const char *end = wf_tokenizer_piece(hf->src, hf->model->end_id);
    wf_hf_put_name(&t, "tokenizer_class", "PreTrainedTokenizerFast");
    wf_hf_put_int(&t, "model_max_length", hf->model->max_len);
    wf_hf_put_flag(&t, "clean_up_tokenization_spaces", false);
    if (start) wf_hf_put_name(&t, "bos_token", start);
    if (end) wf_hf_put_name(&t, "eos_token", end);
    return wf_hf_put_object(&t, "tokenizer_config.json", to, message);
}

bool wf_hf_lm_write_tokenizer(wf_hf *hf, const wf_hf_writer *to, char *message) {
    wf_json_text_options o;
    bool json = wf_tokenizer_json(hf->src, &o);
    wf_token_kind kind = wf_tokenizer_kind(hf->src);
    bool bytes = hf->src && (kind == WF_BYTES || kind == WF_BYTE_BPE);
    if (!json && !bytes) {
        wf_hf_note(hf->notes, "the folder has no tokenizer: only text in bytes, or in byte-pair "
                              "encoding of bytes, has a tokenizer.json");
        return true;
    }
    bool ok = json ? wf_hf_put_bytes(to, "tokenizer.json", o.json, o.bytes, message)
                   : write_running(hf->src, hf->model->start_id, to, message);
    return ok && write_settings(hf, to, message);
}
