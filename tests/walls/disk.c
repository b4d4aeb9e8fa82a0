/* tests/walls/disk.c - see disk.h. */
#include "disk.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"

enum { SECTOR = 512, PAGE = 4096, MAX_FOLDERS_STATES = 64 };

/* Operations on an inode or a name that are not flushed: after a power cut they may be lost. */
typedef struct pending {
    int *ops;
    int n, capacity;
} pending;

typedef struct disk {
    const recording *r;
    int cut, committed; /* committed: in MODEL_ORDERED, the last flush of any file or folder */
    content durable[MAX_INODES], made[MAX_INODES];
    pending data[MAX_INODES], changes[MAX_NAMES];
    int kept[MAX_NAMES];
    uint64_t random;
    judge *judge;
    void *context;
} disk;

static uint32_t below(disk *d, int64_t n) {
    d->random = wf_mix64(d->random + 0x9E3779B97F4A7C15u);
    return n > 0 ? (uint32_t)(d->random % (uint64_t)n) : 0;
}

static void *allocated(void *p) {
    if (!p) exit(2);
    return p;
}

static void wait_for(pending *p, int which) {
    if (p->n == p->capacity) {
        p->capacity = p->capacity ? 2 * p->capacity : 64;
        p->ops = allocated(realloc(p->ops, (size_t)p->capacity * sizeof *p->ops));
    }
    p->ops[p->n++] = which;
}

static void copy_content(content *to, const content *from) {
    set_size(to, 0);
    set_size(to, from->size);
    if (from->size) memcpy(to->bytes, from->bytes, (size_t)from->size);
    to->hash = from->hash;
}

static void apply(content *c, const op *o) {
    if (o->kind == OP_SIZE) set_size(c, o->size);
    if (o->kind == OP_WRITE) write_bytes(c, o->offset, o->bytes, o->size);
}

/* The n-th operation has been made. */
static void make(disk *d, int n) {
    const recording *r = d->r;
    const op *o = &r->ops[n];
    d->cut = n + 1;
    if (o->kind == OP_WRITE || o->kind == OP_SIZE) wait_for(&d->data[o->inode], n);
    if (o->kind == OP_NAME) {
        wait_for(&d->changes[o->name], n);
        if (o->gone != NO_NAME) wait_for(&d->changes[o->gone], n);
    }
    if (o->kind == OP_SYNC_FILE || o->kind == OP_SYNC_FOLDER) d->committed = n + 1;
    if (o->kind == OP_SYNC_FILE) {
        pending *p = &d->data[o->inode];
        for (int i = 0; i < p->n; i++) apply(&d->durable[o->inode], &r->ops[p->ops[i]]);
        hash_content(&d->durable[o->inode]);
        p->n = 0;
    }
    for (int i = 0; o->kind == OP_SYNC_FOLDER && i < r->n_names; i++) {
        pending *p = &d->changes[i];
        if (p->n == 0 || !in_folder(r, i, o->name)) continue;
        const op *last = &r->ops[p->ops[p->n - 1]];
        d->kept[i] = last->name == i ? last->inode : NO_INODE;
        p->n = 0;
    }
}

/* The inode of a name after the first n of its changes. */
static int named(const disk *d, int name, int n) {
    if (n == 0) return d->kept[name];
    const op *o = &d->r->ops[d->changes[name].ops[n - 1]];
    return o->name == name ? o->inode : NO_INODE;
}

static int changes_before(const disk *d, int name, int moment) {
    int n = 0;
    while (n < d->changes[name].n && d->changes[name].ops[n] < moment) n++;
    return n;
}

/* ---- contents ----------------------------------------------------------------------------- */

/* The choice of the operations without fsync that survive the power cut. */
typedef enum choice { ALL, NONE, FIRST, BUT, ONLY, TORN, DRAWN, DIRTY, CHOICES } choice;

static bool taken(choice c, int i, int which) {
    switch (c) {
    case ALL:
        return true;
    case NONE:
        return false;
    case FIRST:
        return i < which;
    case BUT:
        return i != which;
    case ONLY:
        return i == which;
    default:
        return i <= which; /* TORN */
    }
}

static void take_sectors(disk *d, content *c, const op *o, int64_t unit, uint32_t odds) {
    for (int64_t at = o->offset, end = o->offset + o->size; at < end;) {
        int64_t next = (at / unit + 1) * unit;
        if (next > end) next = end;
        if (below(d, 8) < odds) write_bytes(c, at, o->bytes + (at - o->offset), next - at);
        at = next;
    }
}

