// Findings, one a line, for Python to word: kind, tab, key=value fields. Code addresses are offsets in kernel.so.
#include "runtime.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE* file() {
    static FILE* report = fopen("report", "w");
    return report;
}

// A return address is one past the call: the offset steps back into it. Minus a line number stays what it is.
long code_offset(const void* code) {
    if ((intptr_t)code < 0) return (intptr_t)code;
    Dl_info info;
    if (!code || !dladdr(code, &info) || !strstr(info.dli_fname, "kernel.so")) return 0;
    return (const char*)code - (const char*)info.dli_fbase - 1;
}

static void where(const void* code) {
    fprintf(file(), "\tcode=%ld\tblock=%u\tthread=%u\tphase=%u", code_offset(code), block_number(),
            fibre_now ? fibre_number() : 0, phase);
}

void finding(const char* kind, const void* code, const char* format, ...) {
    fprintf(file(), "%s", kind);
    where(code);
    fputc('\t', file());
    va_list list;
    va_start(list, format);
    vfprintf(file(), format, list);
    va_end(list);
    fputc('\n', file());
    fflush(file());
}

void give_up(const char* format, ...) {
    fprintf(file(), "stopped");
    where(nullptr);
    fprintf(file(), "\twhy=");
    va_list list;
    va_start(list, format);
    vfprintf(file(), format, list);
    va_end(list);
    fputc('\n', file());
    fflush(file());
    fflush(stdout);
    _exit(3);
}
