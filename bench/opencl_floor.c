/* What an OpenCL driver takes by itself: opens its first device, builds one small kernel, and prints after each step the
 * milliseconds of processor time and the most memory so far. `python bench/c_runtime.py --floor` compiles and runs it. */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "opencl.h"
#include "processor.h"

static const char *SOURCE = "__kernel void one(__global float *x) { x[get_global_id(0)] = 1.0f; }";

static long peak_kilobytes(void) {
    char line[256];
    long peak = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "VmHWM: %ld", &peak) == 1)
            break;
    if (status != NULL)
        fclose(status);
    return peak;
}

static int done(const char *what, cl_int code) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    printf("%-40s %6.1f ms %6.1f MiB%s\n", what, (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6,
           (double)peak_kilobytes() / 1024, code == CL_SUCCESS ? "" : " failed");
    return code != CL_SUCCESS;
}

int main(void) {
    cl_platform platform;
    cl_device device;
    cl_uint count;
    cl_int code = done("nothing", CL_SUCCESS);
    if (opencl_open(NULL) != SMARTMEM_OK || cl.clGetPlatformIDs(1, &platform, &count) != CL_SUCCESS)
        return done("the platform", -1);
    code = cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, &count);
    if (done("the device", code))
        return 1;
    processor_name(device);
    cl_context context = cl.clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    if (done("a context", code))
        return 1;
    cl_program program = cl.clCreateProgramWithSource(context, 1, &SOURCE, NULL, &code);
    code = cl.clBuildProgram(program, 1, &device, "", NULL, NULL);
    return done("a program of one kernel", code);
}
