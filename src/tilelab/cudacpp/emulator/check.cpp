// The checking mode: every load and store of the kernel calls in here.
//
// The kernel is compiled with -fsanitize=thread and -fsanitize=bounds,alignment, which put a call before each access
// and each index of an array with known bounds. Those calls are usually answered by the sanitizers' libraries; here
// hooks.h answers them, for this file knows what a barrier is. It keeps the last write and the last reads of every byte.
#include "runtime.h"

#include <initializer_list>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct Access {
    unsigned block, phase, warp_phase;
    unsigned atomics;  // global atomics of all threads before it
    int code;          // offset in kernel.so, or minus a line
    uint16_t thread;
    bool atomic, valid;
};
// Of accesses that do not exclude one another, as many as are needed to find one that a later access races with.
struct Kept {
    Access last;
    Access other;    // by another thread than last, in the same phase; of another warp if there is any
    Access foreign;  // by another block than last
};
struct Shadow {
    Access write;
    Access plain_write;  // the last one that was no atomic, where atomics came after it
    Kept reads, atomics;
    uint16_t copies_to, copies_from;  // asynchronous copies under way
};
static Shadow *given_shadow, *static_shadow, *dynamic_shadow, *device_shadow;

template <class T> static T* zeroed(size_t count) {
    void* memory = mmap(nullptr, count * sizeof(T) + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) give_up("the arrays are too large to check (%zu elements): check on smaller ones", count);
    return (T*)memory;
}

// ---- what orders blocks: global atomics, and nothing else
// Of each block the number of its latest atomic: what it did before that, others may rely on who met it by an atomic.
static unsigned atomics, *latest_atomic;
static size_t blocks;
static bool met[1024];  // the thread, or one it waited for at a barrier, has met other blocks by an atomic

void check_start() {
    if (!job.checked) return;
    given_shadow = zeroed<Shadow>((size_t)(job.given.end - job.given.begin));
    static_shadow = zeroed<Shadow>((size_t)(job.shared.end - job.shared.begin));
    device_shadow = zeroed<Shadow>((size_t)(job.device.end - job.device.begin));
    dynamic_shadow = zeroed<Shadow>(DYNAMIC_MOST);
    blocks = (size_t)job.grid[0] * job.grid[1] * job.grid[2];
    latest_atomic = zeroed<unsigned>(blocks);
}
void check_block_start() { memset(met, 0, sizeof met); }
static void share(unsigned from, unsigned end) {
    bool any = false;
    for (unsigned i = from; i < end; ++i) any |= met[i];
    if (any) memset(met + from, 1, end - from);
}
void check_barrier() { share(0, 1024); }
void check_warp(unsigned warp) { share(warp * 32, warp * 32 + 32); }

// ---- what an address means
struct Place {
    Shadow* shadow;  // of that byte; none where the kernel may not go
    const Array* array;
    long offset;  // bytes from the start of the array
    bool shared;
};
static Array dynamic_array = {"dynamic shared memory", tilelab_dynamic_shared, 0, 1};

// The array that holds an address, or else the one that ends closest before it or starts closest after it.
static const Array* nearest(const Arrays& arrays, const char* p) {
    const Array* best = nullptr;
    size_t best_distance = ~(size_t)0;
    for (int i = 0; i < arrays.count; ++i) {
        const Array& a = arrays.list[i];
        const size_t distance = p < a.begin ? (size_t)(a.begin - p) : p < a.begin + a.bytes ? 0 : (size_t)(p - a.begin) - a.bytes + 1;
        if (distance < best_distance) best = &a, best_distance = distance;
    }
    return best;
}
static bool inside(const Array* array, const char* p) { return array && p >= array->begin && p < array->begin + array->bytes; }

