/* tools/emit/emit_options.h - the options of graph --emit-c and --emit-html, as rows of its table.
 * c: the emit_request that they set, a static object. */
#ifndef WEFT_TOOLS_EMIT_EMIT_OPTIONS_H
#define WEFT_TOOLS_EMIT_EMIT_OPTIONS_H

#include "emit_program.h"

#define EMIT_OPTIONS(c)                                                                            \
    GROUP("C"),                                                                                    \
        FLAG("emit-c", c.asked,                                                                    \
             "write the model and its search as one C11 file that needs no library, instead of "   \
             "Graphviz text. Its functions read and write lines, or token ids, and give the "      \
             "outputs of the program generate. Compiled with -DMODEL_MAIN it is a program for "    \
             "lines. --model is needed, and an encoder alone is refused"),                         \
        FLAG("emit-html", c.page,                                                                  \
             "write a page that runs the model of --model in a browser, as WebAssembly of the C "  \
             "that --emit-c writes. It has the options of --emit-c except --train, --batch, "      \
             "--prefix and --weights-file. The programs clang and lld must be installed"),         \
        RAW_OUTPUT("weights-file", c.model.weights_file,                                           \
                   "with --emit-c: write the weights to this file instead of an array in the C "   \
                   "file, which then compiles faster. The functions of the C file take these "     \
                   "bytes as an argument. The compiled program reads them from its own folder",    \
                   .fallback = "an array"),                                                        \
        CHOICE("weights", c.model.weights, EMIT_WEIGHTS,                                           \
               "with --emit-c or --emit-html, but not --train: number format of the weight "       \
               "matrices. int8 takes a quarter of the bytes of f32; outputs are then those of "    \
               "generate --weights int8",                                                          \
               .fallback = "f32, or int8 if the file has that"),                                   \
        COUNT("max-length", c.model.max_length, 1, 1000000,                                        \
              "with --emit-c or --emit-html, but not --train: maximum length of a source and of "  \
              "an output in tokens, for less memory",                                              \
              .fallback = "the model's own"),                                                      \
        COUNT("max-line", c.model.max_line, 1, 1000000,                                            \
              "with --emit-c or --emit-html, but not --train: maximum length of a line of input "  \
              "in bytes",                                                                          \
              .fallback = "8 for each token of a source, at least 1024"),                          \
        COUNT("beam", c.model.beam, 1, 64,                                                         \
              "with --emit-c or --emit-html, but not --train: number of hypotheses of the beam "   \
              "search; 1 is greedy search",                                                        \
              .fallback = "as generate"),                                                          \
        COUNT("batch", c.model.batch, 1, 1024,                                                     \
              "with --emit-c, but not --train: maximum number of sources that "                    \
              "model_generate_batch and model_translate_batch decode at once. It does not change " \
              "outputs. A larger number takes more memory, and with --beam 1 less time. The "      \
              "compiled program reads this many lines before it answers",                          \
              .fallback = "1"),                                                                    \
        STRING("ram", c.ram, "SIZE",                                                               \
               "with --emit-c or --emit-html, but not --train: maximum bytes of memory for a "     \
               "run, without the weights, such as 524288, 512K or 2M. If a model in int8 "         \
               "needs more, layers compute keys and values again at every step, with the same "    \
               "outputs in more time. If that is not enough, no file is written, and the "         \
               "message says what would fit",                                                      \
               .fallback = "any"),                                                                 \
        STRING("prefix", c.model.prefix, "NAME",                                                   \
               "with --emit-c: first part of the names that the file declares",                    \
               .fallback = "model"),                                                               \
        FLAG("train", c.training,                                                                  \
             "with --emit-c: write the training of the model instead of its search, from a file "  \
             "that train -o wrote (not .best). Each update, with optimizer, schedule and random "  \
             "numbers, is that of the program train, bit for bit. The compiled program trains, "   \
             "and writes the model's file to stdout. It makes the sequences of copy, reverse and " \
             "sort. For text it reads batches of token ids, whose sizes --batch-size and "         \
             "--length limit"),                                                                    \
        FLAG("from-start", c.from_start,                                                           \
             "with --train: begin with the first update and the initial weights, instead of "      \
             "going on from the step of the file. Refused for a training that began with --init"), \
        FLAG("dry-run", c.dry_run,                                                                 \
             "with --emit-c or --emit-html: print how many bytes memory and weights take, and "    \
             "write nothing. Refused with -o")

#endif
