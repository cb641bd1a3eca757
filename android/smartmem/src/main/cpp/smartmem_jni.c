/* What dev.smartmem.Native calls: libsmartmem with handles as longs, and an exception for each status but OK. */
#include <jni.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smartmem.h"

#define NATIVE(type, name) JNIEXPORT type JNICALL Java_dev_smartmem_Native_##name

/* --- exceptions --- */

static void throw_text(JNIEnv *env, smartmem_status status, const char *text) {
    jclass kind = (*env)->FindClass(env, "dev/smartmem/SmartmemException");
    jmethodID make = kind == NULL ? NULL : (*env)->GetMethodID(env, kind, "<init>", "(I[B)V");
    jsize length = (jsize)strlen(text);
    jbyteArray bytes = make == NULL ? NULL : (*env)->NewByteArray(env, length); /* UTF-8 is not what JNI's texts are */
    if (bytes == NULL)
        return; /* the virtual machine has thrown another one */
    (*env)->SetByteArrayRegion(env, bytes, 0, length, (const jbyte *)text);
    jobject made = (*env)->NewObject(env, kind, make, (jint)status, bytes);
    if (made != NULL)
        (*env)->Throw(env, made);
}

/* Whether a call went well; if not, there is an exception now. */
static bool good(JNIEnv *env, smartmem_status status) {
    if (status != SMARTMEM_OK)
        throw_text(env, status, smartmem_last_error());
    return status == SMARTMEM_OK;
}

static bool refuse(JNIEnv *env, smartmem_status status, const char *text) {
    throw_text(env, status, text);
    return false;
}

/* --- arguments --- */

/* A text of Java as UTF-8 in memory of the caller, who frees it; NULL with an exception, or where the text is null. */
static char *text_of(JNIEnv *env, jbyteArray bytes) {
    if (bytes == NULL)
        return NULL;
    jsize length = (*env)->GetArrayLength(env, bytes);
    char *text = calloc((size_t)length + 1, 1);
    if (text == NULL)
        throw_text(env, SMARTMEM_NO_MEMORY, "there is too little memory");
    else
        (*env)->GetByteArrayRegion(env, bytes, 0, length, (jbyte *)text);
    return text;
}

static jbyteArray bytes_of(JNIEnv *env, const char *text) {
    jsize length = (jsize)strlen(text);
    jbyteArray bytes = (*env)->NewByteArray(env, length);
    if (bytes != NULL)
        (*env)->SetByteArrayRegion(env, bytes, 0, length, (const jbyte *)text);
    return bytes;
}

/* --- plans --- */

/* The options of a plan, whose texts `forget_options` frees. */
static bool take_options(JNIEnv *env, smartmem_plan_options *options, jbyteArray device, jbyteArray cache) {
    *options = (smartmem_plan_options)SMARTMEM_PLAN_OPTIONS;
    options->device = text_of(env, device);
    options->cache_folder = text_of(env, cache);
    return !(*env)->ExceptionCheck(env);
}

static void forget_options(smartmem_plan_options *options) {
    free((char *)(uintptr_t)options->device);
    free((char *)(uintptr_t)options->cache_folder);
}

NATIVE(jlong, openPlan)(JNIEnv *env, jclass self, jbyteArray path, jbyteArray device, jbyteArray cache) {
    (void)self;
    smartmem_plan_options options;
    smartmem_plan plan = {0};
    char *name = NULL;
    if (take_options(env, &options, device, cache) && ((name = text_of(env, path)) != NULL || path == NULL) &&
        !good(env, smartmem_plan_open(name, &options, &plan)))
        plan.id = 0;
    free(name);
    forget_options(&options);
    return (jlong)plan.id;
}

NATIVE(jlong, openPlanDescriptor)(JNIEnv *env, jclass self, jint descriptor, jlong offset, jlong bytes,
                                  jbyteArray device, jbyteArray cache) {
    (void)self;
    smartmem_plan_options options;
    smartmem_plan plan = {0};
    if (offset < 0 || bytes < 0) {
        throw_text(env, SMARTMEM_BAD_SIZE, "offset and bytes of a file are not below 0");
        return 0;
    }
    if (take_options(env, &options, device, cache) &&
        !good(env, smartmem_plan_open_descriptor(descriptor, (uint64_t)offset, (uint64_t)bytes, &options, &plan)))
        plan.id = 0;
    forget_options(&options);
    return (jlong)plan.id;
}

NATIVE(void, closePlan)(JNIEnv *env, jclass self, jlong plan) {
    (void)self;
    good(env, smartmem_plan_close((smartmem_plan){(uint64_t)plan}));
}

static bool tensor_info(JNIEnv *env, jlong plan, jboolean output, jint number, smartmem_tensor_info *info) {
    smartmem_plan one = {(uint64_t)plan};
    memset(info, 0, sizeof *info);
    info->struct_size = sizeof *info;
    if (number < 0)
        return refuse(env, SMARTMEM_BAD_ARGUMENT, "the number of an input or output is not below 0");
    return good(env, output ? smartmem_plan_get_output(one, (uint32_t)number, info)
                            : smartmem_plan_get_input(one, (uint32_t)number, info));
}

