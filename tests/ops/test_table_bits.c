/* tests/ops/test_table_bits.c - values, gradients and second gradients of every row of the table of
 * ops have the bits whose hashes are recorded here, with every set of kernels, on one thread and on
 * two. test_bits.c compares the bits kernel by kernel. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "op_cases.h"
#include "tests/suites.h"

TESTS(table_bits)

/* Hashes of all rows together, in f32 and in f64. A new row, or another order of rows, changes
 * them, too. WEFT_SHOW_BITS=1 prints the hash of each row. */
static const struct {
    wf_dtype real;
    uint64_t bits;
} recorded[] = { { WF_F32, 0xa6497a5b9279a28c }, { WF_F64, 0xd5f263c39b8debd7 } };

static uint64_t mixed(uint64_t hash, const values *v, int n) {
    for (int i = 0; i < n; i++)
        for (int64_t k = 0; k < v[i].count; k++) {
            uint64_t word = 1; /* of every NaN */
            if (!isnan(v[i].data[k])) memcpy(&word, &v[i].data[k], sizeof word);
            hash = wf_mix64(hash ^ word);
        }
    return hash;
}

/* Hashes the second gradients: those of the sum of squares of the first ones. */
static uint64_t second_bits(fixture *f, int threads, uint64_t hash) {
    wf_tensor *total = NULL, *second[MAX_CASE_OPERANDS];
    values out[MAX_CASE_OPERANDS];
    for (int i = 0; i < f->n_wrt; i++) {
        wf_tensor *squares = wf_square_sum(f->grad[i]);
        total = total ? wf_add(total, squares) : squares;
    }
    ck_assert_msg(wf_grad(total, f->wrt, f->n_wrt, second), "%s", wf_error(f->g));
    evaluate(second, f->n_wrt, threads, f->row->random, out);
    hash = mixed(hash, out, f->n_wrt);
    free_values(out, f->n_wrt);
    return hash;
}

static uint64_t bits_of_row(const op_case *row, wf_dtype real, int threads) {
    fixture f;
    values out[MAX_OUTPUTS];
    fixture_open(&f, row, real, PLAIN);
    bool smooth = fixture_differentiate(&f);
    int n = fixture_outputs(&f);
    fixture_evaluate(&f, threads, out);
    uint64_t hash = mixed(0, out, n);
    free_values(out, n);
    if (smooth) hash = second_bits(&f, threads, hash);
    fixture_close(&f);
    return hash;
}

TEST_ROWS(the_table_of_ops_has_the_recorded_bits, COUNT_OF(recorded)) {
    uint64_t all = 0;
    for (int i = 0; i < op_case_count; i++) {
        uint64_t one = bits_of_row(&op_cases[i], recorded[_i].real, 1);
        ck_assert_msg(one == bits_of_row(&op_cases[i], recorded[_i].real, 2), "%s: two threads",
                      op_cases[i].name);
        all = wf_mix64(all ^ one);
        if (getenv("WEFT_SHOW_BITS"))
            printf("%s f%d 0x%016llx\n", op_cases[i].name, recorded[_i].real == WF_F32 ? 32 : 64,
                   (unsigned long long)one);
    }
    ck_assert_msg(all == recorded[_i].bits, "0x%016llx, not 0x%016llx", (unsigned long long)all,
                  (unsigned long long)recorded[_i].bits);
}
