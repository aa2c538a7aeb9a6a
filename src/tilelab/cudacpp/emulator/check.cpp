// The checking mode: every load and store of the kernel calls in here.
//
// The kernel is compiled with -fsanitize=thread and -fsanitize=bounds,alignment, which put a call before each access
// and each index of an array with known bounds. Those calls are usually answered by the sanitizers' libraries; here
// this file answers them, for it knows what a barrier is. It keeps the last write and the last reads of every byte.
#include "runtime.h"

#include <initializer_list>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct Access {
    unsigned block, phase, warp_phase;
    uint16_t thread;
    bool atomic, valid;
    const void* code;
};
struct Shadow {
    Access write, read, other_read;  // other_read: by another thread than read, in the same phase
    bool pending;                    // an asynchronous copy is on its way to it
};
static Shadow *global_shadow, *static_shadow, *dynamic_shadow;
static bool ordered_by_atomics[1024];  // the thread has met other blocks through an atomic: trust it

static Shadow* shadows(size_t bytes) {
    void* memory = mmap(nullptr, bytes * sizeof(Shadow) + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) give_up("the arrays are too large to check (%zu bytes): check on smaller ones", bytes);
    return (Shadow*)memory;
}
void check_start() {
    global_shadow = shadows(job.arena_bytes);
    static_shadow = shadows((size_t)(job.shared_end - job.shared_begin));
    dynamic_shadow = shadows(256 * 1024);
}

// ---- what an address means
struct Place { Shadow* shadow; const Array* array; size_t offset; bool shared; };
static Array dynamic_array = {"dynamic shared memory", tilelab_dynamic_shared, 0, 1};

static const Array* array_at(const Array* arrays, int count, const char* p) {
    for (int i = 0; i < count; ++i)
        if (p >= arrays[i].begin && p < arrays[i].begin + arrays[i].bytes) return &arrays[i];
    return nullptr;
}

// For an address outside all arrays: the one that ends closest before it, or starts closest after it.
static const Array* nearest(const char* p) {
    const Array* best = nullptr;
    size_t best_distance = ~(size_t)0;
    for (int i = 0; i < job.array_count; ++i) {
        const Array& a = job.arrays[i];
        const size_t distance = (size_t)(p < a.begin ? a.begin - p : p - a.begin - (long)a.bytes);
        if (distance < best_distance) best = &a, best_distance = distance;
    }
    return best;
}

// ---- findings, each pair of lines once
static void once(const char* kind, const void* code, const void* other, const Array* array, long offset, const char* more) {
    static struct { const char* kind; const void *code, *other; } seen[64];
    static int count;
    for (int i = 0; i < count; ++i)
        if (seen[i].kind == kind && seen[i].code == code && seen[i].other == other) return;
    if (count == 64) return;
    seen[count++] = {kind, code, other};
    finding(kind, code, "array=%s\toffset=%ld\telement=%zu\t%s", array ? array->name : "", offset, array ? array->element : 1, more);
}

// ---- races
static bool ordered(const Access& before, const Access& now) {
    if (before.block != now.block) return ordered_by_atomics[now.thread] || before.atomic;
    if (before.thread == now.thread || before.phase != now.phase) return true;
    return before.thread / 32 == now.thread / 32 && before.warp_phase != now.warp_phase;
}
static void race(const Access& before, const Access& now, const Place& place, const char* first, const char* second) {
    char more[256];
    snprintf(more, sizeof more, "first=%s\tsecond=%s\tother_code=%ld\tother_thread=%u\tother_block=%u", first, second,
             code_offset(before.code), before.thread, before.block);
    once("race", now.code, before.code, place.array, (long)place.offset, more);
}

enum Kind { READ, WRITE, ATOMIC };
static void touch(const Place& place, Kind kind, const Access& now) {
    Shadow& s = *place.shadow;
    if (place.shared) {  // what an earlier block left there is gone
        if (s.write.block != now.block) s.write.valid = s.pending = false;
        if (s.read.block != now.block) s.read.valid = s.other_read.valid = false;
        if (kind != WRITE && (!s.write.valid || s.pending))
            once(s.pending ? "pending" : "unwritten", now.code, nullptr, place.array, (long)place.offset, "");
    }
    const bool both_atomic = kind == ATOMIC && s.write.atomic;
    if (s.write.valid && !both_atomic && !ordered(s.write, now)) race(s.write, now, place, "write", kind == READ ? "read" : "write");
    if (kind != READ) {
        for (const Access* read : {&s.read, &s.other_read})
            if (read->valid && !(kind == ATOMIC && read->atomic) && !ordered(*read, now)) race(*read, now, place, "read", "write");
        s.write = now;
    }
    if (kind != WRITE) {
        const bool together = s.read.valid && s.read.block == now.block && s.read.phase == now.phase;
        if (together && s.read.thread != now.thread) s.other_read = now;
        else if (!together) s.read = now, s.other_read.valid = false;
    }
}

