/* nn/train/way.c - lists of tensors and plans, which the trainer and its three ways share. */
#include "way.h"

#include <stdlib.h>

void wf_list_add(wf_tensor_list *l, wf_tensor *t) {
    if (t) l->data[l->n++] = t;
}

void wf_list_add_all(wf_tensor_list *l, wf_tensor *const *t, int n) {
    for (int i = 0; i < n; i++) wf_list_add(l, t[i]);
}

wf_plan *wf_trainer_plan_of(wf_trainer *t, const wf_tensor_list *fetch, const wf_tensor_list *feed,
                            bool training) {
    return wf_plan_new(t->g, &(wf_plan_options){ .fetch = fetch->data,
                                                 .n_fetch = fetch->n,
                                                 .feed = feed->data,
                                                 .n_feed = feed->n,
                                                 .pool = t->pool,
                                                 .training = training });
}

wf_plan *wf_trainer_plan_updates(wf_trainer *t, wf_tensor *const *updates, wf_tensor *more,
                                 wf_tensor *feed) {
    wf_tensor_list fetch = { calloc((size_t)t->optimizer.n + 1, sizeof(wf_tensor *)), 0 };
    if (!fetch.data) return wf_plan_new(NULL, NULL);
    wf_list_add(&fetch, more);
    wf_list_add_all(&fetch, updates, t->optimizer.n);
    wf_plan *p = wf_trainer_plan_of(t, &fetch, &(wf_tensor_list){ &feed, 1 }, false);
    free(fetch.data);
    return p;
}
