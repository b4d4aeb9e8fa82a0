/* models/text/learn/learn_unigram.c - learns a Unigram model (Kudo 2018); see json_learn.h.
 *
 * It begins with many pieces: the characters, and frequent substrings. In each round the EM
 * algorithm estimates the pieces' probabilities, and then a quarter of the pieces is dropped: those
 * without which the text, cut into other pieces, loses the least probability. The steps and
 * constants are those of SentencePiece and Hugging Face's tokenizers library: two rounds of EM
 * before pruning, pieces with an expected count below a half are dropped, and the M step is that of
 * a Dirichlet prior (digamma).
 *
 * Unlike in these libraries, seeds are counted with their words' frequency, characters are never
 * dropped, and the last pruning is by loss, too. Words are taken in the order of the text, on one
 * thread, and words of more than 64 characters in parts, so that no probability underflows. */
#include <stdlib.h>

#include "core/file_internal.h"
#include "json_learn.h"
#include "ops/base/scalars.h"

enum { LONGEST_WORD = 64, EM_ROUNDS = 2, SCORE_DIGITS = 9 };
#define KEPT_PART 0.75
#define FEWEST_EXPECTED 0.5

typedef struct piece {
    int32_t text; /* its index in the tally of texts */
    bool single;  /* one character, which stays */
    double score; /* logarithm of the probability */
    double p;     /* the probability */
    double count; /* how often it occurs in all cuts (expected), or in the best ones */
} piece;

/* A piece within a word: characters [from, to). */
typedef struct edge {
    int32_t from, to, piece;
    double weight;
} edge;

enum { MOST_EDGES = LONGEST_WORD * WF_LONGEST_PIECE };
/* All ways to cut a word. Edges are in the order of `from`. */
typedef struct lattice {
    int32_t n, n_edges; /* n: characters of the word */
    edge edges[MOST_EDGES];
    double best[LONGEST_WORD + 1], before[LONGEST_WORD + 1], after[LONGEST_WORD + 1];
    int32_t last[LONGEST_WORD + 1]; /* the last edge of the best way to a position; -1: none */
} lattice;

typedef struct unigram {
    wf_json_learner *l;
    wf_tally words; /* the words to cut into pieces: add_word */
    wf_tally texts; /* texts of the pieces, characters first */
    int32_t n_characters;
    piece *pieces;
    size_t n;
    int32_t *place; /* the index of a text's piece; -1: it was dropped */
    wf_trie trie;   /* of texts */
    lattice lattice;
} unigram;

/* ---- words and seeds ------------------------------------------------------------------------- */

/* Adds the parts of a word: characters outside the alphabet are left out, and long words
 * divided. */
static bool add_word(unigram *u, wf_span word, int64_t count) {
    size_t begin = 0, at = 0;
    for (int n = 0; at < word.bytes; n++) {
        size_t bytes = wf_code_point(word.text + at, word.bytes - at).bytes;
        bool known = wf_strings_find(&u->texts.strings, word.text + at, bytes) >= 0;
        if (!known || n == LONGEST_WORD) {
            wf_span part = { word.text + begin, at - begin };
            if (part.bytes && !wf_tally_add(&u->words, part, count)) return false;
            begin = known ? at : at + bytes;
            n = known ? 0 : -1;
        }
        at += bytes;
    }
    wf_span rest = { word.text + begin, word.bytes - begin };
    return !rest.bytes || wf_tally_add(&u->words, rest, count);
}

static bool take_texts(unigram *u) {
    const wf_tally *from = &u->l->words;
    if (!wf_learn_alphabet(u->l, &u->texts)) return false;
    u->n_characters = u->texts.strings.n;
    for (int32_t i = 0; i < from->strings.n; i++) {
        wf_span word = wf_strings_span(&from->strings, i);
        if (!add_word(u, word, from->counts[i])) return false;
    }
    return wf_unigram_seeds(&u->texts, &u->words);
}

/* Takes the characters and seeds as pieces. Their first probabilities are in proportion to the
 * characters' counts and the seeds' weights. */
