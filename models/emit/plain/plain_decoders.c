/* models/emit/plain/plain_decoders.c - the decoders of a tokenizer.json in the C file of a model:
 * what models/text/json/token_decoders.c does with the texts of tokens, from one list into another.
 * It consists of blocks, as plain_text.c does. */

/* Texts one after another; text i ends at ends[i]. Bytes after the last end belong to a text that
 * is still being written. */
typedef struct token_list {
    size_t n;
    int32_t tokens;
    size_t ends[TOKENS];
    char at[RAW];
} token_list;

/* Two lists: a decoder reads lists[now], and writes its result to the other one. */
typedef struct token_lists {
    token_list lists[2];
    int now, fails;
} token_lists;

typedef struct token_part {
    const char *at;
    size_t n;
} token_part;

static token_part token_of(const token_lists *t, int32_t i) {
    const token_list *now = &t->lists[t->now];
    size_t begin = i ? now->ends[i - 1] : 0;
    token_part part;
    part.at = now->at + begin;
    part.n = now->ends[i] - begin;
    return part;
}

static int32_t count_tokens(const token_lists *t) {
    return t->lists[t->now].tokens;
}

static void put_part_text(token_lists *t, const char *text, size_t n) {
    token_list *next = &t->lists[!t->now];
    if (n > RAW - next->n) t->fails = 1;
    for (size_t i = 0; i < n && !t->fails; i++) next->at[next->n++] = text[i];
}

static void end_part(token_lists *t) {
    token_list *next = &t->lists[!t->now];
    if (next->tokens == TOKENS)
        t->fails = 1;
    else
        next->ends[next->tokens++] = next->n;
}

static void swap_lists(token_lists *t) {
    t->now = !t->now;
    t->lists[!t->now].n = 0;
    t->lists[!t->now].tokens = 0;
}

/* Begin with the texts of ids, without the n_silent ids in `silent`, which are sorted. `spaced` 1:
 * spaces stand between texts, as in a tokenizer without a decoder. */
static void begin_lists(token_lists *t, const char *const *pieces, const int32_t *silent,
                        int32_t n_silent, const int32_t *ids, int n, int spaced) {
    t->now = t->fails = 0;
    t->lists[1].n = 0;
    t->lists[1].tokens = 0;
    for (int i = 0; i < n; i++) {
        int32_t low = 0, high = n_silent;
        while (low < high) {
            int32_t middle = low + (high - low) / 2;
            if (silent[middle] < ids[i])
                low = middle + 1;
            else
                high = middle;
        }
        if (low < n_silent && silent[low] == ids[i]) continue;
        if (spaced && t->lists[1].tokens) put_part_text(t, " ", 1);
        put_part_text(t, pieces[ids[i]], length_of(pieces[ids[i]]));
        end_part(t);
    }
    swap_lists(t);
}

static void put_lists(const token_lists *t, text_out *to) {
    const token_list *now = &t->lists[t->now];
    put_bytes(to, now->at, now->n);
    if (t->fails) to->n = to->size + 1;
}

/* ---- bytes --------------------------------------------------------------------------------- */

/* Append a text as UTF-8: U+FFFD replaces each invalid sequence. */
static void put_valid(token_lists *t, const char *text, size_t n) {
    for (size_t at = 0, bytes; at < n; at += bytes) {
        bool whole;
        bytes = wf_utf8_beginning(text + at, n - at, &whole);
        if (whole)
            put_part_text(t, text + at, bytes);
        else
            put_part_text(t, "\357\277\275", 3);
    }
}

/* All texts become one. */
static void fuse_tokens(token_lists *t) {
    const token_list *now = &t->lists[t->now];
    put_part_text(t, now->at, now->n);
    end_part(t);
    swap_lists(t);
}