/* A random one of the sizes that the inode has had since it was flushed. */
static int64_t drawn_size(disk *d, int inode) {
    const pending *p = &d->data[inode];
    int64_t size = d->durable[inode].size;
    int n = (int)below(d, p->n + 1);
    for (int i = 0; i < n; i++) {
        const op *o = &d->r->ops[p->ops[i]];
        if (o->kind == OP_SIZE)
            size = o->size;
        else if (o->offset + o->size > size)
            size = o->offset + o->size;
    }
    return size;
}

/* Draws for every sector whether it was written. DIRTY: a sector that was not written holds old
 * contents of the disk instead of zeros. */
static void draw_content(disk *d, int inode, choice how, content *c) {
    static const uint32_t all_odds[] = { 1, 4, 7 };
    const pending *p = &d->data[inode];
    int64_t known = c->size, size = below(d, 3) ? -1 : drawn_size(d, inode), full = known;
    uint32_t odds = all_odds[below(d, 3)];
    for (int i = 0; i < p->n; i++) {
        const op *o = &d->r->ops[p->ops[i]];
        int64_t end = o->kind == OP_SIZE ? o->size : o->offset + o->size;
        if (end > full) full = end;
    }
    set_size(c, full);
    if (how == DIRTY) memset(c->bytes + known, 0xA5, (size_t)(full - known));
    for (int i = 0; i < p->n; i++) {
        const op *o = &d->r->ops[p->ops[i]];
        if (o->kind == OP_WRITE)
            take_sectors(d, c, o, SECTOR, odds);
        else if (o->size < known && below(d, 2))
            memset(c->bytes + o->size, 0, (size_t)(full - o->size));
    }
    set_size(c, size < 0 ? full : size);
}

static void choose_content(disk *d, int inode, choice how, int which) {
    const pending *p = &d->data[inode];
    content *c = &d->made[inode];
    copy_content(c, &d->durable[inode]);
    if (how >= DRAWN) draw_content(d, inode, how, c);
    for (int i = 0; how < DRAWN && i < p->n; i++) {
        op o = d->r->ops[p->ops[i]];
        if (how == TORN && i == which && o.kind == OP_WRITE) o.size = below(d, o.size);
        if (taken(how, i, which)) apply(c, &o);
    }
    hash_content(c);
}

/* The content after a crash keeps all changes of its size up to a moment, and any pages of its
 * data. A page behind the end makes the file longer. */
static void choose_ordered(disk *d, int inode, int moment) {
    const pending *p = &d->data[inode];
    content *c = &d->made[inode];
    uint32_t odds = (uint32_t[]){ 0, 4, 7, 8 }[below(d, 4)];
    copy_content(c, &d->durable[inode]);
    for (int i = 0; i < p->n; i++) {
        const op *o = &d->r->ops[p->ops[i]];
        if (o->kind == OP_WRITE)
            take_sectors(d, c, o, PAGE, odds);
        else if (p->ops[i] < moment)
            set_size(c, o->size);
    }
    hash_content(c);
}

/* ---- whole states ------------------------------------------------------------------------- */

static void show(disk *d, disk_model model, bool torn, const int *names) {
    const content *contents[MAX_INODES];
    for (int i = 0; i < d->r->n_inodes; i++)
        contents[i] = d->data[i].n ? &d->made[i] : &d->durable[i];
    state s = { d->r, model, d->cut, torn, names, contents };
    d->judge(d->context, &s);
}

static void choose_contents(disk *d, choice how, int which) {
    for (int i = 0; i < d->r->n_inodes; i++)
        if (d->data[i].n) choose_content(d, i, how, which % (d->data[i].n + 1));
}

static void names_at(const disk *d, int moment, int *names) {
    for (int i = 0; i < d->r->n_names; i++) names[i] = named(d, i, changes_before(d, i, moment));
}

static void show_prefix(disk *d) {
    int names[MAX_NAMES];
    const op *last = d->cut ? &d->r->ops[d->cut - 1] : NULL;
    names_at(d, d->cut, names);
    choose_contents(d, ALL, 0);
    show(d, MODEL_PREFIX, false, names);
    if (!last || last->kind != OP_WRITE) return;
    for (int i = 0; i < 2; i++) {
        choose_content(d, last->inode, TORN, d->data[last->inode].n - 1);
        show(d, MODEL_PREFIX, true, names);
    }
}

