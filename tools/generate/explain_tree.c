/* tools/generate/explain_tree.c - records the search of one line as a tree. See explain.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "explain.h"
#include "models/choices.h"

/* Limits for the page. Of a larger tree, a part is left out. */
enum { MOST_NODES = 2000, MOST_ROWS = 200 };

/* The positions of the page's slider. The page cannot sum over the vocabulary, so sums are stored
 * for these temperatures only. */
static const double temperatures[] = { 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2,
                                       1.3, 1.4, 1.5, 1.6, 1.8, 2,   2.5, 3,   4,   5, 7,   10 };
enum { TEMPERATURES = sizeof temperatures / sizeof *temperatures };

/* ---- memory ---------------------------------------------------------------------------------- */

static bool add_node(tree *t, tree_node node) {
    if (!wf_grow(&t->nodes, &t->room_nodes, t->n_nodes + 1, sizeof *t->nodes)) return false;
    t->nodes[t->n_nodes++] = node;
    return true;
}

static tree_row *add_row(tree *t) {
    double *normalisers = calloc(TEMPERATURES, sizeof *normalisers);
    if (!normalisers || !wf_grow(&t->rows, &t->room_rows, t->n_rows + 1, sizeof *t->rows)) {
        free(normalisers);
        return NULL;
    }
    t->rows[t->n_rows] = (tree_row){ .normalisers = normalisers };
    return &t->rows[t->n_rows++];
}

bool tree_open(tree *t, const wf_decode_options *o, int64_t vocab) {
    *t = (tree){ .width = o->sample ? o->nbest : o->beam, .vocab = vocab };
    t->live = calloc((size_t)t->width, sizeof *t->live);
    t->next = calloc((size_t)t->width, sizeof *t->next);
    return t->live && t->next &&
           add_node(t, (tree_node){ .parent = -1, .token = -1, .row = -1, .fate = WF_FATE_LIVE });
}

void tree_close(tree *t) {
    for (size_t i = 0; i < t->n_rows; i++) free(t->rows[i].normalisers);
    free(t->nodes);
    free(t->rows);
    free(t->live);
    free(t->next);
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* log(sum exp(x / temperature)), where top is the largest x. */
static double normaliser_at(const float *x, int64_t n, double top, double temperature) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += exp(((double)x[i] - top) / temperature);
    return top / temperature + log(sum);
}

/* Finds the likeliest tokens, best first, with lower ids before equal ones. */
static void find_likeliest(tree_row *r, const float *logits, const float *ranked, int64_t vocab) {
    for (int64_t i = 0; i < vocab; i++) {
        double logit = (double)logits[i];
        if (r->n == TREE_TOP && logit <= r->logits[TREE_TOP - 1]) continue;
        int at = r->n < TREE_TOP ? r->n++ : TREE_TOP - 1;
        for (; at > 0 && logit > r->logits[at - 1]; at--) {
            r->logits[at] = r->logits[at - 1];
            r->tokens[at] = r->tokens[at - 1];
        }
        r->logits[at] = logit;
        r->tokens[at] = (int32_t)i;
    }
    for (int k = 0; k < r->n; k++) r->banned[k] = ranked[r->tokens[k]] == -INFINITY;
}

static bool add_live(tree *t, const wf_search_step *s, int i) {
    const float *logits = s->logits[i], *ranked = s->ranked[i];
    tree_row *r = add_row(t);
    if (!r) return false;
    r->node = t->live[i];
    r->normaliser = s->normaliser[i];
    find_likeliest(r, logits, ranked, t->vocab);
    for (int k = 0; k < TEMPERATURES; k++)
        r->normalisers[k] = temperatures[k] == 1
                                ? r->normaliser
                                : normaliser_at(logits, t->vocab, r->logits[0], temperatures[k]);
    t->nodes[r->node].row = (int32_t)(t->n_rows - 1);
    return true;
}

/* The smallest total log-probability with which a continuation was kept in this step; -infinity:
 * the beam is not full. */
static double least_total(const tree *t, const wf_search_step *s) {
    double least = INFINITY;
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        wf_fate fate = s->continuations[i].fate;
        if (fate != WF_FATE_LIVE && fate != WF_FATE_STOPPED) continue;
        least = fmin(least, s->continuations[i].total);
        n++;
    }
    return n < t->width ? -INFINITY : least;
}

