// Findings, one a line, for Python to word: kind, tab, key=value fields. Code addresses are offsets in kernel.so.
#include "runtime.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE* report;
int open_report() {
    report = fopen("report", "ae");  // only ever longer: what was found stays found
    if (!report) abort();
    return fileno(report);
}
static FILE* file() { return report; }

// A return address is one past the call: the offset steps back into it. Minus a line number stays what it is.
long code_offset(const void* code) {
    if ((intptr_t)code < 0) return (intptr_t)code;
    Dl_info info;
    if (!code || !dladdr(code, &info) || !strstr(info.dli_fname, "kernel.so")) return 0;
    return (const char*)code - (const char*)info.dli_fbase - 1;
}

static volatile bool busy;
bool reporting() { return busy; }

static void begin(const char* kind, long code) {
    busy = true;
    fprintf(file(), "%s\tcode=%ld\tblock=%u\tthread=%u\tphase=%u\t", kind, code, block_number(),
            fibre_now ? fibre_number() : 0, phase);
}
static void end(const char* format, va_list list) {
    vfprintf(file(), format, list);
    fputc('\n', file());
    fflush(file());
    busy = false;
}

void finding(const char* kind, long code, const char* format, ...) {
    begin(kind, code);
    va_list list;
    va_start(list, format);
    end(format, list);
    va_end(list);
}

static void leave() {
    fflush(stdout);
    _exit(3);
}
void give_up(const char* format, ...) {
    begin("stopped", 0);
    fprintf(file(), "why=");
    va_list list;
    va_start(list, format);
    end(format, list);
    va_end(list);
    leave();
    abort();
}
void stop_at(int line, const char* format, ...) {
    begin("stopped", -(long)line);
    fprintf(file(), "why=");
    va_list list;
    va_start(list, format);
    end(format, list);
    va_end(list);
    leave();
    abort();
}

void finished(bool leaned) {
    fprintf(file(), "finished\ttoken=%s\n%s", job.token, leaned ? "leaned\n" : "");
    fclose(file());
    _exit(0);  // nothing of the kernel's own runs at the end
}
