/* core/file/zip.c - ZIP archives as torch.save writes them: every record is stored without
 * compression.
 *
 * The directory stands at the end (PKWARE's APPNOTE 4.3): a header for each record, then their
 * number and the directory's place. Numbers above 32 bits are in ZIP64 fields, and torch always
 * writes these at the end. Each record has a local header in front of its bytes, of which only the
 * length and the name are needed. A data descriptor, a copy of checksum and sizes, may follow. */
#include "zip.h"

#include <stdlib.h>
#include <string.h>

enum {
    LOCAL = 0x04034B50,
    CENTRAL = 0x02014B50,
    END64 = 0x06064B50,
    LOCATOR64 = 0x07064B50,
    END = 0x06054B50,
    LOCAL_SIZE = 30,
    CENTRAL_SIZE = 46,
    END64_SIZE = 56,
    LOCATOR64_SIZE = 20,
    END_SIZE = 22,
    /* size of the longest data descriptor after a record */
    COPY_SIZE = 24,
    /* bit 3: a data descriptor follows; bit 11: names are UTF-8 */
    KNOWN_FLAGS = 0x0808,
    MAX_NAME = 255
};

static uint64_t number(const void *at, int bytes) {
    const unsigned char *p = at;
    uint64_t n = 0;
    while (bytes-- > 0) n = n << 8 | p[bytes];
    return n;
}

