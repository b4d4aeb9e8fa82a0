/* tests/calls/world.h - the pools from which test_calls.c draws arguments: graphs, tensors, plans,
 * files, models and the rest, valid and failed; numbers, texts and lists, ordinary and odd.
 *
 * Each draw_ function is told the number of the parameter, counted from 0 (`place`). If the test
 * wants NULL for that parameter, absent() returns true and the draw returns NULL; among odd
 * arguments NULL is also drawn at random. Place -1 stands for a field of a struct or an element of
 * a list. For place -2, absent() is always false. */
#ifndef WEFT_TESTS_CALLS_WORLD_H
#define WEFT_TESTS_CALLS_WORLD_H

#include "core/file_internal.h"
#include "core/graph_internal.h"
#include "core/op_internal.h"
#include "core/run_internal.h"
#include "core/transport_internal.h"
#include "models/generation_internal.h"
#include "models/hf_internal.h"
#include "models/model_internal.h"
#include "models/text_internal.h"
#include "nn/layers_internal.h"
#include "nn/optimizer_internal.h"
#include "nn/trainer_internal.h"
#include "ops/ops_internal.h"
#include "tests/support/support.h"
#include "weft.h"

enum { MOST_TENSORS = 256, MOST_OBJECTS = 8, MOST_GRAPHS = 64, MOST_BLOCKS = 512 };

typedef struct world {
    uint64_t random;
    int odds;       /* percentage of arguments that are odd */
    uint32_t nulls; /* bit i: parameter i is NULL */
    bool loud;
    const char *function; /* the function that is called now */
    char message[WF_MESSAGE + 64];
    /* memory of the current call's arguments: freed after the call */
    void *blocks[MOST_BLOCKS];
    int n_blocks;
    int names, lines;
    /* graphs[0] is that of the plan `steady`, graphs[n_graphs - 1] the current one; those between
     * are earlier ones, each given up after it failed */
    wf_graph *graphs[MOST_GRAPHS], *other, *failed;
    int n_graphs;
    int64_t extent;
    wf_tensor *tensors[MOST_TENSORS], *strangers[2];
    int n_tensors, n_leaves;
    wf_plan *plans[MOST_OBJECTS], *steady, *broken;
    wf_tensor *steady_in, *steady_out;
    int n_plans;
    wf_state *states[MOST_OBJECTS];
    int n_states;
    wf_pool *pool;
    wf_file *files[MOST_OBJECTS], *dropped[MOST_OBJECTS];
    int n_files, n_dropped;
    wf_model *models[MOST_OBJECTS];
    int n_models;
    wf_decoder *decoder;
    wf_tokenizer *tokenizers[MOST_OBJECTS];
    int n_tokenizers;
    wf_json_tokenizer *json_tokenizers[MOST_OBJECTS];
    int n_json_tokenizers;
    wf_shortlist *shortlists[MOST_OBJECTS];
    int n_shortlists;
    wf_trainer *trainer;
    wf_optimizer optimizers[MOST_OBJECTS];
    int n_optimizers;
    wf_transport transport;
    wf_hf hf;
    wf_hf_files listed;
    wf_decoded results[64];
} world;

/* A folder of the test's own, with a file of each kind. */
void open_folder(void);
void close_folder(void);

void open_world(world *w, uint64_t seed, int odds);
/* Checks that the plan which was made first still computes its numbers, and frees everything. */
void close_world(world *w);
wf_graph *current(world *w);
/* Makes a new graph, gives it leaves, and makes it the current one. Returns false if MOST_GRAPHS
 * have been made. */
bool next_graph(world *w);

void begin_call(world *w, const char *function);
void end_call(world *w);
void check_told(world *w, bool ok, const char *message);
void check_plan_told(world *w, bool ok, const wf_plan *p);
void check_text(world *w, const char *text, bool may_be_null);

/* ---- numbers: draws.c ------------------------------------------------------------------------ */

