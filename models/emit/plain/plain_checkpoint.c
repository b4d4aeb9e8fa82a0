/* models/emit/plain/plain_checkpoint.c - a safetensors file in the C file of a training: the bytes
 * that core/file/file_write.c writes. embed.sh makes text of this file.
 *
 * In the C file two tables come before it: saved_tensors, sorted by name, and saved_texts, the
 * metadata sorted by key. A null pointer as a text stands for the number of updates. */

/* ---- the checksum ----------------------------------------------------------------------- */

static int length_of(const char *text) {
    int n = 0;
    while (text[n]) n++;
    return n;
}

static uint64_t hash_text(uint64_t h, const char *text) {
    int n = length_of(text);
    uint64_t word = 0;
    h = mix(h ^ (uint64_t)n);
    for (int i = 0; i < n; i++) {
        word |= (uint64_t)(unsigned char)text[i] << 8 * (i % 8);
        if (i % 8 < 7) continue;
        h = mix_word(h, word);
        word = 0;
    }
    return mix(h ^ word);
}

static uint32_t word_of(float number) {
    float_bits b;
    b.number = number;
    return b.word;
}

static uint64_t hash_tensor(uint64_t h, const saved_tensor *s, const float *values) {
    uint64_t bytes = (uint64_t)s->n * 4;
    h = mix(hash_text(hash_text(h, s->name), "F32") ^ (uint64_t)s->ndim * 8);
    for (int i = 0; i < s->ndim; i++) h = mix_word(h, (uint64_t)s->shape[i]);
    h = mix(mix(h) ^ bytes);
    for (int i = 0; i + 1 < s->n; i += 2)
        h = mix_word(h, word_of(values[i]) | (uint64_t)word_of(values[i + 1]) << 32);
    if (s->n % 2) h ^= word_of(values[s->n - 1]);
    return mix(h);
}

/* ---- the header ------------------------------------------------------------------------- */

/* Receives the bytes of the file. If `write` is a null pointer, they are only counted. */
typedef struct receiver {
    int (*write)(void *context, const void *bytes, int n);
    void *context;
    int64_t length;
    int failed;
} receiver;

static void put(receiver *r, const char *bytes, int n) {
    r->length += n;
    if (r->write && n > 0 && !r->failed) r->failed = r->write(r->context, bytes, n) != 0;
}

static void put_text(receiver *r, const char *text) {
    put(r, text, length_of(text));
}

/* Write n at the end of digits[24]. Returns its first digit. */
static const char *digits_of_number(uint64_t n, char *digits) {
    int at = 23;
    digits[at] = 0;
    do {
        digits[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    return digits + at;
}

static void put_number(receiver *r, int64_t n) {
    char digits[24];
    put_text(r, digits_of_number((uint64_t)n, digits));
}

static void put_quoted(receiver *r, const char *text) {
    static const char hex[] = "0123456789abcdef";
    put(r, "\"", 1);
    for (; *text; text++) {
        char escape[6] = { '\\', *text, '0', '0', 0, 0 };
        int n = 2;
        if (*text == '\n') {
            escape[1] = 'n';
        } else if ((unsigned char)*text < ' ') {
            escape[1] = 'u';
            escape[2] = '0';
            escape[4] = hex[*text >> 4];
            escape[5] = hex[*text & 15];
            n = 6;
        } else if (*text != '"' && *text != '\\') {
            escape[0] = *text;
            n = 1;
        }
        put(r, escape, n);
    }
    put(r, "\"", 1);
}

static const char *text_at(int i, const char *steps) {
    return saved_texts[i].text ? (const char *)saved_texts[i].text : steps;
}

static void put_entry(receiver *r, const saved_tensor *s, int64_t offset) {
    put(r, ",", 1);
    put_quoted(r, s->name);
    put_text(r, ":{\"dtype\":\"F32\",\"shape\":[");
    for (int i = 0; i < s->ndim; i++) {
        if (i) put(r, ",", 1);
        put_number(r, s->shape[i]);
    }
    put_text(r, "],\"data_offsets\":[");
    put_number(r, offset);
    put(r, ",", 1);
    put_number(r, offset + (int64_t)s->n * 4);
    put_text(r, "]}");
}

static void put_header(receiver *r, uint64_t checksum, const char *steps) {
    int64_t offset = 0;
    put_text(r, "{\"__metadata__\":{\"weft.checksum\":\"");
    for (int i = 60; i >= 0; i -= 4) put(r, &"0123456789abcdef"[checksum >> i & 15], 1);
    put(r, "\"", 1);
    for (int i = 0; i < SAVED_TEXTS; i++) {
        put(r, ",", 1);
        put_quoted(r, saved_texts[i].key);
        put(r, ":", 1);
        put_quoted(r, text_at(i, steps));
    }
    put(r, "}", 1);
    for (int i = 0; i < SAVED_TENSORS; i++) {
        put_entry(r, &saved_tensors[i], offset);
        offset += (int64_t)saved_tensors[i].n * 4;
    }
    put(r, "}", 1);
}

/* ---- the file --------------------------------------------------------------------------- */

static void put_word(receiver *r, uint32_t word) {
    char bytes[4];
    for (int i = 0; i < 4; i++) {
        uint32_t byte = word >> 8 * i & 255;
        bytes[i] = (char)(byte < 128 ? (int)byte : (int)byte - 256);
    }
    put(r, bytes, 4);
}

int model_save(const model *m, int (*write)(void *context, const void *bytes, int n),
               void *context) {
    char digits[24];
    const char *steps = digits_of_number((uint64_t)model_steps(m), digits);
    uint64_t checksum = 0;
    for (int i = 0; i < SAVED_TENSORS; i++)
        checksum = hash_tensor(checksum, &saved_tensors[i], m->weights + saved_tensors[i].at);
    for (int i = 0; i < SAVED_TEXTS; i++)
        checksum = hash_text(hash_text(checksum, saved_texts[i].key), text_at(i, steps));
    receiver length = { 0, 0, 8, 0 }, r = { write, context, 0, 0 };
    put_header(&length, checksum, steps);
    int64_t header = (length.length + 63) / 64 * 64;
    put_word(&r, (uint32_t)(header - 8));
    put_word(&r, 0);
    put_header(&r, checksum, steps);
    while (r.length < header) put(&r, " ", 1);
    for (int i = 0; i < SAVED_TENSORS; i++)
        for (int k = 0; k < saved_tensors[i].n; k++)
            put_word(&r, word_of(m->weights[saved_tensors[i].at + k]));
    return r.failed;
}
