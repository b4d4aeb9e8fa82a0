/* tests/walls/kills.c - kills programs while they write their files.
 *
 * usage: kills [--short | --long]       WEFT_TOOLS: the folder of the programs
 *
 * Each scene (scenes.h) is a command, which first runs undisturbed under ptrace. Then it runs again
 * and again:
 *
 *   * with SIGKILL before calls that change a file (about a dozen; with --long all, of a long scene
 *     at least a fourth), and in the middle of writes: the files hold exactly what the calls before
 *     wrote, and keep their promises. The scene continues from there to the same files, byte for
 *     byte, and leaves no temporary file;
 *   * with SIGTERM or SIGINT at such calls: a training finishes its step, saves and exits with 143
 *     or 130. A second signal ends it at once, with a file that can be resumed to the same end;
 *   * with SIGKILL at random times, again and again for one training: its file is readable after
 *     each, and in the end equals that of as many steps undisturbed.
 *
 * Exits with 77 where programs may not be traced. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/random.h"
#include "core/file.h"
#include "core/file_internal.h"
#include "scenes.h"

enum { NOT_HERE = 77, SEEN = 1024 };

typedef struct wall {
    bool brief;
    int64_t cases, failures;
    uint64_t random;
} wall;

static uint32_t below(wall *w, uint32_t n) {
    w->random = wf_mix64(w->random + 0x9E3779B97F4A7C15u);
    return (uint32_t)(w->random % n);
}

/* ---- one end ------------------------------------------------------------------------------ */

/* The signal `number` is sent before call `at` of those that change files; `second`, if not 0,
 * before call `second_at`. */
typedef struct blow {
    int number, at, second, second_at;
    bool half; /* call `at` is a write, of which half the bytes are written */
    const char *folder;
    int calls;
    bool handled, heard; /* the program catches SIGTERM by now; it did when the signal was sent */
} blow;

static void write_half(const call *c) {
    char path[64], bytes[4096];
    long long position = -1;
    size_t n = c->argument[2] / 2 < sizeof bytes ? c->argument[2] / 2 : sizeof bytes;
    struct iovec here = { bytes, n }, there = { (void *)(uintptr_t)c->argument[1], n };
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", (int)c->pid, (int)c->argument[0]);
    FILE *f = fopen(path, "r");
    if (!f || fscanf(f, "pos: %lld", &position) != 1) position = -1;
    if (f) fclose(f);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)c->pid, (int)c->argument[0]);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (process_vm_readv(c->pid, &here, 1, &there, 1, 0) != (ssize_t)n || position < 0 || fd < 0 ||
        pwrite(fd, bytes, n, position) != (ssize_t)n)
        fputs("kills: half a write was not made\n", stderr);
    if (fd >= 0) close(fd);
}

/* Is the call one that sets a handler for SIGTERM to finish a step? Such a handler restarts calls
 * (SA_RESTART); one that only removes temporary files and ends does not. */
static bool catches(const call *c) {
    unsigned long action[2] = { 0 }; /* the kernel's struct: the handler, the flags */
    struct iovec here = { action, sizeof action };
    struct iovec there = { (void *)(uintptr_t)c->argument[1], sizeof action };
    return c->number == SYS_rt_sigaction && c->argument[0] == SIGTERM && c->argument[1] &&
           process_vm_readv(c->pid, &here, 1, &there, 1, 0) == (ssize_t)sizeof action &&
           action[1] & SA_RESTART;
}

static verdict strike(void *context, const call *c) {
    blow *b = context;
    if (c->made) return GO_ON;
    if (catches(c)) b->handled = true;
    if (!changes(b->folder, c)) return GO_ON;
    b->calls++;
    if (b->second && b->calls == b->second_at) kill(c->pid, b->second);
    if (b->calls != b->at) return GO_ON;
    b->heard = b->handled;
    if (b->half && c->number == SYS_write) write_half(c);
    if (b->number == SIGKILL) return KILL;
    kill(c->pid, b->number);
    return GO_ON;
}

