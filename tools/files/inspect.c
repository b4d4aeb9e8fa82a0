/* tools/files/inspect.c - prints what is in a model file: configuration, parameters, sizes,
 * statistics, and which values are not finite. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/file/loader.h"
#include "core/file_internal.h"
#include "models/model.h"
#include "models/model_internal.h"
#include "nn/optimizer_internal.h"
#include "tools/cli/jsonl.h"
#include "tools/cli/numbers.h"
#include "tools/cli/options/options.h"
#include "tools/cli/options/uses.h"
#include "tools/cli/terminal.h"

static bool json, all;
static const char *path;
static jsonl line; /* on stdout */

static option rows[] = {
    GROUP("Output"),
    FLAG("all", all,
         "list the optimizer's moments, too, which train --resume needs. By default only the "
         "model's parameters are listed, and moments that are not finite. Refused with --json, "
         "which has all"),
    FLAG("json", json,
         "print JSON objects, one on each line, in place of tables: one for each entry of the "
         "metadata, one for each tensor with its shape and statistics (moments, too), and one for "
         "the whole file"),
};

static program self = {
    .name = "inspect",
    .purpose = "shows what is in a model file",
    .examples = "  inspect copy.safetensors\n"
                "  ! inspect --json copy.safetensors | grep '\"finite\":false'\n",
    .options = rows,
    .n = sizeof rows / sizeof *rows,
    .operand_name = "FILE",
    .operand = &path,
    .operand_use = USE_MODEL,
};

typedef struct statistics {
    int64_t count, not_finite;
    double mean, std, min, max; /* of the finite values */
    bool known;                 /* the type is one that can be read */
} statistics;

static bool readable(const wf_entry *e, const wf_entry *scale) {
    return scale || strcmp(e->dtype, "F32") == 0 || strcmp(e->dtype, "F64") == 0 ||
           strcmp(e->dtype, "F16") == 0 || strcmp(e->dtype, "BF16") == 0 ||
           strcmp(e->dtype, "I32") == 0;
}

/* Two passes: the variance is computed from differences to the mean, so nothing cancels. */
static statistics look_at(const wf_entry *e, const wf_entry *scale) {
    statistics s = { .count = 1, .known = readable(e, scale), .min = INFINITY, .max = -INFINITY };
    for (int i = 0; i < e->ndim; i++) s.count *= e->shape[i]; /* checked when the file was read */
    if (!s.known) return s;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < s.count; i++) {
        double x = wf_entry_value(e, scale, i);
        if (!isfinite(x)) {
            s.not_finite++;
            continue;
        }
        sum += x;
        if (x < s.min) s.min = x;
        if (x > s.max) s.max = x;
    }
    double n = (double)(s.count - s.not_finite);
    s.mean = sum / n;
    for (int64_t i = 0; i < s.count; i++) {
        double x = wf_entry_value(e, scale, i);
        if (isfinite(x)) squares += (x - s.mean) * (x - s.mean);
    }
    s.std = sqrt(squares / n);
    return s;
}

static const char *shape_text(const wf_entry *e, char *text, size_t size) {
    size_t n = 0;
    snprintf(text, size, "[]");
    for (int i = 0; i < e->ndim && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%c%" PRId64 "%s", i ? ',' : '[', e->shape[i],
                              i + 1 == e->ndim ? "]" : "");
    return text;
}

/* True if an entry gets a line. A moment gets one only if it was asked for, or is not finite. */
static bool shown(const wf_entry *e, const statistics *s) {
    return all || !wf_is_moment(e->name) || s->not_finite;
}

static void print_tensor(const wf_entry *e, const statistics *s, int width) {
    char shape[160], count[OPTION_TEXT_SIZE];
    int used = put_clean(stdout, e->name, -1);
    printf("%*s %-4s %-12s %10s", used < width ? width - used : 0, "", e->dtype,
           shape_text(e, shape, sizeof shape), thousands((double)s->count, count));
    if (s->known && s->count > s->not_finite)
        printf(" %10.3g %9.3g %10.3g %10.3g", s->mean, s->std, s->min, s->max);
    if (s->not_finite) printf("  %" PRId64 " NOT FINITE", s->not_finite);
    putchar('\n');
}

static void send_tensor(const wf_entry *e, const statistics *s) {
    json_begin(&line, "tensor");
    json_text(&line, "name", e->name);
    json_text(&line, "dtype", e->dtype);
    json_sizes(&line, "shape", e->shape, e->ndim);
    json_int(&line, "count", s->count);
    bool values = s->known && s->count > s->not_finite;
    json_real(&line, "mean", values ? s->mean : NAN);
    json_real(&line, "std", values ? s->std : NAN);
    json_real(&line, "min", values ? s->min : NAN);
    json_real(&line, "max", values ? s->max : NAN);
    if (s->known) json_bool(&line, "finite", s->not_finite == 0);
    json_end(&line);
}

