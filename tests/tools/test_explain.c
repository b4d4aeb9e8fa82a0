/* tests/tools/test_explain.c - the page of generate --explain: its numbers are those of generate's
 * output and of the model, and a browser shows them without an error.
 *
 * Three small models are trained once: $WORDS knows some pairs by heart, $IDS copies numbers, and
 * $BOOK continues text. */
#include <ctype.h>
#include <stdio.h>

#include "models/model.h"
#include "models/model_internal.h"
#include "tests/suites.h"
#include "tests/support/commands.h"

TESTS(explain)

enum { MOST_PAGE = 1 << 20, MOST_LIST = 1 << 14, MOST_PATH = 64, TOP = 10 };

static char page[MOST_PAGE + 1];

#define SIZE "--d-model 16 --heads 2 --layers 2 --d-ff 32 --quiet --threads 1 "

static void train_models(void) {
    static const char *const names[] = { "WORDS", "IDS", "BOOK" };
    enter_models();
    ok("printf 'ein haus\\ta house\\nein hund\\ta dog\\nzwei hunde\\ttwo dogs\\n"
       "das haus ist klein\\tthe house is small\\n' > pairs");
    ok("train --train pairs --tokenizer word " SIZE
       "--max-steps 100 --lr 0.01 --warmup 10 -o words > /dev/null");
    ok("train --task copy " SIZE "--max-steps 30 --valid-size 10 -o ids > /dev/null");
    ok("for i in 1 2 3 4 5 6 7 8 9; do echo the dog sees the house; echo a house is small; "
       "done > text");
    ok("train --task lm --text text --tokenizer text-char " SIZE
       "--max-steps 30 --max-len 40 -o book > /dev/null");
    name_models(names, COUNT_OF(names));
}

/* ---- reading a page -------------------------------------------------------------------------- */

/* The JSON data of a page, cut out of its text. */
static const char *data_of(const char *path) {
    read_text(path, page, sizeof page);
    char *data = strstr(page, "id=\"data\">");
    ck_assert_msg(data, "%s has no data", path);
    char *end = strstr(data, "</script>");
    ck_assert_ptr_nonnull(end);
    *end = '\0';
    return data + strlen("id=\"data\">");
}

/* Finds the first `"key":` in `text`, and returns the text behind it. */
static const char *behind(const char *text, const char *key) {
    char quoted[60];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(text, quoted);
    ck_assert_msg(at, "there is no %s", quoted);
    return at + strlen(quoted);
}

/* Reads the list of numbers that begins at `text`; null becomes NAN. Returns the place behind
 * it. */
static const char *numbers(const char *text, double *list, int most, int *n) {
    char *at;
    ck_assert_int_eq(*text, '[');
    for (*n = 0; *text != ']';) {
        ck_assert(*n < most);
        text++;
        if (*text == ']') break;
        if (strncmp(text, "null", 4) == 0) {
            list[(*n)++] = NAN;
            text += 4;
            continue;
        }
        list[(*n)++] = strtod(text, &at);
        ck_assert(at > text);
        text = at;
    }
    return text + 1;
}

static int list_of(const char *text, const char *key, double *list, int most) {
    int n;
    numbers(behind(text, key), list, most, &n);
    return n;
}

/* ---- the tree -------------------------------------------------------------------------------- */

enum { PARENT, TOKEN, LOG_PROB, TOTAL, FATE, SCORE, CUT, ROW, OUTPUT, FIELDS };
enum { LIVE, ENDED, WORSE, STOPPED, BANNED };
enum { MOST_NODES = 2048 };

typedef struct tree_of_page {
    double nodes[MOST_NODES][FIELDS];
    int n;
} tree_of_page;

static tree_of_page tree;

static void read_tree(const char *data) {
    const char *at = behind(data, "nodes");
    int n;
    tree.n = 0;
    while (*at != ']') {
        ck_assert_int_lt(tree.n, MOST_NODES);
        at = numbers(at + 1, tree.nodes[tree.n++], FIELDS, &n);
        ck_assert_int_eq(n, FIELDS);
    }
    ck_assert_int_gt(tree.n, 1);
}

