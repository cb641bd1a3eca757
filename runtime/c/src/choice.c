#include "choice.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fit.h"
#include "opening.h"

/* What is wrong with each plan, in one text. */
typedef struct Reasons {
    char text[ERROR_TEXT];
    size_t length;
} Reasons;

static void add(Reasons *reasons, const char *format, ...) PRINTS;

static void add(Reasons *reasons, const char *format, ...) {
    size_t room = sizeof reasons->text - reasons->length;
    va_list arguments;
    va_start(arguments, format);
    int needed = vsnprintf(reasons->text + reasons->length, room, format, arguments);
    va_end(arguments);
    if (needed > 0)
        reasons->length += (size_t)needed < room ? (size_t)needed : room - 1;
}

/* The device of a name, else that for which one of the plans was made here, else the one that is preferred. */
static smartmem_status choose_device(Plan *const *plans, size_t count, const char *name, Device *device) {
    for (size_t i = 0; i < count; ++i) {
        const char *recorded = text_of(plans[i]->index.device);
        TRY(device_choose(&plans[i]->index, name, recorded, device));
        if (strcmp(device->names.name, recorded) == 0)
            break;
    }
    return SMARTMEM_OK;
}

/* The kind of a plan that the device can run; else FIT_NONE, with the reason. */
static fit_kind fit_of(const Plan *plan, size_t number, Reasons *reasons) {
    fit_kind kind = fit_by_name(&plan->index, &plan->device);
    add(reasons, "\n  plan %zu, for %s: ", number + 1, text_of(plan->index.target));
    if (kind == FIT_NONE) {
        add(reasons, "it is for devices of another name%s", plan->index.demands.types_count ? " and type" : "");
        return FIT_NONE;
    }
    if (plan_fits(plan) == SMARTMEM_OK)
        return kind;
    add(reasons, "%s", smartmem_last_error());
    return FIT_NONE;
}

smartmem_status choice_open(Plan **plans, size_t count, const smartmem_plan_options *options, size_t *number) {
    Device device;
    Reasons reasons = {.length = 0};
    fit_kind best = FIT_NONE;
    TRY(opencl_open(options->opencl_library));
    TRY(choose_device(plans, count, options->device, &device));
    for (size_t i = 0; i < count; ++i) {
        plans[i]->device = device;
        fit_kind kind = fit_of(plans[i], i, &reasons);
        if (kind > best) {
            best = kind;
            *number = i;
        }
    }
    if (best == FIT_NONE)
        return fail(SMARTMEM_UNSUITABLE,
                    "none of the %zu plans is for %s (%s); name another device, or export the model for it:%s", count,
                    device.names.name, device.names.platform, reasons.text);
    return plan_start(plans[*number], options);
}
