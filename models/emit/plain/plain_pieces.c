/* models/emit/plain/plain_pieces.c - ids as text by SentencePiece in the C file of a model, with
 * the model's tables. It consists of blocks, as plain_text.c does. */

/* Tables that turn ids into text. is[id] says how an id is written: IS_PIECE and so on; `surface`
 * is the text of the unknown piece. At the start of a text, the first space is dropped
 * (drops_space), or all spaces are (drops_all). */
typedef struct sentencepiece_text {
    const char *const *pieces;
    const unsigned char *is, *byte;
    const char *surface;
    int drops_space, drops_all;
} sentencepiece_text;

typedef struct decoding {
    const sentencepiece_text *s;
    text_out *to;
    char bytes[4];
    size_t n;
    int has_started, took_space;
} decoding;

static void put_spaced(text_out *to, const char *text, size_t n) {
    for (size_t at = 0; at < n;) {
        int space = begins_with_space(text + at, n - at);
        put_bytes(to, space ? " " : text + at, 1);
        at += space ? 3 : 1;
    }
}

/* Write the characters among the bytes, and U+FFFD for other bytes. Bytes that may begin a
 * character wait for more, unless this is the end. */
static void flush_bytes(decoding *d, int is_end) {
    while (d->n) {
        size_t bytes = wf_utf8_length(d->bytes, d->n);
        if (!bytes && !is_end && d->n < sizeof d->bytes) return;
        if (!bytes)
            put_bytes(d->to, "\357\277\275", 3);
        else
            put_bytes(d->to, d->bytes, bytes);
        if (!bytes) bytes = 1;
        for (size_t i = bytes; i < d->n; i++) d->bytes[i - bytes] = d->bytes[i];
        d->n -= bytes;
    }
}

/* Put a piece, without the space at its start if that is to be dropped. */
static void put_sentence_piece(decoding *d, const char *piece) {
    size_t n = length_of(piece), from = 0;
    int drops = !d->has_started && (d->s->drops_space || d->s->drops_all);
    if (drops && begins_with_space(piece, n)) {
        from = 3;
        d->took_space = !d->s->drops_all;
    }
    put_spaced(d->to, piece + from, n - from);
}

static void decode_piece(decoding *d, int32_t id) {
    int is = d->s->is[id];
    if (is == IS_SKIPPED) return;
    if (is == IS_BYTE) {
        d->bytes[d->n++] = (char)d->s->byte[id];
        flush_bytes(d, 0);
        return;
    }
    flush_bytes(d, 1);
    if (d->took_space || d->to->n) d->has_started = 1;
    d->took_space = 0;
    if (is == IS_PIECE) put_sentence_piece(d, d->s->pieces[id]);
    if (is == IS_RAW) put_bytes(d->to, d->s->pieces[id], length_of(d->s->pieces[id]));
    if (is == IS_SURFACE) put_bytes(d->to, d->s->surface, length_of(d->s->surface));
}

static void decode_pieces(const sentencepiece_text *s, const int32_t *ids, int n, text_out *to) {
    decoding d;
    d.s = s;
    d.to = to;
    d.n = 0;
    d.has_started = 0;
    d.took_space = 0;
    for (int i = 0; i < n; i++) decode_piece(&d, ids[i]);
    flush_bytes(&d, 1);
}

/* ---- the text of transformers: no white space at its ends --------------------------------- */

static void show_spaces(text_out *to) {
    size_t n = 0;
    for (size_t at = 0; at < to->n; n++) {
        int space = begins_with_space(to->at + at, to->n - at);
        to->at[n] = space ? ' ' : to->at[at];
        at += space ? 3 : 1;
    }
    to->n = n;
}

/* The bytes of the character of white space, as in Python's str.strip, with which the text begins;
 * 0: it begins with another one. */
static size_t white_space(const char *text, size_t n) {
    static const int32_t above[] = { 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000 };
    size_t at = 0;
    int32_t c = wf_utf8_next(text, n, &at);
    int found = c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F) ||
                (c >= 0x2000 && c <= 0x200A);
    for (int i = 0; i < 8; i++) found = found || c == above[i];
    return found ? at : 0;
}

/* The start of the last character of the n bytes. */
static size_t last_character(const char *text, size_t n) {
    size_t at = n - 1;
    while (at > 0 && n - at < 4 && wf_utf8_continues(text[at])) at--;
    return at;
}

static void strip_text(text_out *to) {
    size_t from = 0, n = to->n;
    for (size_t bytes = 1; from < n && bytes; from += bytes)
        bytes = white_space(to->at + from, n - from);
    while (n > from) {
        size_t last = from + last_character(to->at + from, n - from);
        if (white_space(to->at + last, n - last) != n - last) break;
        n = last;
    }
    for (size_t i = from; i < n; i++) to->at[i - from] = to->at[i];
    to->n = n - from;
}
