/* tools/emit/emit_program.h - graph --emit-c and --emit-html: their options, and the C file or
 * the page that they ask for. */
#ifndef WEFT_TOOLS_EMIT_EMIT_PROGRAM_H
#define WEFT_TOOLS_EMIT_EMIT_PROGRAM_H

#include "emit_model.h"
#include "tools/cli/options/options.h"

typedef struct emit_request {
    bool asked;    /* --emit-c, or --emit-html */
    bool page;     /* --emit-html: a page that computes, not the C file itself */
    bool training; /* --train: the training of the model, not its search */
    bool from_start, dry_run;
    const char *ram; /* as text, such as 512K */
    emit_settings model;
} emit_request;

/* End the program if an option of --emit-c, or one for pictures, has no effect. */
void refuse_idle_emission(const program *p, const emit_request *r);

/* Make the C file or the page that r asks for, of the model in f or of its training. A training of
 * text takes the shape of its batches from --batch-size and --length, if they were given. The
 * caller frees the text. A failure ends the program. */
emitted emit_program(const program *p, const emit_request *r, const wf_file *f, const char *path,
                     int64_t batch_size, int64_t length);
/* Write the file of weights, if one is asked for. A failure ends the program. */
void emit_weights(const program *p, const emit_request *r, const emitted *e);

#endif
