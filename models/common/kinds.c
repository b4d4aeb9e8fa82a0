/* models/common/kinds.c - the table of architectures, and a new model of any of them. See
 * kind.h. */
#include "models/kind.h"
#include "models/model_internal.h"

#include <string.h>

#include "models/message.h"

enum { MAX_LONGEST = 1 << 20 };

static const wf_model_kind *const kinds[] = {
#define KIND(id, word) &wf_##id##_kind,
    WF_MODEL_NAMES(KIND) WF_READER_NAMES(KIND)
};
#define ONE_MORE(id, word) +1
enum { N_KINDS = sizeof kinds / sizeof *kinds, WRITERS = 0 WF_MODEL_NAMES(ONE_MORE) };

const wf_model_kind *wf_model_kind_of(const char *name) {
    for (int i = 0; i < N_KINDS; i++)
        if (!name || strcmp(kinds[i]->name, name) == 0) return kinds[i];
    return NULL;
}

const wf_model_kind *wf_model_kind_at(int i) {
    return i >= 0 && i < WRITERS ? kinds[i] : NULL;
}

const char *wf_model_kind_name(const wf_model_kind *kind) {
    return kind ? kind->name : "";
}

const char *wf_model_kind_title(const wf_model_kind *kind) {
    return kind ? kind->title : "";
}

bool wf_model_kind_decoder_only(const wf_model_kind *kind) {
    return kind && kind->decoder_only;
}

/* ---- new models ------------------------------------------------------------------------------ */

static bool configure(const wf_model_kind *kind, const wf_model_sizes *sizes, wf_any_config *c,
                      char *message) {
    if (!kind || !sizes) return fail(message, "there is no kind of model, or no sizes");
    if (sizes->longest < 1 || sizes->longest > MAX_LONGEST)
        return fail(message, "the longest source or output is %lld, not between 1 and %d",
                    (long long)sizes->longest, MAX_LONGEST);
    kind->configure(c, sizes);
    return kind->check(c, message);
}

bool wf_model_sizes_ok(const wf_model_kind *kind, const wf_model_sizes *sizes, char *message) {
    wf_any_config c;
    return configure(kind, sizes, &c, message);
}

wf_model *wf_model_new(const wf_model_kind *kind, const wf_model_sizes *sizes,
                       const wf_training_config *training, wf_dtype real, uint64_t seed,
                       char *message) {
    wf_any_config c;
    if (!configure(kind, sizes, &c, message)) return NULL;
    return kind->record(&c, training, real, seed, message);
}