/* Writes the tokens on the path from the root of the tree to a node, without an end token. Returns
 * how many. */
static int path_of(int node, int32_t *tokens) {
    int n = 0, at = node;
    if (tree.nodes[node][FATE] == ENDED) at = (int)tree.nodes[node][PARENT];
    for (int i = at; i > 0; i = (int)tree.nodes[i][PARENT]) n++;
    ck_assert_int_lt(n, MOST_PATH);
    for (int i = at, k = n; i > 0; i = (int)tree.nodes[i][PARENT])
        tokens[--k] = (int32_t)tree.nodes[i][TOKEN];
    return n;
}

static int node_of_output(int rank) {
    for (int i = 0; i < tree.n; i++)
        if (tree.nodes[i][OUTPUT] == rank) return i;
    ck_abort_msg("there is no output %d in the tree", rank);
    return -1;
}

/* ---- what generate says ---------------------------------------------------------------------- */

SETUP_ONCE(train_models, forget_models)
SETUP(enter_folder, leave_folder)

static const char *const uses[] = {
    "echo ein haus ist zwei | generate --model $WORDS --beam 4 --nbest 3",
    "echo das haus ist klein | generate --model $WORDS --beam 1 --nbest 1",
    "echo zwei hunde | generate --model $WORDS --beam 6 --nbest 6 --stop full --at-limit no-end",
    "echo 4 7 1 9 9 3 | generate --model $IDS --beam 3 --nbest 3 --length-penalty-type avg",
    "echo 4 7 1 9 9 3 | generate --model $IDS --beam 2 --nbest 2 --no-repeat-ngram-size 1",
    "echo 4 7 1 | generate --model $IDS --sample --nbest 4 --seed 3 --max-new-tokens 6",
    "generate --model $BOOK --prompt 'the d' --max-new-tokens 12 --beam 2 --nbest 2",
    "generate --model $BOOK --prompt '' --max-new-tokens 5 --sample --nbest 2 --seed 8",
    "echo a house | generate --model $BOOK --max-new-tokens 7 --beam 3 --nbest 1 --stop longest",
};

/* Checks the tree of hypotheses: totals are sums along the paths, and the parent of a hypothesis
 * was continued. */
static void check_tree(void) {
    ck_assert_double_eq(tree.nodes[0][PARENT], -1);
    for (int i = 1; i < tree.n; i++) {
        const double *node = tree.nodes[i], *parent = tree.nodes[(int)node[PARENT]];
        ck_assert(node[PARENT] >= 0 && node[PARENT] < i);
        ck_assert_double_eq(parent[FATE], LIVE);
        ck_assert_double_eq_tol(parent[TOTAL] + node[LOG_PROB], node[TOTAL], 1e-6);
        ck_assert(node[FATE] >= LIVE && node[FATE] <= BANNED);
    }
}

/* Compares the page's outputs, log-probabilities, totals and scores with those of generate --json,
 * as text. */
static void check_outputs(const char *data, const char *json) {
    static const char *const keys[] = { "log_probs", "total", "score", "cut" };
    const char *ours = behind(data, "outputs"), *theirs = behind(json, "outputs");
    for (int rank = 1; (theirs = strstr(theirs, "\"log_probs\":")) != NULL; rank++) {
        double ids[MOST_PATH];
        int32_t path[MOST_PATH];
        int n = list_of(ours, "output_ids", ids, MOST_PATH), node = node_of_output(rank);
        ck_assert_int_eq(path_of(node, path), n);
        for (int i = 0; i < n; i++) ck_assert_int_eq(path[i], (int)ids[i]);
        for (int k = 0; k < COUNT_OF(keys); k++) {
            ours = behind(ours, keys[k]);
            theirs = behind(theirs, keys[k]);
            size_t length = keys[k][0] == 'l' ? strcspn(ours, "]") : strcspn(ours, ",}");
            ck_assert_msg(strncmp(ours, theirs, length) == 0, "%s: %.60s, not %.60s", keys[k], ours,
                          theirs);
        }
        ck_assert_double_eq_tol(tree.nodes[node][SCORE], atof(behind(ours - 60, "score")), 1e-6);
    }
}

