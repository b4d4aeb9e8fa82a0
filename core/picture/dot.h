/* core/picture/dot.h - the drawing of a graph as data: boxes, links between them, nested modules.
 * Not installed.
 *
 * dot.c decides what is drawn, dot_text.c how it looks. Ids in the text follow the order of
 * recording, not addresses, so that the same graph gives the same text. */
#ifndef WEFT_CORE_PICTURE_DOT_H
#define WEFT_CORE_PICTURE_DOT_H

#include "core/op.h"
#include "core/picture.h"

enum { DOT_LIMIT = 5000, DOT_NESTING = 32 };

/* A module path. Module 0 is the graph itself. */
typedef struct module {
    const char *path;
    size_t start, end; /* its own name is path[start, end), its full path path[0, end) */
    int level, parent, first_child, last_child, next; /* next: sibling; -1 ends lists */
    /* the index of the module that is drawn for this one: itself, or the first of repeated
     * layers */
    int drawn_as;
    /* the number of repeated layers that this module stands for, itself included; the index of the
     * last of them */
    int copies, last;
    uint64_t signature;      /* hash of the operations inside: equal in repeated layers */
    int box[2];              /* index of the module's box, forward and backward; or -1 */
    int first_box, last_box; /* indices of boxes in the module; -1: none */
    /* number of boxes directly in the module; number of its child modules that have a box at any
     * depth */
    int boxes, groups;
} module;

/* Something drawn. */
typedef struct box {
    const wf_tensor *node; /* the first tensor that this box stands for */
    int module;            /* index of the module inside which it is drawn */
    /* index of the module that this box stands for; -1 if the box is one operation, leaf or
     * result */
    int as_module;
    bool backward; /* part of the gradient or of an update */
    bool result;   /* the box is no operation, but marks a fetched result */
    bool fetched;
    /* row of the table of styles; for a module, the first row that one of its operations has */
    int looks_like;
    int claimed; /* index of the module whose operation was the last to be drawn as this box */
    int next;    /* the next box in its module, or -1 */
    int64_t parameters;
    const wf_tensor *fused_into; /* the node into which the plan fused the box's node, or NULL */
    const wf_op *runs_as;        /* the op by which a rewrite rule replaced the box's op, or NULL */
    /* number of steps of the plan that compute this box; seconds and memory are sums over these
     * steps */
    int steps;
    double seconds;
    int64_t tasks; /* number of tasks of the step with the most */
    size_t memory;
} box;

typedef struct link {
    int from, to; /* indices of boxes */
    /* the tensor that the operation reads: the last of the views on the way from source */
    const wf_tensor *value;
    const wf_tensor *source; /* the tensor before these views */
    bool shape_only;
    int next; /* index of another link into the same box, or -1 */
} link;

typedef struct picture {
    const wf_graph *graph;
    const wf_dot_options *options;
    wf_tensor *const *fetch;
    int n_fetch, n; /* fetched tensors; nodes of the graph */
    bool *needed;   /* by node id: it is fetched, or a fetched tensor depends on it */
    int *where;     /* by node id: index of its module */
    int *box_of;    /* by node id: index of its box, or -1 */
    bool *used;     /* by node id: something that is drawn reads the node */
    bool *folded;   /* by node id: the node is a view that is drawn as part of a link */
    module *modules;
    int n_modules;
    size_t cap_modules;
    box *boxes;
    link *links;
    int *links_into; /* by box: index of the newest link into it, or -1 */
    int n_boxes, n_links;
    /* there is a plan whose extents are bound: shapes are the bound ones, and boxes have
     * measurements */
    bool measured;
    double seconds; /* time of all steps of the plan */
} picture;

int wf_style_of(const wf_tensor *t); /* dot_text.c: the row of the table of styles for a tensor */

/* dot_text.c: the picture as malloc'ed text; NULL: out of memory */
char *wf_picture_text(const picture *p);

static inline const wf_tensor *primary(const wf_tensor *t) {
    return t - t->result;
}
static inline bool is_stored(const wf_tensor *t) {
    return t->kind == WF_PARAM || t->kind == WF_BUFFER;
}
static inline bool is_leaf(const wf_tensor *t) {
    return t->kind != WF_COMPUTED;
}
static inline bool is_view(const wf_tensor *t) {
    return t->op && t->op->view && !(t->op->run && t->op->run->cached);
}
static inline bool is_backward(const wf_tensor *t) {
    return t->forward || (t->op && t->op->writes);
}

#endif
