/* tests/tools/test_tokenize.c - the program tokenize: lines to tokens in every format, ids to
 * lines, and refusals. The tokens of lines are tested by the suite tokenizer. */
#include <stdio.h>

#include "tests/suites.h"
#include "tests/support/commands.h"

TESTS(tokenize)

#define DATA WEFT_TEST_DATA "/tokenizer/"
#define GPT2 "tokenize --tokenizer " DATA "gpt2.json "
#define BERT "tokenize --tokenizer " DATA "bert-uncased.json "

SETUP(enter_folder, leave_folder)

TEST(ids_come_back_as_the_lines) {
    ok("printf 'Hello w\\303\\266rld!\\n\\n  two  spaces\\tand a tab\\n\\360\\237\\230\\200' > "
       "text");
    ok(GPT2 "-i text > ids; wc -l < ids");
    ck_assert_int_eq(atoi(result.out), 4);
    ok(GPT2 "--decode < ids > back; echo >> text; cmp text back");
    ok(GPT2 "< text | cmp - ids");
    ok("gzip -c text | " GPT2 "| cmp - ids");
    ck_assert_str_eq(result.err, "");
}

/* Id 199 of gpt2.json is a line break, and 202 is a carriage return. */
TEST(a_line_of_ids_is_a_line_of_text) {
    ok("printf '%s\\n' \"$(seq 0 255)\" > ids; " GPT2 "--decode < ids | wc -l; " GPT2
       "--decode --raw < ids | wc -l; " GPT2 "--decode < ids | grep -an '^.[nr]$'");
    ck_assert_str_eq(result.out, "256\n257\n200:\\n\n203:\\r\n");
    ok("echo '199 199 202' | " GPT2 "--decode");
    ck_assert_str_eq(result.err,
                     "tokenize: line breaks within texts were written as \\n and \\r, 3 "
                     "of them: --raw writes them as they are, and --json has the "
                     "text\n");
    ok("for o in --raw --json; do echo '199' | " GPT2 "--decode $o; done");
    ck_assert_str_eq(result.err, "");
}

TEST(tokens_are_shown_in_every_form) {
    ok("echo 'a b' | " GPT2);
    ck_assert_str_eq(result.out, "65 288\n");
    ok("echo 'a b' | " GPT2 "--tokens --offsets");
    ck_assert_str_eq(result.out, "a:0-1 \xC4\xA0"
                                 "b:1-3\n");
    ok("echo 'a b' | " GPT2 "--counts");
    ck_assert_str_eq(result.out, "2\n");
    ok("echo 'a b' | " GPT2 "--json");
    ck_assert_str_eq(result.out, "{\"event\":\"line\",\"ids\":[65,288],\"type_ids\":[0,0],"
                                 "\"tokens\":[\"a\",\"\xC4\xA0"
                                 "b\"],"
                                 "\"offsets\":[[0,1],[1,3]]}\n");
    ok("echo '65 288' | " GPT2 "--decode --json");
    ck_assert_str_eq(result.out, "{\"event\":\"line\",\"text\":\"a b\"}\n");
}

TEST(special_tokens_go_around_a_line_or_two) {
    ok("echo 'a' | " BERT "--tokens");
    ck_assert_str_eq(result.out, "[CLS] a [SEP]\n");
    ok("echo 'a' | " BERT "--tokens --no-special");
    ck_assert_str_eq(result.out, "a\n");
    ok("printf 'a\\tb\\nc\\n' | " BERT "--tokens --pairs");
    ck_assert_str_eq(result.out, "[CLS] a [SEP] b [SEP]\n[CLS] c [SEP]\n");
    ok("echo 'a' | " BERT "| " BERT "--decode; echo 'a' | " BERT "| " BERT "--decode --no-special");
    ck_assert_str_eq(result.out, "[CLS] a [SEP]\na\n");
}

/* A line of 90,000 bytes has more tokens than the initial buffer holds. */
TEST(a_long_line_is_one_line) {
    ok("yes '7 x' | head -n 30000 | tr -d '\\n' > text; " GPT2 "--counts < text");
    ck_assert_int_gt(atoi(result.out), 50000);
    ok(GPT2 "< text | " GPT2 "--decode > back; echo >> text; cmp text back");
}

