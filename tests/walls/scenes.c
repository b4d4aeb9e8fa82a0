/* tests/walls/scenes.c - see scenes.h. */
#define _GNU_SOURCE
#include "scenes.h"
#include "core/file_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"

#define TINY " --d-model 16 --heads 2 --layers 1 --d-ff 16"
#define PAIRS " --train pairs --valid pairs --valid-every 3 --threads 1 --quiet -o m.safetensors"
#define TRAIN                                                                                      \
    "train --tokenizer word --batch-size 7 --accum 2 --ema 0.9 --lr-steps 1000000 --warmup 2 "     \
    "--save-every 2 --overwrite" TINY PAIRS
#define RESUME "train --resume --save-every 2" PAIRS
#define LOG " --log log --log-every 1"
#define COPY "train --task copy --valid-size 0 --max-steps 4 --threads 1" TINY

/* clang-format off */
#define CHECKPOINT { "m.safetensors", MODEL }
#define BEST { "m.best.safetensors", MODEL }

const scene scenes[] = {
    { .name = "first", .brief = true,
      .command = TRAIN LOG " --max-steps 12",
      .again = TRAIN " --max-steps 18", .resume = RESUME " --max-steps 18",
      .outputs = { CHECKPOINT, BEST, { "log", LINES } } },
    { .name = "replaced", .prepare = TRAIN " --seed 2 --max-steps 6",
      .command = TRAIN " --max-steps 12", .again = TRAIN " --max-steps 18",
      .outputs = { CHECKPOINT, BEST } },
    { .name = "resumed", .brief = true, .prepare = TRAIN LOG " --max-steps 6",
      .command = RESUME LOG " --max-steps 12", .again = RESUME LOG " --max-steps 18",
      .outputs = { CHECKPOINT, BEST, { "log", LINES } } },
    { .name = "linked",
      .prepare = "mkdir runs && ln -s runs/1 m && train --task copy --max-steps 1 -o runs/1" TINY,
      .command = COPY " -o m --overwrite", .outputs = { { "runs/1", MODEL } } },
    { .name = "convert", .brief = true, .prepare = COPY " -o in && convert --to torch in -o out",
      .command = "convert --to torch --dtype bf16 in -o out", .outputs = { { "out", MODEL } } },
    { .name = "import", .prepare = COPY " -o m && convert --to torch m -o in",
      .command = "convert --heads 2 --norm pre --positions sinusoidal --scale-embedding in -o out",
      .outputs = { { "out", MODEL } } },
    { .name = "graph", .brief = true, .prepare = "echo 'digraph weft {' > out",
      .command = "graph --of transformer --d-model 16 --heads 2 --layers 2 -o out",
      .outputs = { { "out", WHOLE } } },
    { .name = "curve", .brief = true, .prepare = "echo 'digraph weft {' > c.svg",
      .command = COPY " --log-every 1 --curve c.svg",
      .outputs = { { "c.svg", WHOLE } } },
    { .name = "generate", .brief = true, .prepare = COPY " -o m && echo old > out",
      .command = "generate --model m -i lines --threads 1 --quiet --json --attention a.svg -o out",
      .outputs = { { "out", WHOLE }, { "a.svg", WHOLE } } },
};
/* clang-format on */
const int n_scenes = sizeof scenes / sizeof *scenes;

line *split(line *l, const char *text) {
    char *rest = NULL;
    int n = 0;
    snprintf(l->text, sizeof l->text, "%s", text);
    for (char *word = strtok_r(l->text, " ", &rest); word && n < WORDS - 1;
         word = strtok_r(NULL, " ", &rest))
        l->words[n++] = word;
    l->words[n] = NULL;
    return l;
}

/* ---- folders ------------------------------------------------------------------------------ */

static bool write_inputs(const char *folder) {
    char path[128];
    snprintf(path, sizeof path, "%s/pairs", folder);
    FILE *pairs = fopen(path, "w");
    snprintf(path, sizeof path, "%s/lines", folder);
    FILE *lines = fopen(path, "w");
    if (!pairs || !lines) return false;
    for (int i = 0; i < 40; i++) {
        fprintf(pairs, "eins %d zwei %d\tone %d two %d\n", i % 7, i % 5, i % 7, i % 5);
        fprintf(lines, "%d %d %d\n", 1 + i % 7, 1 + i % 5, 2);
    }
    return (fclose(pairs) | fclose(lines)) == 0;
}

