/* tests/ops/test_blocks.c - block sizes of matrix products, for caches of many kinds. The suites
 * products and panels, run with several WEFT_CACHES, show that no bit of a result depends on
 * them. */
#include "tests/suites.h"
#include "tests/support/support.h"

#include "ops/kernels/cache_blocks.h"

TESTS(blocks)

static wf_blocks blocks_for(const char *caches, int64_t rows, int64_t columns, size_t unit) {
    wf_caches c;
    ck_assert_msg(wf_caches_parse(caches, 2, &c), "%s", caches);
    return wf_blocks_of(&c, rows, columns, unit);
}

/* The bytes that k rows of a panel of B and k columns of a tile of A occupy in the cache. */
static int64_t panel_bytes(const wf_blocks *b, int64_t rows, int64_t columns, size_t unit) {
    return b->k * (rows + columns) * (int64_t)unit;
}

TEST(a_narrow_panel_stays_in_the_first_level) {
    wf_blocks zen3 = blocks_for("32K/8,512K/8,32M/16", 6, 16, 4);
    ck_assert(zen3.streams_a);
    ck_assert_int_eq(zen3.k, 320);
    ck_assert_int_eq(zen3.rows, 204); /* rows of 320 floats fit in 256 KB, in whole tiles */
    ck_assert_int_le(panel_bytes(&zen3, 6, 16, 4), 28 << 10);
    wf_blocks large = blocks_for("48K/12,2M/16,260M/20", 6, 16, 4);
    ck_assert_int_eq(large.k, 512);
    ck_assert_int_eq(large.rows, 510);
}

TEST(a_wide_panel_has_a_part_of_the_second_level) {
    wf_blocks b = blocks_for("48K/12,2M/16,260M/20", 6, 64, 4);
    ck_assert(!b.streams_a);
    ck_assert_int_eq(b.k, 512);
    b = blocks_for("32K/8,256K/4,8M/16", 6, 64, 4);
    ck_assert(!b.streams_a);
    ck_assert_int_eq(b.k, 256);
}

TEST(threads_share_the_second_level) {
    wf_blocks alone = blocks_for("32K/8/1,512K/8/1,32M/16", 6, 16, 4);
    wf_blocks two = blocks_for("32K/8/2,512K/8/2,32M/16", 6, 16, 4);
    ck_assert_int_lt(two.rows, alone.rows);
}

TEST(blocks_of_any_caches_can_be_used) {
    static const char *const caches[] = { "4K/1,32K/1,64K/1",
                                          "4K/4,64K/8,128K/16",
                                          "1M/64,2M/64,4M/64",
                                          "33000/3,33001/5,33002/7",
                                          "4K/64/4096,32K/64/4096,32K/64/4096",
                                          "4K/1,32K/1,4096M/64" };
    static const int64_t tiles[][2] = { { 4, 4 }, { 4, 8 }, { 6, 8 }, { 6, 16 }, { 6, 64 } };
    for (int i = 0; i < COUNT_OF(caches); i++)
        for (int t = 0; t < COUNT_OF(tiles); t++)
            for (size_t unit = 4; unit <= 8; unit *= 2) {
                wf_blocks b = blocks_for(caches[i], tiles[t][0], tiles[t][1], unit);
                ck_assert(b.k >= WF_BLOCK_UNIT && b.k <= 512 && b.k % WF_BLOCK_UNIT == 0);
                ck_assert(b.rows >= tiles[t][0] && b.rows % tiles[t][0] == 0);
            }
}

TEST(k_is_divided_evenly) {
    ck_assert_int_eq(wf_even_block(0, 512), 16);
    ck_assert_int_eq(wf_even_block(1, 16), 16);
    ck_assert_int_eq(wf_even_block(512, 512), 512);
    ck_assert_int_eq(wf_even_block(513, 512), 272);
    ck_assert_int_eq(wf_even_block(2048, 320), 304);
}

/* 1 KB of each row is read, and rows are 2 KB apart: so they use only half of the sets of a cache
 * of 512 KB with 8 ways, which then holds 256 such rows. */
TEST(rows_a_power_of_two_apart_share_sets) {
    wf_cache_level c = { .bytes = 512 << 10, .ways = 8, .threads = 1 };
    ck_assert(wf_cache_holds(&c, 224, 1024, 2048));
    ck_assert(!wf_cache_holds(&c, 225, 1024, 2048));
    ck_assert(!wf_cache_holds(&c, 57, 1024, 8192));
    ck_assert(wf_cache_holds(&c, 448, 1024, 1024));
    /* rows an odd number of cache lines apart use all sets evenly */
    ck_assert(wf_cache_holds(&c, 240, 1024, 8192 + 64));
    ck_assert(!wf_cache_holds(&c, 600, 1024, 8192 + 64));
    c.threads = 2;
    ck_assert(!wf_cache_holds(&c, 224, 1024, 2048));
    ck_assert(!wf_cache_holds(&c, 1, 4, 0));
    c = (wf_cache_level){ .bytes = 32 << 10,
                          .ways = 64,
                          .threads = 1024 }; /* less than a byte each */
    ck_assert(!wf_cache_holds(&c, 1, 4, 4));
}
