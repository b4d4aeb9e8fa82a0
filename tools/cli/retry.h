/* tools/cli/retry.h - calls that a signal interrupted are made again.
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