static bool read_at(wf_file *f, struct source *s, int64_t at, void *to, size_t n) {
    if (at < 0 || at > s->size || (uint64_t)(s->size - at) < n)
        return wf_file_fail(f->error, "damaged: its parts are not where its directory says");
    s->at = at;
    return wf_source_read(f, s, to, n);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* The directory's offset, size and end, and its number of headers. It ends where the records about
 * the archive's end begin. */
struct directory {
    int64_t at, size, end;
    uint64_t count;
};

static bool read_end64(wf_file *f, struct source *s, int64_t at, struct directory *d) {
    char end[END64_SIZE];
    if (!read_at(f, s, at, end, sizeof end)) return false;
    if (number(end, 4) != END64 || number(end + 24, 8) != number(end + 32, 8))
        return wf_file_fail(f->error, "damaged: no ZIP64 end of the directory where it should be");
    *d = (struct directory){ (int64_t)number(end + 48, 8), (int64_t)number(end + 40, 8), at,
                             number(end + 32, 8) };
    return true;
}

static bool read_end(wf_file *f, struct source *s, struct directory *d) {
    char end[END_SIZE], locator[LOCATOR64_SIZE];
    int64_t at = s->size - END_SIZE;
    if (at < 0 || !read_at(f, s, at, end, sizeof end) || number(end, 4) != END)
        return wf_file_fail(f->error, "a ZIP archive without its end: cut off?");
    *d = (struct directory){ (int64_t)number(end + 16, 4), (int64_t)number(end + 12, 4), at,
                             number(end + 10, 2) };
    if (at < LOCATOR64_SIZE) return true;
    at -= LOCATOR64_SIZE;
    if (!read_at(f, s, at, locator, sizeof locator)) return false;
    return number(locator, 4) != LOCATOR64 || read_end64(f, s, (int64_t)number(locator + 8, 8), d);
}

static bool read_directory(wf_file *f, struct source *s, wf_zip *z, struct directory *d) {
    if (!read_end(f, s, d)) return false;
    if (d->at < 0 || d->size < 0 || d->at > d->end || d->size != d->end - d->at ||
        d->count > (uint64_t)d->size / CENTRAL_SIZE || d->count > INT32_MAX)
        return wf_file_fail(f->error, "damaged: its directory is not where its end says");
    return wf_file_allocate(f, &z->directory, (uint64_t)d->size + 1) &&
           read_at(f, s, d->at, z->directory, (size_t)d->size);
}

/* ---- its records ----------------------------------------------------------------------------- */

/* A 32-bit field with all bits set means that its number is in an extra field, in 64 bits. Several
 * such numbers follow each other in the order of `fields`. */
static bool read_wide(const char *extra, size_t n, uint64_t *const fields[3]) {
    while (n >= 4) {
        size_t size = (size_t)number(extra + 2, 2);
        bool wide = number(extra, 2) == 1;
        if (size > n - 4) return false;
        extra += 4;
        n -= 4 + size;
        for (int i = 0; wide && i < 3; i++) {
            if (*fields[i] != UINT32_MAX) continue;
            if (size < 8) return false;
            *fields[i] = number(extra, 8);
            extra += 8;
            size -= 8;
        }
        if (wide) return true;
        extra += size;
    }
    return true;
}

/* Reads a record's header in the directory, of which `left` bytes remain. The name is not
 * terminated yet, as the next header may follow at once. */
static bool read_record(wf_file *f, const char *at, size_t left, wf_zip_record *r, size_t *length) {
    if (left < CENTRAL_SIZE || number(at, 4) != CENTRAL)
        return wf_file_fail(f->error, "damaged: no record where the directory should have one");
    size_t n = (size_t)number(at + 28, 2), extra = (size_t)number(at + 30, 2);
    uint64_t packed = number(at + 20, 4), size = number(at + 24, 4), header = number(at + 42, 4);
    const char *name = at + CENTRAL_SIZE;
    *length = CENTRAL_SIZE + n + extra + (size_t)number(at + 32, 2);
    if (*length > left || !n || n > MAX_NAME || memchr(name, 0, n) ||
        !read_wide(name + n, extra, (uint64_t *const[]){ &size, &packed, &header }))
        return wf_file_fail(f->error, "damaged: a record's name in the directory");
    int shown = (int)(n < 80 ? n : 80);
    if (number(at + 10, 2) || number(at + 8, 2) & ~(uint64_t)KNOWN_FLAGS || packed != size)
        return wf_file_fail(f->error,
                            "'%.*s' is compressed or encrypted: torch.save and savez do neither",
                            shown, name);
    if (size > INT64_MAX || header > INT64_MAX)
        return wf_file_fail(f->error, "'%.*s' is too large", shown, name);
    *r = (wf_zip_record){ name, (int64_t)header, 0, (int64_t)size, (uint32_t)number(at + 16, 4) };
    return true;
}

static bool read_records(wf_file *f, wf_zip *z, const struct directory *d) {
    const char *at = z->directory, *end = at + d->size;
    z->records = calloc((size_t)d->count + 1, sizeof *z->records);
    z->named = calloc((size_t)d->count + 1, sizeof *z->named);
    if (!z->records || !z->named) return wf_file_fail(f->error, "out of memory");
    for (uint64_t i = 0; i < d->count; i++) {
        size_t length = 0;
        if (!read_record(f, at, (size_t)(end - at), &z->records[i], &length)) return false;
        at += length;
    }
    if (at != end)
        return wf_file_fail(f->error, "damaged: the directory is longer than its records");
    for (z->count = 0; z->count < (int)d->count; z->count++) {
        const wf_zip_record *r = z->named[z->count] = &z->records[z->count];
        const char *lengths = r->name - CENTRAL_SIZE + 28;
        z->directory[r->name - z->directory + (ptrdiff_t)number(lengths, 2)] = '\0';
    }
    return true;
}

/* Finds where a record's bytes begin, from the record's own header. */
static bool find_bytes(wf_file *f, struct source *s, wf_zip_record *r) {
    char header[LOCAL_SIZE], name[MAX_NAME];
    size_t n = strlen(r->name);
    if (!read_at(f, s, r->header, header, sizeof header)) return false;
    if (number(header, 4) != LOCAL || number(header + 8, 2) || number(header + 26, 2) != n)
        return wf_file_fail(f->error, "damaged: the header of '%.80s'", r->name);
    if (!read_at(f, s, r->header + LOCAL_SIZE, name, n)) return false;
    r->at = r->header + LOCAL_SIZE + (int64_t)n + (int64_t)number(header + 28, 2);
    return memcmp(name, r->name, n) == 0 ||
           wf_file_fail(f->error, "damaged: the header of '%.80s' has another name", r->name);
}

static int by_place(const void *a, const void *b) {
    const wf_zip_record *x = a, *y = b;
    return (x->header > y->header) - (x->header < y->header);
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(wf_zip_record *const *)a)->name, (*(wf_zip_record *const *)b)->name);
}

