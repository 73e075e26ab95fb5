/* The common code of the probes: time, and JSON with a reason for every null. C11 and POSIX. */
#ifndef HAVERSACK_PROBE_COMMON_H
#define HAVERSACK_PROBE_COMMON_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FORMAT "haversack-probe-1"

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static char json_path[512];           /* dotted name of the open object */
static size_t json_ends[16];          /* where the path of each open object ended before it */
static int json_depth, json_is_first = 1;
static char json_reasons[8192];       /* the body of "reasons" */

static void json_quote(const char *text) {
    putchar('"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') printf("\\%c", c);
        else if (c < 0x20 || c > 0x7e) putchar(' ');
        else putchar(c);
    }
    putchar('"');
}

static void json_key(const char *key) {
    printf("%s\n%*s", json_is_first ? "" : ",", 2 * json_depth + 2, "");
    json_is_first = 0;
    if (key) printf("\"%s\": ", key);
}

/* Opens an object or an array, depending on `bracket`; an array's item has the key NULL and the index `place`. */
static void json_open(const char *key, int place, char bracket) {
    json_key(key);
    putchar(bracket);
    size_t end = strlen(json_path);
    json_ends[json_depth++] = end;
    const char *dot = end ? "." : "";
    if (key) snprintf(json_path + end, sizeof json_path - end, "%s%s", dot, key);
    else snprintf(json_path + end, sizeof json_path - end, "%s%d", dot, place);
    json_is_first = 1;
}

static void json_close(char bracket) {
    json_path[json_ends[--json_depth]] = 0;
    if (json_is_first) putchar(bracket);
    else printf("\n%*s%c", 2 * json_depth + 2, "", bracket);
    json_is_first = 0;
}

static void json_text(const char *key, const char *text) {
    json_key(key);
    json_quote(text);
}

/* A null with its reason. */
static void json_null(const char *key, const char *why) {
    json_key(key);
    printf("null");
    size_t end = strlen(json_reasons);
    snprintf(json_reasons + end, sizeof json_reasons - end, "%s\n    \"%s%s%s\": \"%s\"", end ? "," : "", json_path,
             *json_path ? "." : "", key, why);
}

/* A number above zero; otherwise a null with its reason. */
static void json_number(const char *key, double value, const char *why) {
    if (!(value > 0)) {
        json_null(key, why);
        return;
    }
    json_key(key);
    printf("%.9g", value);
}

static void json_whole(const char *key, long value) {
    json_key(key);
    printf("%ld", value);
}

static void json_bool(const char *key, int value) {
    json_key(key);
    printf(value ? "true" : "false");
}

static void json_begin(const char *probe, int quick) {
    putchar('{');
    json_text("format", FORMAT);
    json_text("probe", probe);
    json_bool("quick", quick);
}

static void json_end(void) {
    json_key("reasons");
    printf("{%s%s}\n}\n", json_reasons, *json_reasons ? "\n  " : "");
}

/* ---- command line ----------------------------------------------------------------------------------------------- */

/* Ends the program with exit code 2, as wrong input. */
static void refuse(const char *format, ...) {
    va_list list;
    va_start(list, format);
    fprintf(stderr, "error: ");
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    exit(2);
}

#endif
