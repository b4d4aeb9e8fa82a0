/* tests/core/ranks/speed_main.c - build/tests/ranks-speed [RANKS]: prints the speed of collectives
 * among processes of one machine. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "speed.h"

static int body(wf_transport *t, void *user) {
    (void)user;
    return measure_speed(t, "processes");
}

static void leave(int code) {
    fflush(NULL);
    _exit(code);
}

int main(int argc, char **argv) {
    wf_processes_result cause;
    return wf_processes_run(argc > 1 ? atoi(argv[1]) : 2, body, NULL, leave, &cause);
}
