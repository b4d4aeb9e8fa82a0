/* models/emit/plain/plain_words.c - a line on its way through a tokenizer.json in the C file of a
 * model: added tokens are cut out, normalizers change text, pre-tokenizers cut it into words. What
 * models/text/json/ does with lists of pieces is done here from one text into another. It consists
 * of blocks, as plain_text.c does. */

/* begins[i] says what starts at byte i of a text. 0: nothing; id + 1: the added token `id`, which
 * is this byte; A_WORD: a word; FIRST_WORD: a word at the start of the line. */
#define A_WORD (-1)

#define FIRST_WORD (-2)

/* A text that is cut into words and tokens. */
typedef struct word_text {
    size_t n;
    int32_t begins[ROOM];
    char at[ROOM];
} word_text;

/* Two buffers: a step reads texts[now], and writes its result to the other one, "the next text".
 * `fails` is the error of the first step that failed. */
typedef struct word_texts {
    word_text texts[2];
    int now, fails;
} word_texts;

static word_text *words_now(word_texts *t) {
    return &t->texts[t->now];
}

/* Append bytes to the next text. `begins` says what starts at the first of them. */
static void put_word_text(word_texts *t, const char *bytes, size_t n, int32_t begins) {
    word_text *next = &t->texts[!t->now];
    if (n > ROOM - next->n && !t->fails) t->fails = LONG_TEXT;
    for (size_t i = 0; i < n && !t->fails; i++) {
        next->at[next->n] = bytes[i];
        next->begins[next->n++] = i ? 0 : begins;
    }
}

/* Append bytes of a word. *begins says what starts at the word's first byte, and is 0 after it. */
static void put_more(word_texts *t, const char *bytes, size_t n, int32_t *begins) {
    put_word_text(t, bytes, n, *begins);
    if (n) *begins = 0;
}

static void put_code(word_texts *t, uint32_t code, int32_t *begins) {
    char spelled[WF_UTF8_MOST];
    put_more(t, spelled, wf_utf8_put(spelled, (int32_t)code), begins);
}

/* The next text becomes the text now. */
static void swap_words(word_texts *t) {
    t->now = !t->now;
    t->texts[!t->now].n = 0;
}

static void begin_words(word_texts *t, const char *line, size_t n) {
    t->now = 0;
    t->fails = is_utf8(line, n) ? 0 : BAD_TEXT;
    t->texts[1].n = 0;
    put_word_text(t, line, n, FIRST_WORD);
    swap_words(t);
}

static size_t end_of_word(const word_text *t, size_t at) {
    do at++;
    while (at < t->n && !t->begins[at]);
    return at;
}

/* Find the next word after *end, from *at to *end. Added tokens before it are copied to the next
 * text. Returns 0 if there is none. */
static int next_text(word_texts *t, size_t *at, size_t *end) {
    const word_text *now = words_now(t);
    for (*at = *end; *at < now->n; *at = *end) {
        *end = end_of_word(now, *at);
        if (now->begins[*at] < 0) return 1;
        put_word_text(t, now->at + *at, *end - *at, now->begins[*at]);
    }
    return 0;
}

/* ---- added tokens -------------------------------------------------------------------------- */

#define SINGLE_WORD 1

#define STRIPS_LEFT 2

#define STRIPS_RIGHT 4

/* Tokens that are cut out of a text: their ids, and what they ask for, by their indices. The sets
 * are 0 if no token asks for them. */
typedef struct added_tokens {
    vocabulary texts;
    const int32_t *ids;
    const unsigned char *asks;
    const code_set *spaces, *words;
} added_tokens;

/* The longest token with which the text begins: its index, or -1. */
static int32_t added_at(const added_tokens *a, const char *text, size_t n, size_t *bytes) {
    walk w = begin_walk(&a->texts);
    int32_t longest = -1;
    for (size_t i = 0; i < n && walk_on(&a->texts, &w, text[i]); i++) {
        int32_t found = piece_here(&a->texts, &w);
        if (found < 0) continue;
        longest = found;
        *bytes = i + 1;
    }
    return longest;
}

/* Where the spaces before `at` begin, but not before `least`. */
static size_t spaces_before(const code_set *s, const char *text, size_t at, size_t least) {
    while (at > least && is_before(s, text, at)) at = character_before(text, at);
    return at;
}