/* ---- a scene ------------------------------------------------------------------------------ */

typedef struct play {
    wall *w;
    const scene *scene;
    recording r;
    folder_state *start; /* of the folder */
    char folder[64], said[80], undisturbed[64];
    int logs[OUTPUTS];   /* their inodes in the end */
    uint64_t seen[SEEN]; /* what was gone on from */
    int n_seen;
    int64_t kills, gone_on, failures;
} play;

static void tell(play *p, const blow *b, const char *file, const char *why) {
    p->failures++;
    fprintf(stderr, "kills: %s: signal %d at call %d%s of %d, then %d at %d: %s %s (%s)\n",
            p->scene->name, b->number, b->at, b->half ? " and a half" : "", p->r.calls, b->second,
            b->second_at, file, why, p->folder);
}

static bool strike_scene(play *p, blow *b, int *status) {
    const content *contents[MAX_INODES];
    line l;
    for (int i = 0; i < p->r.n_inodes; i++) contents[i] = &p->start->contents[i];
    if (!fill_folder(p->folder, &p->r, p->start->names, contents)) return false;
    b->folder = p->r.folder;
    *status = watch(p->folder, split(&l, p->scene->command)->words, p->said, strike, b);
    p->kills++;
    return *status != -1;
}

static int lines_of(const content *c) {
    int n = 0;
    for (int64_t i = 0; i < c->size; i++) n += c->bytes[i] == '\n';
    return n;
}

/* Returns how a file differs from what the calls before the kill wrote; "" if it does not. */
static const char *compare(promise promised, bool half, const content *is, const content *should) {
    if (promised == LINES) {
        if (lines_of(is) != lines_of(should)) return "has not all lines, or too many";
        return half || !is->size || is->bytes[is->size - 1] == '\n' ? "" : "ends within a line";
    }
    return is->hash == should->hash ? "" : "is not what the calls before made it";
}

/* After a SIGKILL every file must be as the calls before it left it. (fault_of_life checks with the
 * undisturbed run that each such state keeps the file's promise.) */
static void judge_files(play *p, const blow *b) {
    int ops = 0;
    content c = { 0 };
    char message[256];
    while (ops < p->r.n && p->r.ops[ops].call < b->at) ops++;
    folder_state *s = state_after(&p->r, ops);
    for (int i = 0; i < OUTPUTS && p->scene->outputs[i].name; i++) {
        const output *o = &p->scene->outputs[i];
        int name = find_name(&p->r, o->name), inode = name == NO_NAME ? NO_INODE : s->names[name];
        bool there = read_file(p->folder, o->name, &c);
        const char *why = "";
        if (there != (inode != NO_INODE))
            why = there ? "is there" : "is not there";
        else if (there)
            why = compare(o->promised, b->half, &c, &s->contents[inode]);
        if (!*why && there && o->promised == MODEL) why = unreadable(&c, message);
        if (*why) tell(p, b, o->name, why);
    }
    free(c.bytes);
    folder_state_free(s);
}

/* A hash of the models in the folder, and of whether a temporary file is left. */
static uint64_t models_key(const play *p) {
    content c = { 0 };
    uint64_t key = 0;
    for (int i = 0; i < OUTPUTS && p->scene->outputs[i].name; i++)
        if (p->scene->outputs[i].promised == MODEL &&
            read_file(p->folder, p->scene->outputs[i].name, &c))
            key = wf_mix64(key ^ c.hash ^ (uint64_t)i);
    free(c.bytes);
    return key + (left_behind(p->folder) > 0);
}

/* Does each event of a log begin a line of its own, also after one that was cut off? */
static bool lines_apart(const char *folder, const char *name) {
    static const char mark[] = "{\"event\":";
    content c = { 0 };
    bool apart = true;
    if (read_file(folder, name, &c)) write_bytes(&c, c.size, "", 1);
    for (const char *at = c.bytes; c.size && (at = strstr(at, mark)) != NULL; at++)
        apart = apart && (at == c.bytes || at[-1] == '\n');
    free(c.bytes);
    return apart;
}

