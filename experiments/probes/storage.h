/* Flash and ZRAM, for probe.c. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, CHUNK = 1 << 20, QUEUE = 8 };

/* The first line of a file, without its end; empty if there is none. */
static const char *line_of(const char *path) {
    static char line[256];
    line[0] = 0;
    FILE *file = fopen(path, "r");
    if (!file) return line;
    if (!fgets(line, sizeof line, file)) line[0] = 0;
    fclose(file);
    line[strcspn(line, "\n")] = 0;
    return line;
}

static void *aligned(size_t bytes) {
    void *found = NULL;
    if (posix_memalign(&found, 4096, bytes)) refuse("no memory for %zu bytes", bytes);
    return found;
}

/* Numbers that flash controllers cannot compress. */
static void fill_noise(unsigned char *bytes, size_t n, unsigned long long seed) {
    for (size_t i = 0; i < n; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        bytes[i] = (unsigned char)seed;
    }
}

/* Opens past the page cache if the file system allows it. */
static int open_flash(const char *path, int flags, int *direct) {
#ifdef O_DIRECT
    int file = open(path, flags | O_DIRECT, 0600);
    if (file >= 0) {
        *direct = 1;
        return file;
    }
#endif
    *direct = 0;
    return open(path, flags, 0600);
}

struct random_reads {
    const char *path;
    long pages, count;
    unsigned long long seed;
    int writes, failed;
};

static void *random_pages(void *given) {
    struct random_reads *job = given;
    int direct, file = open_flash(job->path, job->writes ? O_WRONLY : O_RDONLY, &direct);
    if (file < 0) return job->failed = 1, NULL;
    unsigned char *page = aligned(PAGE);
    fill_noise(page, PAGE, job->seed);
    for (long i = 0; i < job->count; i++) {
        job->seed ^= job->seed << 13, job->seed ^= job->seed >> 7, job->seed ^= job->seed << 17;
        off_t at = (off_t)(job->seed % (unsigned long long)job->pages) * PAGE;
        ssize_t done = job->writes ? pwrite(file, page, PAGE, at) : pread(file, page, PAGE, at);
        if (done != PAGE) job->failed = 1;
    }
    if (job->writes) fsync(file);
    free(page);
    close(file);
    return NULL;
}

/* Seconds that `threads` threads take for `count` random pages each; negative if any failed. */
static double random_time(const char *path, long pages, int threads, long count, int writes) {
    pthread_t ids[QUEUE];
    struct random_reads jobs[QUEUE];
    double start = now();
    int failed = 0;
    for (int t = 0; t < threads; t++) {
        jobs[t] = (struct random_reads){path, pages, count, 88172645463325252ull + 7919ull * (unsigned)t, writes, 0};
        if (pthread_create(&ids[t], NULL, random_pages, &jobs[t])) return -1;
    }
    for (int t = 0; t < threads; t++) pthread_join(ids[t], NULL), failed |= jobs[t].failed;
    return failed ? -1 : now() - start;
}

/* Sequential write, then read, of `size` bytes; seconds, negative on failure. */
static void sequential(const char *path, long size, double *write_s, double *read_s, int *direct) {
    unsigned char *chunk = aligned(CHUNK);
    fill_noise(chunk, CHUNK, 2463534242ull);
    *write_s = *read_s = -1;
    int file = open_flash(path, O_WRONLY | O_CREAT | O_TRUNC, direct);
    if (file >= 0) {
        double start = now();
        int fine = 1;
        for (long done = 0; fine && done < size; done += CHUNK) fine = write(file, chunk, CHUNK) == CHUNK;
        if (fine && fsync(file) == 0) *write_s = now() - start;
        close(file);
    }
    file = *write_s < 0 ? -1 : open_flash(path, O_RDONLY, direct);
    if (file >= 0) {
#ifdef POSIX_FADV_DONTNEED
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
#endif
        double start = now();
        int fine = 1;
        for (long done = 0; fine && done < size; done += CHUNK) fine = read(file, chunk, CHUNK) == CHUNK;
        if (fine) *read_s = now() - start;
        close(file);
    }
    free(chunk);
}

