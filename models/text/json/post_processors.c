/* models/text/json/post_processors.c - special tokens around a text, truncation, padding; see
 * post_processors.h. */
#include "post_processors.h"

#include <stdlib.h>

#include "core/base/utf8.h"

bool wf_line_token_add(wf_line_tokens *t, wf_line_token token, char *message) {
    if (t->n == t->capacity && !wf_grow(&t->at, &t->capacity, t->n + 1, sizeof *t->at))
        return fail(message, "out of memory");
    t->at[t->n++] = token;
    return true;
}

bool wf_line_tokens_end(wf_line_tokens *t, char *message) {
    if (!wf_grow(&t->ends, &t->ends_capacity, t->n_parts + 1, sizeof *t->ends))
        return fail(message, "out of memory");
    t->ends[t->n_parts++] = t->n;
    return true;
}

static size_t part_begin(const wf_line_tokens *t, size_t i) {
    return i ? t->ends[i - 1] : 0;
}

/* ---- truncation ------------------------------------------------------------------------------ */

static bool cut(const wf_post *p, wf_line_tokens *t, size_t part, int64_t most, char *message) {
    size_t begin = part_begin(t, part), n = t->ends[part] - begin, keep = (size_t)most;
    if ((uint64_t)most >= n) return true;
    if (most && p->stride >= most)
        return fail(message, "the truncation's stride is not below its length");
    size_t from = p->cut_left ? begin + n - keep : begin, gone = n - keep;
    memmove(t->at + begin, t->at + from, keep * sizeof *t->at);
    memmove(t->at + begin + keep, t->at + begin + n, (t->n - begin - n) * sizeof *t->at);
    t->n -= gone;
    for (size_t i = part; i < t->n_parts; i++) t->ends[i] -= gone;
    return true;
}

/* Shortens the lengths of two texts to `most` in sum. The longer one is cut first. */
static void share(int64_t most, int64_t *a, int64_t *b) {
    int64_t low = *a < *b ? *a : *b, high;
    bool swapped = *a > *b;
    if (low > most)
        high = low;
    else
        high = low > most - low ? low : most - low;
    if (low + high > most) {
        low = most / 2;
        high = low + most % 2;
    }
    *a = swapped ? high : low;
    *b = swapped ? low : high;
}

static bool truncate_all(const wf_post *p, wf_line_tokens *t, int64_t most, char *message) {
    int64_t n[2] = { (int64_t)t->ends[0], (int64_t)(t->n - t->ends[0]) }, total = (int64_t)t->n;
    if (!most) {
        t->n = 0;
        for (size_t i = 0; i < t->n_parts; i++) t->ends[i] = 0;
        return true;
    }
    if (total <= most) return true;
    if (p->strategy == CUT_LONGEST) {
        if (t->n_parts == 1) return cut(p, t, 0, most, message);
        share(most, &n[0], &n[1]);
        return cut(p, t, 0, n[0], message) && cut(p, t, 1, n[1], message);
    }
    size_t part = p->strategy == CUT_SECOND;
    if (part >= t->n_parts)
        return fail(message, "the truncation is of a second text, and there is none");
    if (n[part] <= total - most)
        return fail(message, "the text that is cut short is shorter than what is too much");
    return cut(p, t, part, n[part] - (total - most), message);
}

/* ---- white space at the ends ----------------------------------------------------------------- */

static uint32_t forward(wf_span s, uint32_t at, uint32_t n, uint32_t end) {
    for (; n && at < end && at < s.bytes; n--)
        at += (uint32_t)wf_utf8_announced(s.text + at, s.bytes - at);
    return at < end ? at : end;
}

/* Moves an end back by n characters, but not below `begin`. If the text has fewer characters before
 * it, the end stays, as in Hugging Face's tokenizers library. */
static uint32_t backward(wf_span s, uint32_t end, uint32_t n, uint32_t begin) {
    uint32_t at = end;
    for (; n && at; n--) {
        do at--;
        while (at && at < s.bytes && wf_utf8_continues(s.text[at]));
    }
    if (n) return end;
    return at > begin ? at : begin;
}

/* Trims white space off the tokens' offsets. A space that was put before the first word is not in
 * the text, so it is not trimmed. */
static void trim(const wf_post_processor *p, wf_line_tokens *t, const wf_span texts[2]) {
    for (size_t part = 0; part < t->n_parts; part++)
        for (size_t i = part_begin(t, part); i < t->ends[part]; i++) {
            wf_line_token *k = &t->at[i];
            bool first = i == part_begin(t, part) || !k->from;
            uint32_t lead = first && p->prefix_space && k->lead == 1 ? 0 : k->lead;
            if (lead) k->from = forward(texts[k->second], k->from, lead, k->to);
            if (k->trail) k->to = backward(texts[k->second], k->to, k->trail, k->from);
        }
}

/* ---- processors ------------------------------------------------------------------------------ */

static bool put_id(wf_line_tokens *to, int32_t id, int32_t type, char *message) {
    return wf_line_token_add(to, (wf_line_token){ .id = id, .type = type }, message);
}

