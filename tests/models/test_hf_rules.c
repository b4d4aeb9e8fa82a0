/* tests/models/test_hf_rules.c - rules of repetition and length: searches under each rule give the
 * outputs of transformers' generate(), which record_hf.py recorded for three small models with
 * beams of 1 and 4.
 *
 * 250 lines of larger models for each rule and beam are compared by hf_peer.py. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "hf_files.h"
#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(hf_rules)

SETUP(make_folder, remove_folder)

static const int32_t beginning[] = { 2, 4, 9, 14 };

/* Settings as in record_hf.py. */
enum { RULES = 8, RENORMALISED = 4 };
static wf_decode_options with_rule(const wf_generation *g, int rule) {
    wf_decode_options o = wf_generation_options(g);
    o.no_repeat_ngram = rule == 0 ? 1 : rule == 1 ? 2 : rule == 7 ? 3 : 0;
    o.min_len = rule == 2 ? 9 : rule == 7 ? 4 : 0;
    if (rule == 3) o.begin_banned = beginning, o.n_begin_banned = COUNT_OF(beginning);
    o.repetition_penalty = rule == 4 ? 1.4 : rule == 5 ? 0.7 : rule == 7 ? 1.2 : 1;
    o.decay_start = rule == 6 ? 3 : 6;
    o.decay = rule == 6 ? 1.3 : rule == 7 ? 1.1 : 1;
    return o;
}

static const wf_entry *entry_of(const wf_file *f, const char *name, const char *of) {
    char key[64];
    snprintf(key, sizeof key, "%s.%s", name, of);
    return entry(f, key);
}

static void assert_found(wf_decoder *d, const wf_file *f, const char *name, int rule,
                         wf_decode_options o) {
    char key[32];
    const wf_entry *src = entry_of(f, name, "src"), *length = entry_of(f, name, "src_length");
    snprintf(key, sizeof key, "%d.beam%d", rule, o.beam);
    const wf_entry *found = entry_of(f, name, key);
    int b = (int)src->shape[0], width = (int)found->shape[1];
    wf_decoded results[64];
    ck_assert_int_le(b, COUNT_OF(results));
    assert_decoder(d,
                   wf_decode(d, b, (int)src->shape[1], src->data, length->data, NULL, &o, results));
    for (int i = 0; i < b; i++) {
        const wf_hypothesis *h = &results[i].best[0];
        int other = other_token(h, (const int32_t *)found->data + i * width, width);
        ck_assert_msg(other < 0, "%s, rule %d, beam %d, sentence %d: token %d is another", name,
                      rule, o.beam, i, other);
    }
    wf_decoded_free(results, b);
}

static const char *const names[] = { "bart", "marian_half", "marian" };

TEST_ROWS(searches_by_rules_are_those_of_transformers, COUNT_OF(names)) {
    char path[512], values_path[512], message[WF_MESSAGE];
    wf_hf hf = import(recorded(names[_i], path));
    source_path("tests/data/hf_rules.safetensors", values_path, sizeof values_path);
    wf_file *f = wf_file_open(values_path);
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    wf_decoder *d = wf_decoder_new(hf.model, NULL, message);
    ck_assert_msg(d, "%s", message);
    hf.generation.options.renormalize = _i == 2;
    for (int rule = 0; rule < (_i == 2 ? RENORMALISED : RULES); rule++)
        for (int beam = 1; beam <= 4; beam += 3) {
            wf_decode_options o = with_rule(&hf.generation, rule);
            o.beam = beam;
            assert_found(d, f, names[_i], rule, o);
        }
    wf_decoder_free(d), wf_file_free(f), wf_hf_free(&hf);
}
