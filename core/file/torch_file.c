/* core/file/torch_file.c - reads the files of torch.save(state_dict), in both containers.
 *
 * Since torch 1.6 it is a ZIP archive: NAME/data.pkl, a pickle that names storages, and their bytes
 * as NAME/data/KEY. Before torch 1.6 it was five pickles (a magic number, 1001, sizes of types, the
 * state_dict, the storages' keys) and then each storage: its number of elements and its bytes. The
 * pickles are run by pickle.c, which calls nothing. A tensor is a part of a storage; several may
 * share one, and their entries then share its data. Every declared storage must be in the file with
 * exactly its declared bytes, and every tensor within its storage. */
#include <stdlib.h>
#include <string.h>

#include "core/graph_internal.h"
#include "core/op_internal.h"
#include "pickle.h"
#include "reader.h"
#include "zip.h"

/* The first pickle of the older container: the magic number. */
static const char legacy_magic[WF_TORCH_KNOWN_BY + 1] =
    "\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19.";
enum { LEGACY_PROTOCOL = 1001, ALIGNMENT = 64, MAX_KEY = 100 };

struct storage {
    const char *key;
    const char *dtype;
    int64_t bytes, at;           /* number of bytes; their offset in the file */
    int64_t begin;               /* offset in the block of data */
    const wf_zip_record *record; /* NULL if the storage is not in an archive */
};

struct reading {
    wf_file *f;
    struct source *s;
    wf_pickle p;
    struct storage *storages; /* in the order of their keys */
    int count;
    wf_zip z;
    char prefix[256]; /* begins every name in the archive */
};

/* ---- the state_dict -------------------------------------------------------------------------- */

static const wf_pickle_value *tuple_of(const struct reading *r, wf_pickle_value v) {
    return r->p.values + v.number;
}

/* A string of a pickle, terminated in place. That overwrites an opcode, so it is done only after
 * all pickles have been run. */
static const char *text_of(struct reading *r, wf_pickle_value v) {
    char *text = r->f->header + v.number;
    text[v.count] = '\0';
    return text;
}

/* Explains why the object is not a flat dict of tensors, and how to save one. */
static bool refuse_item(struct reading *r, const wf_pickle_item *item) {
    if (item->key.kind != WF_PICKLE_STRING)
        return wf_file_fail(r->f->error, "a key is %s: not a state_dict of names and tensors",
                            wf_pickle_kind_name(item->key));
    return wf_file_fail(r->f->error, "'%.80s' is %s, not a tensor: save %s alone",
                        text_of(r, item->key), wf_pickle_kind_name(item->value),
                        item->value.kind == WF_PICKLE_DICT ? "that state_dict" : "the state_dict");
}

/* The item of a dict or list with number i, counted from 1; NULL for 0, which ends a list of
 * items. */
static const wf_pickle_item *item_at(const struct reading *r, size_t i) {
    return i ? &r->p.items[i - 1] : NULL;
}

static bool list_tensors(struct reading *r, wf_pickle_value dict) {
    wf_file *f = r->f;
    if (dict.kind != WF_PICKLE_DICT)
        return wf_file_fail(f->error, "it holds %s, not a state_dict", wf_pickle_kind_name(dict));
    const wf_pickle_item *item = item_at(r, r->p.lists[dict.number].first);
    for (; item; item = item_at(r, item->next)) {
        if (item->key.kind != WF_PICKLE_STRING || item->value.kind != WF_PICKLE_TENSOR)
            return refuse_item(r, item);
        struct tensor *tensors = wf_file_grow(f, f->tensors, f->count, sizeof *tensors);
        if (!tensors) return false;
        f->tensors = tensors;
        /* until place_tensor, begin holds the index of the tensor's tuple in the pickle's values */
        tensors[f->count++] =
            (struct tensor){ .entry.name = text_of(r, item->key), .begin = item->value.number };
    }
    return true;
}

