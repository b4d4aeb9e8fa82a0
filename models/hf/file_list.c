/* models/hf/file_list.c - lists the names of a folder's files: those in files.c, and the weight
 * files that an index names. */
#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "models/hf_internal.h"
#include "models/message.h"

static bool add(wf_hf_files *list, const char *name, size_t bytes) {
    if (!(list->n & (list->n - 1))) {
        size_t room = list->n ? 2 * (size_t)list->n : 1;
        char **more = realloc(list->names, room * sizeof *more);
        if (!more) return false;
        list->names = more;
    }
    char *copy = malloc(bytes + 1);
    if (!copy) return false;
    memcpy(copy, name, bytes);
    copy[bytes] = '\0';
    list->names[list->n++] = copy;
    return true;
}

static bool add_shards(wf_hf_files *list, const char *folder, const char *index, char *message) {
    hf_shards s;
    if (!wf_hf_exists(folder, index)) return true;
    bool ok = wf_hf_read_shards(&s, folder, index, message);
    for (int i = 0; ok && i < s.n; i = wf_hf_next_shard(&s, i))
        ok = add(list, wf_hf_shard(&s, i), wf_hf_shard_bytes(&s, i)) ||
             fail(message, "out of memory");
    wf_hf_shards_free(&s);
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
