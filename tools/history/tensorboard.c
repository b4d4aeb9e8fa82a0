/* tools/history/tensorboard.c - writes event files for TensorBoard. See tensorboard.h. */
#include "tensorboard.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/file/crc32.h"
#include "tools/cli/output.h"

/* An event has a few values; the largest is smaller than this. */
enum { EVENT_SIZE = 2048 };
static_assert(MEASURES * 64 + 64 <= EVENT_SIZE, "an event of all measures fits");

struct tensorboard {
    int file;
    wf_crc32_table checksums;
};

/* ---- protocol buffers ------------------------------------------------------------------------ */

typedef struct wire {
    unsigned char bytes[EVENT_SIZE];
    size_t n;
} wire;

/* Wire types of protocol buffers. */
enum { VARINT = 0, FIXED64 = 1, TEXT = 2, FIXED32 = 5 };

/* Numbers of fields of Event, Summary, Summary.Value and SessionLog, from TensorFlow's event.proto
 * and summary.proto. */
enum { EVENT_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_SUMMARY = 5, EVENT_SESSION = 7 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2, SESSION_STATUS = 1, SESSION_START = 1 };

static void put_varint(wire *m, uint64_t value) {
    for (; value >= 128; value >>= 7) m->bytes[m->n++] = (unsigned char)(value | 128);
    m->bytes[m->n++] = (unsigned char)value;
}

static void put_key(wire *m, int field, int type) {
    put_varint(m, (uint64_t)(field << 3 | type));
}

/* Writes the low byte first, on any machine. */
static void put_fixed(wire *m, uint64_t bits, int bytes) {
    for (int i = 0; i < bytes; i++) m->bytes[m->n++] = (unsigned char)(bits >> 8 * i);
}

static void put_bytes(wire *m, int field, const void *bytes, size_t n) {
    put_key(m, field, TEXT);
    put_varint(m, n);
    memcpy(m->bytes + m->n, bytes, n);
    m->n += n;
}

static void put_double(wire *m, int field, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(m, field, FIXED64);
    put_fixed(m, bits, 8);
}

static void put_float(wire *m, int field, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(m, field, FIXED32);
    put_fixed(m, bits, 4);
}

static void put_count(wire *m, int field, int64_t value) {
    put_key(m, field, VARINT);
    put_varint(m, (uint64_t)value);
}

/* ---- records --------------------------------------------------------------------------------- */

/* A CRC-32C, rotated and with a constant added. TFRecord requires this masking, because data may
 * themselves contain checksums. */
static uint32_t masked_checksum(const tensorboard *t, const void *data, size_t n) {
    uint32_t sum = ~wf_crc32(&t->checksums, UINT32_MAX, data, n);
    return (sum >> 15 | sum << 17) + 0xA282EAD8u;
}

static bool add_record(tensorboard *t, const wire *event) {
    wire record = { .n = 0 };
    put_fixed(&record, event->n, 8);
    put_fixed(&record, masked_checksum(t, record.bytes, 8), 4);
    memcpy(record.bytes + record.n, event->bytes, event->n);
    record.n += event->n;
    put_fixed(&record, masked_checksum(t, event->bytes, event->n), 4);
    return append_record(t->file, record.bytes, record.n);
}

/* Begins an event with the current time and its step. */
static wire event_at(int64_t step) {
    struct timespec now;
    wire m = { .n = 0 };
    clock_gettime(CLOCK_REALTIME, &now);
    put_double(&m, EVENT_TIME, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
    put_count(&m, EVENT_STEP, step);
    return m;
}

bool tensorboard_add(tensorboard *t, int64_t step, const measured *m) {
    wire summary = { .n = 0 }, event = event_at(step);
    for (int i = 0; i < MEASURES; i++) {
        char tag[48];
        wire value = { .n = 0 };
        if (isnan(m->of[i])) continue;
        snprintf(tag, sizeof tag, "%s/%s", measure_rows[i].group, measure_rows[i].name);
        put_bytes(&value, VALUE_TAG, tag, strlen(tag));
        put_float(&value, VALUE_SIMPLE, (float)m->of[i]);
        put_bytes(&summary, SUMMARY_VALUE, value.bytes, value.n);
    }
    if (!summary.n) return true;
    put_bytes(&event, EVENT_SUMMARY, summary.bytes, summary.n);
    return add_record(t, &event);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Makes the name "events.out.tfevents.SECONDS.MACHINE.PROCESS". TensorBoard reads the files of a
 * folder in the order of their names. */
static void name_file(const char *folder, char path[PATH_SIZE]) {
    char machine[64] = "";
    if (gethostname(machine, sizeof machine - 1) != 0 || !*machine) strcpy(machine, "localhost");
    for (char *c = machine; *c; c++)
        if (*c == '/') *c = '-';
    snprintf(path, PATH_SIZE, "%.*s/events.out.tfevents.%010lld.%s.%ld", PATH_SIZE - 160, folder,
             (long long)time(NULL), machine, (long)getpid());
}

/* Writes two events. The first names the format; after the second, TensorBoard drops the events of
 * earlier files from step `first` on. */
static bool begin(tensorboard *t, int64_t first) {
    static const char version[] = "brain.Event:2";
    wire named = event_at(0), restarted = event_at(first), session = { .n = 0 };
    put_bytes(&named, EVENT_VERSION, version, sizeof version - 1);
    put_count(&session, SESSION_STATUS, SESSION_START);
    put_bytes(&restarted, EVENT_SESSION, session.bytes, session.n);
    return add_record(t, &named) && add_record(t, &restarted);
}

tensorboard *tensorboard_open(const char *folder, int64_t first, char *message) {
    char path[PATH_SIZE];
    if (!output_make_folder(folder, message)) return NULL;
    tensorboard *t = calloc(1, sizeof *t);
    name_file(folder, path);
    if (t) t->file = append_open(path, false);
    if (t && t->file >= 0) {
        wf_crc32_fill(&t->checksums, WF_CRC32_C);
        if (begin(t, first)) return t;
        close(t->file);
    }
    snprintf(message, 256, "%.150s could not be written: %s", path, strerror(t ? errno : ENOMEM));
    free(t);
    return NULL;
}

bool tensorboard_close(tensorboard *t) {
    if (!t) return true;
    bool closed = close(t->file) == 0 || errno == EINTR;
    free(t);
    return closed;
}
