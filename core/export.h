/* weft/core/export.h - what the shared library shows, and checked format strings. */
#ifndef WEFT_CORE_EXPORT_H
#define WEFT_CORE_EXPORT_H

#if defined(__GNUC__)
#define WF_API __attribute__((visibility("default")))
#define WF_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define WF_API
#define WF_PRINTF(text, first)
#endif

#endif
