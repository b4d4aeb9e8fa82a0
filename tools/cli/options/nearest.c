/* tools/cli/options/nearest.c - suggests an option for a name that does not exist. See
 * nearest.h. */
#include "nearest.h"

#include <stdio.h>
#include <string.h>

/* Names that other programs use for one option, and our names for it. The first of our names that
 * this program has is suggested. */
typedef struct synonym {
    const char *names;  /* "hidden-size|dim" */
    const char *here;   /* our names, "max-len|length"; NULL: there is no such option */
    const char *advice; /* the hint if this program has none of our names; or NULL */
} synonym;

#define ONE_PROCESSOR "weft computes on the processor alone: leave it out"
#define HALF "training is in f32; generate and convert take --weights bf16|int8"

static const synonym synonyms[] = {
    { "learning-rate|lrate|base-lr|max-lr|learn-rate", "lr", NULL },
    { "lr-warmup|warmup-steps|warmup-updates|warmup-iters|num-warmup-steps", "warmup", NULL },
    { "lr-scheduler|lr-scheduler-type|scheduler|decay", "lr-schedule", NULL },
    { "beam-size|num-beams|beams|beam-width", "beam", "generate searches, and has --beam" },
    { "n-best|num-return-sequences", "nbest", NULL },
    { "temp", "temperature", NULL },
    { "min-new-tokens|min-length", "min-len", NULL },
    { "repeat-penalty", "repetition-penalty", NULL },
    { "no-repeat-ngram|no-repeat-ngrams", "no-repeat-ngram-size", NULL },
    { "max-length-crop|truncate|truncation|max-input-length", "long-lines", NULL },
    { "do-sample|sampling|output-sampling|random-sampling", "sample", NULL },
    { "normalize|lenpen|length-norm", "length-penalty", NULL },
    { "max-length|max-seq-len|max-seq-length|seq-length|block-size|ctx-size|context",
      "max-len|max-new-tokens|length", NULL },
    { "n|n-predict|max-tokens|max-tokens-to-generate|max-output-length", "max-new-tokens", NULL },
    { "length", "max-new-tokens|max-len", NULL },
    { "p", "prompt", NULL },
    { "early-stopping|early-stop", "patience|stop", NULL },
    { "grad-clip|clip|clip-grad-norm|max-grad-norm|gradient-clip", "clip-norm", NULL },
    { "update-freq|grad-accum|gradient-accumulation-steps|accum-count|optimizer-delay", "accum",
      NULL },
    { "batch|mini-batch|train-batch-size|per-device-train-batch-size", "batch-size", NULL },
    { "mini-batch-words|batch-tokens", "max-tokens", NULL },
    { "max-iters|num-steps|steps|train-steps|max-update|max-updates|after-batches", "max-steps",
      NULL },
    { "num-epochs|max-epochs|max-epoch|num-train-epochs|after-epochs", "epochs", NULL },
    { "hidden-size|hidden-dim|dim|dim-emb|embed-dim|emb-dim|n-embd|rnn-size|model-dim|width",
      "d-model", NULL },
    { "dim-feedforward|ffn-dim|ffn-embed-dim|transformer-ff|transformer-dim-ffn|"
      "intermediate-size",
      "d-ff", NULL },
    { "num-heads|n-head|n-heads|attention-heads|transformer-heads", "heads", NULL },
    { "num-layers|n-layer|n-layers|depth", "layers", NULL },
    { "encoder-layers|num-encoder-layers|enc-depth", "enc-layers", NULL },
    { "decoder-layers|num-decoder-layers|dec-depth", "dec-layers", NULL },
    { "vocab|dim-vocabs|num-words|n-vocab", "vocab-size", NULL },
    { "share-all-embeddings|tied-embeddings|tied-embeddings-all|tie-weights|share-embeddings",
      "tie", NULL },
    { "joined-dictionary|share-vocabulary|shared-vocab", "share-vocab", NULL },
    { "dropout-rate|transformer-dropout", "dropout", NULL },
    { "exponential-smoothing|ema-decay", "ema", NULL },
    { "src|source|source-file|train-source", "train-src|input", NULL },
    { "tgt|trg|target|target-file|train-target", "train-tgt|reference", NULL },
    { "train-sets|train-file|train-data|corpus|data|dataset", "train", NULL },
    { "dev|dev-set|valid-sets|valid-file|validation-file|eval-file", "valid", NULL },
    { "ref|references|refs", "reference", NULL },
    { "output|save-dir|save-model|save-path|output-dir|out-dir|out|save", "model|output", NULL },
    { "output-file", "output|model", NULL },
    { "checkpoint|ckpt|model-path|models|load|path", "model|init", NULL },
    { "continue|continue-training|restore|resume-from|resume-from-checkpoint|restore-file",
      "resume", NULL },
    { "pretrained|pretrained-model|finetune|finetune-from-model|model-name-or-path", "init", NULL },
    { "workers|num-threads|cpu-threads|n-threads|num-workers|omp-threads", "threads", NULL },
    { "world-size|nproc-per-node|num-processes|nproc", "processes", NULL },
    { "log-file|logfile", "log", NULL },
    { "disp-freq|log-interval|logging-steps|report-every", "log-every", NULL },
    { "save-freq|save-interval|save-steps|checkpoint-every", "save-every", NULL },
    { "valid-freq|eval-interval|eval-steps|eval-every|validate-interval", "valid-every", NULL },
    { "verbose", NULL, "progress is printed by default: leave it out" },
    { "silent|no-progress-bar", "quiet", NULL },
    { "file|in|input-file", "input|train|text", NULL },
    { "gpu|gpus|cuda|device|devices|n-gpu-layers|ngl|accelerator", NULL, ONE_PROCESSOR },
    { "cpu|no-cuda|use-cpu", NULL, ONE_PROCESSOR },
    { "fp16|bf16|half|amp|mixed-precision|precision|dtype|quantize|int8|load-in-8bit", "weights",
      HALF },
    { "wandb|report-to", "log", NULL },
    { "tensorboard-logdir|tensorboard-dir|logging-dir|logdir", "tensorboard", NULL },
    { "html|html-report|dashboard", "report", NULL },
    { "compile|jit|torch-compile", NULL, "every graph is planned before it runs: leave it out" },
};

