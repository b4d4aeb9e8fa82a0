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
    int drawn_as;            /* itself, or the first of the repeated layers it belongs to */
    int copies, last;        /* how many modules are drawn here; the last of them */
    uint64_t signature;      /* of the operations inside: equal in repeated layers */
    int box[2];              /* the box that stands for it, forward and backward; or -1 */
    int first_box, last_box; /* in it, -1: none */
    int boxes, groups;       /* how many boxes it has, and modules with boxes */
} module;

/* Something drawn. */
typedef struct box {
    const wf_tensor *node; /* the first tensor it stands for */
    int module;            /* where it is drawn */
    int as_module;         /* the module it stands for, or -1: a single operation, leaf or result */
    bool backward;         /* part of the gradient or of an update */
    bool result;           /* not an operation: the end of an arrow */
    bool fetched;
    int looks_like; /* row of the table of styles; of a module, the first row of its operations */
    int claimed;    /* the last repeated module whose operation is drawn here */
    int next;       /* in its module */
    int64_t parameters;
    const wf_tensor *fused_into; /* the node into which the plan fused this one, or NULL */
    const wf_op *runs_as;        /* the op by which a rewrite rule replaced its op, or NULL */
    int steps;                   /* of the plan that ran this box; the sums below are over them */
    double seconds;
    int64_t tasks; /* of the widest */
    size_t memory;
} box;

typedef struct link {
    int from, to;            /* boxes */
    const wf_tensor *value;  /* what is read: after the views on the way */
    const wf_tensor *source; /* before them */
    bool shape_only;
    int next; /* into the same box */
} link;

typedef struct picture {
    const wf_graph *graph;
    const wf_dot_options *options;
    wf_tensor *const *fetch;
    int n_fetch, n; /* n: nodes of the graph */
    bool *needed;   /* by id */
    int *where;     /* by id: its module */
    int *box_of;    /* by id, or -1 */
    bool *used;     /* by id: something that is drawn reads it */
    bool *folded;   /* by id: a view that is drawn as part of a link */
    module *modules;
    int n_modules;
    size_t cap_modules;
    box *boxes;
    link *links;
    int *links_into; /* by box: its last link */
    int n_boxes, n_links;
    bool measured;  /* there is a plan, with shapes and times */
    double seconds; /* of all its steps */
} picture;

/* dot.c */
bool wf_picture_make(picture *p, char *message);
void wf_picture_free(picture *p);
int wf_style_of(const wf_tensor *t); /* dot_text.c: row of the table of styles */

/* dot_text.c: malloc'ed, or NULL if there is no memory */
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
