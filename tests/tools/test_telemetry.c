/* tests/tools/test_telemetry.c - the page of train --report and the events of --tensorboard; and
 * that they change nothing in the training. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/support.h"
#include "tools/history/run_page.h"

TESTS(telemetry)

#define SIZE "--d-model 16 --heads 2 --layers 1 --d-ff 16 --threads 1 --quiet "
#define COPY "train --task copy " SIZE "--warmup 5 --valid-size 20 "
#define WATCHED "--valid-every 10 --log-every 5 "

static char page_text[1 << 20];

static const char *read_page(const char *path) {
    read_text(path, page_text, sizeof page_text);
    return page_text;
}

/* The page is too long for a message. */
static void assert_in_page(const char *page, const char *part) {
    ck_assert_msg(strstr(page, part) != NULL, "the page lacks %s", part);
}

static int times(const char *text, const char *part) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) n++;
    return n;
}

static void make_pairs(void) {
    ok("for i in $(seq 60); do echo \"a$((i % 7)) b$((i % 5)) <i>\tc$((i % 5)) d$((i % 7))\"; "
       "done > pairs; sed -n '1~9p' pairs > held");
}

SETUP(enter_folder, leave_folder)

/* ---- the page -------------------------------------------------------------------------------- */

TEST(a_report_has_curves_outputs_attention_time_and_memory) {
    ok(COPY WATCHED "--max-steps 40 --lr-steps 100 -o m --report run.html");
    const char *page = read_page("run.html");
    ck_assert_int_eq(strncmp(page, "<!DOCTYPE html>\n", 16), 0);
    ck_assert(strlen(page) > 8 && !strcmp(page + strlen(page) - 8, "</html>\n"));
    assert_in_page(page, "\"title\":\"Learning to copy\"");
    assert_in_page(page, "\"step\":40,\"total\":40,");
    assert_in_page(page, "\"ended\":true");
    assert_in_page(page, "\"group\":\"train\",\"name\":\"loss\",\"unit\":\"nats per token\","
                         "\"x\":[5,10,15,20,25,30,35,40]");
    assert_in_page(page, "\"group\":\"valid\",\"name\":\"exact\",\"unit\":\"share of outputs\","
                         "\"x\":[10,20,30,40]");
    assert_in_page(page, "\"title\":\"cross-attention of decoder layer 1 of 1\"");
    assert_in_page(page, "\"heads\":2,");
    ck_assert_int_eq(times(page, "\"outputs\":["), 4);
    ck_assert_int_eq(times(page, "\"weights\":\""), 4);
    assert_in_page(page, "{\"op\":\"matmul\",\"calls\":");
    assert_in_page(page, "\"memory\":{\"bytes\":");
}

/* The page is written at each validation, so it can be reloaded, and a killed run leaves it. */
TEST(a_report_is_written_at_each_validation) {
    ok(COPY "--valid-every 10 --max-steps 100000 --report run.html & process=$!\n"
            "until grep -q '\"frames\":..\"step\":10,.*\"step\":20,' run.html 2> none; do\n"
            "  kill -0 $process || exit 1; sleep 0.02\n"
            "done; kill -9 $process; ls | grep -c . > count");
    const char *page = read_page("run.html");
    assert_in_page(page, "\"ended\":false");
    ck_assert_str_eq(page + strlen(page) - 8, "</html>\n");
}

TEST(a_report_without_validations_is_written_at_saves_and_at_the_end) {
    ok("train --task copy " SIZE
       "--valid-size 0 --max-steps 20 --save-every 10 -o m --report r.html");
    assert_in_page(read_page("r.html"), "\"frames\":[],");
    assert_in_page(read_page("r.html"), "\"step\":20,");
}

/* Settings, seconds and speeds aside. */
#define SAME_HISTORY(a, b)                                                                         \
    "for f in " a " " b "; do grep -o '\"frames\":.*\\],\"ops\"' $f; "                             \
    "grep -o '\"group\":[^{]*' $f | grep -v tokens_per_second; grep -o '\"attention\":[^}]*' $f; " \
    "done > all; n=$(($(wc -l < all) / 2)); head -n $n all > first; tail -n $n all > second; "     \
    "[ $n -gt 7 ] && cmp first second"