static bool take_pieces(unigram *u) {
    const wf_strings *s = &u->texts.strings;
    size_t n = (size_t)s->n;
    double sum = 0;
    u->pieces = calloc(n + 1, sizeof *u->pieces);
    u->place = calloc(n + 1, sizeof *u->place);
    if (!u->pieces || !u->place) return false;
    for (size_t i = 0; i < n; i++) sum += (double)u->texts.counts[i];
    for (size_t i = 0; i < n; i++) {
        int32_t text = (int32_t)i;
        double part = (double)u->texts.counts[i] / sum;
        if (wf_strings_find(&u->l->pieces, wf_strings_at(s, text),
                            wf_strings_span(s, text).bytes) >= 0)
            continue; /* a special token has this text */
        u->pieces[u->n++] = (piece){ text, text < u->n_characters, wf_log_of(part), part, 0 };
    }
    return true;
}

/* Builds the trie of the remaining pieces. False: out of memory. */
static bool index_pieces(unigram *u) {
    const wf_strings *s = &u->texts.strings;
    wf_trie_key *keys = malloc((u->n + 1) * sizeof *keys);
    if (!keys) return false;
    for (int32_t i = 0; i < s->n; i++) u->place[i] = -1;
    for (size_t i = 0; i < u->n; i++) {
        int32_t text = u->pieces[i].text;
        u->place[text] = (int32_t)i;
        keys[i] = (wf_trie_key){ wf_strings_span(s, text), text };
    }
    wf_trie_free(&u->trie);
    bool ok = wf_trie_build(&u->trie, keys, u->n);
    free(keys);
    return ok;
}

/* ---- ways to cut a word ---------------------------------------------------------------------- */

static void add_edges(unigram *u, wf_span word, size_t at, int32_t from) {
    lattice *a = &u->lattice;
    int32_t node = 0, to = from;
    while (at < word.bytes && to - from < WF_LONGEST_PIECE) {
        size_t end = at + wf_code_point(word.text + at, word.bytes - at).bytes;
        for (; at < end; at++)
            if ((node = trie_step(&u->trie, node, word.text[at])) < 0) return;
        to++;
        int32_t text = u->trie.nodes[node].value;
        int32_t i = text < 0 ? -1 : u->place[text];
        if (i >= 0) a->edges[a->n_edges++] = (edge){ from, to, i, 0 };
    }
}

/* Finds all pieces of a word, and the best way through them; without the piece `except`, or with
 * all if it is -1. */
static void cut(unigram *u, wf_span word, int32_t except) {
    lattice *a = &u->lattice;
    a->n = a->n_edges = 0;
    for (size_t at = 0; at < word.bytes; a->n++) {
        add_edges(u, word, at, a->n);
        at += wf_code_point(word.text + at, word.bytes - at).bytes;
    }
    for (int32_t i = 0; i <= a->n; i++) a->last[i] = -1;
    a->best[0] = 0;
    for (int32_t i = 0; i < a->n_edges; i++) {
        const edge *e = &a->edges[i];
        double score = a->best[e->from] + u->pieces[e->piece].score;
        if (e->piece == except || (a->last[e->to] >= 0 && score <= a->best[e->to])) continue;
        a->best[e->to] = score;
        a->last[e->to] = i;
    }
}

/* Adds the expected counts of the pieces in a word: forward and backward sums over all ways.
 * Weights are multiplied by a factor for each character, with which the best way has the weight
 * 1. */
static void expect(unigram *u, wf_span word, double count) {
    lattice *a = &u->lattice;
    double factor[WF_LONGEST_PIECE + 1];
    cut(u, word, -1);
    factor[0] = 1;
    factor[1] = wf_exp_of(-a->best[a->n] / a->n);
    for (int i = 2; i <= WF_LONGEST_PIECE; i++) factor[i] = factor[i - 1] * factor[1];
    for (int32_t i = 0; i <= a->n; i++) a->before[i] = a->after[i] = 0;
    a->before[0] = a->after[a->n] = 1;
    for (int32_t i = 0; i < a->n_edges; i++) {
        edge *e = &a->edges[i];
        e->weight = u->pieces[e->piece].p * factor[e->to - e->from];
        a->before[e->to] += a->before[e->from] * e->weight;
    }
    for (int32_t i = a->n_edges; i-- > 0;) {
        const edge *e = &a->edges[i];
        a->after[e->from] += a->after[e->to] * e->weight;
    }
    double all = a->before[a->n];
    for (int32_t i = 0; i < a->n_edges; i++) {
        const edge *e = &a->edges[i];
        double way = a->before[e->from] * e->weight * a->after[e->to];
        u->pieces[e->piece].count += count * way / all;
    }
}