static bool put_part(wf_line_tokens *to, const wf_line_tokens *t, size_t part, char *message) {
    for (size_t i = part_begin(t, part); i < t->ends[part]; i++)
        if (!wf_line_token_add(to, t->at[i], message)) return false;
    return true;
}

static void set_types(wf_line_tokens *t, size_t part, int32_t type) {
    for (size_t i = part_begin(t, part); i < t->ends[part]; i++) t->at[i].type = type;
}

static void swap(wf_post *p, wf_line_tokens *t) {
    wf_line_tokens old = *t;
    *t = p->next;
    p->next = old;
    p->next.n = p->next.n_parts = 0;
}

static bool apply_template(wf_post *p, const wf_post_processor *k, wf_line_tokens *t, bool special,
                           char *message) {
    const wf_template *parts = t->n_parts == 2 ? &k->pair : &k->single;
    if (t->n_parts > 2) return fail(message, "a template of more than two texts");
    for (size_t i = 0; i < parts->n; i++) {
        const wf_template_part *part = &parts->at[i];
        if (part->text < 0 && !special) continue;
        for (size_t n = 0; part->text < 0 && n < part->n; n++)
            if (!put_id(&p->next, k->ids[part->first + n], part->type, message)) return false;
        if (part->text >= 0) {
            set_types(t, (size_t)part->text, part->type);
            if (!put_part(&p->next, t, (size_t)part->text, message)) return false;
        }
        if (!wf_line_tokens_end(&p->next, message)) return false;
    }
    swap(p, t);
    return true;
}

/* Writes <s> A </s>. A second text B adds B </s>, or with RoBERTa </s> B </s>. */
static bool apply_around(wf_post *p, const wf_post_processor *k, wf_line_tokens *t, bool special,
                         char *message) {
    bool roberta = k->kind == PROCESS_ROBERTA;
    for (size_t i = 0; roberta && i < t->n_parts; i++) set_types(t, i, 0);
    if (!special) return true;
    for (size_t i = 0; i < t->n_parts; i++) {
        int32_t type = roberta || !i ? 0 : 1;
        if ((!i || roberta) && !put_id(&p->next, i ? k->end : k->start, type, message))
            return false;
        if (!put_part(&p->next, t, i, message) || !put_id(&p->next, k->end, type, message) ||
            !wf_line_tokens_end(&p->next, message))
            return false;
    }
    swap(p, t);
    return true;
}

static size_t added(const wf_post *p, bool pair) {
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        const wf_post_processor *k = &p->at[i];
        if (k->kind == PROCESS_TEMPLATE) n += pair ? k->pair.added : k->single.added;
        if (k->kind == PROCESS_BERT) n += pair ? 3 : 2;
        if (k->kind == PROCESS_ROBERTA) n += pair ? 4 : 2;
    }
    return n;
}

/* ---- padding --------------------------------------------------------------------------------- */

static bool pad(const wf_post *p, wf_line_tokens *t, char *message) {
    int64_t to = p->pad_to ? p->pad_to : (int64_t)t->n;
    if (p->pad_multiple && to % p->pad_multiple) to += p->pad_multiple - to % p->pad_multiple;
    size_t old = t->n, more = (uint64_t)to > t->n ? (size_t)to - t->n : 0;
    for (size_t i = 0; i < more; i++)
        if (!put_id(t, p->pad_id, p->pad_type, message)) return false;
    if (!p->pad_left || !more) return true;
    memmove(t->at + more, t->at, old * sizeof *t->at);
    for (size_t i = 0; i < more; i++)
        t->at[i] = (wf_line_token){ .id = p->pad_id, .type = p->pad_type };
    return true;
}

bool wf_post_apply(wf_post *p, wf_line_tokens *t, const wf_span texts[2], bool special,
                   char *message) {
    int64_t n = special ? (int64_t)added(p, t->n_parts == 2) : 0;
    p->next.n = p->next.n_parts = 0;
    if (p->truncates && n <= p->most && !truncate_all(p, t, p->most - n, message)) return false;
    for (size_t i = 0; i < t->n_parts; i++) set_types(t, i, (int32_t)i);
    for (size_t i = 0; i < p->n; i++) {
        const wf_post_processor *k = &p->at[i];
        if (k->trim) trim(k, t, texts);
        if (k->kind == PROCESS_TEMPLATE && !apply_template(p, k, t, special, message)) return false;
        if ((k->kind == PROCESS_BERT || k->kind == PROCESS_ROBERTA) &&
            !apply_around(p, k, t, special, message))
            return false;
    }
    return !p->pads || pad(p, t, message);
}

void wf_post_free(wf_post *p) {
    for (size_t i = 0; i < p->n; i++) {
        free(p->at[i].single.at), free(p->at[i].pair.at), free(p->at[i].ids);
    }
    free(p->at), free(p->next.at), free(p->next.ends);
    *p = (wf_post){ 0 };
}
