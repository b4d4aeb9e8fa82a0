/* tools/data/language.h - how a model reads and writes: text if its file holds a vocabulary, else
 * token ids separated by blanks.
 *
 * What is not here: lines (lines.h), and how text becomes ids (models/text.h). */
#ifndef WEFT_TOOLS_DATA_LANGUAGE_H
#define WEFT_TOOLS_DATA_LANGUAGE_H

#include "models/model.h"
#include "models/text_formats.h"

enum { SIDE_SRC, SIDE_TGT };
enum { PIECE_TEXT = 16 }; /* room for an id in digits */

typedef struct language {
    bool text;
    wf_tokenizer *tokenizer[2]; /* of source and target: one object if the vocabulary is shared;
                                   NULL: token ids */
    int64_t vocab[2], max_len;
} language;

/* Opens the tokenizers of the model in f. False with message[256]: a vocabulary can't be read. */
bool tokenizers_open(wf_tokenizer *t[2], const wf_file *f, char *message);
void tokenizers_close(wf_tokenizer *t[2]); /* they may be NULL */

/* Has a side's vocabulary an entry for each id of the model, and no more? False with
 * message[256]. */
bool vocabulary_fits(int side, int64_t size, int64_t of_model, char *message);

/* Opens the language of the model m, which was loaded from f. False with message[256]: the file's
 * vocabulary can't be read, or is not of the model's size. */
bool language_open(language *l, const wf_file *f, const wf_model *m, char *message);
void language_close(language *l);

/* The ids of the special symbols that an output can't hold, padding and start, and unknown tokens if
 * `unknown`; never the end. Returns how many. */
int no_text(const wf_tokenizer *t, bool unknown, int32_t ids[WF_SPECIAL_IDS]);

/* Sets the languages that a multilingual model reads and writes; NULL: those of its file. Its vocabulary
 * has a piece for each. ">>fra<<" stands before a source and names the output's language. "fra_Latn" or
 * "__fr__" stands before or behind a source, and before an output, and names its own language. *forced:
 * the id that outputs begin with; -1: they need none, or the model's start says it. False with
 * message[256]: there is no such piece, or the start is another language. */
bool language_choose(language *l, const char *source, const char *target, int32_t *forced,
                     char *message);

/* The ids of a line, of which the first `capacity` are written. Returns how many there are, which
 * may be more; -1 with message[256]: it is not UTF-8, or has what is not an id. A line without
 * tokens has none. */
int64_t language_read(language *l, int side, const char *line, size_t bytes, int32_t *ids,
                      int64_t capacity, char *message);

/* Writes the message for a line of n tokens where at most `most` fit, into message[256]. */
void language_too_long(int side, int64_t n, int64_t most, char *message);
/* How many ids the tokenizer puts behind every line: an end that sources have, a language. */
int language_behind(const language *l, int side);

/* The line of n ids, to be freed; t NULL: of numbers. NULL: out of memory. bytes, unless NULL: its
 * length, for a text of bytes may have zeros. */
char *line_of_ids(const wf_tokenizer *t, const int32_t *ids, int64_t n, size_t *bytes);

/* The piece of the vocabulary that an id stands for, or else the number, in buffer. */
const char *language_piece(const language *l, int side, int32_t id, char buffer[PIECE_TEXT]);

/* The piece as people read it. A vocabulary that spells bytes by letters, as in "\xC4\xA0is", shows
 * a space as an open box and a line break as a bent arrow. It is cut to the buffer. NULL: out of
 * memory. */
enum { LABEL_TEXT = 64 };
const char *language_label(const language *l, int side, int32_t id, char label[LABEL_TEXT]);

#endif
