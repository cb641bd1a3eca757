/* The thread of a session in which its asynchronous runs happen. */

#include <stdio.h>

#include "session.h"

static void keep_error(Session *session, smartmem_status status) {
    session->status = status;
    snprintf(session->error, sizeof session->error, "%s", status == SMARTMEM_OK ? "" : smartmem_last_error());
}

/* One run, and its callback; the lock is held before and after. */
static void run_one(Session *session) {
    char error[ERROR_TEXT];
    session->state = RUNS;
    pthread_mutex_unlock(&session->lock);
    smartmem_status status = session_run(session, true);
    pthread_mutex_lock(&session->lock);
    keep_error(session, status);
    snprintf(error, sizeof error, "%s", session->error);
    smartmem_callback callback = session->callback;
    void *user = session->user;
    session->state = IDLE; /* the callback may start the next run */
    session->in_callback = callback != NULL;
    pthread_mutex_unlock(&session->lock);
    if (callback != NULL)
        callback((smartmem_session){session->id}, status, error, user);
    pthread_mutex_lock(&session->lock);
    session->in_callback = false;
    pthread_cond_broadcast(&session->changed);
}

static void *work(void *given) {
    Session *session = given;
    pthread_mutex_lock(&session->lock);
    while (!session->closing) {
        if (session->state == WAITS)
            run_one(session);
        else
            pthread_cond_wait(&session->changed, &session->lock);
    }
    pthread_mutex_unlock(&session->lock);
    return NULL;
}

smartmem_status session_start(Session *session, smartmem_callback callback, void *user) {
    smartmem_status status = SMARTMEM_OK;
    pthread_mutex_lock(&session->lock);
    if (session->state != IDLE)
        status = fail(SMARTMEM_BUSY, "the session runs");
    else if (!session->has_worker && pthread_create(&session->worker, NULL, work, session) != 0)
        status = fail(SMARTMEM_NO_MEMORY, "the system gives no thread");
    if (status == SMARTMEM_OK) {
        session->has_worker = true;
        session->callback = callback;
        session->user = user;
        session->state = WAITS;
        atomic_store(&session->cancelled, false);
        pthread_cond_broadcast(&session->changed);
    }
    pthread_mutex_unlock(&session->lock);
    return status;
}

smartmem_status session_wait(Session *session) {
    pthread_mutex_lock(&session->lock);
    if (!session->has_worker) {
        pthread_mutex_unlock(&session->lock);
        return fail(SMARTMEM_NO_RESULT, "no run was started");
    }
    if (pthread_equal(session->worker, pthread_self())) {
        pthread_mutex_unlock(&session->lock);
        return fail(SMARTMEM_BUSY, "a callback cannot wait for its own run");
    }
    while (session->state != IDLE || session->in_callback)
        pthread_cond_wait(&session->changed, &session->lock);
    smartmem_status status = session->status;
    char error[ERROR_TEXT];
    snprintf(error, sizeof error, "%s", session->error);
    pthread_mutex_unlock(&session->lock);
    return status == SMARTMEM_OK ? SMARTMEM_OK : fail(status, "%s", error);
}

void session_end_worker(Session *session) {
    if (!session->has_worker)
        return;
    pthread_mutex_lock(&session->lock);
    atomic_store(&session->cancelled, true);
    session->closing = true;
    pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->lock);
    pthread_join(session->worker, NULL);
}
