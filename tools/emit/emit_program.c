/* tools/emit/emit_program.c - graph --emit-c and --emit-html; see emit_program.h. */
#include "emit_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit_train.h"
#include "tools/cli/output.h"

void refuse_idle_emission(const program *p, const emit_request *r) {
    static const char of_search[] = "max-length|max-line|beam|batch|weights|ram";
    option_no_effect(p, of_search, !r->asked, "no C is written");
    option_no_effect(p, "prefix|dry-run|train|from-start|weights-file", !r->asked,
                     "no C is written");
    option_no_effect(p, of_search, r->training, "a training has no search");
    option_no_effect(p, "of|depth|level|force|backward", r->asked, "C is written");
    option_no_effect(p, "from-start", !r->training, "only --train begins a training");
    option_no_effect(p, "train", r->page, "a page has no training");
    option_no_effect(p, "batch", r->page, "a page reads one line at a time");
    option_no_effect(p, "prefix", r->page, "a page declares nothing");
    option_no_effect(p, "weights-file", r->page, "a page is one file");
    option_no_effect(p, "output", r->dry_run, "--dry-run writes nothing");
}

/* Reads a number of bytes; a K or M after it multiplies it by 1,024 or 1,048,576. */
static int64_t bytes_of(const program *p, const char *text) {
    char *end;
    long long n = strtoll(text, &end, 10);
    int64_t unit = 1;
    if (*end == 'K') unit = 1 << 10;
    if (*end == 'M') unit = 1 << 20;
    if (unit > 1) end++;
    if (*end || end == text || n < 1 || n > INT32_MAX)
        usage_error(p, "--ram '%s' is not a number of bytes from 1 to %d, such as 524288 or 512K",
                    text, INT32_MAX);
    return n * unit;
}

/* bytes of C for which gcc -O3 takes six seconds */
enum { LARGE_SOURCE = 32 << 20 };

emitted emit_program(const program *p, const emit_request *r, const wf_file *f, const char *path,
                     int64_t batch_size, int64_t length) {
    char message[WF_MESSAGE];
    emitted e;
    emit_settings model = r->model;
    if (r->ram) model.ram = bytes_of(p, r->ram);
    model.attention = r->page;
    const emit_train_options training = {
        .path = path,
        .prefix = r->model.prefix,
        .weights = r->model.weights_file,
        .batch_size = option_seen(p, "batch-size") ? batch_size : 0,
        .length = option_seen(p, "length") ? length : 0,
        .from_start = r->from_start,
    };
    bool ok =
        r->training ? emit_train(&e, f, &training, message) : emit_model(&e, f, &model, message);
    if (ok && r->page && !r->dry_run) ok = emit_page(&e, path, message);
    if (!ok) fail(p, "%s: %s", path, message);
    if (!r->page && !r->model.weights_file && strlen(e.text) > LARGE_SOURCE)
        warn(p, "so much C compiles slowly: --weights-file NAME keeps the weights out of it");
    return e;
}

void emit_weights(const program *p, const emit_request *r, const emitted *e) {
    char message[WF_MESSAGE];
    const char *path = r->model.weights_file;
    if (path && !output_write(path, e->weights.bytes, e->weights.n, message))
        fail(p, "%s", message);
}
