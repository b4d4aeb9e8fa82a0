/* tools/sources/class_names.c - the labels of classes. See class_names.h. */
#include "class_names.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/op.h"
#include "models/model_internal.h"
#include "tools/cli/refused.h"

static bool is_number(const char *name, size_t n) {
    return n && strspn(name, "0123456789") >= n;
}

/* The order of labels: first whole numbers, those with fewer digits first, which is the order of
 * their values if none has leading zeros; then others by their bytes. If numbers were compared with
 * other labels by bytes, the order would not be transitive. */
static int compare(const char *a, size_t n, const char *b) {
    size_t k = strlen(b);
    bool number = is_number(a, n);
    if (number != is_number(b, k)) return number ? -1 : 1;
    if (number && n != k) return n < k ? -1 : 1;
    int order = memcmp(a, b, n < k ? n : k);
    return order ? order : (n > k) - (n < k);
}

/* The index of a label among the sorted labels, or the index at which it would be inserted. */
static int64_t place_of(const class_names *c, const char *name, size_t bytes, bool *there) {
    int64_t low = 0, high = c->n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (compare(name, bytes, c->sorted[middle].text) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    *there = low < c->n && compare(name, bytes, c->sorted[low].text) == 0;
    return low;
}

static bool insert(class_names *c, int64_t at, const char *name, size_t bytes, char *message) {
    bool room = wf_grow(&c->sorted, &c->capacity, (size_t)c->n + 1, sizeof *c->sorted);
    char *copy = room ? strndup(name, bytes) : NULL;
    if (!copy) return refused(message, "out of memory");
    memmove(c->sorted + at + 1, c->sorted + at, (size_t)(c->n - at) * sizeof *c->sorted);
    c->sorted[at] = (class_name){ copy, c->n };
    c->n++;
    return true;
}

/* Numbers the sorted labels, and joins them. */
static bool number_all(class_names *c, char *message) {
    size_t size = 0;
    for (int64_t i = 0; i < c->n; i++) size += strlen(c->sorted[i].text) + 1;
    char *at = c->text = malloc(size + 1);
    if (!at) return refused(message, "out of memory");
    for (int64_t i = 0; i < c->n; i++) {
        size_t n = strlen(c->sorted[i].text);
        c->sorted[i].number = i;
        if (i) *at++ = '\n';
        memcpy(at, c->sorted[i].text, n);
        at += n;
    }
    *at = '\0';
    return true;
}

bool class_names_learn(class_names *c, pair_lines *p, char *message) {
    *c = (class_names){ 0 };
    while (pairs_next(p, message)) {
        bool there;
        if (!wf_class_name_ok(p->text[1], p->bytes[1]))
            return refused(message,
                           "%.120s: line %lld: its label has more than %d bytes, or a TAB or a "
                           "carriage return inside",
                           p->path[p->path[1] != NULL], (long long)p->number, (int)WF_MOST_LABEL);
        int64_t at = place_of(c, p->text[1], p->bytes[1], &there);
        if (!there && c->n == WF_MOST_CLASSES)
            return refused(message,
                           "%.120s has more than %d labels: the second column is the label of the "
                           "text in the first",
                           p->path[p->path[1] != NULL], (int)WF_MOST_CLASSES);
        if (!there && !insert(c, at, p->text[1], p->bytes[1], message)) return false;
    }
    if (p->failed) return false;
    if (c->n < 2)
        return refused(message,
                       "all lines of %.120s have the label '%.60s': there must be at least two",
                       p->path[0], c->n ? c->sorted[0].text : "");
    return number_all(c, message);
}

/* Labels keep the order of the file, which is that of the model's outputs. If a label occurs twice,
 * the first one counts. */
bool class_names_take(class_names *c, const char *text, char *message) {
    *c = (class_names){ .text = strdup(text) };
    if (!c->text) return refused(message, "out of memory");
    for (const char *name = NULL; (name = wf_class_next(text, name));) {
        size_t bytes = strcspn(name, "\n");
        bool there;
        int64_t at = place_of(c, name, bytes, &there);
        if (!insert(c, at + there, name, bytes, message)) return false;
    }
    return true;
}

void class_names_free(class_names *c) {
    for (int64_t i = 0; i < c->n; i++) free(c->sorted[i].text);
    free(c->sorted), free(c->text);
    *c = (class_names){ 0 };
}

int64_t class_names_find(const class_names *c, const char *name, size_t bytes) {
    bool there;
    int64_t at = place_of(c, name, bytes, &there);
    return there ? c->sorted[at].number : -1;
}
