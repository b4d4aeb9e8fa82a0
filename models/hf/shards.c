/* models/hf/shards.c - a folder's weights: one file, or several with an index that says which tensor
 * is in which ("weight_map": { "name": "model-00001-of-00002.safetensors", ... }).
 *
 * The index may name files of the folder alone, and must say of each of their tensors where it is,
 * no more and no less. */
#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "models/message.h"

/* ---- the index ------------------------------------------------------------------------------- */

/* A value is a file's name in quotes as it stands there: one that needs an escape is none. */
static int by_file(const void *a, const void *b) {
    const hf_value *x = *(const hf_value *const *)a, *y = *(const hf_value *const *)b;
    int order = memcmp(x->text, y->text, x->bytes < y->bytes ? x->bytes : y->bytes);
    return order ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static bool same_file(const hf_value *a, const hf_value *b) {
    return by_file(&a, &b) == 0;
}

static int shown(const hf_value *v) {
    return v->bytes < 60 ? (int)v->bytes : 60;
}

/* Not in another folder, not hidden. */
static bool is_plain(const hf_value *v) {
    if (v->bytes < 3 || v->bytes > 200 || *v->text != '"' || v->text[1] == '.') return false;
    for (size_t i = 1; i + 1 < v->bytes; i++)
        if (strchr("/\\", v->text[i])) return false;
    return true;
}

/* The pairs of the index, those of one file together; to be freed. */
static const hf_value **in_order(const hf_object *map, char *message) {
    const hf_value **order = calloc((size_t)map->n + 1, sizeof *order);
    if (!order) return fail(message, "out of memory"), NULL;
    for (int i = 0; i < map->n; i++) {
        const hf_value *v = order[i] = &map->values[i];
        if (is_plain(v)) continue;
        fail(message, "%s: '%.60s' is in %.*s, which is no file of the folder", map->file, v->key,
             shown(v), v->text);
        return free(order), NULL;
    }
    if (map->n) qsort(order, (size_t)map->n, sizeof *order, by_file);
    return order;
}

/* ---- the files ------------------------------------------------------------------------------- */

static bool check_shard(const wf_file *f, const hf_object *map, const hf_value *const *of, int n,
                        char *message) {
    const int bytes = (int)of[0]->bytes - 2;
    const char *name = of[0]->text + 1;
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

static wf_file *open_shards(const char *folder, const hf_object *map, char *message) {
    const hf_value **order = in_order(map, message);
    wf_file **files = order ? calloc((size_t)map->n + 1, sizeof(wf_file *)) : NULL, *all = NULL;
    bool ok = order && (files || fail(message, "out of memory"));
    int n = 0;
    for (int i = 0, next; ok && i < map->n; i = next) {
        char path[4096];
        for (next = i + 1; next < map->n && same_file(order[next], order[i]);) next++;
        int length = snprintf(path, sizeof path, "%s/%.*s", folder, (int)order[i]->bytes - 2,
                              order[i]->text + 1);
        ok = length < (int)sizeof path || fail(message, "the folder's name is too long");
        if (ok) files[n++] = wf_file_open(path);
        ok = ok && check_shard(files[n - 1], map, order + i, next - i, message);
    }
    if (ok)
        all = wf_file_join(files, n);
    else
        for (int i = 0; i < n; i++) wf_file_free(files[i]);
    free(order), free(files);
    if (!ok || wf_file_ok(all)) return all;
    fail(message, "%s: %.200s", map->file, wf_file_error(all));
    return wf_file_free(all), NULL;
}

static wf_file *open_index(const char *folder, const char *name, char *message) {
    hf_object index, map = { 0 };
    wf_file *f = NULL;
    if (wf_hf_object_read(&index, folder, name, message) &&
        wf_hf_object_in(&map, &index, "weight_map", message))
        f = open_shards(folder, &map, message);
    wf_hf_object_free(&map), wf_hf_object_free(&index);
    return f;
}

/* ---- inside models/hf ------------------------------------------------------------------------ */

wf_file *wf_hf_open_weights(const char *folder, const char **name, char *message) {
    /* the order in which transformers looks for them */
    static const char *const names[] = { "model.safetensors", "model.safetensors.index.json",
                                         "pytorch_model.bin", "pytorch_model.bin.index.json" };
    char path[4096];
    for (int i = 0; i < 4; i++) {
        if (!wf_hf_exists(folder, *name = names[i])) continue;
        if (i % 2) return open_index(folder, names[i], message);
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        wf_file *f = wf_file_open(path);
        if (wf_file_ok(f)) return f;
        fail(message, "%s: %.200s", names[i], wf_file_error(f));
        return wf_file_free(f), NULL;
    }
    return fail(message, "there is neither model.safetensors nor pytorch_model.bin"), NULL;
}