TEST(a_resume_goes_on_with_the_page_that_is_there) {
    ok(COPY WATCHED "--lr-steps 100 --save-every 20 --max-steps 60 -o whole --report whole.html");
    ok(COPY WATCHED "--lr-steps 100 --save-every 20 --max-steps 20 -o parts --report parts.html");
    ok("cp parts saved");
    ok("train --resume " WATCHED "--valid-size 20 --threads 1 --quiet --max-steps 40 -o parts "
       "--report parts.html");
    ok(SAME_HISTORY("whole.html", "parts.html") " || exit 0; exit 1"); /* it stops at 40 */
    ok("cp saved parts"); /* as if the steps after 20 had never been saved */
    ok("train --resume " WATCHED "--valid-size 20 --threads 1 --quiet --max-steps 60 -o parts "
       "--report parts.html");
    ck_assert(same_files("whole", "parts"));
    ok(SAME_HISTORY("whole.html", "parts.html"));
}

/* A resumed run that ends before a validation keeps the sources and attention maps of the old
 * page. */
TEST(a_resume_that_ends_before_a_validation_keeps_the_page) {
    ok(COPY WATCHED "--lr-steps 100 --save-every 20 --max-steps 20 -o m --report run.html");
    ok("cp run.html before.html; train --resume --valid-every 1000000 --valid-size 20 --threads 1 "
       "--quiet --max-steps 100000 --log-every 5 --log log -o m --report run.html & process=$!\n"
       "until grep -q '\"step\":25' log 2> none; do kill -0 $process || exit 1; sleep 0.02; done\n"
       "kill -TERM $process; wait $process; [ $? = 143 ]");
    ok("for f in before.html run.html; do grep -o '\"attention\":.*\\],\"ops\"' $f; done > all; "
       "[ $(wc -l < all) = 2 ] && [ $(sort -u all | wc -l) = 1 ]");
    ck_assert_int_eq(times(read_page("run.html"), "\"weights\":\""), 2);
    ok("train --resume --valid-every 1000000 --valid-size 20 --threads 1 --quiet --max-steps "
       "100000 "
       "--max-time 0.05 -o m --report run.html");
}

TEST(a_resume_without_the_page_begins_one) {
    ok(COPY "--lr-steps 100 --max-steps 20 -o m");
    ok("train --resume " WATCHED "--valid-size 20 --threads 1 --max-steps 40 -o m --report r.html");
    assert_contains(result.err, "r.html is not there: it begins at step 20");
    assert_in_page(read_page("r.html"), "\"x\":[25,30,35,40]");
}

TEST(a_checkpoint_has_the_same_bytes_with_a_report_and_without) {
    make_pairs();
#define PAIRS                                                                                      \
    "train --train pairs --valid held --tokenizer word " SIZE                                      \
    "--batch-size 8 --accum 2 --ema 0.9 --max-steps 12 --valid-every 4 "
    ok(PAIRS "-o alone");
    ok(PAIRS "-o with --report r.html --tensorboard events");
    ok(PAIRS "-o ranks --processes 2 --report ranks.html --tensorboard events2");
    ck_assert(same_files("alone", "with") && same_files("alone.best", "with.best"));
    ck_assert(same_files("alone", "ranks"));
    ok(SAME_HISTORY("r.html", "ranks.html"));
    assert_in_page(read_page("r.html"), "\"name\":\"bleu_13a\"");
    assert_in_page(page_text, "\\u003ci>");
    ck_assert_int_eq(times(page_text, "<i>"), 0);
}

TEST(a_language_model_shows_what_it_writes) {
    ok("for i in $(seq 400); do echo \"line $i of $((i % 7))\"; done > book");
    ok("train --task lm --text book --tokenizer byte --max-len 64 " SIZE
       "--batch-size 2 --valid-every 5 --max-steps 10 --report r.html");
    const char *page = read_page("r.html");
    assert_in_page(page, "\"sources\":[null,null,null]");
    assert_in_page(page, "\"title\":\"self-attention of layer 1 of 1\"");
    assert_in_page(page, "\"name\":\"bits_per_byte\"");
    ck_assert_int_eq(times(page, "\"weights\":\""), 2);
}

