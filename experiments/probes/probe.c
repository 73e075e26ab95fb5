/* The CPU probe: measures this machine's cores, caches, memory, flash and ZRAM, and prints JSON on the standard output.
 *
 *   cc -O2 probe.c -o probe -lpthread -lm && ./probe --folder . > probe.json
 *
 * C11 with the vector types of GCC and Clang, pthreads and POSIX, nothing else; the Android NDK's clang compiles it as it
 * is. `haversack calibrate probe probe.json --as NAME` turns its output into a device file. README.md explains the keys.
 */
#define _GNU_SOURCE
#include "common.h"
#include "storage.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/utsname.h>

#define MOST_CORES 256

/* ---- kernels by width of vectors ---------------------------------------------------------------------------------- */

#define ROWS 4
#define WIDTH 16
#define ATTR
#define NAME(x) narrow_##x
#include "kernels.h"
#undef ROWS
#undef WIDTH
#undef ATTR
#undef NAME

#if defined(__x86_64__)
#define ROWS 6
#define WIDTH 32
#define ATTR __attribute__((target("avx2,fma")))
#define NAME(x) avx2_##x
#include "kernels.h"
#undef WIDTH
#undef ATTR
#undef NAME
#define WIDTH 64
#define ATTR __attribute__((target("avx512f")))
#define NAME(x) avx512_##x
#include "kernels.h"
#undef ROWS
#undef WIDTH
#undef ATTR
#undef NAME
#endif

#if defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#endif

/* The widest kernels that this processor can run. */
static struct {
    const char *name;
    int width, rows;
    double (*peak)(long);
    void (*gemm)(const float *, const float *, float *, long, long, long, float *);
    void (*tile8)(const int *, const signed char *, int *, long, long);
    void (*read)(const float *, long);
    void (*write)(float *, long);
    void (*copy)(const float *, float *, long);
} use;

#define CHOOSE(set, prefix, bytes, tile_rows)                                                                         \
    use.name = set, use.width = bytes, use.rows = tile_rows, use.peak = prefix##_peak, use.gemm = prefix##_gemm,      \
    use.tile8 = prefix##_tile8, use.read = prefix##_read, use.write = prefix##_write, use.copy = prefix##_copy

static void choose_kernels(void) {
#if defined(__x86_64__)
    CHOOSE("sse2", narrow, 16, 4);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) CHOOSE("avx2", avx2, 32, 6);
    if (__builtin_cpu_supports("avx512f")) CHOOSE("avx512", avx512, 64, 6);
#else
    CHOOSE("neon", narrow, 16, 4);
#endif
}

/* ---- measuring ------------------------------------------------------------------------------------------------- */

static double round_s; /* how long a round lasts at least */
static int rounds;     /* of which the best counts: other programs only ever make one slower */

/* The best rate of `work`, which returns the amount of work done. */
static double best(double (*work)(void *), void *given) {
    double found = 0;
    work(given);
    for (int r = 0; r < rounds; r++) {
        double start = now(), done = 0, spent;
        do done += work(given);
        while ((spent = now() - start) < round_s);
        if (done / spent > found) found = done / spent;
    }
    return found;
}

static void run_on(int core) {
#ifdef __linux__
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
#else
    (void)core;
#endif
}

/* ---- arithmetic ------------------------------------------------------------------------------------------------- */

/* A chain of additions, each of which waits for the one before: one per cycle on every relevant core. */
static double additions(void *given) {
    (void)given;
    unsigned long x = 1;
    for (int i = 0; i < 20000; i++) {
#define ADD __asm__ volatile("" : "+r"(x)); x += 3;
#define ADDS ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD
        ADDS ADDS ADDS ADDS ADDS
    }
    __asm__ volatile("" : : "r"(x));
    return 20000.0 * 50;
}

static double multiply_adds(void *given) {
    (void)given;
    return use.peak(20000);
}

enum { EDGE = 480 }; /* a multiple of every tile */

