/* tests/fuzz/fuzz_hf.c - any bytes as the texts of a folder of Hugging Face: refused with a
 * message, or the configuration is within its bounds, and the tokenizers are the same after they
 * were written and read again. Weights have targets of their own; here only their index is read.
 *
 * The input has parts that end at '\0': config.json, generation_config.json, tokenizer_config.json,
 * vocab.json and target_vocab.json (the same text; for an encoder it is vocab.txt), the index of
 * weights, and a line to encode. For an empty part the folder lacks that file, except that
 * config.json and vocab.json then are those below. Without the last four parts only the
 * configurations are read. */
#define _XOPEN_SOURCE 700
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "models/generation_internal.h"
#include "models/hf/encoder/bert_family.h"
#include "models/hf/folder.h"
#include "models/hf/lm/lm_family.h"
#include "models/json_tokenizer.h"
#include "models/model_internal.h"

enum { CONFIG, GENERATION, SETTINGS, VOCAB, INDEX, LINE, PARTS, LARGEST = 4096, PATH = 320 };
enum { LONGEST = 64 }; /* line: fuzz_spm.c has longer ones */

typedef struct part {
    const char *text;
    size_t bytes;
} part;

#define TEXT(literal)                                                                              \
    { literal, sizeof literal - 1 }
static const part usual_config =
    TEXT("{\"model_type\":\"marian\",\"vocab_size\":9,\"max_position_embeddings\":8,\"d_model\":4,"
         "\"encoder_layers\":1,\"decoder_layers\":1,\"encoder_attention_heads\":1,"
         "\"decoder_attention_heads\":1,\"encoder_ffn_dim\":4,\"decoder_ffn_dim\":4,"
         "\"activation_function\":\"swish\",\"scale_embedding\":true,\"pad_token_id\":6,"
         "\"eos_token_id\":0,\"decoder_start_token_id\":6}");
static const part usual_vocab = TEXT("{\"</s>\":0,\"<unk>\":1,\"a\":2,\"b\":3,\">>x<<\":4,"
                                     "\"\xE2\x96\x81\":5,\"<pad>\":6}");
/* <unk>, <s>, </s>, and three pieces with scores */
static const part spm =
    TEXT("\x0a\x09\x0a\x05<unk>\x18\x02\x0a\x07\x0a\x03<s>\x18\x03"
         "\x0a\x08\x0a\x04</s>\x18\x03\x0a\x0a\x0a\x03\xE2\x96\x81\x15\0\0\x80\xbf"
         "\x0a\x08\x0a\x01"
         "a\x15\0\0\0\xc0\x0a\x08\x0a\x01"
         "b\x15\0\0\x40\xc0");

/* ---- files ----------------------------------------------------------------------------------- */

static const char *const files[] = {
    "tokenizer_config.json",        "vocab.json",  "target_vocab.json",
    "model.safetensors.index.json", "source.spm",  "target.spm",
    "sentencepiece.bpe.model",      "spiece.model"
};
enum { FIRST_SPM = 4, FILES = sizeof files / sizeof *files };

static bool put(void *folder, const char *name, const void *bytes, size_t size, char *message) {
    char path[PATH + 64];
    (void)message;
    snprintf(path, sizeof path, "%.300s/%.60s", (const char *)folder, name);
    FILE *f = fopen(path, "wb");
    fuzz_must(f && fwrite(bytes, 1, size, f) == size && fclose(f) == 0);
    return true;
}

static void remove_files(const char *folder, int first) {
    char path[PATH + 64];
    for (int i = first; i < FILES; i++) {
        snprintf(path, sizeof path, "%.300s/%s", folder, files[i]);
        unlink(path);
    }
}

/* Two folders of this process: one to read from, one to write to. They stay until the process ends,
 * because making and removing them for each input takes longer than reading them. */
static char folders[2][PATH];
static pid_t owner;

static void remove_folders(void) {
    if (owner != getpid()) return;
    for (int i = 0; i < 2; i++) {
        remove_files(folders[i], 0);
        rmdir(folders[i]);
    }
}

/* Makes both folders. The one to read from gets a SentencePiece model, the same for all inputs,
 * under each of the names that families give it. */
static void make_folders(void) {
    static bool told;
    if (owner == getpid()) return;
    owner = getpid();
    for (int i = 0; i < 2; i++) {
        snprintf(folders[i], PATH, "%.250s%s", fuzz_path(), i ? "-again" : "");
        fuzz_must(mkdir(folders[i], 0700) == 0);
    }
    for (int i = FIRST_SPM; i < FILES; i++) put(folders[0], files[i], spm.text, spm.bytes, NULL);
    if (!told) fuzz_must(atexit(remove_folders) == 0);
    told = true;
}

/* ---- what comes out -------------------------------------------------------------------------- */

static void judge_notes(const char *notes) {
    for (const char *end; *notes; notes = end + 1) {
        char line[512];
        fuzz_must((end = strchr(notes, '\n')) && (size_t)(end - notes) < sizeof line);
        memcpy(line, notes, (size_t)(end - notes)), line[end - notes] = '\0';
        fuzz_must_say(line);
    }
}

