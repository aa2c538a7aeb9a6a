// What a kernel's process may ask of the system: next to nothing. A kernel computes; what it says goes to its output.
#include "runtime.h"

#if defined(__x86_64__)
#include <errno.h>
#include <fcntl.h>
#include <initializer_list>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static sock_filter code[128];
static unsigned short count;
static void add(unsigned short what, unsigned value, unsigned char yes = 0, unsigned char no = 0) {
    code[count++] = {what, yes, no, value};
}
static void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset); }
static void answer_if(unsigned number, unsigned answer) {
    add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
    add(BPF_RET | BPF_K, answer);
}
static const unsigned NO = SECCOMP_RET_ERRNO | EPERM, YES = SECCOMP_RET_ALLOW;
static size_t argument(int i) { return offsetof(seccomp_data, args) + 8 * (size_t)i; }

// A call whose argument must be one of some numbers.
static void only_for(unsigned number, int which, const int* values, int many) {
    add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, (unsigned char)(2 + 2 * many));
    load(argument(which));
    for (int i = 0; i < many; ++i) answer_if((unsigned)values[i], YES);
    add(BPF_RET | BPF_K, NO);
}

void confine(int report, bool loaded) {
    count = 0;
    load(offsetof(seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    load(offsetof(seccomp_data, nr));
    const int outputs[] = {1, 2, report};
    only_for(SYS_write, 0, outputs, 3);
    only_for(SYS_writev, 0, outputs, 3);
    for (unsigned number : {SYS_exit, SYS_exit_group, SYS_futex, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap,
                            SYS_madvise, SYS_brk, SYS_sigaltstack, SYS_rt_sigaction, SYS_rt_sigprocmask,
                            SYS_rt_sigreturn, SYS_gettid, SYS_getpid, SYS_tgkill, SYS_fstat, SYS_newfstatat, SYS_close,
                            SYS_clock_gettime, SYS_getrandom})
        answer_if(number, YES);
    if (!loaded) {  // the filter for the time after forbids these, and the next one too
        for (unsigned number : {SYS_read, SYS_pread64, SYS_lseek, SYS_prctl, SYS_seccomp, SYS_getcwd, SYS_readlink})
            answer_if(number, YES);
        add(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 4);
        load(argument(2));
        add(BPF_JMP | BPF_JSET | BPF_K, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0, 1);
        add(BPF_RET | BPF_K, NO);
        add(BPF_RET | BPF_K, YES);
    }
    add(BPF_RET | BPF_K, NO);
    const sock_fprog program = {count, code};
    // Where a system has no such filters, its sandbox has none either, and nothing is graded there.
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
#else
void confine(int, bool) {}
#endif
