/* tests/bench/developer_bench.h - measurements for those who change kernels: more parts beside
 * those of tools/bench. */
#ifndef WEFT_TESTS_BENCH_DEVELOPER_BENCH_H
#define WEFT_TESTS_BENCH_DEVELOPER_BENCH_H

#include "tools/bench/bench.h"

void bench_attention(bench_settings *set);
void bench_ops(bench_settings *set);

#endif
