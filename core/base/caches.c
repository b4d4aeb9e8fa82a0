/* core/base/caches.c - finds the processor's data caches; see caches.h.
 *
 * On x86-64 the source is CPUID; elsewhere, or if CPUID reports no first-level cache, it is Linux's
 * sysfs. Both report what the hypervisor of a virtual machine lets through, which may be wrong:
 * sizes that no real processor has are replaced. Nothing is allocated, and nothing fails. If a
 * processor has cores of several kinds, CPUID describes the core that runs this code; sysfs is read
 * for cpu0. */
#include "core/base/caches.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/graph.h"

enum { LEVELS = 3, MOST_WAYS = 64, MOST_THREADS = 4096 };

static wf_cache_level *level_of(wf_caches *c, int64_t level) {
    return level == 1 ? &c->l1 : level == 2 ? &c->l2 : level == 3 ? &c->l3 : NULL;
}

/* ---- from text ------------------------------------------------------------------------------- */

/* Reads the digits at *text as a number, and moves *text behind them. Returns -1 if there is no
 * digit, or if the number exceeds `most`. */
static int64_t count_of(const char **text, int64_t most) {
    int64_t value = 0;
    if (**text < '0' || **text > '9') return -1;
    for (; **text >= '0' && **text <= '9'; ++*text) {
        value = 10 * value + (**text - '0');
        if (value > most) return -1;
    }
    return value;
}

static bool skip(const char **text, char c) {
    return **text == c && ++*text;
}

/* Reads a size, which may end in K or M as Linux writes it: 48K. */
static int64_t bytes_of(const char **text) {
    int64_t value = count_of(text, INT64_C(1) << 40);
    if (value >= 0 && skip(text, 'K')) return value << 10;
    return value >= 0 && skip(text, 'M') ? value << 20 : value;
}

/* For a cache of each level: the least and most bytes that a real processor has, and the cache that
 * is assumed if the reported size is unknown or outside these bounds. */
static const struct {
    int64_t least, most;
    wf_cache_level usual;
} bounds[LEVELS] = {
    { 4 << 10, 1 << 20, { 32 << 10, 8, 1 } },
    { 32 << 10, 128 << 20, { 512 << 10, 8, 1 } },
    { 32 << 10, INT64_C(4) << 30, { 8 << 20, 16, 1 } },
};

static bool is_known(const wf_cache_level *c, int i) {
    return c->bytes >= bounds[i].least && c->bytes <= bounds[i].most;
}

bool wf_caches_parse(const char *text, int processors, wf_caches *c) {
    wf_caches said = { 0 };
    for (int i = 0; i < LEVELS; i++) {
        wf_cache_level *level = level_of(&said, i + 1);
        level->threads = i + 1 < LEVELS ? 1 : processors;
        if (i > 0 && !skip(&text, ',')) return false;
        level->bytes = bytes_of(&text);
        if (!is_known(level, i) || !skip(&text, '/')) return false;
        if ((level->ways = (int)count_of(&text, MOST_WAYS)) < 1) return false;
        if (skip(&text, '/') && (level->threads = (int)count_of(&text, MOST_THREADS)) < 1)
            return false;
        if (i > 0 && level->bytes < level_of(&said, i)->bytes) return false;
    }
    if (*text) return false;
    *c = said;
    return true;
}

static void print_bytes(int64_t bytes, char text[24]) {
    int shift = bytes == 0 ? 0 : bytes % (1 << 20) == 0 ? 20 : bytes % (1 << 10) == 0 ? 10 : 0;
    snprintf(text, 24, "%lld%s", (long long)(bytes >> shift),
             shift == 20   ? "M"
             : shift == 10 ? "K"
                           : "");
}

void wf_caches_print(const wf_caches *c, char text[CACHES_TEXT]) {
    char size[LEVELS][24];
    print_bytes(c->l1.bytes, size[0]);
    print_bytes(c->l2.bytes, size[1]);
    print_bytes(c->l3.bytes, size[2]);
    snprintf(text, CACHES_TEXT, "%s/%d/%d,%s/%d/%d,%s/%d/%d", size[0], c->l1.ways, c->l1.threads,
             size[1], c->l2.ways, c->l2.threads, size[2], c->l3.ways, c->l3.threads);
}

/* ---- from the processor ---------------------------------------------------------------------- */

#if defined(__x86_64__)
#include <cpuid.h>

/* Reads CPUID leaf 4 of Intel, or AMD's leaf of the same form. */
static void ask_leaf(unsigned leaf, wf_caches *c) {
    enum { DATA = 1, UNIFIED = 3, MOST_CACHES = 16 };
    unsigned a, b, n_sets, d;
    for (unsigned i = 0; i < MOST_CACHES; i++) {
        if (!__get_cpuid_count(leaf, i, &a, &b, &n_sets, &d) || (a & 31) == 0) return;
        wf_cache_level *level = level_of(c, a >> 5 & 7);
        if (!level || ((a & 31) != DATA && (a & 31) != UNIFIED)) continue;
        uint64_t ways = (b >> 22) + 1, parts = (b >> 12 & 1023) + 1, line = (b & 4095) + 1;
        uint64_t bytes = ways * parts * line * ((uint64_t)n_sets + 1);
        *level = (wf_cache_level){ (int64_t)bytes, (int)ways, (int)(a >> 14 & 4095) + 1 };
    }
}

