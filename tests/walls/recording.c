/* tests/walls/recording.c - see recording.h. */
#define _GNU_SOURCE
#include "recording.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/base/random.h"

/* ---- contents ----------------------------------------------------------------------------- */

void hash_content(content *c) {
    uint64_t h = wf_mix64((uint64_t)c->size), word = 0;
    for (int64_t i = 0; i < c->size; i += 8) {
        int64_t n = c->size - i < 8 ? c->size - i : 8;
        memcpy(&word, c->bytes + i, (size_t)n);
        h = (h ^ word ^ h >> 29) * 0x9E3779B97F4A7C15u;
    }
    c->hash = wf_mix64(h);
}

void set_size(content *c, int64_t size) {
    char *grown = realloc(c->bytes, (size_t)size + 1);
    if (!grown) exit(2);
    c->bytes = grown;
    if (size > c->size) memset(c->bytes + c->size, 0, (size_t)(size - c->size));
    c->size = size;
}

void write_bytes(content *c, int64_t offset, const char *bytes, int64_t n) {
    if (offset + n > c->size) set_size(c, offset + n);
    memcpy(c->bytes + offset, bytes, (size_t)n);
}

/* ---- what calls are about ----------------------------------------------------------------- */

/* The arguments of a system call: the numbers of those that hold a folder's descriptor and a
 * path. */
typedef struct shape {
    int64_t number;
    enum {
        OPENS,
        RENAMES,
        REMOVES,
        LINKS,
        REFUSED_PATH,
        MODE_PATH,
        SIZES_PATH, /* by path */
        WRITES,
        SIZES,
        GROWS,
        FLUSHES,
        MODE,
        REFUSED_FILE,
        MAPS
    } does;                           /* by descriptor */
    int at, path, more_at, more_path; /* the second path of a rename or link */
    /* which argument holds the flags of an open or rename, or the offset of a write; -1: none */
    int flags;
} shape;

static const shape shapes[] = {
    { SYS_openat, OPENS, 0, 1, 0, 0, 2 },
    { SYS_renameat2, RENAMES, 0, 1, 2, 3, 4 },
    { SYS_unlinkat, REMOVES, 0, 1, 0, 0, -1 },
    { SYS_linkat, LINKS, 0, 1, 2, 3, -1 },
    { SYS_mkdirat, REFUSED_PATH, 0, 1, 0, 0, -1 },
    { SYS_symlinkat, REFUSED_PATH, 1, 2, 0, 0, -1 },
    { SYS_mknodat, REFUSED_PATH, 0, 1, 0, 0, -1 },
    { SYS_fchmodat, MODE_PATH, 0, 1, 0, 0, -1 },
    { SYS_fchownat, MODE_PATH, 0, 1, 0, 0, -1 },
    { SYS_truncate, SIZES_PATH, -1, 0, 0, 0, -1 },
#ifdef SYS_openat2
    { SYS_openat2, REFUSED_PATH, 0, 1, 0, 0, -1 },
#endif
#ifdef SYS_renameat
    { SYS_renameat, RENAMES, 0, 1, 2, 3, -1 },
#endif
#ifdef SYS_open
    { SYS_open, OPENS, -1, 0, 0, 0, 1 },
    { SYS_creat, OPENS, -1, 0, 0, 0, -1 },
    { SYS_rename, RENAMES, -1, 0, -1, 1, -1 },
    { SYS_unlink, REMOVES, -1, 0, 0, 0, -1 },
    { SYS_rmdir, REFUSED_PATH, -1, 0, 0, 0, -1 },
    { SYS_link, LINKS, -1, 0, -1, 1, -1 },
    { SYS_mkdir, REFUSED_PATH, -1, 0, 0, 0, -1 },
    { SYS_symlink, REFUSED_PATH, -1, 1, 0, 0, -1 },
    { SYS_mknod, REFUSED_PATH, -1, 0, 0, 0, -1 },
    { SYS_chmod, MODE_PATH, -1, 0, 0, 0, -1 },
    { SYS_chown, MODE_PATH, -1, 0, 0, 0, -1 },
    { SYS_lchown, MODE_PATH, -1, 0, 0, 0, -1 },
#endif
    { SYS_write, WRITES, 0, 0, 0, 0, -1 },
    { SYS_writev, WRITES, 0, 0, 0, 0, -1 },
    { SYS_pwrite64, WRITES, 0, 0, 0, 0, 3 },
    { SYS_pwritev, WRITES, 0, 0, 0, 0, 3 },
    { SYS_pwritev2, REFUSED_FILE, 0, 0, 0, 0, -1 },
    { SYS_sendfile, WRITES, 0, 0, 0, 0, -1 },
    { SYS_copy_file_range, REFUSED_FILE, 2, 0, 0, 0, -1 },
    { SYS_splice, REFUSED_FILE, 2, 0, 0, 0, -1 },
    { SYS_ftruncate, SIZES, 0, 0, 0, 0, -1 },
    { SYS_fallocate, GROWS, 0, 0, 0, 0, -1 },
    { SYS_fsync, FLUSHES, 0, 0, 0, 0, -1 },
    { SYS_fdatasync, FLUSHES, 0, 0, 0, 0, -1 },
    { SYS_fchmod, MODE, 0, 0, 0, 0, -1 },
    { SYS_fchown, MODE, 0, 0, 0, 0, -1 },
    { SYS_mmap, MAPS, 4, 0, 0, 0, -1 },
};