static void access(const void* address, size_t bytes, Kind kind, const void* code) {
    if (!fibre_now) return;
    const char* p = (const char*)address;
    Place place = {};
    if (p >= job.arena && p < job.arena + job.arena_bytes) {
        place.array = array_at(job.arrays, job.array_count, p);
        place.shadow = global_shadow + (p - job.arena);
    } else if (p >= tilelab_dynamic_shared && p < tilelab_dynamic_shared + 256 * 1024) {
        dynamic_array.bytes = job.dynamic_bytes;
        place.array = &dynamic_array;
        place.shadow = dynamic_shadow + (p - tilelab_dynamic_shared);
        place.shared = true;
    } else if (p >= job.shared_begin && p < job.shared_end) {
        place.array = array_at(job.shared, job.shared_count, p);
        place.shadow = static_shadow + (p - job.shared_begin);
        place.shared = true;
        if (!place.array) return;  // padding between arrays; -fsanitize=bounds speaks of those
    } else {
        return;  // a local variable, or wild: then the access crashes and is reported as that
    }
    const Array* array = place.array ? place.array : nearest(p);
    const long offset = array ? p - array->begin : 0;
    char more[64];
    snprintf(more, sizeof more, "access=%s\tbytes=%zu\tlength=%zu", kind == READ ? "read" : kind == WRITE ? "write" : "atomic", bytes, array ? array->bytes : 0);
    if (!place.array || offset + bytes > array->bytes) {
        once("bounds", code, nullptr, array, offset, more);
        return;
    }
    if (bytes <= 16 && (uintptr_t)p % bytes) once("misaligned", code, nullptr, array, offset, more);
    place.offset = (size_t)offset;
    const unsigned thread = fibre_number();
    const Access now = {block_number(), phase, warp_phase[thread / 32], (uint16_t)thread, kind == ATOMIC, true, code};
    if (kind == ATOMIC && !place.shared) ordered_by_atomics[thread] = true;
    for (size_t i = 0; i < bytes; ++i, ++place.shadow) touch(place, kind, now);
}

static void mark_pending(const void* address, size_t bytes, bool pending) {
    const char* p = (const char*)address;
    Shadow* shadow = nullptr;
    if (p >= tilelab_dynamic_shared && p < tilelab_dynamic_shared + 256 * 1024)
        shadow = dynamic_shadow + (p - tilelab_dynamic_shared);
    else if (p >= job.shared_begin && p < job.shared_end)
        shadow = static_shadow + (p - job.shared_begin);
    for (size_t i = 0; shadow && i < bytes; ++i) shadow[i].pending = pending;
}
// A copy writes at any time between its start and the wait for it: both count as writes.
void check_copy_issued(void* to, const void* from, size_t bytes, size_t read, const void* code) {
    if (read) access(from, read, READ, code);
    access(to, bytes, WRITE, code);
    mark_pending(to, bytes, true);
}
void check_copy_arrived(void* to, size_t bytes, const void* code) {
    mark_pending(to, bytes, false);
    access(to, bytes, WRITE, code);
}

extern "C" {
// In the place of a code address: minus the line.
void tilelab_atomic(const volatile void* address, size_t bytes, int line) {
    access((const void*)address, bytes, ATOMIC, (const void*)-(intptr_t)line);
}

#define HOOK(n) \
    void __tsan_read##n(void* p) { access(p, n, READ, __builtin_return_address(0)); } \
    void __tsan_write##n(void* p) { access(p, n, WRITE, __builtin_return_address(0)); } \
    void __tsan_unaligned_read##n(void* p) { access(p, n, READ, __builtin_return_address(0)); } \
    void __tsan_unaligned_write##n(void* p) { access(p, n, WRITE, __builtin_return_address(0)); } \
    void __tsan_volatile_read##n(void* p) { access(p, n, READ, __builtin_return_address(0)); } \
    void __tsan_volatile_write##n(void* p) { access(p, n, WRITE, __builtin_return_address(0)); }
HOOK(1) HOOK(2) HOOK(4) HOOK(8) HOOK(16)
void __tsan_read_range(void* p, size_t n) { access(p, n, READ, __builtin_return_address(0)); }
void __tsan_write_range(void* p, size_t n) { access(p, n, WRITE, __builtin_return_address(0)); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void**) {}
void __tsan_vptr_update(void**, void*) {}

// -fsanitize=bounds,alignment
struct Source { const char* file; unsigned line, column; };
struct Type { uint16_t kind, info; char name[1]; };
struct OutOfBounds { Source source; const Type *array, *index; };
struct TypeMismatch { Source source; const Type* type; unsigned char log_alignment, kind; };
void __ubsan_handle_out_of_bounds(OutOfBounds* data, uintptr_t index) {
    char more[256];
    snprintf(more, sizeof more, "line=%u\tindex=%ld\ttype=%s", data->source.line, (long)(int)index, data->array->name);
    once("index", (const void*)data, nullptr, nullptr, 0, more);
}
void __ubsan_handle_type_mismatch_v1(TypeMismatch* data, uintptr_t pointer) {
    char more[256];
    snprintf(more, sizeof more, "line=%u\tbytes=%u\taddress=%lx\taccess=%s\ttype=%s", data->source.line, 1u << data->log_alignment,
             (unsigned long)pointer, data->kind == 1 ? "write" : "read", data->type->name);
    once("misaligned", (const void*)data, nullptr, array_at(job.arrays, job.array_count, (const char*)pointer), 0, more);
}
}
