"""Instructions that the lanes of a warp execute together, for all warps at once."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilelab.hardware.limits import WARP
from tilelab.simt import sayings
from tilelab.simt.lanes_pieces import Stamp
from tilelab.simt.masks import Mask, Value
from tilelab.simt.runtime import Stop

if TYPE_CHECKING:
    from tilelab.simt.lanes import Lanes

_LANE = np.arange(WARP)


def warp_operation(rt: "Lanes", name: str, mask: Mask, args: tuple[Value, ...], line: int) -> Value:
    """Execute a shuffle, vote, match, ``syncwarp`` or ``activemask`` for the lanes of a mask.

    Raises
    ------
    Stop
        A lane named in the instruction's mask does not come, or a value is asked of one that takes no part.
    """
    active = rt.active(mask)
    on = np.ones((rt.warps, WARP), bool) if active is None else active
    bits = (on * (1 << _LANE)).sum(axis=1)
    if name == "activemask":
        return rt.unrows(np.repeat(bits[:, None], WARP, axis=1)).astype(np.uint64)
    named = _rows(rt, args[0]).astype(np.int64) & 0xFFFFFFFF
    if rt.checks:
        _all_come(rt, named, on, name, line)
    if name == "syncwarp":
        assert rt.stamp is not None
        known = None if rt.stamp.known is None else _meet(rt, rt.stamp.known, named, on)
        rt.stamp = Stamp(rt.stamp.epoch + (1 if mask is None else mask.astype(np.int64)), known)
        return None
    values = _rows(rt, args[1])
    member = (named[:, :, None] >> _LANE & 1).astype(bool) & on[:, None, :]  # [warp, lane, other lane]
    if name.startswith("shfl"):
        return rt.unrows(_shuffle(rt, name, values, _rows(rt, args[2]).astype(np.int64), on, line))
    if name.startswith("match"):
        same = (values[:, :, None] == values[:, None, :]) & member
        masks = (same * (1 << _LANE)).sum(axis=2)
        if name == "match_any_sync":
            return _signed32(rt.unrows(masks))
        every = (same == member).all(axis=2)
        return _signed32(rt.unrows(np.where(every, masks, 0))), rt.unrows(every)
    true = values.astype(bool)[:, None, :] & member
    if name == "ballot_sync":
        return _signed32(rt.unrows((true * (1 << _LANE)).sum(axis=2)))
    result = {
        "all_sync": (true == member).all(axis=2),
        "any_sync": true.any(axis=2),
        "eq_sync": (true == member).all(axis=2) | ~true.any(axis=2),
    }[name]
    return rt.unrows(result)


def first_stamp(rt: "Lanes") -> Stamp | None:
    """Where lanes stand at the start; ``None`` if the kernel has no ``syncwarp``."""
    program = rt.launch.program
    if not program.syncs_warps:
        return None
    known = np.full((rt.warps, WARP, WARP), -1, np.int64) if program.syncs_parts else None
    return Stamp(np.zeros(rt.count, np.int64), known)


def _meet(rt: "Lanes", known: NDArray[np.int64], named: NDArray[np.int64], on: NDArray[np.bool_]) -> NDArray[np.int64]:
    """What each lane knows of the others after a ``syncwarp``: what any lane that takes part with it knew."""
    assert rt.stamp is not None
    before = known.copy()
    before[:, _LANE, _LANE] = rt.rows(rt.stamp.epoch, -1)
    after = known.copy()
    for bits in np.unique(named[on]).tolist():
        warps = np.flatnonzero((on & (named == bits)).any(axis=1))
        lanes = np.flatnonzero(bits >> _LANE & 1)
        after[warps[:, None], lanes] = before[warps[:, None], lanes].max(axis=1, keepdims=True)
    return after


def _rows(rt: "Lanes", value: Value) -> NDArray[Any]:
    if not isinstance(value, np.ndarray):
        value = np.full(rt.count, value)
    return rt.rows(value, value.dtype.type(0))


def _signed32(values: NDArray[Any]) -> NDArray[np.int64]:
    """A mask of lanes as the int32 that Numba gives, held in 64 bits."""
    return values.astype(np.uint32).astype(np.int32).astype(np.int64)


def _all_come(rt: "Lanes", named: NDArray[np.int64], on: NDArray[np.bool_], name: str, line: int) -> None:
    """Every lane that a mask names must execute the instruction, name itself, and give the same mask."""
    exists = np.ones_like(on) if rt.whole else rt.exists
    wanted = (named[:, :, None] >> _LANE & 1).astype(bool) & on[:, :, None]
    missing = wanted.any(axis=1) & exists & ~on
    alone = on & ~(named >> _LANE & 1).astype(bool)
    other = named != named[:, :1]
    if other.any():
        other = (wanted & on[:, None, :] & (named[:, :, None] != named[:, None, :])).any(axis=2)
    for bad, why in (
        (missing, sayings.NOT_THERE),
        (alone, sayings.NOT_NAMED),
        (other, sayings.OTHER_MASK),
    ):
        if bad.any():
            warp, lane = (int(i) for i in np.argwhere(bad)[0])
            block = warp // rt.warps_per_block
            thread = warp % rt.warps_per_block * WARP + lane
            raise Stop(
                sayings.not_all(
                    rt.launch.name, name, line, sayings.dims(thread, rt.launch.block), why, rt.block_of(block),
                    rt.first + block, int(rt.phase[block]),
                )
            )  # fmt: skip


def source_lane(name: str, lane: Any, argument: Any) -> Any:
    """The lane that a shuffle reads from; beyond the warp it is the lane itself."""
    lane, argument = np.asarray(lane), np.asarray(argument)
    if name == "shfl_sync":
        return argument % WARP
    source = {"shfl_up_sync": lane - argument, "shfl_down_sync": lane + argument, "shfl_xor_sync": lane ^ argument}[
        name
    ]
    return np.where((source < 0) | (source >= WARP), lane, source)


def _shuffle(
    rt: "Lanes", name: str, values: NDArray[Any], argument: NDArray[np.int64], on: NDArray[np.bool_], line: int
) -> NDArray[Any]:
    source = source_lane(name, np.broadcast_to(_LANE, on.shape), argument)
    if rt.checks:
        idle = on & ~np.take_along_axis(on, source, axis=1)
        if idle.any():
            warp, lane = (int(i) for i in np.argwhere(idle)[0])
            block = warp // rt.warps_per_block
            thread = warp % rt.warps_per_block * WARP + lane
            raise Stop(
                sayings.not_all(
                    rt.launch.name, name, line, sayings.dims(thread, rt.launch.block),
                    f"asks lane {int(source[warp, lane])}, which takes no part", rt.block_of(block), rt.first + block,
                    int(rt.phase[block]),
                )
            )  # fmt: skip
    return np.take_along_axis(values, source, axis=1)