TEST_ROWS(a_page_tells_what_generate_says, COUNT_OF(uses)) {
    static outcome plain;
    run("%s --quiet", uses[_i]);
    expect(0);
    plain = result;
    run("%s --quiet --explain page.html", uses[_i]);
    expect(0);
    ck_assert_str_eq(result.out, plain.out);
    ck_assert_str_eq(result.err, plain.err);
    run("%s --quiet --json", uses[_i]);
    expect(0);
    const char *data = data_of("page.html");
    read_tree(data);
    check_tree();
    check_outputs(data, result.out);
    run("%s --quiet --threads 2 --explain again.html > none", uses[_i]);
    expect(0);
    ck_assert(same_files("page.html", "again.html"));
}

/* ---- the slider ------------------------------------------------------------------------------ */

static wf_model *open_model_file(const char *name) {
    char message[WF_MESSAGE], path[128];
    snprintf(path, sizeof path, "%s/%s", models_folder, name);
    wf_file *f = wf_file_open(path);
    wf_model *m = wf_model_load(f, NULL, WF_F32, 0, message);
    ck_assert_msg(m, "%s", message);
    wf_file_free(f);
    return m;
}

/* The logits [T,V] of the first output, from one run over the whole sequence. *begin becomes the
 * row that predicts its first token. The caller frees them. */
static float *logits_of(wf_model *m, const char *data, int *begin) {
    double list[MOST_PATH];
    int32_t src[MOST_PATH], tgt[MOST_PATH] = { m->start_id };
    int32_t n = list_of(data, "source_ids", list, MOST_PATH);
    for (int i = 0; i < n; i++) src[i] = (int32_t)list[i];
    int t = list_of(behind(data, "outputs"), "output_ids", list, MOST_PATH) + 1;
    for (int i = 1; i < t; i++) tgt[i] = (int32_t)list[i - 1];
    const wf_batch pair = { 1, n, t, src, &n, tgt, NULL };
    wf_tensor *inputs[] = { m->tgt, m->src, m->src_length };
    wf_plan_options o = {
        .fetch = &m->logits, .n_fetch = 1, .feed = inputs, .n_feed = m->src ? 3 : 1
    };
    wf_plan *p = wf_plan_new(m->graph, &o);
    ck_assert_msg(wf_model_feed(m, p, &pair) && wf_run(p), "%s", wf_plan_error(p));
    size_t bytes = wf_bound_bytes(p, m->logits);
    float *logits = malloc(bytes);
    ck_assert(wf_fetch(p, m->logits, logits, bytes));
    wf_plan_free(p);
    *begin = (int)wf_model_begin(m, n);
    return logits;
}

static double share(const float *logits, int64_t vocab, int token, double temperature) {
    double sum = 0;
    for (int64_t i = 0; i < vocab; i++)
        sum += exp(((double)logits[i] - (double)logits[token]) / temperature);
    return 1 / sum;
}

/* The JSON object in the page's `rows` for the tokens that may follow a node. */
static const char *row_text(const char *data, int node) {
    const char *at = behind(data, "rows");
    for (int k = 0; k < (int)tree.nodes[node][ROW]; k++) at = behind(at + 1, "node");
    return behind(at, "node") - strlen("{\"node\":");
}

static void check_row(const char *row, const float *logits, int64_t vocab,
                      const double *temperatures, int n) {
    double tokens[TOP], own[TOP], normalisers[64];
    int top = list_of(row, "tokens", tokens, TOP);
    ck_assert_int_eq(list_of(row, "logits", own, TOP), top);
    ck_assert_int_eq(list_of(row, "normalisers", normalisers, 64), n);
    ck_assert_int_eq(top, vocab < TOP ? vocab : TOP);
    for (int i = 0; i < top; i++)
        for (int k = 0; k < n; k++)
            ck_assert_double_eq_tol(exp(own[i] / temperatures[k] - normalisers[k]),
                                    share(logits, vocab, (int)tokens[i], temperatures[k]), 1e-6);
}