static bool shell(const char *folder, const char *text) {
    char command[2048];
    snprintf(command, sizeof command, "cd %s && { %s; } > said 2>&1 && rm said", folder, text);
    int status = system(command);
    if (status != 0) fprintf(stderr, "'%s' ends with %d in %s\n", text, status, folder);
    return status == 0;
}

bool prepare_folder(const scene *s, char folder[64]) {
    strcpy(folder, "wall.XXXXXX");
    return mkdtemp(folder) && write_inputs(folder) && (!s->prepare || shell(folder, s->prepare));
}

void remove_folder(const char *folder) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s %s.said", folder, folder);
    if (system(command) != 0) fprintf(stderr, "%s is left\n", folder);
}

static bool write_file(const char *path, const content *c) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool ok = fd >= 0 && write(fd, c->bytes, (size_t)c->size) == c->size;
    if (fd >= 0) close(fd);
    return ok;
}

static bool wanted(const recording *r, const int *names, const char *name) {
    int i = find_name(r, name);
    return i != NO_NAME && names[i] != NO_INODE;
}

static void remove_unwanted(const char *folder, const char *below, const recording *r,
                            const int *names) {
    char path[4096], name[2048];
    struct stat s;
    snprintf(path, sizeof path, "%s/%s", folder, below);
    DIR *entries = opendir(path);
    for (struct dirent *e; entries && (e = readdir(entries)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(name, sizeof name, "%s%s%s", below, *below ? "/" : "", e->d_name);
        snprintf(path, sizeof path, "%s/%s", folder, name);
        if (lstat(path, &s) == 0 && S_ISDIR(s.st_mode))
            remove_unwanted(folder, name, r, names);
        else if (!S_ISLNK(s.st_mode) && !wanted(r, names, name))
            unlink(path);
    }
    if (entries) closedir(entries);
}

bool fill_folder(const char *folder, const recording *r, const int *names,
                 const content *const *contents) {
    char path[4096];
    bool ok = true;
    remove_unwanted(folder, "", r, names);
    for (int i = 0; i < r->n_names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, r->names[i]);
        if (names[i] != NO_INODE) ok = write_file(path, contents[names[i]]) && ok;
    }
    return ok;
}

bool read_file(const char *folder, const char *name, content *c) {
    char path[4096];
    struct stat s;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && fstat(fd, &s) == 0;
    set_size(c, ok ? s.st_size : 0);
    ok = ok && read(fd, c->bytes, (size_t)c->size) == c->size;
    if (fd >= 0) close(fd);
    hash_content(c);
    return ok;
}

bool go_on(const scene *s, const char *folder) {
    char path[256];
    struct stat file;
    line l;
    snprintf(path, sizeof path, "%s/%s", folder, s->outputs[0].name);
    const char *command = s->again ? s->again : s->command;
    if (s->resume && stat(path, &file) == 0) command = s->resume;
    snprintf(path, sizeof path, "%s.said", folder);
    return run_timed(folder, split(&l, command)->words, path, -1, 0) == 0;
}

int left_behind(const char *folder) {
    char path[4096];
    struct stat s;
    int n = 0;
    DIR *entries = opendir(folder);
    for (struct dirent *e; entries && (e = readdir(entries)) != NULL;) {
        n += strstr(e->d_name, ".tmp-") != NULL;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (*e->d_name != '.' && lstat(path, &s) == 0 && S_ISDIR(s.st_mode)) n += left_behind(path);
    }
    if (entries) closedir(entries);
    return n;
}

bool same_end(const scene *s, const char *folder, const char *undisturbed) {
    content a = { 0 }, b = { 0 };
    bool same = true;
    for (int i = 0; i < OUTPUTS && s->outputs[i].name; i++) {
        if (s->outputs[i].promised == LINES) continue;
        if (!read_file(undisturbed, s->outputs[i].name, &b)) continue; /* nor should it be */
        same = read_file(folder, s->outputs[i].name, &a) && a.hash == b.hash && same;
    }
    free(a.bytes), free(b.bytes);
    return same && left_behind(folder) == 0;
}

