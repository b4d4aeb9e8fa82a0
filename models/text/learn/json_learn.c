/* models/text/learn/json_learn.c - learns a tokenizer.json from lines; see json_learn.h. */
#include "json_learn.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/file/json.h"

enum { FEWEST_IDS = 2, MOST_SPECIAL = 256 };

/* A kind: its special tokens unless the options give others, and the parts of the file beside its
 * model. The forms are those of GPT-2, BERT, and a Unigram model of Hugging Face's tokenizers
 * library. */
typedef struct kind {
    const char *special;
    bool needs_unknown; /* a special token must stand for text that cannot be spelled */
    const char *normalizer, *cased_normalizer, *pre_tokenizer, *post_processor, *decoder;
    bool (*learn)(wf_json_learner *l);
} kind;

#define BYTE_LEVEL(prefix, trim)                                                                   \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":" prefix ",\"trim_offsets\":" trim               \
    ",\"use_regex\":true}"
#define BERT_NORMALIZER(lowercase)                                                                 \
    "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"              \
    "\"strip_accents\":null,\"lowercase\":" lowercase "}"
#define METASPACE                                                                                  \
    "{\"type\":\"Metaspace\",\"replacement\":\"" SPACE_SYMBOL                                      \
    "\",\"prepend_scheme\":\"always\",\"split\":true}"
#define NMT_NFKC                                                                                   \
    "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Nmt\"},{\"type\":\"NFKC\"},"              \
    "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\" \"}]}"

static const kind kinds[] = {
    [WF_LEARN_BPE] = { "<|endoftext|>", false, "null", "null", BYTE_LEVEL("false", "true"),
                       BYTE_LEVEL("true", "false"), BYTE_LEVEL("true", "true"), wf_learn_bpe },
    [WF_LEARN_UNIGRAM] = { "<s>,<pad>,</s>,<unk>,<mask>", true, NMT_NFKC, NMT_NFKC, METASPACE,
                           "null", METASPACE, wf_learn_unigram },
    [WF_LEARN_WORDPIECE] = { "[PAD],[UNK],[CLS],[SEP],[MASK]", true, BERT_NORMALIZER("true"),
                             BERT_NORMALIZER("false"), "{\"type\":\"BertPreTokenizer\"}", "null",
                             "{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}",
                             wf_learn_wordpiece },
};

/* ---- writing --------------------------------------------------------------------------------- */

static void put_bytes(void *to, const char *bytes, size_t n) {
    wf_json_learner *l = to;
    if (!wf_spm_put(&l->out, bytes, n)) l->out_of_room = true;
}

void wf_learn_put(wf_json_learner *l, const char *json) {
    put_bytes(l, json, strlen(json));
}

void wf_learn_put_text(wf_json_learner *l, const char *text) {
    wf_json_quote(put_bytes, l, text);
}

void wf_learn_put_number(wf_json_learner *l, int64_t number) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    wf_learn_put(l, text);
}

static void put_special(wf_json_learner *l, int32_t id) {
    const char *text = wf_strings_at(&l->pieces, id);
    wf_learn_put(l, id ? ",{\"id\":" : "{\"id\":");
    wf_learn_put_number(l, id);
    wf_learn_put(l, ",\"content\":");
    wf_learn_put_text(l, text);
    /* as in RoBERTa: the token <mask> takes the space before it */
    wf_learn_put(l, ",\"single_word\":false,\"lstrip\":");
    wf_learn_put(l, strcmp(text, "<mask>") == 0 ? "true" : "false");
    wf_learn_put(l, ",\"rstrip\":false,\"normalized\":false,\"special\":true}");
}

static void put_template_special(wf_json_learner *l, int32_t id, int type) {
    if (id < 0) return;
    wf_learn_put(l, "{\"SpecialToken\":{\"id\":");
    wf_learn_put_text(l, wf_strings_at(&l->pieces, id));
    wf_learn_put(l, type ? ",\"type_id\":1}}" : ",\"type_id\":0}}");
}

static void put_template_text(wf_json_learner *l, char text, int type) {
    char part[64];
    snprintf(part, sizeof part, "{\"Sequence\":{\"id\":\"%c\",\"type_id\":%d}}", text, type);
    wf_learn_put(l, part);
}

static void put_comma(wf_json_learner *l, bool wanted) {
    if (wanted) wf_learn_put(l, ",");
}

static void put_template_ids(wf_json_learner *l, int32_t id) {
    wf_learn_put_text(l, wf_strings_at(&l->pieces, id));
    wf_learn_put(l, ":{\"id\":");
    wf_learn_put_text(l, wf_strings_at(&l->pieces, id));
    wf_learn_put(l, ",\"ids\":[");
    wf_learn_put_number(l, id);
    wf_learn_put(l, "],\"tokens\":[");
    wf_learn_put_text(l, wf_strings_at(&l->pieces, id));
    wf_learn_put(l, "]}");
}

