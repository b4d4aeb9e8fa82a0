/* tests/models/hf_files.h - reads the folders of Hugging Face that record_hf.py recorded, and
 * copies them, with changes, into a temporary folder for one test. */
#ifndef WEFT_TESTS_MODELS_HF_FILES_H
#define WEFT_TESTS_MODELS_HF_FILES_H

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "models/generation_internal.h"
#include "models/hf.h"
#include "tests/support/models.h"
#include "tests/support/support.h"

static char folder[] = "/tmp/weft-hf-XXXXXX";

static inline void make_folder(void) {
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static inline void place(char path[512], const char *in, const char *name) {
    ck_assert_int_lt(snprintf(path, 512, "%s/%s", in, name), 512);
}

/* Removes a folder within the test's folder, with its files. */
static inline void remove_files(const char *within) {
    char path[512];
    DIR *d = opendir(within);
    for (struct dirent *e; d && (e = readdir(d));) place(path, within, e->d_name), unlink(path);
    if (d) closedir(d);
    rmdir(within);
}

/* Makes the folder of the file `path`, if it is not there. */
static inline void make_folder_of(const char *path) {
    char within[512];
    const char *slash = strrchr(path, '/');
    snprintf(within, sizeof within, "%.*s", (int)(slash - path), path);
    mkdir(within, 0777);
}

static inline void remove_folder(void) {
    char path[512];
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        place(path, folder, e->d_name);
        if (*e->d_name != '.' && unlink(path) != 0) remove_files(path);
    }
    closedir(d), rmdir(folder);
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
}

/* ---- files ----------------------------------------------------------------------------------- */

static inline char *recorded(const char *name, char path[512]) {
    char relative[128];
    snprintf(relative, sizeof relative, "tests/data/hf/%s", name);
    return source_path(relative, path, 512);
}

static inline char *read_whole(const char *path, size_t *bytes) {
    char *text = malloc(1 << 18);
    FILE *f = fopen(path, "rb");
    *bytes = f ? fread(text, 1, (1 << 18) - 1, f) : 0;
    text[*bytes] = '\0';
    if (f) fclose(f);
    return text;
}

static inline const wf_entry *entry(const wf_file *f, const char *name) {
    const wf_entry *e = wf_file_find(f, name);
    ck_assert_msg(e != NULL, "no '%s'", name);
    return e;
}

static inline const int32_t *ids_in(const wf_file *f, const char *name) {
    return entry(f, name)->data;
}

/* The index of the first token that differs from a recorded row, which is padded with ids below 0;
 * -1: none does. */
static inline int other_token(const wf_hypothesis *h, const int32_t *row, int width) {
    if (h->length > width) return width;
    for (int k = 0; k < width; k++)
        if (k < h->length ? h->tokens[k] != row[k] : row[k] >= 0) return k;
    return -1;
}

static inline bool write_whole(void *user, const char *name, const void *bytes, size_t size,
                               char *message) {
    char path[512];
    (void)message;
    place(path, user, name);
    make_folder_of(path);
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(bytes, 1, size, f) == size;
    return f && fclose(f) == 0 && ok;
}

/* The writer that puts whole files into the folder of the test. */
static const wf_hf_writer whole_files = { .put = write_whole, .user = folder };

static inline wf_hf import(const char *from) {
    char message[WF_MESSAGE] = "";
    wf_hf hf;
    ck_assert_msg(wf_hf_import(from, &hf, message), "%s: %s", from, message);
    return hf;
}

/* Asserts that two tokenizers have the same metadata in a model's file. */
static inline void assert_same_tokenizer(wf_tokenizer *a, wf_tokenizer *b) {
    wf_meta p[WF_TOKENIZER_META], q[WF_TOKENIZER_META];
    ck_assert((a != NULL) == (b != NULL));
    if (!a) return;
    int n = 0, n_again = 0;
    ck_assert(wf_tokenizer_to_meta(a, "t", p, &n, NULL));
    ck_assert(wf_tokenizer_to_meta(b, "t", q, &n_again, NULL));
    ck_assert_int_gt(n, 0);
    ck_assert_int_eq(n_again, n);
    for (int i = 0; i < n; i++) ck_assert_str_eq(p[i].value, q[i].value);
}

static inline void assert_same(const wf_hf *a, const wf_hf *b) {
    assert_same_tokenizer(a->src, b->src), assert_same_tokenizer(a->tgt, b->tgt);
    ck_assert_int_eq(wf_node_count(a->model->graph), wf_node_count(b->model->graph));
    ck_assert(memcmp(a->generation.banned, b->generation.banned, sizeof a->generation.banned) == 0);
    ck_assert(memcmp(a->generation.forced, b->generation.forced, sizeof a->generation.forced) == 0);
    wf_generation_text x, y;
    wf_meta p[WF_GENERATION_META], q[WF_GENERATION_META];
    int n = wf_generation_to_meta(&a->generation, &x, p);
    ck_assert_int_eq(wf_generation_to_meta(&b->generation, &y, q), n);
    for (int i = 0; i < n; i++) ck_assert_str_eq(p[i].value, q[i].value);
    for (int id = 0; id < wf_node_count(a->model->graph); id++) {
        const wf_tensor *t = wf_node(a->model->graph, id), *u = wf_node(b->model->graph, id);
        if (t->kind != WF_PARAM) continue;
        double *v = leaf_values(t), *w = leaf_values(u);
        ck_assert_str_eq(t->name, u->name);
        ck_assert_msg(memcmp(v, w, (size_t)wf_count(t) * sizeof *v) == 0, "%s differs", t->name);
        free(v), free(w);
    }
}

/* ---- changed --------------------------------------------------------------------------------- */

/* Copies a file of a recorded folder, with the first `from` replaced by `to`; from NULL: as it
 * is. */
static inline void copy_changed_of(const char *in, const char *name, const char *from,
                                   const char *to) {
    char path[512], source[512];
    size_t bytes;
    place(path, recorded(in, source), name);
    char *text = read_whole(path, &bytes), *at = text;
    size_t n = from ? strlen(from) : 0;
    place(path, folder, name);
    make_folder_of(path);
    FILE *f = fopen(path, "wb");
    while (from && (size_t)(at - text) + n <= bytes && memcmp(at, from, n) != 0) at++;
    ck_assert_msg(!from || (size_t)(at - text) + n <= bytes, "%s has no %s", name, from);
    fwrite(text, 1, (size_t)(at - text), f);
    if (from) fputs(to, f);
    fwrite(at + n, 1, bytes - (size_t)(at - text) - n, f);
    fclose(f), free(text);
}

/* A change of one file of a recorded folder: its first `from` becomes `to`. sentence NULL: the
 * folder is read; else it is refused with that sentence. */
typedef struct changed_folder {
    const char *in, *file, *from, *to, *sentence;
} changed_folder;

/* Copies those of the n files that the recorded folder has, with the change, and imports the
 * copy. */
static inline void assert_changed(const changed_folder *c, const char *const *files, int n) {
    char message[WF_MESSAGE] = "", path[512], file[512];
    wf_hf hf;
    for (int i = 0; i < n; i++) {
        bool this_one = strcmp(files[i], c->file) == 0;
        place(file, recorded(c->in, path), files[i]);
        if (access(file, F_OK) != 0) continue;
        copy_changed_of(c->in, files[i], this_one ? c->from : NULL, this_one ? c->to : NULL);
    }
    bool ok = wf_hf_import(folder, &hf, message);
    ck_assert_msg(ok == !c->sentence, "%s", message);
    if (!ok) assert_contains(message, c->sentence);
    wf_hf_free(&hf);
}

#endif
