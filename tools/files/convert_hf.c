/* tools/files/convert_hf.c - converts a folder of Hugging Face to a model file, and back. See
 * convert_hf.h. models/hf reads and writes the contents of the folder.
 *
 * An export writes several files, and may be killed in between. So it first writes their names into
 * the file UNFINISHED, and removes that when all are written. The files in this list come from an
 * export, so the next export may replace them. config.json is written last; until then no program
 * reads the folder. */
#include "convert_hf.h"
#include "models/choices.h"
#include "models/encoder.h"
#include "models/generation_internal.h"
#include "models/hf_internal.h"
#include "models/language_model.h"
#include "models/model_internal.h"
#include "models/text_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/alignment/links.h"
#include "tools/cli/options/uses.h"
#include "tools/cli/output.h"
#include "tools/data/language.h"
#include "tools/generate/usual_search.h"

#define UNFINISHED "weft-export.unfinished"

/* ---- files ----------------------------------------------------------------------------------- */

static void place(const program *p, char path[PATH_SIZE], const char *folder, const char *name) {
    int n = snprintf(path, PATH_SIZE, "%s/%s", folder, name);
    if (n < 0 || n >= PATH_SIZE) fail(p, "%.60s...: the path is too long", folder);
}

static bool is_there(const char *path) {
    struct stat s;
    return lstat(path, &s) == 0;
}

static wf_hf_files files_of(const program *p, const char *folder) {
    char message[WF_MESSAGE];
    wf_hf_files files;
    if (!wf_hf_list_files(folder, &files, message))
        fail(p, "%s: %s", folder ? folder : "a folder", message);
    return files;
}

/* Checks all files of the folder with those of the command line (check_uses), as files that are
 * read, or that are written. */
static void check_files(program *p, const char *folder, const wf_hf_files *files, file_use use) {
    char path[PATH_SIZE], within[PATH_SIZE];
    used_file *used = memory_or_fail(p, calloc((size_t)files->n + 1, sizeof *used));
    for (int i = 0; i < files->n; i++) {
        place(p, path, folder, files->names[i]);
        output_folder(path, within);
        /* a missing subfolder is made later, so its files cannot be checked yet */
        bool no_folder = strchr(files->names[i], '/') && !is_there(within);
        used[i] = (used_file){ files->names[i], memory_or_fail(p, strdup(path)), -1,
                               no_folder ? USE_NONE : use };
    }
    check_uses(p, used, files->n);
    for (int i = 0; i < files->n; i++) free((void *)(uintptr_t)used[i].path);
    free(used);
}

static bool has_file(const program *p, const char *folder, const char *name) {
    char path[PATH_SIZE];
    place(p, path, folder, name);
    return access(path, F_OK) == 0;
}

/* Exits if the folder has adapters where a model is read, the reverse, or neither. */
static void check_content(const program *p, const char *folder, bool adapters) {
    bool model = has_file(p, folder, "config.json");
    bool peft = has_file(p, folder, "adapter_config.json");
    if (adapters ? peft : model) return;
    if (adapters && model)
        fail(p, "%s has a model, and no adapters (adapter_config.json): leave --base out", folder);
    if (peft)
        fail(
            p,
            "%s has adapters without their model: --base MODEL names the file of that model, which "
            "convert --from hf makes of its own folder",
            folder);
    fail(p,
         "%s has no %s: --from hf reads a folder with %s, as it was downloaded whole from the "
         "Hugging Face hub, by git clone (with git-lfs) or in a browser",
         folder, adapters ? "adapter_config.json" : "config.json",
         adapters ? "adapter_config.json and adapter_model.safetensors"
                  : "config.json, the weights (model.safetensors or pytorch_model.bin) and the "
                    "tokenizer's files");
}