bool option_same_name(const char *a, const char *b, size_t n) {
    for (size_t i = 0; i < n; i++)
        if ((a[i] == '_' ? '-' : a[i]) != (b[i] == '_' ? '-' : b[i])) return false;
    return true;
}

/* Finds the first of the names in a synonym's `here`, "max-len|length", that is an option of this
 * program. NULL: none is. */
static const option *first_row(const program *p, const char *here) {
    for (const char *word = here; word; word++) {
        size_t n = strcspn(word, "|");
        const option *o = option_named(p, word, n);
        if (o) return o;
        word += n;
        if (*word == '\0') return NULL;
    }
    return NULL;
}

static bool hint_synonym(const program *p, const char *name, size_t length, char *hint,
                         size_t size) {
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++) {
        const synonym *s = &synonyms[i];
        if (option_place(s->names, name, length) < 0) continue;
        const option *o = first_row(p, s->here);
        if (o)
            snprintf(hint, size, "; here it is --%s", o->name);
        else if (s->advice)
            snprintf(hint, size, ": %s", s->advice);
        else
            return false;
        return true;
    }
    return false;
}

/* Levenshtein distance from a, of n bytes, to b. A b longer than the array is cut. */
static int distance(const char *a, size_t n, const char *b) {
    enum { LONGEST = 40 };
    int row[LONGEST + 1];
    size_t m = strlen(b) < LONGEST ? strlen(b) : LONGEST;
    for (size_t j = 0; j <= m; j++) row[j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int change = diagonal + !option_same_name(a + i - 1, b + j - 1, 1);
            int shorter = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = change < shorter ? change : shorter;
        }
    }
    return row[m];
}

/* The nearest name so far, and its distance. */
typedef struct nearest {
    const char *name;
    int distance;
} nearest;

static void compare(nearest *n, const char *name, size_t length, const char *there) {
    bool starts = length >= 3 && strncmp(there, name, length) == 0;
    int d = starts ? 0 : distance(name, length, there);
    if (d >= n->distance) return;
    n->distance = d;
    n->name = there;
}

/* Suggests a synonym, else a name that begins so, else the nearest one. Of 6 letters or more a
 * third may be wrong; of 3 to 5, two, because two may be exchanged. With more, any name of the same
 * length would be suggested; for 1 or 2 letters no name is. */
void option_hint(const program *p, const char *name, size_t length, char *hint, size_t size) {
    static const char *const always[] = { "help", "version", "config", "dump-config" };
    int few = length < 3 ? 1 : 3;
    nearest n = { NULL, length < 6 ? few : (int)(length / 3) + 1 };
    hint[0] = '\0';
    if (hint_synonym(p, name, length, hint, size)) return;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        compare(&n, name, length, always[i]);
    for (const option *o = p->options; o < p->options + p->n; o++)
        if (o->help) compare(&n, name, length, o->name);
    if (n.name) snprintf(hint, size, "; the nearest is --%s", n.name);
}
