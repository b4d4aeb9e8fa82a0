/* tests/models/test_lm_torch.c - the language model against the same in PyTorch: 50 steps of AdamW,
 * from files that lm_peer.py wrote.
 *
 * One file holds initial weights in f32, another 50 batches, and the losses that PyTorch computed
 * in f64. */
#include <stdio.h>

#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(lm_torch)

enum { STEPS = 50 };

static const char *const forms[] = { "gpt", "llama" };

static wf_optimizer_options adamw(void) {
    return (wf_optimizer_options){ .kind = WF_ADAMW,
                                   .beta1 = 0.9,
                                   .beta2 = 0.98,
                                   .eps = 1e-9,
                                   .weight_decay = 0.01,
                                   .clip_norm = 1 };
}

static wf_file *open_recorded(const char *form, const char *of) {
    char relative[64], path[512];
    snprintf(relative, sizeof relative, "tests/data/lm_%s%s.safetensors", form, of);
    wf_file *f = wf_file_open(source_path(relative, path, sizeof path));
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    return f;
}

static void feed_recorded(wf_plan *p, const wf_file *f, wf_tensor *t, const char *name, int step) {
    char full[32];
    snprintf(full, sizeof full, "%s.%d", name, step);
    const wf_entry *e = wf_file_find(f, full);
    ck_assert_msg(e != NULL, "no '%s'", full);
    assert_plan(p, wf_bind(p, "B", e->shape[0]) && wf_bind(p, "T", e->shape[1]));
    assert_plan(p, wf_feed(p, t, e->data, e->bytes));
}

TEST_ROWS(fifty_steps_of_every_form, 2 * COUNT_OF(forms)) {
    char message[WF_MESSAGE];
    wf_dtype real = _i % 2 ? WF_F64 : WF_F32;
    double bound = real == WF_F64 ? 1e-9 : 1e-4;
    wf_file *weights = open_recorded(forms[_i / 2], ""),
            *f = open_recorded(forms[_i / 2], "_steps");
    const wf_optimizer_options options = adamw();
    wf_model *m = wf_model_load(weights, NULL, real, 1, message);
    ck_assert_msg(m != NULL, "%s", message);
    const wf_entry *losses = wf_file_find(f, "losses");
    wf_trainer *t = open_trainer(m, &options, 0.005, NULL);
    wf_plan *p = wf_trainer_plan(t);
    for (int step = 0; step < STEPS; step++) {
        double theirs;
        wf_progress now;
        memcpy(&theirs, (const char *)losses->data + sizeof theirs * (size_t)step, sizeof theirs);
        feed_recorded(p, f, m->tgt, "tgt", step), feed_recorded(p, f, m->labels, "labels", step);
        assert_trainer(t, wf_trainer_begin(t, 1, NULL, NULL) && wf_trainer_add(t, 0) &&
                              wf_trainer_update(t, &now));
        ck_assert_double_eq_tol(now.loss, theirs, bound);
    }
    wf_trainer_free(t), wf_file_free(f), wf_file_free(weights), close_model(m);
}