uint64_t dice(world *w, uint64_t n); /* below n */
bool odd(world *w);
bool absent(world *w, int place);
/* n zeroed elements, freed after the call; if n is below 1, a block of one byte */
void *taken(world *w, size_t bytes, int64_t n);
int64_t draw_size(world *w, int place);
int64_t draw_int(world *w, int place);
int64_t draw_id(world *w, int place);
int64_t draw_axis(world *w, int place);
int64_t draw_axes(world *w, int place);
int64_t draw_rank(world *w, int place);
int64_t draw_count(world *w, int place);
int64_t draw_rows(world *w, int place);
int64_t draw_choice(world *w, int place);
uint64_t draw_bits(world *w, int place);
size_t draw_bytes(world *w, int place);
bool draw_bool(world *w, int place);
double draw_real(world *w, int place);
wf_init draw_init(world *w, int place);
int64_t few(int64_t n);                       /* from 0 to 4096 */
int64_t product(int n, const int64_t *sizes); /* 0: a size is 0 or less; -1: it is over 4096 */
size_t exact_bytes(wf_plan *p, const wf_tensor *t);
const char *draw_text(world *w, int place);
const char *draw_extent(world *w, int place);
const char *draw_path(world *w, int place);
const char *draw_bytes_of_text(world *w, int place, int64_t n);
char *draw_message(world *w, int place);
const void *draw_nothing(world *w, int place);
const int64_t *draw_offsets(world *w, int place);

/* Lists, and arrays for a function to fill, of exactly n elements (draw_data and draw_room: bytes),
 * so that the address sanitizer reports an access behind them. */
const void *draw_data(world *w, int place, int64_t bytes);
void *draw_room(world *w, int place, int64_t bytes);
const int64_t *draw_sizes(world *w, int place, int64_t n);
const int32_t *draw_ids(world *w, int place, int64_t n);
const int *draw_axes_list(world *w, int place, int64_t n);
const double *draw_reals(world *w, int place, int64_t n);
const char *const *draw_texts(world *w, int place, int64_t n);
wf_tensor *const *draw_tensors(world *w, int place, int64_t n);
wf_file *const *draw_files(world *w, int place, int64_t n);
wf_plan *const *draw_plans(world *w, int place, int64_t n);
const wf_entry *const *draw_entries(world *w, int place, int64_t n);
wf_tensor **draw_room_for_tensors(world *w, int place, int64_t n);
int32_t *draw_room_for_ids(world *w, int place, int64_t n);
int64_t *draw_room_for_sizes(world *w, int place, int64_t n);
size_t *draw_room_for_bytes(world *w, int place, int64_t n);
int *draw_room_for_ints(world *w, int place, int64_t n);
double *draw_room_for_reals(world *w, int place, int64_t n);
wf_json_token *draw_room_for_json_tokens(world *w, int place, int64_t n);
wf_decoded *draw_room_for_decoded(world *w, int place, int64_t n);
wf_decoded *draw_no_results(world *w, int place);

/* Each of these returns a callback, or NULL. */
void (*draw_told(world *w, int place))(void *user, const char *message);
wf_tensor *(*draw_hook(world *w, int place))(void *user, wf_tensor *param);
bool (*draw_keep(world *w, int place))(void *user, const wf_tensor *leaf);
void (*draw_each(world *w, int place))(void *user, const wf_load_item *item);
bool (*draw_heard(world *w, int place))(void *listener, int sentence, int32_t token);
bool (*draw_watched(world *w, int place))(void *listener, const wf_search_step *step);
bool (*draw_begin_folder(world *w, int place))(void *user, const char *const *names, int n,
                                               char *message);
bool (*draw_put_file(world *w, int place))(void *user, const char *name, const void *bytes,
                                           size_t size, char *message);
wf_line_reader draw_next_line(world *w, int place);

/* ---- objects: world.c. draw_X returns an object that the world keeps: of an op or a kind, one of
 * the library's; draw_fresh_X returns an emptied struct. made_X makes one that the call frees.
 * keep_X checks what a call returned, and keeps it for later draws, unless it is the library's */

