/* tests/core/base/test_caches.c - sizes of the processor's caches: parsed from text, read from
 * Linux's files, and corrected where a virtual machine reports impossible ones. */
#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/support.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

#include "core/base/caches.h"

TESTS(caches)

static void expect_fit(const wf_caches *c, int processors) {
    const wf_cache_level *all[] = { &c->l1, &c->l2, &c->l3 };
    for (int i = 0; i < COUNT_OF(all); i++) {
        ck_assert_int_ge(all[i]->bytes, i ? all[i - 1]->bytes : 4096);
        ck_assert(all[i]->ways >= 1 && all[i]->ways <= 64);
        ck_assert(all[i]->threads >= 1 && all[i]->threads <= processors);
    }
}

/* ---- text ------------------------------------------------------------------------------------ */

static const struct {
    const char *text, *read; /* NULL: refused */
} texts[] = {
    { "32K/8,512K/8,16M/16", "32K/8/1,512K/8/1,16M/16/6" },
    { "32K/8,512K/8,16M/16/8", "32K/8/1,512K/8/1,16M/16/8" },
    { "48K/12/2,2M/16/2,260M/20/96", "48K/12/2,2M/16/2,260M/20/96" },
    { "49152/12,1280K/10,1536K/12", "48K/12/1,1280K/10/1,1536K/12/6" },
    { "128K/8,4M/16/4,4M/16/4", "128K/8/1,4M/16/4,4M/16/4" },
    { "33000/3,33001/5,33002/7", "33000/3/1,33001/5/1,33002/7/6" },
    { "4K/1,32K/1,4096M/64/4096", "4K/1/1,32K/1/1,4096M/64/4096" },
    { "", NULL },
    { "nonsense", NULL },
    { "K/8,512K/8,16M/16", NULL },
    { "32K/8,M/8,16M/16", NULL },
    { ",,", NULL },
    { "32K/8", NULL },
    { "32K/8,512K/8", NULL },
    { "32K/8,512K/8,", NULL },
    { "32K/8,512K/8,16M", NULL },
    { "32K/8,512K/8,16M/", NULL },
    { "32K/8,512K/8,16M/16/", NULL },
    { "32K/8,512K/8,16M/16/0", NULL },
    { "32K/8,512K/8,16M/16/4097", NULL },
    { "32K/8,512K/8,16M/16/8/2", NULL },
    { "32K/8,512K/8,16M/16,64M/16", NULL },
    { " 32K/8,512K/8,16M/16", NULL },
    { "32K/8,512K/8,16M/16 ", NULL },
    { "32k/8,512K/8,16M/16", NULL },
    { "32G/8,512K/8,16M/16", NULL },
    { "-32K/8,512K/8,16M/16", NULL },
    { "+32K/8,512K/8,16M/16", NULL },
    { "32K/-8,512K/8,16M/16", NULL },
    { "32K/0,512K/8,16M/16", NULL },
    { "32K/65,512K/8,16M/16", NULL },
    { "0/8,512K/8,16M/16", NULL },
    { "1/8,512K/8,16M/16", NULL },
    { "2M/8,512K/8,16M/16", NULL },
    { "64K/8,32K/8,16M/16", NULL }, /* each level holds the one before */
    { "32K/8,512K/8,256K/16", NULL },
    { "32K/8,512K/8,8192M/16", NULL },
    { "18446744073709551648/8,512K/8,16M/16", NULL },
    { "32K/8,512K/8,99999999999999999999999999M/16", NULL },
    { "32K/4294967304,512K/8,16M/16", NULL },
};

TEST_ROWS(text_is_read_strictly, COUNT_OF(texts)) {
    wf_caches c = { { 1, 2, 3 }, { 4, 5, 6 }, { 7, 8, 9 } }, before = c;
    char text[CACHES_TEXT];
    bool read = wf_caches_parse(texts[_i].text, 6, &c);
    ck_assert_int_eq(read, texts[_i].read != NULL);
    if (!read) {
        ck_assert_mem_eq(&c, &before, sizeof c);
        return;
    }
    wf_caches_print(&c, text);
    ck_assert_str_eq(text, texts[_i].read);
    ck_assert(wf_caches_parse(text, 6, &before));
    ck_assert_mem_eq(&c, &before, sizeof c);
}

