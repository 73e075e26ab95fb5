/* The OpenCL probe: measures a GPU (or any other device of OpenCL 1.2), and prints JSON on the standard output.
 *
 *   cc -O2 probe_opencl.c -o probe_opencl -ldl && ./probe_opencl > gpu.json
 *
 * Neither headers nor a library of OpenCL are needed to build it: the library is opened when it runs, and the few types,
 * constants and functions that are used are declared here, as in the specification.
 * `haversack calibrate probe gpu.json --as NAME` turns its output into a device file. README.md explains the keys.
 */
#define _GNU_SOURCE
#include "common.h"

#include <dlfcn.h>
#include <stdint.h>

#define KERNELS(...) #__VA_ARGS__
static const char *const source =
#include "probe.cl"
    ;

/* ---- OpenCL ----------------------------------------------------------------------------------------------------- */

typedef void *handle; /* cl_platform_id, cl_device_id, cl_context, cl_command_queue, cl_program, cl_kernel, cl_mem */
typedef int32_t status;

enum {
    ALL_DEVICES = -1, CPU = 2, GPU = 4, READ_WRITE = 1, BUILD_LOG = 0x1183,
    DEVICE_TYPE = 0x1000, UNITS = 0x1002, GROUP_SIZE = 0x1004, CLOCK = 0x100c, CACHE_SIZE = 0x101e, MEMORY = 0x101f,
    LOCAL_SIZE = 0x1023, DEVICE_NAME = 0x102b, VENDOR = 0x102c, DRIVER = 0x102d, VERSION = 0x102f, LARGEST = 0x1010,
};

static status (*platform_ids)(uint32_t, handle *, uint32_t *);
static status (*device_ids)(handle, uint64_t, uint32_t, handle *, uint32_t *);
static status (*device_info)(handle, uint32_t, size_t, void *, size_t *);
static handle (*create_context)(const intptr_t *, uint32_t, const handle *, void *, void *, status *);
static handle (*create_queue)(handle, handle, uint64_t, status *);
static handle (*create_program)(handle, uint32_t, const char **, const size_t *, status *);
static status (*build_program)(handle, uint32_t, const handle *, const char *, void *, void *);
static status (*build_info)(handle, handle, uint32_t, size_t, void *, size_t *);
static handle (*create_kernel)(handle, const char *, status *);
static status (*set_argument)(handle, uint32_t, size_t, const void *);
static handle (*create_buffer)(handle, uint64_t, size_t, void *, status *);
static status (*enqueue)(handle, handle, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t,
                         const handle *, handle *);
static status (*write_buffer)(handle, handle, uint32_t, size_t, size_t, const void *, uint32_t, const handle *, handle *);
static status (*finish)(handle);
static status (*release_buffer)(handle);

static void *library;

static void *function(const char *name) {
    void *found = dlsym(library, name);
    if (!found) refuse("the OpenCL library has no %s", name);
    return found;
}

/* Opens the library; without one the program ends with exit code 3 (no such processor). */
static void open_library(const char *given) {
    const char *names[] = {given, "libOpenCL.so.1", "libOpenCL.so", "/vendor/lib64/libOpenCL.so",
                           "/system/vendor/lib64/libOpenCL.so", "/vendor/lib64/egl/libGLES_mali.so",
                           "/system/lib64/libOpenCL.so", "/System/Library/Frameworks/OpenCL.framework/OpenCL"};
    for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
        if (names[i]) library = dlopen(names[i], RTLD_NOW);
    if (!library) {
        fprintf(stderr, "error: no OpenCL library was found (libOpenCL.so): install the vendor's driver, or on a computer "
                        "PoCL (pocl-opencl-icd and ocl-icd-libopencl1), or name a file: --library FILE\n");
        exit(3);
    }
    *(void **)&platform_ids = function("clGetPlatformIDs");
    *(void **)&device_ids = function("clGetDeviceIDs");
    *(void **)&device_info = function("clGetDeviceInfo");
    *(void **)&create_context = function("clCreateContext");
    *(void **)&create_queue = function("clCreateCommandQueue");
    *(void **)&create_program = function("clCreateProgramWithSource");
    *(void **)&build_program = function("clBuildProgram");
    *(void **)&build_info = function("clGetProgramBuildInfo");
    *(void **)&create_kernel = function("clCreateKernel");
    *(void **)&set_argument = function("clSetKernelArg");
    *(void **)&create_buffer = function("clCreateBuffer");
    *(void **)&enqueue = function("clEnqueueNDRangeKernel");
    *(void **)&write_buffer = function("clEnqueueWriteBuffer");
    *(void **)&finish = function("clFinish");
    *(void **)&release_buffer = function("clReleaseMemObject");
}

