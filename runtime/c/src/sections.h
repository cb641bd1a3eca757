/* What a plan's file holds between its sections: zeros, so that no damaged byte goes unnoticed. */
#ifndef SMARTMEM_SECTIONS_H
#define SMARTMEM_SECTIONS_H

#include "index.h"

smartmem_status sections_check(const plan_index *index, const plan_file *file);

#endif
