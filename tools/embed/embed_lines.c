/* tools/embed/embed_lines.c - turns lines into vectors; see embed.h.
 *
 * A window of lines is sorted by length, so that batches have little padding. The vector of a line
 * does not depend on the others, so the order of the work cannot be seen. The window has the lines
 * that have arrived, so that a pipe is answered without waiting for its end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/file_internal.h"
#include "embed.h"
#include "models/model_internal.h"

enum { WINDOW = 64 }; /* batches in a window */
enum { TOKENS_OF_THREAD = 512 };

typedef struct line {
    int32_t *ids; /* [n] */
    int64_t n, place;
    char *text; /* NULL: it is not kept */
} line;

typedef struct window {
    line *lines; /* [most] */
    int64_t n, most;
    int32_t *src, *length;
    float *vectors; /* [most,E] in the order of the input */
    char **text;    /* [most] */
} window;

static void *memory(const embedder *e, void *block) {
    if (!block) fail(e->program, "out of memory: --batch-size lowers the need");
    return block;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void load(embedder *e) {
    char message[WF_MESSAGE];
    const char *path = e->set->model;
    wf_file *f = wf_file_open(path);
    if (!wf_file_ok(f)) fail(e->program, "%s", wf_file_error(f));
    wf_file_drop_loaded(f);
    e->model = wf_model_load_packed(f, NULL, e->set->weights, WF_PANELS, message);
    if (!e->model) fail(e->program, "%s: %s", path, message);
    if (!wf_encoder_of(e->model))
        fail(e->program, "%s is not an encoder, so it has no vectors of lines; generate runs it",
             path);
    if (!language_open(&e->language, f, e->model, message))
        fail(e->program, "%s: %s", path, message);
    const char *labels = wf_file_meta(f, WF_CLASS_NAMES);
    if (!wf_class_names_check(f, message)) fail(e->program, "%s: %s", path, message);
    if (labels) e->labels = memory(e, strdup(labels));
    wf_file_free(f);
}

/* Makes the plan of the vectors, or of the classes. */
static void open_plan(embedder *e, bool classes) {
    wf_model *m = e->model;
    e->classes = classes;
    e->width = classes ? wf_encoder_of(m)->config.classes : wf_encoder_of(m)->vectors->shape[1];
    e->plan = wf_encoder_plan_for(m, classes, e->pool);
    if (!wf_plan_ok(e->plan)) fail(e->program, "%s", wf_plan_error(e->plan));
}

void embedder_open(embedder *e, const program *p, const settings *set) {
    *e = (embedder){ .program = p, .set = set };
    e->threads = set->threads ? set->threads : default_threads(1);
    e->pool = wf_pool_new((int)e->threads);
    if (!e->pool) fail(p, "out of memory: --threads lowers the need");
    load(e);
    bool has = wf_encoder_of(e->model)->config.classes > 0;
    if (set->format == FORMAT_LABEL && !has)
        fail(p, "%s has no labels: --format text, npy and f32 are of vectors", set->model);
    open_plan(e, has && !set->search && (set->format == FORMAT_LABEL || set->format < 0));
}

void embedder_close(embedder *e) {
    free(e->ids), free(e->joined), free(e->labels);
    wf_plan_free(e->plan);
    language_close(&e->language);
    wf_model_free(e->model);
    wf_pool_free(e->pool);
}

/* ---- a line ---------------------------------------------------------------------------------- */

/* The line with its prompt; *bytes becomes the length of both. */
static const char *join(embedder *e, const char *prompt, const char *text, size_t *bytes) {
    size_t before = prompt ? strlen(prompt) : 0;
    if (!before) return text;
    if (before + *bytes + 1 > e->joined_size) {
        e->joined_size = 2 * (before + *bytes) + 1;
        e->joined = memory(e, realloc(e->joined, e->joined_size));
    }
    memcpy(e->joined, prompt, before);
    memcpy(e->joined + before, text, *bytes);
    *bytes += before;
    e->joined[*bytes] = '\0';
    return e->joined;
}

static void read_line(embedder *e, const lines *in, const char *path, const char *prompt,
                      const char *text, line *to) {
    char message[WF_MESSAGE];
    size_t bytes = in->length;
    const char *whole = join(e, prompt, text, &bytes);
    int64_t n;
    while ((n = language_read(&e->language, SIDE_SRC, whole, bytes, e->ids, e->capacity, message)) >
           e->capacity) {
        e->ids = memory(e, realloc(e->ids, (size_t)n * sizeof *e->ids));
        e->capacity = n;
    }
    if (n < 0)
        fail(e->program, "%s, line %lld: %s%s", path, (long long)in->number, message,
             lines_remedy(in, message));
    e->cut += n > e->model->max_len;
    if (n > e->model->max_len) n = e->model->max_len;
    to->n = n;
    to->ids = memory(e, malloc((size_t)n * sizeof *to->ids + 1));
    if (n) memcpy(to->ids, e->ids, (size_t)n * sizeof *to->ids);
    e->lines++;
    e->tokens += n;
}

/* ---- a batch --------------------------------------------------------------------------------- */

static int from_long_to_short(const void *a, const void *b) {
    const line *x = a, *y = b;
    if (x->n != y->n) return x->n < y->n ? 1 : -1;
    return (x->place > y->place) - (x->place < y->place);
}

/* Runs `n` lines, and writes their vectors to their places. */
static void run(embedder *e, window *w, const line *batch, int64_t n, float *vectors) {
    int64_t S = batch[0].n ? batch[0].n : 1;
    for (int64_t i = 0; i < n; i++) {
        w->length[i] = (int32_t)batch[i].n;
        for (int64_t k = 0; k < S; k++) w->src[i * S + k] = k < batch[i].n ? batch[i].ids[k] : 0;
    }
    if (!wf_encoder_run_for(e->model, e->classes, e->plan, n, S, w->src, w->length, vectors))
        fail(e->program, "%s", wf_plan_error(e->plan));
    for (int64_t i = 0; i < n; i++)
        memcpy(w->vectors + batch[i].place * e->width, vectors + i * e->width,
               (size_t)e->width * sizeof *vectors);
}

/* Number of lines, of at most S tokens each, that are computed together. Batches of more than some
 * hundred tokens a thread are no faster, and do not fit in the caches: tests/measured.md. */
static int64_t lines_of_batch(const embedder *e, int64_t S) {
    int64_t fit = TOKENS_OF_THREAD * e->threads / (S ? S : 1);
    if (fit < 1) fit = 1;
    return fit < e->set->batch_size ? fit : e->set->batch_size;
}

static void run_window(embedder *e, window *w, bool keep, take_vectors take, void *user) {
    const int64_t most = e->set->batch_size;
    float *vectors = memory(e, malloc((size_t)(most * e->width) * sizeof *vectors + 1));
    for (int64_t i = 0; i < w->n; i++) w->text[i] = w->lines[i].text;
    qsort(w->lines, (size_t)w->n, sizeof *w->lines, from_long_to_short);
    for (int64_t i = 0, n; i < w->n; i += n) {
        n = lines_of_batch(e, w->lines[i].n);
        if (n > w->n - i) n = w->n - i;
        run(e, w, w->lines + i, n, vectors);
    }
    take(user, w->n, w->vectors, keep ? w->text : NULL);
    for (int64_t i = 0; i < w->n; i++) {
        free(w->lines[i].ids), free(w->lines[i].text);
        w->lines[i] = (line){ 0 };
    }
    w->n = 0;
    free(vectors);
}

/* ---- a file ---------------------------------------------------------------------------------- */

static window window_new(const embedder *e) {
    const int64_t most = WINDOW * e->set->batch_size;
    size_t rows = (size_t)most, batch = (size_t)e->set->batch_size;
    window w = { .most = most };
    w.lines = memory(e, calloc(rows, sizeof *w.lines));
    w.text = memory(e, calloc(rows, sizeof *w.text));
    w.vectors = memory(e, malloc(rows * (size_t)e->width * sizeof *w.vectors));
    w.src = memory(e, malloc(batch * (size_t)e->model->max_len * sizeof *w.src));
    w.length = memory(e, malloc(batch * sizeof *w.length));
    return w;
}

/* Fills the window with the lines that have arrived, and waits for the first. Returns the status of
 * the last line. */
static line_status fill(embedder *e, lines *in, const char *path, const char *prompt, bool keep,
                        window *w) {
    line_status status = LINE_READ;
    char *text;
    while (w->n < w->most && (status = lines_next(in, w->n == 0, &text)) == LINE_READ) {
        line *to = &w->lines[w->n];
        read_line(e, in, path, prompt, text, to);
        to->place = w->n++;
        if (keep) to->text = memory(e, strdup(text));
    }
    return status;
}

void embed_file(embedder *e, const char *path, const char *prompt, bool keep, take_vectors take,
                void *user) {
    const char *name = path && !is_dash(path) ? path : "stdin";
    lines in;
    line_status status;
    if (!lines_open(&in, path)) fail(e->program, "%s can't be read: %s", name, strerror(errno));
    window w = window_new(e);
    do {
        status = fill(e, &in, name, prompt, keep, &w);
        if (status == LINE_TOO_LONG)
            fail(e->program, "%s, line %lld: it is longer than a megabyte", name,
                 (long long)in.number + 1);
        if (status == LINE_FAILED)
            fail(e->program, "%s can't be read: %s", name, lines_failure(&in));
        if (w.n) run_window(e, &w, keep, take, user);
    } while (status != LINE_END);
    lines_close(&in);
    free(w.lines), free(w.text), free(w.vectors), free(w.src), free(w.length);
}