/* Compares the page's probabilities with a softmax over all tokens, at every step of the output and
 * for every temperature of the slider. */
static void check_slider(const char *name, const char *data) {
    double temperatures[64];
    int32_t path[MOST_PATH];
    int begin, n = list_of(data, "temperatures", temperatures, 64);
    wf_model *m = open_model_file(name);
    float *logits = logits_of(m, data, &begin);
    read_tree(data);
    int node = node_of_output(1), length = path_of(node, path);
    ck_assert_int_gt(n, 10);
    node = (int)tree.nodes[node][PARENT];
    for (int t = length; t >= 0; t--, node = (int)tree.nodes[node][PARENT])
        check_row(row_text(data, node), logits + (begin + t) * m->tgt_vocab, m->tgt_vocab,
                  temperatures, n);
    free(logits);
    wf_model_free(m);
}

TEST(the_slider_has_the_probabilities_of_the_model) {
    ok("echo ein haus ist klein | generate --model $WORDS --explain page.html");
    check_slider("words", data_of("page.html"));
    ok("echo 4 7 1 9 9 3 | generate --model $IDS --beam 3 --explain page.html");
    check_slider("ids", data_of("page.html"));
    ok("generate --model $BOOK --prompt 'the dog' --max-new-tokens 9 --explain page.html");
    check_slider("book", data_of("page.html"));
}

/* ---- attention ------------------------------------------------------------------------------- */

static int digit(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = strchr(digits, c);
    ck_assert(c && at);
    return (int)(at - digits);
}

/* Decodes base64 into weights of 16 bits each, from 0 to 1. Returns their number. */
static int weights(const char *text, double *list) {
    unsigned char bytes[3 * MOST_LIST];
    int n = 0;
    for (; *text != '"'; text += 4) {
        int word = digit(text[0]) << 18 | digit(text[1]) << 12;
        word |= text[2] == '=' ? 0 : digit(text[2]) << 6;
        word |= text[3] == '=' ? 0 : digit(text[3]);
        ck_assert_int_lt(n + 3, (int)sizeof bytes);
        bytes[n++] = (unsigned char)(word >> 16);
        if (text[2] != '=') bytes[n++] = (unsigned char)(word >> 8);
        if (text[3] != '=') bytes[n++] = (unsigned char)word;
    }
    for (int i = 0; i < n / 2; i++) list[i] = (bytes[2 * i] + 256 * bytes[2 * i + 1]) / 65535.0;
    return n / 2;
}

/* Reads all weights of one map in a file of --attention, in order. Returns their number. */
static int plain_weights(const char *text, double *list) {
    int n = 0;
    for (int depth = 0; *text;) {
        depth += (*text == '[') - (*text == ']');
        char *end = NULL;
        if (isdigit((unsigned char)*text)) list[n++] = strtod(text, &end);
        if (end)
            text = end;
        else
            text++;
        ck_assert_int_lt(n, MOST_LIST);
        if (depth == 0) break;
    }
    return n;
}

static void check_map(const char *map, const char *expected) {
    static double ours[MOST_LIST], theirs[MOST_LIST];
    int heads = atoi(behind(map, "heads")), rows = atoi(behind(map, "rows"));
    int columns = atoi(behind(map, "columns")), size = heads * rows * columns, n = 0;
    const char *at = behind(map, "layers");
    while (*at != ']') {
        ck_assert_int_eq(weights(at + 2, ours + n), size);
        n += size;
        at = strchr(at + 2, '"') + 1;
    }
    ck_assert_int_eq(plain_weights(expected, theirs), n);
    for (int i = 0; i < n; i++) ck_assert_double_eq_tol(ours[i], theirs[i], 1e-5);
    for (int i = 0; i < n; i += columns) {
        double sum = 0;
        for (int k = 0; k < columns; k++) sum += ours[i + k];
        ck_assert_double_eq_tol(sum, 1, 1e-3);
    }
}

