/* Launches that are recorded once and replayed by one call: command buffers (cl_khr_command_buffer), and on Adreno
 * recordable queues (cl_qcom_recordable_queues). */
#ifndef SMARTMEM_RECORDING_H
#define SMARTMEM_RECORDING_H

#include "device.h"

typedef struct recording_way recording_way;

/* How a device records; `way` is NULL where it does not. */
typedef struct Recorder {
    const recording_way *way;
    cl_context context;
    cl_device device;
    uint64_t most_launches;
    khr_functions khr;
    qcom_functions qcom;
} Recorder;

/* A launch as it is enqueued. */
typedef struct recorded_launch {
    cl_kernel kernel;
    cl_uint rank;
    const size_t *global, *local; /* `local` may be NULL */
} recorded_launch;

typedef struct Recording {
    const Recorder *recorder;
    cl_queue queue;       /* on which it is replayed */
    cl_queue own_queue;   /* of a recordable queue */
    void *handle;
    cl_uint launches;
    cl_uint before;       /* the place in time behind the last launch */
} Recording;

/* Finds what a device offers for an in-order queue without properties. */
void recorder_find(Recorder *recorder, const Device *device, cl_context context);

/* Begins a recording to be replayed on an in-order queue; after an error there is nothing to close. */
smartmem_status recording_begin(Recording *recording, const Recorder *recorder, cl_queue queue);
/* Adds a launch that begins when those before it have ended. The kernel's arguments are those of this moment. */
cl_int recording_add(Recording *recording, const recorded_launch *launch);
smartmem_status recording_end(Recording *recording);

/* Enqueues all launches; the replay before has ended. */
smartmem_status recording_replay(const Recording *recording);
/* Also of an empty recording. */
void recording_close(Recording *recording);

#endif
