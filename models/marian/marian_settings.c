/* models/marian/marian_settings.c - the settings in a file of Marian: flat YAML, "key: value" or a
 * list of "  - value" lines, as yaml-cpp writes it.
 *
 * Three tables have the sizes, the keys with only certain values, and the keys that change nothing;
 * functions read the other keys. The settings are written from the same tables. */
#include <stdlib.h>
#include <string.h>

#include "core/emit/c_text.h"
#include "core/file_internal.h"
#include "marian_file.h"
#include "models/message.h"
#include "models/model_internal.h"

enum { NAME = 64, VALUE = 160, MOST_PAIRS = 256, MAX_LEN = 1024, USUAL_AVERAGE = 2048 };

typedef struct pair {
    char name[NAME], value[VALUE];
    bool used;
} pair;

typedef struct settings {
    pair *pairs; /* [MOST_PAIRS] */
    int n;
    char *message;
} settings;

/* ---- rows ------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    size_t offset;
} sizes[] = {
    { "dim-emb", offsetof(wf_transformer_config, d_model) },
    { "enc-depth", offsetof(wf_transformer_config, encoder_layers) },
    { "dec-depth", offsetof(wf_transformer_config, decoder_layers) },
    { "transformer-heads", offsetof(wf_transformer_config, num_heads) },
    { "transformer-dim-ffn", offsetof(wf_transformer_config, dim_feedforward) },
};

/* Keys that may be missing, and otherwise must have one of these values. The first value is
 * written. */
static const struct {
    const char *name, *values[2];
} constants[] = {
    { "type", { "transformer" } },
    { "transformer-ffn-depth", { "2" } },
    { "transformer-decoder-ffn-depth", { "0", "2" } },
    { "transformer-postprocess-emb", { "d", "" } },
    { "transformer-no-projection", { "false" } },
    { "transformer-rnn-projection", { "false" } },
    { "transformer-no-bias", { "false" } },
    { "transformer-no-affine", { "false" } },
    { "transformer-train-position-embeddings", { "false" } },
    { "transformer-train-positions", { "false" } },
    { "transformer-tied-layers", { "[]" } },
    { "transformer-pool", { "false" } },
    { "layer-normalization", { "false" } },
    { "lemma-dim-emb", { "0" } },
    { "lemma-dependency", { "" } },
    { "factors-dim-emb", { "0" } },
    { "ulr", { "false" } },
    { "right-left", { "false" } },
    { "input-types", { "[]" } },
    { "special-vocab", { "[]" } },
};

/* Keys of other models, or of training, with the values that are written. NULL: the key is not
 * written. */
static const struct {
    const char *name, *value;
} ignored[] = {
    { "version", NULL },
    { "dim-rnn", "1024" },
    { "skip", "false" },
    { "enc-cell", "gru" },
    { "enc-type", "bidirectional" },
    { "enc-cell-depth", "1" },
    { "dec-cell-base-depth", "2" },
    { "dec-cell-high-depth", "1" },
    { "char-stride", "5" },
    { "char-highway", "4" },
    { "char-conv-filters-num", NULL },
    { "char-conv-filters-widths", NULL },
    { "bert-train-type-embeddings", "true" },
    { "bert-type-vocab-size", "2" },
    { "embedding-fix-src", NULL },
    { "embedding-fix-trg", NULL },
    { "factors-combine", "sum" },
    { "transformer-depth-scaling", NULL },
    { "transformer-guided-alignment-layer", "last" },
    { "ulr-dim-emb", "0" },
    { "ulr-trainable-transformation", "false" },
};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* ---- text as pairs --------------------------------------------------------------------------- */

/* Appends n bytes to a value, without quotes around them. A space separates them from earlier
 * bytes. */
static bool append(settings *s, pair *p, const char *text, size_t n) {
    size_t used = strlen(p->value);
    bool quoted = n > 1 && (*text == '"' || *text == '\'') && text[n - 1] == *text;
    if (quoted) {
        text++;
        n -= 2;
    }
    if (used + n + 2 > VALUE) return fail(s->message, "the value of '%s' is too long", p->name);
    if (used) p->value[used++] = ' ';
    memcpy(p->value + used, text, n);
    p->value[used + n] = '\0';
    return true;
}