/* Adds the banned tokens of a hypothesis that the beam would have kept without the ban: their total
 * of log-probabilities is at least `least`. A beam that is not full would keep all of them (`least`
 * is -infinity); then only the likeliest token is added, if it is banned. */
static bool add_banned(tree *t, int32_t live, double least) {
    const tree_row r = t->rows[t->nodes[live].row];
    for (int k = 0; k < r.n; k++) {
        double log_prob = r.logits[k] - r.normaliser, total = t->nodes[r.node].total + log_prob;
        if (!r.banned[k] || total < least || (least == -INFINITY && k > 0)) continue;
        tree_node node = { r.node, r.tokens[k], log_prob, total, .fate = TREE_BANNED, .row = -1 };
        if (!add_node(t, node)) return false;
    }
    return true;
}

static bool add_continuations(tree *t, const wf_search_step *s) {
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        const wf_continuation *c = &s->continuations[i];
        tree_node node = { .parent = t->live[c->parent],
                           .token = c->token,
                           .log_prob = c->log_prob,
                           .total = c->total,
                           .score = c->score,
                           .fate = (int)c->fate,
                           .cut = c->cut,
                           .row = -1 };
        if (c->fate == WF_FATE_LIVE) t->next[n++] = (int32_t)t->n_nodes;
        if (!add_node(t, node)) return false;
    }
    return true;
}

bool tree_add(tree *t, const wf_search_step *s) {
    double least = least_total(t, s);
    for (int i = 0; i < s->n_live; i++)
        if (!add_live(t, s, i)) return false;
    if (!add_continuations(t, s)) return false;
    for (int i = 0; i < s->n_live; i++)
        if (!add_banned(t, t->live[i], least)) return false;
    memcpy(t->live, t->next, (size_t)t->width * sizeof *t->live);
    return true;
}

/* ---- the outputs ----------------------------------------------------------------------------- */

/* True if the hypothesis at this node has the tokens of h, where an end token does not count. */
static bool is_output(const tree *t, const tree_node *node, const wf_hypothesis *h) {
    if (node->fate != WF_FATE_ENDED || node->output || node->total != h->total) return false;
    int32_t at = node->parent;
    for (int64_t i = h->length; i-- > 0; at = t->nodes[at].parent)
        if (at < 0 || t->nodes[at].token != h->tokens[i]) return false;
    return at == 0;
}

