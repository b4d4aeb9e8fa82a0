/* models/text/sentencepiece/spm_normalize.c - normalises a line for a SentencePiece model; see
 * spm.h.
 *
 * The line is processed from left to right. At each place the next part is one of these: the
 * longest symbol that the user defined, which is kept; the longest text that a rule replaces; one
 * character; or a byte that is not UTF-8, which becomes U+FFFD. The rules are a double array in
 * another format (darts-clone), as it is in the file, so every step is checked not to leave the
 * array. */
#include "spm.h"

#include "core/base/utf8.h"

/* MOST_RULES and MOST_SYMBOLS: how many matching rules and symbols are tried at each place,
 * beginning with the shortest, as in the library sentencepiece. BLOCK: the size of the rules in
 * bytes is a multiple of it. */
enum { MOST_RULES = 32, MOST_SYMBOLS = 64, BLOCK = 1024 };

/* ---- symbols --------------------------------------------------------------------------------- */

size_t wf_spm_symbol(const wf_trie *symbols, wf_span text) {
    size_t longest = 0;
    int32_t node = 0;
    if (!symbols || !symbols->nodes) return 0;
    for (size_t i = 0, found = 0; i < text.bytes && found < MOST_SYMBOLS; i++) {
        if ((node = trie_step(symbols, node, text.text[i])) < 0) break;
        if (symbols->nodes[node].value >= 0) {
            longest = i + 1;
            found++;
        }
    }
    return longest;
}

/* ---- rules ----------------------------------------------------------------------------------- */

