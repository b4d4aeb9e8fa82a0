/* models/text/json/post_read.c - reads post-processors, truncation and padding; see
 * post_processors.h. */
#include "post_processors.h"

#include <stdlib.h>

/* MOST_PADDING: the most tokens to which a text can be padded. */
enum { MOST_PADDING = 1 << 24, MOST_PROCESSORS = 64 };

/* ---- templates ------------------------------------------------------------------------------- */

/* Reads the ids of a special token that the template names. */
static bool special_ids(wf_post_processor *k, wf_template_part *part, const wf_step_source *from,
                        wf_span name) {
    const json_tree *t = from->tree;
    size_t all, found = 0, ids;
    wf_step_source in = *from;
    if (!wf_step_value(from, "special_tokens", &all)) return false;
    for (size_t key = wf_tree_first(t, all); key;) {
        size_t value = t->values[key].next;
        if (wf_span_is(wf_tree_text(t, key), name)) found = value;
        key = wf_tree_next(t, all, value);
    }
    in.at = found;
    if (!found)
        return fail(from->message, "the template's special token '%.*s' is not there",
                    (int)(name.bytes < 60 ? name.bytes : 60), name.text);
    if (!wf_step_value(&in, "ids", &ids)) return false;
    part->first = k->n_ids;
    for (size_t i = wf_tree_first(t, ids); i; i = wf_tree_next(t, ids, i)) {
        int64_t id;
        if (!wf_tree_size(t, i, INT32_MAX, &id))
            return fail(from->message, "a special token has an id that is no whole number");
        if (!wf_grow(&k->ids, &k->ids_capacity, k->n_ids + 1, sizeof *k->ids))
            return fail(from->message, "out of memory");
        k->ids[k->n_ids++] = (int32_t)id;
    }
    part->n = k->n_ids - part->first;
    return true;
}

static bool template_part(wf_post_processor *k, wf_template *to, const wf_step_source *from,
                          size_t value, bool pair) {
    static const char *const texts[] = { "A", "B", NULL };
    const json_tree *t = from->tree;
    wf_template_part part = { .text = -1 };
    wf_step_source in = *from;
    int64_t type;
    wf_span name;
    size_t text = wf_tree_find(t, value, "Sequence");
    in.at = text ? text : wf_tree_find(t, value, "SpecialToken");
    if (!in.at || wf_tree_kind(t, in.at) != JSON_OBJECT)
        return fail(from->message, "a part of the template is neither text nor special token");
    if (!wf_step_size(&in, "type_id", 0, &type)) return false;
    if (type > INT32_MAX) return fail(from->message, "a type_id is above 2,147,483,647");
    part.type = (int32_t)type;
    if (text ? !wf_step_choice(&in, "id", texts, &part.text) : !wf_step_text(&in, "id", &name))
        return false;
    if (part.text == 1 && !pair)
        return fail(from->message, "the template of one text has a second one");
    if (!text && !special_ids(k, &part, from, name)) return false;
    if (!wf_grow(&to->at, &to->capacity, to->n + 1, sizeof *to->at))
        return fail(from->message, "out of memory");
    to->at[to->n++] = part;
    to->added += part.n;
    return true;
}

static bool read_template(wf_post_processor *k, const wf_step_source *from, bool pair) {
    size_t list;
    if (!wf_step_value(from, pair ? "pair" : "single", &list)) return false;
    wf_template *to = pair ? &k->pair : &k->single;
    for (size_t i = wf_tree_first(from->tree, list); i; i = wf_tree_next(from->tree, list, i))
        if (!template_part(k, to, from, i, pair)) return false;
    return true;
}

/* ---- processors ------------------------------------------------------------------------------ */

/* Reads the id of a token that is written as an array of a text and an id. */
static bool read_pair(const wf_step_source *from, const char *key, int32_t *id) {
    size_t list;
    int64_t value;
    if (!wf_step_value(from, key, &list)) return false;
    size_t text = wf_tree_first(from->tree, list);
    size_t number = text ? wf_tree_next(from->tree, list, text) : 0;
    if (!number || !wf_tree_size(from->tree, number, INT32_MAX, &value))
        return fail(from->message, "%s: '%s' is no text with an id", from->type, key);
    *id = (int32_t)value;
    return true;
}

static bool read_bytes(wf_post_processor *k, const wf_step_source *from) {
    k->kind = PROCESS_BYTES;
    return wf_step_flag(from, "trim_offsets", &k->trim) &&
           wf_step_flag(from, "add_prefix_space", &k->prefix_space);
}

static bool read_bert(wf_post_processor *k, const wf_step_source *from) {
    k->kind = PROCESS_BERT;
    return read_pair(from, "cls", &k->start) && read_pair(from, "sep", &k->end);
}

static bool read_roberta(wf_post_processor *k, const wf_step_source *from) {
    if (!read_bert(k, from) || !read_bytes(k, from)) return false;
    k->kind = PROCESS_ROBERTA;
    return true;
}

