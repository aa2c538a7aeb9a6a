// Runs one launch of a kernel: block after block, the threads of a block as fibres.
//
//     runtime            in a folder with kernel.so, job (text) and memory (the arrays, with guards between them)
//
// Writes memory back in place, and a report. Exit code 0: ran to the end; 3: stopped, the report says why.
#include "runtime.h"

#include <dlfcn.h>
#include <initializer_list>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static const size_t GUARD = 4096;                 // below each stack, for nobody
static const size_t STACK = GUARD + 128 * 1024;  // frames over 96 KiB are refused when the kernel is compiled
static char* stacks;
static const int POISON = 0xff;  // a NaN in every float format, -1 in every integer
static const size_t BEYOND = 4096;   // behind a block's dynamic shared memory, poisoned too

unsigned phase;
unsigned warp_phase[32];
alignas(1024) char tilelab_dynamic_shared[DYNAMIC_MOST + BEYOND];

// Device code has new and delete.
void* operator new(size_t bytes) { return malloc(bytes); }
void* operator new[](size_t bytes) { return malloc(bytes); }
void operator delete(void* p) noexcept { free(p); }
void operator delete[](void* p) noexcept { free(p); }
void operator delete(void* p, size_t) noexcept { free(p); }
void operator delete[](void* p, size_t) noexcept { free(p); }

// ---- fibres
enum State { READY, AT_BARRIER, AT_WARP, AT_ACTIVE, DONE };
struct Copy { void* to; const void* from; size_t bytes, zeros; const void* code; unsigned group; };
struct Fibre {
    Thread where;
    void* stack_pointer;
    ucontext_t* context;
    State state;
    At at;
    int vote, predicate;
    unsigned mask, waited;
    uint64_t value;
    // Asynchronous copies, oldest first; a commit closes a group.
    unsigned copy_count, groups;
    Copy copies[256];
};
static Fibre* fibres;
Fibre* fibre_now;
static unsigned thread_count, block_now;
static int vote_result;
extern "C" { const Thread* tilelab_now; }

unsigned fibre_number() { return (unsigned)(fibre_now - fibres); }
unsigned block_number() { return block_now; }
void go_on_as(unsigned thread) { fibre_now = fibres + thread; }
static unsigned lanes_of(unsigned warp) { return thread_count - warp * 32 < 32 ? thread_count - warp * 32 : 32; }

static void resume_scheduler();
static void fibre_main() {
    entry(argument_pointers);
    fibre_now->state = DONE;
    resume_scheduler();
    abort();  // a finished fibre is never resumed
}

#if defined(__x86_64__)
// Saves the callee's registers on this stack, changes stacks, and restores the other one's.
asm(".text\n.type tilelab_switch,@function\ntilelab_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");
extern "C" void tilelab_switch(void** save, void* next);
static void* scheduler_stack;
static void resume_scheduler() { tilelab_switch(&fibre_now->stack_pointer, scheduler_stack); }
static void resume(Fibre* fibre) { tilelab_switch(&scheduler_stack, fibre->stack_pointer); }
static void prepare(Fibre* fibre, char* stack) {
    void** top = (void**)(stack + STACK);
    *--top = nullptr;  // keeps the stack as a call would leave it: 16-byte aligned before the return address
    *--top = (void*)fibre_main;
    top -= 6;
    fibre->stack_pointer = top;
}
#else
static ucontext_t scheduler_context;
static void resume_scheduler() { swapcontext(fibre_now->context, &scheduler_context); }
static void resume(Fibre* fibre) { swapcontext(&scheduler_context, fibre->context); }
static void prepare(Fibre* fibre, char* stack) {
    if (!fibre->context) fibre->context = new ucontext_t;
    getcontext(fibre->context);
    fibre->context->uc_stack.ss_sp = stack;
    fibre->context->uc_stack.ss_size = STACK;
    fibre->context->uc_link = nullptr;
    makecontext(fibre->context, fibre_main, 0);
}
#endif

// ---- what the kernel calls
static void thread_text(char* text, const Fibre* f) {
    sprintf(text, "(%u,%u,%u)", f->where.thread.x, f->where.thread.y, f->where.thread.z);
}