static void ask_processor(wf_caches *c) {
    enum { AMD_SAYS = 1 << 22 };
    unsigned a, b, features = 0, d;
    ask_leaf(4, c);
    if (c->l1.bytes == 0 && __get_cpuid(0x80000001, &a, &b, &features, &d) && features & AMD_SAYS)
        ask_leaf(0x8000001D, c);
}
#else
static void ask_processor(wf_caches *c) {
    (void)c;
}
#endif

/* ---- from Linux ------------------------------------------------------------------------------ */

enum { LINE = 256 };

/* Reads the beginning of the file FOLDER/indexINDEX/NAME into `line`, which stays empty if there is
 * no such file. */
static const char *read_line(const char *folder, int index, const char *name, char line[LINE]) {
    char path[LINE];
    int length = snprintf(path, sizeof path, "%s/index%d/%s", folder, index, name);
    int file = length < LINE ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = file >= 0 ? read(file, line, LINE - 1) : 0;
    if (file >= 0) close(file);
    line[n > 0 ? n : 0] = '\0';
    return line;
}

static int64_t read_count(const char *folder, int index, const char *name) {
    char line[LINE];
    const char *text = read_line(folder, index, name, line);
    int64_t value = bytes_of(&text);
    return value > 0 ? value : 0;
}

/* The number of processors in a list such as 0-3,8; 0 if the list is malformed or too long. */
static int count_list(const char *text) {
    int64_t n = 0;
    do {
        int64_t first = count_of(&text, MOST_THREADS), last = first;
        if (skip(&text, '-')) last = count_of(&text, MOST_THREADS);
        if (first < 0 || last < first) return 0;
        n += last - first + 1;
    } while (skip(&text, ','));
    return n <= MOST_THREADS ? (int)n : 0;
}

void wf_caches_read(const char *folder, wf_caches *c) {
    enum { MOST_CACHES = 8 };
    char line[LINE];
    *c = (wf_caches){ 0 };
    for (int i = 0; i < MOST_CACHES; i++) {
        wf_cache_level *level = level_of(c, read_count(folder, i, "level"));
        char type = *read_line(folder, i, "type", line);
        if (!level || (type != 'D' && type != 'U')) continue; /* Data, Unified */
        level->bytes = read_count(folder, i, "size");
        int64_t ways = read_count(folder, i, "ways_of_associativity");
        level->ways = ways <= MOST_WAYS ? (int)ways : 0;
        level->threads = count_list(read_line(folder, i, "shared_cpu_list", line));
    }
}

/* ---- fit for use ----------------------------------------------------------------------------- */

static int between(int low, int value, int high) {
    return value < low ? low : value > high ? high : value;
}

/* A virtual machine with two cores of a socket may report the socket's whole third level, although
 * other machines use that cache, too. So the size is limited to 8 MiB times the number of this
 * machine's processors. If the level seems to belong to one thread alone, up to 8 processors are
 * assumed to share it. */
static void mend_shared(wf_cache_level *l3, int processors) {
    const int64_t most = (int64_t)8 << 20;
    const int usual_sharers = 8;
    if (l3->threads <= 1) l3->threads = between(1, processors, usual_sharers);
    if (l3->bytes > most * processors) l3->bytes = most * processors;
}

void wf_caches_mend(wf_caches *c, int processors) {
    if (processors < 1) processors = 1;
    bool has_third = c->l3.bytes > 0, has_second = is_known(&c->l2, 1);
    for (int i = 0; i < LEVELS; i++) {
        wf_cache_level *level = level_of(c, i + 1);
        if (!is_known(level, i)) *level = bounds[i].usual;
        if (level->ways < 1 || level->ways > MOST_WAYS) level->ways = bounds[i].usual.ways;
        /* CPUID of x86-64 gives the number of thread ids that could share a cache; the machine may
         * have fewer threads. */
        level->threads = between(1, level->threads, processors);
    }
    if (has_second && !has_third)
        c->l3 = c->l2;
    else
        mend_shared(&c->l3, processors);
    if (c->l2.bytes < c->l1.bytes) c->l2.bytes = c->l1.bytes;
    if (c->l3.bytes < c->l2.bytes) c->l3.bytes = c->l2.bytes;
}

/* ---- once ------------------------------------------------------------------------------------ */

static wf_caches here;
static char here_text[CACHES_TEXT];

/* A malformed WEFT_CACHES is ignored, because nothing can be reported here. Programs notice it:
 * wf_caches_text() then differs from the variable. */
static void find(void) {
    const char *wanted = getenv("WEFT_CACHES");
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int processors = online > MOST_THREADS ? MOST_THREADS : online < 1 ? 1 : (int)online;
    if (wanted && strlen(wanted) < CACHES_TEXT && wf_caches_parse(wanted, processors, &here)) {
        memcpy(here_text, wanted, strlen(wanted) + 1);
        return;
    }
    ask_processor(&here);
    if (here.l1.bytes == 0) wf_caches_read("/sys/devices/system/cpu/cpu0/cache", &here);
    wf_caches_mend(&here, processors);
    wf_caches_print(&here, here_text);
}

static void find_once(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find);
}

const wf_caches *wf_caches_here(void) {
    find_once();
    return &here;
}

const char *wf_caches_text(void) {
    find_once();
    return here_text;
}
