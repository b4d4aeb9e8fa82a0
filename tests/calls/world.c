/* tests/calls/world.c - makes, lends and frees the objects that test_calls.c passes to functions:
 * see world.h. */
#define _XOPEN_SOURCE 700
#include "world.h"
#include "models/hf_internal.h"
#include "models/model_internal.h"
#include "nn/layers_internal.h"
#include "nn/optimizer_internal.h"
#include "ops/ops_internal.h"

#include "tests/support/shortlists.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files ----------------------------------------------------------------------------------- */

static char folder[] = "/tmp/weft-calls-XXXXXX";

static wf_model *small_model(world *w, bool trains) {
    wf_transformer_config c;
    const wf_training_config t = { .dropout = 0.1 };
    char why[WF_MESSAGE] = "";
    begin_wf_transformer_config(w, &c);
    wf_model *m = wf_transformer_new(&c, trains ? &t : NULL, WF_F32, 1, why);
    ck_assert_msg(m && wf_ok(m->graph), "%s", why);
    return m;
}

static void put(const char *path, const char *text) {
    FILE *f = fopen(path, "wb");
    ck_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

void open_folder(void) {
    world w = { .random = 1 };
    char why[WF_MESSAGE] = "", from[512], line[700];
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    ck_assert(mkdtemp(folder) && chdir(folder) == 0 && mkdir("folder", 0700) == 0);
    wf_model *m = small_model(&w, true);
    ck_assert_msg(wf_model_save(m, "model.safetensors", NULL, NULL, 0, why) &&
                      wf_transformer_save_state_dict(m, "state.safetensors", false, why) &&
                      wf_save(m->graph, "leaf", NULL, NULL, 0, why),
                  "%s", why);
    wf_model_free(m);
    put("empty", "");
    put("noise", "{\"what\": 1}\n\n");
    source_path("tests/data/hf/marian", from, sizeof from);
    snprintf(line, sizeof line, "cp -r '%s' marian", from);
    ck_assert_int_eq(system(line), 0);
}

void close_folder(void) {
    char line[64];
    snprintf(line, sizeof line, "rm -r '%s'", folder);
    ck_assert(chdir("/") == 0 && system(line) == 0);
}

/* ---- ranks of one ---------------------------------------------------------------------------- */

static bool exchange(wf_transport *t, const void *send, const int64_t *send_at, void *receive,
                     const int64_t *receive_at) {
    (void)t;
    memcpy((char *)receive + receive_at[0], (const char *)send + send_at[0],
           (size_t)(send_at[1] - send_at[0]));
    return true;
}

static bool gather(wf_transport *t, const void *send, void *receive, const int64_t *receive_at) {
    (void)t;
    if (send)
        memcpy((char *)receive + receive_at[0], send, (size_t)(receive_at[1] - receive_at[0]));
    return true;
}

static bool barrier(wf_transport *t) {
    return t->code == 0;
}

static void give_up(wf_transport *t, int code, const char *why) {
    t->code = code;
    snprintf(t->error, sizeof t->error, "%s", why ? why : "");
}

/* ---- a world --------------------------------------------------------------------------------- */

static void add_leaves(world *w) {
    wf_graph *g = current(w);
    w->n_tensors = 0;
    w->extent = wf_extent(g, "B", 8);
    wf_extent(g, "P", 5);
    wf_tensor *const leaves[] = {
        wf_param(g, "a", SHAPE(2, 3), wf_init_uniform(1)),
        wf_param(g, "b", SHAPE(2, 3), wf_init_uniform(1)),
        wf_param(g, "v", SHAPE(3), wf_init_uniform(1)),
        wf_param(g, "m", SHAPE(3, 3), wf_init_uniform(1)),
        wf_constant(g, 0.5),
        wf_buffer(g, "ids", WF_I32, SHAPE(2), wf_init_zeros()),
        wf_param(g, "q", SHAPE(2, 2, 3, 4), wf_init_uniform(1)),
        wf_param(g, "s", SHAPE(2, 3, 4), wf_init_uniform(1)),
        wf_input(g, "x", WF_F32, SHAPE(w->extent, 3)),
        wf_sum(wf_square(wf_find(g, "a")), WF_ALL_AXES, false),
    };
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    w->n_leaves = COUNT_OF(leaves);
    for (int i = 0; i < w->n_leaves; i++) w->tensors[w->n_tensors++] = leaves[i];
}

wf_graph *current(world *w) {
    return w->graphs[w->n_graphs - 1];
}

bool next_graph(world *w) {
    if (w->n_graphs == MOST_GRAPHS) return false;
    w->graphs[w->n_graphs++] = wf_graph_new(NULL);
    add_leaves(w);
    return true;
}

static void add_steady(world *w) {
    wf_graph *g = wf_graph_new(NULL);
    w->graphs[w->n_graphs++] = g;
    w->steady_in = wf_input(g, "steady", WF_F32, SHAPE(wf_extent(g, "B", 8), 3));
    w->steady_out = wf_scale(w->steady_in, 2);
    w->steady = wf_plan_new(
        g, &(wf_plan_options){
               .fetch = &w->steady_out, .n_fetch = 1, .feed = &w->steady_in, .n_feed = 1 });
    ck_assert_msg(wf_plan_ok(w->steady), "%s", wf_plan_error(w->steady));
}

void open_world(world *w, uint64_t seed, int odds) {
    *w = (world){ .random = seed, .odds = odds, .loud = getenv("WEFT_CALLS_LOUD") != NULL };
    w->transport = (wf_transport){
        .size = 1, .alltoallv = exchange, .allgatherv = gather, .barrier = barrier, .fail = give_up
    };
    w->other = wf_graph_new(NULL);
    w->failed = wf_graph_new(&(wf_graph_options){ .real = (wf_dtype)9 });
    w->strangers[0] = wf_param(w->other, "a", SHAPE(2, 3), wf_init_zeros());
    w->strangers[1] = wf_constant(w->failed, 1);
    w->broken = wf_plan_new(w->failed, NULL);
    w->pool = wf_pool_new(2);
    add_steady(w);
    next_graph(w);
}

/* Runs the plan that was made first: other graphs and plans may have failed, but not this one. */
static void judge_steady(world *w) {
    const float in[] = { 1, 2, 3, 4, 5, 6 };
    float out[6] = { 0 };
    bool ok = wf_bind(w->steady, "B", 2) && wf_feed(w->steady, w->steady_in, in, sizeof in) &&
              wf_run(w->steady) && wf_fetch(w->steady, w->steady_out, out, sizeof out);
    ck_assert_msg(ok, "the plan made first: %s", wf_plan_error(w->steady));
    for (int i = 0; i < 6; i++) ck_assert(out[i] == 2 * in[i]);
}

static void free_blocks(world *w) {
    for (int i = 0; i < w->n_blocks; i++) free(w->blocks[i]);
    w->n_blocks = 0;
}

void close_world(world *w) {
    judge_steady(w);
    wf_decoded_free(w->results, COUNT_OF(w->results));
    for (int i = 0; i < w->n_states; i++) wf_state_free(w->states[i]);
    for (int i = 0; i < w->n_plans; i++) wf_plan_free(w->plans[i]);
    wf_plan_free(w->steady);
    wf_plan_free(w->broken);
    wf_decoder_free(w->decoder);
    wf_trainer_free(w->trainer);
    for (int i = 0; i < w->n_optimizers; i++) wf_optimizer_free(&w->optimizers[i]);
    for (int i = 0; i < w->n_models; i++) wf_model_free(w->models[i]);
    for (int i = 0; i < w->n_tokenizers; i++) wf_tokenizer_free(w->tokenizers[i]);
    for (int i = 0; i < w->n_json_tokenizers; i++) wf_json_tokenizer_free(w->json_tokenizers[i]);
    for (int i = 0; i < w->n_shortlists; i++) wf_shortlist_free(w->shortlists[i]);
    wf_hf_free(&w->hf);
    wf_hf_files_free(&w->listed);
    for (int i = 0; i < w->n_graphs; i++) wf_graph_free(w->graphs[i]);
    wf_graph_free(w->other);
    wf_graph_free(w->failed);
    for (int i = 0; i < w->n_files; i++) wf_file_free(w->files[i]);
    for (int i = 0; i < w->n_dropped; i++) wf_file_free(w->dropped[i]);
    wf_pool_free(w->pool);
    free_blocks(w);
}

/* ---- what must hold of every call ------------------------------------------------------------ */

void begin_call(world *w, const char *function) {
    w->function = function;
    if (w->loud) dprintf(2, "%s, NULL at %#x\n", function, (unsigned)w->nulls);
}

static void judge_graph(const world *w, const wf_graph *g) {
    ck_assert_msg(wf_ok(g) == (*wf_error(g) == '\0'), "%s: \"%s\"", w->function, wf_error(g));
}

void end_call(world *w) {
    judge_graph(w, current(w));
    judge_graph(w, w->other);
    for (int i = 0; i < w->n_plans; i++)
        ck_assert_msg(wf_plan_ok(w->plans[i]) || *wf_plan_error(w->plans[i]), "%s", w->function);
    free_blocks(w);
}

void check_told(world *w, bool ok, const char *message) {
    if (!ok && message) ck_assert_msg(*message != '\0', "%s fails without a message", w->function);
    if (message) ck_assert_msg(strlen(message) < WF_MESSAGE, "%s: a long message", w->function);
}

void check_plan_told(world *w, bool ok, const wf_plan *p) {
    ck_assert_msg(ok || *wf_plan_error(p), "%s fails, and the plan does not say why", w->function);
}

void check_text(world *w, const char *text, bool may_be_null) {
    ck_assert_msg(text || may_be_null, "%s returns NULL", w->function);
    if (text) ck_assert_uint_lt(strlen(text), 1 << 20);
}

/* ---- tensors, graphs, plans ------------------------------------------------------------------ */

wf_tensor *draw_tensor(world *w, int place) {
    if (absent(w, place)) return NULL;
    if (odd(w) && dice(w, 4) == 0) return w->strangers[dice(w, 2)];
    bool leaf = dice(w, 2) || w->nulls;
    return w->tensors[dice(w, (uint64_t)(leaf ? w->n_leaves : w->n_tensors))];
}

void keep_tensor(world *w, const wf_tensor *t, bool may_be_null) {
    ck_assert_msg(t || may_be_null, "%s returns NULL", w->function);
    if (!t || t->graph != current(w) || t->id < 0) return;
    int at = w->n_tensors < MOST_TENSORS ? w->n_tensors++
                                         : w->n_leaves + (int)dice(w, MOST_TENSORS - 32);
    w->tensors[at] = wf_node(t->graph, t->id) == t ? wf_node(t->graph, t->id) : w->tensors[0];
}

wf_graph *draw_graph(world *w, int place) {
    if (absent(w, place)) return NULL;
    if (odd(w)) return dice(w, 2) ? w->failed : w->other;
    return current(w);
}

wf_graph *made_graph(world *w, int place) {
    return absent(w, place) ? NULL : wf_graph_new(NULL);
}

void keep_graph(world *w, wf_graph *g) {
    ck_assert_msg(g != NULL, "%s returns NULL", w->function);
    wf_graph_free(g);
}

wf_plan *made_plan(world *w, int place) {
    if (absent(w, place)) return NULL;
    wf_tensor *y = w->tensors[w->n_leaves - 1];
    return wf_plan_new(current(w), &(wf_plan_options){ .fetch = &y, .n_fetch = 1 });
}

wf_plan *draw_plan(world *w, int place) {
    if (absent(w, place)) return NULL;
    if (odd(w)) return w->broken;
    if (w->n_plans && dice(w, 2)) return w->plans[dice(w, (uint64_t)w->n_plans)];
    return w->steady;
}

void keep_plan(world *w, wf_plan *p) {
    ck_assert_msg(p != NULL, "%s returns NULL", w->function);
    ck_assert_msg(wf_plan_ok(p) || *wf_plan_error(p), "%s: no message", w->function);
    if (w->n_plans < MOST_OBJECTS)
        w->plans[w->n_plans++] = p;
    else
        wf_plan_free(p);
}

static wf_state *new_state(world *w) {
    wf_tensor *x = wf_find(current(w), "s"), *c = wf_cache(x, 1);
    wf_plan *p = wf_plan_new(
        current(w), &(wf_plan_options){
                        .fetch = &c, .n_fetch = 1, .feed = &x, .n_feed = 1, .with_state = true });
    wf_bind(p, "P", 0);
    wf_state *s = wf_state_new(p);
    wf_plan_free(p);
    return s;
}

wf_state *made_state(world *w, int place) {
    return absent(w, place) ? NULL : new_state(w);
}

wf_state *draw_state(world *w, int place) {
    if (absent(w, place)) return NULL;
    if (!w->n_states) keep_state(w, new_state(w));
    return w->n_states ? w->states[dice(w, (uint64_t)w->n_states)] : NULL;
}

void keep_state(world *w, wf_state *s) {
    if (s && w->n_states < MOST_OBJECTS)
        w->states[w->n_states++] = s;
    else
        wf_state_free(s);
}

wf_pool *draw_pool(world *w, int place) {
    return absent(w, place) || dice(w, 2) ? NULL : w->pool;
}

wf_pool *made_pool(world *w, int place) {
    return absent(w, place) ? NULL : wf_pool_new(1);
}

void keep_pool(world *w, wf_pool *p) {
    ck_assert_msg(p != NULL, "%s returns NULL", w->function);
    wf_pool_free(p);
}

/* ---- files ----------------------------------------------------------------------------------- */

static const char *const names[] = { "model.safetensors", "leaf", "state.safetensors", "noise" };

wf_file *made_file(world *w, int place) {
    return absent(w, place) ? NULL : wf_file_open(names[dice(w, COUNT_OF(names))]);
}

wf_file *draw_file(world *w, int place) {
    if (absent(w, place)) return NULL;
    while (w->n_files < COUNT_OF(names)) keep_file(w, wf_file_open(names[w->n_files]));
    return w->files[dice(w, (uint64_t)(odd(w) ? w->n_files : 3))];
}

void keep_file(world *w, wf_file *f) {
    ck_assert_msg(f != NULL, "%s returns NULL", w->function ? w->function : "wf_file_open");
    ck_assert(wf_file_ok(f) == (*wf_file_error(f) == '\0'));
    if (w->n_files < MOST_OBJECTS)
        w->files[w->n_files++] = f;
    else
        wf_file_free(f);
}

/* A file for wf_file_drop_loaded, which may free its bytes: no other call is given it. */
wf_file *dropped_file(world *w, int place) {
    if (absent(w, place) || w->n_dropped == MOST_OBJECTS) return NULL;
    return w->dropped[w->n_dropped++] = made_file(w, -2);
}

const wf_entry *draw_entry(world *w, int place) {
    if (absent(w, place)) return NULL;
    wf_file *f = draw_file(w, -2);
    int n = wf_file_count(f);
    if (n && !odd(w)) return wf_file_at(f, (int)dice(w, (uint64_t)n));
    wf_entry *e = taken(w, sizeof *e, 1);
    begin_wf_entry(w, e);
    e->data = draw_data(w, -2, (int64_t)e->bytes);
    return e;
}

/* ---- models ---------------------------------------------------------------------------------- */

static wf_model *new_model(world *w) {
    wf_language_model_config c;
    wf_encoder_config e;
    char why[WF_MESSAGE];
    if (w->n_models == 2) {
        begin_wf_encoder_config(w, &e);
        return wf_encoder_new(&e, NULL, WF_F32, 1, why);
    }
    if (w->n_models != 1) return small_model(w, true);
    begin_wf_language_model_config(w, &c);
    return wf_language_model_new(&c, NULL, WF_F32, 1, why);
}

wf_model *made_model(world *w, int place) {
    return absent(w, place) ? NULL : new_model(w);
}

wf_model *draw_model(world *w, int place) {
    if (absent(w, place)) return NULL;
    while (w->n_models < 3) keep_model(w, new_model(w));
    return w->models[dice(w, (uint64_t)w->n_models)];
}

void keep_model(world *w, wf_model *m) {
    if (m && w->n_models < MOST_OBJECTS)
        w->models[w->n_models++] = m;
    else
        wf_model_free(m);
}

wf_decoder *made_decoder(world *w, int place) {
    char why[WF_MESSAGE];
    return absent(w, place) ? NULL : wf_decoder_new(draw_model(w, -2), w->pool, why);
}

wf_decoder *draw_decoder(world *w, int place) {
    if (absent(w, place)) return NULL;
    if (!w->decoder) w->decoder = made_decoder(w, -2);
    return w->decoder;
}

void keep_decoder(world *w, wf_decoder *d) {
    wf_decoder_free(w->decoder);
    w->decoder = d;
}

static const char tokenizer_json[] =
    "{\"added_tokens\":[{\"id\":4,\"content\":\"<s>\",\"single_word\":false,\"lstrip\":true,"
    "\"rstrip\":false,\"normalized\":false,\"special\":true}],"
    "\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"Whitespace\"},"
    "\"decoder\":{\"type\":\"Fuse\"},\"model\":{\"type\":\"BPE\",\"unk_token\":\"?\","
    "\"vocab\":{\"?\":0,\"a\":1,\"b\":2,\"ab\":3},\"merges\":[[\"a\",\"b\"]]}}";

wf_tokenizer *made_tokenizer(world *w, int place) {
    const wf_json_text_options json = { .json = tokenizer_json,
                                        .bytes = sizeof tokenizer_json - 1,
                                        .special = { -1, 0, 4, 4 } };
    char why[WF_MESSAGE];
    if (absent(w, place)) return NULL;
    if (!dice(w, 3)) return wf_tokenizer_from_json(&json, why);
    return wf_tokenizer_read(dice(w, 2) ? WF_WORDS : WF_CHARACTERS, "a\nb\n", 4, NULL, 0, why);
}

wf_tokenizer *draw_tokenizer(world *w, int place) {
    if (absent(w, place)) return NULL;
    if (!w->n_tokenizers) keep_tokenizer(w, made_tokenizer(w, -2));
    return w->tokenizers[dice(w, (uint64_t)w->n_tokenizers)];
}

void keep_tokenizer(world *w, wf_tokenizer *t) {
    if (t && w->n_tokenizers < MOST_OBJECTS)
        w->tokenizers[w->n_tokenizers++] = t;
    else
        wf_tokenizer_free(t);
}

wf_json_tokenizer *made_json_tokenizer(world *w, int place) {
    char why[WF_MESSAGE];
    if (absent(w, place)) return NULL;
    return wf_json_tokenizer_load(tokenizer_json, sizeof tokenizer_json - 1, why);
}

wf_json_tokenizer *draw_json_tokenizer(world *w, int place) {
    if (absent(w, place)) return NULL;
    if (!w->n_json_tokenizers) keep_json_tokenizer(w, made_json_tokenizer(w, -2));
    return w->json_tokenizers[dice(w, (uint64_t)w->n_json_tokenizers)];
}

void keep_json_tokenizer(world *w, wf_json_tokenizer *t) {
    if (t && w->n_json_tokenizers < MOST_OBJECTS)
        w->json_tokenizers[w->n_json_tokenizers++] = t;
    else
        wf_json_tokenizer_free(t);
}

wf_shortlist *made_shortlist(world *w, int place) {
    uint8_t bytes[SHORTLIST_BYTES];
    wf_transformer_config c;
    char why[WF_MESSAGE];
    if (absent(w, place)) return NULL;
    begin_wf_transformer_config(w, &c);
    size_t n = write_shortlist(bytes, 2, (int)c.src_vocab, 2, (int)c.tgt_vocab);
    return wf_shortlist_read(bytes, n, c.src_vocab, c.tgt_vocab, false, why);
}

wf_shortlist *draw_shortlist(world *w, int place) {
    if (absent(w, place)) return NULL;
    if (!w->n_shortlists) keep_shortlist(w, made_shortlist(w, -2));
    return w->shortlists[dice(w, (uint64_t)w->n_shortlists)];
}

void keep_shortlist(world *w, wf_shortlist *l) {
    if (l && w->n_shortlists < MOST_OBJECTS)
        w->shortlists[w->n_shortlists++] = l;
    else
        wf_shortlist_free(l);
}

const wf_op *draw_op(world *w, int place) {
    if (absent(w, place)) return NULL;
    const wf_op *op = wf_op_at((int)dice(w, (uint64_t)wf_op_count()));
    /* Attributes are private to an op's constructor: an op that has some is replaced by copy. */
    return op->attr_bytes ? &wf_op_copy : op;
}

void keep_op(world *w, const wf_op *op) {
    (void)w;
    ck_assert(!op || *op->name);
}

const wf_model_kind *draw_kind(world *w, int place) {
    return absent(w, place) ? NULL : wf_model_kind_at((int)dice(w, 2));
}

void keep_kind(world *w, const wf_model_kind *kind) {
    (void)w;
    ck_assert(!kind || *wf_model_kind_name(kind));
}

wf_hf *draw_fresh_hf(world *w, int place) {
    if (absent(w, place)) return NULL;
    wf_hf_free(&w->hf);
    return &w->hf;
}

wf_hf *imported_hf(world *w, int place) {
    char why[WF_MESSAGE];
    if (absent(w, place)) return NULL;
    if (!w->hf.model) wf_hf_import("marian", &w->hf, why);
    return &w->hf;
}

wf_hf *made_hf(world *w, int place) {
    return absent(w, place) ? NULL : taken(w, sizeof(wf_hf), 1);
}

wf_hf_files *draw_fresh_list(world *w, int place) {
    if (absent(w, place)) return NULL;
    wf_hf_files_free(&w->listed);
    return &w->listed;
}

/* ---- training -------------------------------------------------------------------------------- */

static wf_optimizer new_optimizer(world *w) {
    wf_tensor *loss = w->tensors[w->n_leaves - 1], *one = wf_constant(current(w), 1);
    wf_optimizer_options o;
    begin_wf_optimizer_options(w, &o);
    return wf_optimizer_new(current(w), loss, one, w->tensors, 1, &o);
}

wf_optimizer *made_optimizer(world *w, int place) {
    if (absent(w, place)) return NULL;
    wf_optimizer *o = taken(w, sizeof *o, 1);
    *o = new_optimizer(w);
    return o;
}

wf_optimizer *draw_optimizer(world *w, int place) {
    if (absent(w, place)) return NULL;
    if (!w->n_optimizers) keep_optimizer(w, new_optimizer(w));
    return &w->optimizers[dice(w, (uint64_t)w->n_optimizers)];
}

void keep_optimizer(world *w, wf_optimizer o) {
    if (w->n_optimizers < MOST_OBJECTS)
        w->optimizers[w->n_optimizers++] = o;
    else
        wf_optimizer_free(&o);
}

static wf_trainer *new_trainer(world *w) {
    wf_trainer_options o = { 0 };
    wf_tensor *loss = w->tensors[w->n_leaves - 1];
    begin_wf_trainer_options(w, &o);
    begin_wf_optimizer_options(w, &o.optimizer);
    begin_wf_schedule(w, &o.schedule);
    return wf_trainer_new(current(w), loss, wf_constant(current(w), 1), &o);
}

wf_trainer *made_trainer(world *w, int place) {
    return absent(w, place) ? NULL : new_trainer(w);
}

wf_trainer *draw_trainer(world *w, int place) {
    if (absent(w, place)) return NULL;
    if (!w->trainer) w->trainer = new_trainer(w);
    return w->trainer;
}

void keep_trainer(world *w, wf_trainer *t) {
    ck_assert_msg(t != NULL, "%s returns NULL", w->function);
    ck_assert(wf_trainer_ok(t) || *wf_trainer_error(t));
    wf_trainer_free(w->trainer);
    w->trainer = t;
}

wf_transport *draw_transport(world *w, int place) {
    return absent(w, place) ? NULL : &w->transport;
}
