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

/* Requirements of a model on the tokens in its tokenizer.json:
 * JSON_RUNNING   texts end with the token `end`
 * JSON_LINES     the file puts one token before each line and one after it, as [CLS] and [SEP]:
 *                they become its start and its end
 * JSON_VECTORS   the same, or no tokens around a line; then there is no start and no end
 * JSON_MASKS     as JSON_LINES, and a mask
 * JSON_SPANS     outputs start with <pad> and end with </s>, as in T5
 * JSON_PAIRS     outputs end with the token `end`, or if it is NULL with </s>, [SEP] or
 *                <|endoftext|>
 * `end` is read for JSON_RUNNING and JSON_PAIRS alone. */
typedef enum json_need {
    JSON_RUNNING,
    JSON_LINES,
    JSON_VECTORS,
    JSON_MASKS,
    JSON_SPANS,
    JSON_PAIRS
} json_need;
/* Make a tokenizer from a tokenizer.json, with its ids. NULL with message[256]. */
wf_tokenizer *json_tokenizer_open(const char *path, json_need need, const char *end, char *message);
/* Find the ids of <extra_id_0>, <extra_id_1>, ..., which stand for spans. Returns how many there
 * are, at most WF_MOST_SENTINELS. */
enum { WF_MOST_SENTINELS = 100 };
int64_t sentinels_of(const wf_tokenizer *t, int32_t ids[WF_MOST_SENTINELS]);
/* Find the ids that a tokenizer puts before and after a line, and the id of its mask. False with
 * message: it is no tokenizer.json, or has no such ids. */
bool mask_ids_of(wf_tokenizer *t, int32_t around[2], int32_t *mask, char *message);

#endif
