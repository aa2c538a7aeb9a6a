// What the parts of the emulator know of each other. See include/tilelab_cuda.h for what a kernel sees.
#pragma once
#include <stddef.h>
#include <stdint.h>

struct Index { unsigned x, y, z; };
// The same memory as TilelabThread in tilelab_cuda.h.
struct Thread { Index thread, block, block_dim, grid_dim; };
// The same as TilelabAt.
struct At { int line, number; };

struct Array { char name[64]; char* begin; size_t bytes, element; bool constant; };
// Arrays of one kind, and the memory from the first to the last of them.
struct Arrays {
    Array list[256];
    int count;
    char *begin, *end;
    bool holds(const char* p) const { return p >= begin && p < end; }
};

struct Job {
    unsigned grid[3], block[3], dynamic_bytes, order_seed;
    int order;  // 0 forward, 1 reverse (blocks too), 2 shuffled
    bool checked;
    bool views;  // several names stand for dynamic shared memory
    char token[64];  // what the report of a run that reached its end closes with
    char* library;   // where kernel.so lies
    const char *code_begin, *code_end;  // its instructions
    double seconds;  // after so long the kernel counts as endless
    Arrays given;    // the arguments, in the file "memory"
    Arrays shared;   // static __shared__
    Arrays device;   // __device__ and __constant__ variables
    size_t moat;     // bytes on both sides of the arguments that nobody may touch
};
extern Job job;
static const size_t DYNAMIC_MOST = 256 * 1024;
extern "C" char tilelab_dynamic_shared[];

struct Fibre;
extern Fibre* fibre_now;
void go_on_as(unsigned thread);  // whom a finding speaks of
unsigned fibre_number();  // x + y * dim.x + z * dim.x * dim.y
unsigned block_number();
extern unsigned phase;         // barriers that the block has passed
extern unsigned warp_phase[];  // warp operations that each warp has passed

void start_clock();
// Whether a thread has run for long, and it is the others' turn: it may wait for one of them without saying so.
extern volatile bool others_turn;
void give_turn();

// job.cpp
void read_job();
extern void (*entry)(void**);        // the kernel: it takes
extern void* argument_pointers[64];  // a pointer to each argument
char* constants_now();
void look_at_constants(const char* before);  // a finding for each that is no longer as it was

// report.cpp
[[noreturn]] void give_up(const char* format, ...);
[[noreturn]] void stop_at(int line, const char* format, ...);
// `code` is an offset in kernel.so, or minus a line of the source, or 0.
void finding(const char* kind, long code, const char* format, ...);
void finished(bool leaned);
int open_report();
bool reporting();  // right now

// confine.cpp
// From here on this process only computes and writes to its output and the report; until it is called the second time,
// with `loaded`, it may also open files to read them, as the loader does.
void confine(int report, bool loaded);
long code_offset(const void* code);  // of a return address

// check.cpp
void check_start();
bool check_leaned();  // whether atomics alone kept some accesses from being races
void check_block_start();
void check_block_end();
void check_barrier();
void check_warp(unsigned warp);
void check_absent(At at, int lane);
void check_copy_issued(void* to, const void* from, size_t bytes, size_t read, const void* code);
void check_copy_arrived(void* to, const void* from, size_t bytes, size_t read, const void* code);
void check_copy_dropped(void* to, const void* from, size_t bytes, size_t read);
// "array=…\toffset=…\telement=…\tlength=…" of what lies at an address or nearest to it; empty where nothing is near.
void describe(char* text, size_t room, const void* address);
