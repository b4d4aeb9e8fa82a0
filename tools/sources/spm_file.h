/* tools/sources/spm_file.h - makes the vocabulary of a new model from an existing .spm file or
 * tokenizer.json. */
#ifndef WEFT_TOOLS_SOURCES_SPM_FILE_H
#define WEFT_TOOLS_SOURCES_SPM_FILE_H

#include "models/text_formats.h"

/* The ids of a tokenizer. SPM_NEW_IDS: weft's special symbols, then the file's pieces in their
 * order. Otherwise the file's own ids, where outputs start with padding, as in T5, or with the end
 * token, as in Marian. */
typedef enum spm_ids { SPM_NEW_IDS, SPM_PADDING_STARTS, SPM_END_STARTS } spm_ids;

/* Make a tokenizer from a .spm file. source: it adds an end token after each line, as sources have
 * in Marian and T5. NULL with message[256]. */
wf_tokenizer *sentencepiece_open(const char *path, bool source, spm_ids ids, char *message);
/* Make a tokenizer from a tokenizer.json, with its ids. Texts end with the token `end`. NULL with
 * message[256]. */
wf_tokenizer *json_tokenizer_open(const char *path, const char *end, char *message);

/* Make a tokenizer from a tokenizer.json, with its ids. The file must put one token before each
 * line and one after it, as [CLS] and [SEP]: they become its start and its end. NULL with
 * message[256]. */
wf_tokenizer *line_tokenizer_open(const char *path, char *message);
/* Make a tokenizer from a tokenizer.json, for vectors of lines. If the file puts no tokens around a
 * line, the tokenizer has no start and no end. NULL with message[256]. */
wf_tokenizer *vector_tokenizer_open(const char *path, char *message);
/* Make a tokenizer for both sides of pairs from a tokenizer.json, with its ids. Outputs end with
 * the token `end`, or if it is NULL with </s>, [SEP] or <|endoftext|>. SPM_PADDING_STARTS: they
 * start with <pad> and end with </s>, as in T5. NULL with message[256]. */
wf_tokenizer *pair_tokenizer_open(const char *path, const char *end, spm_ids ids, char *message);
/* Make a tokenizer for masked language models from a tokenizer.json, with its ids. NULL with
 * message[256]. */
wf_tokenizer *mask_tokenizer_open(const char *path, char *message);
/* Make a tokenizer for spans from a tokenizer.json: it must have a token <pad>, which starts
 * outputs, and </s>, which ends them. NULL with message[256]. */
wf_tokenizer *span_tokenizer_open(const char *path, char *message);
/* Find the ids of <extra_id_0>, <extra_id_1>, ..., which stand for spans. Returns how many there
 * are, at most WF_MOST_SENTINELS. */
enum { WF_MOST_SENTINELS = 100 };
int64_t sentinels_of(const wf_tokenizer *t, int32_t ids[WF_MOST_SENTINELS]);
/* Find the ids that a tokenizer puts before and after a line, and the id of its mask. False with
 * message: it is no tokenizer.json, or has no such ids. */
bool mask_ids_of(wf_tokenizer *t, int32_t around[2], int32_t *mask, char *message);

#endif
