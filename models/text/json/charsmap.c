/* models/text/json/charsmap.c - a precompiled map of characters, applied as Hugging Face's
 * tokenizers library does; see text_steps.h.
 *
 * The rules are those of a SentencePiece model, but they are applied in another way. Each grapheme
 * cluster of less than six bytes is replaced as a whole by the rule for its shortest beginning. If
 * there is none, and in longer clusters, each character is replaced by its own rule, or stays.
 * SentencePiece takes the longest rule at every place. */
#include <stdlib.h>

#include "core/base/utf8.h"
#include "models/text/base64.h"
#include "models/text/characters/characters.h"
#include "text_steps.h"

enum { LONGEST_CLUSTER = 5 };

bool wf_charsmap_read(wf_text_step *s, const wf_step_source *from) {
    wf_span text;
    size_t bytes;
    if (!wf_step_text(from, "precompiled_charsmap", &text)) return false;
    s->map = wf_base64_decode(text, &bytes, "the precompiled map", from->message);
    return s->map && wf_spm_rules(&s->rules, (wf_span){ s->map, bytes }, from->message);
}

static bool change_last(wf_aligned *a, int32_t by) {
    if (a->n_changes) a->changes[a->n_changes - 1].change += by;
    return true;
}

static size_t count(wf_span s) {
    size_t n = 0;
    for (size_t i = 0; i < s.bytes; i++) n += !wf_utf8_continues(s.text[i]);
    return n;
}

/* Replaces the characters of `old` by those of `by`, one by one. Further new characters are
 * inserted; if there are fewer, the remaining old ones are removed. */
static bool replace(wf_aligned *a, wf_span old, wf_span by) {
    size_t n_old = count(old), n_new = 0;
    for (size_t at = 0; at < by.bytes; n_new++) {
        int32_t code = wf_utf8_next(by.text, by.bytes, &at);
        if (code < 0) return fail(a->message, "the precompiled map has bytes that are not UTF-8");
        if (!wf_change_add(a, (uint32_t)code, n_new >= n_old)) return false;
    }
    return n_new >= n_old || change_last(a, (int32_t)n_new - (int32_t)n_old);
}

static bool find(const wf_text_step *s, wf_span part, wf_span *by) {
    return s->rules.units && wf_spm_first_rule(&s->rules, part, by);
}

static bool map_cluster(const wf_text_step *s, wf_aligned *a, wf_span part, bool *changed) {
    wf_span by;
    if (part.bytes <= LONGEST_CLUSTER && find(s, part, &by)) {
        *changed = true;
        return replace(a, part, by);
    }
    for (size_t at = 0; at < part.bytes;) {
        wf_span c = { part.text + at, 0 };
        int32_t code = wf_utf8_next(part.text, part.bytes, &at);
        c.bytes = (size_t)(part.text + at - c.text);
        bool found = find(s, c, &by);
        *changed = *changed || found;
        if (found ? !replace(a, c, by) : !wf_change_add(a, (uint32_t)code, 0)) return false;
    }
    return true;
}

bool wf_charsmap_normalize(wf_text_step *s, wf_aligned *a, wf_piece *p) {
    bool changed = false;
    wf_change_begin(a);
    for (size_t at = 0; at < p->bytes;) {
        wf_span rest = { a->text + p->begin + at, p->bytes - at };
        rest.bytes = wf_cluster(rest.text, rest.bytes);
        if (!map_cluster(s, a, rest, &changed)) return false;
        at += rest.bytes;
    }
    return !changed || wf_change_all(a, p, 0);
}