static void check(status code, const char *what) {
    if (code) {
        fprintf(stderr, "error: %s failed with OpenCL's code %d\n", what, (int)code);
        exit(1);
    }
}

static handle device, context, queue, program;

/* The first GPU of any platform, or number `place` of all devices. */
static void choose_device(int place) {
    handle platforms[16], devices[64];
    uint32_t platform_count = 0, count = 0;
    if (platform_ids(16, platforms, &platform_count) || !platform_count) platform_count = 0;
    if (platform_count > 16) platform_count = 16;
    for (uint32_t p = 0; p < platform_count; p++) {
        uint32_t here = 0;
        if (device_ids(platforms[p], (uint64_t)(uint32_t)ALL_DEVICES, 64 - count, devices + count, &here)) continue;
        count += here < 64 - count ? here : 64 - count;
    }
    if (!count) {
        fprintf(stderr, "error: the OpenCL library knows no device: install a driver for one\n");
        exit(3);
    }
    if (place >= (int)count) refuse("--device %d: expected 0 to %d", place, (int)count - 1);
    device = devices[place < 0 ? 0 : place];
    for (uint32_t d = 0; place < 0 && d < count; d++) {
        uint64_t type = 0;
        device_info(devices[d], DEVICE_TYPE, sizeof type, &type, NULL);
        if (type & GPU) {
            device = devices[d];
            break;
        }
    }
}

static double number_of(uint32_t what, size_t bytes) {
    uint64_t wide = 0;
    uint32_t narrow = 0;
    if (device_info(device, what, bytes, bytes == 8 ? (void *)&wide : (void *)&narrow, NULL)) return -1;
    return bytes == 8 ? (double)wide : (double)narrow;
}

static const char *text_of(uint32_t what) {
    static char text[256];
    memset(text, 0, sizeof text);
    if (device_info(device, what, sizeof text - 1, text, NULL)) snprintf(text, sizeof text, "unknown");
    return text;
}

static void build(void) {
    status code;
    context = create_context(NULL, 1, &device, NULL, NULL, &code);
    check(code, "clCreateContext");
    queue = create_queue(context, device, 0, &code);
    check(code, "clCreateCommandQueue");
    const char *texts[] = {source};
    program = create_program(context, 1, texts, NULL, &code);
    check(code, "clCreateProgramWithSource");
    if (build_program(program, 1, &device, "-cl-mad-enable", NULL, NULL)) {
        static char log[8192];
        build_info(program, device, BUILD_LOG, sizeof log - 1, log, NULL);
        fprintf(stderr, "error: the kernels cannot be compiled: %s\n", log);
        exit(1);
    }
}

static handle kernel(const char *name) {
    status code;
    handle made = create_kernel(program, name, &code);
    check(code, name);
    return made;
}

static handle buffer(size_t bytes) {
    status code;
    handle made = create_buffer(context, READ_WRITE, bytes, NULL, &code);
    check(code, "clCreateBuffer");
    /* Written once, so that its pages are mapped. */
    char *zeros = calloc(1, bytes);
    if (!zeros) refuse("no memory for %zu bytes", bytes);
    check(write_buffer(queue, made, 1, 0, bytes, zeros, 0, NULL, NULL), "clEnqueueWriteBuffer");
    free(zeros);
    return made;
}

/* One argument: a buffer, an int, or a float. */
static void give(handle of, uint32_t place, size_t bytes, const void *value) {
    check(set_argument(of, place, bytes, value), "clSetKernelArg");
}

static void give_int(handle of, uint32_t place, int32_t value) { give(of, place, sizeof value, &value); }

/* ---- measuring -------------------------------------------------------------------------------------------------- */

static int rounds, quick;
static double budget; /* seconds of a round at most, about */

