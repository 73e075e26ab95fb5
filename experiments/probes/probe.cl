/* The kernels of the OpenCL probe. probe_opencl.c includes this file inside a macro that makes a string of it, so that no
 * line may begin with #. */
KERNELS(
kernel void empty(global int *x) {
    if (x[0] == 12345) x[0] = 0;
}

kernel void peak(global float *out, int rounds, float x, float y) {
    float4 a = (float4)(get_global_id(0)) * 1e-9f, b = a + 1.0f, c = a + 2.0f, d = a + 3.0f;
    for (int r = 0; r < rounds; r++) {
        a = mad(a, x, y); b = mad(b, x, y); c = mad(c, x, y); d = mad(d, x, y);
        a = mad(a, x, y); b = mad(b, x, y); c = mad(c, x, y); d = mad(d, x, y);
    }
    a += b + c + d;
    out[get_global_id(0)] = a.x + a.y + a.z + a.w;
}

/* Reads `count` vectors again and again; neighbouring work-items read neighbouring vectors. */
kernel void read_set(global const float4 *x, global float *out, int count, int repeats) {
    float4 sum = 0.0f;
    for (int r = 0; r < repeats; r++)
        for (int i = get_global_id(0); i < count; i += get_global_size(0)) sum += x[i];
    if (sum.x + sum.y + sum.z + sum.w == 1e30f) out[0] = sum.x;
}

kernel void copy_set(global const float4 *x, global float4 *y, int count) {
    for (int i = get_global_id(0); i < count; i += get_global_size(0)) y[i] = x[i];
}

/* c = a b by tiles of 64 × 64 for a group of 16 × 16; all sizes are multiples of 64. */
kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void gemm(global const float *a, global const float *b, global float *c, int m, int n, int k) {
    local float at[16][64];
    local float bt[16][64];
    const int row = get_group_id(1) * 64, column = get_group_id(0) * 64;
    const int x = get_local_id(0), y = get_local_id(1), id = y * 16 + x;
    float s[4][4];
    for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) s[i][j] = 0.0f;
    for (int k0 = 0; k0 < k; k0 += 16) {
        for (int t = 0; t < 4; t++) {
            const int at_row = (id + t * 256) / 16, at_k = (id + t * 256) % 16;
            at[at_k][at_row] = a[(row + at_row) * k + k0 + at_k];
            const int bt_k = (id + t * 256) / 64, bt_column = (id + t * 256) % 64;
            bt[bt_k][bt_column] = b[(k0 + bt_k) * n + column + bt_column];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int p = 0; p < 16; p++)
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) s[i][j] = mad(at[p][y + 16 * i], bt[p][x + 16 * j], s[i][j]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) c[(row + y + 16 * i) * n + column + x + 16 * j] = s[i][j];
}

/* A convolution of 3 × 3 taps, four filters per thread, over images with a frame of zeros. */
kernel void convolve(global const float *image, global const float *weight, global float *out, int channels, int side) {
    const int x = get_global_id(0), y = get_global_id(1), filter = get_global_id(2) * 4, pitch = side + 2;
    float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
    for (int c = 0; c < channels; c++)
        for (int t = 0; t < 9; t++) {
            const float v = image[(c * pitch + y + t / 3) * pitch + x + t % 3];
            global const float *w = weight + (filter * channels + c) * 9 + t;
            s0 = mad(v, w[0], s0); s1 = mad(v, w[9 * channels], s1);
            s2 = mad(v, w[18 * channels], s2); s3 = mad(v, w[27 * channels], s3);
        }
    const int plane = side * side, place = y * side + x;
    out[filter * plane + place] = s0; out[(filter + 1) * plane + place] = s1;
    out[(filter + 2) * plane + place] = s2; out[(filter + 3) * plane + place] = s3;
}

kernel void barriers(global int *out, local int *shared, int count) {
    const int id = get_local_id(0), next = (id + 1) % get_local_size(0);
    shared[id] = id;
    for (int i = 0; i < count; i++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const int seen = shared[next];
        barrier(CLK_LOCAL_MEM_FENCE);
        shared[id] = seen + 1;
    }
    out[get_global_id(0)] = shared[id];
}

/* The same without barriers. */
kernel void no_barriers(global int *out, local int *shared, int count) {
    const int id = get_local_id(0), next = (id + 1) % get_local_size(0);
    shared[id] = id;
    for (int i = 0; i < count; i++) {
        const int seen = shared[next];
        shared[id] = seen + 1;
    }
    out[get_global_id(0)] = shared[id];
}

kernel void atomics(global int *sum, int count) {
    for (int i = 0; i < count; i++) atomic_add(sum, i);
}
)
