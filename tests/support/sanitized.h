/* tests/support/sanitized.h - SANITIZED: is this a build with the address or thread sanitizer? Such
 * programs are slower and take more memory, and look for other mistakes than wrong results, so some
 * tests do less in them. */
#ifndef WEFT_TESTS_SUPPORT_SANITIZED_H
#define WEFT_TESTS_SUPPORT_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#endif
