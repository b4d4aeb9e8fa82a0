/* tests/tools/test_manual.c - manual pages and completions contain every option of a program's
 * help. install.sh tests their installation, pages.sh runs the examples, and completion.py tests
 * the completions in shells. */
#include <stdio.h>
#include <string.h>

#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tools/cli/options/help.h"

TESTS(manual)

SETUP(enter_folder, leave_folder)

static const char *const programs[] = {
    "train", "generate", "convert", "inspect", "graph", "bench"
};

TEST_ROWS(each_option_is_in_the_page_and_in_all_completions, COUNT_OF(programs)) {
    const char *name = programs[_i];
    run("%s --help | grep -oE '^  (-., |    )--[a-z0-9-]+' | grep -oE '[-]-.*' | sort > names;"
        "[ $(wc -l < names) -gt 6 ]; %s --man > page; %s --completion bash > bash;"
        "%s --completion=zsh > zsh; %s --completion fish > fish\n"
        "for n in $(sed s/--// names); do"
        "  grep -qE \"^\\.It (Fl . , )?Fl .-$(echo $n | sed 's/-/.-/g')( |$)\" page ||"
        "    echo \"page: $n\";"
        "  grep -q -e \" --$n[ ']\" bash || echo \"bash: $n\";"
        "  grep -q -e \"--$n[=[}]\" zsh || echo \"zsh: $n\";"
        "  grep -q -e \" -l $n \" fish || echo \"fish: $n\"; done",
        name, name, name, name, name);
    ck_assert_str_eq(result.out, "");
    expect(0);
}

TEST(a_page_escapes_what_roff_would_read) {
    static bool flag;
    static option rows[] = { FLAG("odd-name", flag,
                                  ".dot 'quote \\back -dash. Another sentence! A third?") };
    program p = { .name = "demo",
                  .purpose = "shows \\ and .dots",
                  .examples = "  demo 'a\\b' --odd-name | demo x\n",
                  .options = rows,
                  .n = 1 };
    char text[6000];
    FILE *f = fopen("page", "w+");
    ck_assert(f != NULL);
    manual_print(&p, f);
    fclose(f);
    read_text("page", text, sizeof text);
    assert_contains(text, ".Dt WEFT-DEMO 1 \"weft ");
    assert_contains(text, "\n.It Fl \\-odd\\-name\n\\&.dot 'quote \\eback \\-dash.\n"
                          "Another sentence!\nA third?\n");
    assert_contains(text, "\nweft\\-demo 'a\\eb' \\-\\-odd\\-name | weft\\-demo x\n");
}

static const struct {
    const char *command, *says;
} refusals[] = {
    { "train --completion", "--completion needs a value: bash|zsh|fish" },
    { "train --completion tcsh", "--completion: 'tcsh' is not one of bash|zsh|fish" },
    { "train --completion= ", "--completion: '' is not one of bash|zsh|fish" },
    { "train --completions bash", "there is no option --completions" },
    { "train --mann", "there is no option --mann" },
};

TEST_ROWS(another_shell_is_refused, COUNT_OF(refusals)) {
    run("%s", refusals[_i].command);
    expect(2);
    assert_contains(result.err, refusals[_i].says);
}

TEST(pages_do_not_depend_on_the_rest_of_the_command_line) {
    ok("train --task none --man > a; train --man > b; cmp a b");
    run("train --man > /dev/full");
    expect(1);
}
