// Runs one launch of a kernel: block after block, the threads of a block as fibres.
//
//     runtime            in a folder with kernel.so, job (text) and memory (the arrays, with guards between them)
//
// Writes memory back in place, and a report. Exit code 0: ran to the end; 3: stopped, the report says why.
#include "runtime.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <initializer_list>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

static const size_t STACK = 128 * 1024;  // frames over 96 KiB are refused when the kernel is compiled
static const int POISON = 0xff;  // a NaN in every float format, -1 in every integer

Job job;
unsigned phase;
unsigned warp_phase[32];
alignas(1024) char tilelab_dynamic_shared[256 * 1024];

// ---- fibres
enum State { READY, AT_BARRIER, AT_WARP, DONE };
struct Copy { void* to; const void* from; size_t bytes, zeros; const void* code; unsigned group; };
struct Fibre {
    Thread where;
    void* stack_pointer;
    ucontext_t* context;
    State state;
    int line, vote, predicate;
    unsigned mask;
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
static unsigned lanes_of(unsigned warp) { return thread_count - warp * 32 < 32 ? thread_count - warp * 32 : 32; }

static void (*entry)(void**);
static void* argument_pointers[64];

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

extern "C" int tilelab_barrier(int line, int vote, int predicate) {
    Fibre* f = fibre_now;
    f->state = AT_BARRIER, f->line = line, f->vote = vote, f->predicate = predicate;
    resume_scheduler();
    return vote_result;
}

struct Warp { uint64_t values[32]; unsigned present; int lane; };
static Warp warps[32];
extern "C" const Warp* tilelab_warp(int line, unsigned mask, uint64_t value) {
    Fibre* f = fibre_now;
    const unsigned lane = fibre_number() & 31;
    if (!(mask >> lane & 1)) {
        give_up("line %d: lane %u runs a warp operation whose mask 0x%08x leaves it out", line, lane, mask);
    }
    f->state = AT_WARP, f->line = line, f->mask = mask, f->value = value;
    resume_scheduler();
    return &warps[fibre_number() / 32];
}

extern "C" unsigned tilelab_active() {
    const unsigned warp = fibre_number() / 32;
    unsigned mask = 0;
    for (unsigned lane = 0; lane < lanes_of(warp); ++lane)
        if (fibres[warp * 32 + lane].state != DONE) mask |= 1u << lane;
    return mask;
}

extern "C" void tilelab_trap(int line) { give_up("line %d: __trap() was called", line); }

extern "C" void tilelab_copy_async(void* to, const void* from, size_t bytes, size_t zeros) {
    Fibre* f = fibre_now;
    if ((bytes != 4 && bytes != 8 && bytes != 16) || zeros > bytes)
        give_up("__pipeline_memcpy_async moves 4, 8 or 16 bytes and zeroes at most as many, not %zu and %zu", bytes, zeros);
    if ((uintptr_t)to % bytes || (zeros < bytes && (uintptr_t)from % bytes))
        finding("misaligned", __builtin_return_address(0), "bytes=%zu\taccess=copy", bytes);
    if (f->copy_count == 256) give_up("more than 256 asynchronous copies of one thread are in flight: wait for some");
    check_copy_issued(to, from, bytes, bytes - zeros, __builtin_return_address(0));
    f->copies[f->copy_count++] = {to, from, bytes, zeros, __builtin_return_address(0), f->groups};
}
extern "C" void tilelab_copy_commit() { ++fibre_now->groups; }
extern "C" void tilelab_copy_wait(unsigned newest_left) {
    Fibre* f = fibre_now;
    unsigned done = 0;
    for (; done < f->copy_count && f->copies[done].group + newest_left < f->groups; ++done) {
        const Copy& c = f->copies[done];
        check_copy_arrived(c.to, c.bytes, c.code);
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
            all &= f[lane].state == AT_WARP && f[lane].line == f[leader].line && f[lane].mask == f[leader].mask;
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
        return true;
    }
    return false;
}

static void release_barrier() {
    const Fibre* first = fibres;
    while (first->state != AT_BARRIER) ++first;
    int count = 0, all = 1, any = 0;
    for (unsigned i = 0; i < thread_count; ++i) {
        const Fibre& f = fibres[i];
        if (f.state != AT_BARRIER || f.line != first->line) {
            char missing[64], waiting[64];
            thread_text(missing, &f), thread_text(waiting, first);
            fibre_now = nullptr;
            finding("divergence", nullptr, "missing=%s\twaiting=%s\tline=%d\tother=%d", missing, waiting, first->line,
                    f.state == DONE ? 0 : f.line);
            give_up("divergence");
        }
        count += f.predicate, all &= f.predicate, any |= f.predicate;
    }
    vote_result = first->vote == 1 ? count : first->vote == 2 ? all : any;
    for (unsigned i = 0; i < thread_count; ++i) fibres[i].state = READY;
    ++phase;
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

static void run_block(Index block, char* stacks) {
    for (int i = 0; i < job.shared_count; ++i) memset(job.shared[i].begin, POISON, job.shared[i].bytes);
    memset(tilelab_dynamic_shared, POISON, job.dynamic_bytes);
    phase = 0;
    memset(warp_phase, 0, sizeof warp_phase);
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
            fibre_now = &f, tilelab_now = &f.where;
            resume(&f);
            ran = true;
        }
        for (unsigned warp = 0; warp * 32 < thread_count; ++warp) ran |= release_warp(warp);
        for (unsigned i = 0; i < thread_count; ++i) alive |= fibres[i].state != DONE;
        if (!alive) return;
        if (!ran) {
            bool at_barrier = false;
            for (unsigned i = 0; i < thread_count; ++i) at_barrier |= fibres[i].state == AT_BARRIER;
            if (at_barrier) { release_barrier(); continue; }
            char who[64];
            for (unsigned i = 0; i < thread_count; ++i)
                if (fibres[i].state == AT_WARP) {
                    thread_text(who, &fibres[i]);
                    give_up("thread %s waits at line %d for lanes of mask 0x%08x that never come", who, fibres[i].line, fibres[i].mask);
                }
        }
    }
}

