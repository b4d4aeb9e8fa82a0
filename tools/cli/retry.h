/* tools/cli/retry.h - repeats a call that a signal interrupted.
 *
 *     int file;
 *     RETRY(file, open(path, O_RDONLY)); */
#ifndef WEFT_TOOLS_CLI_RETRY_H
#define WEFT_TOOLS_CLI_RETRY_H

#include <errno.h>

#define RETRY(result, call)                                                                        \
    do (result) = (call);                                                                          \
    while ((result) < 0 && errno == EINTR)

#endif