/* A tokenizer.json that tokenize --learn wrote is read by tokenize, and accepted by train. */
TEST(a_vocabulary_is_learned) {
    ok("cp " WEFT_TEST_DATA "/bpe.txt text; tokenize --learn bpe --vocab-size 400 -i text -o a && "
       "gzip -c text | tokenize --learn bpe --vocab-size 400 -o b && cmp a b && cmp a " DATA
       "learned-bpe.json");
    ck_assert_str_eq(result.err, "");
    ok("tokenize --tokenizer a < text | tokenize --tokenizer a --decode | cmp - text");
    ok("tokenize --learn wordpiece --vocab-size 150 --cased --min-freq 3 --alphabet 60 -i text -o "
       "- | tee c | head -c 16");
    ck_assert_str_eq(result.out, "{\"version\":\"1.0\"");
    ok("echo 'tw' | tokenize --tokenizer c --tokens");
    ck_assert_str_eq(result.out, "[CLS] t ##w [SEP]\n");
    ok("train --task lm --text text --tokenizer-json a --end-token '<|endoftext|>' --max-steps 2 "
       "--max-len 32 --d-model 16 --heads 2 --layers 1 --quiet -o m");
}

static const struct {
    const char *command;
    int status;
    const char *says;
} refused[] = {
    { "tokenize", 2, "say which tokenizer.json with --tokenizer FILE" },
    { "tokenize --learn bpe", 2, "say how many ids to learn with --vocab-size N" },
    { "tokenize --learn bpe --vocab-size 300", 2, "say where to write the tokenizer with -o FILE" },
    { "echo a | tokenize --learn bpe --vocab-size 300 -o t", 1,
      "stdin: vocab_size is 300, but this text is enough for at most 257 ids: lower --vocab-size "
      "or "
      "give more text" },
    { "echo a | tokenize --learn bpe --vocab-size 30 -o t", 1,
      "special tokens and single characters need 257 ids: raise --vocab-size" },
    { "tokenize --learn bpe --vocab-size 300 -i none -o t", 1, "none can't be read" },
    { "yes | head -c 4000000 | tr -d '\\n' | tokenize --learn bpe --vocab-size 300 -o t", 1,
      "stdin: line 1 is longer than a megabyte" },
    { "tokenize --learn bpe --vocab-size 300 -i . -o t", 1, "can't be read: it is a folder" },
    { "tokenize --learn bpe --vocab-size 300 -o t --json", 2, "--learn writes a tokenizer" },
    { "tokenize --learn bpe --vocab-size 300 -o t --raw", 2, "--learn writes a tokenizer" },
    { "tokenize --learn bpe --vocab-size 300 -o t --alphabet 9", 2, "bytes are the alphabet" },
    { "tokenize --learn unigram --vocab-size 300 -o t --min-freq 9", 2, "unigram merges no pairs" },
    { "tokenize --learn unigram --vocab-size 300 -o t --cased", 2, "case is kept anyway" },
    { GPT2 "--vocab-size 9", 2, "nothing is learned without --learn" },
    { "echo a | tokenize --learn bpe --vocab-size 257 -o none/t", 1, "none" },
    { "tokenize --tokenizer none", 1, "none" },
    { "echo words > t; tokenize --tokenizer t", 1,
      "t is no tokenizer.json, which begins with {: a text is named by --input" },
    { ": > t; tokenize --tokenizer t", 1, "t is no tokenizer.json, which begins with {" },
    { "tokenize t.json", 2,
      "'t.json' is not an option; words with spaces need quotes, and a file follows the name of "
      "its option: "
      "--tokenizer FILE, --input FILE" },
    { "echo '{}' > t; tokenize --tokenizer t", 1, "t: the file has no model" },
    { "echo '{\"normalizer\":{\"type\":\"Odd\"}}' > t; tokenize --tokenizer t", 1,
      "the normalizer 'Odd' is not known here" },
    { GPT2 "-i none", 1, "none can't be read" },
    { "printf 'a\\n\\377\\n' | " GPT2, 1, "stdin, line 2: not UTF-8 at byte 0" },
    { "echo x | " GPT2 "--decode", 1, "stdin, line 1: " },
    { "yes | head -c 4000000 | tr -d '\\n' | " GPT2, 1, "line 1: it is longer than a megabyte" },
    { GPT2 "--json --tokens < /dev/null", 2, "--json shows everything" },
    { GPT2 "--decode --offsets < /dev/null", 2, "--decode prints text" },
    { GPT2 "--raw < /dev/null", 2, "only --decode prints text" },
    { GPT2 "--counts --tokens < /dev/null", 2, "--counts prints a number" },
    { "tokenize --tokenizer - < /dev/null", 2, "only one of --tokenizer and --input" },
    { "echo a | " GPT2 "> /dev/full", 1, "No space left" },
    /* The program can't write the first line while it waits for the second. */
    { "(echo a; sleep 0.2; echo b) | " GPT2 "> /dev/full", 1, "No space left" },
    { "echo a | " GPT2 "--json > /dev/full", 1, "No space left" },
};

TEST_ROWS(what_is_wrong_is_said, COUNT_OF(refused)) {
    run("%s", refused[_i].command);
    expect(refused[_i].status);
    assert_contains(result.err, refused[_i].says);
}
