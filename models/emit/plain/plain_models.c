/* models/emit/plain/plain_models.c - the models of a tokenizer.json in the C file of a model: the
 * tokens of each word, as models/text/json/ finds them. It consists of blocks, as plain_text.c
 * does. */

/* Values of `unknown` in a model without an unknown token: unknown text is dropped, or an error. */
#define IS_DROPPED (-1)

#define IS_ERROR (-2)

/* Find the next word after *end, from *at to *end. Writes the ids of added tokens before it.
 * Returns 0 if there is none. */
static int next_to_encode(const word_texts *t, size_t *at, size_t *end, id_list *to) {
    const word_text *now = &t->texts[t->now];
    for (*at = *end; *at < now->n; *at = *end) {
        *end = end_of_word(now, *at);
        if (now->begins[*at] < 0) return 1;
        put_id(to, now->begins[*at] - 1);
    }
    return 0;
}

/* ---- byte pairs ---------------------------------------------------------------------------- */

/* Characters, spelled with the prefix and the suffix, and their ids; with has_words all pieces
 * instead. `bytes` are the ids of "<0x00>" and so on; a null pointer: there are none. */
typedef struct pair_model {
    vocabulary characters;
    const int32_t *ids, *bytes;
    const char *prefix, *suffix;
    int32_t unknown;
    int fuses_unknown, has_words;
    merge_list list;
} pair_model;

/* The id of a character as the vocabulary spells it: with the prefix unless it begins its word, and
 * with the suffix if it ends it. -1: the vocabulary lacks it. */
static int32_t id_of_character(const pair_model *m, const char *text, size_t n, int is_first,
                               int is_last) {
    char spelled[LONGEST_AFFIX + WF_UTF8_MOST];
    size_t bytes = 0;
    for (size_t i = 0; !is_first && m->prefix[i]; i++) spelled[bytes++] = m->prefix[i];
    for (size_t i = 0; i < n; i++) spelled[bytes++] = text[i];
    for (size_t i = 0; is_last && m->suffix[i]; i++) spelled[bytes++] = m->suffix[i];
    int32_t found = find_piece(&m->characters, spelled, bytes);
    return found < 0 ? -1 : m->ids[found];
}

/* A word while its characters become links. If `waits` is 1, an unknown character has no link yet,
 * because the next ones may be fused with it. */
typedef struct pair_links {
    const pair_model *m;
    merger *g;
    int waits, fails;
} pair_links;

static void put_link(pair_links *l, int32_t id) {
    if (l->g->n == LINKS)
        l->fails = LONG_TEXT;
    else
        add_link(l->g, id, 0);
}

static void put_unknown_link(pair_links *l) {
    if (l->m->unknown == IS_ERROR) l->fails = BAD_TEXT;
    if (l->m->unknown < 0) return;
    if (l->waits && !l->m->fuses_unknown) put_link(l, l->m->unknown);
    l->waits = 1;
}

/* Returns 0 if a byte has no id. */
static int put_byte_links(pair_links *l, const char *text, size_t n) {
    const int32_t *bytes = l->m->bytes;
    for (size_t i = 0; i < n; i++)
        if (!bytes || bytes[(unsigned char)text[i]] < 0) return 0;
    for (size_t i = 0; i < n; i++) put_link(l, bytes[(unsigned char)text[i]]);
    return 1;
}

/* Make the links of a word. The link of an unknown character waits, because the next one may be
 * fused with it; links of its bytes do not wait. Returns 0, or an error. */
static int put_character_links(const pair_model *m, merger *g, const char *word, size_t n) {
    pair_links l;
    l.m = m;
    l.g = g;
    l.waits = l.fails = 0;
    g->n = 0;
    for (size_t at = 0, bytes; at < n && !l.fails; at += bytes) {
        bytes = wf_utf8_announced(word + at, n - at);
        int32_t id = id_of_character(m, word + at, bytes, !at, at + bytes == n);
        if (id >= 0) {
            if (l.waits) put_link(&l, m->unknown);
            l.waits = 0;
            if (!l.fails) put_link(&l, id);
        } else if (!put_byte_links(&l, word + at, bytes)) {
            put_unknown_link(&l);
        }
    }
    if (l.waits && !l.fails) put_link(&l, m->unknown);
    return l.fails;
}

