/* tests/models/hf_encoder_files.h - reads the folders with encoders that record_encoder.py
 * recorded: the values of transformers and sentence-transformers, and the ids of the recorded
 * lines. */
#ifndef WEFT_TESTS_MODELS_HF_ENCODER_FILES_H
#define WEFT_TESTS_MODELS_HF_ENCODER_FILES_H

#include "hf_files.h"
#include "models/encoder.h"
#include "models/text_internal.h"

static inline wf_file *values_of(const char *path) {
    char file[512];
    place(file, path, "values.safetensors");
    wf_file *f = wf_file_open(file);
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    return f;
}

/* Encodes the recorded lines into ids [n,64] with their lengths, and compares them. Returns n. */
static inline int encode_lines(const wf_hf *hf, const char *path, const wf_file *f, int32_t *ids,
                               int32_t *length) {
    char file[512], message[WF_MESSAGE] = "";
    size_t bytes;
    place(file, path, "lines.txt");
    char *lines = read_whole(file, &bytes), *line = lines;
    const wf_entry *e = entry(f, "lines");
    for (int i = 0; i < e->shape[0]; i++) {
        const int32_t *want = (const int32_t *)e->data + i * e->shape[1];
        int64_t n =
            wf_tokenizer_encode(hf->src, line, strcspn(line, "\n"), ids + i * 64, 64, message);
        ck_assert_msg(n >= 0 && n <= hf->model->max_len, "%s", message);
        for (int k = 0; k < e->shape[1]; k++)
            ck_assert_msg(k < n ? ids[i * 64 + k] == want[k] : want[k] < 0, "line %d, id %d", i, k);
        length[i] = (int32_t)n;
        line += strcspn(line, "\n") + 1;
    }
    free(lines);
    return (int)e->shape[0];
}

#endif
