/* tools/tokenize/tokenize.c - turns lines into tokens of a tokenizer.json, and ids into lines; or
 * learns the file. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/op.h"
#include "models/json_tokenizer.h"
#include "models/text_internal.h"
#include "tools/cli/jsonl.h"
#include "tools/cli/options/options.h"
#include "tools/cli/options/uses.h"
#include "tools/cli/output.h"
#include "tools/cli/terminal.h"
#include "tools/data/lines.h"
#include "tools/data/text_input.h"

/* ---- learning -------------------------------------------------------------------------------- */

typedef struct reader {
    lines in;
    char message[WF_MESSAGE]; /* why a line could not be read */
} reader;

static int next_line(void *from, const char **line, size_t *bytes) {
    reader *r = from;
    char *text;
    switch (lines_next(&r->in, true, &text)) {
    case LINE_READ:
        *line = text;
        *bytes = r->in.length;
        return 1;
    case LINE_TOO_LONG:
        snprintf(r->message, sizeof r->message, "line %" PRId64 " is longer than a megabyte",
                 r->in.number + 1);
        return -1;
    case LINE_FAILED:
        snprintf(r->message, sizeof r->message, "it can't be read: %.200s", lines_failure(&r->in));
        return -1;
    default:
        return 0;
    }
}

/* The text to add to a message of the library: which option helps, or what the lines are. */
static const char *advice_for(const lines *in, const char *message) {
    if (strstr(message, "but this text is enough for"))
        return ": lower --vocab-size or give more text";
    if (strncmp(message, "vocab_size", 10) == 0) return ": raise --vocab-size";
    return lines_remedy(in, message);
}

/* Learns from the lines of `input` (NULL: stdin), and writes the file `path`. Exits with a
 * message if that fails. */
static void tokenizer_learn(const program *p, const wf_json_learn_options *o, const char *input,
                            const char *path) {
    const char *name = input ? input : "stdin";
    char message[WF_MESSAGE];
    reader r = { .message = "" };
    if (!lines_open(&r.in, input)) fail(p, "%s can't be read: %s", name, strerror(errno));
    char *json = wf_json_learn(o, next_line, &r, message);
    if (!json && *r.message) fail(p, "%s: %s", name, r.message);
    if (!json) fail(p, "%s: %s%s", name, message, advice_for(&r.in, message));
    lines_close(&r.in);
    if (!output_write(path, json, strlen(json), message)) fail(p, "%s", message);
    free(json);
}

static const char *tokenizer, *input, *output_path;
static bool tokens, offsets, decode, counts, json, pairs, no_special, raw;
static int learn_kind = -1;
static wf_json_learn_options learning = { .min_freq = 2, .alphabet = -1 };
static jsonl out; /* on stdout */

/* The words of --learn, in the order of wf_json_learn_kind. */
#define LEARN_KINDS "bpe|unigram|wordpiece"
enum { BERT_ALPHABET = 1000 };