/* Copies a model's file, with NaN as the embeddings of the ids from `first` on. */
static void spoil(const char *from, const char *to, int64_t first) {
    enum { MOST = 100 };
    char message[WF_MESSAGE] = "";
    wf_entry entries[MOST];
    wf_meta meta[MOST];
    wf_file *f = wf_file_open(from);
    int n = wf_file_count(f), n_meta = wf_file_meta_count(f);
    ck_assert(n > 0 && n <= MOST && n_meta <= MOST);
    for (int i = 0; i < n; i++) entries[i] = *wf_file_at(f, i);
    for (int i = 0; i < n_meta; i++) meta[i] = wf_file_meta_at(f, i);
    float *numbers = NULL;
    for (int i = 0; i < n; i++) {
        if (strcmp(entries[i].name, "embedding.weight") != 0) continue;
        numbers = malloc(entries[i].bytes);
        memcpy(numbers, entries[i].data, entries[i].bytes);
        for (int64_t k = first * entries[i].shape[1]; k < (int64_t)(entries[i].bytes / 4); k++)
            numbers[k] = NAN;
        entries[i].data = numbers;
    }
    ck_assert_ptr_nonnull(numbers);
    ck_assert_msg(wf_file_save(to, entries, n, meta, n_meta, message), "%s", message);
    free(numbers);
    wf_file_free(f);
}

/* Tokens without an embedding do not occur in the text, so only a text that the model writes ends
 * in logits that are not numbers. */
TEST(a_frame_that_cannot_be_made_says_why) {
    ok("for i in $(seq 400); do echo \"line $i of $((i % 7))\"; done > book");
    ok("train --task lm --text book --tokenizer byte --max-len 64 --tie none --max-steps 1 " SIZE
       "-o m");
    spoil("m", "spoilt", 128);
    run("train --init spoilt --task lm --text book --threads 1 --quiet --batch-size 2 "
        "--max-steps 1 --report r.html");
    assert_contains(result.err, "the report lacks a frame: the model gives logits that are not "
                                "numbers; the work goes on");
}

