/* nn/module.h - inside nn: record under the name of the module whose parameters are used, so that
 * errors, pictures and the sites of dropout carry it, wherever the use is recorded:
 *
 *     const char *outer = enter(l->weight, l->path);
 *     return leave(outer, wf_matmul(x, wf_transpose(l->weight, 0, 1))); */
#ifndef WEFT_NN_MODULE_H
#define WEFT_NN_MODULE_H

#include "nn.h"

static inline const char *enter(const wf_tensor *parameter, const char *path) {
    return wf_scope(parameter ? parameter->graph : NULL, path);
}

static inline wf_tensor *leave(const char *outer, wf_tensor *y) {
    wf_scope(y->graph, outer);
    return y;
}

#endif
