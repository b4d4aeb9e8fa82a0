/* tests/walls/power.c - simulates a power cut while a program writes its files.
 *
 * usage: power [--short | --long]       WEFT_TOOLS: the folder of the programs
 *
 * Each scene is recorded once, system call by system call. Every state in which a disk may be after
 * a power cut (disk.h) is then judged in memory: each file keeps its promise (scenes.h), and after
 * a save has returned it holds that save or a later one. Of the states with the same models, one is
 * written to a folder, and the scene continues from it: to the same files as undisturbed, without a
 * temporary file left. The scene "convert" also tests the judge itself: it must find faults in its
 * recording when that is changed as if the program had made mistakes. Exits with 77 where programs
 * may not be traced. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "scenes.h"

enum { SLOTS = 1 << 22, COMBINATIONS = 512, TOLD = 10, NOT_HERE = 77 };

/* The states of a scene, judged. */
typedef struct trial {
    const scene *scene;
    life lives[OUTPUTS];
    content last[OUTPUTS], before[OUTPUTS]; /* logs (LINES) at the end, and before the scene */
    uint64_t *seen;                         /* hash table of SLOTS states of all scenes; 0: free */
    int64_t states, distinct, broken;
    bool told;
    struct {
        uint64_t key, times;
        int *names;
        content *contents;
    } combination[COMBINATIONS]; /* each combination of models, with one of its states */
    int n_combinations;
    uint64_t random;
} trial;

static bool remember(uint64_t *seen, uint64_t key) {
    if (key == 0) key = 1;
    for (uint64_t i = key;; i++) {
        uint64_t *slot = &seen[i % SLOTS];
        if (*slot == key) return false;
        if (*slot == 0) return *slot = key, true;
    }
}

/* ---- the judge ---------------------------------------------------------------------------- */

/* Returns what is wrong with a file of promise MODEL or WHOLE, or "". */
static const char *judge_whole(const life *l, int cut, const content *c, char why[512]) {
    int floor = 0, latest = 0;
    char message[256];
    *why = 0;
    for (int i = 1; i < l->n; i++) {
        if (l->versions[i].sure <= cut) floor = i;
        if (l->versions[i].from < cut) latest = i;
    }
    for (int i = floor; i <= latest; i++)
        if (l->versions[i].there == (c != NULL) && (!c || l->versions[i].hash == c->hash))
            return why;
    if (!c) return strcpy(why, "is not there");
    for (int i = 0; i < l->n; i++)
        if (l->versions[i].there && l->versions[i].hash == c->hash)
            return snprintf(why, 512, "is version %d, not %d to %d", i, floor, latest), why;
    snprintf(why, 512, "is none of its versions: %s", unreadable(c, message));
    return why;
}

static bool begins_with(const content *c, const content *beginning) {
    return c->size >= beginning->size &&
           memcmp(c->bytes, beginning->bytes, (size_t)beginning->size) == 0;
}

/* A log is not flushed, so after a power cut only the lines from before the scene must be there. If
 * operations reach the disk in order, the log grows by whole lines. */
static const char *judge_log(const trial *t, int i, const state *s, const content *c) {
    const content *last = &t->last[i], *before = &t->before[i];
    if (before->size && (!c || !begins_with(c, before))) return "has lost earlier lines";
    if (s->model != MODEL_PREFIX || !c) return "";
    if (!begins_with(last, c)) return "is no beginning of its end";
    return !s->torn && c->size && c->bytes[c->size - 1] != '\n' ? "ends within a line" : "";
}

static void tell(trial *t, const state *s, const char *file, const char *why) {
    static const char *const models[] = { "in order", "ordered data", "anything goes" };
    if (t->broken++ >= TOLD || !t->told) return;
    fprintf(stderr, "power: %s: cut after %d of %d operations (%s): %s %s\n", t->scene->name,
            s->cut, s->r->n, models[s->model], file, why);
}

static void keep_combination(trial *t, const state *s, uint64_t key) {
    int n = s->r->n_inodes, i = 0;
    while (i < t->n_combinations && t->combination[i].key != key) i++;
    if (i == COMBINATIONS) return;
    if (i == t->n_combinations) {
        t->n_combinations++;
        t->combination[i].key = key;
        t->combination[i].names = calloc(MAX_NAMES, sizeof(int));
        t->combination[i].contents = calloc((size_t)n, sizeof(content));
        if (!t->combination[i].names || !t->combination[i].contents) exit(2);
    }
    t->random = wf_mix64(t->random + key); /* keeps each state with equal probability */
    if (t->random % ++t->combination[i].times != 0) return;
    memcpy(t->combination[i].names, s->names, (size_t)s->r->n_names * sizeof *s->names);
    for (int k = 0; k < n; k++) {
        content *to = &t->combination[i].contents[k];
        set_size(to, s->contents[k]->size);
        if (to->size) memcpy(to->bytes, s->contents[k]->bytes, (size_t)to->size);
    }
}