/* Reads a line that begins in its first column: "key: value". */
static bool read_pair(settings *s, const char *line, size_t n) {
    const char *colon = memchr(line, ':', n);
    size_t length = colon ? (size_t)(colon - line) : 0;
    if (!length || length >= NAME || s->n == MOST_PAIRS)
        return fail(s->message, "its settings are no list of keys: '%.*s'", (int)(n < 60 ? n : 60),
                    line);
    pair *p = &s->pairs[s->n++];
    memcpy(p->name, line, length);
    for (int i = 0; i < s->n - 1; i++)
        if (strcmp(s->pairs[i].name, p->name) == 0)
            return fail(s->message, "the setting '%s' is there twice", p->name);
    line += length + 1;
    n -= length + 1;
    for (; n && *line == ' '; n--) line++;
    return append(s, p, line, n);
}

static bool read_line(settings *s, const char *line, size_t n) {
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)line[i] < ' ') return fail(s->message, "its settings are no text");
    for (; n && line[n - 1] == ' '; n--) continue;
    if (!n || *line == '#' || (n == 3 && memcmp(line, "---", 3) == 0)) return true;
    if (*line != ' ' && *line != '-') return read_pair(s, line, n);
    for (; n && (*line == ' ' || (*line == '-' && n > 1 && line[1] == ' ')); n--) line++;
    return s->n ? append(s, &s->pairs[s->n - 1], line, n)
                : fail(s->message, "its settings begin with a value");
}

static bool read_lines(settings *s, const char *text, size_t bytes) {
    const char *nul = memchr(text, '\0', bytes), *end = nul ? nul : text + bytes;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((newline ? newline : end) - text);
        if (!read_line(s, text, n && text[n - 1] == '\r' ? n - 1 : n)) return false;
        text += n + (newline != NULL);
    }
    return true;
}

/* The value of a key, which is marked as used. NULL: the key is not there. */
static const char *find(settings *s, const char *name) {
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->pairs[i].name, name) == 0) {
            s->pairs[i].used = true;
            return s->pairs[i].value;
        }
    return NULL;
}

/* ---- pairs as a configuration ---------------------------------------------------------------- */

static bool refuse(settings *s, const char *name, const char *value) {
    return fail(s->message, "the setting '%s' is '%.80s', which is not read", name, value);
}

static bool count(const char *text, int64_t *to) {
    char *end;
    *to = strtoll(text, &end, 10);
    return end > text && (*end == '\0' || *end == ' ') && *to >= 1 && *to <= INT32_MAX;
}

static bool read_sizes(settings *s, wf_transformer_config *c) {
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        const char *value = find(s, sizes[i].name);
        if (!value) return fail(s->message, "there is no setting '%s'", sizes[i].name);
        if (!count(value, (int64_t *)(void *)((char *)c + sizes[i].offset)))
            return refuse(s, sizes[i].name, value);
    }
    const char *vocabularies = find(s, "dim-vocabs");
    const char *second = vocabularies ? strchr(vocabularies, ' ') : NULL;
    if (!second || strchr(second + 1, ' ') || !count(vocabularies, &c->src_vocab) ||
        !count(second + 1, &c->tgt_vocab))
        return refuse(s, "dim-vocabs", vocabularies ? vocabularies : "");
    int64_t inner = 0;
    const char *decoder = find(s, "transformer-decoder-dim-ffn");
    if (decoder && strcmp(decoder, "0") != 0 &&
        (!count(decoder, &inner) || inner != c->dim_feedforward))
        return refuse(s, "transformer-decoder-dim-ffn", decoder);
    return true;
}