static option rows[] = {
    GROUP("Files"),
    INPUT("tokenizer", tokenizer,
          "tokenizer file in the format of a Hugging Face tokenizer.json. It must be given, except "
          "with --learn, which refuses it"),
    INPUT(
        "input", input,
        "file whose lines are texts; with --decode, lines of token ids; with --learn, the text to "
        "learn from",
        .letter = 'i', .fallback = "stdin"),
    TOKENIZER("output", output_path,
              "tokenizer file that --learn writes; with --learn it must be given. An existing file "
              "is replaced only if --learn wrote it",
              .letter = 'o'),
    GROUP("What is printed"),
    FLAG("tokens", tokens,
         "print the text of each token instead of its id. Refused with --json, --counts, --decode "
         "and --learn"),
    FLAG("offsets", offsets,
         "after each token, print the part of the line that it stands for as :BEGIN-END, in bytes "
         "counted from 0. END is the first byte after it. Refused with --json, --counts, --decode "
         "and --learn"),
    FLAG("counts", counts,
         "print the number of tokens of each line instead of the tokens. Refused with --json, "
         "--decode and --learn"),
    FLAG("json", json,
         "print a JSON object for each line: ids, type ids, tokens and offsets; with --decode, its "
         "text alone. Refused with --learn"),
    FLAG("decode", decode,
         "read lines of token ids separated by spaces, and print the text of each line. Refused "
         "with --learn"),
    FLAG("raw", raw,
         "with --decode: write line breaks within a text as they are. By default they are written "
         "as \\n and \\r, so that each line of input has one line of output. Refused with --json, "
         "which has all text as it is"),
    GROUP("Text"),
    FLAG("pairs", pairs,
         "read two texts from each line, with a TAB between them, as one input; a line without a "
         "TAB is one text. Refused with --decode and --learn"),
    FLAG("no-special", no_special,
         "add no special tokens, such as [CLS] and </s>; with --decode, leave them out of the "
         "text. Refused with --learn"),
    GROUP("Learning"),
    CHOICE(
        "learn", learn_kind, LEARN_KINDS,
        "learn a tokenizer from the lines of --input, and write it to -o. bpe: byte-pair encoding "
        "of bytes, as GPT-2. unigram: the pieces that make the text most probable, as "
        "SentencePiece. wordpiece: as BERT"),
    COUNT("vocab-size", learning.vocab_size, 2, INT32_MAX,
          "with --learn: number of ids, including those of special tokens. It must be given",
          .fallback = ""),
    STRING("special", learning.special, "TOKEN[,TOKEN]",
           "with --learn: special tokens, which get the first ids. Tokens named <s> or [CLS] "
           "are put before a text, and </s> or [SEP] after it",
           .fallback = "<|endoftext|>, as GPT-2; with unigram <s>,<pad>,</s>,<unk>,<mask>; with "
                       "wordpiece [PAD],[UNK],[CLS],[SEP],[MASK]"),
    COUNT("min-freq", learning.min_freq, 1, 1e12,
          "with --learn bpe or wordpiece: minimum number of times that a pair of pieces occurs in "
          "the text to be merged"),
    COUNT("alphabet", learning.alphabet, 0, INT32_MAX,
          "with --learn unigram or wordpiece: maximum number of different characters. The most "
          "frequent are taken, and others are unknown. 0: all",
          .fallback = "0; with wordpiece 1000"),
    FLAG("cased", learning.cased,
         "with --learn wordpiece: keep upper case and accents, as BERT's cased models"),
};

static program self = {
    .name = "tokenize",
    .purpose = "turns lines into tokens of a tokenizer.json, and ids into lines, and learns one",
    .examples = "  tokenize --tokenizer tokenizer.json -i train.de > train.ids\n"
                "  tokenize --tokenizer tokenizer.json --tokens --offsets < train.de\n"
                "  tokenize --tokenizer tokenizer.json --decode -i train.ids\n"
                "  tokenize --learn bpe --vocab-size 600 -i book.txt -o own.json\n",
    .options = rows,
    .n = sizeof rows / sizeof *rows,
};

/* ---- the file -------------------------------------------------------------------------------- */

static wf_json_tokenizer *load(void) {
    char message[WF_MESSAGE];
    size_t bytes;
    char *text = spool_whole(tokenizer, &bytes, message);
    if (!text) fail(&self, "%s", message);
    wf_json_tokenizer *t = wf_json_tokenizer_load(text, bytes, message);
    size_t begin = 0;
    while (begin < bytes && strchr(" \t\r\n", text[begin])) begin++;
    bool json_text = begin < bytes && text[begin] == '{';
    free(text);
    if (!t && !json_text)
        fail(&self, "%s is no tokenizer.json, which begins with {: a text is named by --input",
             tokenizer);
    if (!t) fail(&self, "%s: %s", tokenizer, message);
    return t;
}

/* ---- lines ----------------------------------------------------------------------------------- */

typedef struct job {
    wf_json_tokenizer *t;
    lines in;
    wf_json_token *tokens;
    int32_t *ids;
    char *text;
    int64_t n, capacity; /* tokens; ids have the same capacity */
    size_t text_capacity;
    int64_t escaped; /* line breaks that were written as \n and \r */
} job;

