/* tests/support/emitted.c - see emitted.h. */
#include "emitted.h"

#include <stdio.h>
#include <stdlib.h>

#include "commands.h"

const char *emitted_compiler(void) {
    const char *other = getenv("WEFT_EMIT_CC");
    return other ? other : WEFT_TEST_CC;
}

bool compiles(const char *compiler) {
    return run("echo 'int one = 1;' > one.c && %s -c one.c", compiler)->status == 0;
}

bool compiles_row(int row) {
    return !SANITIZED || row % 16 == 0;
}

bool has_emitted_compiler(const char *suite) {
    if (compiles(emitted_compiler())) return true;
    printf("%s: skipped, because '%s' compiles nothing\n", suite, emitted_compiler());
    return false;
}

static void write_text(const char *path, const char *head, const char *text) {
    FILE *file = fopen(path, "w");
    ck_assert(file);
    fprintf(file, "%s%s", head, text);
    ck_assert_int_eq(fclose(file), 0);
}

void compile_alone(const char *compiler) {
    run("%s " STRICT_FLAGS " -nostdlib -O2 -c model.c && nm -u model.o", compiler);
    ck_assert_msg(result.status == 0 && !result.out[0] && !result.err[0], "%s, alone: %s%s",
                  compiler, result.out, result.err);
}

void compile_main(const char *compiler, const char *flags) {
    run("%s " STRICT_FLAGS " -U_FORTIFY_SOURCE %s -DMODEL_MAIN -c model.c && nm -u model.o | "
        "grep -vwE "
        "'ferror|fflush|f?printf|f?puts|f?putc|putchar|getc|fwrite|(__isoc[0-9]+_)?(scanf|strtoll)|"
        "std[a-z]+'",
        compiler, flags);
    ck_assert_msg(result.status == 1 && !result.err[0], "%s %s needs: %s%s", compiler, flags,
                  result.out, result.err);
    run("%s model.o -o program", compiler);
    ck_assert_msg(result.status == 0, "%s", result.err);
}

static void compare(const char *compiler, const char *flags) {
    run("%s %s main.c -o main && ./main > got && cmp got expected", compiler, flags);
    ck_assert_msg(result.status == 0, "%s %s: %s%s", compiler, flags, result.out, result.err);
}

void try_emitted(const char *text, const char *main) {
    write_text("model.c", "", text);
    write_text("main.c", "#include <stdio.h>\n#include \"model.c\"\n", main);
    /* The emitted text is the same in every build. So each build tries other flags: sanitized
     * suites, which look for mistakes of the emitter, the portable ones. */
    if (SANITIZED) {
        compare(emitted_compiler(), "-std=c11 -O1");
        return;
    }
    compile_alone(emitted_compiler());
    compare(emitted_compiler(), "-O2 -march=native");
    if (compiles("clang")) {
        compile_alone("clang");
        compare("clang", "-std=c11 -O1");
    }
    if (compiles("tcc")) compare("tcc", "");
}
