/* Whether a clause of a plan about a fault of a driver concerns a driver. */
#ifndef SMARTMEM_WORKAROUNDS_H
#define SMARTMEM_WORKAROUNDS_H

#include <stdbool.h>

#include "plan.pb.h"

/* Whether a POSIX extended regular expression is found in a text, whatever the case of its letters; one that is none is
 * never found. */
bool pattern_found(const char *pattern, const char *text);

/* @param name `PLATFORM DEVICE`, or the platform alone
 * @param version any text that holds the version's number; a clause concerns a driver whose version cannot be told
 */
bool workaround_concerns(const smartmem_format_Workaround *clause, const char *name, const char *version);

#endif