/* In a browser, where one is installed, every part is drawn. Sanitized suites leave this out. */
TEST(a_report_is_drawn) {
    static const char *const titles[] = {
        "Loss",   "Learning rate", "Outputs for held-out data",
        "head 2", "Time by op",    "Memory over a training step"
    };
    const char *with = SANITIZED ? NULL : browser();
    if (!with) return;
    ok(COPY WATCHED "--max-steps 40 --lr-steps 100 --report run.html");
    draw_page(with, "run.html");
    const char *page = read_page("drawn.html");
    for (int i = 0; i < COUNT_OF(titles); i++) assert_in_page(page, titles[i]);
    assert_in_page(page, ">step 40</span>");
    ck_assert_int_eq(times(page, "<polyline"), 8);
    ck_assert_int_gt(times(page, "<rect"), 3 * 12);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static const struct {
    const char *command;
    int status;
    const char *says;
} refusals[] = {
    { "train --train pairs --report pairs", 2, "pairs is to be read and written at once" },
    { "train --task copy -o a --report a", 2, "a is to be two outputs at once" },
    { "train --task copy --report none/r.html", 1,
      "none/r.html can't be written: there is no folder none" },
    { "train --task copy --report .", 1, ". can't be written: it is a folder" },
    { "train --task copy --report r.html --dry-run", 2, "--report would have no effect" },
    { "train --task copy --tensorboard pairs", 1,
      "pairs can't be written into: it is not a folder" },
    { "train --task copy --tensorboard pairs/a", 1,
      "pairs/a can't be written into: a part of its path is a file, not a folder" },
    { "train --task copy --tensorboard /proc/a", 1, "/proc/a can't be written into: " },
    { "train --task copy --tensorboard ''", 1, "can't be written into: the name is empty" },
    { "train --task copy --tensorboard a --log a", 2, "a is to be two outputs at once" },
    { "train --task copy --tensorboard a --dry-run", 2, "--tensorboard would have no effect" },
    { "train --task copy --tensorboard $(printf %04096d 0)", 1, "File name too long" },
};

TEST_ROWS(a_report_or_folder_that_cannot_be_is_refused, COUNT_OF(refusals)) {
    make_pairs();
    ok("cp pairs before");
    run("%s", refusals[_i].command);
    ck_assert_msg(result.status == refusals[_i].status, "%s: %d", result.err, result.status);
    assert_contains(result.err, refusals[_i].says);
    ck_assert(same_files("pairs", "before"));
}

TEST(a_resume_leaves_a_page_that_is_not_its_own) {
    ok(COPY WATCHED "--max-steps 10 --lr-steps 100 -o m --report own.html");
    ok("train --task sort " SIZE "--valid-size 20 " WATCHED "--max-steps 10 -o other "
       "--report other.html; echo text > text; head -c 9000 own.html > half; : > empty");
    static const char *const files[][2] = { { "other.html", "is the report of another training" },
                                            { "text", "text is there and weft did not write it" },
                                            { "half", "or it is damaged" },
                                            { "empty", "is no report of a training" } };
    for (int i = 0; i < COUNT_OF(files); i++) {
        run("cp %s before; train --resume --quiet --threads 1 --max-steps 20 -o m --report %s",
            files[i][0], files[i][0]);
        expect(1);
        assert_contains(result.err, files[i][1]);
        ck_assert(same_files(files[i][0], "before"));
    }
}

TEST(a_page_that_does_not_fit_is_told_and_the_training_goes_on) {
    run("( ulimit -f 16; " COPY WATCHED "--max-steps 20 --report r.html )");
    expect(1);
    ck_assert_int_eq(times(result.err, "r.html could not be written: File too large"), 3);
    assert_contains(result.err, "; the training goes on");
    assert_contains(result.out, "exact match");
    run("ls");
    ck_assert(!strstr(result.out, "r.html"));
}

/* Reading a damaged page never crashes: it is refused, or read. */
TEST(a_damaged_page_is_refused_or_read) {
    enum { TRIES = 3000 };
    ok(COPY WATCHED "--max-steps 20 --lr-steps 100 -o m --report run.html");
    read_page("run.html");
    size_t n = strlen(page_text);
    char run_id[17] = "", message[256];
    const char *at = strstr(page_text, "\"run\":\"");
    ck_assert(at && sscanf(at, "\"run\":\"%16[0-9a-f]", run_id) == 1);
    int read = 0;
    uint64_t seed = 1;
    const char *data = strstr(page_text, "id=\"data\">");
    for (int i = 0; i < TRIES; i++) {
        history h = { .train_label = "" };
        album a = { 0 };
        FILE *f = fopen("damaged", "w");
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        size_t place = (size_t)(data - page_text) + (seed >> 33) % (n - (size_t)(data - page_text));
        char kept = page_text[place];
        page_text[place] = "\"[]{},:0n9\\A-"[(seed >> 20) % 13];
        ck_assert(f && fwrite(page_text, 1, n, f) == n && fclose(f) == 0);
        page_text[place] = kept;
        read += run_page_read("damaged", run_id, 20, &h, &a, message) == RUN_PAGE_OWN;
        for (int k = 0; k < a.n; k++) ck_assert(a.frames[k].step <= INT64_MAX);
        history_free(&h);
        album_free(&a);
    }
    ck_assert_msg(read > 0 && read < TRIES, "%d of %d damaged pages were read", read, TRIES);
}

/* ---- frames ---------------------------------------------------------------------------------- */

TEST(an_album_is_bounded_and_keeps_the_first_and_the_newest) {
    static const char *const labels[] = { "a", "b" };
    static const float looks[] = { 0, 1, 0.5f, NAN };
    const char *output[ALBUM_SAMPLES] = { "x" };
    struct svg_heat_map w = { "t", looks, 1, 2, 2, labels, labels, "r", "c" };
    album a = { 0 };
    for (int64_t step = 1; step <= 1000; step++) {
        ck_assert(album_add(&a, step, output, &w));
        ck_assert(a.n <= ALBUM_MOST && a.frames[a.n - 1].step == step);
    }
    ck_assert_int_eq(a.n, ALBUM_MOST);
    ck_assert_int_eq(a.frames[0].step, 1);
    for (int i = 1; i < a.n; i++) {
        int64_t gap = a.frames[i].step - a.frames[i - 1].step;
        ck_assert(gap > 0 && gap <= 4 * 1000 / ALBUM_MOST);
    }
    ck_assert_str_eq(a.frames[0].weights, "A/gA");
    album_cut(&a, 500);
    ck_assert_int_le(a.frames[a.n - 1].step, 500);
    album_free(&a);
    ck_assert_int_eq(album_most(4 << 20), 6);
    ck_assert_int_le(album_most(100000) * 100000, ALBUM_BYTES);
}

/* ---- TensorBoard ----------------------------------------------------------------------------- */

/* CRC-32C, a bit at a time. */
static uint32_t checksum(const unsigned char *bytes, size_t n) {
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        sum ^= bytes[i];
        for (int k = 0; k < 8; k++) sum = sum >> 1 ^ (sum & 1 ? 0x82F63B78u : 0);
    }
    return ~sum;
}

