/* models/emit/plain/plain_merges.c - byte-pair encoding in the C file of a model: what models/text/
 * does with words and with running text. It consists of blocks, as plain_text.c does. */

#define NO_MERGE INT32_MAX

/* A symbol in a linked list; its text starts at byte `begin`. Its merge with the next symbol makes
 * `result`; the merge with the lowest key is made first. The key is NO_MERGE if the two do not
 * merge, or once the symbol was merged into the one before it. */
typedef struct chain_link {
    int32_t symbol, before, after, begin, key, result;
} chain_link;

/* A tournament tree over the keys of n links: winner[i] is the better of winner[2 i] and winner[2 i
 * + 1], and winner[n + k] is link k. `fresh` are links that were just merged. */
typedef struct merger {
    chain_link links[LINKS];
    int32_t winner[2 * LINKS], fresh[LINKS];
    int32_t n;
} merger;

static int32_t better_link(const merger *g, int32_t a, int32_t b) {
    int32_t left = g->links[a].key, right = g->links[b].key;
    if (left != right) return left < right ? a : b;
    return a < b ? a : b;
}

static void set_key(merger *g, int32_t at, int32_t key, int32_t result) {
    g->links[at].key = key;
    g->links[at].result = result;
    for (int32_t i = (at + g->n) / 2; i > 0; i /= 2)
        g->winner[i] = better_link(g, g->winner[2 * i], g->winner[2 * i + 1]);
}

/* Append a link, whose text begins at byte `begin`. */
static void add_link(merger *g, int32_t symbol, size_t begin) {
    chain_link *l = &g->links[g->n];
    l->symbol = symbol;
    l->before = g->n - 1;
    l->after = -1;
    l->begin = (int32_t)begin;
    l->key = NO_MERGE;
    l->result = -1;
    if (g->n) g->links[g->n - 1].after = g->n;
    g->n++;
}

/* Build the tournament tree, after all links have been added. */
static void begin_merges(merger *g) {
    for (int32_t i = 0; i < g->n; i++) g->winner[g->n + i] = i;
    for (int32_t i = g->n - 1; i > 0; i--)
        g->winner[i] = better_link(g, g->winner[2 * i], g->winner[2 * i + 1]);
}

/* The link whose merge is next; -1: there is none. */
static int32_t best_link(const merger *g) {
    int32_t best = g->n > 0 ? g->winner[1] : -1;
    return best < 0 || g->links[best].key == NO_MERGE ? -1 : best;
}

/* Merge a link with the one after it. */
static void join_links(merger *g, int32_t at) {
    chain_link *l = &g->links[at];
    int32_t right = l->after;
    l->symbol = l->result;
    l->after = g->links[right].after;
    if (l->after >= 0) g->links[l->after].before = at;
    set_key(g, at, NO_MERGE, -1);
    set_key(g, right, NO_MERGE, -1);
    if (l->before >= 0) set_key(g, l->before, NO_MERGE, -1);
}

/* ---- merges in a list ---------------------------------------------------------------------- */

/* A merge of two symbols into one. A list is sorted by left and right; the merge with the lowest
 * rank is made first. */
typedef struct merge {
    int32_t left, right, rank, result;
} merge;

/* Byte-pair encoding. A symbol is the id ids[symbol]; below 0: it is not in the vocabulary, and
 * becomes the ids in parts[] from -1 - ids[symbol] on, up to -1. ids 0: symbols are ids. */
typedef struct merge_list {
    const merge *merges;
    int32_t n;
    const int32_t *ids, *parts;
} merge_list;

