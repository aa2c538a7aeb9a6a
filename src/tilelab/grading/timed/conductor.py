"""Conducts a measurement: starts the processes, draws the seeds, keeps the clock, and writes down what came out.

Every kernel that was handed in has a process of its own, made for this measurement; the course's kernels have one that
no learner's code ever enters. They take turns. Each call has fresh inputs in fresh places, and all that it
wrote is compared in yet another process before its time counts. Nothing here holds a GPU.
"""

import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import fmean, median
from types import TracebackType
from typing import Any, NamedTuple

from tilelab.cudacpp.errors import CudaError
from tilelab.grading.errors import GradingError
from tilelab.grading.sandbox.errors import SandboxError
from tilelab.grading.sandbox.folders import private_folder
from tilelab.grading.timed.arrays import STARTS, Arena, Shape
from tilelab.grading.timed.channel import Companion, Lost
from tilelab.grading.timed.cubin import compile_cubin, files_fault
from tilelab.grading.timed.doubts import doubt, floor, on_time
from tilelab.grading.timed.enough import Effort, enough
from tilelab.grading.timed.faults import in_words, is_the_devices
from tilelab.grading.timed.players import (
    DRAWN,
    EMULATED_SHAPES,
    EMULATED_TIMED,
    SHAPES,
    Player,
    Refusal,
    Trouble,
    drawn,
)
from tilelab.grading.timed.wanted import Candidate, Measured, Wanted
from tilelab.grading.timed.watch import Watch, one_at_a_time
from tilelab.kernels.ladder import rung

_now = time.perf_counter
HERE = __package__
NAME = "matmul"
#: Calls of each of the course's own kernels in a round; their mean is its sample. The naive one has two speeds, 5 %
#: apart, from call to call: a median of single calls would be now nearer to the one, now to the other.
OWN_CALLS = 3


class Zero(NamedTuple):
    """Milliseconds of a kernel that does nothing: until it starts, and around it by its process's clock and by ours."""

    before: float
    wall: float
    outer: float


