/* tests/fuzz/fuzz_settings.c - any bytes as train's command line and the settings in its
 * checkpoint: refused with a message, or the settings are within their bounds, give a learning rate
 * at every step, and are the same after they were stored in a checkpoint and read again.
 *
 * Lines that begin with '=' are the checkpoint's metadata, "=lr=1e-3"; the others are arguments.
 * Linked with --wrap=exit: a refusal ends here, not the program. */
#define _GNU_SOURCE /* memfd_create */
#include <math.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/file.h"
#include "core/file_internal.h"
#include "fuzz.h"
#include "tools/train/settings/settings_file.h"

enum { MOST = 64, LONGEST = 1 << 16 };

/* ---- programs that end ----------------------------------------------------------------------- */

static jmp_buf ended;
static bool armed;

_Noreturn void __real_exit(int status);
_Noreturn void __wrap_exit(int status);
void __wrap_exit(int status) {
    if (armed) longjmp(ended, 1 + status);
    __real_exit(status);
}

/* Redirects stderr into a file, so that messages can be checked. FUZZ_LOUD=1 shows them instead,
 * and a sanitizer's report, too. */
static int kept = -1, stderr_was;

static void keep_sayings(void) {
    if (getenv("FUZZ_LOUD")) return;
    if (kept < 0) kept = memfd_create("sayings", MFD_CLOEXEC), stderr_was = dup(STDERR_FILENO);
    fuzz_must(kept >= 0 && stderr_was >= 0 && ftruncate(kept, 0) == 0);
    lseek(kept, 0, SEEK_SET);
    dup2(kept, STDERR_FILENO);
}

static void judge_sayings(bool refused) {
    static char said[2048];
    if (getenv("FUZZ_LOUD")) return;
    dup2(stderr_was, STDERR_FILENO);
    ssize_t n = pread(kept, said, sizeof said - 1, 0);
    fuzz_must(n >= 0 && (n > 0 || !refused));
    said[n] = '\0';
    for (char *c = said; *c; c++)
        if (*c == '\t') *c = ' '; /* terminals show it */
    for (char *line = strtok(said, "\n"); line; line = strtok(NULL, "\n")) fuzz_must_say(line);
}

/* ---- a checkpoint that holds them ------------------------------------------------------------ */

static size_t put_json(char *to, const char *text) {
    size_t n = 0;
    to[n++] = '"';
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || strchr("\"\\", *text))
            n += (size_t)sprintf(to + n, "\\u%04x", (unsigned)(unsigned char)*text);
        else
            to[n++] = *text;
    to[n++] = '"';
    return n;
}

static wf_file *checkpoint(const wf_meta *meta, int n) {
    static char bytes[6 * LONGEST + 8 * MOST];
    size_t at = 8 + (size_t)sprintf(bytes + 8, "{\"__metadata__\":{");
    for (int i = 0; i < n; i++) {
        if (i) bytes[at++] = ',';
        at += put_json(bytes + at, meta[i].key);
        bytes[at++] = ':';
        at += put_json(bytes + at, meta[i].value);
    }
    memcpy(bytes + at, "}}", 2);
    uint64_t header = at + 2 - 8;
    memcpy(bytes, &header, 8);
    return wf_file_parse(bytes, at + 2);
}

/* ---- what is accepted ------------------------------------------------------------------------ */

static void rates_are_finite(const settings *set) {
    const wf_schedule s = settings_schedule(set);
    const int64_t steps[] = {
        1, 2, set->recipe.warmup, set->recipe.warmup + 1, set->recipe.lr_steps, set->run.max_steps
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        double rate = wf_schedule_rate(&s, steps[i]);
        fuzz_must(rate >= 0 && rate <= s.peak * 1.000001);
    }
}

/* Writes the settings into a checkpoint and reads them again: they must be the same. */
static void come_back(const settings *come, const training_state *at) {
    static settings_meta meta, again;
    const dataset none = { .kind = &source_made };
    settings_to_meta(come, at, &none, &meta);
    wf_file *f = checkpoint(meta.pairs, meta.n);
    fuzz_must(wf_file_ok(f));
    settings *set = settings_new();
    set->run.resume = true, set->run.model = "again";
    int status = setjmp(ended);
    if (!status) {
        settings_complete(set, f, NULL);
        const training_state now = settings_state(set, f);
        fuzz_must(now.step == at->step && now.since_best == at->since_best);
        settings_to_meta(set, &now, &none, &again);
        fuzz_must(again.n == meta.n);
        for (int i = 0; i < meta.n; i++) fuzz_must(strcmp(again.values[i], meta.values[i]) == 0);
    }
    /* The task lm may be refused here, because a resume must name its text files again. */
    fuzz_must(!status || set->data.task == LEARN_TEXT);
    wf_file_free(f);
}

static void take(int argc, char **argv, const wf_file *f) {
    settings *set = settings_new();
    options_parse(&train_program, argc, argv);
    if (f && wf_file_ok(f) && set->run.resume && !set->run.model) set->run.model = "model";
    bool resumes = set->run.resume && f && wf_file_ok(f) && setting_in_file(f, "step");
    set->run.resume = resumes;
    settings_complete(set, resumes ? f : NULL, NULL);
    settings_complete_steps(set, set->data.kind->text ? 7 : 0);
    training_state at = { .step = 3, .best = 1.5, .since_best = 1 };
    if (resumes) at = settings_state(set, f);
    rates_are_finite(set);
    const wf_training_config t = settings_training(set);
    fuzz_must(t.dropout >= 0 && t.dropout < 1 && t.label_smoothing >= 0 && t.label_smoothing < 1);
    come_back(set, &at);
}

/* Parses the command line. Returns 0, or 1 + the exit code if the program would end. */
static int status_of(int argc, char **argv, wf_file *f) {
    armed = true;
    int status = setjmp(ended);
    if (!status) take(argc, argv, f);
    armed = false;
    return status;
}

FUZZ_TARGET(settings) {
    static char text[LONGEST + 1];
    static char *argv[MOST + 2];
    static wf_meta meta[MOST];
    int argc = 1, n = 0;
    if (size > LONGEST) return 0;
    memset(argv, 0, sizeof argv);
    argv[0] = "train";
    if (size) memcpy(text, data, size);
    text[size] = '\0';
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *value = *line == '=' ? strchr(line + 1, '=') : NULL;
        if (value && n < MOST)
            *value = '\0', meta[n++] = (wf_meta){ line + 1, value + 1 };
        else if (argc <= MOST)
            argv[argc++] = line;
    }
    for (int i = 0; i < argc; i++) /* printing help is another thing */
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return 0;
    wf_file *f = n ? checkpoint(meta, n) : NULL;
    keep_sayings();
    int status = status_of(argc, argv, f);
    judge_sayings(status != 0 && status != 1);
    wf_file_free(f);
    return 0;
}
