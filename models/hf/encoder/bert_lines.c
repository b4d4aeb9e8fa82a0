/* models/hf/encoder/bert_lines.c - the vocabulary of an encoder that was trained here, as a
 * tokenizer.json with the same ids: words, characters, or parts of words by byte-pair encoding.
 *
 * Words are cut at white space, as in text.h. weft marks a piece that is not the last of its word
 * ("lo@@"), and the library tokenizers marks a symbol that is the last ("lo</w>"). The merges are
 * the same. */
#include <stdlib.h>
#include <string.h>

#include "bert_family.h"
#include "models/hf/tokenizer/tokenizer_parts.h"
#include "models/message.h"
#include "models/text_internal.h"

#define BLANKS "[ \\t\\n\\u000B\\f\\r]+"
#define MORE "@@"
#define END "</w>"

/* The text of a piece in the tokenizer.json: in byte-pair encoding "lo" for the piece "lo@@", and
 * "lo</w>" for "lo". The caller frees it. NULL: out of memory. */
static char *symbol_of(wf_token_kind kind, const char *piece) {
    size_t n = strlen(piece), more = strlen(MORE);
    bool marked = kind == WF_BPE && n > more && strcmp(piece + n - more, MORE) == 0;
    char *symbol = malloc(n + sizeof END);
    if (!symbol) return NULL;
    memcpy(symbol, piece, n + 1);
    if (marked) symbol[n - more] = '\0';
    if (kind == WF_BPE && !marked) memcpy(symbol + n, END, sizeof END);
    return symbol;
}

/* True if a symbol has the text of a special token. The library tokenizers finds the special token
 * first, so such a symbol is not written. */
static bool is_special(const wf_tokenizer *from, const char *symbol) {
    for (int32_t id = 0; id < WF_SPECIAL_IDS; id++)
        if (strcmp(symbol, wf_tokenizer_piece(from, id)) == 0) return true;
    return false;
}

static void put_vocabulary(wf_text *t, const wf_tokenizer *from) {
    wf_token_kind kind = wf_tokenizer_kind(from);
    wf_hf_put_as(t, "\"vocab\": {");
    for (int32_t id = 0; id < wf_tokenizer_size(from); id++) {
        bool special = id < WF_SPECIAL_IDS;
        char *symbol = symbol_of(special ? WF_WORDS : kind, wf_tokenizer_piece(from, id));
        if (!symbol) t->lacks = true;
        if (symbol && (special || !is_special(from, symbol))) {
            wf_hf_put_as(t, id ? ",\n      " : "\n      ");
            wf_hf_put_string(t, symbol);
            wf_hf_put_as(t, ": %d", (int)id);
        }
        free(symbol);
    }
    wf_hf_put_as(t, "\n    }");
}

bool wf_hf_bert_has_lines(const wf_tokenizer *from) {
    if (!from) return false;
    wf_token_kind kind = wf_tokenizer_kind(from);
    return kind == WF_WORDS || kind == WF_CHARACTERS || kind == WF_BPE;
}

bool wf_hf_bert_write_lines(const wf_tokenizer *from, const wf_hf_writer *to, char *message) {
    static const char *const decoders[] = { "null", "{\"type\": \"Fuse\"}",
                                            "{\"type\": \"BPEDecoder\", \"suffix\": \"" END "\"}" };
    wf_token_kind kind = wf_tokenizer_kind(from);
    wf_text t = { 0 };
    wf_hf_begin_json(&t, from);
    wf_hf_put_as(&t, "  \"normalizer\": null,\n  \"pre_tokenizer\": ");
    wf_hf_put_as(&t, kind == WF_CHARACTERS
                         ? "null"
                         : "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"" BLANKS
                           "\"}, \"behavior\": \"Removed\", \"invert\": false}");
    wf_hf_put_as(&t, ",\n  \"post_processor\": null,\n  \"decoder\": %s,\n",
                 decoders[kind == WF_WORDS        ? 0
                          : kind == WF_CHARACTERS ? 1
                                                  : 2]);
    if (kind == WF_WORDS) {
        wf_text_puts(&t, "  \"model\": {\"type\": \"WordLevel\", \"unk_token\": \"<unk>\", ");
        put_vocabulary(&t, from);
        wf_text_puts(&t, "\n  }\n}\n");
    } else /* characters are byte-pair encoding without merges */
        wf_hf_put_bpe(&t, from, "\"<unk>\"", kind == WF_BPE ? "\"" END "\"" : "null",
                      put_vocabulary);
    return wf_hf_put_file(&t, "tokenizer.json", to, message);
}
