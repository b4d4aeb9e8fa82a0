/* models/text/running.c - running text: every byte, including line breaks, is part of a token, so
 * decoding restores it.
 *
 * A vocabulary file has one piece per line, so a piece contains no line break. In kinds whose
 * tokens are bytes, a byte is spelled as in GPT-2 (Radford et al. 2019): by itself if it is
 * printable, else by a letter from U+0100 on ("Ġ" is a space, "Ċ" a line break). In text that is
 * cut into characters, a control character is spelled by its picture (U+2400 on). */
#include "tokenizer.h"

#include "core/base/utf8.h"

enum { PICTURES = 0x2400, DELETE = 127, DELETE_PICTURE = 0x2421 };

static int32_t code_of(wf_span character) {
    return wf_utf8_code(character.text, character.bytes);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static bool is_itself(unsigned byte) {
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

uint32_t wf_byte_character(unsigned char byte) {
    if (is_itself(byte)) return byte;
    if (byte <= 32) return 256u + byte;
    return byte <= 160 ? 256u + 33 + (byte - 127u) : 256u + 67;
}

int wf_character_byte(uint32_t code) {
    if (code < 256) return is_itself(code) ? (int)code : -1;
    if (code < 256 + 33) return (int)code - 256;
    if (code < 256 + 67) return (int)code - 256 - 33 + 127;
    return code == 256 + 67 ? 173 : -1;
}

size_t wf_spell_byte(unsigned char byte, char out[CODE_POINT]) {
    return wf_utf8_put(out, (int32_t)wf_byte_character(byte));
}

wf_span wf_spell_bytes(wf_span bytes, char *out) {
    wf_span s = { out, 0 };
    for (size_t i = 0; i < bytes.bytes; i++)
        s.bytes += wf_spell_byte((unsigned char)bytes.text[i], out + s.bytes);
    return s;
}

/* ---- characters ------------------------------------------------------------------------------ */

wf_span wf_spell_character(wf_span c, char out[CODE_POINT]) {
    int at = code_of(c);
    if (at >= PICTURES && at <= DELETE_PICTURE) return (wf_span){ out, 0 };
    if (c.bytes != 1 || (at >= ' ' && at != DELETE)) return c;
    return (wf_span){ out, wf_utf8_put(out, at == DELETE ? DELETE_PICTURE : PICTURES + at) };
}

static int control_of(wf_span character) {
    int c = code_of(character);
    if (c == DELETE_PICTURE) return DELETE;
    return c >= PICTURES && c < PICTURES + ' ' ? c - PICTURES : -1;
}

bool wf_running_check(wf_token_kind kind, wf_span text, char *message) {
    if (!text.text && text.bytes) return fail(message, "there is no text");
    if (kind != WF_TEXT_CHARACTERS || !text.bytes) return true;
    size_t good = wf_utf8_prefix(text.text, text.bytes);
    return good == text.bytes || fail(message, "not UTF-8 at byte %zu", good);
}

/* ---- back ------------------------------------------------------------------------------------ */

void wf_unspell(const wf_tokenizer *t, wf_span piece, wf_sink *to) {
    while (piece.bytes) {
        wf_span c = wf_character_next(&piece);
        int byte =
            t->kind == WF_TEXT_CHARACTERS ? control_of(c) : wf_character_byte((uint32_t)code_of(c));
        char raw = (char)byte;
        if (byte >= 0)
            put(to, &raw, 1);
        else
            put_span(to, c);
    }
}

/* ---- chunks: byte-pair encoding merges within these ------------------------------------------ */

enum { LETTER, DIGIT, OTHER, BLANK };

/* The class of a byte. Bytes above ASCII count as letters. */
static int class_of(char byte) {
    int c = (unsigned char)byte;
    if (c == ' ' || (c >= '\t' && c <= '\r')) return BLANK;
    if (c >= '0' && c <= '9') return DIGIT;
    int upper = c & ~0x20;
    return c >= 0x80 || (upper >= 'A' && upper <= 'Z') ? LETTER : OTHER;
}

/* The end of the run that begins at `at`. A run of white space ends after a line break, and no run
 * goes beyond LONGEST_CHUNK bytes from the start of the text. */
static size_t run_end(wf_span text, size_t at) {
    int class = class_of(text.text[at]);
    size_t most = text.bytes < LONGEST_CHUNK ? text.bytes : LONGEST_CHUNK;
    for (; at < most && class_of(text.text[at]) == class; at++)
        if (text.text[at] == '\n') return at + 1;
    return at;
}

bool wf_chunk_next(wf_span *rest, wf_span *chunk) {
    if (!rest->bytes) return false;
    const char *text = rest->text;
    size_t n = run_end(*rest, 0);
    if (class_of(text[0]) == BLANK && text[n - 1] == ' ' && n < rest->bytes)
        /* the last space of the run belongs to the next chunk */
        n = n > 1 ? n - 1 : run_end(*rest, 1);
    *chunk = wf_span_take(rest, n);
    return true;
}