static int put_pairs(const pair_model *m, merger *g, const char *word, size_t n, id_list *to) {
    int32_t whole = m->has_words ? find_piece(&m->characters, word, n) : -1;
    if (whole >= 0) {
        put_id(to, m->ids[whole]);
        return 0;
    }
    int status = put_character_links(m, g, word, n);
    if (status) return status;
    merge_one_by_one(g, &m->list);
    put_symbols(g, &m->list, to);
    return 0;
}

static int encode_pairs(const pair_model *m, merger *g, const word_texts *t, id_list *to) {
    const char *text = t->texts[t->now].at;
    int status = t->fails;
    for (size_t at = 0, end = 0; !status && next_to_encode(t, &at, &end, to);)
        status = put_pairs(m, g, text + at, end - at, to);
    return status;
}

/* ---- the most probable pieces ---------------------------------------------------------------- */

/* Indices of pieces are their ids. `bytes` are the ids of "<0x00>" and so on; a null pointer: there
 * are none. */
typedef struct probable_model {
    vocabulary pieces;
    const double *scores;
    double unknown_score;
    const int32_t *bytes;
    int32_t unknown; /* or -1 */
} probable_model;

/* The most probable pieces of the text before a byte (Viterbi): their score, and the start and the
 * id of the last piece. start -1: there are none yet. After turn_paths the entry at the start of a
 * piece has the piece's end and id. */
typedef struct probable_path {
    double score;
    int32_t start, piece;
} probable_path;

static void offer_piece(probable_path *to, double score, size_t start, int32_t piece) {
    if (to->start >= 0 && !(score > to->score)) return;
    to->score = score;
    to->start = (int32_t)start;
    to->piece = piece;
}

/* Try all pieces from byte `at` on, where a character of n bytes stands. Returns 0 if no piece
 * spells this character, and the model has no unknown token. */
static int offer_all(const probable_model *m, probable_path *best, const char *word, size_t end,
                     size_t at, size_t n) {
    walk w = begin_walk(&m->pieces);
    int is_single = 0;
    for (size_t i = at; i < end && walk_on(&m->pieces, &w, word[i]); i++) {
        int32_t piece = piece_here(&m->pieces, &w);
        if (piece < 0) continue;
        offer_piece(&best[i + 1], m->scores[piece] + best[at].score, at, piece);
        if (i + 1 - at == n) is_single = 1;
    }
    if (is_single) return 1;
    offer_piece(&best[at + n], m->unknown_score + best[at].score, at, m->unknown);
    return best[at + n].piece >= 0;
}

static void turn_paths(probable_path *best, size_t n) {
    int32_t next = (int32_t)n, piece = -1;
    for (int32_t at = (int32_t)n; at >= 0;) {
        int32_t before = at ? best[at].start : -1, last = best[at].piece;
        best[at].start = next;
        best[at].piece = piece;
        next = at;
        piece = last;
        at = before;
    }
}

/* Unknown text becomes bytes, if all of them have ids. */
static void put_probable(const probable_model *m, const char *text, size_t n, id_list *to) {
    int32_t piece = find_piece(&m->pieces, text, n);
    int is_bytes = piece < 0 && m->bytes;
    for (size_t i = 0; is_bytes && i < n; i++) is_bytes = m->bytes[(unsigned char)text[i]] >= 0;
    for (size_t i = 0; is_bytes && i < n; i++) put_id(to, m->bytes[(unsigned char)text[i]]);
    if (!is_bytes) put_id(to, piece < 0 ? m->unknown : piece);
}

