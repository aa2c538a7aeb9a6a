"""Calls: a kernel is run once on fresh inputs in a fresh place, and all that it wrote is compared before it counts."""

import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tilelab.grading.errors import GradingError
from tilelab.grading.timed.arrays import STARTS, Arena, Shape
from tilelab.grading.timed.channel import Companion, Lost
from tilelab.grading.timed.enough import Effort
from tilelab.grading.timed.faults import CRASHES, in_words, is_a_kernels
from tilelab.grading.timed.players import Player, Refusal, Trouble, blame

_now = time.perf_counter


class Zero(NamedTuple):
    """Milliseconds of a kernel that does nothing: until it starts, and around it by its process's clock and by ours."""

    before: float
    wall: float
    outer: float


#: By how many milliseconds two batches of calls of it may differ; how many batches at most, and seconds between them.
ALIKE = Zero(0.005, 0.005, 0.05)
BATCHES, PAUSE = 12, 0.02


class Calls:
    """Has kernels called in their processes, and what they leave compared in another.

    Parameters
    ----------
    folder : path
        Where arenas go from the one to the other.
    comparer : callable
        Starts the process that compares.
    effort : Effort
        How long to wait.
    emulated : bool
        Whether a CPU stands in for the GPU.
    """

    def __init__(self, folder: Path, comparer: Callable[[], Companion], effort: Effort, emulated: bool) -> None:
        self._folder, self._start, self._effort, self._emulated = folder, comparer, effort, emulated
        self._comparer: Companion | None = comparer()
        self._zeros: dict[int, Zero] = {}

    @property
    def compares(self) -> Companion:
        """The process that compares, started again if need be."""
        if self._comparer is None:
            self._comparer = self._start()
        return self._comparer

    def end(self) -> None:
        """End the process that compares."""
        if self._comparer is not None:
            self._comparer.end()
        self._comparer = None

    def ask(
        self, companion: Companion, question: dict[str, Any], seconds: float | None = None, eager: bool = False
    ) -> dict[str, Any]:
        """Ask one of our own processes what only the device can spoil.

        Raises
        ------
        Trouble
            It did.
        """
        answer = companion.ask(question, seconds or self._effort.patience, eager)
        if fault := answer.get("fault"):
            raise Trouble(f"the device: {fault}")
        return answer

    def tell(self, player: Player, question: dict[str, Any], seconds: float, eager: bool = False) -> dict[str, Any]:
        """Ask a candidate's process what its kernel can spoil, too.

        Raises
        ------
        Refusal
            The kernel, or its launch, failed.
        Trouble
            The device failed, or a step of ours.
        """
        answer = player.worker.ask(question, seconds, eager)
        if fault := answer.get("fault"):
            if answer.get("ours", True) or not (self._emulated or is_a_kernels(fault)):
                raise Trouble(f"the device: {fault}")
            raise Refusal(in_words(fault), player.name)
        return answer

    def zero(self, worker: Companion) -> None:
        """Learn what starting and waiting cost by a worker's clock and by ours, with a kernel that does nothing.

        Where the machine is busy for a moment, it costs more. So batches are taken until two agree, and the least of
        all counts. No learner's code is in the process yet, or ever.
        """
        batches = [self._batch(worker)]
        while not self._emulated and len(batches) < BATCHES:
            batches.append(self._batch(worker))
            if all(abs(a - b) <= alike for a, b, alike in zip(*batches[-2:], ALIKE, strict=True)):
                break
            time.sleep(PAUSE)
        self._zeros[worker.pid] = Zero(*map(min, zip(*batches, strict=True)))

    def _batch(self, worker: Companion) -> Zero:
        befores, walls, outers = [], [], []
        for _ in range(1 if self._emulated else 9):
            self.ask(worker, {"do": "prepare", "name": ""})
            began = _now()
            told = self.ask(worker, {"do": "go"}, self._effort.launch, eager=True)
            outers.append((_now() - began) * 1e3 - told["before"] - told["device"])
            walls.append(told["wall"] - told["before"] - told["device"])
            befores.append(told["before"])
        return Zero(median(befores), median(walls), median(outers))

    def call(self, player: Player, shape: Shape, architecture: str) -> list[float]:
        """Call a kernel once on fresh inputs, compare all that it wrote, and return its sample.

        Raises
        ------
        Refusal
            A kernel that was handed in is wrong, faults or does not end.
        Trouble
            The course's own does, or the device fails.
        """
        size = "{}×{}×{}".format(*shape)
        start, seeds = secrets.randbelow(STARTS + 1), [secrets.randbits(64), secrets.randbits(64)]
        file = self._room_for(shape, size)
        try:
            launch = player.launch(shape, architecture)
        except (GradingError, ValueError) as error:
            raise blame(player.candidate, f"for {size}: {error}") from None
        step = "prepare"
        try:
            call = {"shape": shape, "start": start, "seeds": seeds, **launch}
            self.tell(player, {"do": step, "name": player.loaded, "call": call}, self._effort.patience)
            step = "go"
            began = _now()
            told = self.tell(player, {"do": step}, self._effort.launch + (20 if self._emulated else 0), eager=True)
            outer = (_now() - began) * 1e3
        except Lost as lost:
            if lost.late and step == "go":
                raise blame(player.candidate, f"for {size}: the kernel does not end: {lost}") from None
            if lost.signal in CRASHES:
                raise blame(player.candidate, f"for {size}: the kernel is lost: {lost}") from None
            raise Trouble(f"{player.name}, for {size}: a process is lost, by no kernel's doing: {lost}") from None
        except Refusal as refusal:
            raise blame(player.candidate, f"for {size}: {refusal}") from None
        self._collect(player, file)
        question = {"file": str(file), "shape": shape, "start": start, "seeds": seeds}
        try:
            fault = self.compares.ask(question, self._effort.patience)["fault"]
        except Lost as lost:  # this kernel may have left it no memory: the next one finds a new process
            self.end()
            raise Trouble(f"for {size}: the process that compares is lost: {lost}") from None
        if fault:
            raise blame(player.candidate, f"for {size}: {fault}")
        zero = self._zeros[player.worker.pid]
        before = told["before"]
        player.late.append(before - zero.before)
        return [told["wall"] - before - zero.wall, told["device"], outer - before - zero.outer]

    def _room_for(self, shape: Shape, size: str) -> Path:
        """Return the file that arenas of a shape go to: one for each, so that its pages stay where they are."""
        file = self._folder / size
        if not file.exists():
            draft = file.with_name(f"{size}.new")
            with open(draft, "wb") as room:  # all of it now: a worker that found the disk full would die of it
                os.posix_fallocate(room.fileno(), 0, 4 * Arena(shape, 0).total)
            draft.rename(file)
        return file

    def _collect(self, player: Player, file: Path) -> None:
        """Have a worker write down what the kernel left. The kernel has ended: what fails here is no learner's fault.

        Raises
        ------
        Trouble
            It cannot.
        """
        try:
            self.ask(player.worker, {"do": "collect", "file": str(file)})
        except Lost as lost:
            raise Trouble(f"a process could not write down what a kernel left: {lost}") from None