static void print_pair(const wf_meta *m) {
    fputs("  ", stdout);
    int used = put_clean(stdout, m->key, -1);
    printf("%*s ", used < 32 ? 32 - used : 0, "");
    put_clean(stdout, m->value, 100);
    puts(strlen(m->value) > 100 ? "..." : "");
}

static void show_metadata(const wf_file *f) {
    if (!json && wf_file_meta_count(f)) puts("\nMetadata");
    for (int i = 0; i < wf_file_meta_count(f); i++) {
        wf_meta m = wf_file_meta_at(f, i);
        if (!json) {
            print_pair(&m);
            continue;
        }
        json_begin(&line, "metadata");
        json_text(&line, "key", m.key);
        json_text(&line, "value", m.value);
        json_end(&line);
    }
}

/* Prints settings of the model's search that weft does not support. */
static void show_not_done(const wf_file *f) {
    const char *not_done = wf_file_meta(f, "generate.not-done");
    if (!not_done || json) return;
    fputs("\nIts search asks for what weft does not do: ", stdout);
    put_clean(stdout, not_done, -1);
    putchar('\n');
}

static void show_summary(const wf_file *f, int64_t parameters, int64_t moments, int64_t bytes,
                         bool finite) {
    char a[OPTION_TEXT_SIZE], b[OPTION_TEXT_SIZE], c[OPTION_TEXT_SIZE];
    if (json) {
        json_begin(&line, "file");
        json_int(&line, "tensors", wf_file_count(f));
        json_int(&line, "parameters", parameters);
        json_int(&line, "moments", moments);
        json_int(&line, "bytes", bytes);
        json_bool(&line, "checksum", wf_file_checked(f));
        json_bool(&line, "finite", finite);
        json_end(&line);
        return;
    }
    printf("\n%d tensors: %s parameters and %s optimizer moments in %s; %s; %s\n", wf_file_count(f),
           thousands((double)parameters, a), thousands((double)moments, b),
           bytes_text((double)bytes, c),
           wf_file_checked(f) ? "the checksum is right" : "no checksum",
           finite ? "all values are finite" : "NOT all values are finite");
}

/* The length of the longest name that is shown, for aligned columns. */
static int name_width(const wf_file *f) {
    int width = 6;
    for (int i = 0; i < wf_file_count(f); i++) {
        const wf_entry *e = wf_file_at(f, i);
        int n = (int)strlen(e->name);
        if (n > width && (all || !wf_is_moment(e->name))) width = n;
    }
    return width;
}

static void show_tensors(const wf_file *f) {
    int64_t parameters = 0, moments = 0, bytes = 0;
    int width = name_width(f);
    bool finite = true;
    const char *end = NULL; /* end of the data counted so far */
    if (!json)
        printf("\n%-*s %-4s %-12s %10s %10s %9s %10s %10s\n", width, "Tensor", "type", "shape",
               "elements", "mean", "std", "min", "max");
    for (int i = 0; i < wf_file_count(f); i++) {
        const wf_entry *e = wf_file_at(f, i);
        statistics s = look_at(e, wf_file_scale_of(f, e));
        if (json)
            send_tensor(e, &s);
        else if (shown(e, &s))
            print_tensor(e, &s, width);
        finite &= s.not_finite == 0;
        const char *data = e->data;
        /* tied: the data were counted under another name */
        if (end && data + e->bytes <= end) continue;
        end = data + e->bytes;
        if (!wf_file_is_scale(f, e)) *(wf_is_moment(e->name) ? &moments : &parameters) += s.count;
        bytes += (int64_t)e->bytes;
    }
    show_summary(f, parameters, moments, bytes, finite);
}

/* Prints the configuration. Files of other programs have none, and a message says so; that is no
 * failure. */
static void show_configuration(const wf_file *f) {
    char text[WF_MESSAGE], message[WF_MESSAGE];
    if (json) return;
    put_clean(stdout, path, -1);
    if (!wf_model_describe(f, text, message)) {
        fputs(": not a model of weft (", stdout);
        put_clean(stdout, message, -1);
        puts(")");
        return;
    }
    printf(": %s\n", text);
}

int main(int argc, char **argv) {
    terminal_open();
    options_parse(&self, argc, argv);
    option_no_effect(&self, "all", json, "--json shows everything");
    if (!path) usage_error(&self, "say which file to look into");
    check_uses(&self, NULL, 0);
    line.stream = stdout;
    wf_file *f = wf_file_open(path);
    if (!wf_file_ok(f)) fail(&self, "%s", wf_file_error(f));
    show_configuration(f);
    show_metadata(f);
    show_not_done(f);
    show_tensors(f);
    wf_file_free(f);
    int status = line.failed ? EXIT_FAILED : EXIT_DONE;
    if (line.failed && !ferror(stdout)) warn(&self, "out of memory: not all of it is shown");
    json_free(&line);
    return close_stdout(&self, status);
}
