/* tests/models/test_model_emit.c - models with their search as C files: the emitted program has the
 * outputs and scores of wf_decode, to the bit; models that cannot be emitted are refused.
 * WEFT_EMIT_CC names another compiler, as in suite `emit`. */
#include <stdio.h>

#include "models/model_emit.h"
#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/emitted.h"
#include "tests/support/models.h"
#include "tests/support/wall.h"

TESTS(model_emit)

enum { SOURCES = 150, MOST_SOURCE = 12, MOST_OUTPUT = 40 };

/* ---- models ---------------------------------------------------------------------------------- */

/* RECURRENT: an SSRU decoder that begins with zeros, as in Marian's translators. PROMPTED: a
 * language model whose rows begin with the prompt instead of a start token. */
typedef enum form { PLAIN, PRE_NORM, RECURRENT, GPT, LLAMA, PROMPTED } form;

static wf_model *transformer(form f, int vocab) {
    bool pre = f == PRE_NORM;
    wf_transformer_config c = small_config();
    c.src_vocab = vocab + 3;
    c.tgt_vocab = vocab;
    c.max_len = 30;
    c.norm_first = pre;
    c.activation = pre ? WF_GELU : WF_RELU;
    c.positions = pre ? WF_POSITIONS_LEARNED : WF_POSITIONS_SINUSOIDAL;
    if (f == RECURRENT) {
        c.decoder = WF_DECODER_SSRU;
        c.positions = WF_POSITIONS_TENSOR2TENSOR;
        c.zero_start = true;
        c.encoder_norm = c.decoder_norm = false;
    }
    return open_model(&c, NULL, WF_F32, 3);
}

/* A random model. Its matrices are multiplied by 1.7, so that its probabilities differ. */
static wf_model *model_of(form f, int vocab) {
    wf_model *m = f < GPT ? transformer(f, vocab) : open_language_model(f != GPT, NULL, vocab, 30);
    m->start_first = m->start_if_empty = f == PROMPTED;
    for (int id = 0; id < wf_node_count(m->graph); id++) {
        wf_tensor *t = wf_node(m->graph, id);
        if (t->kind != WF_PARAM || t->ndim < 2) continue;
        double *data = leaf_values(t);
        for (int64_t i = 0; i < wf_count(t); i++) data[i] *= 1.7;
        ck_assert(write_doubles(t, data));
        free(data);
    }
    return m;
}

/* ---- sources, and what wf_decode makes of them ----------------------------------------------- */

typedef struct answer {
    int32_t n, tokens[MOST_OUTPUT];
    double score;
} answer;

static int32_t source[SOURCES][MOST_SOURCE], length[SOURCES];

static void draw_sources(const wf_model *m, int most) {
    int64_t vocab = m->src ? m->src_vocab : m->tgt_vocab;
    int least = m->src ? 1 : 0;
    for (int i = 0; i < SOURCES; i++) {
        length[i] = least + (int32_t)(number(7, (uint64_t)i) * (most + 1 - least));
        for (int k = 0; k < MOST_SOURCE; k++)
            source[i][k] = (int32_t)(number(8, (uint64_t)(i * MOST_SOURCE + k)) * (double)vocab);
    }
}

static void write_file(const char *path, const void *data, size_t bytes) {
    FILE *file = fopen(path, "wb");
    ck_assert(file);
    ck_assert_int_eq(fwrite(data, 1, bytes, file), bytes);
    ck_assert_int_eq(fclose(file), 0);
}

/* Decodes all sources with the library. The output is limited by the emitted file's limit, if that
 * is lower than the search's. Returns the number of tokens. */
