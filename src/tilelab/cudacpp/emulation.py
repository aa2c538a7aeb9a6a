"""Emulation: a CUDA C++ kernel compiled for the CPU and run there, in a process of its own.

The header in ``emulator/include`` stands in for CUDA's; ``emulator/*.cpp`` is the runtime, built once for a machine.
A checked build lets the compiler report every access to the runtime, which then finds races, unwritten shared memory
and indices out of bounds.

What it does not find: writes past the end of a local array through a pointer, or from one ``__device__`` variable into
the next; a static shared array overrun by more than 16 KiB; a barrier inside a device function that two branches call;
a race that needs a path which this launch does not take; a missing ``__threadfence()`` between a write and the atomic
that announces it (threads here take turns, so nothing is ever reordered); blocks that meet at one atomic, where another
would be needed to order what they share (between blocks any two atomics count, within a block two of one address, as
locks need it). Where atomics alone kept accesses from racing, a second run goes through blocks and threads backwards.
Blocks run one after another, so one that waits for a later one never ends here. A thread that waits for
another's store through ``volatile`` gives way to the others after some milliseconds, and is reported as a race.
It reports as a race threads that store the same value. Lanes of a warp operation's mask that have ended count as having
left, as CUDA allows; taking a value from one of them is found. A thread that has returned is missed at a
``__syncthreads()`` that others still reach: that is reported, though GPUs from sm_70 on mostly let it pass.

Where arithmetic is not a GPU's: casts such as ``(int)3e9f``, ``(int)NAN`` and ``(unsigned)-1.f`` do what the CPU does
(a GPU saturates, and makes 0 of a NaN; ``__float2int_rn`` and its kind do so here too); shifts by the width or more
(a GPU gives 0, or the sign); ``x * x - y`` is rounded twice (a GPU fuses it into one rounding, unless
``__fmul_rn`` or ``--fmad=false`` forbids it).
"""

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilelab.cudacpp import guards
from tilelab.cudacpp.arguments import Argument, Array, store
from tilelab.cudacpp.errors import READING, KernelFault, LaunchError, brief
from tilelab.cudacpp.findings import Finding, read_report
from tilelab.cudacpp.host_build import Library, runtime
from tilelab.cudacpp.processes import Limits, Task, run
from tilelab.cudacpp.shared import dynamic_names
from tilelab.cudacpp.source import unset_arrays
from tilelab.hardware.limits import Capability, launch_problems

#: Seconds more that the process has, to say where it was.
GRACE = 2.0
ORDERS = ("forward", "reverse", "shuffled")


@dataclass(frozen=True)
class Emulation:
    """What a run left besides its arrays: what the kernel printed, and what the checker found."""

    printed: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class _Run(Emulation):
    """One process: also its memory at the end, and whether atomics alone kept some of its accesses from racing."""

    memory: bytes
    leaned: bool


def launch(
    library: Library,
    source: str,
    arguments: Sequence[Argument],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    dynamic_shared: int,
    chip: Capability,
    order: str = "forward",
    seed: int = 0,
    seconds: float = 60.0,
    twin: Library | None = None,
) -> Emulation:
    """Run a built kernel and write its arrays back.

    Parameters
    ----------
    library, source
        From :func:`build`, and what it was built from.
    arguments
        From :func:`tilelab.cudacpp.arguments.bind`.
    grid, block, dynamic_shared
        The launch.
    chip
        Whose limits hold.
    order, seed
        In which order the threads of a block take their turns: ``forward``, ``reverse`` (and so do the blocks) or
        ``shuffled`` (by ``seed``). A right kernel does not notice.
    seconds
        After so long the process is ended.
    twin
        The same kernel built with zeros in local variables that nobody sets: where its results differ, the kernel
        reads such variables.

    Raises
    ------
    LaunchError
        The launch is beyond the limits of ``chip``; nothing has run.
    KernelFault
        The kernel crashed, did not end, met a barrier that some thread does not reach, or wrote outside its arrays.
    """
    problems = launch_problems(chip, grid, block, library.static_shared, dynamic_shared)
    threads = block[0] * block[1] * block[2]
    if not problems and 0 < library.most_threads < threads:
        problems = [
            f"{threads} threads a block, but the kernel is declared with __launch_bounds__({library.most_threads})"
        ]
    if problems:
        raise LaunchError("; ".join(problems))
    if order not in ORDERS:
        raise LaunchError(f"order {order!r} is none of {', '.join(ORDERS)}")
    if not isinstance(seed, int):
        raise LaunchError(f"seed is {brief(seed)}; a whole number is needed")
    if not isinstance(seconds, int | float) or not seconds > 0:
        raise LaunchError(f"seconds is {brief(seconds)}; a number above 0 is needed")
    arrays = [argument for argument in arguments if isinstance(argument, Array)]
    memory, offsets = guards.lay_out(arrays)
    job = [
        "grid {} {} {}".format(*grid),
        "block {} {} {}".format(*block),
        f"dynamic {dynamic_shared}",
        *(f"array {at} {a.bytes} {a.itemsize} {(a.name or '?')[:63]}" for a, at in zip(arrays, offsets, strict=True)),
    ]
    for argument in arguments:
        if isinstance(argument, Array):
            job.append(f"pointer {arrays.index(argument)}")
        else:
            job.append(f"value {int.from_bytes(argument.packed, 'little'):x}")

    def go(library: Library, order: str, seconds: float) -> _Run:
        ordered = [f"order {ORDERS.index(order)} {seed % 2**32}", *job]
        return _run(library, source, ordered, memory, grid, block, seconds)

    start = time.monotonic()
    done = go(library, order, seconds)
    findings, after = done.findings, done.memory
    if not findings:
        guards.look(memory, after, arrays, offsets)
    if twin and not findings:
        findings = _unset_arrays(source, after, go(twin, order, seconds).memory)
    if done.leaned and not findings:
        # What one order of turns put behind an atomic, another may not.
        taken = time.monotonic() - start
        findings = _races(go, library, "forward" if order == "reverse" else "reverse", min(seconds, 2 * taken + 2))
    for array, at in zip(arrays, offsets, strict=True):
        content = after[at : at + array.bytes]
        if content != memory[at : at + array.bytes]:
            store(array, content)
    return Emulation(done.printed, findings)