static const char *input_name(void) {
    return input ? input : "stdin";
}

static _Noreturn void refuse(const job *j, const char *message) {
    fail(&self, "%s, line %" PRId64 ": %s%s", input_name(), j->in.number, message,
         lines_remedy(&j->in, message));
}

static void grow(job *j, int64_t n) {
    if (n <= j->capacity) return;
    j->capacity = 2 * n;
    j->tokens = realloc(j->tokens, (size_t)j->capacity * sizeof *j->tokens);
    j->ids = realloc(j->ids, (size_t)j->capacity * sizeof *j->ids);
    if (!j->tokens || !j->ids) refuse(j, "out of memory");
}

static int64_t encode_once(job *j, const char *line, char *message) {
    const char *tab = pairs ? memchr(line, '\t', j->in.length) : NULL;
    size_t first = tab ? (size_t)(tab - line) : j->in.length;
    return wf_json_tokenizer_encode(j->t, line, first, tab ? tab + 1 : NULL,
                                    tab ? j->in.length - first - 1 : 0, !no_special, j->tokens,
                                    j->capacity, message);
}

static void encode(job *j, const char *line) {
    char message[WF_MESSAGE];
    j->n = encode_once(j, line, message);
    if (j->n > j->capacity) {
        grow(j, j->n);
        j->n = encode_once(j, line, message);
    }
    if (j->n < 0) refuse(j, message);
}

static const char *piece(const job *j, int64_t i) {
    const char *text = wf_json_tokenizer_piece(j->t, j->tokens[i].id);
    return text ? text : "";
}

static void print_tokens(const job *j) {
    if (counts) {
        printf("%" PRId64 "\n", j->n);
        return;
    }
    for (int64_t i = 0; i < j->n; i++) {
        const wf_json_token *k = &j->tokens[i];
        if (i) putchar(' ');
        if (tokens)
            put_clean(stdout, piece(j, i), -1);
        else
            printf("%" PRId32, k->id);
        if (offsets) printf(":%" PRId64 "-%" PRId64, k->begin, k->end);
    }
    putchar('\n');
}

static void send_tokens(job *j) {
    for (int64_t i = 0; i < j->n; i++) j->ids[i] = j->tokens[i].id;
    json_begin(&out, "line");
    json_ints(&out, "ids", j->ids, j->n);
    for (int64_t i = 0; i < j->n; i++) j->ids[i] = j->tokens[i].type;
    json_ints(&out, "type_ids", j->ids, j->n);
    json_open(&out, "tokens", '[');
    for (int64_t i = 0; i < j->n; i++) json_text(&out, NULL, piece(j, i));
    json_close(&out, ']');
    json_open(&out, "offsets", '[');
    for (int64_t i = 0; i < j->n; i++)
        json_sizes(&out, NULL, (int64_t[]){ j->tokens[i].begin, j->tokens[i].end }, 2);
    json_close(&out, ']');
    json_end(&out);
}

static void decode_line(job *j, const char *line) {
    char message[WF_MESSAGE];
    int64_t most = INT32_MAX;
    grow(j, (int64_t)j->in.length / 2 + 1);
    int64_t n = parse_ids(line, most, j->capacity, j->ids, message), bytes;
    if (n < 0) refuse(j, message);
    while ((bytes = wf_json_tokenizer_decode(j->t, j->ids, n, no_special, j->text, j->text_capacity,
                                             message)) >= 0 &&
           (size_t)bytes >= j->text_capacity) {
        j->text_capacity = 2 * (size_t)bytes + 1;
        j->text = realloc(j->text, j->text_capacity);
        if (!j->text) refuse(j, "out of memory");
    }
    if (bytes < 0) refuse(j, message);
    if (json) {
        json_begin(&out, "line");
        json_key(&out, "text");
        json_bytes(&out, j->text, (size_t)bytes);
        json_end(&out);
        return;
    }
    if (raw)
        fwrite(j->text, 1, (size_t)bytes, stdout);
    else
        j->escaped += put_line(stdout, j->text, (size_t)bytes, false);
    putchar('\n');
}