static void judge_search(const wf_generation *g, const hf_config *c) {
    wf_generation_text text;
    wf_meta pairs[WF_GENERATION_META];
    const wf_decode_options *o = &g->options;
    int64_t vocab = c->c.tgt_vocab ? c->c.tgt_vocab : c->c.src_vocab;
    fuzz_must(g->n_banned >= 0 && g->n_banned <= WF_MOST_BANNED);
    fuzz_must(g->n_forced >= 0 && g->n_forced <= WF_MOST_FORCED);
    for (int i = 0; i < g->n_banned; i++) fuzz_must(g->banned[i] >= 0 && g->banned[i] < vocab);
    for (int i = 0; i < g->n_forced; i++) fuzz_must(g->forced[i] >= 0 && g->forced[i] < vocab);
    fuzz_must(o->beam >= 1 && o->beam <= 1024 && o->alpha >= 0 && o->alpha <= 10);
    fuzz_must(o->max_len_b >= 0 && o->min_len >= 0);
    fuzz_must(wf_generation_to_meta(g, &text, pairs) <= WF_GENERATION_META);
}

static void judge_same(wf_tokenizer *a, wf_tokenizer *b) {
    wf_meta p[WF_TOKENIZER_META], q[WF_TOKENIZER_META];
    int n = 0, n_again = 0;
    fuzz_must(wf_tokenizer_to_meta(a, "t", p, &n, NULL) && n > 0);
    fuzz_must(wf_tokenizer_to_meta(b, "t", q, &n_again, NULL) && n_again == n);
    for (int i = 0; i < n; i++) fuzz_must(strcmp(p[i].value, q[i].value) == 0);
}

static void judge_line(wf_tokenizer *t, part line) {
    char message[WF_MESSAGE] = "";
    if (line.bytes > LONGEST) line.bytes = LONGEST;
    int64_t n = wf_tokenizer_encode(t, line.text, line.bytes, NULL, 0, message);
    if (n < 0) fuzz_must_say(message);
    int32_t *ids = malloc(((size_t)(n > 0 ? n : 0) + 1) * sizeof *ids);
    fuzz_must(ids && (n < 0 || wf_tokenizer_encode(t, line.text, line.bytes, ids, n, NULL) == n));
    for (int64_t i = 0; i < n; i++) fuzz_must(wf_tokenizer_piece(t, ids[i]));
    free(ids);
}

/* Writes the tokenizers into a folder, and reads them again: they must be the same. */
static void judge_written(wf_hf *hf, const hf_family *family, const hf_config *c) {
    char *folder = folders[1], message[WF_MESSAGE] = "";
    wf_hf again = { .model = NULL };
    hf->notes[0] = '\0';
    bool ok = wf_hf_write_tokenizers(hf, family, c, &(wf_hf_writer){ .put = put, .user = folder },
                                     message);
    if (!ok) fuzz_must_say(message);
    if (ok && !*hf->notes) {
        ok = wf_hf_read_tokenizers(folder, family, c, &again, message);
        if (!ok) fprintf(stderr, "written, but not read: %s\n", message);
        fuzz_must(ok && again.src && again.tgt);
        judge_same(hf->src, again.src), judge_same(hf->tgt, again.tgt);
    }
    judge_notes(hf->notes);
    wf_hf_free(&again);
    remove_files(folder, 0);
}

static void judge_tokenizers(const char *folder, const hf_family *family, const hf_config *c,
                             part line) {
    char message[WF_MESSAGE] = "";
    wf_hf hf = { .model = NULL };
    bool ok = wf_hf_read_tokenizers(folder, family, c, &hf, message);
    if (!ok) fuzz_must_say(message);
    judge_notes(hf.notes);
    if (ok && hf.src && hf.tgt) {
        if (line.bytes) judge_line(hf.src, line);
        judge_written(&hf, family, c);
    }
    wf_hf_free(&hf);
}

/* ---- the folder ------------------------------------------------------------------------------ */

static bool parse(hf_object *o, const char *name, part p) {
    char message[WF_MESSAGE] = "", *text = malloc(p.bytes + 1);
    fuzz_must(text);
    memcpy(text, p.text, p.bytes), text[p.bytes] = '\0';
    bool ok = wf_hf_object_parse(o, name, text, p.bytes, message);
    if (!ok) fuzz_must_say(message);
    return ok;
}

/* A language model has a configuration of its own. */
static void judge_language_model(const hf_object *config, const hf_object *search) {
    char message[WF_MESSAGE] = "", notes[WF_HF_NOTES] = "";
    const hf_lm_family *family;
    hf_lm_config c;
    hf_search s;
    bool ok = wf_hf_lm_read_config(config, &family, &c, message);
    hf_config as = { .decoder_only = true, .start = -1, .end = c.end, .pad = -1 };
    as.c.src_vocab = as.c.tgt_vocab = c.c.vocab;
    as.c.max_len = c.c.max_len;
    ok = ok && wf_hf_read_search(search, &as, &s, notes, message);
    c.end = as.end;
    ok = ok && wf_hf_lm_complete(family, &c, message);
    if (!ok) fuzz_must_say(message);
    if (ok) judge_search(&s.g, &as);
    fuzz_must(!ok || wf_language_model_check(&c.c, NULL));
    judge_notes(notes);
}

