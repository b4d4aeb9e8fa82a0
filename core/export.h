/* weft/core/export.h - the version, symbol visibility, and checked format strings. */
#ifndef WEFT_CORE_EXPORT_H
#define WEFT_CORE_EXPORT_H

/* The version of this header; wf_version() is that of the library the program runs with.
 * meson.build fails unless it states the same version. */
#define WF_VERSION_MAJOR 0
#define WF_VERSION_MINOR 2
#define WF_VERSION_PATCH 0
#define WF_VERSION                                                                                 \
    WF_VERSION_TEXT(WF_VERSION_MAJOR)                                                              \
    "." WF_VERSION_TEXT(WF_VERSION_MINOR) "." WF_VERSION_TEXT(WF_VERSION_PATCH)
/* The version as one number, for conditions such as #if WF_VERSION_NUMBER >= 100: 1.2.3 is
 * 10203. */
#define WF_VERSION_NUMBER (WF_VERSION_MAJOR * 10000 + WF_VERSION_MINOR * 100 + WF_VERSION_PATCH)
#define WF_VERSION_TEXT(number) WF_VERSION_QUOTED(number)
#define WF_VERSION_QUOTED(number) #number

#if defined(__GNUC__)
#define WF_API __attribute__((visibility("default")))
#define WF_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define WF_API
#define WF_PRINTF(text, first)
#endif

#endif