/* ---- expectation and maximisation ------------------------------------------------------------ */

/* The derivative of log Gamma, as SentencePiece computes it. */
static double digamma(double x) {
    double result = 0;
    for (; x < 7; x += 1) result -= 1 / x;
    x -= 0.5;
    double a = 1 / x, b = a * a, c = b * b;
    return result + wf_log_of(x) + b / 24 - 7 * c / 960 + 31 * b * c / 8064 - 127 * c * c / 30720;
}

/* One round of EM. If `drops`, pieces with a small count are dropped, unless they are
 * characters. */
static void maximise(unigram *u, bool drops) {
    const wf_tally *w = &u->words;
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < u->n; i++) u->pieces[i].count = 0;
    for (int32_t i = 0; i < w->strings.n; i++) {
        wf_span word = wf_strings_span(&w->strings, i);
        expect(u, word, (double)w->counts[i]);
    }
    for (size_t i = 0; i < u->n; i++) {
        piece x = u->pieces[i];
        bool few = x.count < FEWEST_EXPECTED;
        u->place[x.text] = few && drops && !x.single ? -1 : (int32_t)n;
        if (u->place[x.text] < 0) continue;
        if (few) x.count = FEWEST_EXPECTED;
        sum += x.count;
        u->pieces[n++] = x;
    }
    u->n = n;
    double all = digamma(sum);
    for (size_t i = 0; i < n; i++) {
        u->pieces[i].score = digamma(u->pieces[i].count) - all;
        u->pieces[i].p = wf_exp_of(u->pieces[i].score);
    }
}

/* ---- pruning --------------------------------------------------------------------------------- */

typedef struct candidate {
    double loss;
    size_t piece;
} candidate;

static int by_loss(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->loss != y->loss) return x->loss < y->loss ? 1 : -1;
    return (x->piece > y->piece) - (x->piece < y->piece);
}

/* Counts the pieces of the best cuts of all words. Returns the number of words. */
static double count_best(unigram *u) {
    const wf_tally *w = &u->words;
    const lattice *a = &u->lattice;
    double all = 0;
    for (size_t i = 0; i < u->n; i++) u->pieces[i].count = 0;
    for (int32_t i = 0; i < w->strings.n; i++) {
        double count = (double)w->counts[i];
        cut(u, wf_strings_span(&w->strings, i), -1);
        for (int32_t at = a->n; at; at = a->edges[a->last[at]].from)
            u->pieces[a->edges[a->last[at]].piece].count += count;
        all += count;
    }
    return all;
}

/* The loss of dropping piece i: how much the log-probability of the text falls, per word, if the
 * piece's text is cut in the best other way. words: the number of words; sum: the number of pieces
 * in the best cuts of all words. */
static double loss(unigram *u, size_t i, double words, double sum) {
    const wf_strings *s = &u->texts.strings;
    const lattice *a = &u->lattice;
    const piece *x = &u->pieces[i];
    double others = 0;
    int parts = 0;
    if (x->count == 0) return 0;
    cut(u, wf_strings_span(s, x->text), (int32_t)i);
    for (int32_t at = a->n; at; at = a->edges[a->last[at]].from) parts++;
    double then = wf_log_of(sum + x->count * (parts - 1));
    for (int32_t at = a->n; at; at = a->edges[a->last[at]].from)
        others += wf_log_of(u->pieces[a->edges[a->last[at]].piece].count + x->count) - then;
    return x->count / words * (wf_log_of(x->count) - wf_log_of(sum) - others);
}

