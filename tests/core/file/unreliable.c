/* tests/core/file/unreliable.c - a save on a system that fails: whatever goes wrong, the old file
 * is there and whole, or the new one is, and the result says which.
 *
 * This program defines malloc, write and the like itself. The linker's --wrap (faults.c) replaces
 * calls of the library alone; here an allocation that libc makes for itself fails too. In turn,
 * every allocation of a save fails, alone or with all later ones; every block that is written has
 * one bit changed, or is lost although write() reports success; every read that verifies the file
 * fails. Each save is of tensors, a model or a state_dict, over an existing file.
 *
 * usage: unreliable FOLDER      prints the counts; exits with 1 if a file is lost or damaged */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/transformer.h"

/* ---- what fails ---------------------------------------------------------------------------- */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

enum fault { NONE, NO_MEMORY, NO_MEMORY_FROM_NOW, WRONG_BIT, LOST_WRITE, NO_READ, FAULTS };
static const char *const faults[] = { "none",       "no memory",   "no memory from now on",
                                      "wrong bits", "lost writes", "failed reads" };
static enum fault fault;
static long at, calls;

/* Counts a call, if calls of this kind are to fail. Returns true if this call must fail. */
static bool fails(enum fault kind) {
    if (fault == NO_MEMORY_FROM_NOW && kind == NO_MEMORY) return ++calls >= at;
    return fault == kind && ++calls == at;
}

static bool no_memory(void) {
    return fails(NO_MEMORY) ? errno = ENOMEM, true : false;
}

void *malloc(size_t size) {
    return no_memory() ? NULL : __libc_malloc(size);
}
void *calloc(size_t n, size_t size) {
    return no_memory() ? NULL : __libc_calloc(n, size);
}
void *realloc(void *block, size_t size) {
    return no_memory() ? NULL : __libc_realloc(block, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
    return no_memory() ? NULL : __libc_memalign(alignment, size);
}

ssize_t write(int fd, const void *data, size_t n) {
    static ssize_t (*next)(int, const void *, size_t);
    static char copy[1 << 16];
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "write");
    bool wrong = n > 0 && n <= sizeof copy && fails(WRONG_BIT), lost = fails(LOST_WRITE);
    if (lost) return lseek(fd, (off_t)n, SEEK_CUR) < 0 ? -1 : (ssize_t)n;
    if (wrong) data = memcpy(copy, data, n), copy[(size_t)at * 31 % n] ^= 4;
    return next(fd, data, n);
}

ssize_t pread(int fd, void *data, size_t n, off_t offset) { /* pread64, as all are built */
    static ssize_t (*next)(int, void *, size_t, off_t);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "pread64");
    return fails(NO_READ) ? errno = EIO, -1 : next(fd, data, n, offset);
}

/* ---- what is saved ------------------------------------------------------------------------- */

static wf_model *model;
static wf_trainer *trainer;
static char words[20000];
static const float numbers[4] = { 1, 2, 3, 4 };

static bool save_tensors(const char *path, char *message) {
    const wf_entry e = { "weight", "F32", 1, { 4 }, numbers, sizeof numbers };
    const wf_meta meta = { "tokenizer.vocabulary", words };
    return wf_file_save(path, &e, 1, &meta, 1, message);
}

static bool save_model(const char *path, char *message) {
    const wf_meta meta = { "tokenizer.vocabulary", words };
    return wf_model_save(model, path, trainer, &meta, 1, message);
}

static bool save_state_dict(const char *path, char *message) {
    return wf_transformer_save_state_dict(model, path, true, message);
}

static const struct {
    const char *name;
    bool (*save)(const char *path, char *message);
} saves[] = { { "tensors", save_tensors },
              { "a model", save_model },
              { "a state_dict", save_state_dict } };

/* ---- what must hold ------------------------------------------------------------------------ */

static const char *folder;
static char path[4000];

static int files_in_folder(void) {
    int n = 0;
    DIR *names_of = opendir(folder);
    for (struct dirent *e; names_of && (e = readdir(names_of));) n += *e->d_name != '.';
    if (names_of) closedir(names_of);
    return n;
}

/* Makes one save with one fault, at call number `at`. *done becomes true if the save made fewer
 * calls of that kind, so that none failed. */
static int attempt(int i, enum fault kind, bool *done) {
    char message[256] = "";
    calls = 0, fault = kind;
    bool ok = saves[i].save(path, message);
    fault = NONE;
    *done = calls < at;
    wf_file *f = wf_file_open(path);
    const char *why = NULL;
    if (!wf_file_ok(f) || !wf_file_meta(f, "weft.checksum"))
        why = wf_file_error(f);
    else if (!ok && !*message)
        why = "it failed without a message";
    else if (files_in_folder() != 1)
        why = "a temporary file is left";
    else if (ok && !*done && (kind == WRONG_BIT || kind == NO_READ))
        why = "it says that it saved";
    if (why) printf("%s, %s, call %ld: %s\n", saves[i].name, faults[kind], at, why);
    wf_file_free(f);
    return why != NULL;
}

int main(int argc, char **argv) {
    char message[256];
    long tried = 0, bad = 0;
    if (argc != 2) return 2;
    folder = argv[1];
    snprintf(path, sizeof path, "%s/x.safetensors", folder);
    memset(words, 'a', sizeof words - 1);
    wf_transformer_config c = wf_transformer_defaults();
    c.src_vocab = c.tgt_vocab = 5, c.d_model = 4, c.num_heads = 2, c.dim_feedforward = 4;
    c.encoder_layers = c.decoder_layers = 1;
    model = wf_transformer_new(&c, NULL, WF_F32, 1, message);
    if (!model) return 2;
    trainer = wf_trainer_new(model->graph, model->loss.loss, model->loss.count,
                             &(wf_trainer_options){ .optimizer = wf_optimizer_defaults(WF_ADAM),
                                                    .schedule = { .peak = 1e-3 } });
    if (!wf_trainer_ok(trainer)) return 2;
    for (int i = 0; i < (int)(sizeof saves / sizeof *saves); i++) {
        if (!saves[i].save(path, message)) return 2;
        for (enum fault kind = NO_MEMORY; kind < FAULTS; kind++) {
            bool done = false;
            for (at = 1; !done; at++, tried++) bad += attempt(i, kind, &done);
        }
    }
    wf_trainer_free(trainer), wf_model_free(model);
    printf("%ld saves on a failing system: %ld lost or silent\n", tried, bad);
    return bad > 0;
}