static bool same(At a, At b) { return a.line == b.line && a.number == b.number; }

extern "C" int tilelab_barrier(At at, int vote, int predicate) {
    Fibre* f = fibre_now;
    f->state = AT_BARRIER, f->at = at, f->vote = vote, f->predicate = predicate;
    resume_scheduler();
    return vote_result;
}

struct Warp { uint64_t values[32]; unsigned present; int lane; };
static Warp warps[32];
extern "C" const Warp* tilelab_warp(At at, unsigned mask, uint64_t value) {
    Fibre* f = fibre_now;
    const unsigned lane = fibre_number() & 31;
    if (!(mask >> lane & 1)) stop_at(at.line, "lane %u runs a warp operation whose mask 0x%08x leaves it out", lane, mask);
    f->state = AT_WARP, f->at = at, f->mask = mask, f->value = value;
    resume_scheduler();
    return &warps[fibre_number() / 32];
}

// Active together are the lanes that come to one place: each waits until no other of its warp can come any more.
extern "C" unsigned tilelab_active(At at) {
    Fibre* f = fibre_now;
    f->state = AT_ACTIVE, f->at = at, f->waited = 0;
    resume_scheduler();
    return f->mask;
}

// Behind every atomic it is the others' turn: some may wait for just this one, and who is not kept away may come between.
extern "C" void tilelab_turn() {
    if (fibre_now) resume_scheduler();
}

// The clock: a kernel that does not end is told where it is, and a thread that waits for another's store without any
// barrier or atomic gives way after a while, as it would on a GPU.
static const int TICK = 2;            // milliseconds, or what the system makes of them
static const unsigned PATIENCE = 10;  // ticks that a thread may run on, until the first one of the block was stopped
static volatile unsigned ticks, turn_began;
static double started;
static double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
static volatile bool was_stopped;
volatile bool others_turn;
extern "C" { volatile int tilelab_updating; }  // within an atomic nobody else may come in between
static const void* instruction(void* context) {
#if defined(__x86_64__)
    return (void*)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
#else
    return nullptr;
#endif
}
static bool of_kernel(const void* code) { return code >= job.code_begin && code < job.code_end; }
// Whether it is the learner's: not of our header, whose lines nobody wants to see.
static bool of_learner(const void* code) {
    Dl_info info;
    return of_kernel(code) && (!dladdr(code, &info) || !info.dli_sname || !strstr(info.dli_sname, "tilelab_"));
}
// The instruction behind the one that the learner's code is at, or that called what is at work now.
static const void* place_in_kernel(void* context) {
    const void* const code = instruction(context);
    if (of_learner(code)) return (const char*)code + 1;
#if defined(__x86_64__)
    const char* top = (char*)((ucontext_t*)context)->uc_mcontext.gregs[REG_RSP];
    if (!fibre_now) return nullptr;
    const char* const begin = stacks + fibre_number() * STACK;
    if (top < begin || top >= begin + STACK) top = (char*)fibre_now->stack_pointer;  // between two turns
    for (; top + sizeof(void*) <= begin + STACK; top += sizeof(void*))
        if (of_learner(*(void* const*)top)) return *(void* const*)top;
#endif
    return nullptr;
}
static void ticked(int, siginfo_t*, void* context) {
    ++ticks;
    if (job.seconds && now() - started >= job.seconds) {
        if (reporting()) return;  // at the next tick, then
        finding("endless", code_offset(place_in_kernel(context)), "seconds=%g", job.seconds);
        fflush(stdout);
        _exit(3);
    }
    if (!fibre_now || ticks - turn_began < (was_stopped ? 1 : PATIENCE)) return;
    others_turn = true;
    if (of_kernel(instruction(context)) && !tilelab_updating) give_turn();
}
void start_clock() {
    started = now();
    struct sigaction action = {};
    action.sa_sigaction = ticked;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;  // it may go on in another fibre, and be asked there again
    sigaction(SIGALRM, &action, nullptr);
    const itimerval often = {{0, TICK * 1000}, {0, TICK * 1000}};
    setitimer(ITIMER_REAL, &often, nullptr);
}
void give_turn() {
    others_turn = false, was_stopped = true;
    resume_scheduler();
}

