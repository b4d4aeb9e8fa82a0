/* tests/core/ranks/speed_main.c - build/tests/ranks-speed [RANKS]: the transport of processes. */
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
