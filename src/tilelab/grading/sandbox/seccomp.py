"""The system calls that learner-written code does not get.

Namespaces already hide files, processes and the network. This filter closes what they leave open: making further
namespaces, socket families that no network namespace covers (vsock reaches the host of a virtual machine), memory that
no limit counts, and calls with a long record of kernel bugs that no homework needs.

The filter is classic BPF over ``struct seccomp_data`` (Linux, Documentation/userspace-api/seccomp_filter.rst).
"""

import platform
import struct
from errno import ENOSYS, EPERM

from tilelab.grading.sandbox.errors import SandboxError

# Offsets into struct seccomp_data: nr, arch, instruction_pointer (8 bytes), args[6] (8 bytes each, low word first).
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
X86_64 = 0xC000003E
X32_BIT = 0x40000000

LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL = 0x7FFF0000, 0x80000000

#: Refused with "not permitted". Numbers are those of x86-64 (arch/x86/entry/syscalls/syscall_64.tbl).
FORBIDDEN = {
    # namespaces and mounts
    "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "mount_setattr": 442, "open_tree_attr": 467,
    # other processes
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "pidfd_getfd": 438, "process_madvise": 440,
    # kernel keys, programs and counters
    "add_key": 248, "request_key": 249, "keyctl": 250, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
    "fanotify_init": 300, "open_by_handle_at": 304, "syslog": 103,
    # memory that outlives its process, or that nothing counts
    "shmget": 29, "msgget": 68, "semget": 64, "mq_open": 240, "memfd_secret": 447,
    # the machine itself
    "init_module": 175, "finit_module": 313, "delete_module": 176, "kexec_load": 246, "kexec_file_load": 320,
    "reboot": 169, "swapon": 167, "swapoff": 168, "acct": 163, "iopl": 172, "ioperm": 173, "quotactl": 179,
    "quotactl_fd": 443, "settimeofday": 164, "clock_settime": 227, "adjtimex": 159, "clock_adjtime": 305,
    "sethostname": 170, "setdomainname": 171, "vhangup": 153,
}  # fmt: skip

#: Refused with "no such call", so that libraries take the older way they know.
ABSENT = {"clone3": 435, "memfd_create": 319, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427}

CLONE, SOCKET = 56, 41
#: Any of CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET (time namespaces need unshare or clone3).
NEW_NAMESPACE = 0x20000 | 0x2000000 | 0x4000000 | 0x8000000 | 0x10000000 | 0x20000000 | 0x40000000
#: AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: the families that a network namespace contains.
CONTAINED_FAMILIES = (1, 2, 10, 16)


def refuse(error: int) -> int:
    """Return the filter's verdict that makes a call fail with an errno."""
    return 0x00050000 | error


def program() -> bytes:
    """Return the filter as an array of ``struct sock_filter``, ready for ``bwrap --seccomp``.

    Raises
    ------
    SandboxError
        On a machine that is not x86-64, whose system calls have other numbers.
    """
    if platform.machine() != "x86_64":
        raise SandboxError(f"the sandbox needs Linux on x86-64, this machine is {platform.machine()}")
    code: list[tuple[int, int, int, int]] = []

    def verdict_if(test: int, value: int, verdict: int) -> None:
        code.extend([(test, 0, 1, value), (RETURN, 0, 0, verdict)])

    code.append((LOAD, 0, 0, ARCHITECTURE))
    code.extend([(JUMP_EQUAL, 1, 0, X86_64), (RETURN, 0, 0, KILL)])
    code.append((LOAD, 0, 0, NUMBER))
    verdict_if(JUMP_AT_LEAST, X32_BIT, KILL)
    for number in FORBIDDEN.values():
        verdict_if(JUMP_EQUAL, number, refuse(EPERM))
    for number in ABSENT.values():
        verdict_if(JUMP_EQUAL, number, refuse(ENOSYS))
    # clone: only without a flag that makes a namespace
    code.extend([(JUMP_EQUAL, 0, 4, CLONE), (LOAD, 0, 0, FIRST_ARGUMENT)])
    verdict_if(JUMP_ANY_BIT, NEW_NAMESPACE, refuse(EPERM))
    code.append((RETURN, 0, 0, ALLOW))
    # socket: only families that the network namespace contains
    code.extend([(JUMP_EQUAL, 0, 2 + 2 * len(CONTAINED_FAMILIES), SOCKET), (LOAD, 0, 0, FIRST_ARGUMENT)])
    for family in CONTAINED_FAMILIES:
        verdict_if(JUMP_EQUAL, family, ALLOW)
    code.append((RETURN, 0, 0, refuse(EPERM)))
    code.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