extern "C" void tilelab_absent(At at, int lane) { check_absent(at, lane); }
extern "C" void tilelab_trap(int line) { stop_at(line, "__trap() was called"); }
extern "C" void tilelab_assert(int line, const char* what) { stop_at(line, "assert(%s) failed", what); }

extern "C" void tilelab_copy_async(void* to, const void* from, size_t bytes, size_t zeros) {
    Fibre* f = fibre_now;
    const void* code = __builtin_return_address(0);
    if ((bytes != 4 && bytes != 8 && bytes != 16) || zeros > bytes)
        give_up("__pipeline_memcpy_async moves 4, 8 or 16 bytes and zeroes at most as many, not %zu and %zu", bytes, zeros);
    for (const void* end : {(const void*)to, from}) {
        if ((end == from && zeros == bytes) || (uintptr_t)end % bytes == 0) continue;
        char where[160];
        describe(where, sizeof where, end);
        finding("misaligned", code_offset(code), "bytes=%zu\taccess=copy\t%s", bytes, where);
    }
    if (f->copy_count == 256) give_up("more than 256 asynchronous copies of one thread are in flight: wait for some");
    check_copy_issued(to, from, bytes, bytes - zeros, code);
    f->copies[f->copy_count++] = {to, from, bytes, zeros, code, f->groups};
}
extern "C" void tilelab_copy_commit() { ++fibre_now->groups; }
extern "C" void tilelab_copy_wait(unsigned newest_left) {
    Fibre* f = fibre_now;
    unsigned done = 0;
    for (; done < f->copy_count && f->copies[done].group + newest_left < f->groups; ++done) {
        const Copy& c = f->copies[done];
        check_copy_arrived(c.to, c.from, c.bytes, c.bytes - c.zeros, c.code);
        memset(c.to, 0, c.bytes);
        memcpy(c.to, c.from, c.bytes - c.zeros);
    }
    memmove(f->copies, f->copies + done, (f->copy_count - done) * sizeof *f->copies);
    f->copy_count -= done;
}

// ---- the scheduler
static bool release_warp(unsigned warp) {
    Fibre* f = fibres + warp * 32;
    const unsigned lanes = lanes_of(warp);
    for (unsigned leader = 0; leader < lanes; ++leader) {
        if (f[leader].state != AT_WARP) continue;
        // Everyone in the leader's mask who still runs must have come, to the same line.
        unsigned present = 0;
        bool all = true;
        for (unsigned lane = 0; lane < lanes; ++lane) {
            if (!(f[leader].mask >> lane & 1) || f[lane].state == DONE) continue;
            all &= f[lane].state == AT_WARP && same(f[lane].at, f[leader].at) && f[lane].mask == f[leader].mask;
            present |= 1u << lane;
        }
        if (!all) continue;
        // One group at a time: its lanes read the values before another group may overwrite them.
        warps[warp].present = present;
        for (unsigned lane = 0; lane < lanes; ++lane)
            if (present >> lane & 1) warps[warp].values[lane] = f[lane].value;
        for (unsigned lane = 0; lane < lanes; ++lane)
            if (present >> lane & 1) f[lane].state = READY;
        ++warp_phase[warp];
        check_warp(warp);
        return true;
    }
    return false;
}

// Lanes that go on and on may be waiting for just these, at a lock for one.
static const unsigned LONG = 1000;  // turns
static bool release_active(unsigned warp) {
    Fibre* f = fibres + warp * 32;
    const unsigned lanes = lanes_of(warp);
    bool others = false, any = false;
    for (unsigned lane = 0; lane < lanes; ++lane) others |= f[lane].state == READY;
    for (unsigned lane = 0; lane < lanes; ++lane) {
        if (f[lane].state != AT_ACTIVE || (others && ++f[lane].waited < LONG)) continue;
        unsigned mask = 0;
        for (unsigned i = lane; i < lanes; ++i)
            if (f[i].state == AT_ACTIVE && same(f[i].at, f[lane].at)) mask |= 1u << i;
        for (unsigned i = lane; i < lanes; ++i)
            if (mask >> i & 1) f[i].mask = mask, f[i].state = READY;
        any = true;
    }
    return any;
}