/* Unknown parts that follow each other become one. */
static int put_best_path(const probable_model *m, probable_path *best, const char *word, size_t n,
                         id_list *to) {
    for (size_t i = 0; i <= n; i++) {
        best[i].score = 0;
        best[i].start = -1;
        best[i].piece = 0;
    }
    for (size_t at = 0, bytes; at < n; at += bytes) {
        bytes = wf_utf8_announced(word + at, n - at);
        if (!offer_all(m, best, word, n, at, bytes)) return BAD_TEXT;
    }
    turn_paths(best, n);
    for (size_t at = 0, end; at < n; at = end) {
        int32_t piece = best[at].piece;
        end = (size_t)best[at].start;
        while (piece == m->unknown && end < n && best[end].piece == piece)
            end = (size_t)best[end].start;
        put_probable(m, word + at, end - at, to);
    }
    return 0;
}

static int encode_probable(const probable_model *m, probable_path *best, const word_texts *t,
                           id_list *to) {
    const char *text = t->texts[t->now].at;
    int status = t->fails;
    for (size_t at = 0, end = 0; !status && next_to_encode(t, &at, &end, to);)
        status = put_best_path(m, best, text + at, end - at, to);
    return status;
}

/* ---- whole words and the longest pieces ------------------------------------------------------ */

/* Indices of pieces are their ids. A piece that does not begin its word has the prefix. */
typedef struct longest_model {
    vocabulary pieces;
    const char *prefix;
    int32_t unknown; /* or IS_ERROR */
    int64_t most;    /* most characters of a word; a longer one is unknown */
} longest_model;

/* The longest piece from `at` on; *end is where it ends. -1: there is none. */
static int32_t longest_piece(const longest_model *m, const char *word, size_t n, size_t at,
                             size_t *end) {
    walk w = begin_walk(&m->pieces);
    int32_t longest = -1;
    for (size_t i = 0; at && m->prefix[i]; i++)
        if (!walk_on(&m->pieces, &w, m->prefix[i])) return -1;
    for (size_t i = at; i < n && walk_on(&m->pieces, &w, word[i]); i++) {
        int32_t piece = piece_here(&m->pieces, &w);
        if (piece < 0 || (i + 1 < n && wf_utf8_continues(word[i + 1]))) continue;
        longest = piece;
        *end = i + 1;
    }
    return longest;
}

static int put_unknown_word(const longest_model *m, id_list *to) {
    if (m->unknown < 0) return BAD_TEXT;
    put_id(to, m->unknown);
    return 0;
}

/* A word is unknown as a whole if a part of it is: so its pieces are found twice. */
static int put_longest(const longest_model *m, const char *word, size_t n, id_list *to) {
    int64_t characters = 0;
    for (size_t i = 0; i < n; i++) characters += !wf_utf8_continues(word[i]);
    if (characters > m->most) return put_unknown_word(m, to);
    for (size_t at = 0; at < n;)
        if (longest_piece(m, word, n, at, &at) < 0) return put_unknown_word(m, to);
    for (size_t at = 0; at < n;) put_id(to, longest_piece(m, word, n, at, &at));
    return 0;
}

static int put_whole(const longest_model *m, const char *word, size_t n, id_list *to) {
    int32_t piece = find_piece(&m->pieces, word, n);
    if (piece < 0) return put_unknown_word(m, to);
    put_id(to, piece);
    return 0;
}

static int encode_longest(const longest_model *m, const word_texts *t, id_list *to) {
    const char *text = t->texts[t->now].at;
    int status = t->fails;
    for (size_t at = 0, end = 0; !status && next_to_encode(t, &at, &end, to);)
        status = put_longest(m, text + at, end - at, to);
    return status;
}

static int encode_whole(const longest_model *m, const word_texts *t, id_list *to) {
    const char *text = t->texts[t->now].at;
    int status = t->fails;
    for (size_t at = 0, end = 0; !status && next_to_encode(t, &at, &end, to);)
        status = put_whole(m, text + at, end - at, to);
    return status;
}