static int decode_all(wf_model *m, const wf_decode_options *o, int64_t most_output) {
    static answer all[SOURCES];
    wf_decoder *d = open_decoder(m, NULL);
    int total = 0;
    memset(all, 0, sizeof all);
    for (int i = 0; i < SOURCES; i++) {
        wf_decode_options one = *o;
        wf_decoded found;
        double limit = floor(o->max_len_a * length[i] + o->max_len_b);
        one.max_len_a = 0;
        one.max_len_b = limit < (double)most_output ? limit : (double)most_output;
        assert_decoder(d, wf_decode(d, 1, length[i], source[i], &length[i], NULL, &one, &found));
        ck_assert(found.n == 1 && found.best->length <= MOST_OUTPUT);
        all[i].n = (int32_t)found.best->length;
        all[i].score = found.best->score;
        memcpy(all[i].tokens, found.best->tokens, (size_t)all[i].n * sizeof(int32_t));
        total += all[i].n;
        wf_decoded_free(&found, 1);
    }
    wf_decoder_free(d);
    write_file("expected", all, sizeof all);
    return total;
}

/* ---- the emitted file ------------------------------------------------------------------------ */

/* Writes a main function that decodes the sources one by one. */
static void write_main(FILE *file, const char *name) {
    fprintf(file,
            "    struct { int32_t n, tokens[%d]; double score; } a;\n"
            "    int32_t source[%d], n, output[%s_OUTPUT + 1];\n"
            "    while (fread(&n, 4, 1, stdin) == 1 && fread(source, 4, %d, stdin) == %d) {\n"
            "        memset(&a, 0, sizeof a);\n"
            "        a.n = %s_generate(&m, source, n, output);\n"
            "        if (a.n < 0) return 1;\n"
            "        memcpy(a.tokens, output, (size_t)a.n * 4);\n"
            "        a.score = %s_score(&m);\n"
            "        fwrite(&a, sizeof a, 1, stdout);\n"
            "    }\n"
            "    return 0;\n"
            "}\n",
            MOST_OUTPUT, MOST_SOURCE, name, MOST_SOURCE, MOST_SOURCE, name, name);
}

/* Writes a main function that decodes all sources in one call, between two of impossible lengths,
 * and then every 50th source alone. */
static void write_batch_main(FILE *file, const char *name) {
    fprintf(file,
            "    static struct { int32_t n, source[%d]; } in[%d];\n"
            "    static struct { int32_t n, tokens[%d]; double score; } a[%d];\n"
            "    static %s_task tasks[%d];\n"
            "    int n = 0;\n"
            "    for (; n < %d && fread(&in[n], sizeof in[n], 1, stdin) == 1; n++) {\n"
            "        tasks[n + 1].source = in[n].source;\n"
            "        tasks[n + 1].n = in[n].n;\n"
            "        tasks[n + 1].output = a[n].tokens;\n"
            "    }\n"
            "    tasks[0].n = -1;\n"
            "    tasks[n + 1].n = %s_SOURCE + 1;\n"
            "    %s_generate_batch(&m, tasks, n + 2);\n"
            "    if (tasks[0].length != -1 || tasks[n + 1].length != -1) return 1;\n"
            "    for (int i = 0; i < n; i++) {\n"
            "        a[i].n = tasks[i + 1].length;\n"
            "        a[i].score = tasks[i + 1].score;\n"
            "    }\n"
            "    fwrite(a, sizeof a[0], (size_t)n, stdout);\n"
            "    for (int i = 0; i < n; i += 50) {\n"
            "        int32_t output[%s_OUTPUT + 1];\n"
            "        int length = %s_generate(&m, in[i].source, in[i].n, output);\n"
            "        if (length != a[i].n || %s_score(&m) != a[i].score) return 1;\n"
            "    }\n"
            "    return 0;\n"
            "}\n",
            MOST_SOURCE, SOURCES, MOST_OUTPUT, SOURCES, name, SOURCES + 2, SOURCES, name, name,
            name, name, name);
}

static void write_program(const char *text, const char *name, bool together) {
    FILE *file = fopen("program.c", "w");
    ck_assert(file);
    fprintf(file,
            "#include <stdio.h>\n#include <string.h>\n%s\n"
            "int main(void) {\n"
            "    static _Alignas(64) unsigned char memory[%s_MEMORY];\n"
            "    static %s m;\n"
            "    memset(memory, 0xff, sizeof memory);\n"
            "    %s_start(&m, memory);\n",
            text, name, name, name);
    if (together)
        write_batch_main(file, name);
    else
        write_main(file, name);
    ck_assert_int_eq(fclose(file), 0);
}