static void launch(handle of, uint32_t dimensions, const size_t *global, const size_t *local) {
    check(enqueue(queue, of, dimensions, NULL, global, local, 0, NULL, NULL), "clEnqueueNDRangeKernel");
}

/* Seconds of a launch, with several in the queue; the best of the rounds. */
static double seconds(handle of, uint32_t dimensions, const size_t *global, const size_t *local) {
    double found = 1e9, start = now();
    launch(of, dimensions, global, local);
    check(finish(queue), "clFinish");
    double first = now() - start;
    int many = first > budget ? 1 : (int)(budget / first) + 1;
    if (many > 1000) many = 1000;
    for (int r = 0; r < rounds; r++) {
        start = now();
        for (int i = 0; i < many; i++) launch(of, dimensions, global, local);
        check(finish(queue), "clFinish");
        double each = (now() - start) / many;
        if (each < found) found = each;
    }
    return found;
}

static double round_trip(handle of) {
    size_t one = 1;
    double found = 1e9;
    for (int r = 0; r < 20 * rounds; r++) {
        double start = now();
        launch(of, 1, &one, NULL);
        check(finish(queue), "clFinish");
        if (now() - start < found) found = now() - start;
    }
    return found;
}

static void probe_bandwidth(int units, size_t largest) {
    handle x = buffer(largest), y = buffer(largest), out = buffer(64);
    handle read = kernel("read_set"), copy = kernel("copy_set");
    size_t local = 64, global = (size_t)units * 2048;
    json_open("bandwidth", 0, '[');
    int row = 0;
    for (size_t bytes = 32 << 10; bytes <= largest; bytes *= 4, row++) {
        int count = (int)(bytes / 16), repeats = bytes < 4 << 20 ? (int)((4 << 20) / bytes) : 1;
        size_t threads = global < (size_t)count ? global : (size_t)count / local * local;
        give(read, 0, sizeof x, &x), give(read, 1, sizeof out, &out);
        give_int(read, 2, count), give_int(read, 3, repeats);
        json_open(NULL, row, '{');
        json_whole("working_set_bytes", (long)bytes);
        json_number("read_bytes_per_s", (double)bytes * repeats / seconds(read, 1, &threads, &local), "no time passed");
        give(copy, 0, sizeof x, &x), give(copy, 1, sizeof y, &y), give_int(copy, 2, count / 2);
        json_number("copy_bytes_per_s", (double)bytes / seconds(copy, 1, &threads, &local), "no time passed");
        json_close('}');
    }
    json_close(']');
    release_buffer(x), release_buffer(y);
}

static void probe_arithmetic(int units) {
    size_t local = 64, global = (size_t)units * 4096;
    handle out = buffer(global * 4), peak = kernel("peak");
    float x = 0.999f, y = 0.001f;
    int loops = quick ? 64 : 512;
    give(peak, 0, sizeof out, &out), give_int(peak, 1, loops), give(peak, 2, 4, &x), give(peak, 3, 4, &y);
    double flops = (double)global * loops * 8 * 4 * 2;
    json_number("fp32_peak_flops_per_s", flops / seconds(peak, 1, &global, &local), "no time passed");
    release_buffer(out);

    int edge = quick ? 256 : 1024;
    handle a = buffer((size_t)edge * edge * 4), b = buffer((size_t)edge * edge * 4), c = buffer((size_t)edge * edge * 4);
    handle gemm = kernel("gemm");
    give(gemm, 0, sizeof a, &a), give(gemm, 1, sizeof b, &b), give(gemm, 2, sizeof c, &c);
    give_int(gemm, 3, edge), give_int(gemm, 4, edge), give_int(gemm, 5, edge);
    size_t threads[2] = {(size_t)edge / 4, (size_t)edge / 4}, group[2] = {16, 16};
    const char *small = "the device's work-groups are smaller than the kernel's";
    double most = number_of(GROUP_SIZE, sizeof(size_t));
    json_number("fp32_gemm_flops_per_s", most < 256 ? -1 : 2.0 * edge * edge * edge / seconds(gemm, 2, threads, group),
                small);
    release_buffer(a), release_buffer(b), release_buffer(c);

    int channels = 64, filters = 64, side = quick ? 32 : 56;
    handle image = buffer((size_t)channels * (side + 2) * (side + 2) * 4), weight = buffer((size_t)filters * channels * 36);
    handle map = buffer((size_t)filters * side * side * 4), convolve = kernel("convolve");
    give(convolve, 0, sizeof image, &image), give(convolve, 1, sizeof weight, &weight), give(convolve, 2, sizeof map, &map);
    give_int(convolve, 3, channels), give_int(convolve, 4, side);
    size_t all[3] = {(size_t)side, (size_t)side, (size_t)filters / 4}, tile[3] = {8, 8, 1};
    json_number("fp32_convolution_flops_per_s", 2.0 * filters * channels * 9 * side * side / seconds(convolve, 3, all, tile),
                "no time passed");
}