class Conductor:
    """Measures on one device. Use it in a ``with`` statement; it holds the device's lock as long as it is open.

    Parameters
    ----------
    which : str
        A GPU's number, or ``emulated``.
    effort : Effort
        How long to measure.
    ceilings : callable
        Gives ``flops`` and ``bandwidth`` a second for a device's name where they are known; measured where not.
    waiting : callable
        Called once if another run holds the device.
    """

    def __init__(
        self,
        which: str = "0",
        effort: Effort | None = None,
        ceilings: Callable[[str], dict[str, float] | None] = lambda name: None,
        waiting: Callable[[], None] = lambda: None,
    ) -> None:
        self._which, self._emulated = which, which == "emulated"
        self._effort = effort or (Effort(2, 2, 2) if self._emulated else Effort())
        self._known_ceilings, self._waiting = ceilings, waiting
        self._open = ExitStack()
        self._own: Companion | None = None
        self._comparer: Companion | None = None
        self._zeros: dict[int, Zero] = {}

    def __enter__(self) -> "Conductor":
        """Take the device."""
        if self._emulated:
            self._watch, self._hold = None, 0
        else:
            self._watch = Watch(int(self._which))
            self._hold = self._open.enter_context(one_at_a_time(self._watch.name, self._waiting))
        try:
            self._folder = self._open.enter_context(private_folder())
            self._comparer = self._companion("comparer")
            self._start_own()
            self.device = self._ask(self._trusted, {"do": "describe"})
            if self._watch is not None:
                self.device["driver"] = self._watch.driver()
                self._warm_up()
            self.ceilings = self._known_ceilings(self.device["name"]) or self._ask(self._trusted, {"do": "ceilings"})
        except BaseException as error:
            self.__exit__(None, None, None)
            if isinstance(error, Lost | Trouble | GradingError | SandboxError | OSError):
                raise GradingError(f"the device {self._which!r} cannot be used: {error}") from None
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Let go of the device."""
        for one in (self._own, self._comparer):
            if one is not None:
                one.end()
        self._open.close()

    def _warm_up(self) -> None:
        """Let our own processes load what they will need, before anybody's time is taken."""
        own = self._player(Candidate("the course's own kernel", "tiled_16"), self._open)
        for _ in range(3):
            self._call(own, (1024, 1024, 1024))

    def measure(self, wanted: Wanted, marks: Sequence[float] = ()) -> Measured:
        """Measure; what a learner's kernel does never raises.

        Parameters
        ----------
        wanted : Wanted
            The candidates and the shape.
        marks : sequence of float
            Gains at which points change: near one of them more rounds are measured.

        Raises
        ------
        GradingError
            The device does not answer any more, or the machine lacks something.
        """
        began = _now()
        about: dict[str, Any] = {"dropped": {}, "disagreements": {}}
        samples: dict[str, list[list[float]]] = {}
        shape = EMULATED_TIMED if self._emulated else wanted.shape
        outcome, words = "timed", ""
        try:
            with self._players(wanted, about) as players:
                began_on_device = _now()
                samples = self._rounds(players, shape, marks, about)
                about["seconds_on_device"] = round(_now() - began_on_device, 3)
            about["late_ms"] = {one.candidate.name: round(median(one.late), 5) for one in players}
            if not self._emulated:
                on_time(about["late_ms"])
                learners = {one.name for one in wanted.candidates if one.handed_in}
                about["disagreements"] = doubt(samples, floor(shape, self.ceilings), learners)
        except Refusal as refusal:
            outcome, words = "refused", str(refusal)
        except Trouble as trouble:
            outcome, words = "undecided", str(trouble)
            self._check_device()
        except GradingError:
            raise
        except Exception as error:  # a fault of ours: it costs this learner no point, and the next one no measurement
            outcome, words = "undecided", f"the judge itself failed ({type(error).__name__}: {error!s:.200})"
            self._check_device()
        about["seconds"] = round(_now() - began, 3)
        about["floor_ms"] = floor(shape, self.ceilings)
        about["ceilings"] = dict(self.ceilings)
        return Measured(outcome, words, self.device, shape, samples, about)

    # ---- processes

    def _companion(self, module: str) -> Companion:
        hold = (self._hold,) if self._hold else ()
        return Companion(f"{HERE}.{module}", [self._which], hold, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})

    @property
    def _trusted(self) -> Companion:
        assert self._own is not None
        return self._own

    @property
    def _compares(self) -> Companion:
        """The process that compares, started again if need be."""
        if self._comparer is None:
            self._comparer = self._companion("comparer")
        return self._comparer

    def _start_own(self) -> None:
        """Start the process of the course's own kernels, again if need be."""
        if self._own is not None:
            self._own.end()
        self._own, self._loaded = self._companion("worker"), set[str]()
        self._zero(self._own)

    def _ask(
        self, companion: Companion, question: dict[str, Any], seconds: float | None = None, eager: bool = False
    ) -> dict[str, Any]:
        """Ask one of our own processes what only the device can spoil."""
        answer = companion.ask(question, seconds or self._effort.patience, eager)
        if fault := answer.get("fault"):
            raise Trouble(f"the device: {fault}")
        return answer

    @contextmanager
    def _players(self, wanted: Wanted, about: dict[str, Any]) -> "Iterator[list[Player]]":
        """Start the processes, and try every kernel that was handed in on the shapes; they end with the ``with``."""
        players: list[Player] = []
        shapes = EMULATED_SHAPES if self._emulated else (*SHAPES, *(drawn() for _ in range(DRAWN)))
        with ExitStack() as stack:
            for number, candidate in enumerate(wanted.candidates):
                try:
                    player = self._player(candidate, stack)
                    if candidate.handed_in:
                        for shape in shapes:
                            self._call(player, shape)
                    players.append(player)
                except Refusal as refusal:
                    self._check_device()
                    if not number:
                        raise
                    about["dropped"][candidate.name] = str(
                        refusal
                    )  # another kernel of the learner's: only the first must run
            about["shapes"] = len(shapes)
            if len(players) < 2:
                raise Trouble("nothing is left to compare with")
            yield players

    def _player(self, candidate: Candidate, stack: ExitStack) -> "Player":
        if not candidate.handed_in:
            if candidate.rung not in self._loaded:
                self._ask(self._trusted, {"do": "load", "name": candidate.rung, "code": self._code(candidate)})
                self._loaded.add(candidate.rung)
            return Player(candidate, self._trusted, candidate.rung)
        code = self._code(candidate)
        worker = self._companion("worker")
        stack.callback(worker.end)
        try:
            self._zero(worker)
            answer = worker.ask({"do": "load", "name": NAME, "code": code}, self._effort.patience)
        except Lost as lost:
            raise Trouble(f"a process could not be started: {lost}") from None
        if fault := answer.get("fault"):
            if is_the_devices(fault):
                raise Trouble(f"the device: {fault}")
            raise Refusal(in_words(fault))
        return Player(candidate, worker, NAME)

    def _code(self, candidate: Candidate) -> dict[str, Any]:
        """Compile a candidate."""
        defines: dict[str, object]
        if candidate.handed_in:
            source, defines = candidate.source, {**candidate.answer.defines}
        else:
            kernel = rung(candidate.rung).kernel
            source, defines = kernel.source, {**kernel.defines}
        if candidate.handed_in and (fault := files_fault(source)):
            raise Refusal(fault)
        code: dict[str, Any] = {"source": source, "kernel": NAME, "defines": defines}
        if self._emulated:
            return code
        try:
            built = compile_cubin(source, NAME, self.device["architecture"], defines)
        except CudaError as error:
            first = " — ".join(str(error).split("\n\n")[0].splitlines())
            blame: type[Exception] = Refusal if candidate.handed_in else Trouble
            raise blame(f"it does not compile for {self.device['architecture']}: {first}") from None
        except GradingError as error:
            raise Trouble(f"this machine cannot compile it: {error}") from None
        file = self._folder / f"{secrets.token_hex(8)}.cubin"
        file.write_bytes(built.cubin)
        return code | {"cubin": str(file), "symbol": built.symbol}

    def _check_device(self) -> None:
        """See that the device is clean after something went wrong on it.

        Raises
        ------
        GradingError
            It does not answer, even in a new process.
        """
        for attempt in range(2):
            try:
                self._ask(self._trusted, {"do": "prepare", "name": ""})
                self._ask(self._trusted, {"do": "go"}, self._effort.launch)
                return
            except (Lost, Trouble) as error:
                if attempt:
                    raise GradingError(f"the device does not answer any more: {error}") from None
                try:
                    self._start_own()
                except (Lost, Trouble) as error:
                    raise GradingError(f"the device does not answer any more: {error}") from None

    # ---- calls

    def _zero(self, worker: Companion) -> None:
        """Learn what starting and waiting cost by a worker's clock and by ours, with a kernel that does nothing."""
        befores, walls, outers = [], [], []
        for _ in range(1 if self._emulated else 9):
            self._ask(worker, {"do": "prepare", "name": ""})
            began = _now()
            told = self._ask(worker, {"do": "go"}, self._effort.launch, eager=True)
            outers.append((_now() - began) * 1e3 - told["before"] - told["device"])
            walls.append(told["wall"] - told["before"] - told["device"])
            befores.append(told["before"])
        self._zeros[worker.pid] = Zero(median(befores), median(walls), median(outers))

    def _call(self, player: "Player", shape: Shape) -> list[float]:
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
        blame: type[Exception] = Refusal if player.candidate.handed_in else Trouble
        try:
            launch = player.launch(shape, self.device["architecture"])
        except (GradingError, ValueError) as error:
            raise blame(f"for {size}: {error}") from None
        try:
            call = {"shape": shape, "start": start, "seeds": seeds, **launch}
            self._tell(player, {"do": "prepare", "name": player.loaded, "call": call}, self._effort.patience)
            began = _now()
            told = self._tell(player, {"do": "go"}, self._effort.launch + (20 if self._emulated else 0), eager=True)
            outer = (_now() - began) * 1e3
        except Lost as lost:
            raise blame(f"for {size}: the kernel {'does not end' if lost.late else 'is lost'}: {lost}") from None
        except Refusal as refusal:
            raise blame(f"for {size}: {refusal}") from None
        self._collect(player, file)
        question = {"file": str(file), "shape": shape, "start": start, "seeds": seeds}
        try:
            fault = self._compares.ask(question, self._effort.patience)["fault"]
        except Lost as lost:  # this kernel may have left it no memory: the next one finds a new process
            self._compares.end()
            self._comparer = None
            raise Trouble(f"for {size}: the process that compares is lost: {lost}") from None
        if fault:
            raise blame(f"for {size}: {fault}")
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

    def _collect(self, player: "Player", file: Path) -> None:
        """Have a worker write down what the kernel left. The kernel has ended: what fails here is no learner's fault.

        Raises
        ------
        Trouble
            It cannot.
        """
        try:
            self._ask(player.worker, {"do": "collect", "file": str(file)})
        except Lost as lost:
            raise Trouble(f"a process could not write down what a kernel left: {lost}") from None

    def _tell(self, player: "Player", question: dict[str, Any], seconds: float, eager: bool = False) -> dict[str, Any]:
        answer = player.worker.ask(question, seconds, eager)
        if fault := answer.get("fault"):
            if is_the_devices(fault):
                raise Trouble(f"the device: {fault}")
            raise Refusal(in_words(fault))
        return answer

    # ---- rounds

    def _rounds(
        self, players: "Sequence[Player]", shape: Shape, marks: Sequence[float], about: dict[str, Any]
    ) -> dict[str, list[list[float]]]:
        """Time the candidates in turns until the ratio is known."""
        samples: dict[str, list[list[float]]] = {player.candidate.name: [] for player in players}
        clocks: list[dict[str, Any]] = []
        about["clocks"] = clocks
        for player in players:  # warm: the first launch of a kernel brings its code to the device
            self._call(player, shape)
        self._look(clocks, players)
        for turn in range(self._effort.most_near):
            for player in players[:: -1 if turn % 2 else 1]:
                samples[player.candidate.name].append(self._turn(player, shape))
            if turn % 10 == 9:
                self._look(clocks, players)
            if enough(samples, marks, self._effort):
                break
        self._look(clocks, players)
        return samples

    def _turn(self, player: "Player", shape: Shape) -> list[float]:
        """Return a candidate's sample of a round: what was handed in is called once, the course's own more often."""
        calls = 1 if player.candidate.handed_in or self._emulated else OWN_CALLS
        return [fmean(times) for times in zip(*(self._call(player, shape) for _ in range(calls)), strict=True)]

    def _look(self, clocks: list[dict[str, Any]], players: "Sequence[Player]") -> None:
        """Note the clocks; stop where the device is slowed down or somebody else is on it."""
        if self._watch is None:
            return
        state = self._watch.state()
        clocks.append(state)
        if state.get("slowed"):
            raise Trouble(f"the device is not at its own speed: {', '.join(state['slowed'])}")
        ours = {self._trusted.pid, self._compares.pid, *(player.worker.pid for player in players)}
        if extra := self._watch.others(ours):
            raise Trouble(f"the device is shared: {extra} other process{'es are' if extra > 1 else ' is'} on it")
