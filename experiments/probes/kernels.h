/* The arithmetic of the CPU probe, once for each width of vectors. Included several times by probe.c with
 * NAME(x)  the function x of this width
 * WIDTH    bytes of a vector
 * ATTR     the instructions that the compiler may use
 * ROWS     rows of a tile: as many as registers allow, with two vectors of columns
 */

typedef float NAME(vf) __attribute__((vector_size(WIDTH), aligned(4), may_alias));
typedef int NAME(vi) __attribute__((vector_size(WIDTH), aligned(4), may_alias));
typedef signed char NAME(vb) __attribute__((vector_size(WIDTH / 4), aligned(1), may_alias));

/* Independent multiply-adds in registers: the peak of the core. Returns FLOPs. */
ATTR static double NAME(peak)(long rounds) {
    NAME(vf) a[12], x, y;
    for (int i = 0; i < WIDTH / 4; i++) x[i] = 0.999f, y[i] = 0.001f;
    for (int j = 0; j < 12; j++) a[j] = x * (float)j;
    __asm__ volatile("" : "+m"(x), "+m"(y));
    NAME(vf) a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3], a4 = a[4], a5 = a[5], a6 = a[6], a7 = a[7], a8 = a[8],
             a9 = a[9], a10 = a[10], a11 = a[11];
    for (long r = 0; r < rounds; r++) {
        a0 = a0 * x + y, a1 = a1 * x + y, a2 = a2 * x + y, a3 = a3 * x + y;
        a4 = a4 * x + y, a5 = a5 * x + y, a6 = a6 * x + y, a7 = a7 * x + y;
        a8 = a8 * x + y, a9 = a9 * x + y, a10 = a10 * x + y, a11 = a11 * x + y;
    }
    a0 += a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;
    __asm__ volatile("" : : "m"(a0));
    return (double)rounds * 12 * 2 * (WIDTH / 4);
}

/* A tile of ROWS rows and two vectors of columns: c += a b, with a packed by columns of ROWS and b by rows of a tile. */
ATTR static void NAME(tile)(const float *a, const float *b, float *c, long pitch, long depth) {
    NAME(vf) s[ROWS][2];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < 2; j++) s[i][j] = *(const NAME(vf) *)(c + i * pitch + j * (WIDTH / 4));
    for (long k = 0; k < depth; k++, a += ROWS, b += WIDTH / 2) {
        NAME(vf) b0 = *(const NAME(vf) *)b, b1 = *(const NAME(vf) *)(b + WIDTH / 4);
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++) {
            s[i][0] += a[i] * b0;
            s[i][1] += a[i] * b1;
        }
    }
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < 2; j++) *(NAME(vf) *)(c + i * pitch + j * (WIDTH / 4)) = s[i][j];
}

/* The product of m × k by k × n, blocked for the caches; m and n are multiples of the tile, a and b are packed here. */
ATTR static void NAME(gemm)(const float *a, const float *b, float *c, long m, long n, long k, float *packed) {
    const long columns = WIDTH / 2, block = 256;
    float *pa = packed, *pb = packed + ROWS * block;
    for (long k0 = 0; k0 < k; k0 += block) {
        long depth = k - k0 < block ? k - k0 : block;
        for (long j = 0; j < n; j += columns)
            for (long p = 0; p < depth; p++)
                memcpy(pb + (j * depth) + p * columns, b + (k0 + p) * n + j, (size_t)columns * sizeof(float));
        for (long i = 0; i < m; i += ROWS) {
            for (long p = 0; p < depth; p++)
                for (long r = 0; r < ROWS; r++) pa[p * ROWS + r] = a[(i + r) * k + k0 + p];
            for (long j = 0; j < n; j += columns) NAME(tile)(pa, pb + j * depth, c + i * n + j, n, depth);
        }
    }
}

/* The same tile of signed eight-bit integers by widening them: sums of 32 bits. */
ATTR static void NAME(tile8)(const int *a, const signed char *b, int *c, long pitch, long depth) {
    NAME(vi) s[4][2];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 2; j++) s[i][j] = *(const NAME(vi) *)(c + i * pitch + j * (WIDTH / 4));
    for (long k = 0; k < depth; k++, a += 4, b += WIDTH / 2) {
        NAME(vi) b0 = __builtin_convertvector(*(const NAME(vb) *)b, NAME(vi));
        NAME(vi) b1 = __builtin_convertvector(*(const NAME(vb) *)(b + WIDTH / 4), NAME(vi));
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            s[i][0] += a[i] * b0;
            s[i][1] += a[i] * b1;
        }
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 2; j++) *(NAME(vi) *)(c + i * pitch + j * (WIDTH / 4)) = s[i][j];
}

/* Bandwidth: sums what it reads. */
ATTR static void NAME(read)(const float *x, long n) {
    const long w = WIDTH / 4;
    NAME(vf) s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    for (long i = 0; i + 4 * w <= n; i += 4 * w) {
        s0 += *(const NAME(vf) *)(x + i), s1 += *(const NAME(vf) *)(x + i + w);
        s2 += *(const NAME(vf) *)(x + i + 2 * w), s3 += *(const NAME(vf) *)(x + i + 3 * w);
    }
    s0 += s1 + s2 + s3;
    __asm__ volatile("" : : "m"(s0) : "memory");
}

ATTR static void NAME(write)(float *x, long n) {
    const long w = WIDTH / 4;
    NAME(vf) v = {0};
    for (long i = 0; i + 2 * w <= n; i += 2 * w) *(NAME(vf) *)(x + i) = v, *(NAME(vf) *)(x + i + w) = v;
    __asm__ volatile("" : : : "memory");
}

ATTR static void NAME(copy)(const float *x, float *y, long n) {
    const long w = WIDTH / 4;
    for (long i = 0; i + 2 * w <= n; i += 2 * w) {
        NAME(vf) a = *(const NAME(vf) *)(x + i), b = *(const NAME(vf) *)(x + i + w);
        *(NAME(vf) *)(y + i) = a, *(NAME(vf) *)(y + i + w) = b;
    }
    __asm__ volatile("" : : : "memory");
}
