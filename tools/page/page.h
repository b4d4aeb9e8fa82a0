/* tools/page/page.h - stand-alone HTML pages: one file with its styles, its scripts and its data.
 *
 *     page p;
 *     jsonl *data = page_begin(&p, stream, "Training run", page_report_css, page_report_js);
 *     json_reals(data, "loss", losses, n);      the fields of the page's data: see jsonl.h
 *     bool written = page_end(&p);
 *
 * A page needs no network and may not use one: its content security policy forbids every request,
 * and allows WebAssembly and workers, which the page itself must have.
 * It follows the reader's light or dark mode and is readable from 400 pixels on. page.css and
 * page.js are part of every page; page.js lists the functions that a page's own script can call.
 * The data are one object, which scripts find in the variable `data`. Its first field is the title.
 *
 * To add an asset: put NAME.css or NAME.js into this folder, name it in meson.build and declare
 * page_NAME_css or page_NAME_js below. */
#ifndef WEFT_TOOLS_PAGE_PAGE_H
#define WEFT_TOOLS_PAGE_PAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/cli/jsonl.h"

/* An asset: its lines, with NULL after the last. */
extern const char *const page_page_css[], *const page_page_js[];
extern const char *const page_explain_css[], *const page_explain_js[];
extern const char *const page_graph_css[], *const page_graph_js[];
extern const char *const page_model_css[], *const page_model_js[];
extern const char *const page_report_css[], *const page_report_js[];

/* The first bytes of every page, by which `check_uses` knows that weft wrote it. */
#define PAGE_BEGINNING                                                                             \
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"                      \
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"                   \
    "<meta name=\"color-scheme\" content=\"light dark\">\n"                                        \
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "

typedef struct page {
    FILE *stream;
    const char *const *script;
    jsonl data;
} page;

/* Begin a page on a stream, which the caller closes. style and script: the page's own assets, or
 * NULL. Returns the page's data as an open object; the caller writes its fields. */
jsonl *page_begin(page *p, FILE *stream, const char *title, const char *const *style,
                  const char *const *script);
/* End the data and the page. False: there was no memory for the data, or the stream failed. */
bool page_end(page *p);

#endif
