/* models/hf/tokenizer/tokenizer_parts.c - reads a tokenizer.json, and makes parts of one from a
 * vocabulary of weft. */
#include <stdlib.h>
#include <string.h>

#include "models/message.h"
#include "models/text_internal.h"
#include "tokenizer_parts.h"

bool wf_hf_read_json_tokenizer(const char *folder, int64_t rows, const int32_t *special, wf_hf *out,
                               char *message) {
    size_t bytes;
    char *json = wf_hf_read(folder, "tokenizer.json", &bytes, message);
    if (!json) return false;
    wf_json_text_options o = { .json = json, .bytes = bytes, .rows = rows };
    memcpy(o.special, special, sizeof o.special);
    out->src = out->tgt = wf_tokenizer_from_json(&o, message);
    free(json);
    return wf_hf_of_file("tokenizer.json", out->src, message);
}

void wf_hf_begin_json(wf_text *t, const wf_tokenizer *from) {
    wf_text_puts(t, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n"
                    "  \"added_tokens\": [");
    for (int32_t id = 0; id < WF_SPECIAL_IDS; id++) {
        wf_hf_put_as(t, "%s\n    {\"id\": %d, \"content\": ", id ? "," : "", (int)id);
        wf_hf_put_string(t, wf_tokenizer_piece(from, id));
        wf_text_puts(t, ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
                        "\"normalized\": false, \"special\": true}");
    }
    wf_text_puts(t, "\n  ],\n");
}

enum { LONGEST_PIECE = 2048 };

/* Writes the merges in the text of a codes file as pairs in JSON. Each line after its header has
 * two pieces with a space between them. */
static void put_merges(wf_text *t, const char *codes) {
    bool first = true;
    for (const char *line = strchr(codes, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        size_t n = strcspn(line + 1, "\n"), left = strcspn(line + 1, " ");
        char piece[2][LONGEST_PIECE];
        if (n >= LONGEST_PIECE || left >= n) continue;
        memcpy(piece[0], line + 1, left);
        piece[0][left] = '\0';
        memcpy(piece[1], line + left + 2, n - left - 1);
        piece[1][n - left - 1] = '\0';
        wf_text_puts(t, first ? "\n      [" : ",\n      [");
        wf_hf_put_string(t, piece[0]);
        wf_text_puts(t, ", ");
        wf_hf_put_string(t, piece[1]);
        wf_text_puts(t, "]");
        first = false;
    }
}

void wf_hf_put_bpe(wf_text *t, const wf_tokenizer *from, const char *unknown, const char *suffix,
                   void (*put)(wf_text *t, const wf_tokenizer *from)) {
    size_t size = wf_tokenizer_merges(from) ? wf_tokenizer_codes(from, NULL, 0) + 1 : 0;
    char *codes = size ? malloc(size) : NULL;
    if (size && !codes) t->lacks = true;
    wf_hf_put_as(t,
                 "  \"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": %s,\n"
                 "    \"continuing_subword_prefix\": null, \"end_of_word_suffix\": %s,\n",
                 unknown, suffix);
    wf_text_puts(t, "    \"fuse_unk\": false, \"byte_fallback\": false, \"ignore_merges\": false,\n"
                    "    ");
    put(t, from);
    wf_text_puts(t, ",\n    \"merges\": [");
    if (codes) wf_tokenizer_codes(from, codes, size);
    if (codes) put_merges(t, codes);
    wf_text_puts(t, "\n    ]\n  }\n}\n");
    free(codes);
}