static bool check_constants(settings *s) {
    for (size_t i = 0; i < COUNT_OF(constants); i++) {
        const char *value = find(s, constants[i].name), *other = constants[i].values[1];
        bool right = !value || strcmp(value, constants[i].values[0]) == 0 ||
                     (other && strcmp(value, other) == 0);
        if (!right) return refuse(s, constants[i].name, value);
    }
    for (size_t i = 0; i < COUNT_OF(ignored); i++) find(s, ignored[i].name);
    return true;
}

static bool read_flag(settings *s, const char *name, bool *to) {
    const char *value = find(s, name);
    *to = value && strcmp(value, "true") == 0;
    return !value || *to || strcmp(value, "false") == 0 || refuse(s, name, value);
}

/* Reads which token tables are shared, and if the output has a bias. */
static bool read_tables(settings *s, wf_transformer_config *c) {
    bool all, src, decoder, none;
    if (!read_flag(s, "tied-embeddings-all", &all) || !read_flag(s, "tied-embeddings-src", &src) ||
        !read_flag(s, "tied-embeddings", &decoder) || !read_flag(s, "output-omit-bias", &none))
        return false;
    c->output_bias = !none;
    c->tie = WF_TIE_NONE;
    if (decoder) c->tie = WF_TIE_DECODER;
    if (src) c->tie = WF_TIE_INPUTS;
    if (all || (src && decoder)) c->tie = WF_TIE_ALL;
    return true;
}

/* Copies the steps around a sublayer, a for add and n for norm, without d for dropout. */
static void steps(settings *s, const char *name, const char *absent, char to[VALUE]) {
    const char *value = find(s, name);
    size_t n = 0;
    for (value = value ? value : absent; *value; value++)
        if (*value != 'd') to[n++] = *value;
    to[n] = '\0';
}

static bool read_norms(settings *s, wf_transformer_config *c) {
    char before[VALUE], after[VALUE], top[VALUE];
    steps(s, "transformer-preprocess", "", before);
    steps(s, "transformer-postprocess", "dan", after);
    steps(s, "transformer-postprocess-top", "", top);
    c->norm_first = c->raw_keys = strcmp(before, "n") == 0;
    c->encoder_norm = c->decoder_norm = strcmp(top, "n") == 0;
    if (*before && !c->norm_first) return refuse(s, "transformer-preprocess", before);
    if (strcmp(after, c->norm_first ? "a" : "an") != 0)
        return refuse(s, "transformer-postprocess", after);
    return !*top || c->encoder_norm || refuse(s, "transformer-postprocess-top", top);
}

/* Reads relu or swish. Without such a setting, the activation is `absent`. */
static bool read_activation(settings *s, const char *name, wf_activation absent,
                            wf_activation *to) {
    const char *value = find(s, name);
    *to = absent;
    if (value) *to = strcmp(value, "relu") == 0 ? WF_RELU : WF_SILU;
    return !value || *to == WF_RELU || strcmp(value, "swish") == 0 || refuse(s, name, value);
}

/* Reads the settings of average attention. Files of other models have them, too, without effect. */
static bool read_average(settings *s, wf_transformer_config *c) {
    const char *width = find(s, "transformer-dim-aan");
    const char *depth = find(s, "transformer-aan-depth");
    const char *no_gate = find(s, "transformer-aan-nogate");
    bool averages = c->decoder == WF_DECODER_AVERAGE;
    if (!averages) {
        find(s, "transformer-aan-activation");
        return true;
    }
    c->average_width = USUAL_AVERAGE;
    if (width && !count(width, &c->average_width)) return refuse(s, "transformer-dim-aan", width);
    if (depth && strcmp(depth, "2") != 0) return refuse(s, "transformer-aan-depth", depth);
    if (no_gate && strcmp(no_gate, "false") != 0)
        return refuse(s, "transformer-aan-nogate", no_gate);
    return read_activation(s, "transformer-aan-activation", WF_SILU, &c->average_activation);
}