/* Checks that records follow each other from the first byte to the directory, without gaps longer
 * than a data descriptor. Otherwise a short file could declare more data than it has. */
static bool check_places(wf_file *f, struct source *s, wf_zip *z, int64_t end) {
    int64_t at = 0;
    qsort(z->records, (size_t)z->count, sizeof *z->records, by_place);
    for (int i = 0; i < z->count; i++) {
        wf_zip_record *r = &z->records[i];
        if (!find_bytes(f, s, r)) return false;
        if (r->header < at || r->header - at > (i ? COPY_SIZE : 0) || r->at > end ||
            r->size > end - r->at)
            return wf_file_fail(f->error, "damaged: '%.80s' is not between its neighbours",
                                r->name);
        at = r->at + r->size;
    }
    return end - at <= COPY_SIZE ||
           wf_file_fail(f->error, "damaged: bytes of no record before the directory");
}

static bool check_unique(wf_file *f, wf_zip *z) {
    qsort(z->named, (size_t)z->count, sizeof *z->named, by_name);
    for (int i = 1; i < z->count; i++)
        if (by_name(&z->named[i - 1], &z->named[i]) == 0)
            return wf_file_fail(f->error, "'%.80s' is in the archive twice", z->named[i]->name);
    return true;
}

/* ---- inside core/file ------------------------------------------------------------------------ */

static bool make_table(wf_file *f, wf_zip *z) {
    z->table = malloc(sizeof *z->table);
    if (!z->table) return wf_file_fail(f->error, "out of memory");
    wf_crc32_fill(z->table, WF_CRC32_ZIP);
    return true;
}

bool wf_zip_open(wf_file *f, struct source *s, wf_zip *z) {
    struct directory d = { 0 };
    uint64_t part = s->size < WF_FILE_PART ? (uint64_t)s->size : WF_FILE_PART;
    return read_directory(f, s, z, &d) && read_records(f, z, &d) && check_places(f, s, z, d.at) &&
           check_unique(f, z) && make_table(f, z) && wf_file_allocate(f, &z->part, part);
}

const wf_zip_record *wf_zip_find(const wf_zip *z, const char *name) {
    const wf_zip_record key = { .name = name }, *wanted = &key;
    wf_zip_record **found =
        z->count ? bsearch(&wanted, z->named, (size_t)z->count, sizeof *found, by_name) : NULL;
    return found ? *found : NULL;
}

bool wf_zip_read(wf_file *f, struct source *s, wf_zip *z, const wf_zip_record *r, char *to) {
    uint32_t sum = UINT32_MAX;
    s->at = r->at;
    for (uint64_t left = (uint64_t)r->size, n; left > 0; left -= n) {
        char *part = to ? to : z->part;
        n = left < WF_FILE_PART ? left : WF_FILE_PART;
        if (!wf_source_read(f, s, part, (size_t)n)) return false;
        sum = wf_crc32(z->table, sum, part, (size_t)n);
        if (to) to += n;
    }
    return ~sum == r->sum || wf_file_fail(f->error,
                                          "damaged: the CRC-32 of '%.80s' is %08x, %08x "
                                          "expected",
                                          r->name, ~sum, r->sum);
}

void wf_zip_close(wf_zip *z) {
    free(z->directory), free(z->records), free(z->named), free(z->table), free(z->part);
}