static bool read_templates(wf_post_processor *k, const wf_step_source *from) {
    k->kind = PROCESS_TEMPLATE;
    return read_template(k, from, false) && read_template(k, from, true);
}

static const struct {
    const char *type, *mark;
    bool (*read)(wf_post_processor *k, const wf_step_source *from);
} kinds[] = {
    { "TemplateProcessing", "single", read_templates },
    { "RobertaProcessing", NULL, read_roberta },
    { "BertProcessing", "sep", read_bert },
    { "ByteLevel", "trim_offsets", read_bytes },
};

static bool read_one(wf_post *p, const json_tree *t, size_t value, char *message) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!wf_step_is(t, value, kinds[i].type, kinds[i].mark)) continue;
        if (p->n == MOST_PROCESSORS) return fail(message, "more than 64 post-processors");
        if (!wf_grow(&p->at, &p->capacity, p->n + 1, sizeof *p->at))
            return fail(message, "out of memory");
        wf_post_processor *k = &p->at[p->n++];
        *k = (wf_post_processor){ 0 };
        bool ok = kinds[i].read(k, &(wf_step_source){ t, value, kinds[i].type, message });
        p->trims = p->trims || k->trim;
        return ok;
    }
    return wf_step_unknown(t, value, "post-processor", message);
}

/* Refuses a template after another one. The first leaves a part of the tokens for each part of the
 * template, and no longer one for each text, as the second would need. */
static bool fits(const wf_post *p, char *message) {
    bool after = false;
    for (size_t i = 0; i < p->n; i++) {
        bool template = p->at[i].kind == PROCESS_TEMPLATE;
        if (template && after)
            return fail(message, "a template behind another template is not known here");
        after = after || template;
    }
    return true;
}

static bool read_processors(wf_post *p, const json_tree *t, size_t value, char *message) {
    wf_steps_walk walk = { .tree = t };
    for (size_t at = value; at; at = wf_steps_next(&walk)) {
        size_t parts = wf_tree_find(t, at, "processors");
        if (wf_tree_kind(t, at) != JSON_OBJECT)
            return fail(message, "a post-processor is no object");
        if (!parts && !read_one(p, t, at, message)) return false;
        if (parts) wf_steps_into(&walk, parts);
    }
    return fits(p, message);
}

/* ---- truncation and padding ------------------------------------------------------------------ */

static const char *const directions[] = { "Right", "Left", NULL };

static bool read_truncation(wf_post *p, const json_tree *t, size_t value, char *message) {
    static const char *const strategies[] = { "LongestFirst", "OnlyFirst", "OnlySecond", NULL };
    wf_step_source from = { t, value, "truncation", message };
    int direction = 0;
    if (!value) return true;
    p->truncates = true;
    if (wf_tree_find(t, value, "direction") &&
        !wf_step_choice(&from, "direction", directions, &direction))
        return false;
    p->cut_left = direction == 1;
    return wf_step_size(&from, "max_length", 0, &p->most) &&
           wf_step_size(&from, "stride", 0, &p->stride) &&
           wf_step_choice(&from, "strategy", strategies, &p->strategy);
}

static bool read_id(const wf_step_source *from, const char *key, int32_t *id) {
    int64_t value;
    if (!wf_step_size(from, key, 0, &value)) return false;
    *id = (int32_t)value;
    return value <= INT32_MAX || fail(from->message, "padding: '%s' is above 2,147,483,647", key);
}

static bool read_strategy(wf_post *p, const wf_step_source *from) {
    size_t value = wf_tree_find(from->tree, from->at, "strategy");
    wf_step_source in = *from;
    if (value && wf_tree_is(from->tree, value, "BatchLongest")) return true;
    in.at = value;
    return value ? wf_step_size(&in, "Fixed", 0, &p->pad_to)
                 : fail(from->message, "padding: the field 'strategy' is missing");
}

static bool read_padding(wf_post *p, const json_tree *t, size_t value, char *message) {
    wf_step_source from = { t, value, "padding", message };
    int direction;
    if (!value) return true;
    p->pads = true;
    if (!wf_step_choice(&from, "direction", directions, &direction) || !read_strategy(p, &from) ||
        !read_id(&from, "pad_id", &p->pad_id) || !read_id(&from, "pad_type_id", &p->pad_type))
        return false;
    p->pad_left = direction == 1;
    if (wf_tree_given(t, value, "pad_to_multiple_of") &&
        !wf_step_size(&from, "pad_to_multiple_of", 0, &p->pad_multiple))
        return false;
    return (p->pad_to <= MOST_PADDING && p->pad_multiple <= MOST_PADDING) ||
           fail(message, "padding to more than %d tokens", MOST_PADDING);
}

bool wf_post_read(wf_post *p, const json_tree *t, char *message) {
    return read_processors(p, t, wf_tree_given(t, 0, "post_processor"), message) &&
           read_truncation(p, t, wf_tree_given(t, 0, "truncation"), message) &&
           read_padding(p, t, wf_tree_given(t, 0, "padding"), message);
}