struct product {
    float *a, *b, *c, *packed;
    long m, n, k;
};

static struct product product_of(long m, long n, long k) {
    struct product p = {aligned((size_t)(m * k) * 4), aligned((size_t)(k * n) * 4), aligned((size_t)(m * n) * 4),
                        aligned((size_t)(256 * (n + 16)) * 4), m, n, k};
    for (long i = 0; i < m * k; i++) p.a[i] = (float)(i % 7) * 0.1f;
    for (long i = 0; i < k * n; i++) p.b[i] = (float)(i % 5) * 0.1f;
    memset(p.c, 0, (size_t)(m * n) * 4);
    return p;
}

static void product_end(struct product *p) { free(p->a), free(p->b), free(p->c), free(p->packed); }

static double multiply(void *given) {
    struct product *p = given;
    use.gemm(p->a, p->b, p->c, p->m, p->n, p->k, p->packed);
    return 2.0 * p->m * p->n * p->k;
}

/* A convolution of 3×3 taps, 32 channels to 48 filters over 32 × 32 positions: windows laid out, then a product. */
enum { CHANNELS = 32, FILTERS = 48, SIDE = 32 };

struct convolution {
    float *image;
    struct product product;
};

static double convolve(void *given) {
    struct convolution *c = given;
    const long pitch = SIDE + 2, plane = pitch * pitch;
    float *row = c->product.b;
    for (int channel = 0; channel < CHANNELS; channel++)
        for (int tap = 0; tap < 9; tap++)
            for (int y = 0; y < SIDE; y++, row += SIDE)
                memcpy(row, c->image + channel * plane + (y + tap / 3) * pitch + tap % 3, SIDE * sizeof(float));
    return multiply(&c->product);
}

/* Products of eight-bit integers, by tiles whose operands stay in the first cache. */
static double multiply8(void *given) {
    (void)given;
    enum { DEPTH = 256 };
#if defined(__ARM_FEATURE_DOTPROD)
    static int8_t a[DEPTH * 16], b[DEPTH * 16];
    int32x4_t s[16] = {vdupq_n_s32(0)};
    for (int r = 0; r < 16; r++)
        for (int k = 0; k < DEPTH; k += 4) {
            int8x16_t y0 = vld1q_s8(b + 16 * k), y1 = vld1q_s8(b + 16 * k + 16), x = vld1q_s8(a + 16 * k);
            s[0] = vdotq_laneq_s32(s[0], y0, x, 0), s[1] = vdotq_laneq_s32(s[1], y1, x, 0);
            s[2] = vdotq_laneq_s32(s[2], y0, x, 1), s[3] = vdotq_laneq_s32(s[3], y1, x, 1);
            s[4] = vdotq_laneq_s32(s[4], y0, x, 2), s[5] = vdotq_laneq_s32(s[5], y1, x, 2);
            s[6] = vdotq_laneq_s32(s[6], y0, x, 3), s[7] = vdotq_laneq_s32(s[7], y1, x, 3);
        }
    __asm__ volatile("" : : "m"(s) : "memory");
    return 16.0 * (DEPTH / 4) * 8 * 32;
#else
    static int a[DEPTH * 4], c[4 * 64];
    static signed char b[DEPTH * 64];
    for (int r = 0; r < 16; r++) use.tile8(a, b, c, 64, DEPTH);
    __asm__ volatile("" : : : "memory");
    return 16.0 * 2 * 4 * (use.width / 2) * DEPTH;
#endif
}

#if defined(__ARM_FEATURE_DOTPROD)
#define INT8_KERNEL "dot-product"
#else
#define INT8_KERNEL "widening"
#endif

/* ---- bandwidth -------------------------------------------------------------------------------------------------- */

struct stream {
    float *x, *y;
    long elements; /* of the working set: a copy reads one half and writes the other */
};

static long passes(const struct stream *s) { return s->elements < 1 << 16 ? (1 << 16) / s->elements + 1 : 1; }