static void check_attention(const char *data, int maps) {
    static char json[1 << 18];
    char name[32];
    int n = 0;
    read_text("a.json", json, sizeof json);
    const char *at = behind(data, "attention");
    for (; n < maps; n++) {
        at = behind(at, "name");
        ck_assert_int_eq(sscanf(at, "\"%31[a-z_]\"", name), 1);
        check_map(at, behind(json, name));
    }
    const char *more = strstr(at, "\"source_queries\":");
    ck_assert(more && !strstr(more + 1, "\"source_queries\":"));
}

TEST(attention_is_that_of_the_option_attention) {
    ok("echo ein haus ist klein | "
       "generate --model $WORDS --explain page.html --attention a.json");
    check_attention(data_of("page.html"), 3);
    ok("generate --model $BOOK --prompt 'the dog' --max-new-tokens 9 --explain page.html "
       "--attention a.json");
    check_attention(data_of("page.html"), 1);
}

/* ---- the stack ------------------------------------------------------------------------------- */

TEST(the_stack_ends_in_the_log_probabilities) {
    double cells[MOST_PATH], log_probs[MOST_PATH], shape[8];
    ok("echo 4 7 1 9 9 3 | generate --model $IDS --beam 1 --explain page.html");
    const char *data = data_of("page.html"), *node = behind(data, "stack");
    int n = list_of(behind(data, "outputs"), "log_probs", log_probs, MOST_PATH), nodes = 0;
    for (const char *at = node; (at = strstr(at, "{\"path\":")) != NULL; nodes++) node = at++;
    ck_assert_int_gt(nodes, 60);
    ck_assert_int_eq(list_of(node, "shape", shape, 8), 3);
    ck_assert(shape[0] == 1 && shape[1] == n);
    double token = list_of(behind(data, "outputs"), "output_ids", cells, MOST_PATH) ? cells[0] : 0;
    const char *row = behind(node, "values") + 1;
    numbers(row, cells, 8, &nodes);
    ck_assert_int_eq(nodes, 8);
    if (token < 8) ck_assert_double_eq_tol(cells[(int)token], log_probs[0], 1e-3);
    for (int i = 0; i < 8; i++) ck_assert_double_lt(cells[i], 0);
    assert_contains(data, "\"path\":\"transformer.decoder.layers.1.multihead_attn\"");
    assert_contains(data, "\"transformer.encoder.layers.0.linear1.weight [32,16]\"");
}

/* ---- sizes, and nonsense --------------------------------------------------------------------- */

static long size_of(const char *path) {
    FILE *f = fopen(path, "r");
    ck_assert(f && fseek(f, 0, SEEK_END) == 0);
    long n = ftell(f);
    fclose(f);
    return n;
}

TEST(pages_are_small) {
    ok("train --task copy --d-model 64 --heads 8 --layers 6 --d-ff 64 --max-len 20 --max-steps 1 "
       "--valid-size 10 --quiet -o large > none 2>&1");
    ok("echo 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9 1 2 | generate --model large --beam 5 "
       "--explain page.html");
    ck_assert_int_lt(size_of("page.html"), 1 << 20);
    ok("echo 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9 1 2 | generate --model large --beam 200 "
       "--nbest 150 --min-len 15 --explain page.html");
    ck_assert_int_lt(size_of("page.html"), 1 << 20);
    const char *data = data_of("page.html");
    ck_assert_int_gt(atoi(behind(data, "nodes_left_out")), 0);
    ck_assert_int_gt(atoi(behind(data, "rows_left_out")), 0);
    ok("train --task lm --text $(dirname $BOOK)/text --tokenizer text-char --d-model 16 --heads 4 "
       "--layers 8 --d-ff 16 --max-steps 1 --max-len 260 --quiet -o long > none 2>&1");
    ok("generate --model long --prompt 'a dog' --max-new-tokens 200 --min-len 200 "
       "--explain page.html");
    ck_assert_int_lt(size_of("page.html"), 1 << 20);
    data = data_of("page.html");
    ck_assert_int_lt(atoi(behind(data, "heads")), atoi(behind(data, "all_heads")));
}