wf_tensor *draw_tensor(world *w, int place);
wf_graph *draw_graph(world *w, int place);
wf_plan *draw_plan(world *w, int place);
wf_state *draw_state(world *w, int place);
wf_pool *draw_pool(world *w, int place);
wf_file *draw_file(world *w, int place);
const wf_entry *draw_entry(world *w, int place);
wf_model *draw_model(world *w, int place);
wf_decoder *draw_decoder(world *w, int place);
wf_tokenizer *draw_tokenizer(world *w, int place);
wf_json_tokenizer *draw_json_tokenizer(world *w, int place);
wf_shortlist *draw_shortlist(world *w, int place);
wf_trainer *draw_trainer(world *w, int place);
wf_optimizer *draw_optimizer(world *w, int place);
wf_transport *draw_transport(world *w, int place);
const wf_op *draw_op(world *w, int place);
const wf_model_kind *draw_kind(world *w, int place);
wf_hf *draw_fresh_hf(world *w, int place);
wf_hf *imported_hf(world *w, int place);
wf_hf_files *draw_fresh_list(world *w, int place);
wf_graph *made_graph(world *w, int place);
wf_plan *made_plan(world *w, int place);
wf_state *made_state(world *w, int place);
wf_pool *made_pool(world *w, int place);
wf_file *made_file(world *w, int place);
wf_file *dropped_file(world *w, int place);
wf_model *made_model(world *w, int place);
wf_decoder *made_decoder(world *w, int place);
wf_tokenizer *made_tokenizer(world *w, int place);
wf_json_tokenizer *made_json_tokenizer(world *w, int place);
wf_shortlist *made_shortlist(world *w, int place);
wf_trainer *made_trainer(world *w, int place);
wf_optimizer *made_optimizer(world *w, int place);
wf_hf *made_hf(world *w, int place);
void keep_tensor(world *w, const wf_tensor *t, bool may_be_null);
void keep_graph(world *w, wf_graph *g);
void keep_plan(world *w, wf_plan *p);
void keep_state(world *w, wf_state *s);
void keep_pool(world *w, wf_pool *p);
void keep_file(world *w, wf_file *f);
void keep_model(world *w, wf_model *m);
void keep_decoder(world *w, wf_decoder *d);
void keep_tokenizer(world *w, wf_tokenizer *t);
void keep_json_tokenizer(world *w, wf_json_tokenizer *t);
void keep_shortlist(world *w, wf_shortlist *l);
void keep_trainer(world *w, wf_trainer *t);
void keep_optimizer(world *w, wf_optimizer o);
void keep_op(world *w, const wf_op *op);
void keep_kind(world *w, const wf_model_kind *kind);

/* ---- structs of options, filled with valid values, and layers: begun.c ----------------------- */

#define BEGUN(ROW)                                                                                 \
    ROW(wf_pool_options)                                                                           \
    ROW(wf_stft_options)                                                                           \
    ROW(wf_resize_options)                                                                         \
    ROW(wf_mel_options)                                                                            \
    ROW(wf_block_options)                                                                          \
    ROW(wf_optimizer_options)                                                                      \
    ROW(wf_schedule)                                                                               \
    ROW(wf_recurrent_options)                                                                      \
    ROW(wf_model_sizes)                                                                            \
    ROW(wf_transformer_config)                                                                     \
    ROW(wf_language_model_config)                                                                  \
    ROW(wf_encoder_config)                                                                         \
    ROW(wf_decode_options)                                                                         \
    ROW(wf_tokenizer_options)                                                                      \
    ROW(wf_json_learn_options)                                                                     \
    ROW(wf_entry)                                                                                  \
    ROW(wf_meta)                                                                                   \
    ROW(wf_rename)                                                                                 \
    ROW(wf_sentencepiece_options)                                                                  \
    ROW(wf_byte_level_options)                                                                     \
    ROW(wf_adam_options)                                                                           \
    ROW(wf_rmsprop_options)                                                                        \
    ROW(wf_lion_options)                                                                           \
    ROW(wf_conv_options)                                                                           \
    ROW(wf_trainer_options)
#define BEGIN(name) void begin_##name(world *w, name *o);
BEGUN(BEGIN)
#undef BEGIN

#define LAYERS(ROW)                                                                                \
    ROW(wf_linear_layer)                                                                           \
    ROW(wf_embedding_layer)                                                                        \
    ROW(wf_position_layer)                                                                         \
    ROW(wf_norm_layer)                                                                             \
    ROW(wf_group_norm_layer)                                                                       \
    ROW(wf_batch_norm_layer)                                                                       \
    ROW(wf_mha_layer)                                                                              \
    ROW(wf_feed_forward_layer)                                                                     \
    ROW(wf_encoder_block)                                                                          \
    ROW(wf_decoder_block)                                                                          \
    ROW(wf_conv_layer)                                                                             \
    ROW(wf_recurrent_cell)                                                                         \
    ROW(wf_recurrent_layer)
#define WHOLE(name) void whole_##name(world *w, struct name *l);
LAYERS(WHOLE)
#undef WHOLE
void whole_wf_generation(world *w, wf_generation *g);

#endif