/* Writes <s> A </s> for a text. A pair is <s> A </s> </s> B </s>, as in RoBERTa, or, for WordPiece,
 * <s> A </s> B </s> with type 1 for B and the last token, as in BERT. Missing special tokens are
 * left out, and without a start token a pair has only one end token between its texts. */
static void put_template(wf_json_learner *l) {
    int32_t start = l->roles.start, end = l->roles.end;
    bool bert = l->o->kind == WF_LEARN_WORDPIECE;
    wf_learn_put(l, "{\"type\":\"TemplateProcessing\",\"single\":[");
    for (int pair = 0; pair < 2; pair++) {
        if (pair) wf_learn_put(l, "],\"pair\":[");
        put_template_special(l, start, 0);
        put_comma(l, start >= 0);
        put_template_text(l, 'A', 0);
        put_comma(l, end >= 0);
        put_template_special(l, end, 0);
        if (!pair) continue;
        put_comma(l, !bert && start >= 0 && end >= 0);
        if (!bert && start >= 0) put_template_special(l, end, 0);
        put_comma(l, true);
        put_template_text(l, 'B', bert);
        put_comma(l, end >= 0);
        put_template_special(l, end, bert);
    }
    wf_learn_put(l, "],\"special_tokens\":{");
    if (start >= 0) put_template_ids(l, start);
    put_comma(l, start >= 0 && end >= 0);
    if (end >= 0) put_template_ids(l, end);
    wf_learn_put(l, "}}");
}

static void put_post_processor(wf_json_learner *l) {
    const char *own = kinds[l->o->kind].post_processor;
    bool template = l->roles.start >= 0 || l->roles.end >= 0;
    bool both = template && strcmp(own, "null") != 0;
    wf_learn_put(l, ",\"post_processor\":");
    if (both) wf_learn_put(l, "{\"type\":\"Sequence\",\"processors\":[");
    if (both || !template) wf_learn_put(l, own);
    put_comma(l, both);
    if (template) put_template(l);
    if (both) wf_learn_put(l, "]}");
}

static void put_steps(wf_json_learner *l) {
    const kind *k = &kinds[l->o->kind];
    wf_learn_put(l, ",\"normalizer\":");
    wf_learn_put(l, l->o->cased ? k->cased_normalizer : k->normalizer);
    wf_learn_put(l, ",\"pre_tokenizer\":");
    wf_learn_put(l, k->pre_tokenizer);
}

/* ---- special tokens -------------------------------------------------------------------------- */

/* The id of the special token called `name`, or else of the one called `other`; -1: there is
 * neither. */
static int32_t role(const wf_json_learner *l, const char *name, const char *other) {
    int32_t id = wf_strings_find(&l->pieces, name, strlen(name));
    return id >= 0 ? id : wf_strings_find(&l->pieces, other, strlen(other));
}

static bool take_special(wf_json_learner *l, wf_span text) {
    int32_t before = l->pieces.n;
    if (!text.bytes) return fail(l->message, "a special token is empty");
    if (before == MOST_SPECIAL)
        return fail(l->message, "there are more than %d special tokens", MOST_SPECIAL);
    int32_t id = wf_strings_add(&l->pieces, text.text, text.bytes);
    if (id < 0) return fail(l->message, "out of memory");
    return id == before || fail(l->message, "the special token '%.*s' is there twice",
                                (int)(text.bytes < 60 ? text.bytes : 60), text.text);
}

static bool take_specials(wf_json_learner *l) {
    const kind *k = &kinds[l->o->kind];
    const char *at = l->o->special ? l->o->special : k->special;
    size_t bytes = strlen(at);
    if (!wf_text_check(at, bytes, NULL)) return fail(l->message, "a special token is not UTF-8");
    while (*at) {
        size_t n = strcspn(at, ",");
        if (!take_special(l, (wf_span){ at, n })) return false;
        at += n + (at[n] == ',');
    }
    l->n_special = l->pieces.n;
    l->roles = (wf_learn_roles){ role(l, "[UNK]", "<unk>"), role(l, "[CLS]", "<s>"),
                                 role(l, "[SEP]", "</s>") };
    return !k->needs_unknown || l->roles.unknown >= 0 ||
           fail(l->message, "one of the special tokens must be %s, for what cannot be spelled",
                l->o->kind == WF_LEARN_WORDPIECE ? "[UNK]" : "<unk>");
}

/* ---- words ----------------------------------------------------------------------------------- */

static bool count_word(void *user, wf_span word) {
    return wf_tally_add(user, word, 1);
}