TEST(the_longest_text_fits) {
    wf_caches c = { { INT64_MAX, INT32_MIN, INT32_MIN },
                    { INT64_MAX, INT32_MIN, INT32_MIN },
                    { INT64_MAX, INT32_MIN, INT32_MIN } };
    char text[CACHES_TEXT];
    memset(text, 'x', sizeof text);
    wf_caches_print(&c, text);
    ck_assert_ptr_nonnull(memchr(text, '\0', sizeof text));
}

/* ---- made fit -------------------------------------------------------------------------------- */

static const struct {
    wf_caches found;
    int processors;
    const char *mended;
} machines[] = {
    /* the machine reports no cache */
    { { { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } }, 4, "32K/8/1,512K/8/1,8M/16/4" },
    { { { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } }, 1, "32K/8/1,512K/8/1,8M/16/1" },
    { { { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } }, -1, "32K/8/1,512K/8/1,8M/16/1" },
    /* a desktop with two threads per core, as its processor reports it */
    { { { 32768, 8, 2 }, { 524288, 8, 2 }, { 33554432, 16, 16 } },
      16,
      "32K/8/2,512K/8/2,32M/16/16" },
    /* a virtual machine with two cores of a large server reports the server's whole third level,
     * which 128 threads share */
    { { { 49152, 12, 2 }, { 2097152, 16, 2 }, { 272629760, 20, 128 } },
      2,
      "48K/12/2,2M/16/2,16M/20/2" },
    /* each processor is reported as a socket of its own */
    { { { 32768, 8, 1 }, { 4194304, 16, 1 }, { 16777216, 16, 1 } }, 4, "32K/8/1,4M/16/1,16M/16/4" },
    { { { 32768, 8, 1 }, { 524288, 8, 1 }, { 16777216, 16, 1 } }, 64, "32K/8/1,512K/8/1,16M/16/8" },
    /* no third level, and no numbers of ways, are reported */
    { { { 65536, 0, 1 }, { 2097152, 0, 4 }, { 0, 0, 0 } }, 8, "64K/8/1,2M/8/4,2M/8/4" },
    /* numbers that no processor has */
    { { { 1, -1, -1 }, { -5, 99, 0 }, { INT64_MAX, 1000, 1 } }, 2, "32K/8/1,512K/8/1,8M/16/2" },
    { { { INT64_MIN, 0, 0 }, { INT64_MAX, 0, 0 }, { INT64_MIN, 0, 0 } },
      2,
      "32K/8/1,512K/8/1,8M/16/2" },
    { { { 1048576, 8, 1 }, { 32768, 8, 1 }, { 32768, 8, 2 } }, 2, "1M/8/1,1M/8/1,1M/8/2" },
};

TEST_ROWS(what_was_found_is_made_fit, COUNT_OF(machines)) {
    wf_caches c = machines[_i].found;
    char text[CACHES_TEXT];
    wf_caches_mend(&c, machines[_i].processors);
    expect_fit(&c, machines[_i].processors < 1 ? 1 : machines[_i].processors);
    wf_caches_print(&c, text);
    ck_assert_str_eq(text, machines[_i].mended);
}

/* ---- Linux's files --------------------------------------------------------------------------- */

SETUP(enter_folder, NULL)

static void write_word(const char *folder, const char *name, const char *text) {
    char path[64];
    if (!text) return;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "%s\n", text);
    ck_assert_int_eq(fclose(f), 0);
}

static void write_cache(int i, const char *level, const char *type, const char *size,
                        const char *ways, const char *list) {
    char folder[16];
    snprintf(folder, sizeof folder, "index%d", i);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    write_word(folder, "level", level);
    write_word(folder, "type", type);
    write_word(folder, "size", size);
    write_word(folder, "ways_of_associativity", ways);
    write_word(folder, "shared_cpu_list", list);
}

