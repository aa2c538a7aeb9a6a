// The one job of this process: its arrays in the file "memory", its library kernel.so, and the rest in the file "job".
#include "runtime.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

Job job;
void (*entry)(void**);
void* argument_pointers[64];

static void add(Arrays& arrays, const char* name, char* begin, size_t bytes, size_t element, bool constant = false) {
    if (arrays.count == 256) give_up("more than 256 arrays of one kind");
    Array& array = arrays.list[arrays.count++];
    strncpy(array.name, name, sizeof array.name - 1);
    array.begin = begin, array.bytes = bytes, array.element = element, array.constant = constant;
    if (!arrays.begin || begin < arrays.begin) arrays.begin = begin;
    if (begin + bytes > arrays.end) arrays.end = begin + bytes;
}

// So low, if the system will have it, that what lies 2^32 elements further is an address too, and no other's.
static char* const LOW = (char*)((uintptr_t)1 << 44);
// The file "memory", with as much around it that nobody may touch as there is room for: an index that is far off then
// meets nothing instead of something else.
static char* map_memory(size_t* bytes) {
    const int memory = open("memory", O_RDWR);
    struct stat status;
    if (memory < 0 || fstat(memory, &status)) give_up("there is no memory file");
    *bytes = (size_t)status.st_size;
    const size_t whole = (*bytes + 4095) / 4096 * 4096;
    for (job.moat = (size_t)1 << 29; job.moat; job.moat = job.moat > 1 << 20 ? job.moat / 8 : 0) {
        char* all = (char*)mmap(LOW, whole + 2 * job.moat, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (all == MAP_FAILED) continue;
        char* inside = (char*)mmap(all + job.moat, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, 0);
        if (inside != MAP_FAILED) return close(memory), inside;
    }
    char* alone = (char*)mmap(nullptr, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (alone == MAP_FAILED) give_up("the memory file cannot be mapped");
    close(memory);
    return alone;
}

// Finds the instructions of kernel.so.
static int of_library(dl_phdr_info* info, size_t, void*) {
    for (int i = 0; (char*)info->dlpi_addr == job.library && i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& part = info->dlpi_phdr[i];
        if (part.p_type != PT_LOAD || !(part.p_flags & PF_X)) continue;
        job.code_begin = job.library + part.p_vaddr, job.code_end = job.code_begin + part.p_memsz;
    }
    return 0;
}

void read_job() {
    const int report = open_report();
    FILE* file = fopen("job", "re");
    if (!file || unlink("job")) give_up("there is no job file");
    // All of it now: the library's own constructors run while it is loaded, and find nothing.
    struct stat status;
    if (fstat(fileno(file), &status)) give_up("the job file cannot be read");
    char* text = (char*)malloc((size_t)status.st_size + 1);
    const size_t length = fread(text, 1, (size_t)status.st_size, file);
    fclose(file);
    text[length] = 0;
    const char* const seconds = strstr(text, "seconds ");
    job.seconds = seconds ? atof(seconds + 8) : 0;
    start_clock();  // now, for soon nobody here may ask the system for one
    file = fmemopen(text, length, "r");
    if (!file) give_up("the job file is empty");
    size_t bytes;
    char* const memory = map_memory(&bytes);
    confine(report, false);
    char key[32], name[64];
    void* library = dlopen("./kernel.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) give_up("%s", dlerror());
    entry = (void (*)(void**))dlsym(library, "tilelab_entry");
    Dl_info info;
    if (!entry || !dladdr((void*)entry, &info)) give_up("the library has no kernel");
    job.library = (char*)info.dli_fbase;
    dl_iterate_phdr(of_library, nullptr);
    confine(report, true);
    static uint64_t scalars[64];
    int arguments = 0;
    unsigned long a, b, c;
    while (fscanf(file, "%31s", key) == 1) {
        int read = 0;
        const auto is = [&key](const char* word) { return !strcmp(key, word); };
        if (is("grid")) read = fscanf(file, "%u %u %u", job.grid, job.grid + 1, job.grid + 2) == 3;
        if (is("block")) read = fscanf(file, "%u %u %u", job.block, job.block + 1, job.block + 2) == 3;
        if (is("dynamic")) read = fscanf(file, "%u", &job.dynamic_bytes) == 1;
        if (is("order")) read = fscanf(file, "%d %u", &job.order, &job.order_seed) == 2;
        if (is("checked")) read = fscanf(file, "%lu", &a) == 1, job.checked = a;
        if (is("views")) read = fscanf(file, "%lu", &a) == 1, job.views = a > 1;
        if (is("seconds")) read = fscanf(file, "%lf", &job.seconds) == 1;
        if (is("token")) read = fscanf(file, "%63s", job.token) == 1;
        if (is("array") && (read = fscanf(file, "%lu %lu %lu %63s", &a, &b, &c, name) == 4)) add(job.given, name, memory + a, b, c);
        if (is("shared") && (read = fscanf(file, "%lu %lu %63s", &a, &b, name) == 3)) add(job.shared, name, job.library + a, b, 1);
        const bool constant = is("constant");
        if ((constant || is("device")) && (read = fscanf(file, "%lu %lu %63s", &a, &b, name) == 3))
            add(job.device, name, job.library + a, b, 1, constant);
        if (is("value") && arguments < 64) {
            read = fscanf(file, "%lx", &a) == 1;
            scalars[arguments] = a, argument_pointers[arguments] = &scalars[arguments], ++arguments;
        }
        if (is("pointer") && arguments < 64) {  // to the array of that number, listed before
            read = fscanf(file, "%lu", &a) == 1 && a < (unsigned)job.given.count;
            scalars[arguments] = read ? (uint64_t)job.given.list[a].begin : 0;
            argument_pointers[arguments] = &scalars[arguments], ++arguments;
        }
        if (!read) give_up("the job file has a bad line at %s", key);
    }
    fclose(file);
    memset(text, 0, length);
    free(text);
    // The guards before the first and behind the last array are theirs too.
    job.given.begin = memory, job.given.end = memory + bytes;
}

// A copy of all constants, one behind the other.
char* constants_now() {
    size_t bytes = 1;
    for (int i = 0; i < job.device.count; ++i) bytes += job.device.list[i].bytes;
    char *copy = (char*)malloc(bytes), *end = copy;
    for (int i = 0; i < job.device.count; ++i) {
        const Array& one = job.device.list[i];
        if (one.constant) end = (char*)memcpy(end, one.begin, one.bytes) + one.bytes;
    }
    return copy;
}
void look_at_constants(const char* before) {
    for (int i = 0; i < job.device.count; ++i) {
        const Array& one = job.device.list[i];
        for (size_t at = 0; one.constant && at < one.bytes; ++at, ++before) {
            if (one.begin[at] == *before) continue;
            char where[160];
            describe(where, sizeof where, one.begin + at);
            finding("constant", 0, "%s", where);
            before += one.bytes - at;
            break;
        }
    }
}