static bool read_layers(settings *s, wf_transformer_config *c) {
    static const char *const names[] = { "self-attention", "rnn", "average-attention" };
    const char *decoder = find(s, "transformer-decoder-autoreg"), *cell = find(s, "dec-cell");
    int kind = 0;
    while (decoder && kind < (int)COUNT_OF(names) && strcmp(decoder, names[kind]) != 0) kind++;
    if (kind == COUNT_OF(names)) return refuse(s, "transformer-decoder-autoreg", decoder);
    c->decoder = (wf_decoder_kind)kind;
    if (c->decoder == WF_DECODER_SSRU && (!cell || strcmp(cell, "ssru") != 0))
        return refuse(s, "dec-cell", cell ? cell : "");
    return read_activation(s, "transformer-ffn-activation", WF_SILU, &c->activation) &&
           read_average(s, c);
}

static bool all_known(settings *s) {
    for (int i = 0; i < s->n; i++)
        if (!s->pairs[i].used)
            return fail(s->message,
                        "the setting '%s' is not known: if it changes no result, take "
                        "it out",
                        s->pairs[i].name);
    return true;
}

bool wf_marian_read_settings(const char *text, size_t bytes, wf_transformer_config *c,
                             char *message) {
    settings s = { .pairs = calloc(MOST_PAIRS, sizeof *s.pairs), .message = message };
    *c = wf_transformer_defaults();
    c->max_len = MAX_LEN;
    c->positions = WF_POSITIONS_TENSOR2TENSOR;
    c->layer_norm_eps = 1e-6;
    c->zero_start = true;
    bool ok = s.pairs ? read_lines(&s, text, bytes) : fail(message, "out of memory");
    ok = ok && read_sizes(&s, c) && check_constants(&s) && read_tables(&s, c) &&
         read_norms(&s, c) && read_layers(&s, c) && all_known(&s) &&
         wf_transformer_check(c, message);
    free(s.pairs);
    return ok;
}

/* ---- a decoder's configuration --------------------------------------------------------------- */

/* Reads the number of a key that begins a line; *to stays if there is no such line. */
static bool read_number(const char *text, size_t bytes, const char *key, double least, double most,
                        double *to, char *message) {
    const size_t n = strlen(key);
    char value[WF_REAL_TEXT] = "";
    for (const char *end = text + bytes, *next; text < end; text = next) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        next = newline ? newline + 1 : end;
        if ((size_t)(next - text) <= n || memcmp(text, key, n) != 0 || text[n] != ':') continue;
        size_t left = (size_t)(next - text) - n - 1;
        memcpy(value, text + n + 1, left < sizeof value ? left : sizeof value - 1);
        char *begin = value + strspn(value, " \t'\"");
        begin[strcspn(begin, " \t'\"#\r\n")] = '\0';
        /* older versions of Marian had a switch in place of the number */
        const bool yes = strcmp(begin, "true") == 0, no = strcmp(begin, "false") == 0;
        if (yes || no) *to = yes;
        return yes || no || (wf_parse_real(begin, to) && *to >= least && *to <= most) ||
               fail(message, "the decoder's '%s' is '%s', not between %g and %g", key, begin, least,
                    most);
    }
    return true;
}

bool wf_marian_read_search(const char *text, size_t bytes, wf_generation *g, char *message) {
    double penalty = 0, per_word = 0;
    char number[WF_REAL_TEXT];
    if (!read_number(text, bytes, "normalize", 0, 10, &penalty, message) ||
        !read_number(text, bytes, "word-penalty", -1e6, 1e6, &per_word, message))
        return false;
    if (penalty > 0) {
        g->options.penalty = WF_PENALTY_AVERAGE;
        g->options.alpha = penalty;
    }
    if (per_word != 0)
        snprintf(g->not_done, sizeof g->not_done, "word-penalty=%s",
                 wf_format_real(per_word, 6, number));
    return true;
}

/* ---- a configuration as text ----------------------------------------------------------------- */

/* True if Marian has models of this form, whose settings are read back as the same
 * configuration. */