/* Continues the scene, and compares its end with the undisturbed one. A state that was continued
 * before is continued again once in 16 times on average, and always after half a write. */
static void go_on_and_compare(play *p, const blow *b) {
    uint64_t key = models_key(p);
    int i = 0;
    while (i < p->n_seen && p->seen[i] != key) i++;
    if (i < p->n_seen && !b->half && below(p->w, 16)) return;
    if (i == p->n_seen && i < SEEN) p->seen[p->n_seen++] = key;
    p->gone_on++;
    if (!go_on(p->scene, p->folder))
        tell(p, b, p->scene->outputs[0].name, "is not gone on from");
    else if (!same_end(p->scene, p->folder, p->undisturbed))
        tell(p, b, p->scene->outputs[0].name, "ends otherwise, or a temporary file is left");
    for (const output *o = p->scene->outputs; o < p->scene->outputs + OUTPUTS && o->name; o++)
        if (o->promised == LINES && !lines_apart(p->folder, o->name))
            tell(p, b, o->name, "has an event in the line of another");
}

/* With --long, a scene of fewer than 200 calls is killed at every call. A longer one is killed at
 * every fourth call, and at each call that makes a name, renames, removes or flushes, and at its
 * neighbours. */
static bool worth_it(const play *p, int at) {
    if (p->r.calls < 200 || at % 4 == 0) return true;
    for (int i = 0; i < p->r.n; i++)
        if (abs(p->r.ops[i].call - at) <= 1 && p->r.ops[i].kind >= OP_NAME) return true;
    return false;
}

static void kill_at(play *p, int at, bool half) {
    int status;
    blow b = { .number = SIGKILL, .at = at, .half = half };
    if (!strike_scene(p, &b, &status) || !WIFSIGNALED(status)) {
        tell(p, &b, "the program", "was not killed");
        return;
    }
    judge_files(p, &b);
    go_on_and_compare(p, &b);
}

/* Does the call write to a log? */
static bool in_log(const play *p, int at) {
    for (int i = 0; i < p->r.n; i++)
        for (int k = 0; p->r.ops[i].call == at && k < OUTPUTS && p->scene->outputs[k].name; k++)
            if (p->scene->outputs[k].promised == LINES && p->r.ops[i].kind == OP_WRITE &&
                p->r.ops[i].inode == p->logs[k])
                return true;
    return false;
}

static void kill_everywhere(play *p) {
    int step = p->w->brief ? p->r.calls / 12 + 1 : 1, first = (int)below(p->w, (uint32_t)step);
    for (int at = 1; at <= p->r.calls; at++) {
        bool torn = in_log(p, at) && below(p->w, p->w->brief ? 16 : 2) == 0;
        bool chosen = p->w->brief ? at % step == first : worth_it(p, at);
        if (chosen) kill_at(p, at, false);
        if (torn || (chosen && at % 5 == 0)) kill_at(p, at, true);
    }
}

/* ---- signals that can be caught ----------------------------------------------------------- */

/* The step that the model in the folder has done; 0: there is none, -1: it is damaged. */
static long step_of(const char *folder) {
    content c = { 0 };
    long step = 0;
    if (read_file(folder, "m.safetensors", &c)) {
        wf_file *f = wf_file_parse(c.bytes, (size_t)c.size);
        const char *value = wf_file_meta(f, "train.step");
        step = wf_file_ok(f) && value ? strtol(value, NULL, 10) : -1;
        wf_file_free(f);
    }
    free(c.bytes);
    return step;
}

