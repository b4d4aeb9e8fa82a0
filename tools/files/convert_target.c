/* tools/files/convert_target.c - the file that convert writes. See convert_target.h. */
#include "convert_target.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/op.h"
#include "models/choices.h"
#include "models/model_internal.h"
#include "models/transformer.h"
#include "tools/cli/options/command.h"
#include "tools/cli/options/uses.h"

/* Exits if the file has a training that can be resumed, or if that cannot be found out. */
static void keep_training(const program *p, const char *path) {
    wf_file *f = wf_file_open(path);
    if (!wf_file_ok(f))
        fail(p, "%s is there: %s: give another name, or --overwrite", path, wf_file_error(f));
    /* older versions of train wrote no weft.kind */
    const char *kind = wf_file_meta(f, "weft.kind");
    if (kind ? strcmp(kind, "checkpoint") == 0 : wf_file_meta(f, "train.step") != NULL)
        fail(p,
             "%s is the checkpoint of a training, which can go on from it: give another name, or "
             "--overwrite",
             path);
    wf_file_free(f);
}

void find_target(const program *p, const char *path, bool overwrite, char target[PATH_SIZE]) {
    char message[WF_MESSAGE];
    if (!output_target(path, target)) fail(p, "%s can't be written: %s", path, strerror(errno));
    if (!output_lock(path, message)) fail(p, "%s", message);
    if (!overwrite && is_safetensors_file(target)) keep_training(p, path);
}

void tell_way_back(FILE *to, const wf_model *m, const char *path) {
    const wf_transformer_config *c = &wf_transformer_of(m)->config;
    char eps[OPTION_TEXT_SIZE];
    bool counted = c->positions != WF_POSITIONS_LEARNED; /* else a table's rows say --max-len */
    fprintf(to,
            "without vocabulary: it becomes a model of ids by\n  convert --heads %" PRId64
            " --norm %s --positions %s%s --activation %s --layer-norm-eps %s",
            c->num_heads, wf_norm_place_name(c->norm_first ? WF_NORM_PRE : WF_NORM_POST),
            wf_positions_name((int)c->positions), c->scale_embedding ? " --scale-embedding" : "",
            wf_activation_name((int)c->activation), shortest(c->layer_norm_eps, eps));
    fprintf(to, " --pad-id %d --start-id %d --end-id %d", c->pad_id, m->start_id, m->end_id);
    if (counted) fprintf(to, " --max-len %" PRId64, m->max_len);
    char *word = command_word(path);
    fprintf(to, " %s -o MODEL\n", word ? word : path);
    free(word);
}
