/* tools/page/page.c - writes stand-alone HTML pages. See page.h. */
#include "page.h"

static void write_lines(FILE *stream, const char *const *lines) {
    for (; lines && *lines; lines++) fputs(*lines, stream);
}

/* Writes the title of the document. The script writes the visible title. */
static void write_title(FILE *stream, const char *title) {
    for (; *title; title++) {
        if (*title == '&' || *title == '<')
            fprintf(stream, "&#%d;", *title);
        else
            fputc(*title, stream);
    }
}

jsonl *page_begin(page *p, FILE *stream, const char *title, const char *const *style,
                  const char *const *script) {
    *p = (page){ .stream = stream, .script = script, .data = { .stream = stream, .html = true } };
    fputs(PAGE_BEGINNING
          "style-src 'unsafe-inline'; script-src 'unsafe-inline' 'wasm-unsafe-eval'; "
          "img-src data:; worker-src blob:\">\n"
          "<link rel=\"icon\" href=\"data:,\">\n<title>",
          stream);
    write_title(stream, title);
    fputs("</title>\n<style>\n", stream);
    write_lines(stream, page_page_css);
    write_lines(stream, style);
    fputs("</style>\n</head>\n<body>\n<noscript>This page is drawn by JavaScript.</noscript>\n"
          "<main></main>\n<script type=\"application/json\" id=\"data\">",
          stream);
    json_raw(&p->data, "{\"title\":");
    json_string(&p->data, title);
    return &p->data;
}

bool page_end(page *p) {
    json_end(&p->data);
    bool complete = !p->data.failed;
    json_free(&p->data);
    fputs("</script>\n<script>\n\"use strict\";\n", p->stream);
    write_lines(p->stream, page_page_js);
    write_lines(p->stream, p->script);
    fputs("</script>\n</body>\n</html>\n", p->stream);
    return complete && !ferror(p->stream);
}