static void show_ordered(disk *d, int draws) {
    int names[MAX_NAMES];
    for (int moment = d->committed; moment <= d->cut; moment++) {
        op_kind kind = moment == d->cut ? OP_NAME : d->r->ops[moment].kind;
        if (kind != OP_NAME && kind != OP_SIZE) continue;
        names_at(d, moment, names);
        for (int k = 0; k < (draws + 1) / 2; k++) {
            for (int i = 0; i < d->r->n_inodes; i++)
                if (d->data[i].n) choose_ordered(d, i, moment);
            show(d, MODEL_ORDERED, false, names);
        }
    }
}

/* Shows the judge every combination of old and new names, or some if there are too many. */
static void show_names(disk *d) {
    int names[MAX_NAMES], at[MAX_NAMES] = { 0 };
    int64_t combinations = 1;
    for (int i = 0; i < d->r->n_names && combinations <= MAX_FOLDERS_STATES; i++)
        combinations *= d->changes[i].n + 1;
    for (int k = 0; k < combinations && k < MAX_FOLDERS_STATES; k++) {
        int64_t rest = k;
        for (int i = 0; i < d->r->n_names; i++) {
            int n = d->changes[i].n + 1;
            at[i] = combinations > MAX_FOLDERS_STATES ? (int)below(d, n) : (int)(rest % n);
            rest /= n;
            names[i] = named(d, i, at[i]);
        }
        show(d, MODEL_FREE, false, names);
    }
}

static void show_free(disk *d, int draws) {
    int most = 0;
    for (int i = 0; i < d->r->n_inodes; i++)
        if (d->data[i].n > most) most = d->data[i].n;
    for (choice how = ALL; how < CHOICES; how++) {
        int times = how <= NONE ? 1 : draws < most ? draws : most;
        if (how >= DRAWN && most) times = draws;
        for (int k = 0; k < times; k++) {
            choose_contents(d, how, times == most ? k : (int)below(d, most));
            show_names(d);
        }
    }
}

/* Is operation n, or the one before it, other than a write or a change of size? */
static bool at_edge(const recording *r, int n) {
    op_kind before = n > 0 ? r->ops[n - 1].kind : OP_NAME;
    op_kind after = n < r->n ? r->ops[n].kind : OP_NAME;
    return before >= OP_NAME || after >= OP_NAME;
}

void cut_power(const recording *r, int draws, int stride, uint64_t seed, judge *j, void *context) {
    disk *d = allocated(calloc(1, sizeof *d));
    *d = (disk){ .r = r, .random = seed, .judge = j, .context = context };
    memcpy(d->kept, r->first, sizeof d->kept);
    for (int i = 0; i < r->n_inodes; i++) {
        copy_content(&d->durable[i], &r->initial[i]);
        hash_content(&d->durable[i]);
    }
    for (int n = 0; n <= r->n; n++) {
        if (n) make(d, n - 1);
        if (n % stride && !at_edge(r, n)) continue;
        show_prefix(d);
        show_ordered(d, draws);
        show_free(d, draws);
    }
    for (int i = 0; i < r->n_inodes; i++)
        free(d->durable[i].bytes), free(d->made[i].bytes), free(d->data[i].ops);
    for (int i = 0; i < r->n_names; i++) free(d->changes[i].ops);
    free(d);
}

folder_state *state_after(const recording *r, int ops) {
    folder_state *s = allocated(calloc(1, sizeof *s));
    memcpy(s->names, r->first, sizeof s->names);
    for (int i = 0; i < r->n_inodes; i++) copy_content(&s->contents[i], &r->initial[i]);
    for (int i = 0; i < ops; i++) {
        const op *o = &r->ops[i];
        if (o->kind == OP_NAME) s->names[o->name] = o->inode;
        if (o->kind == OP_NAME && o->gone != NO_NAME) s->names[o->gone] = NO_INODE;
        if (o->kind == OP_WRITE || o->kind == OP_SIZE) apply(&s->contents[o->inode], o);
    }
    for (int i = 0; i < r->n_inodes; i++) hash_content(&s->contents[i]);
    return s;
}

void folder_state_free(folder_state *s) {
    for (int i = 0; s && i < MAX_INODES; i++) free(s->contents[i].bytes);
    free(s);
}

uint64_t state_key(const state *s) {
    uint64_t key = 0;
    for (int i = 0; i < s->r->n_names; i++)
        if (s->names[i] != NO_INODE)
            key = wf_mix64(key ^ wf_mix64((uint64_t)i + 1) ^ s->contents[s->names[i]]->hash);
    return key;
}
