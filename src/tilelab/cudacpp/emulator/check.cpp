// The checking mode: every load and store of the kernel calls in here.
//
// The kernel is compiled with -fsanitize=thread and -fsanitize=bounds,alignment, which put a call before each access
// and each index of an array with known bounds. Those calls are usually answered by the sanitizers' libraries; here
// hooks.h answers them, for this file knows what a barrier is. It keeps the last write and the last reads of every word,
// or of every byte where a kernel goes by bytes.
#include "runtime.h"

#include <initializer_list>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct Access {
    unsigned block, phase, warp_phase;
    unsigned ticks;  // of our clock, before it
    int code;          // offset in kernel.so, or minus a line
    uint16_t thread;
    bool atomic : 1, valid : 1;
    bool read : 1;  // of a write: whether somebody has read since
};
// Of accesses that do not exclude one another, as many as are needed to find one that a later access races with.
struct Kept {
    Access last;
    Access other;    // by another thread than last, in the same phase; of another warp if there is any
    Access foreign;  // by another block than last
};
struct Record {
    Access write;
    Access plain_write;  // the last one that was no atomic, where atomics came after it
    Kept reads, atomics;
    uint16_t copies_to, copies_from;  // asynchronous copies under way
};
// For each 4 bytes of a memory the number of their record, twice; one more where it is the first of four, one a byte.
struct Notes {
    unsigned* words;
    const char* begin;
    unsigned* of(const char* p) const { return words + (p - begin) / 4; }
};
static Notes given_notes, static_notes, dynamic_notes, device_notes;
static Record* records;
static size_t record_count = 1, most_records;