static bool count_lines(wf_json_learner *l, wf_json_tokenizer *t, wf_line_reader next, void *from) {
    char why[WF_MESSAGE];
    const char *line = NULL;
    size_t bytes = 0;
    int status;
    for (long long n = 1; (status = next(from, &line, &bytes)) != 0; n++) {
        if (status < 0) return fail(l->message, "line %lld could not be read", n);
        if (memchr(line, '\0', bytes)) return fail(l->message, "line %lld: it has a zero byte", n);
        if (!wf_json_tokenizer_words(t, wf_line_body(line, bytes), count_word, &l->words, why))
            return fail(l->message, "line %lld: %.200s", n, why);
    }
    return l->words.strings.n || fail(l->message, "there is no text to learn a vocabulary from");
}

/* Counts the words of all lines as a tokenizer with the same steps and no vocabulary cuts them. */
static bool count_words(wf_json_learner *l, wf_line_reader next, void *from) {
    wf_learn_put(l, "{\"version\":\"1.0\"");
    put_steps(l);
    wf_learn_put(l, ",\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}}");
    if (l->out_of_room) return fail(l->message, "out of memory");
    wf_json_tokenizer *t = wf_json_tokenizer_load(l->out.at, l->out.bytes, l->message);
    bool ok = t && count_lines(l, t, next, from);
    wf_json_tokenizer_free(t);
    l->out.bytes = 0;
    return ok;
}

/* ---- shared by the kinds --------------------------------------------------------------------- */

bool wf_learn_alphabet(const wf_json_learner *l, wf_tally *characters) {
    wf_tally all = { 0 };
    bool ok = wf_tally_alphabet(&all, &l->words);
    wf_ranked *r = ok ? wf_tally_rank(&all) : NULL;
    int64_t most = l->o->alphabet ? l->o->alphabet : INT32_MAX;
    ok = r != NULL;
    for (int32_t i = 0; ok && i < all.strings.n && characters->strings.n < most; i++)
        if (wf_strings_find(&l->pieces, r[i].text.text, r[i].text.bytes) < 0) /* no special token */
            ok = wf_tally_add(characters, r[i].text, r[i].count);
    free(r);
    wf_tally_free(&all);
    return ok;
}

bool wf_learn_room(const wf_json_learner *l, int64_t characters) {
    int64_t needed = l->n_special + characters;
    return needed <= l->o->vocab_size ||
           fail(l->message,
                "vocab_size is %lld, but the special tokens and single characters need %lld ids",
                (long long)l->o->vocab_size, (long long)needed);
}

bool wf_learn_enough(const wf_json_learner *l, int64_t n) {
    return n >= l->o->vocab_size ||
           fail(l->message, "vocab_size is %lld, but this text is enough for at most %lld ids",
                (long long)l->o->vocab_size, (long long)n);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool check(const wf_json_learn_options *o, wf_line_reader next, char *message) {
    if (!o || !next) return fail(message, "there are no options or no lines to learn from");
    if ((unsigned)o->kind > WF_LEARN_WORDPIECE)
        return fail(message, "there is no kind %d", (int)o->kind);
    if (o->vocab_size < FEWEST_IDS || o->vocab_size > INT32_MAX)
        return fail(message, "vocab_size is %lld: %d to %d", (long long)o->vocab_size, FEWEST_IDS,
                    INT32_MAX);
    if (o->min_freq < 1)
        return fail(message, "min_freq is %lld: at least 1", (long long)o->min_freq);
    return o->alphabet >= 0 ||
           fail(message, "alphabet is %lld: at least 0", (long long)o->alphabet);
}

static bool write_file(wf_json_learner *l) {
    wf_learn_put(l, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[");
    for (int32_t id = 0; id < l->n_special; id++) put_special(l, id);
    wf_learn_put(l, "]");
    put_steps(l);
    put_post_processor(l);
    wf_learn_put(l, ",\"decoder\":");
    wf_learn_put(l, kinds[l->o->kind].decoder);
    wf_learn_put(l, ",\"model\":");
    if (!kinds[l->o->kind].learn(l)) return false;
    put_bytes(l, "}\n", 3); /* with its '\0' */
    return !l->out_of_room || fail(l->message, "out of memory");
}

char *wf_json_learn(const wf_json_learn_options *o, wf_line_reader next, void *from,
                    char *message) {
    wf_json_learner l = { .o = o, .message = message };
    bool ok = check(o, next, message) && take_specials(&l) && count_words(&l, next, from) &&
              write_file(&l);
    wf_strings_free(&l.pieces);
    wf_tally_free(&l.words);
    if (ok) return l.out.at;
    free(l.out.at);
    return NULL;
}