/* ---- storages -------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b) {
    return strcmp(((const struct storage *)a)->key, ((const struct storage *)b)->key);
}

static struct storage *find_storage(const struct reading *r, const char *key) {
    const struct storage wanted = { .key = key };
    return r->count ? bsearch(&wanted, r->storages, (size_t)r->count, sizeof wanted, by_key) : NULL;
}

static bool read_storage(struct reading *r, const wf_pickle_value *tensor, struct storage *to) {
    const wf_pickle_value *id = tuple_of(r, tensor[0]);
    *to = (struct storage){ .key = text_of(r, id[2]), .dtype = wf_pickle_dtype(id[1]) };
    if (!*to->key || id[2].count > MAX_KEY)
        return wf_file_fail(r->f->error, "storage '%.40s...': a key of %u bytes", to->key,
                            (unsigned)id[2].count);
    return wf_mul_size(id[4].number, wf_file_dtype(&to->dtype) / 8, &to->bytes) ||
           wf_file_fail(r->f->error, "storage '%.80s' is too large", to->key);
}

/* Lists the storages of all tensors, each once. */
static bool list_storages(struct reading *r) {
    int n = 0;
    r->storages = calloc((size_t)r->f->count + 1, sizeof *r->storages);
    if (!r->storages) return wf_file_fail(r->f->error, "out of memory");
    for (int i = 0; i < r->f->count; i++)
        if (!read_storage(r, r->p.values + r->f->tensors[i].begin, &r->storages[i])) return false;
    if (r->f->count) qsort(r->storages, (size_t)r->f->count, sizeof *r->storages, by_key);
    for (int i = 0; i < r->f->count; i++) {
        const struct storage *one = &r->storages[i], *before = n ? &r->storages[n - 1] : NULL;
        bool again = before && strcmp(one->key, before->key) == 0;
        if (again && (one->bytes != before->bytes || strcmp(one->dtype, before->dtype) != 0))
            return wf_file_fail(r->f->error, "storage '%.80s' is declared in two ways", one->key);
        if (!again) r->storages[n++] = *one;
    }
    r->count = n;
    return true;
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* True if the tensor is row-major without gaps. The stride of an axis of size 1 does not matter. */
static bool is_contiguous(const wf_entry *e, const wf_pickle_value *strides) {
    int64_t step = 1;
    for (int i = e->ndim; i-- > 0; step *= e->shape[i])
        if (e->shape[i] != 1 && strides[i].number != step) return false;
    return true;
}

static bool read_shape(struct reading *r, const wf_pickle_value *tensor, wf_entry *e,
                       int64_t *count) {
    const wf_pickle_value *sizes = tuple_of(r, tensor[2]), *strides = tuple_of(r, tensor[3]);
    char shape[192];
    if (tensor[2].count > WF_MAX_DIMS)
        return wf_file_fail(r->f->error, "tensor '%.80s': more than %d axes", e->name, WF_MAX_DIMS);
    e->ndim = (int)tensor[2].count;
    *count = 1;
    for (int i = 0; i < e->ndim; i++) e->shape[i] = sizes[i].number;
    wf_shape_text(NULL, e->ndim, e->shape, shape, sizeof shape);
    bool empty = false, fits = true;
    for (int i = 0; i < e->ndim; i++) {
        empty |= e->shape[i] == 0;
        fits = fits && wf_mul_size(*count, e->shape[i] ? e->shape[i] : 1, count);
    }
    if (!fits)
        return wf_file_fail(r->f->error, "tensor '%.60s': shape %.120s is too large", e->name,
                            shape);
    if (empty) *count = 0;
    return empty || is_contiguous(e, strides) ||
           wf_file_fail(r->f->error,
                        "tensor '%.60s' %.80s is a transposed or strided view: save "
                        "its .contiguous()",
                        e->name, shape);
}

/* Reads a tensor's shape, and finds its bytes in its storage. */
static bool place_tensor(struct reading *r, struct tensor *t) {
    const wf_pickle_value *tensor = r->p.values + t->begin;
    const struct storage *storage = find_storage(r, text_of(r, tuple_of(r, tensor[0])[2]));
    int64_t size, count, offset = tensor[1].number;
    if (!read_shape(r, tensor, &t->entry, &count)) return false;
    t->entry.dtype = storage->dtype;
    size = wf_file_dtype(&t->entry.dtype) / 8;
    int64_t room = storage->bytes / size;
    /* A tensor without elements may begin anywhere, as an empty slice does. */
    if (count == 0) offset = 0;
    if (count > room || offset > room - count)
        return wf_file_fail(
            r->f->error,
            "tensor '%.60s': %lld elements from %lld on of storage '%.60s', which has "
            "%lld",
            t->entry.name, (long long)count, (long long)offset, storage->key, (long long)room);
    t->begin = storage->begin + offset * size;
    t->end = t->begin + count * size;
    t->entry.bytes = (size_t)(count * size);
    return true;
}

static bool place_tensors(struct reading *r) {
    wf_file *f = r->f;
    for (int i = 0; i < f->count; i++)
        if (!place_tensor(r, &f->tensors[i])) return false;
    if (!wf_file_check_names(f)) return false;
    wf_file_sort(f);
    for (int i = 0; i < f->count; i++) f->tensors[i].entry.data = f->data + f->tensors[i].begin;
    return true;
}

/* ---- data ------------------------------------------------------------------------------------ */

static int by_place(const void *a, const void *b) {
    const struct storage *x = *(struct storage *const *)a, *y = *(struct storage *const *)b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return by_key(x, y);
}

/* Places the storages one behind the other, in the order of the file. Each is as long as its bytes
 * in the file, and these do not overlap. So without padding, the sum is at most the file's
 * length. */
static bool place_storages(struct reading *r) {
    int64_t at = 0;
    struct storage **order = calloc((size_t)r->count + 1, sizeof(struct storage *));
    if (!order) return wf_file_fail(r->f->error, "out of memory");
    for (int i = 0; i < r->count; i++) order[i] = &r->storages[i];
    if (r->count) qsort(order, (size_t)r->count, sizeof(struct storage *), by_place);
    for (int i = 0; i < r->count; i++) {
        order[i]->begin = at;
        at += (order[i]->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    free(order);
    return wf_file_allocate(r->f, &r->f->data, (uint64_t)at);
}

/* ---- the archive ----------------------------------------------------------------------------- */

static const char data_name[] = "data.pkl";

/* Finds NAME/data.pkl, and sets r->prefix to "NAME/". All files of an archive are in one folder,
 * which has the archive's name. */
static const wf_zip_record *find_pickle(struct reading *r) {
    const wf_zip_record *found = NULL;
    for (int i = 0; i < r->z.count; i++) {
        const char *name = r->z.records[i].name, *slash = strchr(name, '/');
        if (!slash || strcmp(slash + 1, data_name) != 0) continue;
        if (found)
            return wf_file_fail(r->f->error, "two pickles: '%.80s' and '%.80s'", found->name, name),
                   NULL;
        found = &r->z.records[i];
        memcpy(r->prefix, name, (size_t)(slash - name) + 1);
    }
    if (!found)
        wf_file_fail(r->f->error, "a ZIP archive without NAME/%s: not of torch.save", data_name);
    return found;
}

/* The record whose name is r->prefix + folder + name; NULL if there is none. */
static const wf_zip_record *find_record(const struct reading *r, const char *folder,
                                        const char *name) {
    char full[sizeof r->prefix + sizeof "data/" + MAX_KEY];
    size_t at = 0;
    const char *const parts[] = { r->prefix, folder, name };
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(parts[i]);
        memcpy(full + at, parts[i], n);
        at += n;
    }
    full[at] = '\0';
    return wf_zip_find(&r->z, full);
}

static bool check_order(struct reading *r) {
    char order[8] = "";
    const wf_zip_record *record = find_record(r, "", "byteorder");
    if (!record) return true; /* torch before 2.1 */
    if (record->size < (int64_t)sizeof order && !wf_zip_read(r->f, r->s, &r->z, record, order))
        return false;
    return strcmp(order, "little") == 0 ||
           wf_file_fail(r->f->error, "its numbers are not little-endian: '%.80s'", record->name);
}

static bool run_pickle(struct reading *r, wf_pickle_value *result) {
    const wf_zip_record *record = find_pickle(r);
    if (!record) return false;
    if (record->size > WF_PICKLE_MAX)
        return wf_file_fail(r->f->error, "'%.80s' has %lld bytes, at most %d allowed", record->name,
                            (long long)record->size, WF_PICKLE_MAX);
    if (!wf_file_allocate(r->f, &r->f->header, (uint64_t)record->size + 1) ||
        !wf_zip_read(r->f, r->s, &r->z, record, r->f->header))
        return false;
    r->p.bytes = (const unsigned char *)r->f->header;
    r->p.size = (size_t)record->size;
    if (!wf_pickle_run(&r->p, result)) return false;
    return r->p.at == r->p.size ||
           wf_file_fail(r->f->error, "'%.80s' goes on behind its pickle", record->name);
}

static bool find_storages(struct reading *r) {
    for (int i = 0; i < r->count; i++) {
        struct storage *one = &r->storages[i];
        const wf_zip_record *record = one->record = find_record(r, "data/", one->key);
        if (!record)
            return wf_file_fail(r->f->error, "storage '%.80s' is not in the archive", one->key);
        if (record->size != one->bytes)
            return wf_file_fail(r->f->error,
                                "storage '%.80s': %lld bytes in the archive, %lld declared",
                                one->key, (long long)record->size, (long long)one->bytes);
        one->at = record->at;
    }
    return true;
}

/* Reads all records in the order of the file. Records that are not storages are read only to verify
 * their checksums. */
static bool read_records(struct reading *r) {
    char **places = calloc((size_t)r->z.count + 1, sizeof *places);
    bool ok = places || wf_file_fail(r->f->error, "out of memory");
    for (int i = 0; ok && i < r->count; i++)
        places[r->storages[i].record - r->z.records] = r->f->data + r->storages[i].begin;
    for (int i = 0; ok && i < r->z.count; i++)
        ok = wf_zip_read(r->f, r->s, &r->z, &r->z.records[i], places[i]);
    free(places);
    return ok;
}

static bool read_archive(struct reading *r) {
    wf_pickle_value dict;
    if (!wf_zip_open(r->f, r->s, &r->z) || !run_pickle(r, &dict) || !check_order(r)) return false;
    r->f->checked = true; /* a wrong checksum makes reading fail */
    return list_tensors(r, dict) && list_storages(r) && find_storages(r) && place_storages(r) &&
           place_tensors(r) && read_records(r);
}

/* ---- the container before torch 1.6 ---------------------------------------------------------- */

/* True only if the dict has "little_endian": True. */
static bool is_little(const struct reading *r, wf_pickle_value info) {
    if (info.kind != WF_PICKLE_DICT) return false;
    const wf_pickle_item *item = item_at(r, r->p.lists[info.number].first);
    for (; item; item = item_at(r, item->next))
        if (wf_pickle_is_text(&r->p, item->key, "little_endian"))
            return item->value.kind == WF_PICKLE_BOOL && item->value.number;
    return false;
}

struct legacy {
    wf_pickle_value protocol, info, dict, keys;
};

static bool run_pickles(struct reading *r, struct legacy *l) {
    r->p.at = WF_TORCH_KNOWN_BY;
    return wf_pickle_run(&r->p, &l->protocol) && wf_pickle_run(&r->p, &l->info) &&
           wf_pickle_run(&r->p, &l->dict) && wf_pickle_run(&r->p, &l->keys);
}

/* Reads the pickles. Their lengths are not stored, so bytes are read until the last pickle ends. */
static bool read_pickles(struct reading *r, struct legacy *l) {
    wf_file *f = r->f;
    for (int64_t n = 1 << 16;; n *= 4) {
        if (n > r->s->size) n = r->s->size;
        if (n > WF_PICKLE_MAX) n = WF_PICKLE_MAX;
        free(f->header);
        f->header = NULL;
        *f->error = '\0';
        wf_pickle_free(&r->p);
        r->p = (wf_pickle){ .error = f->error, .size = (size_t)n };
        r->s->at = 0;
        if (!wf_file_allocate(f, &f->header, (uint64_t)n + 1) ||
            !wf_source_read(f, r->s, f->header, (size_t)n))
            return false;
        r->p.bytes = (const unsigned char *)f->header;
        if (run_pickles(r, l)) return true;
        if (!r->p.ended || n == r->s->size || n == WF_PICKLE_MAX) return false;
    }
}

/* Finds a storage in the file: its number of elements, then its bytes. */
static bool find_part(struct reading *r, wf_pickle_value key, int64_t *at) {
    uint64_t count;
    const char *name = key.kind == WF_PICKLE_STRING ? text_of(r, key) : NULL;
    struct storage *one = name ? find_storage(r, name) : NULL;
    if (!one || one->at)
        return wf_file_fail(r->f->error, "storage '%.80s' is %s", name ? name : "",
                            one ? "there twice" : "of no tensor");
    int64_t size = wf_file_dtype(&one->dtype) / 8;
    if (r->s->size - *at < 8)
        return wf_file_fail(r->f->error, "cut off before storage '%.80s'", name);
    r->s->at = *at;
    one->at = *at += 8;
    if (!wf_source_read(r->f, r->s, &count, sizeof count)) return false;
    if (count != (uint64_t)(one->bytes / size))
        return wf_file_fail(r->f->error,
                            "storage '%.80s': %llu elements in the file, %lld declared", name,
                            (unsigned long long)count, (long long)(one->bytes / size));
    if (one->bytes > r->s->size - *at)
        return wf_file_fail(r->f->error,
                            "storage '%.80s': %lld bytes, but only %lld left: cut off?", name,
                            (long long)one->bytes, (long long)(r->s->size - *at));
    *at += one->bytes;
    return true;
}

static bool find_parts(struct reading *r, wf_pickle_value keys) {
    int64_t at = (int64_t)r->p.at;
    int n = 0;
    if (keys.kind != WF_PICKLE_LIST)
        return wf_file_fail(r->f->error, "no list of its storages' keys");
    const wf_pickle_item *item = item_at(r, r->p.lists[keys.number].first);
    for (; item; item = item_at(r, item->next), n++)
        if (!find_part(r, item->value, &at)) return false;
    if (n != r->count)
        return wf_file_fail(r->f->error, "%d of %d storages are not in the file", r->count - n,
                            r->count);
    return at == r->s->size || wf_file_fail(r->f->error, "%lld bytes behind the last storage",
                                            (long long)(r->s->size - at));
}

static bool read_parts(struct reading *r) {
    for (int i = 0; i < r->count; i++) {
        r->s->at = r->storages[i].at;
        if (!wf_source_read(r->f, r->s, r->f->data + r->storages[i].begin,
                            (size_t)r->storages[i].bytes))
            return false;
    }
    return true;
}

static bool read_legacy(struct reading *r) {
    struct legacy l;
    if (!read_pickles(r, &l)) return false;
    if (l.protocol.kind != WF_PICKLE_INT || l.protocol.number != LEGACY_PROTOCOL)
        return wf_file_fail(r->f->error, "not of torch.save's protocol %d", LEGACY_PROTOCOL);
    if (!is_little(r, l.info))
        return wf_file_fail(r->f->error, "its numbers are not said to be little-endian");
    return list_tensors(r, l.dict) && list_storages(r) && find_parts(r, l.keys) &&
           place_storages(r) && place_tensors(r) && read_parts(r);
}

/* ---- inside core/file ------------------------------------------------------------------------ */

/* The first 8 bytes of an archive could be the length of a safetensors header of 67 MB. The next
 * byte tells them apart: a brace or white space in a safetensors file, a compression method in an
 * archive. */
int wf_torch_container(const unsigned char *first, int64_t size) {
    if (size >= 9 && memcmp(first, "PK\3\4", 4) == 0 && first[8] < ' ' && first[8] != '\t' &&
        first[8] != '\n' && first[8] != '\r')
        return WF_TORCH_ZIP;
    return size >= WF_TORCH_KNOWN_BY && memcmp(first, legacy_magic, WF_TORCH_KNOWN_BY) == 0
               ? WF_TORCH_LEGACY
               : 0;
}

bool wf_file_read_torch(wf_file *f, struct source *s, int container) {
    struct reading r = { .f = f, .s = s, .p.error = f->error };
    bool ok = container == WF_TORCH_ZIP ? read_archive(&r) : read_legacy(&r);
    wf_pickle_free(&r.p);
    wf_zip_close(&r.z);
    free(r.storages);
    return ok;
}