static void release_barrier() {
    const Fibre* first = fibres;
    while (first->state != AT_BARRIER) ++first;
    int count = 0, all = 1, any = 0;
    for (unsigned i = 0; i < thread_count; ++i) {
        const Fibre& f = fibres[i];
        if (f.state != AT_BARRIER || !same(f.at, first->at)) {
            char missing[64], waiting[64];
            thread_text(missing, &f), thread_text(waiting, first);
            fibre_now = nullptr;
            finding("divergence", 0, "missing=%s\twaiting=%s\tline=%d\tother=%d\tat=%s", missing, waiting, first->at.line,
                    f.state == DONE ? 0 : f.at.line, f.state == AT_WARP ? "warp" : "block");
            give_up("divergence");
        }
        count += f.predicate, all &= f.predicate, any |= f.predicate;
    }
    vote_result = first->vote == 1 ? count : first->vote == 2 ? all : any;
    for (unsigned i = 0; i < thread_count; ++i) fibres[i].state = READY;
    ++phase;
    check_barrier();
}

// Nobody runs, nobody waits for the block: some lanes of a warp wait for others that wait elsewhere.
[[noreturn]] static void stuck() {
    for (unsigned i = 0; i < thread_count; ++i) {
        const Fibre& f = fibres[i];
        if (f.state != AT_WARP) continue;
        for (unsigned lane = 0; lane < lanes_of(i / 32); ++lane) {
            const Fibre& other = fibres[i / 32 * 32 + lane];
            if (!(f.mask >> lane & 1) || other.state == DONE || (same(other.at, f.at) && other.mask == f.mask)) continue;
            char who[64], missing[64];
            thread_text(who, &f), thread_text(missing, &other);
            fibre_now = nullptr;
            stop_at(f.at.line, "thread %s waits for the lanes of mask 0x%08x, but thread %s waits at line %d%s", who, f.mask,
                    missing, other.at.line, other.at.line == f.at.line ? ", at another operation or with another mask" : "");
        }
    }
    give_up("all threads wait, and nobody knows for what");
}

static unsigned order_of[1024];
static void set_order() {
    for (unsigned i = 0; i < thread_count; ++i) order_of[i] = job.order == 1 ? thread_count - 1 - i : i;
    if (job.order != 2) return;
    for (unsigned i = thread_count - 1; i > 0; --i) {
        job.order_seed = job.order_seed * 1664525u + 1013904223u;
        const unsigned j = (job.order_seed >> 8) % (i + 1), kept = order_of[i];
        order_of[i] = order_of[j], order_of[j] = kept;
    }
}

static void run_block(Index block) {
    for (int i = 0; i < job.shared.count; ++i) memset(job.shared.list[i].begin, POISON, job.shared.list[i].bytes);
    memset(tilelab_dynamic_shared, POISON, job.dynamic_bytes + BEYOND);
    phase = 0, was_stopped = false;
    memset(warp_phase, 0, sizeof warp_phase);
    check_block_start();
    set_order();
    for (unsigned i = 0; i < thread_count; ++i) {
        Fibre& f = fibres[i];
        f.where.block = block;
        f.state = READY, f.copy_count = f.groups = 0;
        prepare(&f, stacks + i * STACK);
    }
    for (;;) {
        bool ran = false, alive = false;
        for (unsigned i = 0; i < thread_count; ++i) {
            Fibre& f = fibres[order_of[i]];
            if (f.state != READY) continue;
            fibre_now = &f, tilelab_now = &f.where, turn_began = ticks, others_turn = false;
            resume(&f);
            ran = true;
        }
        for (unsigned warp = 0; warp * 32 < thread_count; ++warp) ran |= release_warp(warp) || release_active(warp);
        for (unsigned i = 0; i < thread_count; ++i) alive |= fibres[i].state != DONE;
        if (!alive) break;
        if (!ran) {
            bool at_barrier = false;
            for (unsigned i = 0; i < thread_count; ++i) at_barrier |= fibres[i].state == AT_BARRIER;
            if (at_barrier) { release_barrier(); continue; }
            stuck();
        }
    }
    for (unsigned i = 0; i < thread_count; ++i)
        for (const Copy *c = fibres[i].copies, *end = c + fibres[i].copy_count; c < end; ++c)
            check_copy_dropped(c->to, c->from, c->bytes, c->bytes - c->zeros);
    check_block_end();
    const char* const end = tilelab_dynamic_shared + job.dynamic_bytes;
    if (!job.checked && (*end != (char)POISON || memcmp(end, end + 1, BEYOND - 1))) {
        fibre_now = nullptr;
        finding("beyond", 0, "length=%u", job.dynamic_bytes);
        give_up("beyond");
    }
}