// Where an address lies; without an array for a thread's own memory, or where nothing is near.
static Place locate(const char* p) {
    const size_t beyond = 16 * 1024;  // behind the last static shared array, as behind all others
    Place place = {};
    if (p >= job.given.begin - job.moat && p < job.given.end + job.moat) {
        place.array = nearest(job.given, p);
        if (inside(place.array, p)) place.shadow = given_shadow + (p - job.given.begin);
    } else if (p >= tilelab_dynamic_shared && p < tilelab_dynamic_shared + DYNAMIC_MOST) {
        dynamic_array.bytes = job.dynamic_bytes;
        place.array = &dynamic_array, place.shared = true;
        if (inside(place.array, p)) place.shadow = dynamic_shadow + (p - tilelab_dynamic_shared);
    } else if (job.device.holds(p) && inside(nearest(job.device, p), p)) {
        place.array = nearest(job.device, p);
        if (place.array->name[0] == '-') return {};  // the compiler's own
        place.shadow = device_shadow + (p - job.device.begin);
    } else if (job.shared.count && p >= job.shared.begin && p < job.shared.end + beyond) {
        place.array = nearest(job.shared, p), place.shared = true;
        if (inside(place.array, p)) place.shadow = static_shadow + (p - job.shared.begin);
    }
    if (place.array) place.offset = p - place.array->begin;
    return place;
}

static void describe(char* text, size_t room, const Place& place) {
    text[0] = 0;
    if (place.array)
        snprintf(text, room, "array=%s\toffset=%ld\telement=%zu\tlength=%zu", place.array->name, place.offset,
                 place.array->element, place.array->bytes);
}
void describe(char* text, size_t room, const void* address) { describe(text, room, locate((const char*)address)); }

// ---- findings, each pair of lines once
static bool said(const char* kind, int code, int other) {
    static struct { const char* kind; int code, other; } seen[64];
    static int count;
    for (int i = 0; i < count; ++i)
        if (seen[i].kind == kind && seen[i].code == code && seen[i].other == other) return true;
    if (count == 64) return true;
    seen[count++] = {kind, code, other};
    return false;
}
static void once(const char* kind, int code, int other, const Place& place, const char* more) {
    if (said(kind, code, other)) return;
    char where[160];
    describe(where, sizeof where, place);
    finding(kind, code, "%s\t%s", where, more);
}

// ---- races
static bool ordered(const Access& before, const Access& now) {
    if (before.block != now.block) return met[now.thread] && latest_atomic[before.block] > before.atomics;
    if (before.thread == now.thread || before.phase != now.phase) return true;
    return before.thread / 32 == now.thread / 32 && before.warp_phase != now.warp_phase;
}
static void race(const Access& before, const Access& now, const Place& place, const char* first, const char* second) {
    char more[256];
    snprintf(more, sizeof more, "first=%s\tsecond=%s\tother_code=%d\tother_thread=%u\tother_block=%u", first, second,
             before.code, before.thread, before.block);
    once("race", now.code, before.code, place, more);
}

enum Kind { READ, WRITE, ATOMIC };
static const char* const verb[] = {"read", "write", "atomic"};

static void keep(Kept& kept, const Access& now) {
    Access& last = kept.last;
    if (last.valid && last.block != now.block) kept.foreign = last, last.valid = false;
    if (!last.valid || last.phase != now.phase) last = now, kept.other.valid = false;
    else if (last.thread != now.thread && (!kept.other.valid || last.thread / 32 != now.thread / 32)) kept.other = now;
}
static void against(const Kept& kept, const Access& now, const Place& place, Kind first, Kind second) {
    for (const Access* one : {&kept.last, &kept.other, &kept.foreign})
        if (one->valid && !ordered(*one, now)) race(*one, now, place, verb[first], verb[second]);
}

