/* tests/models/marian_files.h - reads the files of Marian that marian_peer.py recorded, and the ids
 * of their sources and outputs. */
#ifndef WEFT_TESTS_MODELS_MARIAN_FILES_H
#define WEFT_TESTS_MODELS_MARIAN_FILES_H

#include <stdio.h>

#include "models/generation_internal.h"
#include "models/marian/marian_file.h"
#include "models/marian_internal.h"
#include "models/model_internal.h"
#include "tests/support/models.h"
#include "tests/support/support.h"
#include "texts.h"

static const char *const recorded[] = { "shared.npz", "shared.bin",  "split.npz",
                                        "split.bin",  "teacher.npz", "teacher.bin",
                                        "words.bin",  "average.npz", "average.bin" };

static inline char *recorded_file(int i, const char *end, size_t *bytes) {
    char relative[128], path[512];
    snprintf(relative, sizeof relative, "tests/data/marian/%s%s", recorded[i], end);
    return file_text(source_path(relative, path, sizeof path), bytes);
}

static inline void import(const void *model, size_t bytes, wf_hf *out) {
    char message[WF_MESSAGE] = "";
    const wf_marian_files files = { .model = model, .model_bytes = bytes };
    ck_assert_msg(wf_marian_import(&files, out, message), "%s", message);
}

/* Reads ids up to a '|' or the end of the line, and returns their number. */
static inline int read_ids(char **at, int32_t *ids) {
    int n = 0;
    while (**at && **at != '|' && **at != '\n') {
        ids[n++] = (int32_t)strtol(*at, at, 10);
        while (**at == ' ') ++*at;
    }
    *at += **at != '\0';
    return n;
}

/* Asserts that a greedy search of the recorded sources gives the recorded outputs. */
static inline void assert_recorded(wf_model *m, const wf_generation *g, char *text) {
    wf_decoder *d = open_decoder(m, NULL);
    wf_decode_options o = wf_generation_options(g);
    ck_assert(o.beam == 1 && o.n_banned == 1 && o.banned[0] == 1);
    int n = 0;
    for (char *at = text; *at; n++) {
        int32_t src[32], want[64];
        int32_t length = read_ids(&at, src);
        while (*at == ' ') at++;
        int expected = read_ids(&at, want);
        wf_decoded result;
        assert_decoder(d, wf_decode(d, 1, length, src, &length, NULL, &o, &result));
        ck_assert_int_eq(result.best[0].length, expected);
        ck_assert(memcmp(result.best[0].tokens, want, (size_t)expected * sizeof *want) == 0);
        wf_decoded_free(&result, 1);
    }
    ck_assert_int_eq(n, 40);
    wf_decoder_free(d);
}

#endif
