/* tests/support/commands.c - programs, run as people run them. See commands.h. */
#include "commands.h"

#include "core/file.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

outcome result;
static char folder[64];

void read_text(const char *path, char *text, size_t size) {
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, size - 1, f) : 0;
    text[n] = '\0';
    if (f) fclose(f);
}

const outcome *run(const char *format, ...) {
    char command[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    char line[4400];
    snprintf(line, sizeof line, "{ %s\n} > .out 2> .err", command);
    int status = system(line);
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    read_text(".out", result.out, sizeof result.out);
    read_text(".err", result.err, sizeof result.err);
    return &result;
}

void expect(int status) {
    ck_assert_msg(result.status == status, "exit code %d, not %d:\n%s%s", result.status, status,
                  result.out, result.err);
}

void ok(const char *command) {
    run("%s", command);
    expect(0);
}

void enter_folder(void) {
    const char *tools = getenv("WEFT_TOOLS");
    char path[4096];
    ck_assert_msg(tools, "set WEFT_TOOLS to the folder of the programs: build/tools");
    snprintf(path, sizeof path, "%s:%s", tools, getenv("PATH"));
    setenv("PATH", path, 1);
    setenv("TERM", "dumb", 1);
    snprintf(folder, sizeof folder, "/tmp/weft-tools-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

void leave_folder(void) {
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(chdir("/tmp"), 0);
    ck_assert_int_eq(system(command), 0);
}

char models_folder[64];

void enter_models(void) {
    enter_folder();
    ck_assert_ptr_nonnull(getcwd(models_folder, sizeof models_folder));
}

void name_models(const char *const *names, int n) {
    char path[128];
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", models_folder, names[i]);
        for (char *at = path + strlen(models_folder); *at; at++) *at = (char)tolower(*at);
        setenv(names[i], path, 1);
    }
}

void forget_models(void) {
    ck_assert_int_eq(chdir(models_folder), 0);
    leave_folder();
}

bool same_files(const char *a, const char *b) {
    return run("cmp %s %s", a, b)->status == 0;
}

const char *browser(void) {
    static char path[256];
    run("command -v chromium || command -v chromium-browser || command -v google-chrome");
    if (result.status) return NULL;
    snprintf(path, sizeof path, "%.*s", (int)strcspn(result.out, "\n"), result.out);
    return path;
}

void draw_page(const char *with, const char *name) {
    run("HOME=$PWD timeout 120 %s --headless --no-sandbox --disable-gpu --enable-logging=stderr "
        "--user-data-dir=$PWD/profile --dump-dom \"file://$PWD/%s\" > drawn.html",
        with, name);
    expect(0);
    ck_assert_msg(!strstr(result.err, "CONSOLE"), "%s", strstr(result.err, "CONSOLE"));
}

/* change_meta and change_values: key NULL leaves the metadata, prefix NULL the tensors as they
 * are. */
static void change(const char *path, const char *key, const char *value, const char *prefix,
                   float factor) {
    enum { MOST = 200 };
    static wf_entry entries[MOST];
    static wf_meta meta[MOST];
    float *made[MOST] = { NULL };
    char message[WF_MESSAGE];
    int n = 0, m = 0;
    bool there = false;
    wf_file *f = wf_file_open(path);
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    ck_assert(wf_file_count(f) <= MOST && wf_file_meta_count(f) < MOST);
    for (int i = 0; i < wf_file_meta_count(f); i++) {
        wf_meta pair = wf_file_meta_at(f, i);
        bool changed = key && strcmp(pair.key, key) == 0;
        if (strcmp(pair.key, "weft.checksum") == 0 || (changed && !value)) continue;
        meta[m++] = changed ? (wf_meta){ key, value } : pair;
        there = there || changed;
    }
    if (key && value && !there) meta[m++] = (wf_meta){ key, value };
    for (int i = 0; i < wf_file_count(f); i++) {
        wf_entry e = *wf_file_at(f, i);
        bool changed = prefix && strncmp(e.name, prefix, strlen(prefix)) == 0;
        if (changed && factor == 0) continue;
        if (changed) {
            const float *old = e.data;
            float *more = made[n] = malloc(e.bytes + 1);
            ck_assert_ptr_nonnull(more);
            for (size_t k = 0; k < e.bytes / sizeof *more; k++) more[k] = factor * old[k];
            e.data = more;
        }
        entries[n++] = e;
    }
    remove("changed");
    ck_assert_msg(wf_file_save("changed", entries, n, meta, m, message), "%s", message);
    wf_file_free(f);
    ck_assert_int_eq(rename("changed", path), 0);
    for (int i = 0; i < n; i++) free(made[i]);
}

void change_meta(const char *path, const char *key, const char *value) {
    change(path, key, value, NULL, 1);
}

void change_values(const char *path, const char *prefix, float factor) {
    change(path, NULL, NULL, prefix, factor);
}