/* The step of a signal that was caught, as the log's event says; -1: the log has no such event. */
static long logged_step(const char *folder) {
    static const char mark[] = "{\"event\":\"signal\",\"step\":";
    content c = { 0 };
    const char *at = NULL;
    if (read_file(folder, "log", &c)) write_bytes(&c, c.size, "", 1), at = strstr(c.bytes, mark);
    long step = at ? strtol(at + sizeof mark - 1, NULL, 10) : -1;
    free(c.bytes);
    return step;
}

/* The call that ended the last save but one. After it a training may end by itself before it reacts
 * to a signal. */
static int last_but_one(const play *p) {
    life l;
    write_life(&l, &p->r, p->scene->outputs[0].name);
    return l.n > 2 ? p->r.ops[l.versions[l.n - 2].from].call : 0;
}

/* Returns what is wrong with a training's end, or "". Before training begins, the program need not
 * catch a signal. */
static const char *judge_training(const play *p, const blow *b, int status) {
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (WIFSIGNALED(status)) return b->heard ? "did not catch the signal" : "";
    /* after the second signal it may remove its temporary file, but write no more */
    enum { REMOVED = 5 };
    if (b->second && b->calls >= b->second_at)
        return code == 128 + b->second && b->calls <= b->second_at + REMOVED
                   ? ""
                   : "did not end at once";
    if (code == 0) return b->at > last_but_one(p) ? "" : "did not heed the signal";
    if (code != 128 + b->number) return "ended with another status";
    bool logs = find_name(&p->r, "log") != NO_NAME;
    return logs && logged_step(p->folder) != step_of(p->folder)
               ? "saved another step than the one that it ended with"
               : "";
}

static void judge_caught(play *p, const blow *b, int status) {
    content c = { 0 };
    char message[256];
    const output *o = p->scene->outputs;
    for (int i = 0; i < OUTPUTS && o[i].name; i++)
        if (o[i].promised == MODEL && read_file(p->folder, o[i].name, &c) &&
            *unreadable(&c, message))
            tell(p, b, o[i].name, message);
    free(c.bytes);
    bool train = strncmp(p->scene->command, "train", 5) == 0;
    const char *why = train ? judge_training(p, b, status) : "";
    if (WIFSIGNALED(status) && WTERMSIG(status) != b->number && WTERMSIG(status) != b->second)
        why = "crashed";
    if (*why) tell(p, b, "the program", why);
}

static void signal_everywhere(play *p, int times) {
    static const int numbers[] = { SIGTERM, SIGINT };
    for (int k = 0; k < times; k++) {
        int status, at = 1 + (int)below(p->w, (uint32_t)p->r.calls);
        blow b = { .number = numbers[k % 2], .at = at };
        if (k % 3 == 2)
            b.second = numbers[(k + 1) % 2], b.second_at = at + 1 + (int)below(p->w, 60);
        if (!strike_scene(p, &b, &status)) {
            tell(p, &b, "the program", "was not watched");
            continue;
        }
        judge_caught(p, &b, status);
        go_on_and_compare(p, &b);
    }
}

static bool open_play(play *p, wall *w, const scene *s) {
    char message[256];
    life lived;
    line l;
    *p = (play){ .w = w, .scene = s };
    bool ok = prepare_folder(s, p->folder) && prepare_folder(s, p->undisturbed) &&
              go_on(s, p->undisturbed);
    snprintf(p->said, sizeof p->said, "%s.said", p->folder);
    ok = ok && record(&p->r, p->folder, split(&l, s->command)->words, p->said);
    if (p->r.status == -1) {
        printf("kills: programs cannot be watched here\n");
        exit(NOT_HERE);
    }
    p->start = state_after(&p->r, 0);
    for (int i = 0; ok && i < OUTPUTS && s->outputs[i].name; i++) {
        write_life(&lived, &p->r, s->outputs[i].name);
        p->logs[i] = inode_now(&p->r, lived.name);
        const char *why = fault_of_life(&lived, &p->r, s->outputs[i].promised, message);
        if (*why) tell(p, &(blow){ 0 }, s->outputs[i].name, why);
    }
    if (ok && p->r.status == 0) return true;
    fprintf(stderr, "kills: %s: not recorded: %s (%s, %s)\n", s->name, p->r.trouble, p->folder,
            p->undisturbed);
    p->failures++;
    return false;
}

