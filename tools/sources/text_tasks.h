/* tools/sources/text_tasks.h - tasks on text that need no data: adding numbers, and reading dates.
 *
 * A pair is a pure function of (kind, seed, stream, index). Training, validation and test never
 * share a pair: the stream of a sum depends on a hash of its two numbers in either order, and that
 * of a date on a hash of the day. One in 16 is for validation, one for the test.
 *
 * add    "123+456" -> "579": two numbers of 1 to 3 digits; each number of digits is equally likely.
 * date   a day of the years 1900 to 2099 -> "1998-03-03", written in one of the ways below, in a
 *        quarter of the pairs in lower case, in another in upper case:
 *
 *            3rd of March, 1998     March 3, 1998     1998-3-3      Tuesday, 3 March 1998
 *            3rd March 1998         March 3rd, 1998   1998/03/03    Tue, Mar 3, 1998
 *            3 March 1998           Mar 3 1998        1998 March 3  Tuesday the 3rd of March, 1998
 *            03 Mar 1998            Mar. 3, 1998      19980303      Tue 03 Mar 1998
 *            the 3rd of March 1998  3-Mar-98          3.3.1998
 *            23/3/1998              3/23/1998         23/03/98      03/23/98
 *
 *        In 3.3.1998 the day comes first; after a year, the month. With slashes and the year last,
 *        either may be first; only days above 12, or equal to the month, are written so. A year of
 *        two digits is in 1969 to 2068, as in POSIX. */
#ifndef WEFT_TOOLS_SOURCES_TEXT_TASKS_H
#define WEFT_TOOLS_SOURCES_TEXT_TASKS_H

#include <stdint.h>

#include "tasks.h"

typedef enum { TEXT_TASK_ADD, TEXT_TASK_DATE } text_task_kind;

enum { TEXT_TASK_BYTES = 48 }; /* room for any source or target and its '\0' */

/* Pair `index` of a stream, in ASCII. The seed is for the training stream; the other streams are
 * the same for every seed. */
void task_pair(text_task_kind kind, uint64_t seed, task_stream stream, uint64_t index, char *src,
               char *tgt);

#endif
