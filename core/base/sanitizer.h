/* core/base/sanitizer.h - memory that AddressSanitizer forbids, in builds with it. */
#ifndef WEFT_CORE_BASE_SANITIZER_H
#define WEFT_CORE_BASE_SANITIZER_H

#include <stddef.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define WF_SANITIZED 1
#else
#define WF_SANITIZED 0
#define ASAN_POISON_MEMORY_REGION(from, bytes) ((void)(from), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(from, bytes) ((void)(from), (void)(bytes))
#endif

/* the number of bytes behind an op's scratch memory that AddressSanitizer forbids to access; 0 in
 * builds without it */
enum { WF_GUARD_BYTES = WF_SANITIZED ? 256 : 0 };

/* The bytes of scratch memory that each worker thread gets, if no op of the plan asks for more than
 * `largest` bytes. */
static inline size_t wf_scratch_stride(size_t largest) {
    return largest ? ((largest + 127) & ~(size_t)127) + WF_GUARD_BYTES : 0;
}

#endif