static uint64_t little(const unsigned char *bytes, int n) {
    uint64_t value = 0;
    for (int i = n - 1; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}

static void assert_checksum(const unsigned char *data, size_t n, const unsigned char *stored) {
    uint32_t sum = checksum(data, n);
    ck_assert_uint_eq(little(stored, 4), (uint32_t)((sum >> 15 | sum << 17) + 0xA282EAD8u));
}

/* A field of a protobuf message: its number, and its bytes or its value. */
typedef struct field {
    int number, type;
    uint64_t value;
    const unsigned char *bytes; /* of type 2; value: how many */
} field;

static uint64_t varint(const unsigned char **at) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        unsigned char c = *(*at)++;
        value |= (uint64_t)(c & 127) << shift;
        if (c < 128) return value;
    }
}

static bool next_field(const unsigned char **at, const unsigned char *end, field *f) {
    if (*at >= end) return false;
    uint64_t key = varint(at);
    *f = (field){ .number = (int)(key >> 3), .type = (int)(key & 7) };
    if (f->type == 0) f->value = varint(at);
    if (f->type == 1 || f->type == 5) {
        f->value = little(*at, f->type == 1 ? 8 : 4);
        *at += f->type == 1 ? 8 : 4;
    }
    if (f->type == 2) {
        f->value = varint(at);
        f->bytes = *at;
        *at += f->value;
    }
    ck_assert(*at <= end);
    return true;
}

typedef struct scalar {
    int64_t step;
    char tag[64];
    float value;
} scalar;

static scalar scalars[1000];
static int n_scalars;
static int64_t started_at; /* step of the last start event: it voids older records from here on */

static void read_value(const unsigned char *at, const unsigned char *end, int64_t step) {
    scalar *s = &scalars[n_scalars++];
    s->step = step;
    for (field f; next_field(&at, end, &f);) {
        uint32_t bits = (uint32_t)f.value;
        if (f.number == 1) snprintf(s->tag, sizeof s->tag, "%.*s", (int)f.value, f.bytes);
        if (f.number == 2) memcpy(&s->value, &bits, sizeof bits);
    }
}

static void read_event(const unsigned char *at, const unsigned char *end, int place) {
    int64_t step = 0;
    bool timed = false, named = false;
    for (field f; next_field(&at, end, &f);) {
        const unsigned char *inside = f.bytes;
        if (f.number == 1) timed = f.type == 1 && f.value != 0;
        if (f.number == 2) step = (int64_t)f.value;
        if (f.number == 3) named = f.value == 13 && !memcmp(f.bytes, "brain.Event:2", 13);
        if (f.number == 7) started_at = step;
        if (f.number != 5) continue;
        for (field v; next_field(&inside, f.bytes + f.value, &v);)
            read_value(v.bytes, v.bytes + v.value, step);
    }
    ck_assert(timed && named == (place == 0));
}

