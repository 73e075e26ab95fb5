/* The CUDA probe: measures an NVIDIA GPU, and prints JSON on the standard output, with the keys of probe_opencl.c.
 *
 *   nvcc -O2 -arch=native probe.cu -o probe_cuda && ./probe_cuda > gpu.json
 *
 * Only nvcc compiles it. The project's tests do not, since they run on machines without nvcc. README.md explains the keys.
 */
#include "common.h"

#include <cuda_runtime.h>

static void check(cudaError_t code, const char *what) {
    if (code != cudaSuccess) {
        fprintf(stderr, "error: %s: %s\n", what, cudaGetErrorString(code));
        exit(code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver ? 3 : 1);
    }
}

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

__global__ void empty(int *x) {
    if (x[0] == 12345) x[0] = 0;
}

__global__ void peak(float *out, int rounds, float x, float y) {
    float s[16];
#pragma unroll
    for (int i = 0; i < 16; i++) s[i] = (float)threadIdx.x + (float)i;
    for (int r = 0; r < rounds; r++)
#pragma unroll
        for (int i = 0; i < 16; i++) s[i] = fmaf(s[i], x, y);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 16; i++) sum += s[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void read_set(const float4 *x, float *out, int count, int repeats) {
    float4 sum = make_float4(0, 0, 0, 0);
    for (int r = 0; r < repeats; r++)
        for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < count; i += (int)(gridDim.x * blockDim.x)) {
            float4 v = __ldcg(x + i);
            sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
        }
    if (sum.x + sum.y + sum.z + sum.w == 1e30f) out[0] = sum.x;
}

__global__ void copy_set(const float4 *x, float4 *y, int count) {
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < count; i += (int)(gridDim.x * blockDim.x)) y[i] = x[i];
}

/* c = a b by tiles of 64 × 64 for a block of 16 × 16; all sizes are multiples of 64. */
__global__ void gemm(const float *a, const float *b, float *c, int n, int k) {
    __shared__ float at[16][64], bt[16][64];
    const int row = blockIdx.y * 64, column = blockIdx.x * 64, x = threadIdx.x, y = threadIdx.y, id = y * 16 + x;
    float s[4][4] = {};
    for (int k0 = 0; k0 < k; k0 += 16) {
        for (int t = 0; t < 4; t++) {
            const int i = id + t * 256;
            at[i % 16][i / 16] = a[(row + i / 16) * k + k0 + i % 16];
            bt[i / 64][i % 64] = b[(k0 + i / 64) * n + column + i % 64];
        }
        __syncthreads();
        for (int p = 0; p < 16; p++)
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) s[i][j] = fmaf(at[p][y + 16 * i], bt[p][x + 16 * j], s[i][j]);
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) c[(row + y + 16 * i) * n + column + x + 16 * j] = s[i][j];
}

__global__ void convolve(const float *image, const float *weight, float *out, int channels, int side) {
    const int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, filter = blockIdx.z * 4;
    const int pitch = side + 2, plane = side * side;
    float s[4] = {};
    for (int c = 0; c < channels; c++)
        for (int t = 0; t < 9; t++) {
            const float v = image[(c * pitch + y + t / 3) * pitch + x + t % 3];
#pragma unroll
            for (int f = 0; f < 4; f++) s[f] = fmaf(v, weight[((filter + f) * channels + c) * 9 + t], s[f]);
        }
    for (int f = 0; f < 4; f++) out[(filter + f) * plane + y * side + x] = s[f];
}

template <bool WAITS> __global__ void barriers(int *out, int count) {
    extern __shared__ volatile int shared[];
    const int id = threadIdx.x, next = (id + 1) % blockDim.x;
    shared[id] = id;
    for (int i = 0; i < count; i++) {
        if (WAITS) __syncthreads();
        const int seen = shared[next];
        if (WAITS) __syncthreads();
        shared[id] = seen + 1;
    }
    out[blockIdx.x * blockDim.x + id] = shared[id];
}

/* Each addend depends on the previous value, so that a thread waits for each addition. */
__global__ void atomics(int *sum, int count, int waits) {
    int seen = 1;
    for (int i = 0; i < count; i++) {
        const int was = atomicAdd(sum, waits ? (seen & 1) + 1 : i);
        if (waits) seen = was;
    }
    if (seen == 12345678) sum[1] = seen;
}

/* ---- measuring -------------------------------------------------------------------------------------------------- */

static int rounds = 5, quick;
static double budget = 0.2;

/* Seconds of a launch, with several issued together; the best of the rounds. */
template <typename Launch> static double seconds(Launch launch) {
    double found = 1e9, start = now();
    launch();
    check(cudaDeviceSynchronize(), "a kernel");
    const double first = now() - start;
    int many = first > budget ? 1 : (int)(budget / first) + 1;
    if (many > 1000) many = 1000;
    for (int r = 0; r < rounds; r++) {
        start = now();
        for (int i = 0; i < many; i++) launch();
        check(cudaDeviceSynchronize(), "a kernel");
        const double each = (now() - start) / many;
        if (each < found) found = each;
    }
    check(cudaGetLastError(), "a launch");
    return found;
}

template <typename T> static T *buffer(size_t bytes) {
    void *made = NULL;
    check(cudaMalloc(&made, bytes), "cudaMalloc");
    check(cudaMemset(made, 0, bytes), "cudaMemset");
    return (T *)made;
}