static void judge_state(void *context, const state *s) {
    trial *t = context;
    char why[512];
    uint64_t key = 0;
    t->states++;
    bool fresh = remember(t->seen, state_key(s) ^ wf_mix64((uint64_t)(uintptr_t)t->scene));
    t->distinct += fresh;
    for (int i = 0; i < OUTPUTS && t->scene->outputs[i].name; i++) {
        const output *o = &t->scene->outputs[i];
        int name = t->lives[i].name, inode = name == NO_NAME ? NO_INODE : s->names[name];
        const content *c = inode == NO_INODE ? NULL : s->contents[inode];
        const char *wrong = o->promised == LINES ? judge_log(t, i, s, c)
                                                 : judge_whole(&t->lives[i], s->cut, c, why);
        if (*wrong) tell(t, s, o->name, wrong);
        if (o->promised != LINES) key = wf_mix64(key ^ (c ? c->hash : 0) ^ (uint64_t)i);
    }
    if (fresh && t->told) keep_combination(t, s, key);
}

/* ---- a scene ------------------------------------------------------------------------------ */

/* Reads the versions of each output from the recording; each version of a model must be
 * readable. */
static void open_trial(trial *t, const scene *s, const recording *r, uint64_t *seen, bool told) {
    char message[256];
    *t = (trial){ .scene = s, .seen = seen, .told = told };
    folder_state *end = state_after(r, r->n);
    for (int i = 0; i < OUTPUTS && s->outputs[i].name; i++) {
        life *l = &t->lives[i];
        write_life(l, r, s->outputs[i].name);
        int inode = l->name == NO_NAME ? NO_INODE : end->names[l->name];
        int first = l->name == NO_NAME ? NO_INODE : r->first[l->name];
        if (inode != NO_INODE)
            write_bytes(&t->last[i], 0, end->contents[inode].bytes, end->contents[inode].size);
        if (first != NO_INODE)
            write_bytes(&t->before[i], 0, r->initial[first].bytes, r->initial[first].size);
        hash_content(&t->before[i]);
        const char *why = fault_of_life(l, r, s->outputs[i].promised, message);
        if (!*why) continue;
        t->broken++;
        if (told) fprintf(stderr, "power: %s: %s %s\n", s->name, s->outputs[i].name, why);
    }
    folder_state_free(end);
}

static void close_trial(trial *t, const recording *r) {
    for (int i = 0; i < OUTPUTS; i++) free(t->last[i].bytes), free(t->before[i].bytes);
    for (int i = 0; i < t->n_combinations; i++) {
        for (int k = 0; k < r->n_inodes; k++) free(t->combination[i].contents[k].bytes);
        free(t->combination[i].contents), free(t->combination[i].names);
    }
}

static int64_t go_on_from(trial *t, const recording *r, const char *folder, int most) {
    const content *contents[MAX_INODES];
    char undisturbed[64];
    int64_t failures = 0;
    if (!prepare_folder(t->scene, undisturbed) || !go_on(t->scene, undisturbed)) return 1;
    for (int i = 0; i < t->n_combinations && i < most; i++) {
        for (int k = 0; k < r->n_inodes; k++) contents[k] = &t->combination[i].contents[k];
        if (fill_folder(folder, r, t->combination[i].names, contents) && go_on(t->scene, folder) &&
            same_end(t->scene, folder, undisturbed))
            continue;
        fprintf(stderr, "power: %s: state %d is not gone on from to the same end (%s)\n",
                t->scene->name, i, folder);
        failures++;
    }
    remove_folder(undisturbed);
    return failures;
}

/* ---- the judge on trial ------------------------------------------------------------------- */

static void drop(recording *r, int i) {
    memmove(&r->ops[i], &r->ops[i + 1], (size_t)(r->n - i - 1) * sizeof *r->ops);
    r->n--;
}

static void without(recording *r, op_kind kind) {
    for (int i = r->n; i-- > 0;)
        if (r->ops[i].kind == kind) drop(r, i);
}

static void no_file_sync(recording *r) {
    without(r, OP_SYNC_FILE);
}
static void no_folder_sync(recording *r) {
    without(r, OP_SYNC_FOLDER);
}

static int last_rename(const recording *r) {
    int i = r->n - 1;
    while (i > 0 && (r->ops[i].kind != OP_NAME || r->ops[i].gone == NO_NAME)) i--;
    return i;
}

/* The last operation of that kind before operation `i` on the same inode; if there is none, i. */
static int last_before(const recording *r, int i, op_kind kind) {
    int k = i - 1;
    while (k >= 0 && (r->ops[k].kind != kind || r->ops[k].inode != r->ops[i].inode)) k--;
    return k < 0 ? i : k;
}

