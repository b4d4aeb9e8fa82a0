/* models/emit/emit_cutters.c - the pre-tokenizers of a tokenizer.json as C; see json_emitter.h. */
#include <string.h>

#include "json_emitter.h"
#include "models/text/characters/characters.h"

/* Write the call that cuts words at the matches of an expression, given by its number. False: the
 * number is negative, so the expression was not written. */
static bool cut(json_emitter *e, int expression, wf_behavior how, bool inverts) {
    static const char *const names[] = { "REMOVED", "ISOLATED", "MERGED_WITH_PREVIOUS",
                                         "MERGED_WITH_NEXT", "CONTIGUOUS" };
    if (expression < 0) return false;
    e->cuts = true;
    e->parts = e->parts || e->expands;
    wf_text_print(e->body, "    cut_words_by(&w->words, &%s_expression_%d, %s, %d);\n", e->side,
                  expression, names[how], (int)inverts);
    return true;
}

static bool is_word(uint32_t code) {
    return wf_has_flag(code, IS_WORD);
}

/* Raise the upper bounds of bytes and characters for a step that puts a prefix, one character of
 * `bytes` bytes, before each word. Once the text is cut, each character may be a word. */
static void grow(json_emitter *e, size_t bytes) {
    e->bytes += (e->cuts ? e->characters : 1) * (double)bytes;
    e->characters += e->cuts ? e->characters : 1;
    e->expands = true;
}

static bool cut_bert(json_emitter *e, const wf_text_step *s) {
    (void)s;
    return cut(e, wf_write_character_of(e, wf_is_space), REMOVED, false) &&
           cut(e, wf_write_character_of(e, wf_is_punctuation), ISOLATED, false);
}

static bool cut_level(json_emitter *e, const wf_text_step *s) {
    if (s->flags[PREFIX_SPACE]) {
        wf_text_puts(e->body, "    put_prefix(&w->words, \" \", 1, 1);\n");
        grow(e, 1);
    }
    if (s->flags[USE_REGEX] && !cut(e, wf_write_expression(e, &s->expression), ISOLATED, false))
        return false;
    wf_text_puts(e->body, "    spell_bytes(&w->words);\n");
    e->characters = e->bytes;
    e->bytes *= 2;
    e->expands = true;
    return true;
}

static bool cut_spaces(json_emitter *e, const wf_text_step *s) {
    (void)s;
    return cut(e, wf_write_character_of(e, wf_is_space), REMOVED, false);
}

/* Cut out words, and runs of characters that are neither in a word nor a space. */
static bool cut_words(json_emitter *e, const wf_text_step *s) {
    return cut_spaces(e, s) && cut(e, wf_write_character_of(e, is_word), CONTIGUOUS, false);
}

static bool cut_punctuation(json_emitter *e, const wf_text_step *s) {
    return cut(e, wf_write_character_of(e, wf_is_punctuation), (wf_behavior)s->choice, false);
}

static bool cut_digits(json_emitter *e, const wf_text_step *s) {
    return cut(e, wf_write_character_of(e, wf_is_digit), s->flags[0] ? ISOLATED : CONTIGUOUS,
               false);
}

static bool cut_split(json_emitter *e, const wf_text_step *s) {
    return cut(e, wf_write_expression(e, &s->expression), (wf_behavior)s->choice, s->flags[INVERT]);
}

/* Write the expression that matches one character. Returns its number, or -1 with message. */
static int write_code(json_emitter *e, uint32_t code) {
    wf_code_set s = { 0 };
    bool ok = (wf_set_new(&s) && wf_set_add(&s, code, code)) || fail(e->message, "out of memory");
    int number = ok ? wf_write_character(e, &s) : -1;
    wf_set_free(&s);
    return number;
}

static bool cut_delimiter(json_emitter *e, const wf_text_step *s) {
    return cut(e, write_code(e, s->code), REMOVED, false);
}

static bool cut_metaspace(json_emitter *e, const wf_text_step *s) {
    int space = wf_write_expression(e, &s->expression);
    if (space < 0) return false;
    if (s->choice == SCHEME_FIRST && (e->parts || e->loses_begin))
        return fail(e->message,
                    "the pre-tokenizer 'Metaspace' of a tokenizer.json has no form in C "
                    "with prepend_scheme 'first' behind steps that change and cut text");
    wf_text_print(e->body, "    replace_matches(&w->words, &%s_expression_%d, ", e->side, space);
    if (!wf_write_span(e, e->body, s->text)) return false;
    wf_text_print(e->body, ", %n, 0);\n", (int64_t)s->text.bytes);
    e->bytes *= (double)s->text.bytes;
    if (s->choice != SCHEME_NEVER) {
        wf_text_puts(e->body, "    put_prefix(&w->words, ");
        if (!wf_write_span(e, e->body, s->text)) return false;
        wf_text_print(e->body, ", %n, %d);\n", (int64_t)s->text.bytes, s->choice == SCHEME_ALWAYS);
        grow(e, s->text.bytes);
    }
    return !s->flags[SPLIT_SPACES] || cut(e, write_code(e, s->code), MERGED_WITH_NEXT, false);
}

const step_row wf_emitted_cutters[] = {
    { "BertPreTokenizer", cut_bert },
    { "ByteLevel", cut_level },
    { "Metaspace", cut_metaspace },
    { "Whitespace", cut_words },
    { "WhitespaceSplit", cut_spaces },
    { "Punctuation", cut_punctuation },
    { "Digits", cut_digits },
    { "Split", cut_split },
    { "CharDelimiterSplit", cut_delimiter },
    { NULL, NULL },
};