static void write_sources(void) {
    FILE *file = fopen("sources", "wb");
    ck_assert(file);
    for (int i = 0; i < SOURCES; i++) {
        ck_assert_int_eq(fwrite(&length[i], 4, 1, file), 1);
        ck_assert_int_eq(fwrite(source[i], 4, MOST_SOURCE, file), MOST_SOURCE);
    }
    ck_assert_int_eq(fclose(file), 0);
}

/* Compiles the program with the strict flags and -O0, or, if `fast`, with -O3 for this processor,
 * and compares its output with the expected one. Without -std=c11 gcc contracts products and sums,
 * unless the file's pragma forbids it. */
static void compare(bool fast) {
    const char *level = fast ? "-std=gnu11 -O3 -march=native" : "-O0";
    run("%s " STRICT_FLAGS " %s program.c -o program && ./program < sources > got && "
        "cmp got expected",
        emitted_compiler(), level);
    ck_assert_msg(result.status == 0, "%s: %s %s", level, result.out, result.err);
}

typedef struct trial {
    form form;
    int vocab, max_source, max_output;
    const char *name;
    wf_decode_options search;
} trial;

/* The bytes of memory that the emitted file needs if `recomputed` layers compute keys and values
 * again instead of caching them. */
static int64_t memory_of(wf_model *m, const trial *t, int batch, int64_t recomputed) {
    int64_t memory = 0;
    char *text = wf_model_emit(m,
                               &(wf_model_emit_options){ .max_source = t->max_source,
                                                         .max_output = t->max_output,
                                                         .search = &t->search,
                                                         .batch = batch,
                                                         .recomputed = recomputed,
                                                         .memory_bytes = &memory },
                               NULL);
    ck_assert(text);
    free(text);
    return memory;
}

/* Emits a model, and compares the program's answers with the library's. With a batch above 1 the
 * program decodes several sources at once. */
static void try(const trial *t, int batch, bool int8, int64_t recomputed, bool compiled) {
    wf_model *m = model_of(t->form, t->vocab);
    if (int8) ck_assert(wf_pack_weights(m->graph, WF_PANELS_INT8, NULL));
    char message[WF_MESSAGE];
    int64_t memory = 0, weights = 0;
    int most = t->max_source ? t->max_source : MOST_SOURCE;
    char *text = wf_model_emit(m,
                               &(wf_model_emit_options){ .name = t->name,
                                                         .max_source = t->max_source,
                                                         .max_output = t->max_output,
                                                         .search = &t->search,
                                                         .batch = batch,
                                                         .recomputed = recomputed,
                                                         .memory_bytes = &memory,
                                                         .weight_bytes = &weights },
                               message);
    ck_assert_msg(text, "%s", message);
    ck_assert_int_gt(memory, 0);
    /* Layers with rotary positions (Llama) always cache, and recurrent units have no cache. Caches
     * of a beam are most of the memory. */
    bool cached = t->form != LLAMA && t->form != RECURRENT;
    if (recomputed && cached && t->search.beam > 1)
        ck_assert_int_lt(memory_of(m, t, batch, recomputed + 1), memory);
    if (recomputed && !cached) ck_assert_int_eq(memory_of(m, t, batch, 0), memory);
    /* The file's weights may be 20 % fewer than the parameters: tables of positions have no more
     * rows than the file needs, and both sides share one. */
    ck_assert_int_ge(weights, (int8 ? 1 : 4) * wf_model_parameter_count(m) * 8 / 10);
    ck_assert(!int8 || weights < 3 * wf_model_parameter_count(m));
    write_file("model.c", text, strlen(text));
    write_program(text, t->name ? t->name : "model", batch > 1);
    free(text);
    draw_sources(m, most);
    write_sources();
    int tokens = decode_all(m, &t->search, t->max_output ? t->max_output : MOST_OUTPUT);
    ck_assert(tokens > 0 || t->search.max_len_b == 0);
    if (compiled) compare(!SANITIZED && t->form % 2);
    if (!SANITIZED && compiles("clang")) {
        run("clang " STRICT_FLAGS " -fsyntax-only model.c");
        ck_assert_msg(result.status == 0, "%s", result.err);
    }
    close_model(m);
}