/* An encoder's vocab.txt: refused with a sentence, or the text of a tokenizer.json. */
static void judge_vocabulary(const part *parts) {
    char *folder = folders[0], path[PATH + 64], message[WF_MESSAGE] = "";
    size_t bytes = 0;
    make_folders();
    put(folder, "vocab.txt", parts[VOCAB].text, parts[VOCAB].bytes, NULL);
    if (parts[SETTINGS].bytes)
        put(folder, files[0], parts[SETTINGS].text, parts[SETTINGS].bytes, NULL);
    char *json = wf_hf_bert_vocabulary(folder, &bytes, message);
    if (!json) fuzz_must_say(message);
    wf_json_tokenizer *t = json ? wf_json_tokenizer_load(json, bytes, message) : NULL;
    if (json && !t) fuzz_must_say(message);
    wf_json_tokenizer_free(t);
    free(json);
    snprintf(path, sizeof path, "%.300s/vocab.txt", folder);
    unlink(path);
    snprintf(path, sizeof path, "%.300s/%s", folder, files[0]);
    unlink(path);
}

/* Reads config.json as that of an encoder, which has a configuration of its own: it is refused with
 * a message, or is within its bounds. Then the vocabulary is judged. */
static void judge_encoder(const hf_object *config, const part *parts) {
    char message[WF_MESSAGE] = "";
    const hf_bert_family *family;
    hf_bert_config c;
    bool ok =
        wf_hf_bert_read_config(config, &family, &c, message) && wf_encoder_check(&c.c, message);
    if (!ok) fuzz_must_say(message);
    if (parts[VOCAB].text != usual_vocab.text) judge_vocabulary(parts);
}

static bool read_configs(const part *parts, const hf_family **family, hf_config *c) {
    char message[WF_MESSAGE] = "", notes[WF_HF_NOTES] = "";
    hf_object config, generation = { 0 };
    hf_search s;
    const bool own = parts[GENERATION].bytes;
    bool ok = parse(&config, "config.json", parts[CONFIG]) &&
              (!own || parse(&generation, "generation_config.json", parts[GENERATION]));
    bool language_model = ok && wf_hf_is_lm(&config);
    if (language_model) judge_language_model(&config, own ? &generation : &config);
    bool encoder = ok && wf_hf_is_encoder(&config);
    if (encoder) judge_encoder(&config, parts);
    ok = ok && !language_model && !encoder;
    if (ok) {
        ok = wf_hf_read_config(&config, family, c, message) &&
             wf_hf_read_search(own ? &generation : &config, c, &s, notes, message) &&
             wf_hf_complete(*family, c, message);
        if (!ok) fuzz_must_say(message);
    }
    if (ok) judge_search(&s.g, c);
    fuzz_must(!ok || wf_transformer_check(&c->c, NULL));
    judge_notes(notes);
    wf_hf_object_free(&config), wf_hf_object_free(&generation);
    return ok;
}

static void read_folder(const part *parts, const hf_family *family, const hf_config *c) {
    char *folder = folders[0], path[PATH + 64], message[WF_MESSAGE] = "";
    const char *name = "";
    make_folders();
    for (int i = 0; i < FIRST_SPM; i++) {
        const part *p = &parts[i < 2 ? SETTINGS + i : SETTINGS + i - 1];
        if (p->bytes) put(folder, files[i], p->text, p->bytes, NULL);
    }
    wf_file *f = parts[INDEX].bytes ? wf_hf_open_weights(folder, &name, message) : NULL;
    if (parts[INDEX].bytes && !f) fuzz_must_say(message);
    wf_file_free(f);
    /* The weights of larger vocabularies would take too much memory. */
    if (c->c.src_vocab <= LARGEST && c->c.tgt_vocab <= LARGEST)
        judge_tokenizers(folder, family, c, parts[LINE]);
    for (int i = 0; i < FIRST_SPM; i++) {
        snprintf(path, sizeof path, "%.300s/%s", folder, files[i]);
        unlink(path);
    }
}

FUZZ_TARGET(hf) {
    part parts[PARTS] = { usual_config, [VOCAB] = usual_vocab };
    const hf_family *family;
    hf_config c;
    const char *at = (const char *)data, *end = at + size;
    for (int i = 0; i < PARTS && at < end; i++) {
        const char *stop = i + 1 < PARTS ? memchr(at, '\0', (size_t)(end - at)) : NULL;
        size_t n = (size_t)((stop ? stop : end) - at);
        if (n) parts[i] = (part){ at, n };
        at += n + 1;
    }
    if (!parts[LINE].text) parts[LINE].text = "";
    bool more = parts[SETTINGS].bytes || parts[VOCAB].text != usual_vocab.text ||
                parts[INDEX].bytes || parts[LINE].bytes;
    if (read_configs(parts, &family, &c) && more) read_folder(parts, family, &c);
    return 0;
}