static size_t spaces_after(const code_set *s, const char *text, size_t at, size_t n) {
    for (size_t bytes; (bytes = character_of(s, text, at, n)) > 0;) at += bytes;
    return at;
}

/* Spaces from `begin` to `end` that were found last, so that a run of them is read once. */
typedef struct space_run {
    size_t begin, end;
} space_run;

static size_t end_of_spaces(space_run *r, const code_set *s, const char *text, size_t at,
                            size_t n) {
    if (at < r->begin || at > r->end) {
        r->begin = at;
        r->end = spaces_after(s, text, at, n);
    }
    return r->end;
}

/* Cut the tokens out of one word. If the longest token at a place does not meet its demands, none
 * is cut out there: shorter ones are not tried. Only a token's id is read later, so it stands in
 * the next text as one byte: tokens of white space may overlap, which would lengthen the text. */
static void cut_word(word_texts *t, const added_tokens *a, const char *text, size_t n,
                     int32_t begins) {
    space_run run = { 0, 0 };
    size_t last = 0;
    for (size_t at = 0, bytes = 0; at < n;) {
        int32_t found = added_at(a, text + at, n - at, &bytes);
        size_t begin = at, end = at + bytes;
        int asks = found < 0 ? 0 : a->asks[found];
        at += found < 0 ? 1 : bytes;
        if (found < 0) continue;
        if ((asks & SINGLE_WORD) &&
            (is_before(a->words, text, begin) || character_of(a->words, text, end, n)))
            continue;
        if (asks & STRIPS_LEFT)
            begin = begin < last ? last : spaces_before(a->spaces, text, begin, last);
        if (asks & STRIPS_RIGHT) end = end_of_spaces(&run, a->spaces, text, end, n);
        if (end < begin) end = begin; /* the token before has already taken this text */
        if (last < begin) put_word_text(t, text + last, begin - last, last ? A_WORD : begins);
        if (begin < end) put_word_text(t, text + begin, 1, a->ids[found] + 1);
        last = end;
    }
    if (last < n) put_word_text(t, text + last, n - last, last ? A_WORD : begins);
}

static void cut_added(word_texts *t, const added_tokens *a) {
    const word_text *now = words_now(t);
    for (size_t at = 0, end = 0; next_text(t, &at, &end);)
        cut_word(t, a, now->at + at, end - at, now->begins[at]);
    swap_words(t);
}

/* ---- changes ------------------------------------------------------------------------------- */

/* A word no longer begins the line if a match at its start has become nothing, or was longer than a
 * character. */
static int32_t begins_after(int32_t begins, const char *match, size_t bytes, size_t n) {
    int is_kept = n > 0 && bytes == wf_utf8_announced(match, bytes);
    return begins == FIRST_WORD && !is_kept ? A_WORD : begins;
}

/* Replace each match by a text. If `stays` is 1, the match stays between two copies of the text. */
static void replace_matches(word_texts *t, const expression *e, const char *by, size_t n,
                            int stays) {
    const word_text *now = words_now(t);
    search_for s;
    for (size_t at = 0, end = 0; next_text(t, &at, &end);) {
        const char *text = now->at + at;
        int32_t begins = now->begins[at];
        size_t from, to, last = 0;
        int found;
        begin_search_for(&s, e, text, end - at);
        for (; (found = next_match(&s, &from, &to)) > 0; last = to) {
            put_more(t, text + last, from - last, &begins);
            begins = begins_after(begins, text + from, to - from, n);
            put_more(t, by, n, &begins);
            if (stays) put_more(t, text + from, to - from, &begins);
            if (stays) put_more(t, by, n, &begins);
        }
        put_more(t, text + last, end - at - last, &begins);
        if (found < 0 && !t->fails) t->fails = BAD_TEXT;
    }
    swap_words(t);
}

static int begins_with(const char *text, size_t n, const char *with, size_t bytes) {
    size_t same = 0;
    while (same < n && same < bytes && text[same] == with[same]) same++;
    return same == bytes;
}

static void put_before_all(word_texts *t, const char *text, size_t n) {
    const word_text *now = words_now(t);
    for (size_t at = 0, end = 0; next_text(t, &at, &end);) {
        int32_t begins = now->begins[at];
        put_more(t, text, n, &begins);
        put_more(t, now->at + at, end - at, &begins);
    }
    swap_words(t);
}

/* Put a text before words that do not begin with it: before all, or before the first of the
 * line. */