SETUP(enter_folder, leave_folder)

static const int32_t banned[] = { 3, 5 };

#define DEFAULTS                                                                                   \
    .nbest = 1, .max_len_a = 1, .max_len_b = 5, .repetition_penalty = 1, .decay = 1, .top_p = 1,   \
    .temperature = 1
static const trial trials[] = {
    { PLAIN, 17, 0, 0, NULL, { DEFAULTS, .beam = 1 } },
    { PRE_NORM, 17, 9, 8, "translator", { DEFAULTS, .beam = 1, .at_limit = WF_LIMIT_FREE_END } },
    { PLAIN, 17, 10, 0, NULL, { DEFAULTS, .beam = 4, .penalty = WF_PENALTY_GNMT, .alpha = 0.6 } },
    { PRE_NORM,
      17,
      0,
      0,
      NULL,
      { DEFAULTS, .beam = 3, .penalty = WF_PENALTY_AVERAGE, .alpha = 1, .stop = WF_STOP_FULL,
        .at_limit = WF_LIMIT_NO_END, .min_len = 4, .banned = banned, .n_banned = 2 } },
    { PLAIN,
      17,
      12,
      9,
      NULL,
      { DEFAULTS, .beam = 5, .penalty = WF_PENALTY_AVERAGE, .alpha = 0.7, .stop = WF_STOP_PRESENT,
        .at_limit = WF_LIMIT_FREE_END } },
    { PRE_NORM,
      17,
      0,
      0,
      NULL,
      { DEFAULTS, .beam = 2, .penalty = WF_PENALTY_GNMT, .alpha = 2, .stop = WF_STOP_LONGEST,
        .at_limit = WF_LIMIT_NO_END } },
    { PLAIN, 5, 6, 6, NULL, { DEFAULTS, .beam = 64, .penalty = WF_PENALTY_AVERAGE, .alpha = 1 } },
    { RECURRENT, 17, 0, 0, NULL, { DEFAULTS, .beam = 1 } },
    { RECURRENT, 17, 9, 8, NULL, { DEFAULTS, .beam = 4, .stop = WF_STOP_SHRINK } },
    { GPT, 17, 0, 0, NULL, { DEFAULTS, .beam = 1 } },
    { GPT, 17, 9, 7, NULL, { DEFAULTS, .beam = 3, .stop = WF_STOP_FULL } },
    { LLAMA, 17, 0, 0, NULL, { DEFAULTS, .beam = 1, .min_len = 3 } },
    { LLAMA,
      17,
      12,
      17,
      NULL,
      { DEFAULTS, .beam = 4, .penalty = WF_PENALTY_AVERAGE, .alpha = 1, .stop = WF_STOP_PRESENT } },
    { LLAMA, 2, 3, 1, NULL, { DEFAULTS, .beam = 2 } },
    { PROMPTED, 17, 0, 0, NULL, { DEFAULTS, .beam = 1 } },
    { PROMPTED, 17, 12, 17, NULL, { DEFAULTS, .beam = 4, .stop = WF_STOP_FULL } },
};

/* With weights in int8. */
static const trial rounded[] = {
    { PLAIN, 17, 0, 0, NULL, { DEFAULTS, .beam = 4, .penalty = WF_PENALTY_AVERAGE, .alpha = 1 } },
    { PRE_NORM, 17, 9, 8, NULL, { DEFAULTS, .beam = 1 } },
    { RECURRENT, 17, 9, 8, NULL, { DEFAULTS, .beam = 3 } },
    { GPT, 17, 9, 7, NULL, { DEFAULTS, .beam = 3 } },
    { LLAMA, 17, 0, 0, NULL, { DEFAULTS, .beam = 1 } },
};

/* The second position of a target is not a number, so a search fails there, some with an output
 * that ended before. Without an output there is no score. */