void check_source(program *p, const char *folder, bool adapters) {
    struct stat s;
    bool there = folder && stat(folder, &s) == 0;
    if (folder && !there && errno == ENOENT)
        fail(p,
             "%s: no such folder: --from hf reads a model's folder that was downloaded from the "
             "Hugging Face hub, by git clone (with git-lfs) or in a browser",
             folder);
    if (there && !S_ISDIR(s.st_mode))
        fail(p, "%s is a file: --from hf reads the folder that has a model's config.json", folder);
    if (there) check_content(p, folder, adapters);
    wf_hf_files files = files_of(p, folder);
    check_files(p, folder, &files, USE_INPUT);
    wf_hf_files_free(&files);
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

bool save_imported(const wf_hf *hf, const char *head, const char *target, char *message) {
    wf_generation_text text;
    wf_meta meta[2 * WF_TOKENIZER_META + WF_GENERATION_META + 2];
    int n = wf_encoder_of(hf->model) ? 0 : wf_generation_to_meta(&hf->generation, &text, meta);
    bool shared = hf->src && hf->src == hf->tgt;
    if (shared && !wf_tokenizer_to_meta(hf->src, "tokenizer", meta, &n, message)) return false;
    if (hf->src && hf->tgt && !shared &&
        (!wf_tokenizer_to_meta(hf->src, "src_tokenizer", meta, &n, message) ||
         !wf_tokenizer_to_meta(hf->tgt, "tgt_tokenizer", meta, &n, message)))
        return false;
    if (hf->class_names) meta[n++] = (wf_meta){ WF_CLASS_NAMES, hf->class_names };
    if (head) meta[n++] = (wf_meta){ ALIGNMENT_HEAD, head };
    return wf_model_save(hf->model, target, NULL, meta, n, message);
}

/* ---- checking that a folder may be written --------------------------------------------------- */

enum { MOST_FILES = 16 };

typedef struct destination {
    const program *p;
    const char *folder;
    bool made, overwrites; /* the folder is new; files of an existing model are replaced */
    char *own;             /* the names in UNFINISHED, each with a line break, or "" */
    int written;           /* number of `names` that were begun */
    const char *names[MOST_FILES];
} destination;

/* The names of files that an interrupted export wrote, from the list that it left; "" if there is
 * none. */
static char *own_names(const program *p, const char *folder) {
    enum { MOST = 4096 };
    char path[PATH_SIZE], *names = memory_or_fail(p, calloc(1, MOST));
    place(p, path, folder, UNFINISHED);
    FILE *f = fopen(path, "r");
    if (!f && errno != ENOENT) fail(p, "%s: %s", path, strerror(errno));
    if (!f) return names;
    size_t n = fread(names, 1, MOST - 1, f);
    names[n] = '\0';
    if (ferror(f)) fail(p, "%s can't be read", path);
    fclose(f);
    return names;
}

static bool is_own(const char *own, const char *name) {
    size_t n = strlen(name);
    for (const char *line = own; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (strncmp(line, name, n) == 0 && line[n] == '\n') return true;
    return false;
}

static void check_empty(const program *p, const char *folder) {
    char path[PATH_SIZE], *own = own_names(p, folder);
    wf_hf_files files = files_of(p, NULL);
    for (int i = 0; i < files.n; i++) {
        place(p, path, folder, files.names[i]);
        if (is_there(path) && !is_own(own, files.names[i]))
            fail(p,
                 "%s is there: a model is written into a folder without one, or with --overwrite "
                 "in its place",
                 path);
    }
    wf_hf_files_free(&files);
    free(own);
}

void check_destination(program *p, const char *folder, bool overwrite) {
    char message[WF_MESSAGE];
    struct stat s;
    if (!output_folder_writable(folder, message)) fail(p, "%s", message);
    if (stat(folder, &s) != 0 && errno == ENOENT) return;
    if (!overwrite) check_empty(p, folder);
    wf_hf_files files = files_of(p, folder);
    check_files(p, folder, &files, USE_OUTPUT);
    wf_hf_files_free(&files);
}

/* ---- to a folder ----------------------------------------------------------------------------- */

static bool put_file(const destination *to, const char *name, const void *bytes, size_t size,
                     char *message) {
    char path[PATH_SIZE], folder[PATH_SIZE];
    place(to->p, path, to->folder, name);
    output_folder(path, folder);
    if (strchr(name, '/') && !output_make_folder(folder, message)) return false;
    return output_write(path, bytes, size, message);
}

static bool write_file(void *user, const char *name, const void *bytes, size_t size,
                       char *message) {
    destination *to = user;
    to->written++;
    return put_file(to, name, bytes, size, message);
}

static void make_folder(destination *to) {
    to->made = mkdir(to->folder, 0777) == 0;
    if (!to->made && errno != EEXIST)
        fail(to->p, "%s can't be made: %s", to->folder, strerror(errno));
    if (to->made) output_flush(to->folder);
}

static bool is_one_of(const char *name, const char *const *names, int n) {
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* Removes files that an interrupted export wrote and this model lacks, because they would be read
 * as part of the model. Exits if there are such files from another program or another export. */
static void clear_others(destination *to, const char *const *names, int n) {
    char path[PATH_SIZE];
    wf_hf_files files = files_of(to->p, to->folder);
    for (int i = 0; i < files.n; i++) {
        place(to->p, path, to->folder, files.names[i]);
        if (!is_there(path)) continue;
        bool own = is_own(to->own, files.names[i]);
        to->overwrites |= !own;
        if (is_one_of(files.names[i], names, n)) continue;
        if (!own)
            fail(to->p, "%s is of another model, and this one has no such file: remove it first",
                 path);
        if (unlink(path) != 0) fail(to->p, "%s can't be removed: %s", path, strerror(errno));
    }
    wf_hf_files_free(&files);
}

static bool write_names(const destination *to, const char *const *names, int n, char *message) {
    char text[4096];
    size_t used = 0;
    for (int i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\n", names[i]);
    return put_file(to, UNFINISHED, text, used, message);
}

/* Begins to write. From now on no program can read the folder, until its config.json exists
 * again. */
static bool begin_folder(void *user, const char *const *names, int n, char *message) {
    destination *to = user;
    char path[PATH_SIZE];
    if (n > MOST_FILES) fail(to->p, "a folder of %d files", n);
    make_folder(to);
    place(to->p, path, to->folder, names[n - 1]);
    if (!output_lock_folder(to->folder, message)) return false;
    to->own = own_names(to->p, to->folder);
    clear_others(to, names, n);
    if (!write_names(to, names, n, message)) return false;
    memcpy(to->names, names, (size_t)n * sizeof *names);
    to->written = 1;
    if (is_there(path) && unlink(path) != 0)
        fail(to->p, "%s can't be removed: %s", path, strerror(errno));
    output_flush(path);
    return true;
}

static void end_folder(const destination *to) {
    char path[PATH_SIZE];
    place(to->p, path, to->folder, UNFINISHED);
    unlink(path);
    output_flush(path);
}

/* Removes what was written, except where it replaced files of another model. */
static void give_up(const destination *to) {
    char path[PATH_SIZE], folder[PATH_SIZE];
    for (int i = 0; i < to->written && !to->overwrites; i++) {
        place(to->p, path, to->folder, to->names[i]);
        unlink(path);
        /* also the file's subfolder, which stays if it has other files */
        output_folder(path, folder);
        if (strchr(to->names[i], '/')) rmdir(folder);
    }
    if (to->written && !to->overwrites) end_folder(to);
    if (to->made) rmdir(to->folder);
}

static wf_tokenizer *tokenizer(const wf_file *f, const char *prefix, char *message, bool *ok) {
    wf_tokenizer *t =
        *ok && wf_tokenizer_in_file(f, prefix) ? wf_tokenizer_from_meta(f, prefix, message) : NULL;
    *ok = *ok && (t || !wf_tokenizer_in_file(f, prefix));
    return t;
}

static bool is_of_text(const wf_file *f) {
    return wf_tokenizer_in_file(f, "tokenizer") || wf_tokenizer_in_file(f, "src_tokenizer");
}

/* True if the model's tokenizer is a tokenizer.json, which is always one for both sides. */
static bool is_json(const wf_file *f) {
    const char *kind = wf_file_meta(f, "tokenizer.kind");
    return kind && strcmp(kind, wf_token_kind_name(WF_JSON_TEXT)) == 0;
}

/* Facts on which a warning or the message of a refusal depends. search: the model has no settings
 * of a search, so the folder gets those that generate uses; tokenizer: the model's vocabulary has
 * no form in transformers, so the folder has none; text: the model has a vocabulary; json: it is a
 * tokenizer.json. */
typedef struct unsaid {
    bool search, tokenizer, text, json;
} unsaid;

/* The search that `generate` makes with a prompt. No end token is forced at the maximum length,
 * because that would change only the score. */
static wf_decode_options search_of_prompts(void) {
    wf_decode_options o = usual_search(true);
    o.beam = 1;
    o.max_len_a = 0;
    o.max_len_b = USUAL_ROOM_OF_PROMPTS;
    o.at_limit = WF_LIMIT_NO_END;
    return o;
}

static unsaid load_model(const program *p, const char *model, wf_hf *hf) {
    char message[WF_MESSAGE];
    wf_file *f = wf_file_open(model);
    if (!wf_file_ok(f)) fail(p, "%s", wf_file_error(f));
    hf->model = wf_model_load(f, NULL, WF_F32, 0, message);
    bool goes_on = hf->model && hf->model->start_first, reads = wf_encoder_of(hf->model);
    hf->generation.options = goes_on ? search_of_prompts() : usual_search(is_of_text(f));
    bool ok =
        hf->model && (reads || wf_generation_from_meta(f, hf->model, &hf->generation, message));
    bool one = goes_on || reads || is_json(f);
    hf->src = tokenizer(f, one ? "tokenizer" : "src_tokenizer", message, &ok);
    hf->tgt = one ? hf->src : tokenizer(f, "tgt_tokenizer", message, &ok);
    const char *classes = wf_file_meta(f, WF_CLASS_NAMES);
    if (classes) hf->class_names = memory_or_fail(p, strdup(classes));
    /* as generate does */
    if (goes_on && hf->src && !wf_generation_in_file(f))
        hf->generation.n_banned = no_text(hf->src, false, hf->generation.banned);
    const wf_transformer *t = wf_transformer_of(hf->model);
    bool t5 = t && t->config.relative_buckets; /* for T5, a note of models/hf says it */
    unsaid u = { .search = !reads && !wf_generation_in_file(f),
                 .tokenizer = !one && !t5 && wf_tokenizer_in_file(f, "tokenizer"),
                 .text = is_of_text(f),
                 .json = is_json(f) };
    wf_file_free(f);
    if (!ok) fail(p, "%s: %s", model, message);
    return u;
}

static void tell_unsaid(const program *p, const char *model, const wf_hf *hf, unsaid u) {
    if (u.search)
        warn(p,
             "%s has no settings of a search: the folder gets num_beams %d, which generate uses "
             "for it",
             model, hf->generation.options.beam);
    if (u.tokenizer)
        warn(p,
             "its vocabulary is none that transformers has: the folder has no tokenizer; a model "
             "trained with --like bart has one that is written");
}

/* Advice after a refusal: the next step for a model whose form transformers does not have. */
static const char *next_step(const wf_model *m, bool text, bool json) {
    const wf_transformer *t = wf_transformer_of(m);
    bool decoder_only = !t && !wf_encoder_of(m);
    if (decoder_only && text && !m->start_first)
        return ". For pairs, train --like bart in place of --arch language makes a model that it "
               "has";
    if (decoder_only && text && !wf_language_model_of(m)->config.norm_first)
        return ": train it with --norm pre";
    if (wf_hf_has_family(m) && (text || !decoder_only)) return "";
    if (t && t->config.zero_start) return ": convert --to marian writes models of this form";
    if (t && t->config.decoder != WF_DECODER_ATTENTION)
        return ": transformers has no such decoder; train --like bart makes a model that it has";
    if (json) return ": train it with --like t5 and a tokenizer of tokenize --learn unigram";
    return text ? ": train it with --like bart beside the same options"
                : ": a model of a made-up task has no folder. train --like bart makes a model of "
                  "text that has one";
}

void export_folder(const program *p, const char *model, const char *folder) {
    char message[WF_MESSAGE];
    destination to = { .p = p, .folder = folder };
    const wf_hf_writer writer = { begin_folder, write_file, &to };
    wf_hf hf = { .generation.options = wf_decode_defaults() };
    unsaid u = load_model(p, model, &hf);
    if (!wf_hf_export(&hf, folder, &writer, message)) {
        give_up(&to);
        fail(p, "%s: %s%s", model, message, next_step(hf.model, u.text, u.json));
    }
    end_folder(&to);
    tell_unsaid(p, model, &hf, u);
    tell(p, hf.notes);
    free(to.own);
    wf_hf_free(&hf);
}

/* ---- adapters, as folders of PEFT ------------------------------------------------------------ */

void import_adapters(const program *p, const char *folder, const char *base, const char *target) {
    char message[WF_MESSAGE], hash[WF_MODEL_HASH];
    wf_file *f = wf_file_open(base);
    if (!wf_file_ok(f)) fail(p, "%s", wf_file_error(f));
    wf_model *m = wf_hf_import_adapters(folder, f, message);
    if (!m) fail(p, "%s: %s", folder, message);
    warn(p,
         "%s does not say which weights its adapters were trained beside: only sizes were compared "
         "with %s, and from now on they belong to its weights",
         folder, base);
    wf_model_hash(f, hash);
    const wf_meta meta[] = { { WF_ADAPTER_BASE, hash }, { WF_ADAPTER_BASE_FILE, base } };
    if (!wf_model_save(m, target, NULL, meta, 2, message)) fail(p, "%s", message);
    wf_model_free(m);
    wf_file_free(f);
}

bool export_adapters(const program *p, const char *path, const char *folder) {
    char message[WF_MESSAGE];
    wf_training_config training = { 0 };
    destination to = { .p = p, .folder = folder };
    const wf_hf_writer writer = { begin_folder, write_file, &to };
    wf_file *f = wf_file_open(path);
    if (!wf_file_ok(f)) fail(p, "%s", wf_file_error(f));
    bool has = wf_model_read_adapters(f, &training.adapters, NULL);
    if (has) {
        wf_model *m = wf_model_record(f, &training, WF_F32, 0, message);
        if (!m || !wf_model_load_adapters(m, f, message)) fail(p, "%s: %s", path, message);
        if (!wf_hf_export_adapters(m, folder, &writer, message)) {
            give_up(&to);
            fail(p, "%s: %s%s", path, message,
                 wf_hf_has_family(m) ? ""
                                     : ". convert --adapter FILE MODEL merges them for weft; for "
                                       "transformers, train MODEL with --like bart first");
        }
        end_folder(&to);
        free(to.own);
        wf_model_free(m);
    }
    wf_file_free(f);
    return has;
}