// ---- start and end
// Whether an address is that of a small negative index which was taken for an unsigned one.
static bool wrapped(char* text, size_t room, const char* p) {
    for (const Arrays* arrays : {&job.given, &job.device, &job.shared})
        for (int i = 0; i < arrays->count; ++i) {
            const Array& one = arrays->list[i];
            const size_t size = one.element > 1 ? one.element : 4, index = (size_t)(p - one.begin) / size;
            if (p < one.begin || index >> 32 || index >> 20 != 0xfff) continue;
            snprintf(text, room, "array=%s\twrapped=%zu", one.name, index);
            return true;
        }
    return false;
}
static void crashed(int signal, siginfo_t* info, void* context) {
    char where[160];
    describe(where, sizeof where, info->si_addr);
    if (!where[0]) wrapped(where, sizeof where, (const char*)info->si_addr);
    const size_t in_stacks = (size_t)((char*)info->si_addr - stacks);
    const bool guard = in_stacks < thread_count * STACK && in_stacks % STACK < GUARD;
    // Below its own stack it went too deep; the guard above is that of the next one.
    const int overflow = !guard ? 0 : fibre_now && in_stacks / STACK != fibre_number() ? 2 : 1;
    // Addresses that no load or store may have (a misaligned vector, for one) come without the address.
    finding("crash", code_offset(place_in_kernel(context)), "signal=%d\taddress=%lx\tbarred=%d\toverflow=%d\t%s", signal,
            (unsigned long)info->si_addr, signal == SIGSEGV && info->si_code == SI_KERNEL, overflow, where);
    fflush(stdout);
    _exit(3);
}

int main() {
    read_job();
    thread_count = job.block[0] * job.block[1] * job.block[2];
    if (thread_count < 1 || thread_count > 1024 || job.dynamic_bytes > DYNAMIC_MOST)
        give_up("the launch is beyond every GPU's limits");
    fibres = (Fibre*)calloc(thread_count, sizeof(Fibre));
    for (unsigned i = 0; i < thread_count; ++i) {
        const Index thread = {i % job.block[0], i / job.block[0] % job.block[1], i / job.block[0] / job.block[1]};
        fibres[i].where.thread = thread;
        fibres[i].where.block_dim = {job.block[0], job.block[1], job.block[2]};
        fibres[i].where.grid_dim = {job.grid[0], job.grid[1], job.grid[2]};
    }
    const size_t all_stacks = thread_count * STACK;
    stacks = (char*)mmap(nullptr, all_stacks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (unsigned i = 0; i < thread_count; ++i) mprotect(stacks + i * STACK, GUARD, PROT_NONE);
    stack_t other = {malloc(65536), 0, 65536};
    sigaltstack(&other, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = crashed;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &action, nullptr);
    check_start();
    const char* const constants = constants_now();
    const auto [wide, high, deep] = job.grid;
    const size_t blocks = (size_t)wide * high * deep;
    for (size_t turn = 0; turn < blocks; ++turn) {
        block_now = (unsigned)(job.order == 1 ? blocks - 1 - turn : turn);
        run_block({block_now % wide, block_now / wide % high, block_now / wide / high});
    }
    fibre_now = nullptr;
    if (!job.checked) look_at_constants(constants);
    fflush(stdout);
    finished(check_leaned());
    return 0;
}
