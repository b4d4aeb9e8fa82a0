/* models/emit/emit_decoders.c - the decoders of a tokenizer.json as C; see json_emitter.h. */
#include "json_emitter.h"

static bool write_level(json_emitter *e, const wf_text_step *s) {
    (void)s;
    wf_text_puts(e->body, "    spell_tokens(&w->lists);\n");
    e->bytes *= 3; /* a byte may become U+FFFD, which has 3 bytes */
    return true;
}

static bool write_fallback(json_emitter *e, const wf_text_step *s) {
    (void)s;
    wf_text_puts(e->body, "    join_bytes(&w->lists);\n");
    return true;
}

static bool write_fuse(json_emitter *e, const wf_text_step *s) {
    (void)s;
    wf_text_puts(e->body, "    fuse_tokens(&w->lists);\n");
    return true;
}

/* Write the replacement of a text in tokens. `by` are three C arguments of replace_in_tokens: the
 * new text in the first token, in the others, and in the last one. */
static bool replace(json_emitter *e, wf_span what, const char *by) {
    wf_text_puts(e->body, "    replace_in_tokens(&w->lists, ");
    if (!wf_write_span(e, e->body, what)) return false;
    wf_text_print(e->body, ", %s);\n", by);
    if (!what.bytes) e->bytes = 2 * e->bytes + 1;
    return true;
}

static bool write_metaspace(json_emitter *e, const wf_text_step *s) {
    return replace(e, s->text, s->choice ? "\"\", \" \", 0" : "\" \", \" \", 0");
}

static bool write_suffix(json_emitter *e, const wf_text_step *s) {
    return replace(e, s->text, "\" \", \" \", \"\"");
}

static bool write_word_piece(json_emitter *e, const wf_text_step *s) {
    wf_text_puts(e->body, "    join_pieces(&w->lists, ");
    if (!wf_write_span(e, e->body, s->text)) return false;
    wf_text_print(e->body, ", %d);\n", (int)s->flags[0]);
    e->bytes += 1;
    return true;
}

static bool write_strip(json_emitter *e, const wf_text_step *s) {
    wf_text_puts(e->body, "    strip_tokens(&w->lists, ");
    if (!wf_write_span(e, e->body, s->text)) return false;
    wf_text_print(e->body, ", INT64_C(%n), INT64_C(%n));\n", s->sizes[0], s->sizes[1]);
    return true;
}

static bool write_replace(json_emitter *e, const wf_text_step *s) {
    int expression = wf_write_expression(e, &s->expression);
    if (expression < 0) return false;
    wf_text_print(e->body, "    replace_by_matches(&w->lists, &%s_expression_%d, ", e->side,
                  expression);
    if (!wf_write_span(e, e->body, s->text)) return false;
    wf_text_puts(e->body, ");\n");
    double by = (double)s->text.bytes;
    if (s->expression.nullable)
        e->bytes += (e->bytes + 1) * by;
    else if (by > 1)
        e->bytes *= by;
    return true;
}

const step_row wf_emitted_decoders[] = {
    { "ByteLevel", write_level },
    { "Metaspace", write_metaspace },
    { "WordPiece", write_word_piece },
    { "BPEDecoder", write_suffix },
    { "ByteFallback", write_fallback },
    { "Fuse", write_fuse },
    { "Strip", write_strip },
    { "Replace", write_replace },
    { NULL, NULL },
};
