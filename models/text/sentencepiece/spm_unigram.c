/* models/text/sentencepiece/spm_unigram.c - finds the most probable pieces of a line (Kudo 2018),
 * by Viterbi's algorithm over its bytes; see spm.h.
 *
 * Scores are added as in the library sentencepiece, in 32 bits and from left to right, because the
 * last bit decides between almost equal paths. Between exactly equal paths the first one is taken,
 * with starts from left to right and pieces from short to long. */
#include "spm.h"

#include "core/base/utf8.h"

struct wf_spm_best { /* the best path to a byte */
    float score;
    int32_t start, id; /* of its last piece; start -1: there is no path yet */
};

static const float unknown_penalty = 10;

static void offer(wf_spm_best *to, float score, int32_t start, int32_t id) {
    if (to->start == -1 || score > to->score) *to = (wf_spm_best){ score, start, id };
}

float wf_spm_unknown_score(const wf_spm *m) {
    return m->lowest - unknown_penalty;
}

float wf_spm_user_score(size_t bytes) {
    return (float)((double)bytes * 0.1 - 0.1);
}

static float score_of(const wf_spm *m, int32_t id, size_t bytes) {
    const wf_spm_piece *p = &m->pieces[id];
    return p->type == SPM_USER_DEFINED ? wf_spm_user_score(bytes) : p->score;
}

/* Tries all pieces from `start` on. True if one of them is exactly the first character. */
static bool offer_pieces(const wf_spm *m, wf_span line, size_t start, size_t character) {
    float before = m->best[start].score;
    bool single = false;
    int32_t node = 0;
    for (size_t end = start; end < line.bytes;) {
        if ((node = trie_step(&m->trie, node, line.text[end++])) < 0) break;
        int32_t id = m->trie.nodes[node].value;
        if (id < 0 || m->pieces[id].type == SPM_UNUSED) continue;
        offer(&m->best[end], score_of(m, id, end - start) + before, (int32_t)start, id);
        single |= end - start == character;
    }
    return single;
}

/* Collects the pieces of the best path from the last to the first, then reverses them. */
static bool take_best(wf_spm *m, wf_span line) {
    size_t first = m->n_tokens;
    for (int32_t end = (int32_t)line.bytes; end > 0; end = m->best[end].start) {
        int32_t start = m->best[end].start;
        wf_span text = { line.text + start, (size_t)(end - start) };
        if (!wf_spm_add(m, text, m->best[end].id)) return false;
    }
    for (size_t i = first, j = m->n_tokens; i + 1 < j; i++) {
        wf_spm_token token = m->tokens[--j];
        m->tokens[j] = m->tokens[i];
        m->tokens[i] = token;
    }
    return true;
}

bool wf_spm_unigram(wf_spm *m, wf_span line) {
    float unknown = wf_spm_unknown_score(m);
    if (!wf_grow(&m->best, &m->best_capacity, line.bytes + 1, sizeof *m->best)) return false;
    for (size_t i = 0; i <= line.bytes; i++) m->best[i] = (wf_spm_best){ .start = -1 };
    for (size_t start = 0, bytes; start < line.bytes; start += bytes) {
        bytes = wf_utf8_announced(line.text + start, line.bytes - start);
        if (offer_pieces(m, line, start, bytes)) continue;
        float score = unknown + m->best[start].score;
        offer(&m->best[start + bytes], score, (int32_t)start, m->unknown);
    }
    return take_best(m, line);
}
