/* tests/fuzz/fuzz_marian.c - any bytes as a file of Marian: refused with a sentence, or a model
 * that can be written and read again. Bytes that are neither a ZIP archive nor a binary file are
 * settings: refused with a sentence, or the same when written and read again. */
#include "fuzz.h"
#include "models/marian/marian_file.h"
#include "models/marian_internal.h"

enum { LARGEST = 1 << 16 };

static void read_again(const wf_model *m) {
    size_t bytes;
    char message[WF_MESSAGE] = "";
    void *npz = wf_marian_export(m, &bytes, message);
    const wf_marian_files files = { .model = npz, .model_bytes = bytes };
    wf_hf hf;
    if (!npz) fprintf(stderr, "%s\n", message);
    fuzz_must(npz && wf_marian_import(&files, &hf, message));
    wf_hf_free(&hf);
    free(npz);
}

static void read_settings(const char *text, size_t size) {
    wf_transformer_config c, again;
    char message[WF_MESSAGE] = "";
    if (!wf_marian_read_settings(text, size, &c, message)) {
        fuzz_must_say(message);
        return;
    }
    char *written = wf_marian_write_settings(&c, message);
    fuzz_must(written && wf_marian_read_settings(written, strlen(written), &again, message));
    fuzz_must(memcmp(&c, &again, sizeof c) == 0);
    free(written);
}

FUZZ_TARGET(marian) {
    char message[WF_MESSAGE] = "";
    bool archive = size >= 4 && memcmp(data, "PK\3\4", 4) == 0;
    bool binary = size >= 8 && memcmp(data, "\1\0\0\0\0\0\0", 8) == 0;
    if (size > LARGEST) return 0;
    if (!archive && !binary) {
        read_settings((const char *)data, size);
        return 0;
    }
    const wf_marian_files files = { .model = data, .model_bytes = size };
    wf_hf hf;
    if (!wf_marian_import(&files, &hf, message))
        fuzz_must_say(message);
    else
        read_again(hf.model);
    wf_hf_free(&hf);
    return 0;
}
