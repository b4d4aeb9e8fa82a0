/* kernels.c - chooses the kernel table: the best that the processor supports, or the one that
 * WEFT_ISA names, if it is supported.
 *
 * The choice is made once, and all graphs share it. A repeated or simultaneous choice gives the
 * same table. */
#include "kernels.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ops/ops.h"

#define EXISTS(name)                                                                               \
    extern const wf_kernels_f32 wf_##name##_f32;                                                   \
    extern const wf_kernels_f64 wf_##name##_f64;
#define ROW(name)                                                                                  \
    { runs_##name, &wf_##name##_f32, &wf_##name##_f64 }

EXISTS(base)

static bool runs_base(void) {
    return true;
}

/* meson.build defines WF_WITHOUT_NAME for an instruction set NAME that is not built. The builtins
 * also check, with XGETBV, that the operating system saves the wide registers. */
#if defined(__x86_64__) && !defined(WF_WITHOUT_AVX2)
EXISTS(avx2)

static bool runs_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif
#if defined(__x86_64__) && !defined(WF_WITHOUT_AVX512)
EXISTS(avx512)

static bool runs_avx512(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
}
#endif
#if defined(__aarch64__) && !defined(WF_WITHOUT_NEON)
EXISTS(neon)

static bool runs_neon(void) {
    return true;
}
#endif

typedef struct table_row {
    bool (*runs)(void);
    const wf_kernels_f32 *f32;
    const wf_kernels_f64 *f64;
} table_row;

/* The tables of kernels, one for each instruction set, from the simplest to the best. */
static const table_row rows[] = {
    ROW(base),
#if defined(__x86_64__) && !defined(WF_WITHOUT_AVX2)
    ROW(avx2),
#endif
#if defined(__x86_64__) && !defined(WF_WITHOUT_AVX512)
    ROW(avx512),
#endif
#if defined(__aarch64__) && !defined(WF_WITHOUT_NEON)
    ROW(neon),
#endif
};

/* Table number i among those that this processor can run. NULL: there are fewer tables. */
static const table_row *runnable(int i) {
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++)
        if (rows[row].runs() && i-- == 0) return &rows[row];
    return NULL;
}

/* An unknown name is ignored, as there is no way to report it here: programs that set WEFT_ISA
 * check wf_isa(). */
static const table_row *choose(void) {
    const char *wanted = getenv("WEFT_ISA");
    const table_row *best = NULL;
    for (int i = 0; runnable(i); i++) {
        best = runnable(i);
        if (wanted && strcmp(wanted, best->f32->isa) == 0) break;
    }
    return best;
}

/* Threads that call this at the same time choose the same table. */
static const table_row *chosen(void) {
    static _Atomic(const table_row *) choice;
    const table_row *row = atomic_load_explicit(&choice, memory_order_acquire);
    if (!row) {
        row = choose();
        atomic_store_explicit(&choice, row, memory_order_release);
    }
    return row;
}

const wf_kernels_f32 *wf_f32(void) {
    return chosen()->f32;
}

const wf_kernels_f64 *wf_f64(void) {
    return chosen()->f64;
}

/* The answer is kept, because asking the processor takes long in a virtual machine. */
bool wf_has_dot(void) {
    static atomic_int known; /* 0: not asked yet; 1: no; 2: yes */
    if (!atomic_load(&known)) atomic_store(&known, wf_f32()->has_dot() ? 2 : 1);
    return atomic_load(&known) == 2;
}

const wf_kernels_f32 *wf_f32_at(int i) {
    const table_row *row = i >= 0 ? runnable(i) : NULL;
    return row ? row->f32 : NULL;
}

const wf_kernels_f64 *wf_f64_at(int i) {
    const table_row *row = i >= 0 ? runnable(i) : NULL;
    return row ? row->f64 : NULL;
}

const char *wf_isa(void) {
    return chosen()->f32->isa;
}