TEST(a_search_that_fails_has_no_score) {
    if (!has_emitted_compiler("model_emit")) return;
    wf_model *m = model_of(PRE_NORM, 17);
    wf_tensor *table = wf_find(m->graph, "tgt_position.weight");
    ck_assert_ptr_nonnull(table);
    double *data = leaf_values(table);
    for (int64_t i = 0; i < table->shape[1]; i++) data[table->shape[1] + i] = NAN;
    ck_assert(write_doubles(table, data));
    free(data);
    wf_decode_options search = { DEFAULTS, .beam = 6, .stop = WF_STOP_FULL };
    char message[WF_MESSAGE];
    char *text = wf_model_emit(m, &(wf_model_emit_options){ .search = &search }, message);
    ck_assert_msg(text, "%s", message);
    FILE *file = fopen("program.c", "w");
    ck_assert(file);
    fprintf(file,
            "%s\n"
            "#include <stdio.h>\n"
            "int main(void) {\n"
            "    static _Alignas(64) unsigned char memory[model_MEMORY];\n"
            "    static model m;\n"
            "    int32_t output[model_OUTPUT + 1];\n"
            "    model_start(&m, memory);\n"
            "    for (int32_t i = 0; i < 17; i++) {\n"
            "        int32_t source[] = { i, 3, 5, 7 };\n"
            "        int n = model_generate(&m, source, 4, output);\n"
            "        printf(\"%%d %%g\\n\", n, model_score(&m));\n"
            "    }\n"
            "    return 0;\n"
            "}\n",
            text);
    ck_assert_int_eq(fclose(file), 0);
    free(text);
    close_model(m);
    run("%s -std=c11 -O1 program.c -o program && ./program > got", emitted_compiler());
    ck_assert_msg(result.status == 0, "%s", result.err);
    run("grep ^-1 got | sort -u");
    ck_assert_str_eq(result.out, "-1 0\n");
}

TEST_ROWS(an_emitted_model_finds_the_same_outputs, COUNT_OF(trials)) {
    if (!has_emitted_compiler("model_emit")) return;
    try(&trials[_i], 1, false, 0, compiles_row(_i));
}

TEST_ROWS(an_emitted_model_in_int8_finds_the_same_outputs, COUNT_OF(rounded)) {
    if (!has_emitted_compiler("model_emit")) return;
    try(&rounded[_i], 1, true, 0, compiles_row(_i));
}

TEST_ROWS(keys_and_values_that_are_computed_again_have_the_same_bits, COUNT_OF(rounded)) {
    if (!has_emitted_compiler("model_emit")) return;
    try(&rounded[_i], 1, true, 1, compiles_row(_i));
}

static const struct {
    trial of;
    int batch;
    bool int8;
} together[] = {
    { { PRE_NORM, 17, 10, 0, "translator", { DEFAULTS, .beam = 4, .stop = WF_STOP_LONGEST } },
      3,
      false },
    { { LLAMA, 17, 12, 17, NULL, { DEFAULTS, .beam = 3, .at_limit = WF_LIMIT_NO_END } }, 5, false },
    { { RECURRENT, 17, 9, 8, NULL, { DEFAULTS, .beam = 2, .stop = WF_STOP_FULL } }, 2, false },
    { { PROMPTED, 17, 0, 0, NULL, { DEFAULTS, .beam = 1 } }, 7, false },
    { { PLAIN, 17, 9, 8, NULL, { DEFAULTS, .beam = 2 } }, 3, true },
    { { PLAIN, 4, 6, 6, NULL, { DEFAULTS, .beam = 1 } }, 4, false },
};

TEST_ROWS(sources_that_are_decoded_at_once_have_the_same_outputs, COUNT_OF(together)) {
    if (!has_emitted_compiler("model_emit")) return;
    try(&together[_i].of, together[_i].batch, together[_i].int8, together[_i].int8,
        compiles_row(_i));
}

/* ---- the program ----------------------------------------------------------------------------- */