static const merge *find_merge(const merge_list *m, int32_t left, int32_t right) {
    int32_t low = 0, high = m->n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        const merge *at = &m->merges[middle];
        if (at->left == left && at->right == right) return at;
        if (at->left < left || (at->left == left && at->right < right))
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

static void look_up_merge(merger *g, const merge_list *m, int32_t at) {
    if (at < 0 || g->links[at].after < 0) return;
    const merge *found = find_merge(m, g->links[at].symbol, g->links[g->links[at].after].symbol);
    if (found) set_key(g, at, found->rank, found->result);
}

static void look_up_all(merger *g, const merge_list *m) {
    begin_merges(g);
    for (int32_t i = 0; i < g->n; i++) look_up_merge(g, m, i);
}

/* Make the merge of the lowest rank wherever it is possible, and only then look up the new pairs
 * beside the results, as subword-nmt does. */
static void merge_together(merger *g, const merge_list *m) {
    look_up_all(g, m);
    for (int32_t best; (best = best_link(g)) >= 0;) {
        int32_t key = g->links[best].key, n = 0;
        for (; best >= 0 && g->links[best].key == key; best = best_link(g)) {
            join_links(g, best);
            g->fresh[n++] = best;
        }
        for (int32_t i = 0; i < n; i++) {
            look_up_merge(g, m, g->links[g->fresh[i]].before);
            look_up_merge(g, m, g->fresh[i]);
        }
    }
}

static void merge_one_by_one(merger *g, const merge_list *m) {
    look_up_all(g, m);
    for (int32_t best; (best = best_link(g)) >= 0;) {
        join_links(g, best);
        look_up_merge(g, m, g->links[best].before);
        look_up_merge(g, m, best);
    }
}

static void put_symbols(const merger *g, const merge_list *m, id_list *to) {
    for (int32_t i = g->n ? 0 : -1; i >= 0; i = g->links[i].after) {
        int32_t symbol = g->links[i].symbol, id = UNKNOWN;
        if (symbol >= 0) id = m->ids ? m->ids[symbol] : symbol;
        if (id >= 0) put_id(to, id);
        for (int32_t at = -1 - id; id < 0 && m->parts[at] >= 0; at++) put_id(to, m->parts[at]);
    }
}

/* ---- words --------------------------------------------------------------------------------- */

/* Byte-pair encoding of words. symbols[i] is the symbol of characters[i], one character, which has
 * "</w>" appended if it ends a word. list has the merges. */
typedef struct word_merges {
    vocabulary characters;
    const int32_t *symbols;
    merge_list list;
} word_merges;

static int32_t symbol_of_character(const word_merges *m, const char *text, size_t n, int is_last) {
    static const char mark[] = "</w>";
    char spelled[8];
    size_t bytes = 0;
    for (; bytes < n; bytes++) spelled[bytes] = text[bytes];
    for (size_t i = 0; is_last && mark[i]; i++) spelled[bytes++] = mark[i];
    int32_t found = find_piece(&m->characters, spelled, bytes);
    return found < 0 ? -1 : m->symbols[found];
}

static void encode_word(const word_merges *m, merger *g, const char *word, size_t n, id_list *to) {
    g->n = 0;
    for (size_t at = 0, bytes; at < n; at += bytes) {
        bytes = wf_utf8_announced(word + at, n - at);
        add_link(g, symbol_of_character(m, word + at, bytes, at + bytes == n), at);
    }
    merge_together(g, &m->list);
    put_symbols(g, &m->list, to);
}

static int encode_parts(const word_merges *m, merger *g, const char *line, size_t n, id_list *to) {
    n = line_body(line, n);
    if (!is_line(line, n)) return BAD_TEXT;
    for (size_t at = 0, end; (end = next_word(line, n, &at)) > at; at = end)
        encode_word(m, g, line + at, end - at, to);
    return 0;
}

/* A piece that ends in "@@" goes on. */
static void decode_parts(const char *const *pieces, const int32_t *ids, int n, text_out *to) {
    for (int i = 0, space = 0; i < n; i++) {
        if (!is_text(ids[i])) continue;
        const char *piece = pieces[ids[i]];
        size_t bytes = length_of(piece);
        int goes_on = bytes > 2 && piece[bytes - 1] == '@' && piece[bytes - 2] == '@';
        if (space) put_bytes(to, " ", 1);
        put_bytes(to, piece, goes_on ? bytes - 2 : bytes);
        space = !goes_on;
    }
}

/* ---- bytes spelled by letters, as in GPT-2 --------------------------------------------------- */

static int is_printed(int byte) {
    return (byte > ' ' && byte < 127) || (byte > 0xA0 && byte != 0xAD);
}

/* The byte that a code point spells: U+0100 and so on spell those that are not printed. -1: it
 * spells none. */
static int spelled_byte(int32_t code) {
    int32_t rest = code - 256;
    if (rest < 0) return is_printed(code) ? (int)code : -1;
    for (int byte = 0; byte < 256; byte++)
        if (!is_printed(byte) && rest-- == 0) return byte;
    return -1;
}

static void put_spelled(text_out *to, const char *piece) {
    size_t n = length_of(piece);
    for (size_t at = 0, bytes; at < n; at += bytes) {
        bytes = wf_utf8_announced(piece + at, n - at);
        int byte = spelled_byte(wf_utf8_code(piece + at, bytes));
        char c = (char)byte;
        if (byte >= 0)
            put_bytes(to, &c, 1);
        else
            put_bytes(to, piece + at, bytes);
    }
}

static void decode_spelled(const char *const *pieces, const int32_t *ids, int n, text_out *to) {
    for (int i = 0; i < n; i++) {
        if (!is_text(ids[i])) continue;
        if (ids[i] == UNKNOWN)
            put_bytes(to, pieces[UNKNOWN], length_of(pieces[UNKNOWN]));
        else
            put_spelled(to, pieces[ids[i]]);
    }
}

static int encode_bytes(const int32_t *bytes, const char *line, size_t n, id_list *to) {
    for (size_t i = 0; i < n; i++) put_id(to, bytes[(unsigned char)line[i]]);
    return 0;
}

/* ---- running text in characters -------------------------------------------------------------- */

/* A control character is spelled by its picture, and a picture is unknown. */
static void put_character(const vocabulary *v, const char *text, size_t n, id_list *to) {
    int32_t code = wf_utf8_code(text, n);
    char picture[4];
    if (code == 127 || (n == 1 && code < ' ')) {
        size_t bytes = wf_utf8_put(picture, code == 127 ? 0x2421 : 0x2400 + code);
        put_piece(v, picture, bytes, to);
    } else if (code >= 0x2400 && code <= 0x2421) {
        put_id(to, UNKNOWN);
    } else {
        put_piece(v, text, n, to);
    }
}

static int encode_running(const vocabulary *v, const char *line, size_t n, id_list *to) {
    if (!is_utf8(line, n)) return BAD_TEXT;
    for (size_t at = 0, bytes; at < n; at += bytes) {
        bytes = wf_utf8_announced(line + at, n - at);
        put_character(v, line + at, bytes, to);
    }
    return 0;
}

static void decode_running(const char *const *pieces, const int32_t *ids, int n, text_out *to) {
    for (int i = 0; i < n; i++) {
        if (!is_text(ids[i])) continue;
        const char *piece = pieces[ids[i]];
        size_t bytes = length_of(piece);
        int32_t code = wf_utf8_code(piece, bytes);
        char control = (char)(code == 0x2421 ? 127 : code - 0x2400);
        if (bytes == 3 && (code == 0x2421 || (code >= 0x2400 && code < 0x2420)))
            put_bytes(to, &control, 1);
        else
            put_bytes(to, piece, bytes);
    }
}

/* ---- running text in chunks ------------------------------------------------------------------ */

/* Symbols of single bytes. */
typedef struct byte_merges {
    const int32_t *bytes;
    merge_list list;
} byte_merges;

/* Is it white space (3), a digit (1), another character of ASCII (2), or a letter (0)? */
static int class_of_byte(char byte) {
    int c = (unsigned char)byte, upper = c & ~0x20;
    if (c == ' ' || (c >= '\t' && c <= '\r')) return 3;
    if (is_digit(byte)) return 1;
    return c >= 0x80 || (upper >= 'A' && upper <= 'Z') ? 0 : 2;
}

/* The end of the run of one class. A run of white space ends after a line break. */
static size_t end_of_run(const char *text, size_t n, size_t at) {
    int class = class_of_byte(text[at]);
    size_t most = n < LONGEST_CHUNK ? n : LONGEST_CHUNK;
    for (; at < most && class_of_byte(text[at]) == class; at++)
        if (text[at] == '\n') return at + 1;
    return at;
}

/* The bytes of the first chunk. The last space of a run of white space begins the next chunk. */
static size_t chunk_length(const char *text, size_t n) {
    size_t end = end_of_run(text, n, 0);
    if (class_of_byte(text[0]) != 3 || text[end - 1] != ' ' || end == n) return end;
    return end > 1 ? end - 1 : end_of_run(text, n, 1);
}

static void add_byte_links(const byte_merges *m, merger *g, const char *text, size_t n) {
    g->n = 0;
    for (size_t i = 0; i < n; i++) add_link(g, m->bytes[(unsigned char)text[i]], i);
}

static int encode_chunks(const byte_merges *m, merger *g, const char *line, size_t n, id_list *to) {
    for (size_t at = 0, bytes; at < n; at += bytes) {
        bytes = chunk_length(line + at, n - at);
        add_byte_links(m, g, line + at, bytes);
        merge_together(g, &m->list);
        put_symbols(g, &m->list, to);
    }
    return 0;
}
