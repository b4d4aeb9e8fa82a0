/* tools/cli/uses.c - which files a program reads and writes. See uses.h. */
#include "uses.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output.h"

enum { MOST = 24, MESSAGE = 256 };

typedef struct used {
    used_file file;
    const char *dashes; /* of an option's name */
    bool standard;      /* a stream that the program was started with */
    bool there, placed; /* it is there; or it is not, and its folder is */
    struct stat s;      /* of the file; of the folder */
    char target[PATH_SIZE];
} used;

static void identify(used *u) {
    char folder[PATH_SIZE];
    u->there = (u->file.path ? stat(u->file.path, &u->s) : fstat(u->file.descriptor, &u->s)) == 0;
    if (u->there || !u->file.path || !output_target(u->file.path, u->target)) return;
    output_folder(u->target, folder);
    u->placed = stat(folder, &u->s) == 0;
}

static const char *last_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Of files that are not there yet: "a" and "A" may be one when they are, in some file systems. */
static bool same_file(const used *a, const used *b) {
    if (a->there != b->there || a->s.st_dev != b->s.st_dev || a->s.st_ino != b->s.st_ino)
        return false;
    if (a->there) return true;
    return a->placed && b->placed && strcasecmp(last_name(a->target), last_name(b->target)) == 0;
}

static bool writes(const used *u) {
    return u->file.use != USE_INPUT;
}

static const char *name_of(const used *u) {
    return u->file.path ? u->file.path : u->file.name;
}

/* What two uses of one file can't be: of a terminal, a device or a pipe they can, but a pipe gives
 * its bytes once. */
static void check_pair(const program *p, const used *a, const used *b) {
    bool regular = !a->there || S_ISREG(a->s.st_mode), pipe = a->there && S_ISFIFO(a->s.st_mode);
    if (!same_file(a, b) || (a->standard && b->standard && writes(a) == writes(b))) return;
    const used *named = !a->file.path || (writes(b) && b->file.path) ? b : a;
    if (regular && writes(a) && writes(b))
        usage_error(p, "%.100s is to be two outputs at once: %s%s and %s%s", name_of(named),
                    a->dashes, a->file.name, b->dashes, b->file.name);
    if (regular && writes(a) != writes(b))
        usage_error(p,
                    "%.100s is to be read and written at once: %s%s and %s%s; give the output "
                    "another name",
                    name_of(named), a->dashes, a->file.name, b->dashes, b->file.name);
    if (pipe && !writes(a) && !writes(b) && !a->standard && !b->standard)
        usage_error(p, "%.100s is a pipe, which can be read only once: %s%s and %s%s",
                    name_of(named), a->dashes, a->file.name, b->dashes, b->file.name);
}

static void check_writable(const program *p, const used *u) {
    char message[MESSAGE];
    if (u->standard || !writes(u)) return;
    if (!output_writable(u->file.path, u->file.use == USE_LOG, message)) fail(p, "%s", message);
}

static int add(used *all, int n, const char *dashes, const used_file *file, bool standard) {
    if (n == MOST || file->use == USE_NONE) return n;
    all[n] = (used){ .dashes = dashes, .file = *file, .standard = standard };
    identify(&all[n]);
    return n + 1;
}

void check_uses(const program *p, const used_file *more, int n_more) {
    static const used_file streams[] = { { "stdin", NULL, STDIN_FILENO, USE_INPUT },
                                         { "stdout", NULL, STDOUT_FILENO, USE_LOG },
                                         { "stderr", NULL, STDERR_FILENO, USE_LOG } };
    static used all[MOST];
    int n = 0;
    for (const option *o = p->options; o < p->options + p->n; o++)
        if (o->use != USE_NONE && *(const char **)o->value)
            n = add(all, n, "--", &(used_file){ o->name, *(const char **)o->value, -1, o->use },
                    false);
    if (p->config) n = add(all, n, "--", &(used_file){ "config", p->config, -1, USE_INPUT }, false);
    if (p->operand && *p->operand)
        n = add(all, n, "", &(used_file){ p->operand_name, *p->operand, -1, p->operand_use },
                false);
    for (int i = 0; i < n_more; i++) n = add(all, n, "", &more[i], false);
    for (int i = 0; i < 3; i++) n = add(all, n, "", &streams[i], true);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++) check_pair(p, &all[k], &all[i]);
    for (int i = 0; i < n; i++) check_writable(p, &all[i]);
}