TEST(the_program_reads_and_writes_lines_of_ids) {
    if (!has_emitted_compiler("model_emit")) return;
    wf_model *m = model_of(PLAIN, 17);
    char *text = wf_model_emit(m, NULL, NULL);
    ck_assert(text);
    write_file("model.c", text, strlen(text));
    free(text);
    run("%s " STRICT_FLAGS " -O1 -DMODEL_MAIN model.c -o model", emitted_compiler());
    expect(0);
    const int32_t src[] = { 4, 9, 2 }, n = 3;
    int32_t out[40], n_out;
    wf_decoder *d = open_decoder(m, NULL);
    assert_decoder(d, wf_decode_greedy(d, 1, 3, src, &n, 13, out, &n_out));
    char line[400] = "";
    for (int i = 0; i < n_out; i++) snprintf(line + strlen(line), 8, i ? " %d" : "%d", (int)out[i]);
    strcat(line, "\n");
    run("printf ' 4\\t9 2\\r\\n' | ./model");
    expect(0);
    ck_assert_str_eq(result.out, line);
    run("printf '4 9 2' | ./model");
    ck_assert_str_eq(result.out, line);
    run("./model < /dev/null");
    expect(0);
    ck_assert_str_eq(result.out, "");
    run("printf '\\n4 9 2\\n \\n' | ./model");
    expect(0);
    ck_assert(result.out[0] == '\n' && strncmp(result.out + 1, line, strlen(line)) == 0);
    ck_assert_str_eq(result.out + 1 + strlen(line), "\n");
    const char *const bad[] = { "4 x", "4 -1", "20", "99999999999999999999", "4,9" };
    for (int i = 0; i < COUNT_OF(bad); i++) {
        run("printf '4 9 2\\n%s\\n4 9 2\\n' | ./model", bad[i]);
        expect(1);
        ck_assert_str_eq(result.out, line);
        ck_assert_msg(strstr(result.err, "line 2: not ids of the vocabulary"), "%s", result.err);
    }
    wf_decoder_free(d);
    close_model(m);
}

/* ---- attention ------------------------------------------------------------------------------- */

/* Writes a program that prints the decoder's input row, and then all attention weights and
 * log-probabilities. */
static void write_attending(const wf_model *m, const char *text) {
    FILE *file = fopen("program.c", "w");
    ck_assert(file);
    fprintf(file,
            "#include <stdio.h>\n%s\nint main(void) {\n"
            "    static _Alignas(64) unsigned char memory[model_MEMORY];\n    static model m;\n"
            "    static int32_t row[model_ATTENDED], output[model_OUTPUT + 1];\n"
            "    static const int32_t source[] = { 4, 9, 2 };\n    model_start(&m, memory);\n"
            "    if (model_generate(&m, source, 3, output) < 0) return 1;\n"
            "    int32_t sizes[] = { model_SOURCE, model_ATTENDED, model_attend(&m, row) };\n"
            "    fwrite(sizes, 4, 3, stdout);\n    fwrite(row, 4, model_ATTENDED, stdout);\n",
            text);
    for (int i = 0; i < m->n_maps; i++) {
        const wf_attention_map *map = &m->maps[i];
        for (int k = 0; k < map->layers; k++)
            fprintf(file, "    fwrite(model_weights(&m, %d, %d), 4, %d * %s * %s, stdout);\n", i, k,
                    (int)map->weights[k]->shape[1],
                    map->source_queries ? "model_SOURCE" : "model_ATTENDED",
                    map->source_keys ? "model_SOURCE" : "model_ATTENDED");
    }
    fprintf(file,
            "    fwrite(model_log_probs(&m), 4, model_ATTENDED * %d, stdout);\n"
            "    return model_weights(&m, %d, 0) != 0;\n}\n",
            (int)m->tgt_vocab, m->n_maps);
    ck_assert_int_eq(fclose(file), 0);
}

static void must_have(wf_plan *p, const wf_tensor *t, FILE *got) {
    size_t bytes = wf_bound_bytes(p, t);
    void *expected = malloc(bytes), *found = malloc(bytes);
    ck_assert(expected && found && wf_fetch(p, t, expected, bytes));
    ck_assert_int_eq(fread(found, 1, bytes, got), bytes);
    ck_assert_msg(memcmp(expected, found, bytes) == 0, "%s has other bits", t->label);
    free(expected);
    free(found);
}

