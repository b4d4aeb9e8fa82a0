/* models/emit/plain/plain_text.c - lines as ids and ids as lines in the C file of a model: what
 * models/text/ does with words, characters and numbers, with the model's tables. embed.sh makes
 * text of this file.
 *
 * It consists of blocks between blank lines, and a model's file gets only the blocks that it uses:
 * each block defines one name, and needs only blocks before it. UTF-8 (core/base/utf8.h) and
 * constants in capitals come before all of them. */

/* The ids of a line; n counts all. If there are more than `room`, the array holds the last ones as
 * a ring buffer (KEEPS_END 1), or the first ones (KEEPS_END 0). */
typedef struct id_list {
    int32_t *at;
    int room, n;
} id_list;

static void put_id(id_list *to, int32_t id) {
    if (KEEPS_END || to->n < to->room) to->at[to->n % to->room] = id;
    to->n++;
}

static void put_ids(id_list *to, const int32_t *ids, int n) {
    for (int i = 0; i < n; i++) put_id(to, ids[i]);
}

/* The text of an output. n counts all its bytes, of which only the first `size` are stored. */
typedef struct text_out {
    char *at;
    size_t size, n;
} text_out;

static void put_bytes(text_out *to, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (to->n + i < to->size) to->at[to->n + i] = bytes[i];
    to->n += n;
}

static size_t length_of(const char *text) {
    size_t n = 0;
    while (text[n]) n++;
    return n;
}

/* ---- pieces -------------------------------------------------------------------------------- */

/* Pieces, and the indices of n of them, sorted by the pieces' bytes for binary search. */
typedef struct vocabulary {
    const char *const *pieces;
    const int32_t *order;
    int32_t n;
} vocabulary;

/* Byte i of a piece; -1 at its end, which sorts before every byte. */
static int byte_of_piece(const char *piece, size_t i) {
    return piece[i] ? (int)(unsigned char)piece[i] : -1;
}

/* Below 0: the text comes before the piece; 0: it is the piece; above 0: it comes after the
 * piece. */
static int compare_piece(const char *text, size_t n, const char *piece) {
    for (size_t i = 0; i < n; i++) {
        int difference = (int)(unsigned char)text[i] - byte_of_piece(piece, i);
        if (difference) return difference;
    }
    return piece[n] ? -1 : 0;
}

/* The index of the piece with this text; -1: no piece has it. */
static int32_t find_piece(const vocabulary *v, const char *text, size_t n) {
    int32_t low = 0, high = v->n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        int order = compare_piece(text, n, v->pieces[v->order[middle]]);
        if (!order) return v->order[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

static void put_piece(const vocabulary *v, const char *text, size_t n, id_list *to) {
    int32_t id = find_piece(v, text, n);
    put_id(to, id < 0 ? UNKNOWN : id);
}

/* Special pieces are no text, except for the unknown one. */
static int is_text(int32_t id) {
    return id >= SPECIAL_IDS || id == UNKNOWN;
}

/* ---- lines --------------------------------------------------------------------------------- */

static int is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\v' || c == '\f';
}

/* The number of bytes in a line without its line break. */
static size_t line_body(const char *line, size_t n) {
    if (n && line[n - 1] == '\n') n--;
    if (n && line[n - 1] == '\r') n--;
    return n;
}

static int is_utf8(const char *text, size_t n) {
    return wf_utf8_prefix(text, n) == n;
}

/* Is the line UTF-8 without line breaks and zero bytes? */
static int is_line(const char *line, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (line[i] == '\n' || line[i] == '\r' || line[i] == '\0') return 0;
    return is_utf8(line, n);
}

/* Find the next word, from *at to the result. Both are equal if there is none. */
static size_t next_word(const char *line, size_t n, size_t *at) {
    while (*at < n && is_blank(line[*at])) ++*at;
    size_t end = *at;
    while (end < n && !is_blank(line[end])) end++;
    return end;
}

/* ---- words and characters ------------------------------------------------------------------ */

static int encode_words(const vocabulary *v, const char *line, size_t n, id_list *to) {
    n = line_body(line, n);
    if (!is_line(line, n)) return BAD_TEXT;
    for (size_t at = 0, end; (end = next_word(line, n, &at)) > at; at = end)
        put_piece(v, line + at, end - at, to);
    return 0;
}

static int encode_characters(const vocabulary *v, const char *line, size_t n, id_list *to) {
    n = line_body(line, n);
    if (!is_line(line, n)) return BAD_TEXT;
    for (size_t at = 0, bytes; at < n; at += bytes) {
        bytes = wf_utf8_announced(line + at, n - at);
        put_piece(v, line + at, bytes, to);
    }
    return 0;
}

static void decode_words(const char *const *pieces, const int32_t *ids, int n, text_out *to) {
    for (int i = 0, words = 0; i < n; i++) {
        if (!is_text(ids[i])) continue;
        if (words++) put_bytes(to, " ", 1);
        put_bytes(to, pieces[ids[i]], length_of(pieces[ids[i]]));
    }
}

static void decode_characters(const char *const *pieces, const int32_t *ids, int n, text_out *to) {
    for (int i = 0; i < n; i++)
        if (is_text(ids[i])) put_bytes(to, pieces[ids[i]], length_of(pieces[ids[i]]));
}

/* ---- numbers: a model without a vocabulary of text ------------------------------------------ */

static int is_digit(char c) {
    return c >= '0' && c <= '9';
}

static int is_between_ids(char c) {
    return c == ' ' || c == '\t';
}

/* The id that a word spells; -1: none. As for strtoll, white space and a sign may precede the
 * digits. */
static int32_t id_of_word(const char *word, size_t n) {
    size_t at = 0;
    int32_t id = 0;
    while (at < n && (word[at] == '\v' || word[at] == '\f' || word[at] == '\r')) at++;
    int minus = at < n && word[at] == '-';
    if (at < n && (minus || word[at] == '+')) at++;
    if (at == n) return -1;
    for (; at < n; at++) {
        if (!is_digit(word[at])) return -1;
        if (id < SOURCE_VOCABULARY) id = id * 10 + (int32_t)(word[at] - '0');
    }
    return id < SOURCE_VOCABULARY && !(minus && id) ? id : -1;
}

static int encode_numbers(const char *line, size_t n, id_list *to) {
    for (size_t at = 0, end; at < n; at = end) {
        while (at < n && is_between_ids(line[at])) at++;
        for (end = at; end < n && !is_between_ids(line[end]);) end++;
        if (end == at) break;
        int32_t id = id_of_word(line + at, end - at);
        if (id < 0) return BAD_TEXT;
        put_id(to, id);
    }
    return 0;
}

static void decode_numbers(const int32_t *ids, int n, text_out *to) {
    for (int i = 0; i < n; i++) {
        char digits[12];
        size_t at = sizeof digits;
        int32_t rest = ids[i];
        do {
            digits[--at] = (char)('0' + rest % 10);
            rest /= 10;
        } while (rest);
        if (i) digits[--at] = ' ';
        put_bytes(to, digits + at, sizeof digits - at);
    }
}