def _races(
    go: Callable[[Library, str, float], _Run], library: Library, order: str, seconds: float
) -> tuple[Finding, ...]:
    """The races that show with another order of turns; what else goes wrong there may be the order's own fault."""
    try:
        findings: Sequence[object] = go(library, order, seconds).findings
    except KernelFault as fault:
        findings = fault.findings
    return tuple(one for one in findings if isinstance(one, Finding) and one.kind == "race")


def _run(
    library: Library,
    source: str,
    job: Sequence[str],
    memory: bytes,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    seconds: float,
) -> _Run:
    """One process, to its end. Raises what stopped it."""
    token = secrets.token_hex(16)
    lines = [
        f"checked {int(library.checked)}",
        f"views {len(dynamic_names(source))}",
        f"token {token}",
        f"seconds {seconds:g}",
        *(f"shared {offset} {size} {name}" for name, offset, size in library.shared),
        *(f"device {offset} {size} {name}" for name, offset, size in library.device),
        *(f"constant {offset} {size} {name}" for name, offset, size in library.constants),
        *job,
    ]
    files = {"runtime": runtime(), "kernel.so": library.code, "job": "\n".join(lines).encode(), "memory": bytes(memory)}
    # The runtime ends it in time and says where it was; unless the kernel keeps it from doing so.
    done = run(Task(["./runtime"], files, ["memory", "report"], Limits(seconds=seconds + GRACE)))
    report = done.files.get("report", b"").decode(errors="replace")
    try:
        findings = (
            *(Finding.unset(line, name, source) for line, name in library.unset),
            *read_report(report, library.code, source, block, grid),
        )
    except READING:  # only a kernel that writes into what is not its own leaves a report that cannot be read
        raise KernelFault("the kernel disturbed the emulator's own record of what it did") from None
    if done.timed_out:
        raise KernelFault(f"the kernel did not end within {seconds:g} s: look for a loop whose end is never reached")
    if any(finding.fatal for finding in findings) or (findings and not library.checked):
        # What came before says why it stopped, where both happened at one line.
        stopped = next((finding.line for finding in findings if finding.fatal), 0)
        ended = not any(finding.kind == "endless" for finding in findings)
        before = [one for one in findings if ended and not one.fatal and one.line == stopped]
        shown = before[:1] or [finding for finding in findings if finding.fatal] or findings
        raise KernelFault(str(shown[0]), findings)
    if done.code:
        raise KernelFault(f"the emulator ended with code {done.code}: {done.stderr.strip()[:400] or 'no word said'}")
    if f"finished\ttoken={token}\n" not in report:
        raise KernelFault(
            "the kernel ended the whole process before all its threads were done: a kernel cannot call exit() or its "
            "kind; a thread ends with return"
        )
    if len(done.files.get("memory", b"")) != len(memory):
        raise KernelFault("the kernel took away the memory that its arrays lie in")
    return _Run(done.stdout, findings, done.files["memory"], "\nleaned\n" in report)


def _unset_arrays(source: str, nonsense: bytes, zeros: bytes) -> tuple[Finding, ...]:
    """What it means that the results are not the same with nonsense and with zeros in local variables."""
    if nonsense == zeros:
        return ()
    return tuple(Finding.unset(line, name, source) for line, name in unset_arrays(source))