// ---- start and end
static void crashed(int signal, siginfo_t* info, void* context) {
#if defined(__x86_64__)
    const void* code = (void*)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
#else
    const void* code = nullptr;
#endif
    finding("crash", (const char*)code + 1, "signal=%d\taddress=%lx", signal, (unsigned long)info->si_addr);
    fflush(stdout);
    _exit(3);
}

static void read_job() {
    FILE* file = fopen("job", "r");
    if (!file) give_up("there is no job file");
    char key[32];
    char* base = nullptr;
    void* library = dlopen("./kernel.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) give_up("%s", dlerror());
    entry = (void (*)(void**))dlsym(library, "tilelab_entry");
    Dl_info info;
    if (!entry || !dladdr((void*)entry, &info)) give_up("the library has no kernel");
    base = (char*)info.dli_fbase;
    static uint64_t scalars[64];
    int arguments = 0;
    unsigned long a, b, c;
    while (fscanf(file, "%31s", key) == 1) {
        int read = 0;
        if (!strcmp(key, "grid")) read = fscanf(file, "%u %u %u", job.grid, job.grid + 1, job.grid + 2) == 3;
        if (!strcmp(key, "block")) read = fscanf(file, "%u %u %u", job.block, job.block + 1, job.block + 2) == 3;
        if (!strcmp(key, "dynamic")) read = fscanf(file, "%u", &job.dynamic_bytes) == 1;
        if (!strcmp(key, "order")) read = fscanf(file, "%d %u", &job.order, &job.order_seed) == 2;
        if (!strcmp(key, "array") && job.array_count < 64) {
            Array& array = job.arrays[job.array_count++];
            read = fscanf(file, "%lu %lu %lu %63s", &a, &b, &c, array.name) == 4;
            array.begin = (char*)a, array.bytes = b, array.element = c;
        }
        if (!strcmp(key, "shared") && job.shared_count < 128) {
            Array& array = job.shared[job.shared_count++];
            read = fscanf(file, "%lu %lu %63s", &a, &b, array.name) == 3;
            array.begin = base + a, array.bytes = b, array.element = 1;
            if (!job.shared_begin || array.begin < job.shared_begin) job.shared_begin = array.begin;
            if (array.begin + b > job.shared_end) job.shared_end = array.begin + b;
        }
        if (!strcmp(key, "value") && arguments < 64) {
            read = fscanf(file, "%lx", &a) == 1;
            scalars[arguments] = a, argument_pointers[arguments] = &scalars[arguments], ++arguments;
        }
        if (!strcmp(key, "pointer") && arguments < 64) {  // to the array of that number, or nowhere
            long which;
            read = fscanf(file, "%ld", &which) == 1;
            scalars[arguments] = which < 0 ? ~0ul : (uint64_t)which, argument_pointers[arguments++] = nullptr;
        }
        if (!read) give_up("the job file has a bad line at %s", key);
    }
    fclose(file);
    const int memory = open("memory", O_RDWR);
    struct stat status;
    if (memory < 0 || fstat(memory, &status)) give_up("there is no memory file");
    job.arena_bytes = (size_t)status.st_size;
    job.arena = (char*)mmap(nullptr, job.arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (job.arena == MAP_FAILED) give_up("the memory file cannot be mapped");
    for (int i = 0; i < job.array_count; ++i) job.arrays[i].begin = job.arena + (size_t)job.arrays[i].begin;
    for (int i = 0; i < arguments; ++i)
        if (!argument_pointers[i]) {
            scalars[i] = scalars[i] == ~0ul ? 0 : (uint64_t)job.arrays[scalars[i]].begin;
            argument_pointers[i] = &scalars[i];
        }
}

int main() {
    read_job();
    thread_count = job.block[0] * job.block[1] * job.block[2];
    if (thread_count < 1 || thread_count > 1024 || job.dynamic_bytes > sizeof tilelab_dynamic_shared)
        give_up("the launch is beyond every GPU's limits");
    fibres = (Fibre*)calloc(thread_count, sizeof(Fibre));
    for (unsigned i = 0; i < thread_count; ++i) {
        const Index thread = {i % job.block[0], i / job.block[0] % job.block[1], i / job.block[0] / job.block[1]};
        fibres[i].where.thread = thread;
        fibres[i].where.block_dim = {job.block[0], job.block[1], job.block[2]};
        fibres[i].where.grid_dim = {job.grid[0], job.grid[1], job.grid[2]};
    }
    const size_t all_stacks = thread_count * STACK;
    char* stacks = (char*)mmap(nullptr, all_stacks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    stack_t other = {malloc(65536), 0, 65536};
    sigaltstack(&other, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = crashed;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &action, nullptr);
    check_start();
    for (unsigned z = 0; z < job.grid[2]; ++z)
        for (unsigned y = 0; y < job.grid[1]; ++y)
            for (unsigned x = 0; x < job.grid[0]; ++x, ++block_now) run_block({x, y, z}, stacks);
    fflush(stdout);
    return 0;
}
