/* tools/data/language.h - how a model reads and writes lines: as text if its file has a vocabulary,
 * otherwise as token ids separated by spaces.
 *
 * lines.h reads lines, and models/text.h turns text into ids. */
#ifndef WEFT_TOOLS_DATA_LANGUAGE_H
#define WEFT_TOOLS_DATA_LANGUAGE_H

#include "models/model.h"
#include "models/text_formats.h"

enum { SIDE_SRC, SIDE_TGT };
enum { PIECE_TEXT = 16 }; /* room for an id in digits */

typedef struct language {
    bool text;
    /* tokenizers of source and target, one object if the vocabulary is shared; NULL: the model
     * works on token ids */
    wf_tokenizer *tokenizer[2];
    int64_t vocab[2], max_len;
} language;

/* Open the tokenizers of the model in f. False with message[256]: a vocabulary cannot be read. */
bool tokenizers_open(wf_tokenizer *t[2], const wf_file *f, char *message);
void tokenizers_close(wf_tokenizer *t[2]); /* they may be NULL */

/* True if a side's vocabulary has exactly one entry for each id of the model. False with
 * message[256]. */
bool vocabulary_fits(int side, int64_t size, int64_t of_model, char *message);

/* Open the language of the model m, which was loaded from f. False with message[256]: the file's
 * vocabulary cannot be read, or does not have the model's size. */
bool language_open(language *l, const wf_file *f, const wf_model *m, char *message);
void language_close(language *l);

/* True if both tokenizers have the same pieces, in the same order. What they put around a line may
 * differ. False if one is NULL. */
bool same_pieces(const wf_tokenizer *a, const wf_tokenizer *b);

/* The ids of special symbols that an output cannot contain: padding and start, and with `unknown`
 * the unknown token; never the end. Returns how many. */
int no_text(const wf_tokenizer *t, bool unknown, int32_t ids[WF_SPECIAL_IDS]);

/* Set the languages that a multilingual model reads and writes; NULL: those of its file. The
 * vocabulary has a piece for each language. A piece ">>fra<<" comes before a source and names the
 * output's language. A piece "fra_Latn" or "__fr__" comes before or after a source, and before an
 * output, and names the language of that text. *forced becomes the id with which outputs must
 * begin; -1: none is needed, or the model's start token is the language. False with message[256]:
 * there is no such piece, or the start token is another language. */
bool language_choose(language *l, const char *source, const char *target, int32_t *forced,
                     char *message);

/* Convert a line to ids, and write the first `capacity` of them. Returns how many there are, which
 * may be more. -1 with message[256]: the line is not UTF-8, or has something that is not an id. An
 * empty line gives no ids but those that the tokenizer adds to every line. */
int64_t language_read(language *l, int side, const char *line, size_t bytes, int32_t *ids,
                      int64_t capacity, char *message);

/* Write a message for a line of n tokens where at most `most` fit, into message[256]. */
void language_too_long(int side, int64_t n, int64_t most, char *message);
/* The number of ids at the end of this line's n ids that the tokenizer added behind its text, as it
 * does to every line: such as an end token, or the token of a language. side: SIDE_SRC or SIDE_TGT,
 * the source's tokenizer or the target's. */
int64_t language_behind(language *l, int side, const char *line, size_t bytes, const int32_t *ids,
                        int64_t n);

/* The line for n ids; the caller frees it. t NULL: the ids as numbers. Returns NULL if memory runs
 * out or an id does not exist. *bytes, unless bytes is NULL, becomes its length, because text made
 * of bytes may contain zeros. */
char *line_of_ids(const wf_tokenizer *t, const int32_t *ids, int64_t n, size_t *bytes);

/* The vocabulary's piece for an id, or the number in buffer if there is none. */
const char *language_piece(const language *l, int side, int32_t id, char buffer[PIECE_TEXT]);

/* The piece as readers should see it. Some vocabularies spell bytes by letters, as in "\xC4\xA0is";
 * here a space is shown as an open box, and a line break as a bent arrow. It is cut to the buffer.
 * NULL: out of memory, or no such id where bytes are spelled. */
enum { LABEL_TEXT = 64 };
const char *language_label(const language *l, int side, int32_t id, char label[LABEL_TEXT]);

#endif
