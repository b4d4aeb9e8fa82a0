/* tools/emit/emit_page.c - writes a page that runs a model, as WebAssembly that clang and its
 * linker make of the model's C file. See emit_model.h.
 *
 * The page's data are
 *     file, model     name of the model's file, the model in a sentence
 *     ids             true: the model's lines are ids, not text
 *     end_id          the token that ends an output
 *     start_first     true: the start token stands before a prompt, not behind it
 *     start_if_empty  true: it stands there only without a prompt
 *     maps            [name, layers, heads, the side of queries, the side of keys]; a side is 0 for
 *                     the source, 1 for the tokens that the decoder reads
 *     pieces          of the source's vocabulary, and of the output's; null: tokens are ids
 *     wasm            the module in base64: tools/page/model.js calls what plain_page.c exports */
#include "emit_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/cli/refused.h"
#include "tools/data/language.h"
#include "tools/page/page.h"

extern const char *const plain_page_text[];

/* ---- the compiler ---------------------------------------------------------------------------- */

/* The compiler, a child process, reads standard input and writes standard output, which are
 * temporary files without a name. */

enum { NO_PROGRAM = 127 };

static const char *const command[] = {
    /* --stack-first: a stack overflow traps, and does not overwrite data */
    "clang",
    "--target=wasm32",
    "-std=c11",
    "-O3",
    "-ffreestanding",
    "-nostdlib",
    "-Wl,--no-entry,--strip-all,--stack-first,-z,stack-size=262144",
    "-x",
    "c",
    "-",
    "-o",
    "-",
    NULL
};

/* The files of a run of the compiler. */
typedef struct streams {
    FILE *source, *module, *messages;
} streams;

static bool open_streams(streams *s) {
    s->source = tmpfile();
    s->module = tmpfile();
    s->messages = tmpfile();
    return s->source && s->module && s->messages;
}

static void close_streams(streams *s) {
    if (s->source) fclose(s->source);
    if (s->module) fclose(s->module);
    if (s->messages) fclose(s->messages);
}

static bool write_source(FILE *f, const char *text, const char *const *lines) {
    fputs(text, f);
    for (; *lines; lines++) fputs(**lines ? *lines : "\n", f);
    return fflush(f) == 0 && lseek(fileno(f), 0, SEEK_SET) == 0;
}

/* Returns the compiler's exit code, or NO_PROGRAM if there is no such compiler. */
static int run_compiler(const streams *s) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        dup2(fileno(s->source), STDIN_FILENO);
        dup2(fileno(s->module), STDOUT_FILENO);
        dup2(fileno(s->messages), STDERR_FILENO);
        execvp(command[0], (char *const *)command);
        _exit(NO_PROGRAM);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0) return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* All bytes of a stream and a '\0', in new memory. NULL: it is empty or cannot be read, or memory
 * is lacking. */
static char *read_back(FILE *f, size_t *n) {
    long end = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    char *bytes = end > 0 ? malloc((size_t)end + 1) : NULL;
    rewind(f);
    *n = bytes ? fread(bytes, 1, (size_t)end, f) : 0;
    if (bytes) bytes[*n] = '\0';
    if (*n == (size_t)end) return bytes;
    free(bytes);
    return NULL;
}

/* Writes a message with the first line that the compiler printed. */
static void refuse_source(FILE *f, char *message) {
    char line[160] = "";
    rewind(f);
    if (!fgets(line, sizeof line, f)) line[0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    refused(message, "clang could not make WebAssembly, which also needs the package lld: %s",
            line);
}

/* The WebAssembly of C that needs no library: a text and then lines, ended by NULL. NULL with
 * message[256]: clang or its linker is missing or reports an error. */
static char *compile(const char *text, const char *const *lines, size_t *n, char *message) {
    streams s = { 0 };
    char *module = NULL;
    bool ok = open_streams(&s) && write_source(s.source, text, lines);
    if (!ok) refused(message, "a temporary file cannot be written");
    int status = ok ? run_compiler(&s) : 0;
    if (status == NO_PROGRAM)
        refused(message, "a page needs clang and lld, and there is no clang: "
                         "install the packages clang and lld");
    else if (status)
        refuse_source(s.messages, message);
    else if (ok && !(module = read_back(s.module, n)))
        refused(message, "what clang wrote cannot be read");
    close_streams(&s);
    return module;
}

/* ---- the page -------------------------------------------------------------------------------- */

static void write_pieces(jsonl *data, const emitted *e, int side) {
    if (!e->pieces[side]) {
        json_text(data, NULL, NULL);
        return;
    }
    json_open(data, NULL, '[');
    for (int64_t i = 0; i < e->n_pieces[side]; i++) json_text(data, NULL, e->pieces[side][i]);
    json_close(data, ']');
}

static void write_maps(jsonl *data, const emitted *e) {
    json_int(data, "end_id", e->end_id);
    json_bool(data, "start_first", e->start_first);
    json_bool(data, "start_if_empty", e->start_if_empty);
    json_open(data, "maps", '[');
    for (int i = 0; i < e->n_maps; i++) {
        const wf_attention_map *map = &e->maps[i];
        json_key(data, NULL);
        json_raw(data, "[\"%s\",%d,%d,%d,%d]", map->name, (int)map->layers, e->heads[i],
                 !map->source_queries, !map->source_keys);
    }
    json_close(data, ']');
    json_open(data, "pieces", '[');
    write_pieces(data, e, SIDE_SRC);
    write_pieces(data, e, SIDE_TGT);
    json_close(data, ']');
}

static void free_pieces(emitted *e) {
    for (int side = 0; side < 2; side++) {
        for (int64_t i = 0; i < e->n_pieces[side]; i++) free(e->pieces[side][i]);
        free(e->pieces[side]);
        e->pieces[side] = NULL;
    }
}

static bool write_page(FILE *f, const emitted *e, const char *file, const char *wasm, size_t n) {
    char title[WF_MESSAGE];
    page p;
    snprintf(title, sizeof title, "weft: %.200s", file);
    jsonl *data = page_begin(&p, f, title, page_model_css, page_model_js);
    json_text(data, "file", file);
    json_text(data, "model", e->about);
    json_bool(data, "ids", e->ids);
    write_maps(data, e);
    json_key(data, "wasm");
    json_base64(data, wasm, n);
    return page_end(&p) && fflush(f) == 0;
}

bool emit_page(emitted *e, const char *path, char *message) {
    const char *slash = strrchr(path, '/');
    size_t n, bytes;
    char *wasm = compile(e->text, plain_page_text, &n, message);
    if (!wasm) return false;
    FILE *f = tmpfile();
    bool ok = f && write_page(f, e, slash ? slash + 1 : path, wasm, n);
    char *text = ok ? read_back(f, &bytes) : NULL;
    if (f) fclose(f);
    free(wasm);
    if (!text) return refused(message, "the page could not be written: out of memory or disk");
    size_t used = strlen(e->sizes);
    snprintf(e->sizes + used, sizeof e->sizes - used, ", %zu bytes of WebAssembly, %zu of the page",
             n, bytes);
    free_pieces(e);
    free(e->text);
    e->text = text;
    return true;
}
