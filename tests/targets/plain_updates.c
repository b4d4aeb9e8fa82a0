/* tests/targets/plain_updates.c - the end of a C file of a training, whose prefix is "trained", for
 * answers.h: a line is the number of an update. All updates up to it are made, and the answer is
 * what `cksum` prints of the file that is saved then. */
#include <stddef.h>

typedef trained model;
enum { model_MEMORY = trained_MEMORY, model_LINE = 16, model_TEXT = 64 };

static double last_loss;

void model_start(model *m, unsigned char *memory);
void model_start(model *m, unsigned char *memory) {
    trained_begin(m, memory);
}

double model_score(const model *m);
double model_score(const model *m) {
    (void)m;
    return last_loss;
}

/* ---- the checksum of POSIX ------------------------------------------------------------------- */

typedef struct saved_sum {
    uint32_t crc, bytes;
} saved_sum;

static void add_byte(saved_sum *s, unsigned byte) {
    s->crc ^= (uint32_t)byte << 24;
    for (int i = 0; i < 8; i++) s->crc = s->crc << 1 ^ (s->crc >> 31 ? UINT32_C(0x04c11db7) : 0);
}

static int sum_bytes(void *context, const void *bytes, int n) {
    saved_sum *s = context;
    const unsigned char *at = bytes;
    for (int i = 0; i < n; i++) add_byte(s, at[i]);
    s->bytes += (uint32_t)n;
    return 0;
}

static int put_decimal(uint32_t n, char *out, int at) {
    char digits[10];
    int k = 0;
    do {
        digits[k++] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    while (k) out[at++] = digits[--k];
    return at;
}

/* ---- a line ---------------------------------------------------------------------------------- */

static int update_to(model *m, int64_t last) {
    static trained_batch batches[MOST_BATCHES];
    static trained_progress now;
    while (trained_steps(m) < last) {
        int n = next_update(batches, trained_steps(m) + 1);
        if (n < 1 || trained_step(m, batches, n, &now)) return 1;
    }
    last_loss = now.loss;
    return 0;
}

int model_translate(model *m, const char *line, size_t n, char *out, size_t size);
int model_translate(model *m, const char *line, size_t n, char *out, size_t size) {
    int64_t last = 0;
    saved_sum s;
    s.crc = s.bytes = 0;
    (void)size;
    for (size_t i = 0; i < n; i++) last = last * 10 + (line[i] - '0');
    if (update_to(m, last) || trained_save(m, sum_bytes, &s)) return -1;
    for (uint32_t rest = s.bytes; rest; rest >>= 8) add_byte(&s, rest & 255);
    int at = put_decimal(~s.crc, out, 0);
    out[at++] = ' ';
    return put_decimal(s.bytes, out, at);
}
