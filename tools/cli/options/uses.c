/* tools/cli/options/uses.c - which files a program reads and writes. See uses.h. */
#include "uses.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/op.h"
#include "tools/cli/output.h"
#include "tools/page/page.h"

typedef struct used {
    used_file file;
    const char *dashes; /* "--" before an option's name, else "" */
    bool standard;      /* the entry of stdin, stdout or stderr itself, or an output given as "-" */
    bool there, placed; /* there: the file exists; placed: only its folder exists */
    struct stat s;      /* status of the file, or of its folder */
    /* the file's name within its folder, if the file does not exist; must be freed */
    char *name;
} used;

static const char *last_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool writes(const used *u) {
    return u->file.use != USE_INPUT && u->file.use != USE_MODEL;
}

/* True if the use is "-", or a stream that no option names. */
static bool is_stream(const used *u) {
    return !u->file.path || is_dash(u->file.path);
}

static void identify(const program *p, used *u) {
    char folder[PATH_SIZE], target[PATH_SIZE];
    bool named = !is_stream(u);
    u->there = (named ? stat(u->file.path, &u->s) : fstat(u->file.descriptor, &u->s)) == 0;
    if (u->there || !named || !output_target(u->file.path, target)) return;
    output_folder(target, folder);
    u->placed = stat(folder, &u->s) == 0;
    u->name = memory_or_fail(p, strdup(last_name(target)));
}

/* True if both are one file. Of files that do not exist yet, folders and names are compared; "a"
 * and "A" count as equal, because some file systems make them one file. */
static bool same_file(const used *a, const used *b) {
    if (a->there != b->there || a->s.st_dev != b->s.st_dev || a->s.st_ino != b->s.st_ino)
        return false;
    if (a->there) return true;
    return a->placed && b->placed && strcasecmp(a->name, b->name) == 0;
}

static const char *name_of(const used *u) {
    if (!is_dash(u->file.path)) return u->file.path ? u->file.path : u->file.name;
    return writes(u) ? "stdout" : "stdin";
}

/* Refuses two uses of one file that exclude each other. Terminals, devices and pipes may be used
 * twice, but a pipe gives its bytes only once. */
static void check_pair(const program *p, const used *a, const used *b) {
    bool regular = !a->there || S_ISREG(a->s.st_mode), pipe = a->there && S_ISFIFO(a->s.st_mode);
    if (!same_file(a, b) || (a->standard && b->standard && writes(a) == writes(b))) return;
    bool once = (pipe || is_stream(a)) && !writes(a) && !a->standard && !b->standard;
    const used *named = !a->file.path || (writes(b) && b->file.path) ? b : a;
    if (regular && writes(a) && writes(b))
        usage_error(p,
                    "%.100s is to be two outputs at once: %s%s and %s%s; give one of them another "
                    "name",
                    name_of(named), a->dashes, a->file.name, b->dashes, b->file.name);
    if (regular && writes(a) != writes(b))
        usage_error(p,
                    "%.100s is to be read and written at once: %s%s and %s%s; give the output "
                    "another name",
                    name_of(named), a->dashes, a->file.name, b->dashes, b->file.name);
    if (once && !writes(b))
        usage_error(p, "%.100s%s can be read only once: %s%s and %s%s", name_of(named),
                    is_dash(named->file.path) ? "" : " is a pipe, which", a->dashes, a->file.name,
                    b->dashes, b->file.name);
}

/* Reads the first bytes of a file. Returns how many; 0: there are none, or see errno. */
static size_t first_bytes(const char *path, char *bytes, size_t size) {
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(bytes, 1, size, f) : 0;
    int reason = errno;
    if (f) fclose(f);
    errno = reason;
    return n;
}

/* Reads the first bytes of an ordinary file. Exits if it has bytes and they cannot be read. */
static size_t read_head(const program *p, const used *u, char *head, size_t size) {
    if (!u->there || !S_ISREG(u->s.st_mode) || u->s.st_size == 0) return 0;
    size_t n = first_bytes(u->file.path, head, size);
    if (!n)
        fail(p, "%s is there and can't be read: %s; remove it, or give another name", u->file.path,
             strerror(errno));
    return n;
}

static bool ends(const char *text, size_t n, const char *end) {
    size_t length = strlen(end);
    return n >= length && memcmp(text + n - length, end, length) == 0;
}

/* True if an archive's first entry is an array of numpy or a part of a file of torch.save. */
static bool is_archive_of_model(const char *head, size_t n) {
    static const char *const names[] = { ".npy", "/data.pkl", "/version", "/byteorder",
                                         "/.format_version" };
    enum { LENGTH = 26, NAME = 30 }; /* offsets in an entry: the length of its name, and its name */
    if (n <= NAME || memcmp(head, "PK\3\4", 4) != 0) return false;
    size_t length = (unsigned char)head[LENGTH] | (size_t)(unsigned char)head[LENGTH + 1] << 8;
    if (length > n - NAME) return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ends(head + NAME, length, names[i])) return true;
    return false;
}