/* Drops pieces until `size` are left, or only the characters. False: out of memory. */
static bool prune(unigram *u, size_t size) {
    double words = count_best(u), sum = 0;
    candidate *c = malloc((u->n + 1) * sizeof *c);
    size_t n = 0, kept = 0;
    if (!c) return false;
    for (size_t i = 0; i < u->n; i++) sum += u->pieces[i].count;
    for (size_t i = 0; i < u->n; i++)
        if (u->pieces[i].single)
            kept++;
        else
            c[n++] = (candidate){ loss(u, i, words, sum), i };
    qsort(c, n, sizeof *c, by_loss);
    for (size_t i = 0; i < u->n; i++)
        if (!u->pieces[i].single) u->place[u->pieces[i].text] = -1;
    for (size_t i = 0; i < n && kept < size; i++, kept++)
        u->place[u->pieces[c[i].piece].text] = (int32_t)c[i].piece;
    free(c);
    size_t to = 0;
    for (size_t i = 0; i < u->n; i++)
        if (u->place[u->pieces[i].text] >= 0) u->pieces[to++] = u->pieces[i];
    u->n = to;
    return index_pieces(u);
}

/* Repeats estimating and pruning until at most `size` pieces are left. False: out of memory. */
static bool shrink(unigram *u, size_t size) {
    size_t nearly = size + size / 10;
    bool ok = index_pieces(u);
    for (int i = 0; ok && i < EM_ROUNDS; i++) maximise(u, true);
    while (ok && u->n > nearly) {
        size_t next = (size_t)((double)u->n * KEPT_PART);
        ok = prune(u, next > nearly ? next : nearly);
        for (int i = 0; ok && i < EM_ROUNDS; i++) maximise(u, true);
    }
    ok = ok && (u->n <= size || prune(u, size));
    if (ok) maximise(u, false);
    return ok;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int by_score(const void *a, const void *b) {
    const piece *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return (x->text > y->text) - (x->text < y->text);
}

static void put_piece(wf_json_learner *l, const char *text, double score) {
    char number[WF_REAL_TEXT];
    wf_learn_put(l, "[");
    wf_learn_put_text(l, text);
    wf_learn_put(l, ",");
    wf_learn_put(l, wf_format_real(score, SCORE_DIGITS, number));
    wf_learn_put(l, "]");
}

static void write_model(unigram *u) {
    wf_json_learner *l = u->l;
    wf_learn_put(l, "{\"type\":\"Unigram\",\"unk_id\":");
    wf_learn_put_number(l, l->roles.unknown);
    wf_learn_put(l, ",\"vocab\":[");
    for (int32_t id = 0; id < l->n_special; id++) {
        if (id) wf_learn_put(l, ",");
        put_piece(l, wf_strings_at(&l->pieces, id), 0);
    }
    qsort(u->pieces, u->n, sizeof *u->pieces, by_score);
    for (size_t i = 0; i < u->n; i++) {
        wf_learn_put(l, ",");
        put_piece(l, wf_strings_at(&u->texts.strings, u->pieces[i].text), u->pieces[i].score);
    }
    wf_learn_put(l, "],\"byte_fallback\":false}");
}

static bool learn(unigram *u) {
    wf_json_learner *l = u->l;
    if (!take_texts(u)) return fail(l->message, "out of memory");
    if (!wf_learn_room(l, u->n_characters)) return false;
    if (!take_pieces(u) || !shrink(u, (size_t)(l->o->vocab_size - l->n_special)))
        return fail(l->message, "out of memory");
    return wf_learn_enough(l, (int64_t)u->n + l->n_special);
}

bool wf_learn_unigram(wf_json_learner *l) {
    unigram *u = calloc(1, sizeof *u);
    if (!u) return fail(l->message, "out of memory");
    u->l = l;
    bool ok = learn(u);
    if (ok) write_model(u);
    wf_tally_free(&u->words);
    wf_tally_free(&u->texts);
    wf_trie_free(&u->trie);
    free(u->pieces), free(u->place), free(u);
    return ok;
}
