#include "workarounds.h"

#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "status.h"

bool pattern_found(const char *pattern, const char *text) {
    regex_t compiled;
    if (regcomp(&compiled, pattern, REG_EXTENDED | REG_ICASE | REG_NOSUB) != 0)
        return false;
    bool found = regexec(&compiled, text, 0, NULL, 0) == 0;
    regfree(&compiled);
    return found;
}

/* Below 0, 0 or above 0 as a version is less than, equal to or greater than a bound: numbers with points between. */
static int compared(const char *version, const char *bound) {
    for (;;) {
        char *end, *bound_end;
        unsigned long ours = strtoul(version, &end, 10), theirs = strtoul(bound, &bound_end, 10);
        if (ours != theirs)
            return ours < theirs ? -1 : 1;
        bool more = end[0] == '.' && isdigit((unsigned char)end[1]);
        bool bound_more = bound_end[0] == '.' && isdigit((unsigned char)bound_end[1]);
        if (!more && !bound_more)
            return 0;
        version = more ? end + 1 : "0";
        bound = bound_more ? bound_end + 1 : "0";
    }
}

/* Whether a version keeps one bound, such as `>=3.0`; `at` moves behind it. */
static bool keeps_bound(const char *version, const char **at) {
    const char *sign = *at;
    size_t length = strspn(sign, "<>=");
    const char *number = sign + length + strspn(sign + length, " ");
    int order = compared(version, number);
    *at = number + strspn(number, "0123456789.");
    if (length == 1)
        return sign[0] == '<' ? order < 0 : order > 0;
    return sign[0] == '<' ? order <= 0 : sign[0] == '>' ? order >= 0 : order == 0;
}

bool workaround_concerns(const smartmem_format_Workaround *clause, const char *name, const char *version) {
    if (!pattern_found(text_of(clause->driver), name))
        return false;
    version += strcspn(version, "0123456789");
    if (!*version)
        return true;
    for (const char *at = strpbrk(text_of(clause->versions), "<>="); at != NULL; at = strpbrk(at, "<>="))
        if (!keeps_bound(version, &at))
            return false;
    return true;
}