bool enter(void) {
    char tools[PATH_MAX], path[3 * PATH_MAX];
    const char *given = getenv("WEFT_TOOLS"), *old = getenv("PATH"), *place = getenv("TMPDIR");
    if (!given || !realpath(given, tools)) return false;
    snprintf(path, sizeof path, "%s:%s", tools, old ? old : "");
    if (setenv("PATH", path, 1) != 0) return false;
    /* A traced program cannot look for leaks, because LeakSanitizer needs ptrace itself. */
    given = getenv("ASAN_OPTIONS");
    snprintf(path, sizeof path, "%s:detect_leaks=0", given ? given : "");
    if (setenv("ASAN_OPTIONS", path, 1) != 0) return false;
    if ((place && chdir(place) == 0) || chdir("/dev/shm") == 0 || chdir("/tmp") == 0)
        printf("in %s\n", getcwd(path, sizeof path));
    return true;
}

/* ---- lives -------------------------------------------------------------------------------- */

static void add_version(life *l, int from, const content *c) {
    if (l->n == VERSIONS) exit(2);
    l->versions[l->n++] = (version){ c != NULL, c ? c->hash : 0, from, 0 };
}

/* The number of operations after which a save has returned for certain, because the program has
 * begun or written another file since. */
static int sure_after(const recording *r, int from, int inode) {
    for (int i = from + 1; i < r->n; i++) {
        const op *o = &r->ops[i];
        if (o->inode == inode || o->inode == NO_INODE) continue;
        if (o->kind == OP_WRITE || o->kind == OP_SIZE || o->kind == OP_NAME) return i + 1;
    }
    return WIFEXITED(r->status) && WEXITSTATUS(r->status) == 0 ? r->n : r->n + 1;
}

void write_life(life *l, const recording *r, const char *name) {
    *l = (life){ .name = find_name(r, name) };
    if (l->name == NO_NAME) return;
    folder_state *end = state_after(r, r->n);
    int inode = r->first[l->name], told = NO_INODE;
    add_version(l, 0, inode == NO_INODE ? NULL : &r->initial[inode]);
    for (int i = 0; i < r->n; i++) {
        const op *o = &r->ops[i];
        bool bound = o->kind == OP_NAME && o->name == l->name;
        bool gone = o->kind == OP_NAME && o->gone == l->name;
        if (bound || gone) inode = bound ? o->inode : NO_INODE;
        bool written = (o->kind == OP_WRITE || o->kind == OP_SIZE) && o->inode == inode;
        if (!(bound || gone || (written && told != inode))) continue;
        told = inode;
        add_version(l, i, inode == NO_INODE ? NULL : &end->contents[inode]);
        l->versions[l->n - 1].sure = sure_after(r, i, inode);
    }
    folder_state_free(end);
}

const char *unreadable(const content *c, char message[256]) {
    wf_file *f = wf_file_parse(c->bytes, (size_t)c->size);
    *message = 0;
    if (!wf_file_ok(f))
        snprintf(message, 256, "%s", wf_file_error(f));
    else if (!wf_file_checked(f))
        strcpy(message, "it has no checksum");
    wf_file_free(f);
    return message;
}

const char *fault_of_life(const life *l, const recording *r, promise promised, char message[256]) {
    const char *why = l->n < 2 ? "is never written" : "";
    folder_state *end = state_after(r, r->n);
    for (int i = 1; i < l->n && !*why && promised != LINES; i++) {
        const op *o = &r->ops[l->versions[i].from];
        if (!l->versions[i].there)
            why = "was removed";
        else if (promised == MODEL)
            why = unreadable(&end->contents[o->inode], message);
    }
    folder_state_free(end);
    return why;
}

/* ---- telling ------------------------------------------------------------------------------ */

double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int end_of_wall(const char *name, int64_t cases, int64_t failures, double began) {
    printf("%s: %lld cases, %lld failures, %.1f s\n", name, (long long)cases, (long long)failures,
           now() - began);
    return failures != 0;
}
