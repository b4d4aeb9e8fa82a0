/* tools/files/convert_marian.c - converts a file of Marian to a model file, and back; see
 * convert_marian.h. */
#include "convert_marian.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/op.h"
#include "tools/data/text_input.h"

/* The bytes of a file. Exits if it cannot be read. */
static void *read_file(const program *p, const char *path, size_t *size) {
    char message[WF_MESSAGE];
    void *bytes = spool_whole(path, size, message);
    if (!bytes) fail(p, "%s", message);
    return bytes;
}

/* The configuration of a decoder that lies beside a model, under the names that marian-train,
 * OPUS-MT and Bergamot give it. NULL: there is none; *file becomes its path. */
static void *read_search(const program *p, const char *model, char file[PATH_SIZE], size_t *size) {
    const char *slash = strrchr(model, '/');
    int folder = slash ? (int)(slash - model) + 1 : 0;
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = { ".decoder.yml", "decoder.yml",
                                             "config.intgemm8bitalpha.yml" };
        int n = i ? folder : (int)strlen(model);
        bool fits = snprintf(file, PATH_SIZE, "%.*s%s", n, model, names[i]) < PATH_SIZE;
        if (fits && access(file, F_OK) == 0) return read_file(p, file, size);
    }
    return NULL;
}

void import_marian(const program *p, const char *path, const char *src, const char *tgt, wf_hf *out,
                   char decoder[PATH_SIZE]) {
    wf_marian_files files = { .model = NULL };
    if (!src) src = tgt;
    if (!tgt) tgt = src;
    char message[WF_MESSAGE];
    void *model = read_file(p, path, &files.model_bytes);
    void *source = src ? read_file(p, src, &files.src_bytes) : NULL;
    void *target = tgt ? read_file(p, tgt, &files.tgt_bytes) : NULL;
    void *search = read_search(p, path, decoder, &files.search_bytes);
    files.model = model;
    files.src = source;
    files.tgt = target;
    files.search = search;
    if (!wf_marian_import(&files, out, message)) {
        bool of_search = search && strncmp(message, "the decoder's", 13) == 0;
        fail(p, "%s: %s", of_search ? decoder : path, message);
    }
    free(model), free(source), free(target), free(search);
}

static void *as_file(const program *p, const wf_file *f, wf_model *m, marian_form *form,
                     size_t *bytes, char *message) {
    if (form->calibrate) {
        wf_marian_scales *scales = calibrate_marian(p, f, m, form);
        void *file = wf_marian_export_int8(m, scales, bytes, message);
        wf_marian_scales_free(scales);
        return file;
    }
    if (!form->like) return wf_marian_export(m, bytes, message);
    void *before = read_file(p, form->like, bytes);
    void *file = wf_marian_export_like(m, before, *bytes, message);
    free(before);
    return file;
}

void export_marian(const program *p, const wf_file *f, wf_model *m, marian_form *form,
                   const char *target) {
    size_t bytes;
    char message[WF_MESSAGE];
    void *file = as_file(p, f, m, form, &bytes, message);
    if (!file) fail(p, "%s: %s", form->like ? form->like : form->model, message);
    if (!output_write(target, file, bytes, message)) fail(p, "%s", message);
    free(file);
}
