"""Conducts a measurement: starts the processes, draws the seeds, keeps the clock, and writes down what came out.

Every kernel that was handed in has a process of its own, made for this measurement; the course's kernels have one that
no learner's code ever enters. They take turns. Each call has fresh inputs in fresh places, and all that it
wrote is compared in yet another process before its time counts. Nothing here holds a GPU.
"""

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from statistics import median
from types import TracebackType
from typing import Any

from tilelab.cudacpp.errors import CudaError
from tilelab.grading.cuda_answers import kernel_fault
from tilelab.grading.errors import GradingError
from tilelab.grading.sandbox.errors import SandboxError
from tilelab.grading.sandbox.folders import private_folder
from tilelab.grading.timed.arrays import Shape
from tilelab.grading.timed.calls import Calls
from tilelab.grading.timed.channel import Companion, Lost
from tilelab.grading.timed.cubin import compile_cubin
from tilelab.grading.timed.doubts import doubt, floor, on_time
from tilelab.grading.timed.enough import Effort
from tilelab.grading.timed.players import (
    DRAWN,
    EMULATED_SHAPES,
    EMULATED_TIMED,
    SHAPES,
    Doubt,
    Player,
    Refusal,
    Trouble,
    blame,
    drawn,
)
from tilelab.grading.timed.rounds import OWN_CALLS, in_turns
from tilelab.grading.timed.wanted import Candidate, Measured, Wanted
from tilelab.grading.timed.watch import Watch, one_at_a_time
from tilelab.kernels.ladder import rung