/* Reads all records of the only file of events in a folder, and checks their checksums. */
static void read_events(const char *folder) {
    static unsigned char bytes[1 << 20];
    char path[600] = "";
    DIR *d = opendir(folder);
    ck_assert(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (!strncmp(e->d_name, "events.out.tfevents.", 20))
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    closedir(d);
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s", path);
    size_t n = fread(bytes, 1, sizeof bytes, f), at = 0;
    fclose(f);
    n_scalars = 0;
    for (int place = 0; at < n; place++) {
        ck_assert(n - at > 16);
        size_t length = little(bytes + at, 8);
        ck_assert(length <= n - at - 16);
        assert_checksum(bytes + at, 8, bytes + at + 8);
        assert_checksum(bytes + at + 12, length, bytes + at + 12 + length);
        read_event(bytes + at + 12, bytes + at + 12 + length, place);
        at += length + 16;
    }
    ck_assert(at == n);
}

TEST(checksums_are_those_of_castagnoli) {
    ck_assert_uint_eq(checksum((const unsigned char *)"123456789", 9), 0xE3069283u);
}

static float value_at(const char *tag, int64_t step) {
    for (int i = 0; i < n_scalars; i++)
        if (scalars[i].step == step && !strcmp(scalars[i].tag, tag)) return scalars[i].value;
    ck_abort_msg("no %s at step %lld", tag, (long long)step);
    return 0;
}

/* Asserts that the TensorBoard file has every number of the log's events of one kind. Returns their
 * count. */
static int compare_with_log(const char *event, const char *group, const char *const keys[][2]) {
    static char log[1 << 16];
    char begin[40], tag[64], mark[64];
    int compared = 0;
    read_text("log", log, sizeof log);
    snprintf(begin, sizeof begin, "{\"event\":\"%s\"", event);
    for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, begin, strlen(begin)) != 0) continue;
        int64_t step = atoll(strstr(line, "\"step\":") + 7);
        for (int i = 0; keys[i][0]; i++) {
            snprintf(mark, sizeof mark, "\"%s\":", keys[i][0]);
            const char *at = strstr(line, mark);
            ck_assert_msg(at != NULL, "the log has no %s: %s", mark, line);
            double logged = atof(at + strlen(mark));
            snprintf(tag, sizeof tag, "%s/%s", group, keys[i][1]);
            ck_assert_float_eq(value_at(tag, step), (float)logged);
            compared++;
        }
    }
    return compared;
}

TEST(events_for_tensorboard_are_those_of_the_log) {
    static const char *const steps[][2] = { { "loss", "loss" },
                                            { "accuracy", "accuracy" },
                                            { "rate", "rate" },
                                            { "gradient_norm", "gradient_norm" },
                                            { "tokens_per_second", "tokens_per_second" },
                                            { NULL, NULL } };
    static const char *const valid[][2] = { { "loss", "loss" }, { "accuracy", "accuracy" },
                                            { "bleu", "bleu" }, { "bleu_13a", "bleu_13a" },
                                            { "chrf", "chrf" }, { "cer", "cer" },
                                            { "wer", "wer" },   { NULL, NULL } };
    make_pairs();
    ok("train --train pairs --valid held --tokenizer word " SIZE
       "--batch-size 8 --max-steps 12 --valid-every 4 "
       "--log-every 2 --log log --tensorboard runs/first/here");
    read_events("runs/first/here");
    ck_assert_int_eq(compare_with_log("step", "train", steps), 6 * 5);
    ck_assert_int_eq(compare_with_log("valid", "valid", valid), 3 * 7);
    ck_assert_int_eq(n_scalars, 6 * 5 + 3 * 8); /* and exact */
    ck_assert_int_eq(started_at, 1);
}

TEST(events_of_a_resume_void_what_was_not_saved) {
    ok(COPY "--max-steps 10 --lr-steps 100 -o m --tensorboard a");
    ok("train --resume --max-steps 20 --valid-size 20 --log-every 5 --threads 1 --quiet -o m "
       "--tensorboard b");
    read_events("b");
    ck_assert_int_eq(started_at, 11);
    ck_assert_int_eq(scalars[0].step, 15);
}

TEST(events_that_do_not_fit_are_told_and_the_training_goes_on) {
    run("( ulimit -f 8; " COPY "--max-steps 60 --log-every 1 --tensorboard a )");
    expect(1);
    ck_assert_int_eq(times(result.err, "an event for TensorBoard could not be written: File"), 1);
    assert_contains(result.out, "exact match");
    read_events("a"); /* whole records */
}