static void put_prefix(word_texts *t, const char *text, size_t n, int is_for_all) {
    const word_text *now = words_now(t);
    for (size_t at = 0, end = 0; next_text(t, &at, &end);) {
        int32_t begins = now->begins[at];
        int lacks = !begins_with(now->at + at, end - at, text, n);
        if (lacks && (is_for_all || begins == FIRST_WORD)) put_more(t, text, n, &begins);
        put_more(t, now->at + at, end - at, &begins);
    }
    swap_words(t);
}

/* The code point that spells a byte, as in GPT-2: itself if it is printed. */
static uint32_t spelling_of(unsigned char byte) {
    uint32_t before = 0;
    if (is_printed(byte)) return byte;
    for (int i = 0; i < byte; i++) before += !is_printed(i);
    return 256 + before;
}

static void spell_bytes(word_texts *t) {
    const word_text *now = words_now(t);
    for (size_t at = 0, end = 0; next_text(t, &at, &end);) {
        int32_t begins = now->begins[at];
        for (; at < end; at++) put_code(t, spelling_of((unsigned char)now->at[at]), &begins);
    }
    swap_words(t);
}

/* Drop the characters of a set at the ends of words. */
static void strip_words(word_texts *t, const code_set *spaces, int left, int right) {
    const word_text *now = words_now(t);
    for (size_t at = 0, end = 0; next_text(t, &at, &end);) {
        const char *text = now->at + at;
        int32_t begins = now->begins[at];
        size_t n = end - at, from = left ? spaces_after(spaces, text, 0, n) : 0;
        while (right && n > from && is_before(spaces, text, n)) n = character_before(text, n);
        if (from) begins = A_WORD;
        put_more(t, text + from, n - from, &begins);
    }
    swap_words(t);
}

/* ---- words --------------------------------------------------------------------------------- */

/* Matches at which words are cut are dropped, kept, or joined to a neighbour, as in the library
 * tokenizers. */
typedef enum behavior {
    REMOVED,
    ISOLATED,
    MERGED_WITH_PREVIOUS,
    MERGED_WITH_NEXT,
    CONTIGUOUS
} behavior;

/* A word that is cut. The part from `begin` to `end` may still grow; was_match is 1 if the text
 * added last was a match. */
typedef struct cutter {
    word_texts *to;
    const char *text;
    behavior how;
    int32_t begins;
    size_t begin, end;
    int was_match;
} cutter;

/* Keep the part so far, and begin another one. */
static void begin_part(cutter *c, size_t begin, size_t end) {
    put_word_text(c->to, c->text + c->begin, c->end - c->begin, c->begin ? A_WORD : c->begins);
    c->begin = begin;
    c->end = end;
}

/* Add a part. With MERGED_WITH_NEXT a match joins the part that follows it, but of several matches
 * in a row only the last does. */
static void add_part(cutter *c, size_t begin, size_t end, int is_match) {
    int grows = 0;
    if (c->how == REMOVED && is_match) {
        begin_part(c, end, end);
        return;
    }
    if (c->how == CONTIGUOUS) grows = is_match == c->was_match;
    if (c->how == MERGED_WITH_PREVIOUS) grows = is_match && !c->was_match;
    if (c->how == MERGED_WITH_NEXT) grows = !is_match && c->was_match;
    c->was_match = is_match;
    if (!grows) {
        begin_part(c, begin, end);
        return;
    }
    if (c->begin == c->end) c->begin = begin;
    c->end = end;
}

/* Cut words at the borders of matches. With `inverts`, the text between matches counts as a match,
 * and a match as text between. */
static void cut_words_by(word_texts *t, const expression *e, behavior how, int inverts) {
    const word_text *now = words_now(t);
    search_for s;
    for (size_t at = 0, end = 0; next_text(t, &at, &end);) {
        cutter c;
        size_t from, to, last = 0;
        int found;
        c.to = t;
        c.text = now->at + at;
        c.how = how;
        c.begins = now->begins[at];
        c.begin = c.end = 0;
        c.was_match = 0;
        begin_search_for(&s, e, c.text, end - at);
        for (; (found = next_match(&s, &from, &to)) > 0; last = to) {
            if (from > last) add_part(&c, last, from, inverts);
            add_part(&c, from, to, !inverts);
        }
        if (last < end - at) add_part(&c, last, end - at, inverts);
        begin_part(&c, 0, 0);
        if (found < 0 && !t->fails) t->fails = BAD_TEXT;
    }
    swap_words(t);
}