static void play_scene(wall *w, const scene *s) {
    static play p;
    double began = now();
    if (open_play(&p, w, s)) {
        kill_everywhere(&p);
        signal_everywhere(&p, w->brief ? 6 : p.r.calls / 10 + 10);
    }
    printf("  %-10s %5d calls: %6lld ends, %lld gone on from; %lld failures; %.1f s\n", s->name,
           p.r.calls, (long long)p.kills, (long long)p.gone_on, (long long)p.failures,
           now() - began);
    fflush(stdout);
    w->cases += p.kills, w->failures += p.failures;
    if (p.failures == 0) remove_folder(p.folder), remove_folder(p.undisturbed);
    folder_state_free(p.start);
    recording_free(&p.r);
}

/* ---- life after life ---------------------------------------------------------------------- */

#define ON                                                                                         \
    "train --resume --train pairs --valid pairs --valid-every 3 --save-every 1 --threads 1 "       \
    "--quiet -o m.safetensors"
#define BEGIN                                                                                      \
    "train --train pairs --valid pairs --valid-every 3 --save-every 1 --threads 1 --quiet "        \
    "-o m.safetensors --tokenizer word --d-model 16 --heads 2 --layers 1 --d-ff 16 "               \
    "--batch-size 7 --accum 2 --ema 0.9 --lr-steps 1000000000 --warmup 2"

static int live(const char *folder, long steps, int64_t microseconds) {
    char command[1024], said[80];
    line l;
    long done = step_of(folder);
    snprintf(said, sizeof said, "%s.said", folder);
    snprintf(command, sizeof command, "%s --max-steps %ld", done > 0 ? ON : BEGIN, steps);
    return run_timed(folder, split(&l, command)->words, said, microseconds, SIGKILL);
}

static void life_after_life(wall *w, int lives) {
    static const scene chain = {
        .name = "chance",
        .outputs = { { "m.safetensors", MODEL }, { "m.best.safetensors", MODEL } },
    };
    char folder[64], undisturbed[64];
    double began = now();
    long last = 0, failures = 0;
    if (!prepare_folder(&chain, folder) || !prepare_folder(&chain, undisturbed)) exit(2);
    for (int i = 0; i < lives && failures == 0; i++) {
        int status = live(folder, 100000000, 5000 + below(w, 100000));
        long step = step_of(folder);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL || step < last) {
            fprintf(stderr, "kills: chance: life %d: status %d, step %ld after %ld (%s)\n", i,
                    status, step, last, folder);
            failures++;
        }
        last = step;
    }
    last += 6;
    if (live(folder, last, -1) || live(undisturbed, last, -1) ||
        !same_end(&chain, folder, undisturbed)) {
        fprintf(stderr, "kills: chance: after %ld steps another file (%s)\n", last, folder);
        failures++;
    }
    printf("  %-10s %5ld steps: %6d ends, moments of chance; %ld failures; %.1f s\n", "chance",
           last, lives, failures, now() - began);
    w->cases += lives, w->failures += failures;
    if (!failures) remove_folder(folder), remove_folder(undisturbed);
}

int main(int argc, char **argv) {
    wall w = { .brief = argc < 2 || strcmp(argv[1], "--long") != 0 };
    double began = now();
    signal(SIGINT, SIG_DFL); /* a shell's & ignores SIGINT, and train would inherit that */
    if (!enter()) return fputs("kills: set WEFT_TOOLS\n", stderr), 2;
    for (int i = 0; i < n_scenes; i++)
        if (scenes[i].brief || !w.brief) play_scene(&w, &scenes[i]);
    life_after_life(&w, w.brief ? 20 : 300);
    return end_of_wall("kills", w.cases, w.failures, began);
}