static double stream_read(void *given) {
    struct stream *s = given;
    long n = passes(s);
    for (long i = 0; i < n; i++) use.read(s->x, s->elements);
    return 4.0 * s->elements * n;
}

static double stream_write(void *given) {
    struct stream *s = given;
    long n = passes(s);
    for (long i = 0; i < n; i++) use.write(s->x, s->elements);
    return 4.0 * s->elements * n;
}

static double stream_copy(void *given) {
    struct stream *s = given;
    long n = passes(s);
    for (long i = 0; i < n; i++) use.copy(s->x, s->x + s->elements / 2, s->elements / 2);
    return 4.0 * s->elements * n; /* half is read, half is written */
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */

/* A barrier that spins and lets others run. */
struct barrier {
    atomic_int waiting, turn;
    int threads;
};

static void barrier_wait(struct barrier *b) {
    int turn = atomic_load(&b->turn);
    if (atomic_fetch_add(&b->waiting, 1) + 1 == b->threads) {
        atomic_store(&b->waiting, 0);
        atomic_fetch_add(&b->turn, 1);
        return;
    }
    for (long spins = 0; atomic_load(&b->turn) == turn; spins++)
        if (spins > 1000) sched_yield();
}

struct part {
    struct barrier *barrier;
    double (*work)(void *);
    void *given;
    int core;
    double done, start, end;
};

static void *part_of(void *given) {
    struct part *part = given;
    run_on(part->core);
    part->work(part->given);
    barrier_wait(part->barrier);
    part->start = now();
    do part->done += part->work(part->given);
    while ((part->end = now()) - part->start < round_s);
    return NULL;
}

/* The rate of all threads together, per second; the best of the rounds. */
static double together(int threads, double (*work)(void *), void **given) {
    double found = 0;
    for (int r = 0; r < rounds; r++) {
        struct barrier barrier = {0, 0, threads};
        pthread_t ids[MOST_CORES];
        struct part parts[MOST_CORES];
        double sum = 0;
        for (int t = 0; t < threads; t++) {
            parts[t] = (struct part){&barrier, work, given ? given[t] : NULL, t, 0, 0, 0};
            if (pthread_create(&ids[t], NULL, part_of, &parts[t])) refuse("cannot start thread %d", t);
        }
        for (int t = 0; t < threads; t++) {
            pthread_join(ids[t], NULL);
            sum += parts[t].done / (parts[t].end - parts[t].start);
        }
        if (sum > found) found = sum;
    }
    return found;
}

static atomic_long contended;

static double add_atomically(void *given) {
    (void)given;
    for (int i = 0; i < 1000; i++) atomic_fetch_add(&contended, 1);
    return 1000;
}

struct waits {
    struct barrier *barrier;
    int core, count;
};

static void *wait_often(void *given) {
    struct waits *w = given;
    run_on(w->core);
    for (int i = 0; i < w->count; i++) barrier_wait(w->barrier);
    return NULL;
}

/* Seconds of a barrier between all threads. */
static double barrier_time(int threads) {
    double found = 1e9;
    int count = 2000;
    for (int r = 0; r < rounds; r++) {
        struct barrier barrier = {0, 0, threads};
        pthread_t ids[MOST_CORES];
        struct waits waits[MOST_CORES];
        double start = now();
        for (int t = 0; t < threads; t++) {
            waits[t] = (struct waits){&barrier, t, count};
            if (pthread_create(&ids[t], NULL, wait_often, &waits[t])) refuse("cannot start thread %d", t);
        }
        for (int t = 0; t < threads; t++) pthread_join(ids[t], NULL);
        double each = (now() - start) / count;
        if (each < found) found = each;
    }
    return found;
}

static void *nothing(void *given) { return given; }

static double start_threads(void *given) {
    (void)given;
    for (int i = 0; i < 20; i++) {
        pthread_t id;
        if (pthread_create(&id, NULL, nothing, NULL)) refuse("cannot start a thread");
        pthread_join(id, NULL);
    }
    return 20;
}

/* ---- clusters --------------------------------------------------------------------------------------------------- */

struct cluster {
    int first, cores;
    double highest, lowest, capacity; /* of sysfs; 0 where it says nothing */
};

static double of_core(int core, const char *what) {
    char path[160];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", core, what);
    return atof(line_of(path));
}

static int clusters_of(struct cluster *clusters, int cores) {
    int found = 0;
    for (int core = 0; core < cores; core++) {
        struct cluster here = {core, 1, 1e3 * of_core(core, "cpufreq/cpuinfo_max_freq"),
                               1e3 * of_core(core, "cpufreq/cpuinfo_min_freq"), of_core(core, "cpu_capacity")};
        struct cluster *last = found ? &clusters[found - 1] : NULL;
        if (last && last->highest == here.highest && last->capacity == here.capacity) last->cores++;
        else if (found < 8) clusters[found++] = here;
    }
    return found;
}

/* The size of a data cache of `core`, by level. */
static double cache_of(int core, int level) {
    for (int index = 0; index < 6; index++) {
        char what[64];
        snprintf(what, sizeof what, "cache/index%d/level", index);
        if ((int)of_core(core, what) != level) continue;
        char path[160];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/type", core, index);
        if (!strcmp(line_of(path), "Instruction")) continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/size", core, index);
        const char *size = line_of(path);
        return atof(size) * (strchr(size, 'M') ? 1048576.0 : strchr(size, 'K') ? 1024.0 : 1.0);
    }
    return 0;
}

static void probe_cluster(const struct cluster *c, int place, long largest) {
    json_open(NULL, place, '{');
    run_on(c->first);
    json_whole("first_core", c->first);
    json_whole("cores", c->cores);
    json_number("frequency_hz", c->highest, "the kernel does not say it under cpufreq (a virtual machine, or no permission)");
    json_number("frequency_lowest_hz", c->lowest, "the kernel does not say it under cpufreq");
    json_number("frequency_measured_hz", best(additions, NULL), "no time passed");
    const char *silent = "the kernel does not say it under cache/";
    double l1 = cache_of(c->first, 1), l2 = cache_of(c->first, 2);
    json_number("l1_bytes", l1, silent);
    json_number("l2_bytes", l2, silent);
    json_number("l3_bytes", cache_of(c->first, 3), silent);
    json_whole("vector_bytes", use.width);
    json_number("fp32_peak_flops_per_s", best(multiply_adds, NULL), "no time passed");
    struct product p = product_of(EDGE, EDGE, EDGE);
    json_number("fp32_gemm_flops_per_s", best(multiply, &p), "no time passed");
    product_end(&p);
    struct convolution conv = {aligned(CHANNELS * (SIDE + 2) * (SIDE + 2) * 4),
                               product_of(FILTERS, SIDE * SIDE, CHANNELS * 9)};
    memset(conv.image, 0, CHANNELS * (SIDE + 2) * (SIDE + 2) * 4);
    json_number("fp32_convolution_flops_per_s", best(convolve, &conv), "no time passed");
    product_end(&conv.product);
    free(conv.image);
    json_text("int8_kernel", INT8_KERNEL);
    json_number("int8_gemm_ops_per_s", best(multiply8, NULL), "no time passed");
    struct stream s = {aligned((size_t)largest), NULL, 0};
    memset(s.x, 0, (size_t)largest);
    json_open("bandwidth", 0, '[');
    int row = 0;
    for (long bytes = 8 << 10; bytes <= largest; bytes *= 2, row++) {
        s.elements = bytes / 4;
        json_open(NULL, row, '{');
        json_whole("working_set_bytes", bytes);
        json_number("read_bytes_per_s", best(stream_read, &s), "no time passed");
        json_number("write_bytes_per_s", best(stream_write, &s), "no time passed");
        json_number("copy_bytes_per_s", best(stream_copy, &s), "no time passed");
        json_close('}');
    }
    json_close(']');
    free(s.x);
    json_close('}');
}

static void probe_all(int threads, long largest) {
    json_open("all_cores", 0, '{');
    json_whole("threads", threads);
    void *given[MOST_CORES];
    for (int t = 0; t < threads; t++) {
        struct stream *s = malloc(sizeof *s);
        long bytes = largest / (threads > 4 ? 4 : 1);
        *s = (struct stream){aligned((size_t)bytes), NULL, bytes / 4};
        memset(s->x, 0, (size_t)bytes);
        given[t] = s;
    }
    json_number("read_bytes_per_s", together(threads, stream_read, given), "no time passed");
    json_number("copy_bytes_per_s", together(threads, stream_copy, given), "no time passed");
    for (int t = 0; t < threads; t++) free(((struct stream *)given[t])->x), free(given[t]);
    struct product p[MOST_CORES];
    for (int t = 0; t < threads; t++) p[t] = product_of(EDGE, EDGE, EDGE), given[t] = &p[t];
    json_number("fp32_gemm_flops_per_s", together(threads, multiply, given), "no time passed");
    for (int t = 0; t < threads; t++) product_end(&p[t]);
    json_number("int8_gemm_ops_per_s", together(threads, multiply8, NULL), "no time passed");
    json_number("barrier_s", threads > 1 ? barrier_time(threads) : -1, "one core alone waits for nobody");
    json_number("atomic_s", 1 / together(threads, add_atomically, NULL), "no time passed");
    json_number("thread_start_s", 1 / best(start_threads, NULL), "no time passed");
    json_close('}');
}

int main(int count, char **words) {
    const char *folder = NULL;
    int quick = 0, make_zram = 0;
    long megabytes = 0;
    for (int i = 1; i < count; i++) {
        if (!strcmp(words[i], "--quick")) quick = 1;
        else if (!strcmp(words[i], "--new-zram")) make_zram = 1;
        else if (!strcmp(words[i], "--folder") && i + 1 < count) folder = words[++i];
        else if (!strcmp(words[i], "--file-mb") && i + 1 < count) megabytes = atol(words[++i]);
        else
            refuse("%s: expected --quick, --folder DIR (flash is measured there), --file-mb N (of the file there), or "
                   "--new-zram (as root: measures a ZRAM device of its own)", words[i]);
    }
    if (folder && access(folder, W_OK)) refuse("--folder %s: %s", folder, strerror(errno));
    if (megabytes < 0 || megabytes > 16384) refuse("--file-mb: expected 1 to 16384");
    if (!megabytes) megabytes = quick ? 16 : 256;
    round_s = quick ? 0.003 : 0.05;
    rounds = quick ? 3 : 7;
    choose_kernels();
    long cores = sysconf(_SC_NPROCESSORS_CONF);
    if (cores < 1) cores = 1;
    if (cores > MOST_CORES) cores = MOST_CORES;
    long largest = quick ? 64L << 20 : 128L << 20;

    json_begin("cpu", quick);
    struct utsname system;
    uname(&system);
    json_open("machine", 0, '{');
    json_text("system", system.sysname);
    json_text("release", system.release);
    json_text("architecture", system.machine);
    json_text("kernels", use.name);
    double pages = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    json_number("memory_bytes", pages, "sysconf does not say it");
    json_close('}');
    json_open("clusters", 0, '[');
    struct cluster clusters[8];
    int found = clusters_of(clusters, (int)cores);
    for (int i = 0; i < found; i++) probe_cluster(&clusters[i], i, largest);
    json_close(']');
#ifdef __linux__
    cpu_set_t every;
    CPU_ZERO(&every);
    for (int core = 0; core < cores; core++) CPU_SET(core, &every);
    sched_setaffinity(0, sizeof every, &every);
#endif
    probe_all((int)cores, largest);
    probe_storage(folder, megabytes << 20, quick);
    probe_zram(make_zram, quick);
    json_end();
    return 0;
}