static bool has_form(const wf_transformer_config *c, char *message) {
    bool plain = c->norm == WF_LAYER_NORM && !c->gated && !c->head_dim && !c->relative_buckets &&
                 c->attention_scale == 0 && !c->scale_output && !c->embedding_norm && c->bias &&
                 c->scale_embedding && c->pad_id < 0;
    bool same = c->zero_start && c->raw_keys == c->norm_first &&
                c->positions == WF_POSITIONS_TENSOR2TENSOR && c->layer_norm_eps == 1e-6 &&
                c->encoder_norm == c->decoder_norm &&
                (c->activation == WF_RELU || c->activation == WF_SILU) &&
                (c->average_activation == WF_RELU || c->average_activation == WF_SILU);
    return (plain && same) ||
           fail(message,
                "Marian has no such model: it has sinusoidal-tensor2tensor positions, relu "
                "or silu, zeros in place of the start, keys without a norm in pre-norm, "
                "and 1e-06 inside its norms' roots");
}

static const char *truth(bool value) {
    return value ? "true" : "false";
}

static void put_rows(wf_text *t, const wf_transformer_config *c) {
    for (size_t i = 0; i < COUNT_OF(ignored); i++)
        if (ignored[i].value) wf_text_print(t, "%s: %s\n", ignored[i].name, ignored[i].value);
    for (size_t i = 0; i < COUNT_OF(constants); i++) {
        const char *value = constants[i].values[0];
        bool list = strcmp(value, "[]") == 0;
        wf_text_print(t, "%s:%s%s\n", constants[i].name, list ? "\n  " : " ",
                      *value ? value : "\"\"");
    }
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        wf_text_print(t, "%s: %n\n", sizes[i].name,
                      *(const int64_t *)(const void *)((const char *)c + sizes[i].offset));
}

static void put_decoder(wf_text *t, const wf_transformer_config *c) {
    static const char *const names[] = { "self-attention", "rnn", "average-attention" };
    bool averages = c->decoder == WF_DECODER_AVERAGE, swish = !averages;
    int64_t width = averages ? c->average_width : USUAL_AVERAGE;
    if (averages) swish = c->average_activation == WF_SILU;
    wf_text_print(t, "transformer-decoder-autoreg: %s\ndec-cell: %s\n", names[c->decoder],
                  c->decoder == WF_DECODER_SSRU ? "ssru" : "gru");
    wf_text_print(t, "transformer-ffn-activation: %s\n",
                  c->activation == WF_RELU ? "relu" : "swish");
    wf_text_print(t, "transformer-dim-aan: %n\ntransformer-aan-activation: %s\n",
                  width ? width : c->dim_feedforward, swish ? "swish" : "relu");
    wf_text_print(t, "transformer-aan-depth: 2\ntransformer-aan-nogate: false\n");
}

char *wf_marian_write_settings(const wf_transformer_config *c, char *message) {
    wf_text t = { 0 };
    bool all = c->tie == WF_TIE_ALL;
    if (!has_form(c, message)) return NULL;
    put_rows(&t, c);
    wf_text_print(&t, "dim-vocabs:\n  - %n\n  - %n\n", c->src_vocab, c->tgt_vocab);
    wf_text_print(&t, "tied-embeddings-all: %s\ntied-embeddings-src: %s\ntied-embeddings: %s\n",
                  truth(all), truth(c->tie == WF_TIE_INPUTS), truth(c->tie == WF_TIE_DECODER));
    wf_text_print(&t, "output-omit-bias: %s\ntransformer-decoder-dim-ffn: 0\n",
                  truth(!c->output_bias));
    wf_text_print(&t, "transformer-preprocess: \"%s\"\ntransformer-postprocess: %s\n",
                  c->norm_first ? "n" : "", c->norm_first ? "da" : "dan");
    wf_text_print(&t, "transformer-postprocess-top: \"%s\"\n", c->encoder_norm ? "n" : "");
    put_decoder(&t, c);
    if (!t.lacks) return t.at;
    wf_text_free(&t);
    return fail(message, "out of memory"), NULL;
}
