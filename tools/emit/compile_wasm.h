/* tools/emit/compile_wasm.h - compiles C to WebAssembly, by clang and its linker where they are
 * installed. */
#ifndef WEFT_TOOLS_EMIT_COMPILE_WASM_H
#define WEFT_TOOLS_EMIT_COMPILE_WASM_H

#include <stdbool.h>
#include <stddef.h>

typedef struct wasm_module {
    unsigned char *bytes;
    size_t n;
} wasm_module;

/* Compile C that needs no library: a text and then lines, ended by NULL. The caller frees the
 * bytes. False with message[256]: clang or its linker is missing or reports an error. */
bool compile_wasm(wasm_module *w, const char *text, const char *const *lines, char *message);

#endif