NATIVE(jint, count)(JNIEnv *env, jclass self, jlong plan, jboolean output) {
    (void)self;
    smartmem_plan_info info = {.struct_size = sizeof info};
    if (!good(env, smartmem_plan_get_info((smartmem_plan){(uint64_t)plan}, &info)))
        return 0;
    return (jint)(output ? info.outputs : info.inputs);
}

NATIVE(jbyteArray, name)(JNIEnv *env, jclass self, jlong plan, jboolean output, jint number) {
    (void)self;
    smartmem_tensor_info info;
    return tensor_info(env, plan, output, number, &info) ? bytes_of(env, info.name) : NULL;
}

NATIVE(jint, element)(JNIEnv *env, jclass self, jlong plan, jboolean output, jint number) {
    (void)self;
    smartmem_tensor_info info;
    return tensor_info(env, plan, output, number, &info) ? (jint)info.element : 0;
}

static jlongArray longs_of(JNIEnv *env, const int64_t *values, uint32_t count) {
    jlong copied[SMARTMEM_MAX_RANK];
    for (uint32_t i = 0; i < count; ++i)
        copied[i] = values[i];
    jlongArray made = (*env)->NewLongArray(env, (jsize)count);
    if (made != NULL)
        (*env)->SetLongArrayRegion(env, made, 0, (jsize)count, copied);
    return made;
}

NATIVE(jlongArray, shape)(JNIEnv *env, jclass self, jlong plan, jboolean output, jint number) {
    (void)self;
    smartmem_tensor_info info;
    return tensor_info(env, plan, output, number, &info) ? longs_of(env, info.shape, info.rank) : NULL;
}

/* --- sessions --- */

NATIVE(jlong, openSession)(JNIEnv *env, jclass self, jlong plan) {
    (void)self;
    smartmem_session session = {0};
    return good(env, smartmem_session_open((smartmem_plan){(uint64_t)plan}, NULL, &session)) ? (jlong)session.id : 0;
}

NATIVE(void, closeSession)(JNIEnv *env, jclass self, jlong session) {
    (void)self;
    good(env, smartmem_session_close((smartmem_session){(uint64_t)session}));
}

NATIVE(void, setInput)(JNIEnv *env, jclass self, jlong session, jbyteArray name, jobject data, jlongArray shape) {
    (void)self;
    int64_t extents[SMARTMEM_MAX_RANK] = {0};
    jsize rank = shape == NULL ? 0 : (*env)->GetArrayLength(env, shape);
    void *at = data == NULL ? NULL : (*env)->GetDirectBufferAddress(env, data);
    jlong bytes = at == NULL ? 0 : (*env)->GetDirectBufferCapacity(env, data);
    if (at == NULL || bytes < 0) {
        throw_text(env, SMARTMEM_BAD_ARGUMENT, "an input is a direct ByteBuffer");
        return;
    }
    if (rank > SMARTMEM_MAX_RANK) {
        throw_text(env, SMARTMEM_BAD_SIZE, "a shape has too many extents");
        return;
    }
    for (jsize i = 0; i < rank; ++i) {
        jlong extent;
        (*env)->GetLongArrayRegion(env, shape, i, 1, &extent);
        extents[i] = extent;
    }
    char *text = text_of(env, name);
    if (text != NULL || name == NULL)
        good(env, smartmem_set_input((smartmem_session){(uint64_t)session}, text, at, (size_t)bytes,
                                     shape == NULL ? NULL : extents, (size_t)rank));
    free(text);
}

NATIVE(void, run)(JNIEnv *env, jclass self, jlong session) {
    (void)self;
    good(env, smartmem_run((smartmem_session){(uint64_t)session}));
}

static bool get_output(JNIEnv *env, jlong session, jbyteArray name, smartmem_output *output) {
    char *text = text_of(env, name);
    bool found = (text != NULL || name == NULL) &&
                 good(env, smartmem_get_output((smartmem_session){(uint64_t)session}, text, output));
    free(text);
    return found;
}

NATIVE(jlongArray, outputShape)(JNIEnv *env, jclass self, jlong session, jbyteArray name) {
    (void)self;
    smartmem_output output;
    return get_output(env, session, name, &output) ? longs_of(env, output.shape, output.rank) : NULL;
}

NATIVE(jlong, outputBytes)(JNIEnv *env, jclass self, jlong session, jbyteArray name) {
    (void)self;
    smartmem_output output;
    return get_output(env, session, name, &output) ? (jlong)output.bytes : 0;
}

NATIVE(void, copyOutput)(JNIEnv *env, jclass self, jlong session, jbyteArray name, jobject to) {
    (void)self;
    smartmem_output output;
    void *at = to == NULL ? NULL : (*env)->GetDirectBufferAddress(env, to);
    jlong bytes = at == NULL ? -1 : (*env)->GetDirectBufferCapacity(env, to);
    if (bytes < 0) {
        throw_text(env, SMARTMEM_BAD_ARGUMENT, "an output is copied into a direct ByteBuffer");
        return;
    }
    if (!get_output(env, session, name, &output))
        return;
    if ((uint64_t)bytes != output.bytes) {
        char said[128];
        snprintf(said, sizeof said, "the buffer has %lld bytes, the output has %llu", (long long)bytes,
                 (unsigned long long)output.bytes);
        throw_text(env, SMARTMEM_BAD_SIZE, said);
        return;
    }
    memcpy(at, output.data, (size_t)bytes);
}