static void expect_read(const char *expected) {
    wf_caches c;
    char text[CACHES_TEXT];
    wf_caches_read(".", &c);
    wf_caches_print(&c, text);
    ck_assert_str_eq(text, expected);
    wf_caches_mend(&c, 4);
    expect_fit(&c, 4);
}

TEST(files_of_linux_are_read) {
    expect_read("0/0/0,0/0/0,0/0/0");
    write_cache(0, "1", "Data", "48K", "12", "0");
    write_cache(1, "1", "Instruction", "32K", "8", "0");
    write_cache(2, "2", "Unified", "2048K", "16", "0,64");
    write_cache(3, "3", "Unified", "266240K", "20", "0-31,64-95");
    expect_read("48K/12/1,2M/16/2,260M/20/64");
}

/* Many ARM systems tell sizes alone. */
TEST(files_may_be_missing) {
    write_cache(0, "1", "Data", "64K", NULL, NULL);
    write_cache(1, "1", "Instruction", "64K", NULL, NULL);
    write_cache(2, "2", "Unified", "1024K", NULL, "0-3");
    expect_read("64K/0/0,1M/0/4,0/0/0");
}

TEST(files_may_hold_anything) {
    char long_text[600];
    memset(long_text, '7', sizeof long_text - 1), long_text[sizeof long_text - 1] = '\0';
    write_cache(0, "1", "Data", "-48K", "-3", "0-");
    write_cache(1, "2", "Unified", "99999999999999999999M", "4294967297", "5-2");
    write_cache(2, "3", "Unified", long_text, long_text, "0-4095,0-4095");
    write_cache(3, "9", "Unified", "1M", "1", "0");
    write_cache(4, "", "", "", "", "");
    expect_read("0/0/0,0/0/0,0/0/0");
    char path[400];
    memset(path, 'p', sizeof path - 1), path[sizeof path - 1] = '\0';
    wf_caches c;
    wf_caches_read(path, &c);
    ck_assert_int_eq(c.l1.bytes, 0);
}

SETUP(NULL, NULL)

/* ---- here ------------------------------------------------------------------------------------ */

static void *look(void *unused) {
    (void)unused;
    return (void *)wf_caches_here();
}

/* Threads that ask at the same time get one result; its text parses to the same sizes. */
TEST(here_they_are_fit_for_use) {
    enum { ASKERS = 8 };
    pthread_t thread[ASKERS];
    for (int i = 0; i < ASKERS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, look, NULL), 0);
    for (int i = 0; i < ASKERS; i++) {
        void *found;
        ck_assert_int_eq(pthread_join(thread[i], &found), 0);
        ck_assert_ptr_eq(found, wf_caches_here());
    }
    wf_caches said;
    expect_fit(wf_caches_here(), 4096);
    ck_assert(wf_caches_parse(wf_caches_text(), wf_caches_here()->l3.threads, &said));
    ck_assert_mem_eq(&said, wf_caches_here(), sizeof said);
}

TEST_ROWS(the_environment_gives_others, 5) {
    static const char zeros[] = "00000000000000000000000000000000000000000000000000000000"
                                "000000000000000000000000032K/8,512K/8,16M/16";
    static const char *const wanted[] = { "16K/4,64K/4,1M/8/2", "", "16K/4", "-1/2,3,4", zeros };
    if (getenv("WEFT_CACHES")) return; /* found at the start */
    setenv("WEFT_CACHES", wanted[_i], 1);
    ck_assert_int_eq(strcmp(wf_caches_text(), wanted[_i]) == 0, _i == 0);
    expect_fit(wf_caches_here(), 4096);
    if (_i == 0) ck_assert_int_eq(wf_caches_here()->l2.bytes, 65536);
    char before[CACHES_TEXT];
    snprintf(before, sizeof before, "%s", wf_caches_text());
    setenv("WEFT_CACHES", "32K/8,256K/8,2M/8", 1);
    ck_assert_str_eq(wf_caches_text(), before); /* found once */
}
