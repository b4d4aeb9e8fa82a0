/* tools/train/saving.c - writes the files of a training: its checkpoint, and the best weights. See
 * saving.h. */
#include "saving.h"

#include <stdlib.h>

#include "metadata.h"
#include "ranks/ranks.h"
#include "tools/cli/output.h"

bool write_model(session *s, const char *path, bool checkpoint) {
    char message[WF_MESSAGE], target[PATH_SIZE];
    settings_meta kept;
    int n = 0;
    wf_meta *pairs = metadata_new(s, &kept, &n);
    if (!pairs) fail(&train_program, "out of memory");
    if (!checkpoint) pairs[n++] = (wf_meta){ "weft.kind", "best" };
    if (s->leads && !output_target(path, target)) snprintf(target, sizeof target, "%s", path);
    bool ok = true;
    if (checkpoint || s->leads)
        ok = wf_model_save(s->model, s->leads ? target : path, checkpoint ? s->trainer : NULL,
                           pairs, n, message);
    free(pairs);
    if (s->transport && s->transport->code) ranks_leave(s);
    if (s->leads && !ok)
        warn(&train_program, "step %lld is not saved: %s", (long long)s->at.step, message);
    return checkpoint ? ok : ranks_agree(s, ok);
}

bool save(session *s) {
    if (!s->set->run.model || s->saved_step == s->at.step) return true;
    if (!write_model(s, s->set->run.model, true)) return false;
    s->saved_step = s->at.step;
    json_int(event(&s->report, "save"), "step", s->at.step);
    event_send(&s->report);
    return true;
}
