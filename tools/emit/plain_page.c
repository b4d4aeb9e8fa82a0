/* tools/emit/plain_page.c - what a page calls of a model's C file, once clang has made WebAssembly of
 * it: a line of text in, the line of its output out. Embedded as text. */

#define EXPORT(name) __attribute__((export_name(name)))

static _Alignas(64) unsigned char page_memory[model_MEMORY];
static char page_line[model_LINE], page_text[model_TEXT];
static model page_model;

EXPORT("start") void page_start(void);
void page_start(void) {
    model_start(&page_model, page_memory);
}

/* The page writes a line here, of at most line_size() bytes. */
EXPORT("line") char *page_line_at(void);
char *page_line_at(void) {
    return page_line;
}

EXPORT("line_size") int page_line_size(void);
int page_line_size(void) {
    return model_LINE;
}

/* Translate n bytes of the line. Returns the bytes of the output, or an error below 0. */
EXPORT("translate") int page_translate(int n);
int page_translate(int n) {
    return model_translate(&page_model, page_line, (size_t)n, page_text, sizeof page_text);
}

EXPORT("text") const char *page_text_at(void);
const char *page_text_at(void) {
    return page_text;
}

/* The score of the last output. */
EXPORT("score") double page_score(void);
double page_score(void) {
    return model_score(&page_model);
}
