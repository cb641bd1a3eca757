/* A session: the memory, the queue and the kernels of one run of a plan at a time. */
#ifndef SMARTMEM_SESSION_H
#define SMARTMEM_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "plan.h"

typedef struct session_input {
    const void *data;
    int64_t shape[SMARTMEM_MAX_RANK];
    bool set;
} session_input;

typedef struct session_output {
    void *application;   /* memory of the application, or NULL */
    void *result;        /* the elements as the model has them, where the application gives no memory */
    void *raw;           /* the elements as the device has them, where that is something else */
    uint64_t elements;   /* that the device gives at the extents of the last run */
    uint64_t bytes;      /* of the result, after cuts */
    int64_t shape[SMARTMEM_MAX_RANK];
} session_output;

typedef enum session_state { IDLE, WAITS, RUNS } session_state;

typedef struct Session {
    Plan *plan;
    uint64_t id;
    cl_queue queue;
    Memory memory;
    cl_kernel *kernels;           /* by launch */
    int32_t *given_up;            /* by launch: the step that waited for others for too long in the last run, or 0 */
    size_t (*global_size)[3];     /* by launch, for the extents of the last run */
    int64_t *dimensions;          /* extents of the open dimensions in the last run */
    int64_t *formulas;            /* their values for these */
    bool sized;                   /* both are there */
    bool may_record;              /* the device offers it for so many launches, and the application does not forbid it */
    uint32_t runs_so_sized;       /* that ended well */
    Recording recording;          /* of the launches for these extents, if there is one */
    session_input *inputs;
    session_output *outputs;      /* by place in the index's list */
    bool has_result;              /* a run has ended well, and nothing has changed since */
    int64_t run_number;

    pthread_mutex_t lock;         /* of what follows */
    pthread_cond_t changed;
    session_state state;
    atomic_bool cancelled;
    pthread_t worker;
    bool has_worker, closing, in_callback;
    smartmem_callback callback;
    void *user;
    smartmem_status status;       /* of the last run of the worker */
    char error[ERROR_TEXT];
} Session;

smartmem_status session_open(Session **opened, Plan *plan, const smartmem_session_options *options);
void session_close(Session *session);

/* Takes the session for the calling thread, or gives SMARTMEM_BUSY. */
smartmem_status session_take(Session *session);
void session_give_back(Session *session);

/* One inference, of a session that is taken.
 *
 * @param watched it can be cancelled between two launches
 */
smartmem_status session_run(Session *session, bool watched);
/* Enqueues all launches for the extents of the run, or replays their recording (run_launches.c).
 *
 * @param watched the run can be cancelled between two launches
 */
smartmem_status session_launch(Session *session, bool watched);
/* Times of the launches: `times` has room for `capacity` of them. */
smartmem_status session_profile(Session *session, smartmem_launch_time *times, size_t capacity, size_t *count);

/* Takes the extents of the inputs that are set, and the run's number (run_inputs.c). */
smartmem_status session_take_inputs(Session *session);
smartmem_status session_upload(Session *session);
/* Reads the outputs, converts and cuts them (run_outputs.c). */
smartmem_status session_download(Session *session);

/* Hands a run to the session's thread, which it makes if there is none (worker.c). */
smartmem_status session_start(Session *session, smartmem_callback callback, void *user);
smartmem_status session_wait(Session *session);
void session_end_worker(Session *session);

#endif