static uint32_t read_u32(const unsigned char *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

bool wf_spm_rules(wf_spm_normalizer *n, wf_span map, char *message) {
    if (!map.bytes) return true;
    if (map.bytes <= 4) return fail(message, "the normalisation rules are cut off");
    size_t bytes = read_u32((const unsigned char *)map.text), rest = map.bytes - 4;
    if (bytes >= rest) return fail(message, "the normalisation rules are longer than their field");
    if (bytes < BLOCK || bytes % BLOCK)
        return fail(message, "the normalisation rules have %zu bytes: not a multiple of %d", bytes,
                    BLOCK);
    if (map.text[map.bytes - 1])
        return fail(message, "the normalisation rules do not end with a zero byte");
    n->units = (const unsigned char *)map.text + 4;
    n->n_units = bytes / 4;
    n->replacements = (wf_span){ map.text + 4 + bytes, rest - bytes };
    return true;
}

/* Parts of a unit of the array: its label, where its children are, whether a text ends here. */
static uint32_t label(uint32_t unit) {
    return unit & 0x800000FF;
}
static uint32_t offset(uint32_t unit) {
    return unit >> 10 << ((unit & 0x200) >> 6);
}
static bool has_leaf(uint32_t unit) {
    return unit >> 8 & 1;
}

static bool unit_at(const wf_spm_normalizer *n, uint32_t at, uint32_t *unit) {
    if (at >= n->n_units) return false;
    *unit = read_u32(n->units + 4 * (size_t)at);
    return true;
}

/* The length of the longest text that a rule replaces at the start of `text`, and in *by its
 * replacement. Only the `most` shortest rules that match are tried. 0: no rule matches. */
static size_t find_rule(const wf_spm_normalizer *n, wf_span text, size_t most, wf_span *by) {
    uint32_t at = 0, unit, leaf;
    size_t longest = 0, value = 0;
    size_t longest_rule = text.bytes < WF_SPM_LONGEST ? text.bytes : WF_SPM_LONGEST;
    if (!unit_at(n, 0, &unit)) return 0;
    at ^= offset(unit);
    for (size_t i = 0, found = 0; i < longest_rule && found < most; i++) {
        unsigned char c = (unsigned char)text.text[i];
        at ^= c;
        if (!unit_at(n, at, &unit) || label(unit) != c) break;
        at ^= offset(unit);
        if (!has_leaf(unit)) continue;
        if (!unit_at(n, at, &leaf)) break;
        longest = i + 1;
        value = leaf & 0x7FFFFFFF;
        found++;
    }
    if (!longest || value >= n->replacements.bytes) return 0;
    const char *start = n->replacements.text + value;
    *by = (wf_span){ start, strlen(start) };
    return longest;
}

bool wf_spm_first_rule(const wf_spm_normalizer *n, wf_span text, wf_span *by) {
    return find_rule(n, text, 1, by) > 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

bool wf_spm_put(wf_spm_text *to, const char *text, size_t bytes) {
    if (bytes > SIZE_MAX / 2 - to->bytes ||
        !wf_grow(&to->at, &to->capacity, to->bytes + bytes + 1, 1))
        return false;
    if (bytes) memcpy(to->at + to->bytes, text, bytes);
    to->bytes += bytes;
    return true;
}

/* The length of a line's next part, and in *as the text that it becomes: see the first comment of
 * this file. The line must not be empty. */
static size_t prefix(const wf_spm_normalizer *n, wf_span line, wf_span *as) {
    size_t bytes = wf_spm_symbol(n->symbols, line);
    *as = (wf_span){ line.text, bytes };
    if (bytes) return bytes;
    if ((bytes = find_rule(n, line, MOST_RULES, as))) return bytes;
    *as = (wf_span){ line.text, bytes = wf_utf8_length(line.text, line.bytes) };
    if (bytes) return bytes;
    *as = (wf_span){ REPLACEMENT, REPLACEMENT_BYTES };
    return 1;
}

static bool put_space(const wf_spm_normalizer *n, wf_spm_text *out) {
    return n->escape ? wf_spm_put(out, SPACE_SYMBOL, SPACE_SYMBOL_BYTES) : wf_spm_put(out, " ", 1);
}

static bool put_text(const wf_spm_normalizer *n, wf_span s, wf_spm_text *out) {
    while (s.bytes) {
        const char *space = memchr(s.text, ' ', s.bytes);
        size_t bytes = space ? (size_t)(space - s.text) : s.bytes;
        if (!wf_spm_put(out, s.text, bytes) || (space && !put_space(n, out))) return false;
        wf_span_take(&s, space ? bytes + 1 : bytes);
    }
    return true;
}

static void cut_spaces(const wf_spm_normalizer *n, wf_spm_text *out) {
    const char *space = n->escape ? SPACE_SYMBOL : " ";
    size_t bytes = strlen(space);
    while (out->bytes >= bytes && memcmp(out->at + out->bytes - bytes, space, bytes) == 0)
        out->bytes -= bytes;
}

/* A rule may replace a byte by any text, so the length of a normalised line is limited. */
static bool too_long(wf_span line, size_t bytes, char *message) {
    enum { LEAST = 1 << 16, TIMES = 32 };
    size_t most = line.bytes < (INT32_MAX - LEAST) / TIMES ? LEAST + TIMES * line.bytes : INT32_MAX;
    if (bytes <= most) return false;
    fail(message, "normalised, a line of %zu bytes takes more than %zu", line.bytes, most);
    return true;
}

static void skip_leading(const wf_spm_normalizer *n, wf_span *line) {
    wf_span s;
    while (line->bytes) {
        size_t bytes = prefix(n, *line, &s);
        if (s.bytes != 1 || *s.text != ' ') break;
        wf_span_take(line, bytes);
    }
}

bool wf_spm_normalize(const wf_spm_normalizer *n, wf_span line, wf_spm_text *out, char *message) {
    wf_span s, all = line;
    size_t bytes, total = 0;
    bool after_space = n->remove_extra, ok = true;
    out->bytes = 0;
    if (n->remove_extra) skip_leading(n, &line);
    if (!line.bytes) return true;
    if (n->dummy_prefix && !n->suffix) ok = put_space(n, out);
    for (; ok && line.bytes; wf_span_take(&line, bytes)) {
        bytes = prefix(n, line, &s);
        if (too_long(all, total += s.bytes, message)) return false;
        while (after_space && s.bytes && *s.text == ' ') wf_span_take(&s, 1);
        if (s.bytes) after_space = n->remove_extra && s.text[s.bytes - 1] == ' ';
        ok = put_text(n, s, out);
    }
    if (n->remove_extra) cut_spaces(n, out);
    if (n->dummy_prefix && n->suffix) ok = ok && put_space(n, out);
    return ok || fail(message, "out of memory");
}