void tree_mark(tree *t, const wf_decoded *outputs) {
    for (int k = 0; k < outputs->n; k++) {
        size_t i = 0;
        while (i < t->n_nodes && !is_output(t, &t->nodes[i], &outputs->best[k])) i++;
        if (i == t->n_nodes) continue;
        t->nodes[i].output = k + 1;
        for (int32_t at = (int32_t)i; at >= 0; at = t->nodes[at].parent)
            t->nodes[at].on_path = true;
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* level 1 shows all nodes; 2 leaves out those dropped at once; 3 shows only paths of outputs. */
static bool is_shown(const tree_node *node, int level) {
    bool cut = node->fate == WF_FATE_WORSE || node->fate == TREE_BANNED;
    return level == 1 || node->on_path || (level == 2 && !cut);
}

/* Numbers the nodes that the page shows, and returns how many. Parents of shown nodes are shown,
 * too: they were live, or are on a path. */
static size_t number_nodes(tree *t, int level) {
    size_t n = 0;
    for (size_t i = 0; i < t->n_nodes; i++) {
        tree_node *node = &t->nodes[i];
        bool shown = is_shown(node, level) && n < MOST_NODES;
        node->shown = shown ? (int32_t)n++ : -1;
    }
    return n;
}

static size_t choose_nodes(tree *t) {
    size_t n = 0, wanted;
    for (int level = 1; level <= 3; level++) {
        wanted = 0;
        for (size_t i = 0; i < t->n_nodes; i++) wanted += is_shown(&t->nodes[i], level);
        if (wanted <= MOST_NODES || level == 3) {
            n = number_nodes(t, level);
            break;
        }
    }
    return n;
}

/* If there are more than MOST_ROWS rows, keeps only those on paths of outputs, and of these the
 * first MOST_ROWS. */
static size_t choose_rows(tree *t) {
    size_t n = 0;
    bool only_paths = t->n_rows > MOST_ROWS;
    for (size_t i = 0; i < t->n_rows; i++) {
        tree_node *node = &t->nodes[t->rows[i].node];
        bool shown = node->shown >= 0 && n < MOST_ROWS && (!only_paths || node->on_path);
        if (shown)
            node->row = (int32_t)n++;
        else
            t->rows[i].node = -1;
        if (!shown) node->row = -1;
    }
    return n;
}

/* Writes [parent, token, log_prob, total, fate, score, cut, row, output]. */
static void node_json(const tree *t, const tree_node *node, jsonl *out) {
    json_open(out, NULL, '[');
    json_int(out, NULL, node->parent < 0 ? -1 : t->nodes[node->parent].shown);
    json_int(out, NULL, node->token);
    json_digits(out, NULL, node->log_prob, 9);
    json_digits(out, NULL, node->total, 9);
    json_int(out, NULL, node->fate);
    json_digits(out, NULL, node->score, 9);
    json_int(out, NULL, node->cut);
    json_int(out, NULL, node->row);
    json_int(out, NULL, node->output);
    json_close(out, ']');
}

static void row_json(const tree *t, const tree_row *r, jsonl *out) {
    int32_t banned[TREE_TOP];
    for (int k = 0; k < r->n; k++) banned[k] = r->banned[k];
    json_open(out, NULL, '{');
    json_int(out, "node", t->nodes[r->node].shown);
    json_ints(out, "tokens", r->tokens, r->n);
    json_reals(out, "logits", r->logits, r->n);
    json_ints(out, "banned", banned, r->n);
    json_reals(out, "normalisers", r->normalisers, TEMPERATURES);
    json_close(out, '}');
}

static void options_json(const wf_decode_options *o, jsonl *out) {
    json_int(out, "beam", o->beam);
    json_int(out, "nbest", o->nbest);
    json_bool(out, "sample", o->sample);
    json_text(out, "penalty", wf_length_penalty_name((int)o->penalty));
    json_real(out, "alpha", o->alpha);
    json_text(out, "stop", wf_stop_name((int)o->stop));
    json_int(out, "min_len", o->min_len);
    json_int(out, "forced", o->n_forced);
    json_ints(out, "banned", o->banned, o->n_banned);
    json_ints(out, "begin_banned", o->begin_banned, o->n_begin_banned);
    json_int(out, "no_repeat_ngram", o->no_repeat_ngram);
    json_real(out, "repetition_penalty", o->repetition_penalty);
    json_real(out, "decay", o->decay);
    json_real(out, "temperature", o->temperature);
    json_int(out, "top_k", o->top_k);
    json_real(out, "top_p", o->top_p);
    json_reals(out, "temperatures", temperatures, TEMPERATURES);
}

static void mark_tokens(const tree *t, bool *used) {
    for (size_t i = 1; i < t->n_nodes; i++)
        if (t->nodes[i].shown >= 0) used[t->nodes[i].token] = true;
    for (size_t i = 0; i < t->n_rows; i++)
        for (int k = 0; t->rows[i].node >= 0 && k < t->rows[i].n; k++)
            used[t->rows[i].tokens[k]] = true;
}

static bool tree_labels_json(const tree *t, const language *l, jsonl *out) {
    bool *used = calloc((size_t)t->vocab, sizeof *used), ok = used;
    if (used) mark_tokens(t, used);
    json_open(out, "labels", '{');
    for (int64_t i = 0; ok && i < t->vocab; i++) {
        char text[LABEL_TEXT], key[24];
        const char *label = used[i] ? language_label(l, SIDE_TGT, (int32_t)i, text) : "";
        ok = label != NULL;
        snprintf(key, sizeof key, "%lld", (long long)i);
        if (used[i] && ok) json_text(out, key, label);
    }
    json_close(out, '}');
    free(used);
    return ok;
}

bool tree_json(tree *t, const wf_decode_options *o, const language *l, jsonl *out) {
    size_t all_rows = t->n_rows, nodes = choose_nodes(t), rows = choose_rows(t);
    json_open(out, "search", '{');
    options_json(o, out);
    json_int(out, "nodes_left_out", (int64_t)(t->n_nodes - nodes));
    json_int(out, "rows_left_out", (int64_t)(all_rows - rows));
    json_open(out, "nodes", '[');
    for (size_t i = 0; i < t->n_nodes; i++)
        if (t->nodes[i].shown >= 0) node_json(t, &t->nodes[i], out);
    json_close(out, ']');
    json_open(out, "rows", '[');
    for (size_t i = 0; i < t->n_rows; i++)
        if (t->rows[i].node >= 0) row_json(t, &t->rows[i], out);
    json_close(out, ']');
    json_close(out, '}');
    return tree_labels_json(t, l, out);
}