/* A mistake: the temporary file is renamed as soon as it is made, and then written and flushed. */
static void rename_first(recording *r) {
    int from = last_rename(r), to = last_before(r, from, OP_NAME);
    op moved = r->ops[from];
    if (from == to) return;
    memmove(&r->ops[to + 2], &r->ops[to + 1], (size_t)(from - to - 1) * sizeof moved);
    r->ops[to + 1] = moved;
}

/* A mistake: the file is written in place, without a temporary file. */
static void in_place(recording *r) {
    int from = last_rename(r), to = last_before(r, from, OP_NAME);
    if (from == to) return;
    r->ops[to].name = r->ops[from].name;
    drop(r, from);
}

static void sync_before_the_end(recording *r) {
    int from = last_rename(r), i = last_before(r, from, OP_SYNC_FILE);
    if (i == from) return;
    op sync = r->ops[i], write = r->ops[i - 1];
    r->ops[i - 1] = sync, r->ops[i] = write;
}

static void lost_write(recording *r) {
    int from = last_rename(r), i = last_before(r, from, OP_WRITE);
    if (i != from) drop(r, i);
}

static int64_t try_judge(const recording *r, const scene *s, uint64_t *seen) {
    static const struct {
        const char *name;
        void (*doctor)(recording *r);
    } ways[] = { { "no fsync of the file", no_file_sync },
                 { "no fsync of the folder", no_folder_sync },
                 { "renamed before it is written", rename_first },
                 { "written in place", in_place },
                 { "a write after the fsync", sync_before_the_end },
                 { "a write that is lost", lost_write } };
    enum { WAYS = sizeof ways / sizeof *ways };
    int64_t failures = 0;
    trial t;
    for (int i = 0; i < WAYS; i++) {
        recording bad = *r;
        bad.ops = malloc((size_t)r->n * sizeof *bad.ops);
        if (!bad.ops) exit(2);
        memcpy(bad.ops, r->ops, (size_t)r->n * sizeof *bad.ops);
        ways[i].doctor(&bad);
        open_trial(&t, s, &bad, seen, false);
        cut_power(&bad, 2, 1, 1, judge_state, &t);
        printf("  doctored: %-28s %lld of %lld states are broken\n", ways[i].name,
               (long long)t.broken, (long long)t.states);
        if (t.broken == 0) failures++, fprintf(stderr, "power: not noticed: %s\n", ways[i].name);
        close_trial(&t, r);
        free(bad.ops);
    }
    return failures;
}

/* ---- the wall ----------------------------------------------------------------------------- */

typedef struct wall {
    bool brief;
    uint64_t *seen;
    int64_t cases, failures;
} wall;

static void play(wall *w, const scene *s) {
    static trial t;
    recording r;
    line l;
    char folder[64], said[80];
    double began = now();
    bool prepared = prepare_folder(s, folder);
    snprintf(said, sizeof said, "%s.said", folder);
    bool ok = prepared && record(&r, folder, split(&l, s->command)->words, said);
    if (prepared && r.status == -1) {
        printf("power: programs cannot be watched here\n");
        exit(NOT_HERE);
    }
    if (!ok || r.status != 0) {
        fprintf(stderr, "power: %s: not recorded: %s (status %d)\n", s->name,
                prepared ? r.trouble : folder, prepared ? r.status : 0);
        w->failures++;
        return;
    }
    open_trial(&t, s, &r, w->seen, true);
    cut_power(&r, w->brief ? 1 : 6, w->brief ? 16 : 1, 1, judge_state, &t);
    int64_t gone_on = t.n_combinations;
    if (w->brief && gone_on > 4) gone_on = 4;
    int64_t failures = t.broken + go_on_from(&t, &r, folder, (int)gone_on);
    printf("  %-10s %5d operations: %7lld states, %7lld distinct; %lld gone on from; %lld "
           "failures; %.1f s\n",
           s->name, r.n, (long long)t.states, (long long)t.distinct, (long long)gone_on,
           (long long)failures, now() - began);
    fflush(stdout);
    w->cases += t.distinct + gone_on, w->failures += failures;
    if (strcmp(s->name, "convert") == 0) w->failures += try_judge(&r, s, w->seen);
    close_trial(&t, &r);
    recording_free(&r);
    if (failures == 0) remove_folder(folder);
}

int main(int argc, char **argv) {
    wall w = { .brief = argc < 2 || strcmp(argv[1], "--long") != 0 };
    double began = now();
    w.seen = calloc(SLOTS, sizeof *w.seen);
    if (!w.seen || !enter()) return fputs("power: set WEFT_TOOLS\n", stderr), 2;
    for (int i = 0; i < n_scenes; i++)
        if (scenes[i].brief || !w.brief) play(&w, &scenes[i]);
    free(w.seen);
    return end_of_wall("power", w.cases, w.failures, began);
}