static void compare_attention(wf_model *m) {
    int32_t sizes[3], row[128], padded[64] = { 4, 9, 2 }, n = 3;
    FILE *got = fopen("got", "rb");
    wf_tensor *fetch[16], *feed[] = { m->tgt, m->src, m->src_length };
    int n_fetch = 0;
    ck_assert(got && fread(sizes, 4, 3, got) == 3 && sizes[0] <= 64 && sizes[1] <= 128);
    ck_assert_int_eq(fread(row, 4, (size_t)sizes[1], got), sizes[1]);
    ck_assert(sizes[2] > 0 && sizes[2] <= sizes[1]);
    for (int i = 0; i < m->n_maps; i++)
        for (int k = 0; k < m->maps[i].layers; k++) fetch[n_fetch++] = m->maps[i].weights[k];
    fetch[n_fetch++] = m->log_probs;
    wf_plan *p = wf_plan_new(
        m->graph, &(wf_plan_options){
                      .fetch = fetch, .n_fetch = n_fetch, .feed = feed, .n_feed = m->src ? 3 : 1 });
    bool ok = wf_bind(p, "B", 1) && wf_bind(p, "T", sizes[1]) &&
              (!m->src || (wf_bind(p, "S", sizes[0]) && wf_feed(p, m->src_length, &n, sizeof n) &&
                           wf_feed(p, m->src, padded, (size_t)sizes[0] * 4))) &&
              wf_feed(p, m->tgt, row, (size_t)sizes[1] * 4) && wf_run(p);
    ck_assert_msg(ok, "%s", wf_plan_error(p));
    for (int i = 0; i < n_fetch; i++) must_have(p, fetch[i], got);
    ck_assert_int_eq(fgetc(got), EOF);
    fclose(got);
    wf_plan_free(p);
}

TEST(attention_of_an_output_has_the_bits_of_the_library) {
    /* with a most_output, every output has exactly this number of tokens */
    static const struct {
        form form;
        int64_t most_output;
    } rows[] = { { PRE_NORM, 0 }, { LLAMA, 0 }, { PROMPTED, 0 }, { LLAMA, 4 }, { PROMPTED, 4 } };
    if (!has_emitted_compiler("model_emit")) return;
    for (int i = 0; i < COUNT_OF(rows); i++) {
        wf_model *m = model_of(rows[i].form, 20);
        char message[WF_MESSAGE];
        const int64_t most = rows[i].most_output;
        wf_decode_options search = { DEFAULTS, .beam = 1, .min_len = (int)most };
        wf_model_emit_options o = { .attention = true, .max_source = most ? 3 : 0 };
        o.max_output = most;
        if (most) o.search = &search;
        char *text = wf_model_emit(m, &o, message);
        ck_assert_msg(text, "%s", message);
        write_file("model.c", text, strlen(text));
        if (!SANITIZED) compile_alone(emitted_compiler()); /* as in try_emitted */
        write_attending(m, text);
        free(text);
        if (compiles_row(i)) {
            run("%s -std=c11 -O1 program.c -o program && ./program > got", emitted_compiler());
            expect(0);
            compare_attention(m);
        }
        close_model(m);
    }
}

/* ---- refusals -------------------------------------------------------------------------------- */

static bool listen(void *listener, int sentence, int32_t token) {
    (void)listener;
    (void)sentence;
    (void)token;
    return true;
}

typedef struct refusal {
    const char *name, *says;
    int64_t max_source, max_output;
    wf_decode_options search;
} refusal;

static const int32_t end[] = { 0 };
static const int32_t all_but_end[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };

