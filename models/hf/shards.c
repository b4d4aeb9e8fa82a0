/* models/hf/shards.c - files of weights. A folder that is read has one file, or several with an
 * index that maps tensors to files ("weight_map": { "name": "model-00001-of-00002.safetensors",
 * ... }); several are opened as if they were one. An export adds its tensors to a list, which is
 * then written as one file.
 *
 * The index may name only files of this folder, and must list exactly the tensors that these files
 * contain. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/file_internal.h"
#include "folder.h"
#include "models/hf_internal.h"
#include "models/message.h"

/* ---- the index ------------------------------------------------------------------------------- */

/* An index: pairs of a tensor and its file, sorted by file. */
typedef struct hf_shards {
    hf_object map;
    const hf_value **pairs; /* [n] */
    int n;
} hf_shards;

/* Orders pairs by file. A file's name is the quoted text itself: names that need an escape are
 * rejected. */
static int by_file(const void *a, const void *b) {
    const hf_value *x = *(const hf_value *const *)a, *y = *(const hf_value *const *)b;
    int order = memcmp(x->text, y->text, x->bytes < y->bytes ? x->bytes : y->bytes);
    return order ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static bool same_file(const hf_value *a, const hf_value *b) {
    return by_file(&a, &b) == 0;
}

/* True if the value is the name of a file in the folder itself that is not hidden. */
static bool is_plain(const hf_value *v) {
    if (v->bytes < 3 || v->bytes > 200 || *v->text != '"' || v->text[1] == '.') return false;
    for (size_t i = 1; i + 1 < v->bytes; i++)
        if (strchr("/\\", v->text[i])) return false;
    return true;
}

static int shown(const hf_value *v) {
    return v->bytes < 60 ? (int)v->bytes : 60;
}

/* Sorts the pairs of the index by file. */
static bool sort_pairs(hf_shards *s, char *message) {
    s->pairs = calloc((size_t)s->map.n + 1, sizeof *s->pairs);
    if (!s->pairs) return fail(message, "out of memory");
    for (int i = 0; i < s->map.n; i++) {
        const hf_value *v = s->pairs[i] = &s->map.values[i];
        if (!is_plain(v))
            return fail(message, "%s: '%.60s' is in %.*s, which is no file of the folder",
                        s->map.file, v->key, shown(v), v->text);
    }
    s->n = s->map.n;
    if (s->n) qsort(s->pairs, (size_t)s->n, sizeof *s->pairs, by_file);
    return true;
}

static bool read_shards(hf_shards *s, const char *folder, const char *index, char *message) {
    hf_object whole;
    *s = (hf_shards){ 0 };
    bool ok = wf_hf_object_read(&whole, folder, index, message) &&
              wf_hf_object_in(&s->map, &whole, "weight_map", message) && sort_pairs(s, message);
    wf_hf_object_free(&whole);
    return ok;
}

static void free_shards(hf_shards *s) {
    wf_hf_object_free(&s->map);
    free(s->pairs);
}

/* name_of returns the file's name within the JSON text: after its quote, and without a '\0' at the
 * end. name_bytes returns the length. */
static const char *name_of(const hf_value *v) {
    return v->text + 1;
}

static int name_bytes(const hf_value *v) {
    return (int)v->bytes - 2;
}

/* The index of the next file's first pair, or n after the last file. */
static int next_shard(const hf_shards *s, int i) {
    int next = i + 1;
    while (next < s->n && same_file(s->pairs[next], s->pairs[i])) next++;
    return next;
}

/* ---- the files ------------------------------------------------------------------------------- */

static bool check_shard(const wf_file *f, const hf_object *map, const hf_value *const *of, int n,
                        char *message) {
    const int bytes = name_bytes(of[0]);
    const char *name = name_of(of[0]);
    if (!wf_file_ok(f)) return fail(message, "%.*s: %.200s", bytes, name, wf_file_error(f));
    for (int i = 0; i < n; i++)
        if (!wf_file_find(f, of[i]->key))
            return fail(message, "%s: '%.80s' is not in %.*s", map->file, of[i]->key, bytes, name);
    for (int i = 0; i < wf_file_count(f); i++) {
        const hf_value *v = wf_hf_find(map, wf_file_at(f, i)->name);
        if (!v || !same_file(v, of[0]))
            return fail(message, "%s: it does not say that '%.80s' is in %.*s, which it is",
                        map->file, wf_file_at(f, i)->name, bytes, name);
    }
    return true;
}

static wf_file *open_shard(const char *folder, const hf_shards *s, int i, char *message) {
    char path[HF_PATH];
    int n = snprintf(path, sizeof path, "%s/%.*s", folder, name_bytes(s->pairs[i]),
                     name_of(s->pairs[i]));
    if (n < HF_PATH) return wf_file_open(path);
    fail(message, "the folder's name is too long");
    return NULL;
}

static wf_file *open_shards(const char *folder, const hf_shards *s, char *message) {
    wf_file **files = calloc((size_t)s->n + 1, sizeof(wf_file *)), *all = NULL;
    bool ok = files || fail(message, "out of memory");
    int n = 0;
    for (int i = 0, next; ok && i < s->n; i = next) {
        next = next_shard(s, i);
        files[n] = open_shard(folder, s, i, message);
        ok = files[n] != NULL;
        n += ok;
        ok = ok && check_shard(files[n - 1], &s->map, s->pairs + i, next - i, message);
    }
    if (ok)
        all = wf_file_join(files, n);
    else
        for (int i = 0; i < n; i++) wf_file_free(files[i]);
    free(files);
    if (!ok || wf_file_ok(all)) return all;
    fail(message, "%s: %.200s", s->map.file, wf_file_error(all));
    wf_file_free(all);
    return NULL;
}

static wf_file *open_index(const char *folder, const char *name, char *message) {
    hf_shards s;
    bool ok = read_shards(&s, folder, name, message);
    wf_file *f = ok ? open_shards(folder, &s, message) : NULL;
    free_shards(&s);
    return f;
}

/* ---- inside models/hf ------------------------------------------------------------------------ */

wf_file *wf_hf_open_weights(const char *folder, const char **name, char *message) {
    /* in the order in which transformers looks for them */
    static const char *const names[] = { HF_WEIGHTS, HF_INDEX, HF_TORCH, HF_TORCH_INDEX };
    char path[HF_PATH];
    for (int i = 0; i < 4; i++) {
        if (!wf_hf_exists(folder, *name = names[i])) continue;
        if (i % 2) return open_index(folder, names[i], message);
        if (!wf_hf_path(path, folder, names[i])) break;
        wf_file *f = wf_file_open(path);
        if (wf_file_ok(f)) return f;
        fail(message, "%s: %.200s", names[i], wf_file_error(f));
        wf_file_free(f);
        return NULL;
    }
    fail(message, "there is neither " HF_WEIGHTS " nor " HF_TORCH);
    return NULL;
}

/* ---- tensors to be written ------------------------------------------------------------------- */

float *wf_hf_add_tensor(hf_tensors *t, const char *name, int ndim, const int64_t *shape) {
    size_t count = 1;
    wf_entry *more = realloc(t->entries, ((size_t)t->n + 1) * sizeof *more);
    if (!more) return NULL;
    for (int i = 0; i < ndim; i++) count *= (size_t)shape[i];
    char *copy = wf_copy(name, strlen(name));
    float *data = calloc(count + 1, sizeof *data);
    t->entries = more;
    wf_entry *e = &more[t->n++];
    *e = (wf_entry){ .name = copy, .dtype = "F32", .ndim = ndim, .data = data };
    e->bytes = count * sizeof *data;
    memcpy(e->shape, shape, (size_t)ndim * sizeof *shape);
    return copy ? data : NULL;
}

bool wf_hf_save_tensors(const hf_tensors *t, const char *path, char *message) {
    const wf_meta format = { "format", "pt" };
    return wf_file_save(path, t->entries, t->n, &format, 1, message);
}

char *wf_hf_tensor_bytes(const hf_tensors *t, size_t *bytes, char *message) {
    const wf_meta format = { "format", "pt" };
    return wf_file_bytes(t->entries, t->n, &format, 1, bytes, message);
}

void wf_hf_tensors_free(hf_tensors *t) {
    for (int i = 0; i < t->n; i++) {
        free((void *)(uintptr_t)t->entries[i].name);
        free((void *)(uintptr_t)t->entries[i].data);
    }
    free(t->entries);
}

/* ---- the names of a folder's files: those of files.c, and the weight files of an index ------- */

static bool add(wf_hf_files *list, const char *name, size_t bytes) {
    if (!wf_grow(&list->names, &list->room, (size_t)list->n + 1, sizeof *list->names)) return false;
    char *copy = wf_copy(name, bytes);
    if (copy) list->names[list->n++] = copy;
    return copy;
}

static bool add_shards(wf_hf_files *list, const char *folder, const char *index, char *message) {
    hf_shards s;
    if (!wf_hf_exists(folder, index)) return true;
    bool ok = read_shards(&s, folder, index, message);
    for (int i = 0; ok && i < s.n; i = next_shard(&s, i))
        ok = add(list, name_of(s.pairs[i]), (size_t)name_bytes(s.pairs[i])) ||
             fail(message, "out of memory");
    free_shards(&s);
    return ok;
}

bool wf_hf_list_files(const char *folder, wf_hf_files *list, char *message) {
    bool ok = true;
    if (!list) return fail(message, "there is no room for the names");
    *list = (wf_hf_files){ 0 };
    const char *name;
    for (int i = 0; ok && (name = wf_hf_file_name(i)); i++)
        ok = add(list, name, strlen(name)) || fail(message, "out of memory");
    return ok && (!folder || (add_shards(list, folder, HF_INDEX, message) &&
                              add_shards(list, folder, HF_TORCH_INDEX, message)));
}

void wf_hf_files_free(wf_hf_files *list) {
    if (!list) return;
    for (int i = 0; i < list->n; i++) free(list->names[i]);
    free(list->names);
    *list = (wf_hf_files){ 0 };
}
