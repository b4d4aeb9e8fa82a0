/* models/hf/tokenizer/tokenizer_parts.c - reads a tokenizer.json, and makes parts of one from a
 * vocabulary of weft. */
#include <stdlib.h>
#include <string.h>

#include "models/message.h"
#include "models/text_internal.h"
#include "tokenizer_parts.h"

bool wf_hf_read_json_tokenizer(const char *folder, int64_t rows, const int32_t *special, wf_hf *out,
                               char *message) {
    char reason[WF_MESSAGE];
    size_t bytes;
    char *json = wf_hf_read(folder, "tokenizer.json", &bytes, message);
    if (!json) return false;
    wf_json_text_options o = { .json = json, .bytes = bytes, .rows = rows };
    memcpy(o.special, special, sizeof o.special);
    out->src = out->tgt = wf_tokenizer_from_json(&o, reason);
    free(json);
    return out->src || fail(message, "tokenizer.json: %.220s", reason);
}

void wf_hf_put_special(wf_text *t, const wf_tokenizer *from) {
    wf_hf_put_as(t, "  \"added_tokens\": [");
    for (int32_t id = 0; id < WF_SPECIAL_IDS; id++) {
        wf_hf_put_as(t, "%s\n    {\"id\": %d, \"content\": ", id ? "," : "", (int)id);
        wf_hf_put_string(t, wf_tokenizer_piece(from, id));
        wf_hf_put_as(t, ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
                        "\"normalized\": false, \"special\": true}");
    }
    wf_hf_put_as(t, "\n  ],\n");
}

char *wf_hf_codes(const wf_tokenizer *from) {
    size_t size = wf_tokenizer_merges(from) ? wf_tokenizer_codes(from, NULL, 0) + 1 : 1;
    char *codes = malloc(size);
    if (!codes) return NULL;
    *codes = '\0';
    if (size > 1) wf_tokenizer_codes(from, codes, size);
    return codes;
}

enum { LONGEST_PIECE = 2048 };

void wf_hf_put_merges(wf_text *t, const char *codes) {
    bool first = true;
    for (const char *line = strchr(codes, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        size_t n = strcspn(line + 1, "\n"), left = strcspn(line + 1, " ");
        char piece[2][LONGEST_PIECE];
        if (n >= LONGEST_PIECE || left >= n) continue;
        memcpy(piece[0], line + 1, left);
        piece[0][left] = '\0';
        memcpy(piece[1], line + left + 2, n - left - 1);
        piece[1][n - left - 1] = '\0';
        wf_hf_put_as(t, first ? "\n      [" : ",\n      [");
        wf_hf_put_string(t, piece[0]);
        wf_hf_put_as(t, ", ");
        wf_hf_put_string(t, piece[1]);
        wf_hf_put_as(t, "]");
        first = false;
    }
}
