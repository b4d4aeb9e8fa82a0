/* tests/calls/draws.c - numbers, texts and lists for test_calls.c: see world.h. */
#define _XOPEN_SOURCE 700
#include <stdio.h>

#include "world.h"

/* splitmix64 */
uint64_t dice(world *w, uint64_t n) {
    uint64_t z = w->random += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (z ^ z >> 31) % n;
}

bool odd(world *w) {
    return dice(w, 100) < (uint64_t)w->odds;
}

bool absent(world *w, int place) {
    if (place >= 0 && w->nulls >> place & 1) return true;
    return place > -2 && odd(w) && dice(w, 3) == 0;
}

void *taken(world *w, size_t bytes, int64_t n) {
    size_t size = n > 0 ? bytes * (size_t)n : 0;
    ck_assert_int_lt(w->n_blocks, MOST_BLOCKS);
    void *block = malloc(size ? size : 1);
    ck_assert_ptr_nonnull(block);
    memset(block, 0, size);
    return w->blocks[w->n_blocks++] = block;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Draws an extreme number, never one from 9 to 2^31 - 2, so that an allocation of that size is
 * small, or too large to succeed. */
static int64_t extreme(world *w) {
    static const int64_t ends[] = {
        INT64_MIN, INT64_MIN + 1, INT32_MIN,     -9,       -1, 0, 0, 5, 8,
        INT32_MAX, INT64_MAX / 3, INT64_MAX - 1, INT64_MAX
    };
    return ends[dice(w, COUNT_OF(ends))];
}

int64_t draw_size(world *w, int place) {
    (void)place;
    return odd(w) ? extreme(w) : 1 + (int64_t)dice(w, 4);
}

int64_t draw_int(world *w, int place) {
    (void)place;
    int64_t n = odd(w) ? extreme(w) : (int64_t)dice(w, 3);
    return n < INT32_MIN ? INT32_MIN : n > INT32_MAX ? INT32_MAX : n;
}

int64_t draw_id(world *w, int place) {
    return draw_int(w, place);
}

int64_t draw_axis(world *w, int place) {
    return odd(w) ? draw_int(w, place) : (int64_t)dice(w, 4) - 2;
}

int64_t draw_axes(world *w, int place) {
    if (odd(w)) return dice(w, 2) ? draw_int(w, place) : (int64_t)dice(w, UINT32_MAX);
    uint32_t sets[] = { WF_ALL_AXES, WF_LAST_AXIS, WF_AXIS(0), WF_AXIS(0) | WF_AXIS(1),
                        WF_NO_AXES };
    return sets[dice(w, COUNT_OF(sets))];
}

/* A number of axes. The list passed with it is made with that many elements, because the library
 * can't see how long a list is. */
int64_t draw_rank(world *w, int place) {
    static const int64_t wrong[] = { INT32_MIN, -1, 8, 9, 20 };
    (void)place;
    return odd(w) ? wrong[dice(w, COUNT_OF(wrong))] : (int64_t)dice(w, 4);
}

int64_t draw_count(world *w, int place) {
    static const int64_t wrong[] = { INT32_MIN, -1, 0, 9, 40 };
    (void)place;
    return odd(w) ? wrong[dice(w, COUNT_OF(wrong))] : 1 + (int64_t)dice(w, 3);
}

int64_t draw_rows(world *w, int place) {
    (void)place;
    return odd(w) ? (int64_t)dice(w, 3) - 2 : 1 + (int64_t)dice(w, 3);
}

int64_t draw_choice(world *w, int place) {
    (void)place;
    return odd(w) ? (int64_t)dice(w, 12) - 2 : (int64_t)dice(w, 2);
}

uint64_t draw_bits(world *w, int place) {
    (void)place;
    return odd(w) ? dice(w, UINT64_MAX) : dice(w, 4);
}

size_t draw_bytes(world *w, int place) {
    (void)place;
    return odd(w) ? dice(w, 2000) : dice(w, 40);
}

bool draw_bool(world *w, int place) {
    (void)place;
    return dice(w, 2) == 1;
}

double draw_real(world *w, int place) {
    static const double wrong[] = { NAN, INFINITY, -INFINITY, -1, 0, 1e300, -1e300, 5e-324, 1e10 };
    (void)place;
    return odd(w) ? wrong[dice(w, COUNT_OF(wrong))] : (double)dice(w, 5) / 4;
}

wf_init draw_init(world *w, int place) {
    switch (dice(w, 5)) {
    case 0:
        return wf_init_constant(draw_real(w, place));
    case 1:
        return wf_init_uniform(draw_real(w, place));
    case 2:
        return wf_init_normal(draw_real(w, place));
    case 3:
        return odd(w) ? (wf_init){ 0 } : wf_init_sinusoid(WF_SINUSOID_PAIRS);
    default:
        return wf_init_zeros();
    }
}

int64_t few(int64_t n) {
    return n < 0 || n > 4096 ? 0 : n;
}

int64_t product(int n, const int64_t *sizes) {
    int64_t count = 1;
    for (int i = 0; sizes && i < n && i < WF_MAX_DIMS; i++)
        if (sizes[i] <= 0) return 0;
    for (int i = 0; sizes && i < n && i < WF_MAX_DIMS; i++)
        if (sizes[i] > 4096 || (count *= sizes[i]) > 4096) return -1;
    return count;
}

size_t exact_bytes(wf_plan *p, const wf_tensor *t) {
    size_t bytes = p ? wf_bound_bytes(p, t) : wf_bytes(t);
    return bytes > 1 << 16 ? 1 << 16 : bytes;
}

/* ---- texts ----------------------------------------------------------------------------------- */

const char *draw_text(world *w, int place) {
    static const char *const wrong[] = { "",     ".",         "..",
                                         "a.b",  "x",         "P",
                                         "B",    "a b",       "\xff\xfe",
                                         "%s%n", "\n",        "ij,jk->ik",
                                         "i->",  "optimizer", "weft.config.d_model" };
    if (absent(w, place)) return NULL;
    char *text = taken(w, 1, 600);
    if (!odd(w))
        snprintf(text, 32, "n%d", w->names++);
    else if (dice(w, 9) == 0)
        memset(text, 'a', 300 + dice(w, 290));
    else
        strcpy(text, wrong[dice(w, COUNT_OF(wrong))]);
    return text;
}

const char *draw_extent(world *w, int place) {
    if (odd(w) || absent(w, place)) return draw_text(w, place);
    return dice(w, 3) ? "B" : "P";
}

const char *draw_path(world *w, int place) {
    static const char *const paths[] = {
        "new",   "model.safetensors", "state.safetensors", "leaf", "marian", "folder",
        "empty", "model.safetensors", "no/such/file",      "",     "noise"
    };
    return absent(w, place) ? NULL : paths[dice(w, COUNT_OF(paths))];
}

/* The text has no NUL at its end: a function that reads it must go by the number of bytes, n. */
const char *draw_bytes_of_text(world *w, int place, int64_t n) {
    static const char words[] =
        "a b a c\n<unk> \xC3\xA4 the\n{\"a\":0,\"b\":1}\n#version: 0.2\na b\n";
    if (absent(w, place)) return NULL;
    char *text = taken(w, 1, n);
    for (int64_t i = 0; i < n; i++)
        text[i] = odd(w) ? (char)dice(w, 256) : words[i % (int64_t)(sizeof words - 1)];
    return text;
}

char *draw_message(world *w, int place) {
    w->message[0] = '\0';
    return absent(w, place) ? NULL : w->message;
}

const void *draw_nothing(world *w, int place) {
    (void)w;
    (void)place;
    return NULL;
}

const int64_t *draw_offsets(world *w, int place) {
    if (absent(w, place)) return NULL;
    int64_t *at = taken(w, sizeof *at, 2);
    at[1] = 64;
    return at;
}

/* ---- lists ----------------------------------------------------------------------------------- */

const void *draw_data(world *w, int place, int64_t bytes) {
    if (absent(w, place) || bytes < 0) return NULL;
    unsigned char *data = taken(w, 1, bytes);
    for (int64_t i = 0; i + 3 < bytes && odd(w); i += 4) data[i] = (unsigned char)dice(w, 3);
    return data;
}

void *draw_room(world *w, int place, int64_t bytes) {
    return absent(w, place) ? NULL : taken(w, 1, bytes);
}

#define LIST(name, type, value)                                                                    \
    const type *name(world *w, int place, int64_t n) {                                             \
        if (absent(w, place)) return NULL;                                                         \
        type *list = taken(w, sizeof(type), n);                                                    \
        for (int64_t i = 0; i < n; i++) list[i] = (type)(value);                                   \
        return list;                                                                               \
    }
LIST(draw_sizes, int64_t, i == 0 && w->extent && dice(w, 5) == 0 ? w->extent : draw_size(w, -1))
LIST(draw_ids, int32_t, i < 16 ? draw_id(w, -1) : 1)
LIST(draw_axes_list, int, odd(w) ? draw_axis(w, -1) : i)
LIST(draw_reals, double, draw_real(w, -1))

const char *const *draw_texts(world *w, int place, int64_t n) {
    if (absent(w, place)) return NULL;
    const char **list = taken(w, sizeof *list, n);
    for (int64_t i = 0; i < n; i++) list[i] = draw_text(w, -1);
    return list;
}

wf_tensor *const *draw_tensors(world *w, int place, int64_t n) {
    if (absent(w, place)) return NULL;
    wf_tensor **list = taken(w, sizeof(void *), n);
    for (int64_t i = 0; i < n; i++) list[i] = draw_tensor(w, odd(w) ? -1 : -2);
    return list;
}

wf_file *const *draw_files(world *w, int place, int64_t n) {
    if (absent(w, place)) return NULL;
    wf_file **list = taken(w, sizeof(void *), n);
    for (int64_t i = 0; i < n; i++) list[i] = made_file(w, -1);
    return list;
}

wf_plan *const *draw_plans(world *w, int place, int64_t n) {
    if (absent(w, place)) return NULL;
    wf_plan **list = taken(w, sizeof(void *), n);
    for (int64_t i = 0; i < n; i++) list[i] = draw_plan(w, -1);
    return list;
}

const wf_entry *const *draw_entries(world *w, int place, int64_t n) {
    if (absent(w, place)) return NULL;
    const wf_entry **list = taken(w, sizeof(void *), n);
    for (int64_t i = 0; i < n; i++) list[i] = draw_entry(w, -1);
    return list;
}

#define ROOM(name, type)                                                                           \
    type *name(world *w, int place, int64_t n) {                                                   \
        return absent(w, place) ? NULL : taken(w, sizeof(type), n);                                \
    }
typedef wf_tensor *tensor_pointer;
ROOM(draw_room_for_tensors, tensor_pointer)
ROOM(draw_room_for_ids, int32_t)
ROOM(draw_room_for_sizes, int64_t)
ROOM(draw_room_for_bytes, size_t)
ROOM(draw_room_for_ints, int)
ROOM(draw_room_for_reals, double)
ROOM(draw_room_for_json_tokens, wf_json_token)

wf_decoded *draw_room_for_decoded(world *w, int place, int64_t n) {
    ck_assert_int_le(n, COUNT_OF(w->results));
    if (absent(w, place)) return NULL;
    wf_decoded_free(w->results, COUNT_OF(w->results));
    memset(w->results, 0, sizeof w->results);
    return w->results;
}

wf_decoded *draw_no_results(world *w, int place) {
    return absent(w, place) ? NULL : taken(w, sizeof(wf_decoded), COUNT_OF(w->results));
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static void told(void *user, const char *message) {
    ck_assert(user && *message);
}

void (*draw_told(world *w, int place))(void *, const char *) {
    return absent(w, place) ? NULL : told;
}

static wf_tensor *hook(void *user, wf_tensor *param) {
    world *w = user;
    return dice(w, 2) ? param : NULL;
}

wf_tensor *(*draw_hook(world *w, int place))(void *, wf_tensor *) {
    return absent(w, place) ? NULL : hook;
}

static bool keep(void *user, const wf_tensor *leaf) {
    ck_assert_ptr_nonnull(leaf);
    return dice(user, 4) > 0;
}

bool (*draw_keep(world *w, int place))(void *, const wf_tensor *) {
    return absent(w, place) ? NULL : keep;
}

static void each(void *user, const wf_load_item *item) {
    ck_assert(user && (item->leaf || item->entry));
    ck_assert_int_eq(item->reason[0] == '\0', item->outcome == WF_LOADED);
}

void (*draw_each(world *w, int place))(void *, const wf_load_item *) {
    return absent(w, place) ? NULL : each;
}

static bool heard(void *listener, int sentence, int32_t token) {
    (void)sentence;
    (void)token;
    return dice(listener, 8) > 0;
}

bool (*draw_heard(world *w, int place))(void *, int, int32_t) {
    return absent(w, place) ? NULL : heard;
}

static bool watched(void *listener, const wf_search_step *step) {
    ck_assert(step->n_live > 0 && step->n > 0 && isfinite(step->normaliser[0]));
    return dice(listener, 8) > 0;
}

bool (*draw_watched(world *w, int place))(void *, const wf_search_step *) {
    return absent(w, place) ? NULL : watched;
}

static bool begin_folder(void *user, const char *const *names, int n, char *message) {
    snprintf(message, WF_MESSAGE, "refused");
    return n > 0 && names[0] && dice(user, 4) > 0;
}

bool (*draw_begin_folder(world *w, int place))(void *, const char *const *, int, char *) {
    return absent(w, place) ? NULL : begin_folder;
}

static bool put_file(void *user, const char *name, const void *bytes, size_t size, char *message) {
    snprintf(message, WF_MESSAGE, "refused");
    return *name && (bytes || !size) && dice(user, 8) > 0;
}

bool (*draw_put_file(world *w, int place))(void *, const char *, const void *, size_t, char *) {
    return absent(w, place) ? NULL : put_file;
}

static int next_line(void *from, const char **line, size_t *bytes) {
    static const char *const lines[] = { "a b a b", "b a c", "", "\xC3\xA4 \xff", "the a b" };
    world *w = from;
    if (w->lines++ % 7 == 6) return dice(w, 4) ? 0 : -1;
    *line = lines[dice(w, COUNT_OF(lines))];
    *bytes = strlen(*line);
    return 1;
}

wf_line_reader draw_next_line(world *w, int place) {
    return absent(w, place) ? NULL : next_line;
}
