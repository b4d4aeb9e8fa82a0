/* models/emit/plain/plain_sentencepiece.c - SentencePiece in the C file of a model: what
 * models/text/sentencepiece/ does, with the model's tables. It consists of blocks, as plain_text.c
 * does. */

/* U+2581 stands for a space. */
#define SPACE_SYMBOL "\342\226\201"

static int begins_with_space(const char *text, size_t n) {
    return n >= 3 && text[0] == SPACE_SYMBOL[0] && text[1] == SPACE_SYMBOL[1] &&
           text[2] == SPACE_SYMBOL[2];
}

/* ---- pieces that begin a text ---------------------------------------------------------------- */

/* A search byte by byte: of the sorted pieces, those from `low` up to `high` begin with the n bytes
 * read so far. */
typedef struct walk {
    int32_t low, high;
    size_t n;
} walk;

/* The first of the sorted pieces from w->low on whose next byte is at least `byte`. */
static int32_t place_of_byte(const vocabulary *v, const walk *w, int byte) {
    int32_t low = w->low, high = w->high;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (byte_of_piece(v->pieces[v->order[middle]], w->n) < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Read one more byte. Returns 0 if no piece begins with the bytes so far. */
static int walk_on(const vocabulary *v, walk *w, char c) {
    int byte = (int)(unsigned char)c;
    if (!byte) return 0;
    w->low = place_of_byte(v, w, byte);
    w->high = place_of_byte(v, w, byte + 1);
    w->n++;
    return w->low < w->high;
}

static walk begin_walk(const vocabulary *v) {
    walk w;
    w.low = 0;
    w.high = v->n;
    w.n = 0;
    return w;
}

/* The piece that consists of the bytes read so far; -1: there is none. */
static int32_t piece_here(const vocabulary *v, const walk *w) {
    int32_t index = v->order[w->low];
    return v->pieces[index][w->n] ? -1 : index;
}

/* The length of the longest symbol with which the text begins; 0: none. Symbols are tried from the
 * shortest on, and the search ends after 64 that match, as in the SentencePiece library. */
static size_t symbol_length(const vocabulary *symbols, const char *text, size_t n) {
    size_t longest = 0;
    walk w = begin_walk(symbols);
    for (size_t i = 0, found = 0; i < n && found < 64; i++) {
        if (!walk_on(symbols, &w, text[i])) break;
        if (piece_here(symbols, &w) < 0) continue;
        longest = i + 1;
        found++;
    }
    return longest;
}

/* ---- rules of characters --------------------------------------------------------------------- */

/* Tables that normalise a line: a trie as a double array, of the texts that are replaced; their
 * replacements, each ended by a zero byte; and symbols of the user, which stay unchanged. */
typedef struct normalizer {
    const uint32_t *units;
    uint32_t n_units, n_replacements;
    const unsigned char *replacements;
    vocabulary symbols;
    int dummy_prefix, remove_extra, escape, suffix;
} normalizer;

/* A part of a text, of `bytes` bytes, and the n bytes at `by` that replace it. */
typedef struct replaced {
    size_t bytes, n;
    const char *by;
} replaced;

static uint32_t unit_offset(uint32_t unit) {
    return unit >> 10 << ((unit & 0x200) >> 6);
}

/* Find the rule for the start of a text: of the `most` shortest rules that match, the longest.
 * Returns 0 if no rule matches. */
static int find_rule(const normalizer *r, const char *text, size_t n, int most, replaced *found) {
    uint32_t at = 0, value = 0;
    found->bytes = 0;
    if (!r->n_units) return 0;
    at ^= unit_offset(r->units[0]);
    for (size_t i = 0; i < n && i < 1024 && most > 0; i++) {
        uint32_t c = (unsigned char)text[i];
        at ^= c;
        if (at >= r->n_units || (r->units[at] & 0x800000FF) != c) break;
        uint32_t unit = r->units[at];
        at ^= unit_offset(unit);
        if (!(unit >> 8 & 1)) continue;
        if (at >= r->n_units) break;
        value = r->units[at] & 0x7FFFFFFF;
        found->bytes = i + 1;
        most--;
    }
    if (!found->bytes || value >= r->n_replacements) return 0;
    found->by = (const char *)r->replacements + value;
    found->n = length_of(found->by);
    return 1;
}

/* The next part of a line with n > 0 bytes: a user's symbol, a text with a rule, a character, or an
 * invalid byte, which becomes U+FFFD. */
static replaced next_part(const normalizer *r, const char *line, size_t n) {
    replaced part;
    part.by = line;
    part.bytes = part.n = r->symbols.n ? symbol_length(&r->symbols, line, n) : 0;
    if (part.bytes || find_rule(r, line, n, 32, &part)) return part;
    part.by = line;
    part.bytes = part.n = wf_utf8_length(line, n);
    if (part.bytes) return part;
    part.by = "\357\277\275";
    part.bytes = 1;
    part.n = 3;
    return part;
}

static void put_normal_space(const normalizer *r, text_out *to) {
    if (r->escape)
        put_bytes(to, SPACE_SYMBOL, 3);
    else
        put_bytes(to, " ", 1);
}

/* Spaces at the end of the text are dropped. */
static void cut_spaces(const normalizer *r, text_out *to) {
    while (r->escape && to->n >= 3 && begins_with_space(to->at + to->n - 3, 3)) to->n -= 3;
    while (!r->escape && to->n && to->at[to->n - 1] == ' ') to->n--;
}

/* The bytes of the spaces with which a line begins. */
static size_t leading_spaces(const normalizer *r, const char *line, size_t n) {
    size_t at = 0;
    while (at < n) {
        replaced part = next_part(r, line + at, n - at);
        if (part.n != 1 || *part.by != ' ') break;
        at += part.bytes;
    }
    return at;
}

/* Put a part, without the spaces at its start if `after_space` is 1. Returns after_space for the
 * next part: 1 if extra spaces are dropped and this part ends in one. */
static int put_part(const normalizer *r, replaced part, int after_space, text_out *to) {
    size_t from = 0;
    while (after_space && from < part.n && part.by[from] == ' ') from++;
    for (size_t i = from; i < part.n; i++)
        if (part.by[i] == ' ')
            put_normal_space(r, to);
        else
            put_bytes(to, part.by + i, 1);
    return from < part.n ? r->remove_extra && part.by[part.n - 1] == ' ' : after_space;
}

/* Normalise a line into `to`. Returns 0 if there is no room for the text. */
static int normalize(const normalizer *r, const char *line, size_t n, text_out *to) {
    size_t at = r->remove_extra ? leading_spaces(r, line, n) : 0;
    int after_space = r->remove_extra;
    if (at == n) return 1;
    if (r->dummy_prefix && !r->suffix) put_normal_space(r, to);
    while (at < n && to->n <= to->size) {
        replaced part = next_part(r, line + at, n - at);
        after_space = put_part(r, part, after_space, to);
        at += part.bytes;
    }
    if (to->n > to->size) return 0;
    if (r->remove_extra) cut_spaces(r, to);
    if (r->dummy_prefix && r->suffix) put_normal_space(r, to);
    return to->n <= to->size;
}

/* ---- pieces of a line ------------------------------------------------------------------------ */

/* Tables that turn a line into ids. `scores` and `ids` go by the indices of `pieces`; without `ids`
 * the indices are the ids. Unknown text becomes the ids of its `bytes`. Without `bytes` it is
 * looked up in `known`, and is `unknown` if it is not there. A language code is looked up in
 * `codes`. A table that a model lacks is 0. */
typedef struct sentencepiece {
    const normalizer *rules;
    vocabulary pieces;
    const float *scores;
    float unknown_score;
    const int32_t *ids, *bytes;
    const vocabulary *known, *codes;
    int32_t unknown;
    const int32_t *before;
    int n_before;
} sentencepiece;

/* A normalised line while it is cut into pieces. If is_unknown is 1, the text from `from` on is
 * unknown so far; unknown parts that follow one another become one id. */
typedef struct cutting {
    const sentencepiece *s;
    const char *line;
    int is_unknown;
    size_t from;
    id_list *to;
} cutting;

static cutting begin_cutting(const sentencepiece *s, const char *line, id_list *to) {
    cutting c;
    c.s = s;
    c.line = line;
    c.is_unknown = 0;
    c.from = 0;
    c.to = to;
    return c;
}

static void end_unknown(cutting *c, size_t at) {
    const vocabulary *known = c->s->known;
    int32_t id = -1;
    if (c->is_unknown && known) id = find_piece(known, c->line + c->from, at - c->from);
    if (c->is_unknown) put_id(c->to, id < 0 ? c->s->unknown : id);
    c->is_unknown = 0;
}

/* Write the id of the text from `begin` to `end`, which is `piece`; -1: the text is unknown. The
 * parts of a line come in order. */
static void cut(cutting *c, size_t begin, size_t end, int32_t piece) {
    const sentencepiece *s = c->s;
    if (piece >= 0) {
        end_unknown(c, begin);
        put_id(c->to, s->ids ? s->ids[piece] : piece);
    } else if (s->bytes) {
        for (size_t i = begin; i < end; i++) put_id(c->to, s->bytes[(unsigned char)c->line[i]]);
    } else if (!c->is_unknown) {
        c->is_unknown = 1;
        c->from = begin;
    }
}

/* ---- the most probable pieces ---------------------------------------------------------------- */

/* The most probable pieces of the text before a byte (Viterbi): their score, and the start and the
 * index of the last piece. start -1: there are none yet. */
typedef struct best_path {
    float score;
    int32_t start, piece;
} best_path;

static void offer_path(best_path *to, float score, size_t start, int32_t piece) {
    if (to->start >= 0 && !(score > to->score)) return;
    to->score = score;
    to->start = (int32_t)start;
    to->piece = piece;
}

/* Try all pieces that begin at `start`. Returns 1 if one of them is exactly the first character,
 * which has `character` bytes. */
static int offer_pieces(const sentencepiece *s, best_path *best, const char *line, size_t n,
                        size_t start, size_t character) {
    walk w = begin_walk(&s->pieces);
    int is_single = 0;
    for (size_t end = start; end < n;) {
        if (!walk_on(&s->pieces, &w, line[end++])) break;
        int32_t piece = piece_here(&s->pieces, &w);
        if (piece < 0) continue;
        offer_path(&best[end], s->scores[piece] + best[start].score, start, piece);
        if (end - start == character) is_single = 1;
    }
    return is_single;
}

/* Reverse the links of the best path. Before, the entry at the end of a piece has the piece's
 * start; afterwards the entry at its start has its end. Returns the end of the first piece. */
static int32_t turn_path(best_path *best, size_t n) {
    int32_t after = -1, at = (int32_t)n;
    while (at > 0) {
        int32_t before = best[at].start;
        best[at].start = after;
        after = at;
        at = before;
    }
    return after;
}

static void cut_probable(const sentencepiece *s, best_path *best, const char *line, size_t n,
                         id_list *to) {
    cutting c = begin_cutting(s, line, to);
    for (size_t i = 0; i <= n; i++) best[i].start = -1;
    best[0].score = 0;
    for (size_t start = 0, bytes; start < n; start += bytes) {
        bytes = wf_utf8_announced(line + start, n - start);
        if (!offer_pieces(s, best, line, n, start, bytes))
            offer_path(&best[start + bytes], s->unknown_score + best[start].score, start, -1);
    }
    size_t begin = 0;
    for (int32_t end = turn_path(best, n); end > 0; end = best[end].start) {
        cut(&c, begin, (size_t)end, best[end].piece);
        begin = (size_t)end;
    }
    end_unknown(&c, n);
}

/* ---- merges ---------------------------------------------------------------------------------- */

/* The lowest key is that of the highest score. The bits of a float, apart from the sign, ascend
 * with its value. */
static int32_t key_of_score(float score) {
    union {
        float value;
        int32_t bits;
    } u;
    u.value = score;
    return -1 - (u.bits < 0 ? u.bits ^ INT32_MAX : u.bits);
}

/* The symbol of a text that the user defined, which is not merged. */
#define FROZEN (-2)

static size_t end_of_link(const merger *g, int32_t at, size_t n) {
    int32_t after = g->links[at].after;
    return after < 0 ? n : (size_t)g->links[after].begin;
}

/* Two neighbours are merged if together they are a piece. */
static void look_up_pair(merger *g, const sentencepiece *s, const char *line, size_t n,
                         int32_t at) {
    if (at < 0 || g->links[at].after < 0) return;
    const chain_link *left = &g->links[at], *right = &g->links[left->after];
    if (left->symbol == FROZEN || right->symbol == FROZEN) return;
    size_t begin = (size_t)left->begin, end = end_of_link(g, left->after, n);
    int32_t piece = find_piece(&s->pieces, line + begin, end - begin);
    if (piece >= 0) set_key(g, at, key_of_score(s->scores[piece]), piece);
}

static void merge_pieces(merger *g, const sentencepiece *s, const char *line, size_t n) {
    begin_merges(g);
    for (int32_t i = 0; i < g->n; i++) look_up_pair(g, s, line, n, i);
    for (int32_t best; (best = best_link(g)) >= 0;) {
        join_links(g, best);
        look_up_pair(g, s, line, n, g->links[best].before);
        look_up_pair(g, s, line, n, best);
    }
}

static void cut_merged(const sentencepiece *s, merger *g, const char *line, size_t n, id_list *to) {
    cutting c = begin_cutting(s, line, to);
    g->n = 0;
    for (size_t at = 0, bytes; at < n; at += bytes) {
        bytes = s->rules->symbols.n ? symbol_length(&s->rules->symbols, line + at, n - at) : 0;
        int32_t symbol = bytes ? FROZEN : -1;
        if (!bytes) bytes = wf_utf8_announced(line + at, n - at);
        add_link(g, symbol, at);
    }
    merge_pieces(g, s, line, n);
    for (int32_t i = g->n ? 0 : -1; i >= 0; i = g->links[i].after) {
        size_t begin = (size_t)g->links[i].begin, end = end_of_link(g, i, n);
        int32_t piece = g->links[i].symbol;
        if (piece < 0) piece = find_piece(&s->pieces, line + begin, end - begin);
        cut(&c, begin, end, piece);
    }
    end_unknown(&c, n);
}

/* ---- two simple kinds ------------------------------------------------------------------------ */

/* Words begin with a space. */
static void cut_words(const sentencepiece *s, const char *line, size_t n, id_list *to) {
    cutting c = begin_cutting(s, line, to);
    for (size_t at = 0, end; at < n; at = end) {
        end = at + wf_utf8_announced(line + at, n - at);
        while (end < n && !begins_with_space(line + end, n - end))
            end += wf_utf8_announced(line + end, n - end);
        cut(&c, at, end, find_piece(&s->pieces, line + at, end - at));
    }
    end_unknown(&c, n);
}

static void cut_characters(const sentencepiece *s, const char *line, size_t n, id_list *to) {
    cutting c = begin_cutting(s, line, to);
    for (size_t at = 0, bytes; at < n; at += bytes) {
        bytes = s->rules->symbols.n ? symbol_length(&s->rules->symbols, line + at, n - at) : 0;
        if (!bytes) bytes = wf_utf8_announced(line + at, n - at);
        cut(&c, at, at + bytes, find_piece(&s->pieces, line + at, bytes));
    }
    end_unknown(&c, n);
}

/* ---- a line ---------------------------------------------------------------------------------- */

/* The bytes of the code ">>fra<<" at the start of the line; 0: there is none. */
static size_t language_code(const char *line, size_t n) {
    for (size_t i = 2; n > 3 && line[0] == '>' && line[1] == '>' && i + 1 < n; i++)
        if (line[i] == '<' && line[i + 1] == '<') return i + 2;
    return 0;
}

/* Write the ids before the pieces of a line, and its language; normalise the rest. Returns 0, or an
 * error. */
static int begin_sentence(const sentencepiece *s, const char *line, size_t n, text_out *normal,
                          id_list *to) {
    n = line_body(line, n);
    size_t code = s->codes ? language_code(line, n) : 0;
    int32_t id = code ? find_piece(s->codes, line, code) : 0;
    put_ids(to, s->before, s->n_before);
    if (code) put_id(to, id < 0 ? s->unknown : id);
    return normalize(s->rules, line + code, n - code, normal) ? 0 : LONG_TEXT;
}