static void touch(const Place& place, Kind kind, const Access& now) {
    Shadow& s = *place.shadow;
    if (place.shared) {  // what an earlier block left there is gone
        if (s.write.block != now.block) s.write.valid = s.plain_write.valid = false;
        for (Kept* kept : {&s.reads, &s.atomics})
            if (kept->last.block != now.block) kept->last.valid = kept->other.valid = false;
        if (kind != WRITE && !s.write.valid && !s.copies_to) once("unwritten", now.code, 0, place, "");
    }
    if (s.copies_to || (s.copies_from && kind != READ)) {
        char more[64];
        snprintf(more, sizeof more, "access=%s\tend=%s", verb[kind], s.copies_to ? "to" : "from");
        once("pending", now.code, s.copies_to ? 1 : 2, place, more);
    }
    const bool both_atomic = kind == ATOMIC && s.write.atomic;
    if (s.write.valid && !both_atomic && !ordered(s.write, now)) race(s.write, now, place, verb[s.write.atomic ? ATOMIC : WRITE], verb[kind]);
    else if (s.plain_write.valid && !ordered(s.plain_write, now)) race(s.plain_write, now, place, "write", verb[kind]);
    if (kind != ATOMIC) against(s.atomics, now, place, ATOMIC, kind);
    if (kind != READ) {
        against(s.reads, now, place, READ, kind);
        if (kind == WRITE) s.plain_write.valid = false;
        else if (s.write.valid && !s.write.atomic) s.plain_write = s.write;
        s.write = now;
    }
    if (kind != WRITE) keep(kind == ATOMIC ? s.atomics : s.reads, now);
}

static int code_of(const void* code) {
    return (intptr_t)code < 0 ? (int)(intptr_t)code : (int)((const char*)code - job.library - 1);
}

static void access(const void* address, size_t bytes, Kind kind, const void* where) {
    if (!fibre_now || !job.checked) return;
    Place place = locate((const char*)address);
    if (!place.array) return;  // a local variable, or wild: then the access crashes and is reported as that
    const int code = code_of(where);
    if (!place.shadow || place.offset + (long)bytes > (long)place.array->bytes) {
        char more[64];
        snprintf(more, sizeof more, "access=%s\tbytes=%zu", verb[kind], bytes);
        once("bounds", code, 0, place, more);
        return;
    }
    if (bytes <= 16 && (uintptr_t)address % bytes) {
        char more[64];
        snprintf(more, sizeof more, "access=%s\tbytes=%zu", verb[kind], bytes);
        once("misaligned", code, 0, place, more);
    }
    const unsigned thread = fibre_number();
    const Access now = {block_number(), phase, warp_phase[thread / 32], atomics, code, (uint16_t)thread, kind == ATOMIC, true};
    for (size_t i = 0; i < bytes; ++i, ++place.shadow) touch(place, kind, now);
    // Only now: this atomic does not order itself behind what it races with.
    if (kind == ATOMIC && !place.shared) met[thread] = true, latest_atomic[now.block] = ++atomics;
}

// ---- asynchronous copies: they read and write at any time between their start and the wait for them
static void under_way(const void* address, size_t bytes, uint16_t Shadow::*count, int step) {
    const Place place = locate((const char*)address);
    for (size_t i = 0; place.shadow && i < bytes && place.offset + (long)i < (long)place.array->bytes; ++i)
        place.shadow[i].*count = (uint16_t)(place.shadow[i].*count + step);
}
void check_copy_issued(void* to, const void* from, size_t bytes, size_t read, const void* code) {
    if (!job.checked) return;
    if (read) access(from, read, READ, code);
    access(to, bytes, WRITE, code);
    under_way(to, bytes, &Shadow::copies_to, 1);
    under_way(from, read, &Shadow::copies_from, 1);
}
void check_copy_dropped(void* to, const void* from, size_t bytes, size_t read) {
    if (!job.checked) return;
    under_way(to, bytes, &Shadow::copies_to, -1);
    under_way(from, read, &Shadow::copies_from, -1);
}
void check_copy_arrived(void* to, const void* from, size_t bytes, size_t read, const void* code) {
    check_copy_dropped(to, from, bytes, read);
    if (read) access(from, read, READ, code);
    access(to, bytes, WRITE, code);
}

void check_absent(At at, int lane) {
    if (!job.checked || said("absent", at.line, at.number)) return;
    finding("absent", -(long)at.line, "lane=%d", lane);
}

#include "hooks.h"