static const shape *shape_of(const call *c) {
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (shapes[i].number == c->number) return &shapes[i];
    return NULL;
}

/* Reads a string from the memory of the stopped program. */
static bool read_string(pid_t pid, uint64_t address, char text[PATH_MAX]) {
    for (size_t n = 0; n < PATH_MAX;) {
        size_t part = 256 - address % 256; /* no read crosses into a page that may not exist */
        if (part > PATH_MAX - n) part = PATH_MAX - n;
        struct iovec here = { text + n, part }, there = { (void *)(uintptr_t)address, part };
        if (process_vm_readv(pid, &here, 1, &there, 1, 0) != (ssize_t)part) return false;
        if (memchr(text + n, 0, part)) return true;
        n += part, address += part;
    }
    return false;
}

static bool link_target(pid_t pid, int descriptor, char path[PATH_MAX]) {
    char link[64];
    if (descriptor == AT_FDCWD)
        snprintf(link, sizeof link, "/proc/%d/cwd", (int)pid);
    else
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, descriptor);
    ssize_t n = readlink(link, path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* The part of the path, whose symbolic links are resolved, below the folder; NULL: the path is
 * elsewhere. */
static const char *below(const char *folder, char path[PATH_MAX]) {
    size_t n = strlen(folder);
    if (strncmp(path, folder, n) != 0 || (path[n] != '/' && path[n])) return NULL;
    return path[n] ? path + n + 1 : path + n;
}

static const char *path_below(const char *folder, const call *c, int at, int path,
                              char buffer[PATH_MAX]) {
    char text[PATH_MAX], whole[2 * PATH_MAX], resolved[PATH_MAX];
    int descriptor = at < 0 ? AT_FDCWD : (int)c->argument[at];
    if (!read_string(c->pid, c->argument[path], text)) return NULL;
    if (*text == '/')
        snprintf(whole, sizeof whole, "%s", text);
    else if (link_target(c->pid, descriptor, resolved))
        snprintf(whole, sizeof whole, "%s/%s", resolved, text);
    else
        return NULL;
    char *slash = strrchr(whole, '/');
    *slash = 0;
    if (!realpath(*whole ? whole : "/", resolved)) return NULL;
    int n = snprintf(buffer, PATH_MAX, "%s/%s", resolved, slash + 1);
    return n < PATH_MAX ? below(folder, buffer) : NULL;
}

static const char *file_below(const char *folder, const call *c, int argument,
                              char buffer[PATH_MAX]) {
    int descriptor = (int)c->argument[argument];
    return descriptor >= 0 && link_target(c->pid, descriptor, buffer) ? below(folder, buffer)
                                                                      : NULL;
}

static uint64_t flags_of(const shape *s, const call *c) {
    if (s->flags >= 0) return c->argument[s->flags];
    return s->does == OPENS ? O_CREAT | O_WRONLY | O_TRUNC : 0; /* creat */
}

static bool nameless(const shape *s, const call *c) {
    return (flags_of(s, c) & O_TMPFILE) == O_TMPFILE;
}

bool changes(const char *folder, const call *c) {
    char path[PATH_MAX];
    const shape *s = shape_of(c);
    if (!s) return false;
    switch (s->does) {
    case OPENS:
        return (flags_of(s, c) & (O_CREAT | O_TRUNC) || nameless(s, c)) &&
               path_below(folder, c, s->at, s->path, path);
    case RENAMES:
    case LINKS:
        if (path_below(folder, c, s->more_at, s->more_path, path)) return true;
        return path_below(folder, c, s->at, s->path, path);
    case REMOVES:
    case REFUSED_PATH:
    case MODE_PATH:
    case SIZES_PATH:
        return path_below(folder, c, s->at, s->path, path);
    case MAPS:
        return c->argument[3] & MAP_SHARED && c->argument[2] & PROT_WRITE &&
               !(c->argument[3] & MAP_ANONYMOUS) && file_below(folder, c, s->at, path);
    default:
        return file_below(folder, c, s->at, path);
    }
}

/* ---- names and inodes --------------------------------------------------------------------- */

int find_name(const recording *r, const char *name) {
    for (int i = 0; i < r->n_names; i++)
        if (strcmp(r->names[i], name) == 0) return i;
    return NO_NAME;
}

bool in_folder(const recording *r, int name, int folder) {
    const char *slash = strrchr(r->names[name], '/');
    size_t n = slash ? (size_t)(slash - r->names[name]) : 0;
    return strlen(r->names[folder]) == n && strncmp(r->names[name], r->names[folder], n) == 0;
}

static int trouble(recording *r, const char *what, const char *where) {
    if (!*r->trouble) snprintf(r->trouble, sizeof r->trouble, "%s: %.150s", what, where);
    return -1;
}

static int name_of(recording *r, const char *name) {
    int i = find_name(r, name);
    if (i != NO_NAME) return i;
    if (r->n_names == MAX_NAMES) exit(2);
    r->names[r->n_names] = strdup(name);
    r->first[r->n_names] = NO_INODE;
    return r->n_names++;
}

static int new_inode(recording *r, uint64_t number) {
    if (r->n_inodes == MAX_INODES) exit(2);
    r->number[r->n_inodes] = number;
    return r->n_inodes++;
}

/* The newest inode with that number: the system uses numbers of removed files again. */
static int inode_of(const recording *r, uint64_t number) {
    for (int i = r->n_inodes; i-- > 0;)
        if (r->number[i] == number) return i;
    return NO_INODE;
}

int inode_now(const recording *r, int name) {
    if (name == NO_NAME) return NO_INODE;
    int inode = r->first[name];
    for (int i = 0; i < r->n; i++) {
        if (r->ops[i].kind != OP_NAME) continue;
        if (r->ops[i].name == name) inode = r->ops[i].inode;
        if (r->ops[i].gone == name) inode = NO_INODE;
    }
    return inode;
}

static op *add(recording *r, op_kind kind) {
    if (r->n == r->capacity) {
        r->capacity = r->capacity ? 2 * r->capacity : 1024;
        op *grown = realloc(r->ops, (size_t)r->capacity * sizeof *grown);
        if (!grown) exit(2);
        r->ops = grown;
    }
    r->ops[r->n] =
        (op){ .kind = kind, .gone = NO_NAME, .name = NO_NAME, .inode = NO_INODE, .call = r->calls };
    return &r->ops[r->n++];
}

static void add_name(recording *r, int name, int inode, int gone) {
    op *o = add(r, OP_NAME);
    o->name = name, o->inode = inode, o->gone = gone;
}

static void add_size(recording *r, int inode, int64_t size) {
    op *o = add(r, OP_SIZE);
    o->inode = inode, o->size = size;
}

/* ---- the operations of a call ------------------------------------------------------------- */

/* A call that is recorded: what is known before it is made, and examined after it. */
typedef struct observed {
    recording *r;
    pid_t thread; /* the thread that makes a changing call; 0: none */
    bool was_there;
    char path[PATH_MAX], more[PATH_MAX];
    const char *name, *more_name;
} observed;

static void add_open(observed *o, const call *c, const shape *s) {
    recording *r = o->r;
    struct stat file;
    char fd[64];
    snprintf(fd, sizeof fd, "/proc/%d/fd/%d", (int)c->pid, (int)c->result);
    if (stat(fd, &file) != 0) {
        trouble(r, "a descriptor of nothing", o->name);
        return;
    }
    if (nameless(s, c)) {
        new_inode(r, file.st_ino);
        return;
    }
    int name = name_of(r, o->name);
    if (!o->was_there)
        add_name(r, name, new_inode(r, file.st_ino), NO_NAME);
    else if (flags_of(s, c) & O_TRUNC)
        add_size(r, inode_of(r, file.st_ino), 0);
}

/* The offset at which a write began. If it is no argument of the call, it is the descriptor's
 * position, which is behind the written bytes now. */
static int64_t offset_of(const call *c, const shape *s) {
    char path[64];
    long long position = -1;
    if (s->flags >= 0) return (int64_t)c->argument[s->flags];
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", (int)c->pid, (int)c->argument[0]);
    FILE *f = fopen(path, "r");
    if (!f) return -1;
    if (fscanf(f, "pos: %lld", &position) != 1) position = -1;
    fclose(f);
    return position < 0 ? -1 : position - c->result;
}

/* Adds written bytes, which are read back from the file, in one way for every call that writes. */
static void add_write(recording *r, int inode, const char *fd, int64_t offset, int64_t n) {
    int file = open(fd, O_RDONLY | O_CLOEXEC);
    op *o = add(r, OP_WRITE);
    o->inode = inode, o->offset = offset, o->size = n;
    o->bytes = malloc((size_t)n + 1);
    if (offset < 0 || file < 0 || !o->bytes || pread(file, o->bytes, (size_t)n, offset) != n)
        trouble(r, "what was written cannot be read", fd);
    if (file >= 0) close(file);
}

static void add_file_call(observed *o, const call *c, const shape *s) {
    recording *r = o->r;
    struct stat file;
    char fd[64];
    snprintf(fd, sizeof fd, "/proc/%d/fd/%d", (int)c->pid, (int)c->argument[s->at]);
    if (stat(fd, &file) != 0) {
        trouble(r, "a descriptor of nothing", o->name);
        return;
    }
    if (S_ISDIR(file.st_mode)) {
        if (s->does == FLUSHES) {
            int folder = name_of(r, o->name);
            add(r, OP_SYNC_FOLDER)->name = folder;
        }
        return;
    }
    int inode = inode_of(r, file.st_ino);
    if (inode == NO_INODE)
        trouble(r, "a file that is not known", o->name);
    else if (s->does == WRITES && c->result > 0)
        add_write(r, inode, fd, offset_of(c, s), c->result);
    else if (s->does == GROWS && c->argument[1] != 0)
        trouble(r, "fallocate in a mode that is not modelled", o->name);
    else if (s->does == SIZES || s->does == GROWS)
        add_size(r, inode, file.st_size);
    else if (s->does == FLUSHES)
        add(r, OP_SYNC_FILE)->inode = inode;
}

static void add_path_call(observed *o, const call *c, const shape *s) {
    recording *r = o->r;
    if (s->does == OPENS) {
        add_open(o, c, s);
        return;
    }
    if (s->does == REMOVES) {
        add_name(r, name_of(r, o->name), NO_INODE, NO_NAME);
        return;
    }
    if (!o->name || !o->more_name || (s->does == RENAMES && flags_of(s, c))) {
        trouble(r, "a name from elsewhere, or names exchanged", o->name ? o->name : o->more_name);
        return;
    }
    int from = name_of(r, o->name), to = name_of(r, o->more_name);
    add_name(r, to, inode_now(r, from), s->does == RENAMES ? from : NO_NAME);
}

static void before(observed *o, const call *c, const shape *s) {
    struct stat file;
    recording *r = o->r;
    bool by_path = s->does <= SIZES_PATH, two = s->does == RENAMES || s->does == LINKS;
    o->name = by_path ? path_below(r->folder, c, s->at, s->path, o->path)
                      : file_below(r->folder, c, s->at, o->path);
    o->more_name = two ? path_below(r->folder, c, s->more_at, s->more_path, o->more) : NULL;
    o->was_there = o->name && stat(o->path, &file) == 0;
    r->calls++;
}

static verdict look(void *context, const call *c) {
    observed *o = context;
    const shape *s = shape_of(c);
    if (!c->made) {
        if (!changes(o->r->folder, c)) return GO_ON;
        if (o->thread) trouble(o->r, "two threads write at once", o->name);
        o->thread = c->thread;
        before(o, c, s);
        return GO_ON;
    }
    if (o->thread != c->thread) return GO_ON;
    o->thread = 0;
    if (c->result < 0) return GO_ON;
    if (s->does == REFUSED_PATH || s->does == REFUSED_FILE || s->does == MAPS ||
        s->does == SIZES_PATH)
        trouble(o->r, "a call that is not modelled", o->name);
    else if (s->does < SIZES_PATH && s->does != MODE_PATH)
        add_path_call(o, c, s);
    else if (s->does > SIZES_PATH)
        add_file_call(o, c, s);
    return GO_ON;
}

/* ---- the folder before -------------------------------------------------------------------- */

static bool read_content(const char *path, content *c) {
    struct stat s;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && fstat(fd, &s) == 0;
    if (ok) set_size(c, s.st_size);
    ok = ok && pread(fd, c->bytes, (size_t)c->size, 0) == c->size;
    if (fd >= 0) close(fd);
    hash_content(c);
    return ok;
}

static void read_folder(recording *r, const char *folder) {
    char path[PATH_MAX];
    struct stat s;
    DIR *names = opendir(folder);
    if (!names) trouble(r, "no folder", folder);
    for (struct dirent *e; names && (e = readdir(names)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= (int)sizeof path ||
            lstat(path, &s) != 0)
            trouble(r, "cannot be looked at", path);
        else if (S_ISDIR(s.st_mode))
            read_folder(r, path);
        else if (S_ISREG(s.st_mode)) {
            int name = name_of(r, path + strlen(r->folder) + 1);
            r->first[name] = inode_of(r, s.st_ino);
            if (r->first[name] != NO_INODE) continue;
            r->first[name] = new_inode(r, s.st_ino);
            if (!read_content(path, &r->initial[r->first[name]]))
                trouble(r, "cannot be read", path);
        }
    }
    if (names) closedir(names);
}

bool record(recording *r, const char *folder, char *const *argv, const char *said) {
    *r = (recording){ 0 };
    observed o = { .r = r };
    if (!realpath(folder, r->folder)) return trouble(r, "no folder", folder), false;
    read_folder(r, r->folder);
    r->status = watch(folder, argv, said, look, &o);
    if (r->status == -1) trouble(r, "programs cannot be watched here (ptrace)", argv[0]);
    return !*r->trouble;
}

void recording_free(recording *r) {
    for (int i = 0; i < r->n_names; i++) free(r->names[i]);
    for (int i = 0; i < r->n_inodes; i++) free(r->initial[i].bytes);
    for (int i = 0; i < r->n; i++) free(r->ops[i].bytes);
    free(r->ops);
    *r = (recording){ 0 };
}