static const struct {
    const char *command, *sentence;
    int status;
} nonsense[] = {
    { "printf '\\n' | generate --model $WORDS --explain page.html", "no output to explain", 1 },
    { ": | generate --model $WORDS --explain page.html", "no output to explain", 1 },
    { "printf 'ein haus\\nein hund\\n' | generate --model $WORDS --explain page.html",
      "line 2: --explain draws one line", 1 },
    { "printf 'ein \\377\\n' | generate --model $WORDS --explain page.html", "UTF-8", 1 },
    { "yes 1 2 3 | head -200 | tr '\\n' ' ' | generate --model $IDS --long-lines skip "
      "--explain page.html",
      "no output to explain", 1 },
    { "yes 1 2 3 | head -200 | tr '\\n' ' ' | generate --model $IDS --long-lines stop "
      "--explain page.html",
      "line 1", 1 },
    { "echo 1 x 2 | generate --model $IDS --explain page.html", "line 1", 1 },
    { "printf '1\\t1\\n' | generate --model $IDS --score --explain page.html", "--explain", 2 },
    { "echo 1 2 | generate --model $IDS --long-lines split --explain page.html", "--explain", 2 },
    { "echo 1 2 | generate --model $IDS --explain no/folder/page.html", "no/folder", 1 },
    { "echo 1 2 | generate --model $IDS --explain -", "no file for a browser", 2 },
};

TEST_ROWS(nonsense_leaves_an_old_page, COUNT_OF(nonsense)) {
    ok("echo 'digraph weft {' > page.html");
    run("%s", nonsense[_i].command);
    expect(nonsense[_i].status);
    assert_contains(result.err, nonsense[_i].sentence);
    ok("cat page.html; ls -A | grep -c page");
    ck_assert_str_eq(result.out, "digraph weft {\n1\n");
}

TEST(a_line_may_hold_markup) {
    ok("printf '</script><script>alert(1)</script> & \"ein\" <!-- haus\\n' | "
       "generate --model $WORDS --explain page.html --quiet");
    read_text("page.html", page, sizeof page);
    ck_assert_ptr_null(strstr(page, "alert(1)</"));
    ck_assert_ptr_null(strstr(page, "<!--"));
}

/* ---- a browser ------------------------------------------------------------------------------- */

/* Draws page.html in the browser `with` at a step and a temperature, and reads the drawn page into
 * `page`. */
static void draw(const char *with, int step, double temperature) {
    char name[100];
    snprintf(name, sizeof name, "page.html#step=%d&temperature=%g&node=5", step, temperature);
    draw_page(with, name);
    read_text("drawn.html", page, sizeof page);
}

/* Compares the probabilities of the tokens that the browser shows with those of the model. */
static void check_drawn(const float *logits, int64_t vocab, double temperature) {
    int n = 0;
    for (const char *at = page; (at = strstr(at, "data-p=\"")) != NULL; at++) {
        const char *row = strstr(at, "data-id=\""), *end = strchr(at, '>');
        if (!row || row > end) continue;
        ck_assert_double_eq_tol(atof(at + 8), share(logits, vocab, atoi(row + 9), temperature),
                                1e-6);
        n++;
    }
    ck_assert_int_eq(n, vocab < TOP ? vocab : TOP);
}

/* Any request for a resource would violate the page's content security policy, which the browser's
 * console reports. */
TEST(a_browser_shows_the_page_without_an_error) {
    static const double temperatures[] = { 0.5, 1, 2 };
    int begin;
    const char *with = browser();
    if (!with) return; /* none is installed */
    ok("echo ein haus ist klein | generate --model $WORDS --explain page.html");
    wf_model *m = open_model_file("words");
    float *logits = logits_of(m, data_of("page.html"), &begin);
    for (int i = 0; i < COUNT_OF(temperatures); i++) {
        draw(with, i + 1, temperatures[i]);
        check_drawn(logits + i * m->tgt_vocab, m->tgt_vocab, temperatures[i]);
    }
    assert_contains(page, "class=\"arcs\"");
    assert_contains(page, "encoder self-attention");
    assert_contains(page, "class=\"tree\"");
    free(logits);
    wf_model_free(m);
}