static const refusal refusals[] = {
    { NULL, "draws at random", 0, 0, { DEFAULTS, .beam = 1, .sample = true } },
    { NULL, "a beam of 65", 0, 0, { DEFAULTS, .beam = 65 } },
    { NULL, "a beam of 0", 0, 0, { DEFAULTS, .beam = 0 } },
    { NULL, "forced tokens", 0, 0, { DEFAULTS, .beam = 1, .forced = banned, .n_forced = 1 } },
    { NULL, "rules of repetition", 0, 0, { DEFAULTS, .beam = 1, .no_repeat_ngram = 3 } },
    { NULL,
      "rules of repetition",
      0,
      0,
      { DEFAULTS, .beam = 1, .begin_banned = banned, .n_begin_banned = 1 } },
    { NULL, "renormalized", 0, 0, { DEFAULTS, .beam = 2, .renormalize = true } },
    { NULL, "a listener", 0, 0, { DEFAULTS, .beam = 1, .heard = listen } },
    { NULL,
      "the end token 0 cannot be banned",
      0,
      0,
      { DEFAULTS, .beam = 1, .banned = end, .n_banned = 1 } },
    { NULL,
      "every token is banned",
      0,
      0,
      { DEFAULTS, .beam = 1, .min_len = 1, .banned = all_but_end, .n_banned = 16 } },
    { NULL, "both are 0 or more", -1, 0, { DEFAULTS, .beam = 1 } },
    { NULL, "both are 0 or more", 0, -1, { DEFAULTS, .beam = 1 } },
    { "a b", "no identifier", 0, 0, { DEFAULTS, .beam = 1 } },
    { "", "no identifier", 0, 0, { DEFAULTS, .beam = 1 } },
    { "search", "for something else", 0, 0, { DEFAULTS, .beam = 1 } },
    { "int", "for something else", 0, 0, { DEFAULTS, .beam = 1 } },
    { "text_work", "for something else", 0, 0, { DEFAULTS, .beam = 1 } },
    { "source_pieces", "for something else", 0, 0, { DEFAULTS, .beam = 1 } },
};

TEST_ROWS(what_has_no_form_is_refused, COUNT_OF(refusals)) {
    const refusal *r = &refusals[_i];
    wf_model *m = model_of(PLAIN, 17);
    char message[WF_MESSAGE] = "";
    ck_assert(!wf_model_emit(m,
                             &(wf_model_emit_options){ .name = r->name,
                                                       .max_source = r->max_source,
                                                       .max_output = r->max_output,
                                                       .search = &r->search },
                             message));
    ck_assert_msg(strstr(message, r->says), "'%s' is not '%s'", message, r->says);
    close_model(m);
}

TEST(batches_without_a_form_are_refused) {
    static const struct {
        int64_t batch;
        bool attention;
        const char *says;
    } rows[] = { { 1025, false, "1025 sources at once have no form in C: 1 to 1024" },
                 { -1, false, "-1 sources at once have no form in C: 1 to 1024" },
                 { 2, true, "attention of several sources at once has no form in C" } };
    wf_model *m = model_of(PLAIN, 17);
    for (int i = 0; i < COUNT_OF(rows); i++) {
        char message[WF_MESSAGE] = "";
        wf_model_emit_options o = { .batch = rows[i].batch, .attention = rows[i].attention };
        ck_assert(!wf_model_emit(m, &o, message));
        ck_assert_str_eq(message, rows[i].says);
    }
    close_model(m);
}

TEST(no_model_and_a_model_of_f64_are_refused) {
    char message[WF_MESSAGE] = "";
    ck_assert(!wf_model_emit(NULL, NULL, message));
    ck_assert_str_eq(message, "there is no model");
    wf_transformer_config c = small_config();
    wf_model *m = open_model(&c, NULL, WF_F64, 3);
    ck_assert(!wf_model_emit(m, NULL, message));
    ck_assert_str_eq(message, "a graph of f64 has no form in C");
    close_model(m);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static wf_model *m;

static bool emit_once(void) {
    char message[WF_MESSAGE] = "";
    char *text = wf_model_emit(m, NULL, message);
    must(text || message[0], "no text and no message");
    if (text) wall_say(text, strlen(text));
    free(text);
    return text != NULL;
}

TEST(without_memory_there_is_a_message_and_no_file) {
    const wall_work work = { "emit a model", emit_once, false };
    m = model_of(LLAMA, 7);
    ck_assert(emit_once()); /* the first plans record nodes, which the graph keeps */
    ck_assert_int_gt(wall_fail_each(&work, false), 100);
    close_model(m);
}
