/* tests/core/file/test_locale.c - numbers in files do not depend on the program's locale: in one
 * with a decimal comma a model is saved to the same bytes as without, and loaded.
 *
 * The locale is made here, by localedef from the C library, from two small texts, so that no
 * language has to be installed. Without localedef, a line on stderr says that the locale is not
 * tried. */
#define _XOPEN_SOURCE 700 /* mkdtemp, setenv */
#include "core/file_internal.h"
#include "tests/suites.h"
#include "tests/support/models.h"

#include <locale.h>
#include <stdio.h>
#include <unistd.h>

TESTS(locale)

static char folder[] = "/tmp/weft-locale-XXXXXX";

static const char *in_folder(const char *name) {
    static char paths[2][64];
    static int turn;
    turn = !turn;
    snprintf(paths[turn], sizeof paths[turn], "%s/%s", folder, name);
    return paths[turn];
}

static void make_folder(void) {
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void) {
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
}

static void write_text(const char *name, const char *text) {
    FILE *f = fopen(in_folder(name), "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

/* Sets a locale with a decimal comma, in which printf writes 1,5. Returns false if localedef is
 * missing. */
static bool take_comma(void) {
    char command[300], text[8];
    write_text("ascii", "<code_set_name> ASCII\n<comment_char> %\n<escape_char> /\n"
                        "CHARMAP\n<U0000>..<U007F> /x00 ASCII\nEND CHARMAP\n");
    write_text("numeric", "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\ngrouping -1\n"
                          "END LC_NUMERIC\n");
    snprintf(command, sizeof command,
             "cd %s && localedef --quiet -c -f ./ascii -i numeric ./comma > said 2>&1", folder);
    /* localedef fails, because other categories are missing, but writes the locale nevertheless */
    (void)!system(command);
    setenv("LOCPATH", folder, 1);
    bool there = setlocale(LC_NUMERIC, "comma") != NULL;
    if (!there) return fputs("locale: SKIPPED: localedef of glibc is not here\n", stderr), false;
    snprintf(text, sizeof text, "%.1f", 1.5);
    ck_assert_str_eq(text, "1,5");
    return true;
}

SETUP(make_folder, remove_folder)

TEST(numbers_have_a_point_in_every_locale) {
    static const double reals[] = { 0,       1,      -1.5, 1e-5,     0.1,      1e300,
                                    -1e-300, 5e-324, 1e22, INFINITY, 123456.7, 1.0 / 3 };
    char plain[COUNT_OF(reals)][WF_REAL_TEXT], text[WF_REAL_TEXT];
    double back;
    for (int i = 0; i < COUNT_OF(reals); i++)
        snprintf(plain[i], WF_REAL_TEXT, "%.17g", reals[i]); /* the C locale's */
    if (!take_comma()) return;
    for (int i = 0; i < COUNT_OF(reals); i++) {
        ck_assert_str_eq(wf_format_real(reals[i], 17, text), plain[i]);
        ck_assert(wf_parse_real(text, &back) && back == reals[i]);
    }
    ck_assert_str_eq(wf_format_real(1.25, 2, text), "1.2");
    ck_assert_str_eq(wf_format_real(-1.0 / 3, 99, text), "-0.33333333333333331");
    ck_assert_str_eq(wf_format_real(2.5, -1, text), "2");
    static const char *const wrong[] = { "", "1,5", "1.5 ", "1.5x", "x", "1e", "." };
    for (int i = 0; i < COUNT_OF(wrong); i++) ck_assert(!wf_parse_real(wrong[i], &back));
    ck_assert(!wf_parse_real(NULL, &back) && !wf_parse_real("1", NULL));
    snprintf(text, sizeof text, "%.1f", 1.5); /* printf of the program still uses its locale */
    ck_assert_str_eq(text, "1,5");
}

static void save_as(const wf_model *m, const char *name) {
    char message[WF_MESSAGE];
    ck_assert_msg(wf_model_save(m, in_folder(name), NULL, NULL, 0, message), "%s", message);
}

static wf_model *load_from(const char *name) {
    char message[WF_MESSAGE] = "";
    wf_file *f = wf_file_open(in_folder(name));
    wf_model *m = wf_model_load(f, NULL, WF_F32, 1, message);
    ck_assert_msg(m != NULL, "%s %s", wf_file_error(f), message);
    wf_file_free(f);
    return m;
}

TEST(a_model_is_saved_and_loaded_in_every_locale) {
    wf_transformer_config c = small_config();
    c.layer_norm_eps = 1.1e-6;
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    save_as(m, "plain");
    if (take_comma()) {
        char command[200];
        save_as(m, "comma.safetensors");
        snprintf(command, sizeof command, "cd %s && cmp plain comma.safetensors", folder);
        ck_assert_msg(system(command) == 0, "the files differ");
        wf_model *n = load_from("plain");
        ck_assert(wf_transformer_of(n)->config.layer_norm_eps == 1.1e-6);
        close_model(n);
    }
    close_model(m);
}

TEST(tensors_are_printed_the_same_in_every_locale) {
    wf_graph *g = new_graph(WF_F32);
    const double two[] = { 1.5, -0.25 };
    wf_tensor *t = param_of(g, "t", SHAPE(2), two);
    char text[64];
    take_comma();
    wf_print(NULL, t, text, sizeof text);
    ck_assert_str_eq(text, "[  1.5 -0.25]");
    end_graph(g);
}