static void probe_storage(const char *folder, long size, int quick) {
    json_open("storage", 0, '{');
    const char *why = "no folder was given: --folder DIR";
    if (!folder) {
        const char *keys[] = {"sequential_read_bytes_per_s", "sequential_write_bytes_per_s", "random_read_bytes_per_s",
                              "random_write_bytes_per_s", "latency_read_s", "latency_write_s"};
        json_bool("past_page_cache", 0);
        json_null("file_bytes", why);
        for (int i = 0; i < 6; i++) json_null(keys[i], why);
        json_close('}');
        return;
    }
    char path[1024];
    snprintf(path, sizeof path, "%s/haversack-probe-%ld.tmp", folder, (long)getpid());
    double write_s, read_s;
    int direct = 0;
    sequential(path, size, &write_s, &read_s, &direct);
    why = "the file could not be written or read in the folder";
    json_bool("past_page_cache", direct);
    json_whole("file_bytes", size);
    json_number("sequential_write_bytes_per_s", write_s > 0 ? size / write_s : -1, why);
    const char *cached = "the file system keeps files in memory (no O_DIRECT), so that reads do not reach the flash";
    json_number("sequential_read_bytes_per_s", direct && read_s > 0 ? size / read_s : -1, direct ? why : cached);
    long count = quick ? 64 : 1024, pages = size / PAGE;
    double queued = write_s < 0 ? -1 : random_time(path, pages, QUEUE, count, 0);
    double alone = write_s < 0 ? -1 : random_time(path, pages, 1, count, 0);
    json_number("random_read_bytes_per_s", direct && queued > 0 ? (double)QUEUE * count * PAGE / queued : -1,
                direct ? why : cached);
    json_number("latency_read_s", direct && alone > 0 ? alone / count : -1, direct ? why : cached);
    queued = write_s < 0 ? -1 : random_time(path, pages, QUEUE, count, 1);
    alone = write_s < 0 ? -1 : random_time(path, pages, 1, count, 1);
    json_number("random_write_bytes_per_s", queued > 0 ? (double)QUEUE * count * PAGE / queued : -1, why);
    json_number("latency_write_s", direct && alone > 0 ? alone / count : -1, direct ? why : cached);
    json_close('}');
    unlink(path);
}

/* A page of which half is noise, so that it compresses about as apps' pages do. */
static void fill_page(unsigned char *page, unsigned long long seed) {
    memset(page, (int)(seed & 0xff), PAGE);
    fill_noise(page, PAGE / 2, seed * 2654435761ull + 1);
}

/* Writes and reads pages of a temporary ZRAM device, which is removed afterwards; needs root. */
static void new_zram(double *write_s, double *read_s, long pages) {
    *write_s = *read_s = -1;
    const char *made = line_of("/sys/class/zram-control/hot_add");
    if (!*made) return;
    int number = atoi(made);
    char path[128];
    snprintf(path, sizeof path, "/sys/block/zram%d/disksize", number);
    FILE *file = fopen(path, "w");
    if (file) {
        fprintf(file, "%ld", pages * PAGE);
        fclose(file);
    }
    snprintf(path, sizeof path, "/dev/zram%d", number);
    if (access(path, F_OK)) snprintf(path, sizeof path, "/dev/block/zram%d", number);
    int direct, device = open_flash(path, O_RDWR, &direct);
    unsigned char *page = aligned(PAGE);
    if (device >= 0 && direct) {
        double spent = 0;
        int fine = 1;
        for (long i = 0; fine && i < pages; i++) {
            fill_page(page, (unsigned long long)i + 1);
            double start = now();
            fine = pwrite(device, page, PAGE, (off_t)i * PAGE) == PAGE;
            spent += now() - start;
        }
        if (fine) *write_s = spent / pages;
        double start = now();
        for (long i = 0; fine && i < pages; i++) fine = pread(device, page, PAGE, (off_t)i * PAGE) == PAGE;
        if (fine) *read_s = (now() - start) / pages;
    }
    if (device >= 0) close(device);
    free(page);
    file = fopen("/sys/class/zram-control/hot_remove", "w");
    if (file) {
        fprintf(file, "%d", number);
        fclose(file);
    }
}

static void probe_zram(int make_one, int quick) {
    json_open("zram", 0, '{');
    const char *none = "the kernel has no /sys/block/zram0";
    const char *line = line_of("/sys/block/zram0/comp_algorithm");
    const char *chosen = strchr(line, '[');
    int present = access("/sys/block/zram0", F_OK) == 0;
    if (chosen) {
        char name[64];
        snprintf(name, sizeof name, "%s", chosen + 1);
        name[strcspn(name, "]")] = 0;
        json_text("algorithm", name);
    } else json_null("algorithm", present ? "comp_algorithm cannot be read" : none);
    json_number("size_bytes", atof(line_of("/sys/block/zram0/disksize")), present ? "its size is zero: not in use" : none);
    double stored = 0, compressed = 0;
    int read = sscanf(line_of("/sys/block/zram0/mm_stat"), "%lf %lf", &stored, &compressed);
    json_number("ratio", read == 2 && compressed > 0 ? stored / compressed : -1,
                present ? "mm_stat cannot be read, or nothing is stored" : none);
    double write_s = -1, read_s = -1;
    if (make_one) new_zram(&write_s, &read_s, quick ? 2048 : 32768);
    const char *why = make_one ? "no ZRAM device could be made: that needs root and zram-control"
                               : "nothing was swapped: --new-zram makes a device of its own, as root";
    json_number("write_page_s", write_s, why);
    json_number("read_page_s", read_s, why);
    json_close('}');
}
