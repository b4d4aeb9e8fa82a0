/* models/text/byte_level/byte_level_fields.c - stores a byte-level tokenizer in a model's file; see
 * byte_level.h. */
#include "byte_level.h"
#include "models/text/fields.h"

size_t wf_byte_level_field(const wf_byte_level *b, const char *field, char *text, size_t size) {
    const wf_byte_level_options *o = &b->o;
    wf_sink to = sink(text, size);
    if (!strcmp(field, "vocabulary")) wf_put_pieces(&to, b->pieces, o->n_pieces);
    if (!strcmp(field, "codes")) put(&to, o->merges, o->merges_bytes);
    if (!strcmp(field, "special")) wf_put_ids(&to, o->special, WF_SPECIAL_IDS);
    if (!strcmp(field, "before")) wf_put_ids(&to, o->before, o->n_before);
    if (!strcmp(field, "after")) wf_put_ids(&to, o->after, o->n_after);
    if (!strcmp(field, "silent")) wf_put_ids(&to, o->silent, o->n_silent);
    if (!strcmp(field, "prefix") && o->prefix_space) put(&to, "space", strlen("space"));
    return to.used;
}

wf_tokenizer *wf_byte_level_from_fields(const char *const *fields, const char *const *values, int n,
                                        char *message) {
#define FIELD(name) wf_field_value(fields, values, n, name)
    int32_t special[WF_MOST_AROUND], before[WF_MOST_AROUND], after[WF_MOST_AROUND],
        silent[WF_MOST_AROUND];
    int n_special;
    const char *codes = FIELD("codes"), *prefix = FIELD("prefix");
    wf_byte_level_options o = { .before = before, .after = after, .silent = silent };
    wf_pieces p = { 0 };
    if (!FIELD("vocabulary")) return fail(message, "there is no vocabulary"), NULL;
    if (prefix && strcmp(prefix, "space"))
        return fail(message, "the prefix is '%.40s', not 'space'", prefix), NULL;
    if (!wf_ids_read(FIELD("special"), special, &n_special, message) ||
        !wf_ids_read(FIELD("before"), before, &o.n_before, message) ||
        !wf_ids_read(FIELD("after"), after, &o.n_after, message) ||
        !wf_ids_read(FIELD("silent"), silent, &o.n_silent, message))
        return NULL;
    if (n_special != WF_SPECIAL_IDS)
        return fail(message, "%d special ids: %d", n_special, WF_SPECIAL_IDS), NULL;
    memcpy(o.special, special, sizeof o.special);
    o.merges = codes;
    o.merges_bytes = codes ? strlen(codes) : 0;
    o.prefix_space = prefix != NULL;
    wf_tokenizer *t = NULL;
    if (wf_pieces_read(&p, FIELD("vocabulary"), message)) {
        o.pieces = p.at;
        o.n_pieces = (int64_t)p.n;
        t = wf_tokenizer_from_byte_level(&o, message);
    }
    wf_pieces_free(&p);
    return t;
#undef FIELD
}