static void probe_synchronisation(int units) {
    size_t local = 128, global = (size_t)units * local;
    handle out = buffer(global * 4), with = kernel("barriers"), without = kernel("no_barriers");
    int count = quick ? 256 : 4096;
    double spent[2];
    for (int i = 0; i < 2; i++) {
        handle of = i ? without : with;
        give(of, 0, sizeof out, &out), give(of, 1, local * 4, NULL), give_int(of, 2, count);
        spent[i] = seconds(of, 1, &global, &local);
    }
    json_number("barrier_s", (spent[0] - spent[1]) / (2.0 * count), "kernels with and without barriers took the same");
    handle atomics = kernel("atomics");
    int each = quick ? 256 : 1024;
    double sums[2];
    for (int i = 0; i < 2; i++) {
        give(atomics, 0, sizeof out, &out), give_int(atomics, 1, i ? each : 0);
        sums[i] = seconds(atomics, 1, &global, &local);
    }
    json_number("atomic_interval_s", (sums[1] - sums[0]) / ((double)each * global), "too fast to be told from a launch");
    size_t one = 1;
    for (int i = 0; i < 2; i++) {
        give_int(atomics, 1, i ? 16 * count : 0);
        sums[i] = seconds(atomics, 1, &one, &one);
    }
    json_number("atomic_latency_s", (sums[1] - sums[0]) / (16.0 * count), "too fast to be told from a launch");
}

int main(int count, char **words) {
    const char *file = NULL;
    int place = -1;
    for (int i = 1; i < count; i++) {
        if (!strcmp(words[i], "--quick")) quick = 1;
        else if (!strcmp(words[i], "--library") && i + 1 < count) file = words[++i];
        else if (!strcmp(words[i], "--device") && i + 1 < count) place = atoi(words[++i]);
        else refuse("%s: expected --quick, --library FILE (of OpenCL) or --device N (of all devices) [default: the first GPU]",
                    words[i]);
    }
    rounds = quick ? 2 : 5;
    budget = quick ? 0.01 : 0.2;
    open_library(file);
    choose_device(place);
    build();

    json_begin("opencl", quick);
    json_open("gpu", 0, '{');
    json_text("name", text_of(DEVICE_NAME));
    json_text("vendor", text_of(VENDOR));
    json_text("driver", text_of(DRIVER));
    json_text("version", text_of(VERSION));
    double type = number_of(DEVICE_TYPE, 8);
    json_text("type", (int)type & GPU ? "gpu" : (int)type & CPU ? "cpu" : "other");
    const char *silent = "the driver does not say it";
    double units = number_of(UNITS, 4), memory = number_of(MEMORY, 8), most = number_of(LARGEST, 8);
    json_number("units", units, silent);
    json_number("clock_hz", 1e6 * number_of(CLOCK, 4), silent);
    json_number("shared_bytes", number_of(LOCAL_SIZE, 8), silent);
    json_number("l2_bytes", number_of(CACHE_SIZE, 8), silent);
    json_number("memory_bytes", memory, silent);
    if (units < 1) units = 1;
    handle empty = kernel("empty"), x = buffer(64);
    give(empty, 0, sizeof x, &x);
    size_t one = 1;
    json_number("launch_s", seconds(empty, 1, &one, NULL), "no time passed");
    json_number("round_trip_s", round_trip(empty), "no time passed");
    size_t largest = quick ? 8 << 20 : 128 << 20;
    if (most > 0) while (largest > most / 2 && largest > 1 << 20) largest /= 4;
    probe_bandwidth((int)units, largest);
    probe_arithmetic((int)units);
    probe_synchronisation((int)units);
    json_close('}');
    json_end();
    return 0;
}
