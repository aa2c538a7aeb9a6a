// What the compiler calls: the part of check.cpp that answers in the sanitizers' place.
extern "C" {
// In the place of a code address: minus the line.
void tilelab_atomic(const volatile void* address, size_t bytes, int line, bool swap) {
    access((const void*)address, bytes, swap ? SWAP : ATOMIC, (const void*)-(intptr_t)line);
}

#define HERE __builtin_return_address(0)
// A thread that reads one place again and again waits for another's store.
static void waited_for(const void* place) {
    static const void* last;
    static unsigned times;
    times = place == last ? times + 1 : 0;
    last = place;
    if (fibre_now && (others_turn || times > 1000)) times = 0, give_turn();
}
#define HOOK(n) \
    void __tsan_read##n(void* p) { \
        access(p, n, READ, HERE); \
        waited_for(p); \
    } \
    void __tsan_write##n(void* p) { access(p, n, WRITE, HERE); } \
    void __tsan_unaligned_read##n(void* p) { access(p, n, READ, HERE); } \
    void __tsan_unaligned_write##n(void* p) { access(p, n, WRITE, HERE); } \
    void __tsan_volatile_read##n(void* p) { access(p, n, READ, HERE); } \
    void __tsan_volatile_write##n(void* p) { access(p, n, WRITE, HERE); }
HOOK(1) HOOK(2) HOOK(4) HOOK(8) HOOK(16)
void __tsan_read_range(void* p, size_t n) { access(p, n, READ, HERE); }
void __tsan_write_range(void* p, size_t n) { access(p, n, WRITE, HERE); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void**) {}
void __tsan_vptr_update(void**, void*) {}

// The compiler's own atomic operations (__atomic_fetch_add and its kind): one thread runs at a time, so plain ones do.
#define UPDATE(bits, T, name, expression) \
    T __tsan_atomic##bits##_##name(volatile T* p, T v, int) { \
        access((const void*)p, sizeof *p, ATOMIC, HERE); \
        const T old = *p; \
        *p = (T)(expression); \
        return old; \
    }
#define ATOMICS(bits, T) \
    T __tsan_atomic##bits##_load(const volatile T* p, int) { access((const void*)p, sizeof *p, ATOMIC, HERE); return *p; } \
    void __tsan_atomic##bits##_store(volatile T* p, T v, int) { access((const void*)p, sizeof *p, ATOMIC, HERE); *p = v; } \
    UPDATE(bits, T, exchange, v) UPDATE(bits, T, fetch_add, old + v) UPDATE(bits, T, fetch_sub, old - v) \
    UPDATE(bits, T, fetch_and, old & v) UPDATE(bits, T, fetch_or, old | v) UPDATE(bits, T, fetch_xor, old ^ v) \
    UPDATE(bits, T, fetch_nand, ~(old & v)) \
    T __tsan_atomic##bits##_compare_exchange_val(volatile T* p, T due, T v, int, int) { \
        access((const void*)p, sizeof *p, ATOMIC, HERE); \
        const T old = *p; \
        if (old == due) *p = v; \
        return old; \
    } \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile T* p, T* due, T v, int, int) { \
        access((const void*)p, sizeof *p, ATOMIC, HERE); \
        const T old = *p; \
        if (old == *due) { *p = v; return 1; } \
        *due = old; \
        return 0; \
    } \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile T* p, T* due, T v, int a, int b) { \
        return __tsan_atomic##bits##_compare_exchange_strong(p, due, v, a, b); \
    }
ATOMICS(8, uint8_t) ATOMICS(16, uint16_t) ATOMICS(32, uint32_t) ATOMICS(64, uint64_t)
void __tsan_atomic_thread_fence(int) {}
void __tsan_atomic_signal_fence(int) {}

// -fsanitize=bounds,alignment
struct Source { const char* file; unsigned line, column; };
struct Type { uint16_t kind, info; char name[1]; };
struct OutOfBounds { Source source; const Type *array, *index; };
struct TypeMismatch { Source source; const Type* type; unsigned char log_alignment, kind; };
void __ubsan_handle_out_of_bounds(OutOfBounds* data, uintptr_t index) {
    if (said("index", code_of(data), 0)) return;
    finding("index", -(long)data->source.line, "index=%ld\ttype=%s", (long)(int)index, data->array->name);
}
void __ubsan_handle_type_mismatch_v1(TypeMismatch* data, uintptr_t pointer) {
    char more[256];
    snprintf(more, sizeof more, "bytes=%u\taccess=%s\ttype=%s", 1u << data->log_alignment,
             data->kind == 1 ? "write" : "read", data->type->name);
    once("misaligned", -(int)data->source.line, 0, locate((const char*)pointer), more);
}
}
