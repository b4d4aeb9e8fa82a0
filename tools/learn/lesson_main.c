/* tools/learn/lesson_main.c - the main function that the learner's code is linked with. See
 * lesson.h.
 *
 * usage: lesson check|trial|mistakes|picture DESCRIPTOR
 * It exits with 0 if all is right, with 1 if not, and with 2 if it can write no report.
 *
 * The report goes to the descriptor, where the learner's output cannot reach it. A line that begins
 * with '>' names the next call; the last such line of a crashed program tells where it crashed. The
 * line "<" ends every report that has no picture. If it is missing, the learner's code has ended
 * the program. */
#include <stdlib.h>
#include <string.h>

#include "lesson.h"

static FILE *report;

static void tell_place(const char *name, const char *text) {
    if (name)
        fprintf(report, ">%s, in the case \"%s\"\n", name, text);
    else
        fprintf(report, ">\n");
    fflush(report);
}

static bool for_tasks(bool (*one)(const lesson_task *t, FILE *out), bool go_on) {
    bool ok = true;
    for (int i = 0; i < the_lesson.n_tasks && (ok || go_on); i++)
        ok = one(the_lesson.tasks[i], report) && ok;
    return ok;
}

static bool try_whole(void) {
    if (!the_lesson.trial) return true;
    tell_place("the whole", "all functions together");
    bool ok = the_lesson.trial(report);
    tell_place(NULL, NULL);
    return ok;
}

/* Writes a picture: a line with its sizes, then the numbers. */
static bool draw(void) {
    picture p = { .weights = NULL };
    if (!the_lesson.draw) {
        fprintf(report, "This exercise has no picture.\n");
        return false;
    }
    tell_place("the picture", "of your own numbers");
    bool ok = the_lesson.draw(&p);
    size_t n = (size_t)(p.heads * p.rows * p.columns);
    fprintf(report, "=%lld %lld %lld %s %s %s\n", (long long)p.heads, (long long)p.rows,
            (long long)p.columns, p.row ? p.row : "query", p.column ? p.column : "key", p.title);
    ok = ok && fwrite(p.weights, sizeof *p.weights, n, report) == n;
    free(p.weights);
    return ok;
}

int main(int argc, char **argv) {
    bool ok = false;
    report = argc == 3 ? fdopen(atoi(argv[2]), "w") : NULL;
    if (!report) return 2;
    lesson_place = tell_place;
    if (strcmp(argv[1], "check") == 0) ok = for_tasks(judge_task, false);
    if (strcmp(argv[1], "trial") == 0) ok = try_whole();
    if (strcmp(argv[1], "mistakes") == 0) ok = for_tasks(list_mistakes, true);
    if (strcmp(argv[1], "picture") == 0) ok = draw();
    if (strcmp(argv[1], "picture") != 0 || !the_lesson.draw) fprintf(report, "<\n");
    return fclose(report) != 0 || !ok;
}