static void probe_bandwidth(int units, size_t largest) {
    float4 *x = buffer<float4>(largest), *y = buffer<float4>(largest);
    float *out = buffer<float>(64);
    json_open("bandwidth", 0, '[');
    int row = 0;
    for (size_t bytes = 32 << 10; bytes <= largest; bytes *= 4, row++) {
        const int count = (int)(bytes / 16), repeats = bytes < (64u << 20) ? (int)((64u << 20) / bytes) : 1;
        const int blocks = count / 256 + 1 < units * 8 ? count / 256 + 1 : units * 8;
        json_open(NULL, row, '{');
        json_whole("working_set_bytes", (long)bytes);
        const double reading = seconds([&] { read_set<<<blocks, 256>>>(x, out, count, repeats); });
        json_number("read_bytes_per_s", (double)bytes * repeats / reading, "no time passed");
        const double copying = seconds([&] { copy_set<<<blocks, 256>>>(x, y, count / 2); });
        json_number("copy_bytes_per_s", (double)bytes / copying, "no time passed");
        json_close('}');
    }
    json_close(']');
    cudaFree(x), cudaFree(y), cudaFree(out);
}

static void probe_arithmetic(int units) {
    const int loops = quick ? 1024 : 8192, blocks = units * 16;
    float *out = buffer<float>((size_t)blocks * 256 * 4);
    const double flops = (double)blocks * 256 * loops * 16 * 2;
    json_number("fp32_peak_flops_per_s", flops / seconds([&] { peak<<<blocks, 256>>>(out, loops, 0.999f, 0.001f); }), "no time passed");
    const int edge = quick ? 1024 : 4096;
    float *a = buffer<float>((size_t)edge * edge * 4), *b = buffer<float>((size_t)edge * edge * 4);
    float *c = buffer<float>((size_t)edge * edge * 4);
    const dim3 grid(edge / 64, edge / 64), block(16, 16);
    const double product = seconds([&] { gemm<<<grid, block>>>(a, b, c, edge, edge); });
    json_number("fp32_gemm_flops_per_s", 2.0 * edge * edge * edge / product, "no time passed");
    const int channels = 64, filters = 64, side = 56;
    float *image = buffer<float>((size_t)channels * (side + 2) * (side + 2) * 4);
    float *weight = buffer<float>((size_t)filters * channels * 36), *map = buffer<float>((size_t)filters * side * side * 4);
    const dim3 tiles(side / 8, side / 8, filters / 4), tile(8, 8);
    const double convolution = seconds([&] { convolve<<<tiles, tile>>>(image, weight, map, channels, side); });
    json_number("fp32_convolution_flops_per_s", 2.0 * filters * channels * 9 * side * side / convolution, "no time passed");
}

static void probe_synchronisation(int units) {
    const int threads = 128, count = 4096, each = 1024;
    int *out = buffer<int>((size_t)units * threads * 4);
    const double with = seconds([&] { barriers<true><<<units, threads, threads * 4>>>(out, count); });
    const double without = seconds([&] { barriers<false><<<units, threads, threads * 4>>>(out, count); });
    json_number("barrier_s", (with - without) / (2.0 * count), "kernels with and without barriers took the same");
    const double idle = seconds([&] { atomics<<<units, threads>>>(out, 0, 0); });
    const double busy = seconds([&] { atomics<<<units, threads>>>(out, each, 0); });
    json_number("atomic_interval_s", (busy - idle) / ((double)each * units * threads), "too fast to be told from a launch");
    const double none = seconds([&] { atomics<<<1, 1>>>(out, 0, 1); });
    const double alone = seconds([&] { atomics<<<1, 1>>>(out, count, 1); });
    json_number("atomic_latency_s", (alone - none) / count, "too fast to be told from a launch");
}

int main(int count, char **words) {
    int place = 0;
    for (int i = 1; i < count; i++) {
        if (!strcmp(words[i], "--quick")) quick = 1;
        else if (!strcmp(words[i], "--device") && i + 1 < count) place = atoi(words[++i]);
        else refuse("%s: expected --quick or --device N [default: 0]", words[i]);
    }
    if (quick) rounds = 2, budget = 0.02;
    check(cudaSetDevice(place), "cudaSetDevice");
    cudaDeviceProp about;
    check(cudaGetDeviceProperties(&about, place), "cudaGetDeviceProperties");
    int kilohertz = 0, driver = 0;
    cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, place);
    cudaDriverGetVersion(&driver);

    json_begin("cuda", quick);
    json_open("gpu", 0, '{');
    json_text("name", about.name);
    json_text("vendor", "NVIDIA");
    char text[64];
    snprintf(text, sizeof text, "%d", driver);
    json_text("driver", text);
    snprintf(text, sizeof text, "compute capability %d.%d", about.major, about.minor);
    json_text("version", text);
    json_text("type", "gpu");
    json_whole("units", about.multiProcessorCount);
    json_number("clock_hz", 1e3 * kilohertz, "the driver does not say it");
    json_number("shared_bytes", (double)about.sharedMemPerMultiprocessor, "the driver does not say it");
    json_number("l2_bytes", about.l2CacheSize, "the driver does not say it");
    json_number("memory_bytes", (double)about.totalGlobalMem, "the driver does not say it");
    int *x = buffer<int>(64);
    json_number("launch_s", seconds([&] { empty<<<1, 1>>>(x); }), "no time passed");
    double trip = 1e9;
    for (int r = 0; r < 100; r++) {
        const double start = now();
        empty<<<1, 1>>>(x);
        check(cudaDeviceSynchronize(), "a kernel");
        if (now() - start < trip) trip = now() - start;
    }
    json_number("round_trip_s", trip, "no time passed");
    probe_bandwidth(about.multiProcessorCount, quick ? 128 << 20 : 512 << 20);
    probe_arithmetic(about.multiProcessorCount);
    probe_synchronisation(about.multiProcessorCount);
    json_close('}');
    json_end();
    return 0;
}
