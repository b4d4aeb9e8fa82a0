/* models/emit/plain/plain_level.c - byte-pair encoding at the level of bytes, as in GPT-2, in the C
 * file of a model: what models/text/byte_level/ does. It consists of blocks, as plain_text.c does,
 * and needs those of plain_merges.c. */

/* Each entry of `changes` is a code point where the class of characters changes, times 4, plus the
 * new class: letter 1, number 2, white space 3, other 0. */
typedef struct byte_level {
    byte_merges merges;
    const uint32_t *changes;
    int n_changes, prefix_space;
    const int32_t *before, *after;
    int n_before, n_after;
} byte_level;

static int class_at(const byte_level *b, const char *text, size_t n, size_t *bytes) {
    *bytes = wf_utf8_announced(text, n);
    uint32_t code = (uint32_t)wf_utf8_code(text, *bytes);
    int low = 0, high = b->n_changes;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (b->changes[middle] >> 2 <= code)
            low = middle;
        else
            high = middle;
    }
    return (int)(b->changes[low] & 3);
}

/* The end of the characters of a class from `at` on. *last is where the last of them begins. */
static size_t end_of_class(const byte_level *b, const char *text, size_t n, size_t at, int class,
                           size_t *last) {
    size_t bytes;
    for (*last = at; at < n && class_at(b, text + at, n - at, &bytes) == class; at += bytes)
        *last = at;
    return at;
}

/* The bytes of 's, 't, 're, 've, 'm, 'll or 'd at the start of a text; 0: it has none. */
static size_t contraction(const char *text, size_t n) {
    static const char tails[7][4] = { "s", "t", "re", "ve", "m", "ll", "d" };
    for (int i = 0; text[0] == '\'' && i < 7; i++) {
        size_t bytes = length_of(tails[i]);
        int is_tail = n > bytes && text[1] == tails[i][0];
        if (is_tail && (bytes == 1 || text[2] == tails[i][1])) return bytes + 1;
    }
    return 0;
}

static size_t level_chunk(const byte_level *b, const char *text, size_t n) {
    size_t bytes, last, end = contraction(text, n), from = text[0] == ' ' && n > 1;
    if (end) return end;
    int class = class_at(b, text + from, n - from, &bytes);
    if (class != 3) return end_of_class(b, text, n, from, class, &last);
    end = end_of_class(b, text, n, 0, 3, &last);
    return end == n || !last ? end : last;
}

/* `spaced` has room for the text and a space before it. */
static void encode_piece(const byte_level *b, merger *g, char *spaced, const char *text, size_t n,
                         id_list *to) {
    size_t more = b->prefix_space && n && text[0] != ' ';
    if (more) spaced[0] = ' ';
    for (size_t i = 0; i < n; i++) spaced[more + i] = text[i];
    n += more;
    for (size_t at = 0, bytes; at < n; at += bytes) {
        bytes = level_chunk(b, spaced + at, n - at);
        add_byte_links(&b->merges, g, spaced + at, bytes);
        merge_one_by_one(g, &b->merges.list);
        put_symbols(g, &b->merges.list, to);
    }
}

static int encode_level(const byte_level *b, merger *g, char *spaced, const char *line, size_t n,
                        id_list *to) {
    n = line_body(line, n);
    if (!is_utf8(line, n)) return BAD_TEXT;
    put_ids(to, b->before, b->n_before);
    encode_piece(b, g, spaced, line, n, to);
    put_ids(to, b->after, b->n_after);
    return 0;
}

/* Bytes that are written as UTF-8. U+FFFD replaces each broken sequence, as far as it could have
 * begun a character. */
typedef struct utf8_out {
    text_out *to;
    char bytes[4];
    size_t n;
} utf8_out;

/* Write the characters among the bytes. Bytes that may begin a character wait for more, unless this
 * is the end. */
static void flush_utf8(utf8_out *u, int is_end) {
    while (u->n) {
        bool whole;
        size_t n = wf_utf8_beginning(u->bytes, u->n, &whole);
        if (!whole && n == u->n && !is_end) return;
        if (whole)
            put_bytes(u->to, u->bytes, n);
        else
            put_bytes(u->to, "\357\277\275", 3);
        for (size_t i = n; i < u->n; i++) u->bytes[i - n] = u->bytes[i];
        u->n -= n;
    }
}

static void put_utf8(utf8_out *u, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        u->bytes[u->n++] = bytes[i];
        flush_utf8(u, 0);
    }
}

/* Does every letter of the piece spell a byte? If not, the piece is written as it is. */
static int is_spelled(const char *piece, size_t n) {
    for (size_t at = 0, bytes; at < n; at += bytes) {
        bytes = wf_utf8_announced(piece + at, n - at);
        if (spelled_byte(wf_utf8_code(piece + at, bytes)) < 0) return 0;
    }
    return 1;
}

static void decode_level(const char *const *pieces, const int32_t *ids, int n, text_out *to) {
    utf8_out u;
    u.to = to;
    u.n = 0;
    for (int i = 0; i < n; i++) {
        const char *piece = pieces[ids[i]];
        size_t length = length_of(piece);
        if (!is_spelled(piece, length)) {
            put_utf8(&u, piece, length);
            continue;
        }
        for (size_t at = 0, bytes; at < length; at += bytes) {
            bytes = wf_utf8_announced(piece + at, length - at);
            char c = (char)spelled_byte(wf_utf8_code(piece + at, bytes));
            put_utf8(&u, &c, 1);
        }
    }
    flush_utf8(&u, 1);
}