_now = time.perf_counter
HERE = __package__
NAME = "matmul"
#: How often is measured where times contradict each other: mostly the machine was busy for a moment.
ATTEMPTS = 3


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

    def __enter__(self) -> "Conductor":
        """Take the device."""
        if self._emulated:
            self._watch, self._hold = None, 0
        else:
            self._watch = Watch(int(self._which))
            self._hold = self._open.enter_context(one_at_a_time(self._watch.name, self._waiting))
        try:
            self._folder = self._open.enter_context(private_folder())
            self._calls = Calls(self._folder, lambda: self._companion("comparer"), self._effort, self._emulated)
            self._open.callback(self._calls.end)
            self._start_own()
            self.device = self._calls.ask(self._trusted, {"do": "describe"})
            if self._watch is not None:
                self.device["driver"] = self._watch.driver()
                self._warm_up()
            self.ceilings = self._known_ceilings(self.device["name"]) or self._calls.ask(
                self._trusted, {"do": "ceilings"}
            )
        except BaseException as error:
            self.__exit__(None, None, None)
            if isinstance(error, Lost | Trouble | GradingError | SandboxError | OSError):
                raise GradingError(f"the device {self._which!r} cannot be used: {error}") from None
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Let go of the device."""
        if self._own is not None:
            self._own.end()
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
        about: dict[str, Any] = {}
        samples: dict[str, list[list[float]]] = {}
        shape = EMULATED_TIMED if self._emulated else wanted.shape
        several = sum(one.handed_in for one in wanted.candidates) > 1
        outcome, words = "timed", ""

        def over() -> str:
            if self._emulated or _now() - began <= self._effort.total:
                return ""
            about["over"] = f"the measurement is not done within {self._effort.total:g} s"
            return str(about["over"])

        try:
            while True:
                try:
                    self._time(wanted, shape, marks, samples, about, over)
                    break
                except Doubt as why:
                    about["again"] = [*about.get("again", ()), str(why)]
                    if len(about["again"]) == ATTEMPTS or over():
                        raise
                    self._start_own()
        except Refusal as refusal:
            outcome, words = "refused", f"{refusal.name}: {refusal}" if several else str(refusal)
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

    def _time(
        self,
        wanted: Wanted,
        shape: Shape,
        marks: Sequence[float],
        samples: dict[str, list[list[float]]],
        about: dict[str, Any],
        over: Callable[[], str],
    ) -> None:
        """Try the candidates, fill in their samples, and see that such times can be."""
        about |= {"dropped": {}, "disagreements": {}}
        samples.clear()
        with ExitStack() as stack:
            players = self._players(wanted, about, stack)
            began = _now()
            samples |= self._rounds(wanted, players, stack, shape, marks, about, over)
            about["seconds_on_device"] = round(_now() - began, 3)
        about["late_ms"] = {one.name: round(median(one.late), 5) for one in players}
        if not self._emulated:
            on_time(about["late_ms"])
            learners = {one.name for one in wanted.candidates if one.handed_in}
            about["disagreements"] = doubt(samples, floor(shape, self.ceilings), learners)

    # ---- processes

    def _companion(self, module: str) -> Companion:
        hold = (self._hold,) if self._hold else ()
        return Companion(f"{HERE}.{module}", [self._which], hold, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})

    @property
    def _trusted(self) -> Companion:
        assert self._own is not None
        return self._own

    def _start_own(self) -> None:
        """Start the process of the course's own kernels, again if need be."""
        if self._own is not None:
            self._own.end()
        self._own, self._loaded = self._companion("worker"), set[str]()
        self._calls.zero(self._own)

    def _players(self, wanted: Wanted, about: dict[str, Any], stack: ExitStack) -> list[Player]:
        """Start the processes, and try every kernel that was handed in on the shapes; they end with the stack."""
        players: list[Player] = []
        shapes = EMULATED_SHAPES if self._emulated else (*SHAPES, *(drawn() for _ in range(DRAWN)))
        about["shapes"] = len(shapes)
        for candidate in wanted.candidates:
            try:
                with ExitStack() as own:
                    player = self._player(candidate, own)
                    if candidate.handed_in:
                        self._try(player, shapes)
                    players.append(player)
                    stack.push(own.pop_all())
            except Refusal as refusal:
                self._without(refusal, wanted, players, about)
        return players

    def _try(self, player: Player, shapes: Sequence[Shape]) -> None:
        """Call a kernel once on every shape."""
        began = _now()
        for shape in shapes:
            self._call(player, shape)
            if not self._emulated and _now() - began > self._effort.trials:
                words = f"its trials on {len(shapes)} small shapes take over {self._effort.trials:g} s"
                raise Refusal(words, player.name)

    def _without(self, refusal: Refusal, wanted: Wanted, players: list[Player], about: dict[str, Any]) -> None:
        """Go on without a learner's kernel that failed. Where the first one did, there is no going on.

        Raises
        ------
        Refusal
            The first candidate failed.
        Trouble
            So did the device, or somebody else is on it.
        GradingError
            The device does not answer any more.
        """
        is_first = refusal.name == wanted.candidates[0].name
        if not is_first:
            self._leave(refusal.name, str(refusal), players, about)
        if not self._check_device():
            raise Trouble(f"{refusal.name}: {refusal}; but the device failed too")
        if self._watch is not None:
            self._watch.alone(self._ours(players))
        if is_first:
            raise refusal

    def _leave(self, name: str, why: str, players: list[Player], about: dict[str, Any]) -> None:
        """Let go of a candidate; its process ends, or it would count as somebody else's on the device."""
        about["dropped"][name] = why
        for player in [one for one in players if one.name == name]:
            player.worker.end()
            players.remove(player)

    def _ours(self, players: Sequence[Player]) -> set[int]:
        """Return the numbers of our processes on the device."""
        return {self._trusted.pid, self._calls.compares.pid, *(player.worker.pid for player in players)}

    def _player(self, candidate: Candidate, stack: ExitStack) -> Player:
        if not candidate.handed_in:
            if candidate.rung not in self._loaded:
                self._calls.ask(self._trusted, {"do": "load", "name": candidate.rung, "code": self._code(candidate)})
                self._loaded.add(candidate.rung)
            return Player(candidate, self._trusted, candidate.rung)
        code = self._code(candidate)
        worker = self._companion("worker")
        stack.callback(worker.end)
        player = Player(candidate, worker, NAME)
        try:
            self._calls.zero(worker)
            self._calls.tell(player, {"do": "load", "name": NAME, "code": code}, self._effort.patience)
        except Lost as lost:
            raise Trouble(f"a process could not be started: {lost}") from None
        return player

    def _code(self, candidate: Candidate) -> dict[str, Any]:
        """Compile a candidate."""
        defines: dict[str, object]
        if candidate.handed_in:
            source, defines = candidate.source, {**candidate.answer.defines}
        else:
            kernel = rung(candidate.rung).kernel
            source, defines = kernel.source, {**kernel.defines}
        if candidate.handed_in and (fault := kernel_fault(candidate.answer)):
            raise Refusal(fault, candidate.name)
        code: dict[str, Any] = {"source": source, "kernel": NAME, "defines": defines}
        if self._emulated:
            return code
        try:
            built = compile_cubin(source, NAME, self.device["architecture"], defines)
        except CudaError as error:
            first = " — ".join(str(error).split("\n\n")[0].splitlines())
            raise blame(candidate, f"it does not compile for {self.device['architecture']}: {first}") from None
        except GradingError as error:
            raise Trouble(f"this machine cannot compile it: {error}") from None
        file = self._folder / f"{secrets.token_hex(8)}.cubin"
        file.write_bytes(built.cubin)
        return code | {"cubin": str(file), "symbol": built.symbol}

    def _check_device(self) -> bool:
        """See that the device is clean after something went wrong on it.

        Returns
        -------
        bool
            Whether our own process, which no learner's code enters, found nothing wrong. That it had to wait says
            nothing against the device: a kernel that did not end may have been on it.

        Raises
        ------
        GradingError
            It does not answer, even in a new process.
        """
        try:
            self._idle()
            return True
        except (Lost, Trouble) as error:
            waited = isinstance(error, Lost) and error.late
        try:
            self._start_own()
            self._idle()
        except (Lost, Trouble, OSError) as error:
            raise GradingError(f"the device does not answer any more: {error}") from None
        return waited

    def _call(self, player: Player, shape: Shape) -> list[float]:
        return self._calls.call(player, shape, self.device["architecture"])

    def _idle(self) -> None:
        """Run a kernel that does nothing."""
        self._calls.ask(self._trusted, {"do": "prepare", "name": ""})
        self._calls.ask(self._trusted, {"do": "go"}, self._effort.launch)

    # ---- rounds

    def _rounds(
        self,
        wanted: Wanted,
        players: list[Player],
        stack: ExitStack,
        shape: Shape,
        marks: Sequence[float],
        about: dict[str, Any],
        over: Callable[[], str],
    ) -> dict[str, list[list[float]]]:
        """Time the candidates in turns; where one fails, begin again without it."""

        def look() -> None:
            if self._watch is not None:
                self._watch.look(about["clocks"], self._ours(players))

        while True:
            if len(players) < 2:
                raise Trouble("nothing is left to compare with")
            about["clocks"] = []
            self._calls.zero(self._trusted)  # no learner's code is in it: how busy the machine is now
            # Our own process may have been started again: its kernels' players are made anew.
            players[:] = [one if one.candidate.handed_in else self._player(one.candidate, stack) for one in players]
            try:
                return in_turns(
                    players,
                    lambda player: self._call(player, shape),
                    marks,
                    self._effort,
                    look,
                    lambda player, why: self._leave(player.name, why, players, about),
                    over,
                    1 if self._emulated else OWN_CALLS,
                )
            except Refusal as refusal:
                self._without(refusal, wanted, players, about)