/* True if a file of `size` bytes begins with the length of a header, and an object of JSON. */
static bool is_safetensors(const char *head, size_t n, int64_t size) {
    uint64_t length = 0;
    if (n < 10 || head[8] != '{' || !memchr("\"} ", head[9], 3)) return false;
    for (int i = 7; i >= 0; i--) length = length << 8 | (unsigned char)head[i];
    return length <= (uint64_t)size - 8;
}

bool is_safetensors_file(const char *path) {
    char head[10];
    struct stat s;
    size_t n = first_bytes(path, head, sizeof head);
    return n && stat(path, &s) == 0 && is_safetensors(head, n, s.st_size);
}

/* True if a file begins like a model: safetensors, an archive of numpy or PyTorch, or a binary file
 * of Marian. */
static bool begins_as_model(const char *head, size_t n, int64_t size) {
    static const char binary[8] = { 1 };
    return is_safetensors(head, n, size) || is_archive_of_model(head, n) ||
           (n > 8 && memcmp(head, binary, 8) == 0);
}

/* True if a program of weft wrote this picture, page, C file or record of attention. Its first line
 * says it; all pages begin with the same lines. */
static bool begins_as_drawn(const char *head) {
    static const struct {
        const char *begin, *end;
    } lines[] = {
        { "digraph weft {", "{" },
        { "{\"event\":\"attention\",", "" },
        { "/* ", ", as C that needs no library." },
        { "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", " role=\"img\">" },
    };
    size_t length = strcspn(head, "\n");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (strncmp(head, lines[i].begin, strlen(lines[i].begin)) == 0 &&
            ends(head, length, lines[i].end))
            return true;
    return strncmp(head, PAGE_BEGINNING, strlen(PAGE_BEGINNING)) == 0;
}

/* True if there are no control characters but those of text. */
static bool is_plain(const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)bytes[i] < ' ' && !memchr("\t\r\n", bytes[i], 3)) return false;
    return n > 0;
}

/* Why a file that begins with these bytes is not replaced; NULL: it may be. */
static const char *refusal(const used *u, const char *head, size_t n) {
    bool model = begins_as_model(head, n, u->s.st_size);
    switch (u->file.use) {
    case USE_NEW_MODEL:
        return model ? NULL : "is no model";
    case USE_DRAWN:
        return begins_as_drawn(head) ? NULL : "weft did not write it";
    case USE_TOKENIZER:
        return strncmp(head, "{\"version\":\"1.0\"", 16) == 0 ? NULL : "weft did not write it";
    case USE_LOG:
        return strncmp(head, "{\"event\":\"", 10) == 0 ? NULL : "is no log of a training";
    case USE_NUMBERS:
        if (model) return "is a model";
        return is_plain(head, n) ? "is a text" : NULL;
    case USE_OUTPUT:
        if (!*u->dashes) return NULL;
        if (model) return "is a model";
        return begins_as_drawn(head) ? "is a picture or a page of weft" : NULL;
    default:
        return NULL;
    }
}

/* Refuses to replace a file of another kind than the one that is written: it may be the only copy.
 * --overwrite is about files of the same kind. */
static void check_replaced(const program *p, const used *u) {
    char head[4096];
    size_t n = read_head(p, u, head, sizeof head - 1);
    head[n] = '\0';
    const char *why = n ? refusal(u, head, n) : NULL;
    if (why && u->file.use == USE_NEW_MODEL)
        fail(p, "%s is there and %s: remove it, or give the model another name", u->file.path, why);
    if (why)
        fail(p, "%s is there and %s: remove it, or give %s%s another name", u->file.path, why,
             u->dashes, u->file.name);
}

/* Exits if the name of an output promises a format that weft does not write. */
static void check_ending(const program *p, const used *u) {
    static const char *const others[] = { ".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf" };
    size_t n = strlen(u->file.path);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (ends(u->file.path, n, others[i]))
            fail(p, "%s: weft does not write %s files: its pictures are .svg, its pages .html",
                 u->file.path, others[i]);
}

static void check_writable(const program *p, const used *u) {
    char message[WF_MESSAGE];
    if (u->standard || !writes(u) || is_stream(u)) return;
    check_ending(p, u);
    bool folder = u->file.use == USE_FOLDER, log = u->file.use == USE_LOG;
    bool ok = folder ? output_folder_writable(u->file.path, message)
                     : output_writable(u->file.path, log, message);
    if (!ok) fail(p, "%s", message);
    check_replaced(p, u);
}

/* The end of the message about a folder given in place of a model's file: what to do next. */
static const char *folder_remedy(const char *folder) {
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%.*s/config.json", PATH_SIZE - 32, folder);
    if (access(path, F_OK) == 0)
        return "; convert --from hf makes a model file from a folder of Hugging Face";
    snprintf(path, sizeof path, "%.*s/adapter_config.json", PATH_SIZE - 32, folder);
    if (access(path, F_OK) == 0)
        return "; convert --from hf --base MODEL makes a file of adapters from a folder of PEFT";
    return ", and a model is a file that train or convert wrote";
}

