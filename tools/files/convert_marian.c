/* tools/files/convert_marian.c - converts a file of Marian to a model file, and back; see
 * convert_marian.h. */
#include "convert_marian.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/op.h"
#include "tools/cli/output.h"
#include "tools/data/spool.h"

/* Reads the whole file into new memory. Exits if it cannot be read. */
static void *read_whole(const program *p, const char *path, size_t *size) {
    spool s;
    size_t room = 1 << 16;
    ssize_t got = 1;
    char *bytes = malloc(room);
    if (!spool_open(&s, path)) fail(p, "%s can't be read: %s", path, strerror(errno));
    for (*size = 0; bytes && got > 0; *size += (size_t)got) {
        if (*size == room) {
            char *more = realloc(bytes, room *= 2);
            if (!more) fail(p, "out of memory");
            bytes = more;
        }
        got = spool_read(&s, *size, bytes + *size, room - *size);
        if (got < 0) fail(p, "%s can't be read: %s", path, spool_failure(&s));
    }
    if (!bytes) fail(p, "out of memory");
    spool_close(&s);
    return bytes;
}

void import_marian(const program *p, const char *path, const char *src, const char *tgt,
                   wf_hf *out) {
    wf_marian_files files = { .model = NULL };
    char message[WF_MESSAGE];
    void *model = read_whole(p, path, &files.model_bytes);
    void *source = src ? read_whole(p, src, &files.src_bytes) : NULL;
    void *target = tgt ? read_whole(p, tgt, &files.tgt_bytes) : NULL;
    files.model = model;
    files.src = source;
    files.tgt = target;
    if (!wf_marian_import(&files, out, message)) fail(p, "%s: %s", path, message);
    free(model), free(source), free(target);
}

void export_marian(const program *p, const wf_model *m, const char *model, const char *like,
                   const char *target) {
    output o;
    size_t bytes;
    char message[WF_MESSAGE];
    void *before = like ? read_whole(p, like, &bytes) : NULL;
    void *file = like ? wf_marian_export_like(m, before, bytes, message)
                      : wf_marian_export(m, &bytes, message);
    if (!file) fail(p, "%s: %s", like ? like : model, message);
    if (!output_open(&o, target, message)) fail(p, "%s", message);
    fwrite(file, 1, bytes, o.stream);
    if (!output_close(&o, message)) fail(p, "%s", message);
    free(before), free(file);
}