// Memory that costs nothing until it is touched; none where there is no room for so much.
template <class T> static T* zeroed(size_t count) {
    void* memory = mmap(nullptr, count * sizeof(T) + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : (T*)memory;
}
template <class T> static T* needed(size_t count) {
    T* memory = zeroed<T>(count);
    if (!memory) give_up("there is no memory for checking arrays and a grid as large as these: check on smaller ones");
    return memory;
}
static Notes notes_on(const char* begin, const char* end) {
    const char* from = begin - (uintptr_t)begin % 4;
    return {needed<unsigned>((size_t)(end - from) / 4 + 1), from};
}

// ---- what orders threads besides barriers: atomics
// Our clock ticks at every atomic and every warp operation. Between blocks any two global atomics count: of each block
// the latest tick, for what it did before that, others may rely on who met it by an atomic.
static unsigned ticks, *latest_atomic;
static bool met[1024];  // the thread, or one it waited for at a barrier, has met other blocks by an atomic
// Within a block it has to be the same address. A row for each thread, one for each address (those of the same remainder
// share one): up to which tick of every thread what that thread did comes before.
static const size_t ROW = 1024, ADDRESSES = 4093;
static unsigned threads, *known, *left_at, warp_tick[32];
static bool learned[32];  // a thread of the warp knows what the others do not
static bool leaned;       // an access was no race because of atomics: with another order of turns it might be one

void check_start() {
    if (!job.checked) return;
    given_notes = notes_on(job.given.begin, job.given.end);
    static_notes = notes_on(job.shared.begin, job.shared.end);
    device_notes = notes_on(job.device.begin, job.device.end);
    dynamic_notes = notes_on(tilelab_dynamic_shared, tilelab_dynamic_shared + DYNAMIC_MOST);
    most_records = ((size_t)1280 << 20) / sizeof(Record);
    while (!(records = zeroed<Record>(most_records))) most_records /= 2;
    latest_atomic = needed<unsigned>((size_t)job.grid[0] * job.grid[1] * job.grid[2]);
    threads = job.block[0] * job.block[1] * job.block[2];
    known = needed<unsigned>(ROW * ROW), left_at = needed<unsigned>(ADDRESSES * ROW);
}
bool check_leaned() { return leaned; }
void check_block_start() { memset(met, 0, sizeof met); }
static void share(unsigned from, unsigned end) {
    bool any = false;
    for (unsigned i = from; i < end; ++i) any |= met[i];
    if (any) memset(met + from, 1, end - from);
}
void check_barrier() { share(0, 1024); }
static void join(unsigned* row, const unsigned* other) {
    for (unsigned i = 0; i < threads; ++i) row[i] = row[i] > other[i] ? row[i] : other[i];
}
void check_warp(unsigned warp) {
    share(warp * 32, warp * 32 + 32);
    if (!job.checked) return;
    warp_tick[warp] = ++ticks;
    if (!learned[warp]) return;
    learned[warp] = false;
    unsigned* first = known + warp * 32 * ROW;
    for (unsigned lane = 1; lane < 32; ++lane) join(first, first + lane * ROW);
    for (unsigned lane = 1; lane < 32; ++lane) memcpy(first + lane * ROW, first, threads * sizeof *first);
}
// A thread met others at an atomic: it knows what they knew, and who comes next knows what it did.
static void meet(const void* address, unsigned thread) {
    unsigned *own = known + thread * ROW, *place = left_at + (uintptr_t)address / 4 % ADDRESSES * ROW;
    const unsigned warp = thread / 32;
    for (unsigned i = warp * 32; i < warp * 32 + 32; ++i)
        if (own[i] < warp_tick[warp]) own[i] = warp_tick[warp];
    own[thread] = ++ticks;
    join(own, place);
    memcpy(place, own, threads * sizeof *own);
    learned[warp] = true;
}

// ---- what an address means
struct Place {
    const char* address;
    unsigned* notes;  // on the word it is in; none where the kernel may not go
    const Array* array;
    long offset;  // bytes from the start of the array
    bool shared;
};
static Array dynamic_array = {"dynamic shared memory", tilelab_dynamic_shared, 0, 1, false};

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
    place.address = p;
    if (p >= job.given.begin - job.moat && p < job.given.end + job.moat) {
        place.array = nearest(job.given, p);
        if (inside(place.array, p)) place.notes = given_notes.of(p);
    } else if (p >= tilelab_dynamic_shared && p < tilelab_dynamic_shared + DYNAMIC_MOST) {
        dynamic_array.bytes = job.dynamic_bytes;
        place.array = &dynamic_array, place.shared = true;
        if (inside(place.array, p)) place.notes = dynamic_notes.of(p);
    } else if (job.device.holds(p) && inside(nearest(job.device, p), p)) {
        place.array = nearest(job.device, p);
        if (place.array->name[0] == '-') return {};  // the compiler's own
        place.notes = device_notes.of(p);
    } else if (job.shared.count && p >= job.shared.begin && p < job.shared.end + beyond) {
        place.array = nearest(job.shared, p), place.shared = true;
        if (inside(place.array, p)) place.notes = static_notes.of(p);
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

// ---- records
static unsigned take(unsigned count) {
    const size_t first = record_count;
    if (first + count > most_records)
        give_up("the kernel uses more memory than the checker can keep records of, %zu bytes for each word: check it on smaller arrays",
                sizeof(Record));
    record_count += count;
    return (unsigned)first;
}
// The records of so many bytes: one a word, but one a byte of words that some access took a part of.
template <class F> static void each_record(const Place& place, size_t bytes, F use) {
    unsigned* notes = place.notes;
    unsigned byte = (uintptr_t)place.address % 4;
    for (size_t left = bytes; left; byte = 0, ++notes) {
        const unsigned here = left < 4 - byte ? (unsigned)left : 4 - byte;
        if (!*notes) *notes = here == 4 ? take(1) * 2 : take(4) * 2 + 1;
        if (here < 4 && !(*notes & 1)) {
            const unsigned whole = *notes / 2, first = take(4);
            for (unsigned i = 0; i < 4; ++i) records[first + i] = records[whole];
            *notes = first * 2 + 1;
        }
        if (*notes & 1) for (unsigned i = byte; i < byte + here; ++i) use(records[*notes / 2 + i]);
        else use(records[*notes / 2]);
        left -= here;
    }
}

// ---- races
static bool by_atomics(const Access& before, const Access& now) {
    const bool yes = before.block != now.block ? met[now.thread] && latest_atomic[before.block] > before.ticks
                                               : known[now.thread * ROW + before.thread] > before.ticks;
    leaned |= yes;
    return yes;
}
static bool ordered(const Access& before, const Access& now) {
    if (before.block != now.block) return by_atomics(before, now);
    if (before.thread == now.thread || before.phase != now.phase) return true;
    if (before.thread / 32 == now.thread / 32 && before.warp_phase != now.warp_phase) return true;
    return by_atomics(before, now);
}
enum Kind { READ, WRITE, ATOMIC, SWAP };  // SWAP: an atomicCAS
static const char* const verb[] = {"read", "write", "atomic", "atomic"};
struct Race { Access before, now; Place place; Kind first, second; };

static void report(const Race& r) {
    char more[256];
    snprintf(more, sizeof more, "first=%s\tsecond=%s\tother_code=%d\tother_thread=%u\tother_block=%u", verb[r.first],
             verb[r.second], r.before.code, r.before.thread, r.before.block);
    once("race", r.now.code, r.before.code, r.place, more);
}
// A plain read beside atomics may be the guess that a loop of atomicCAS begins with. The next one tells whether it held,
// so the race is reported only if that is not what the thread's next atomic is.
static struct Guess { bool made; Race race; } guesses[1024];
static void settle(Guess& guess, const char* swapped) {
    if (guess.made && guess.race.place.address != swapped) report(guess.race);
    guess.made = false;
}
void check_block_end() {
    for (unsigned thread = 0; thread < threads; ++thread)
        if (guesses[thread].made) go_on_as(thread), settle(guesses[thread], nullptr);
}
static void race(const Access& before, const Access& now, const Place& place, Kind first, Kind second) {
    const Race found = {before, now, place, first, second};
    Guess& guess = guesses[now.thread];
    if (second != READ || first != ATOMIC) return report(found);
    if (guess.made && guess.race.place.address != place.address) settle(guess, nullptr);
    guess = {true, found};
}
// Then nobody needs to mind the read itself.
static void forget_guess(Record& record, const Access& now) {
    for (Access* one : {&record.reads.last, &record.reads.other, &record.reads.foreign})
        if (one->thread == now.thread && one->block == now.block && one->phase == now.phase && one->ticks == now.ticks) one->valid = false;
}

static void keep(Kept& kept, const Access& now) {
    Access& last = kept.last;
    if (last.valid && last.block != now.block) kept.foreign = last, last.valid = false;
    if (!last.valid || last.phase != now.phase) last = now, kept.other.valid = false;
    else if (last.thread != now.thread && (!kept.other.valid || last.thread / 32 != now.thread / 32)) kept.other = now;
}
static void against(const Kept& kept, const Access& now, const Place& place, Kind first, Kind second) {
    for (const Access* one : {&kept.last, &kept.other, &kept.foreign})
        if (one->valid && !ordered(*one, now)) race(*one, now, place, first, second);
}

static void touch(Record& s, const Place& place, Kind kind, const Access& now) {
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
    // Written by the same thread a moment ago and read by no other: two names that stand for the same bytes, perhaps.
    const Access& w = s.write;
    if (job.views && kind == WRITE && place.array == &dynamic_array && w.valid && !w.read && w.thread == now.thread &&
        w.phase == now.phase) {
        char more[64];
        snprintf(more, sizeof more, "other_code=%d", w.code);
        once("overlap", now.code, w.code, place, more);
    }
    const bool both_atomic = kind == ATOMIC && s.write.atomic;
    if (s.write.valid && !both_atomic && !ordered(s.write, now)) race(s.write, now, place, s.write.atomic ? ATOMIC : WRITE, kind);
    else if (s.plain_write.valid && !ordered(s.plain_write, now)) race(s.plain_write, now, place, WRITE, kind);
    if (kind != ATOMIC) against(s.atomics, now, place, ATOMIC, kind);
    if (kind != READ) {
        against(s.reads, now, place, READ, kind);
        if (kind == WRITE) s.plain_write.valid = false;
        else if (s.write.valid && !s.write.atomic) s.plain_write = s.write;
        s.write = now;
    }
    if (kind != WRITE) s.write.read = true, keep(kind == ATOMIC ? s.atomics : s.reads, now);
}

static int code_of(const void* code) {
    return (intptr_t)code < 0 ? (int)(intptr_t)code : (int)((const char*)code - job.library - 1);
}

static void access(const void* address, size_t bytes, Kind kind, const void* where) {
    if (!fibre_now || !job.checked) return;
    const Place place = locate((const char*)address);
    if (!place.array) return;  // a local variable, or wild: then the access crashes and is reported as that
    const int code = code_of(where);
    if (!place.notes || place.offset + (long)bytes > (long)place.array->bytes) {
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
    const Access now = {block_number(), phase, warp_phase[thread / 32], ticks, code, (uint16_t)thread, kind >= ATOMIC, true};
    if (kind != READ && place.array->constant) once("constant", code, 0, place, "");
    if (kind >= ATOMIC) settle(guesses[thread], kind == SWAP ? place.address : nullptr);
    if (kind == SWAP) each_record(place, bytes, [&](Record& record) { forget_guess(record, now); });
    if (kind == SWAP) kind = ATOMIC;
    each_record(place, bytes, [&](Record& record) { touch(record, place, kind, now); });
    if (kind != ATOMIC) return;
    // Only now: this atomic does not order itself behind what it races with.
    meet(address, thread);
    if (!place.shared) met[thread] = true, latest_atomic[now.block] = ticks;
}

// ---- asynchronous copies: they read and write at any time between their start and the wait for them
static void under_way(const void* address, size_t bytes, uint16_t Record::*count, int step) {
    const Place place = locate((const char*)address);
    if (!place.notes) return;
    const size_t room = place.array->bytes - (size_t)place.offset;
    each_record(place, bytes < room ? bytes : room, [&](Record& one) { one.*count = (uint16_t)(one.*count + step); });
}
void check_copy_issued(void* to, const void* from, size_t bytes, size_t read, const void* code) {
    if (!job.checked) return;
    if (read) access(from, read, READ, code);
    access(to, bytes, WRITE, code);
    under_way(to, bytes, &Record::copies_to, 1);
    under_way(from, read, &Record::copies_from, 1);
}
void check_copy_dropped(void* to, const void* from, size_t bytes, size_t read) {
    if (!job.checked) return;
    under_way(to, bytes, &Record::copies_to, -1);
    under_way(from, read, &Record::copies_from, -1);
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