/* True if the file begins with bytes of a text: a model's file begins with a number in binary. */
static bool begins_as_text(const char *path) {
    char first[8];
    size_t n = first_bytes(path, first, sizeof first);
    /* a pointer of Git LFS is text, too, but the reader of models has a better message for it */
    bool pointer = n == sizeof first && memcmp(first, "version ", n) == 0;
    return is_plain(first, n) && !pointer;
}

/* Fails if the path is that of a training's best weights (NAME.best...), and only the training's
 * own file exists: the message says when train writes the best weights. */
static void check_best(const program *p, const char *path) {
    static const char best[] = ".best";
    const char *slash = strrchr(path, '/'), *at = strstr(slash ? slash : path, best);
    char other[PATH_SIZE];
    if (!at || strlen(path) >= sizeof other) return;
    snprintf(other, sizeof other, "%.*s%s", (int)(at - path), path, at + strlen(best));
    if (access(other, F_OK) != 0) return;
    fail(p,
         "%s is not there, and %s is: train writes the best weights at a validation, but not for "
         "copy, reverse and sort, nor with nothing held out",
         path, other);
}

void check_model_file(const program *p, const char *path) {
    struct stat s;
    if (stat(path, &s) != 0) return;
    if (S_ISDIR(s.st_mode))
        fail(p, "%s can't be read: it is a folder%s", path, folder_remedy(path));
    if (S_ISREG(s.st_mode) && begins_as_text(path))
        fail(p, "%s is no model but perhaps a text: name a model, as train or convert wrote it%s",
             path, p->by_place[1] ? ", before the text" : "");
}

/* Refuses a folder where a file is read, and a text where a model is. */
static void check_readable(const program *p, const used *u) {
    if (!u->there && u->file.use == USE_MODEL) check_best(p, u->file.path);
    if (writes(u) || is_stream(u) || !u->there) return;
    if (u->file.use == USE_MODEL) check_model_file(p, u->file.path);
    if (S_ISDIR(u->s.st_mode)) fail(p, "%s can't be read: it is a folder", u->file.path);
}

typedef struct list {
    const program *p;
    used *all;
    int n;
} list;

static void add(list *l, const char *dashes, const used_file *file, bool standard) {
    if (file->use == USE_NONE) return;
    used *u = &l->all[l->n];
    *u = (used){ .dashes = dashes, .file = *file, .standard = standard };
    if (is_dash(file->path)) {
        u->file.descriptor = writes(u) ? STDOUT_FILENO : STDIN_FILENO;
        u->standard = writes(u);
    }
    identify(l->p, &l->all[l->n++]);
}

/* Adds the files that options name, the program's operand, and the three standard streams. */
static void add_told(list *l) {
    static const used_file streams[] = { { "stdin", NULL, STDIN_FILENO, USE_INPUT },
                                         { "stdout", NULL, STDOUT_FILENO, USE_LOG },
                                         { "stderr", NULL, STDERR_FILENO, USE_LOG } };
    const program *p = l->p;
    for (const option *o = p->options; o < p->options + p->n; o++)
        if (o->use != USE_NONE && *(const char **)o->value)
            add(l, "--", &(used_file){ o->name, *(const char **)o->value, -1, o->use }, false);
    if (p->config) add(l, "--", &(used_file){ "config", p->config, -1, USE_INPUT }, false);
    if (p->operand && *p->operand)
        add(l, "", &(used_file){ p->operand_name, *p->operand, -1, p->operand_use }, false);
    for (int i = 0; i < 3; i++) add(l, "", &streams[i], true);
}

/* Checks all pairs of files. The files that no option names may be thousands; if all of them are
 * inputs they cannot contradict each other, and are not compared with each other. */
static void check_pairs(const list *l, int n_told, bool only_inputs) {
    for (int i = 0; i < l->n; i++)
        for (int k = 0; k < (i < n_told || !only_inputs ? i : n_told); k++)
            check_pair(l->p, &l->all[k], &l->all[i]);
}

void check_uses(const program *p, const used_file *more, int n_more) {
    size_t most = (size_t)p->n + (size_t)n_more + 5;
    list l = { .p = p, .all = memory_or_fail(p, calloc(most, sizeof *l.all)) };
    bool only_inputs = true;
    add_told(&l);
    int n_told = l.n;
    for (int i = 0; i < n_more; i++) {
        add(&l, "", &more[i], false);
        only_inputs = only_inputs && (more[i].use == USE_INPUT || more[i].use == USE_NONE);
    }
    check_pairs(&l, n_told, only_inputs);
    for (int i = 0; i < l.n; i++) check_readable(p, &l.all[i]);
    for (int i = 0; i < l.n; i++) check_writable(p, &l.all[i]);
    for (int i = 0; i < l.n; i++) free(l.all[i].name);
    free(l.all);
}
