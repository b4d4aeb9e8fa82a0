/* tools/emit/emit_page.h - a model's C file as a page that computes: graph --emit-html. */
#ifndef WEFT_TOOLS_EMIT_EMIT_PAGE_H
#define WEFT_TOOLS_EMIT_EMIT_PAGE_H

#include "emit_model.h"

/* Replace the text of C, whose prefix is "model", by the text of a stand-alone page with its
 * WebAssembly. path: of the model's file. False with message[256]. */
bool emit_page(emitted *e, const char *path, char *message);

#endif
