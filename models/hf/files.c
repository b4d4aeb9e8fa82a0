/* models/hf/files.c - the list of the files that a folder may have.
 *
 * Paths are made only from names in this list; an assert checks it. Weight files that an index
 * names are the one exception: shards.c opens them. Its wf_hf_list_files returns names of both
 * kinds. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/memory.h"
#include "core/file/lfs.h"
#include "models/message.h"
#include "object.h"

/* The most bytes of a file, and the least memory that is allocated to read one. */
enum { MOST_BYTES = 1 << 28, LEAST_BYTES = 1 << 16 };

/* The names. Of the four files of weights, the first that exists is read. */
static const char *const names[] = {
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
    "target_vocab.json",
    "merges.txt",
    "source.spm",
    "target.spm",
    "sentencepiece.bpe.model",
    "tokenizer.json",
    "spiece.model",
    /* of sentence-transformers */
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
    "2_Dense/config.json",
    "2_Dense/model.safetensors",
    "2_Dense/pytorch_model.bin",
    "2_Normalize/config.json",
    "3_Normalize/config.json",
    /* of PEFT */
    "adapter_config.json",
    "adapter_model.safetensors",
};
enum { NAMES = sizeof names / sizeof *names };

const char *wf_hf_file_name(int i) {
    return i < NAMES ? names[i] : NULL;
}

bool wf_hf_is_file(const char *name) {
    for (int i = 0; i < NAMES; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

bool wf_hf_path(char path[HF_PATH], const char *folder, const char *name) {
    assert(wf_hf_is_file(name));
    int n = snprintf(path, HF_PATH, "%s/%s", folder, name);
    return n > 0 && n < HF_PATH;
}

/* True also for a file that exists but cannot be opened: reading it then reports the reason. */
bool wf_hf_exists(const char *folder, const char *name) {
    char path[HF_PATH];
    struct stat s;
    return wf_hf_path(path, folder, name) &&
           (stat(path, &s) == 0 || (errno != ENOENT && errno != ENOTDIR));
}

static char *read_stream(FILE *f, const char *name, size_t *bytes, char *message) {
    size_t room = 0, n = 0, got = 1;
    char *text = NULL;
    const char *why = NULL;
    while (got && !why) {
        bool grown = wf_grow(&text, &room, n + LEAST_BYTES, 1);
        got = grown ? fread(text + n, 1, room - n - 1, f) : 0;
        n += got;
        if (!grown) why = "out of memory";
        if (grown && ferror(f)) why = strerror(errno);
        if (n >= MOST_BYTES) why = "more than 256 MB";
    }
    *bytes = n;
    if (!why) text[n] = '\0';
    if (!why) return text;
    fail(message, "%s: %s", name, why);
    return free(text), NULL;
}

char *wf_hf_read(const char *folder, const char *name, size_t *bytes, char *message) {
    char path[HF_PATH];
    if (!wf_hf_path(path, folder, name))
        return fail(message, "the folder's name is too long: %.60s...", folder), NULL;
    struct stat s;
    if (stat(path, &s) == 0 && !S_ISREG(s.st_mode))
        return fail(message, "%s is not a file", name), NULL; /* reading a pipe could block */
    FILE *f = fopen(path, "rb");
    if (!f) return fail(message, "%s: %s", name, strerror(errno)), NULL;
    char *text = read_stream(f, name, bytes, message);
    fclose(f);
    if (!text || !wf_lfs_pointer(text, *bytes)) return text;
    fail(message, "%s: %s", name, WF_LFS_SENTENCE);
    free(text);
    return NULL;
}
