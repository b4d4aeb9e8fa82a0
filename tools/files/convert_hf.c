/* tools/files/convert_hf.c - a folder of Hugging Face into a model's file, and back. See
 * convert_hf.h; what a folder says is read and written in models/hf. */
#include "convert_hf.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/cli/output.h"
#include "tools/cli/uses.h"

/* ---- files ----------------------------------------------------------------------------------- */

static const char *const names[] = {
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    "generation_config.json",
    "config.json",
    "vocab.json",
    "target_vocab.json",
    "source.spm",
    "target.spm",
    "tokenizer_config.json",
};
enum { NAMES = sizeof names / sizeof *names };

static void place(const program *p, char path[PATH_SIZE], const char *folder, const char *name) {
    int n = snprintf(path, PATH_SIZE, "%s/%s", folder, name);
    if (n < 0 || n >= PATH_SIZE) fail(p, "%.60s...: the path is too long", folder);
}

void check_folder(program *p, const char *folder, file_use use) {
    static char paths[NAMES][PATH_SIZE];
    used_file files[NAMES];
    struct stat s;
    if (use == USE_OUTPUT && stat(folder, &s) != 0 && errno == ENOENT) return; /* to be made */
    for (int i = 0; i < NAMES; i++) {
        place(p, paths[i], folder, names[i]);
        files[i] = (used_file){ names[i], paths[i], -1, use };
        if (use == USE_OUTPUT && lstat(paths[i], &s) == 0)
            fail(p, "%s is there: a model is written into a folder without one", paths[i]);
    }
    check_uses(p, files, NAMES);
}

static void tell(const program *p, const char *notes) {
    while (*notes) {
        size_t n = strcspn(notes, "\n");
        warn(p, "%.*s", (int)n, notes);
        notes += n + (notes[n] == '\n');
    }
}

/* ---- from a folder --------------------------------------------------------------------------- */

void import_folder(const program *p, const char *folder, wf_hf *hf) {
    char message[WF_MESSAGE];
    if (!wf_hf_import(folder, hf, message)) fail(p, "%s: %s", folder, message);
    tell(p, hf->notes);
}

bool save_imported(const wf_hf *hf, const char *target, char *message) {
    wf_generation_text text;
    wf_meta meta[2 * WF_TOKENIZER_META + WF_GENERATION_META];
    int n = wf_generation_to_meta(&hf->generation, &text, meta);
    if (hf->src && hf->tgt) {
        n += wf_tokenizer_to_meta(hf->src, "src_tokenizer", meta + n);
        n += wf_tokenizer_to_meta(hf->tgt, "tgt_tokenizer", meta + n);
    }
    return wf_model_save(hf->model, target, false, meta, n, message);
}

/* ---- to a folder ----------------------------------------------------------------------------- */

typedef struct destination {
    const program *p;
    const char *folder;
} destination;

static bool write_file(void *user, const char *name, const void *bytes, size_t size,
                       char *message) {
    const destination *to = user;
    char path[PATH_SIZE];
    output o;
    place(to->p, path, to->folder, name);
    if (!output_open(&o, path, message)) return false;
    fwrite(bytes, 1, size, o.stream);
    return output_close(&o, message);
}

static wf_tokenizer *tokenizer(const wf_file *f, const char *prefix, char *message, bool *ok) {
    wf_tokenizer *t =
        *ok && wf_tokenizer_in_file(f, prefix) ? wf_tokenizer_from_meta(f, prefix, message) : NULL;
    *ok = *ok && (t || !wf_tokenizer_in_file(f, prefix));
    return t;
}

void export_folder(const program *p, const char *model, const char *folder) {
    char message[WF_MESSAGE];
    destination to = { p, folder };
    wf_hf hf = { .generation.options = wf_decode_defaults() };
    wf_file *f = wf_file_open(model);
    if (!wf_file_ok(f)) fail(p, "%s", wf_file_error(f));
    hf.model = wf_model_load(f, NULL, WF_F32, 0, message);
    bool ok = hf.model && wf_generation_from_meta(f, hf.model, &hf.generation, message);
    hf.src = tokenizer(f, "src_tokenizer", message, &ok);
    hf.tgt = tokenizer(f, "tgt_tokenizer", message, &ok);
    if (ok && !wf_generation_in_file(f))
        warn(p, "%s says nothing of its search: num_beams is 1", model);
    if (ok && wf_tokenizer_in_file(f, "tokenizer"))
        warn(p, "its vocabulary is not one of SentencePiece for each side: the folder has none");
    wf_file_free(f);
    if (!ok) fail(p, "%s: %s", model, message);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        fail(p, "%s can't be made: %s", folder, strerror(errno));
    if (!wf_hf_export(&hf, folder, write_file, &to, message)) fail(p, "%s: %s", model, message);
    tell(p, hf.notes);
    wf_hf_free(&hf);
}