/* The bytes that texts spell become one text. */
static void spell_tokens(token_lists *t) {
    for (int32_t i = 0; i < count_tokens(t); i++) {
        token_part part = token_of(t, i);
        int is_bytes = is_spelled(part.at, part.n);
        for (size_t at = 0, n; at < part.n; at += n) {
            n = wf_utf8_announced(part.at + at, part.n - at);
            char byte = is_bytes ? (char)spelled_byte(wf_utf8_code(part.at + at, n)) : 0;
            if (is_bytes)
                put_part_text(t, &byte, 1);
            else
                put_part_text(t, part.at + at, n);
        }
    }
    end_part(t);
    swap_lists(t);
    token_part all = token_of(t, 0);
    put_valid(t, all.at, all.n);
    end_part(t);
    swap_lists(t);
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte of a text such as "<0x61>"; -1: it is none. The first digit may be a plus, as in
 * Rust. */
static int byte_of_token(token_part p) {
    if (p.n != 6 || p.at[0] != '<' || p.at[1] != '0' || p.at[2] != 'x' || p.at[5] != '>') return -1;
    int high = p.at[3] == '+' ? 0 : hex_digit(p.at[3]), low = hex_digit(p.at[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Put the bytes of the texts [from, to): one text if they are UTF-8, else U+FFFD for each. */
static void put_byte_tokens(token_lists *t, int32_t from, int32_t to) {
    token_list *next = &t->lists[!t->now];
    size_t begin = next->n;
    if (from == to) return;
    for (int32_t i = from; i < to; i++) {
        char byte = (char)byte_of_token(token_of(t, i));
        put_part_text(t, &byte, 1);
    }
    if (is_utf8(next->at + begin, next->n - begin)) {
        end_part(t);
        return;
    }
    next->n = begin;
    for (int32_t i = from; i < to; i++) {
        put_part_text(t, "\357\277\275", 3);
        end_part(t);
    }
}

static void join_bytes(token_lists *t) {
    int32_t from = 0, n = count_tokens(t);
    for (int32_t i = 0; i < n; i++) {
        token_part part = token_of(t, i);
        if (byte_of_token(part) >= 0) continue;
        put_byte_tokens(t, from, i);
        put_part_text(t, part.at, part.n);
        end_part(t);
        from = i + 1;
    }
    put_byte_tokens(t, from, n);
    swap_lists(t);
}

/* ---- characters ---------------------------------------------------------------------------- */

static int has_at(const char *text, size_t n, const char *what, size_t bytes) {
    size_t same = 0;
    while (same < n && same < bytes && text[same] == what[same]) same++;
    return same == bytes;
}

/* Append a text in which `what` is replaced, as Rust does it: an empty `what` matches before each
 * character and at the end. */
static void put_replaced(token_lists *t, token_part p, const char *what, const char *by) {
    size_t bytes = length_of(what);
    for (size_t at = 0, n; at < p.n; at += n) {
        int found = has_at(p.at + at, p.n - at, what, bytes);
        n = found && bytes ? bytes : wf_utf8_announced(p.at + at, p.n - at);
        if (found) put_part_text(t, by, length_of(by));
        if (!found || !bytes) put_part_text(t, p.at + at, n);
    }
    if (!bytes) put_part_text(t, by, length_of(by));
}

/* Replace the text `what`: by `first` in the first token, by `last` in the last one unless `last`
 * is a null pointer, and by `by` in the others. */
static void replace_in_tokens(token_lists *t, const char *what, const char *first, const char *by,
                              const char *last) {
    int32_t n = count_tokens(t);
    for (int32_t i = 0; i < n; i++) {
        const char *now = i ? by : first;
        if (i + 1 == n && last) now = last;
        put_replaced(t, token_of(t, i), what, now);
        end_part(t);
    }
    swap_lists(t);
}

/* Replace what an expression matches. */
static void replace_by_matches(token_lists *t, const expression *e, const char *by) {
    search_for s;
    for (int32_t i = 0; i < count_tokens(t); i++) {
        token_part part = token_of(t, i);
        size_t begin, end, last = 0;
        int found = 0;
        begin_search_for(&s, e, part.at, part.n);
        for (; part.n && (found = next_match(&s, &begin, &end)) > 0; last = end) {
            put_part_text(t, part.at + last, begin - last);
            put_part_text(t, by, length_of(by));
        }
        put_part_text(t, part.at + last, part.n - last);
        if (found < 0) t->fails = 1;
        end_part(t);
    }
    swap_lists(t);
}

/* Drop the character `what` up to `start` times at the start of each text, and up to `stop` times
 * at its end. */
static void strip_tokens(token_lists *t, const char *what, int64_t start, int64_t stop) {
    size_t bytes = length_of(what);
    for (int32_t i = 0; i < count_tokens(t); i++) {
        token_part p = token_of(t, i);
        size_t begin = 0, end = p.n;
        for (int64_t k = 0; k < start && has_at(p.at + begin, p.n - begin, what, bytes); k++)
            begin += bytes;
        for (int64_t k = 0; k < stop && end >= bytes; k++) {
            if (!has_at(p.at + end - bytes, bytes, what, bytes)) break;
            end -= bytes;
        }
        if (begin < end) put_part_text(t, p.at + begin, end - begin);
        end_part(t);
    }
    swap_lists(t);
}

/* In the next list, from byte `begin` on, replace the text `what` by one that is not longer. */
static void clean_up(token_lists *t, size_t begin, const char *what, const char *by) {
    token_list *next = &t->lists[!t->now];
    size_t bytes = length_of(what), n = begin;
    for (size_t at = begin; at < next->n;) {
        if (has_at(next->at + at, next->n - at, what, bytes)) {
            for (size_t i = 0; by[i]; i++) next->at[n++] = by[i];
            at += bytes;
        } else {
            next->at[n++] = next->at[at++];
        }
    }
    next->n = n;
}

/* Join the pieces of words: a piece with the prefix goes on with its word, others begin one.
 * `cleans` 1: also drop spaces by the rules, such as those before punctuation. */
static void join_pieces(token_lists *t, const char *prefix, int cleans) {
    static const char *const rules[][2] = {
        { " .", "." },   { " ?", "?" },     { " !", "!" },    { " ,", "," },
        { " ' ", "'" },  { " n't", "n't" }, { " 'm", "'m" },  { " do not", " don't" },
        { " 's", "'s" }, { " 've", "'ve" }, { " 're", "'re" }
    };
    size_t bytes = length_of(prefix);
    for (int32_t i = 0; i < count_tokens(t); i++) {
        token_part p = token_of(t, i);
        size_t begin = t->lists[!t->now].n;
        int goes_on = i && has_at(p.at, p.n, prefix, bytes);
        size_t from = goes_on ? bytes : 0;
        if (i && !goes_on) put_part_text(t, " ", 1);
        put_part_text(t, p.at + from, p.n - from);
        for (int k = 0; cleans && k < 11; k++) clean_up(t, begin, rules[k][0], rules[k][1]);
        end_part(t);
    }
    swap_lists(t);
}
