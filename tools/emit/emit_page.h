/* tools/emit/emit_page.h - turns a model's C file into a page that runs it: graph --emit-html. */
#ifndef WEFT_TOOLS_EMIT_EMIT_PAGE_H
#define WEFT_TOOLS_EMIT_EMIT_PAGE_H

#include "emit_model.h"

/* Replace e->text, a C file with the prefix "model", by a stand-alone page that has this file as
 * WebAssembly. path: of the model's file. False with message[256]. */
bool emit_page(emitted *e, const char *path, char *message);

#endif