static void one_line(job *j, const char *line) {
    if (decode) {
        decode_line(j, line);
        return;
    }
    encode(j, line);
    if (json)
        send_tokens(j);
    else
        print_tokens(j);
}

static void all_lines(job *j) {
    char *line;
    line_status status;
    if (!lines_open(&j->in, input))
        fail(&self, "%s can't be read: %s", input_name(), strerror(errno));
    bool wait = false;
    while ((status = lines_next(&j->in, wait, &line)) != LINE_END) {
        if (status == LINE_TOO_LONG) {
            j->in.number++;
            refuse(j, "it is longer than a megabyte");
        }
        if (status == LINE_FAILED)
            fail(&self, "%s can't be read: %s", input_name(), lines_failure(&j->in));
        /* all lines that have arrived are answered before the next wait */
        wait = status == LINE_WAIT;
        if (wait)
            flush_or_fail(&self, stdout, NULL);
        else
            one_line(j, line);
        if (ferror(stdout) || out.failed) break;
    }
    lines_close(&j->in);
}

/* Exits if --learn does not use an option that was given, or lacks one that it needs. */
static void check_learning(void) {
    bool merges = learning.kind != WF_LEARN_UNIGRAM;
    option_no_effect(&self, "tokenizer|tokens|offsets|counts|json|decode|no-special|pairs|raw",
                     true, "--learn writes a tokenizer");
    option_no_effect(&self, "min-freq", !merges, "unigram merges no pairs");
    option_no_effect(&self, "alphabet", learning.kind == WF_LEARN_BPE, "bytes are the alphabet");
    option_no_effect(&self, "cased", learning.kind != WF_LEARN_WORDPIECE, "case is kept anyway");
    if (!learning.vocab_size) usage_error(&self, "say how many ids to learn with --vocab-size N");
    if (!output_path) usage_error(&self, "say where to write the tokenizer with -o FILE");
    if (learning.alphabet < 0)
        learning.alphabet = learning.kind == WF_LEARN_WORDPIECE ? BERT_ALPHABET : 0;
}

static void check_options(void) {
    if (learn_kind >= 0) {
        learning.kind = (wf_json_learn_kind)learn_kind;
        check_learning();
        return;
    }
    option_no_effect(&self, "output|vocab-size|special|min-freq|alphabet|cased", true,
                     "nothing is learned without --learn");
    if (!tokenizer)
        usage_error(&self, "say which tokenizer.json with --tokenizer FILE, or --learn one");
    option_no_effect(&self, "tokens|offsets|counts", json, "--json shows everything");
    option_no_effect(&self, "tokens|offsets|counts|pairs", decode, "--decode prints text");
    option_no_effect(&self, "raw", !decode, "only --decode prints text");
    option_no_effect(&self, "raw", json, "--json writes all text as it is");
    option_no_effect(&self, "tokens|offsets", counts, "--counts prints a number");
    if (is_dash(tokenizer) && (!input || is_dash(input)))
        usage_error(&self, "only one of --tokenizer and --input can be stdin");
}

int main(int argc, char **argv) {
    terminal_open();
    options_parse(&self, argc, argv);
    check_options();
    check_uses(&self, NULL, 0);
    if (learn_kind >= 0) {
        tokenizer_learn(&self, &learning, input, output_path);
        return close_stdout(&self, EXIT_DONE);
    }
    out.stream = stdout;
    job j = { .t = load() };
    grow(&j, 1024);
    all_lines(&j);
    if (j.escaped)
        warn(
            &self,
            "line breaks within texts were written as \\n and \\r, %lld of them: --raw writes them "
            "as they are, and --json has the text",
            (long long)j.escaped);
    int status = out.failed ? EXIT_FAILED : EXIT_DONE;
    if (out.failed && !ferror(stdout)) warn(&self, "out of memory: not all of it is shown");
    wf_json_tokenizer_free(j.t);
    free(j.tokens), free(j.ids), free(j.text);
    json_free(&out);
    return close_stdout(&self, status);
}
