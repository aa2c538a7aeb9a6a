"""What the compiler made of a kernel: registers, shared bytes, spills, and its machine code line by line."""

import contextlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from tilelab.cudacpp import device, nvcc
from tilelab.cudacpp.errors import BuildError
from tilelab.cudacpp.kernel import Kernel
from tilelab.cudacpp.processes import Task, run
from tilelab.cudacpp.source import excerpt


def resources(kernel: Kernel, arch: str = "sm_90") -> nvcc.Resources:
    """What a kernel takes on an architecture.

    From ``nvcc``'s assembler where it is installed, else from the driver of the GPU at hand (which does not tell
    spills apart: there ``spill_loads`` and ``spill_stores`` are 0 and ``stack`` is local bytes).

    Raises
    ------
    BuildError
        Neither is there, or the source does not compile.
    """
    try:
        nvcc.find()
    except BuildError:
        reason = device.gpu_missing()
        if reason:
            raise BuildError(
                f"a kernel's registers are known to nvcc or to a GPU, and neither is here: {reason}"
            ) from None
        loaded = device.load(kernel)
        return nvcc.Resources(loaded.registers, loaded.static_shared, 0, 0, loaded.local)
    built = nvcc.compile_cubin(kernel.source, arch, kernel.macros, kernel.options)
    return built.resources[device.symbol(kernel.name, list(built.resources))]


@dataclass(frozen=True)
class LineCode:
    """The machine instructions that come from one line of a source."""

    line: int
    text: str
    instructions: tuple[str, ...]

    @property
    def mix(self) -> dict[str, int]:
        """How often each instruction occurs, by its first word."""
        counts: dict[str, int] = {}
        for instruction in self.instructions:
            word = re.sub(r"^@!?U?P\w+\s+", "", instruction).split()[0].rstrip(";")
            counts[word] = counts.get(word, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: -item[1]))


def disassembler() -> str:
    """Path of ``nvdisasm``.

    Raises
    ------
    BuildError
        It is not installed; it comes with the CUDA toolkit and with the wheel ``triton``.
    """
    found = shutil.which("nvdisasm")
    if found is None:
        with contextlib.suppress(BuildError):
            found = shutil.which("nvdisasm", path=str(Path(nvcc.find()).parent))
    if found is None:
        raise BuildError("machine code is read with nvdisasm, which is not here: install the CUDA toolkit's nvdisasm")
    return found


def sass(kernel: Kernel, arch: str = "sm_90") -> list[LineCode]:
    """Machine code of a kernel, gathered by source line.

    Raises
    ------
    BuildError
        ``nvcc`` or ``nvdisasm`` is missing, or the source does not compile.
    """
    program = disassembler()
    built = nvcc.compile_cubin(kernel.source, arch, kernel.macros, kernel.options)
    done = run(Task([program, "--print-line-info", "kernel.cubin"], {"kernel.cubin": built.code}))
    if done.code:
        raise BuildError(f"nvdisasm failed: {done.stderr.strip()[:300]}", done.stderr)
    return parse_sass(done.stdout, kernel.source, device.symbol(kernel.name, list(built.resources)))


def parse_sass(listing: str, source: str, symbol: str) -> list[LineCode]:
    """Read ``nvdisasm --print-line-info``: instructions of one kernel, by the learner's line they come from."""
    by_line: dict[int, list[str]] = {}
    line, inside = 0, False
    for text in listing.splitlines():
        section = re.search(r"\.section\s+\.text\.(\S+?),", text)
        if section:
            inside, line = section[1] == symbol, 0
        marker = re.search(r'//## File "([^"]+)", line (\d+)(.*)', text)
        if marker:
            # Of inlined code the innermost line comes first; the learner's file is the one that counts.
            line = int(marker[2]) if marker[1].endswith("kernel.cu") else line
        instruction = re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.+?)\s*;?\s*(?:/\*.*)?$", text)
        if inside and instruction:
            by_line.setdefault(line, []).append(instruction[1].rstrip(" ;"))
    return [LineCode(n, excerpt(source, n), tuple(found)) for n, found in sorted(by_line.items())]
