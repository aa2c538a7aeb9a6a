"""What lanes find: bad indices, races and unwritten reads, put into words."""

from dataclasses import replace
from typing import Any

import numpy as np

from tilelab.simt import races, sayings, tree
from tilelab.simt.errors import Dim3, Finding
from tilelab.simt.lanes_local import LocalView
from tilelab.simt.lanes_memory import Strided
from tilelab.simt.lanes_pieces import Integers, Piece
from tilelab.simt.ledger import Ledger
from tilelab.simt.masks import Mask, Value
from tilelab.simt.runtime import Argument, Launch, Stop


class Findings:
    """Says what is wrong in a chunk of blocks; the engine knows where each block stands."""

    launch: Launch
    ledger: Ledger
    threads: int
    """Threads of a block."""
    blocks: int
    count: int
    """Lanes of the chunk."""
    first: int
    """Linear number of the chunk's first block."""
    phase: Any
    """Barriers that each block has passed."""
    last: Any
    """Line of the barrier that each block passed last; 0 at the start."""
    closing: int | None
    """Line of the barrier that ends the phase now."""
    stops: list[Finding]
    held: list[tuple[int, Finding]]

    def block_of(self, block: int) -> Dim3:
        """Coordinates of a block of the chunk."""
        return sayings.dims(self.first + block, self.launch.grid)

    def thread_of(self, lane: int) -> Dim3:
        """Coordinates of a lane's thread."""
        return sayings.dims(lane % self.threads, self.launch.block)

    def found(self, finding: Finding) -> None:
        """Note a finding; an error ends the launch when the phase is settled, unless all are collected."""
        if finding.severity == "warning" or self.launch.collect:
            self.ledger.add(finding)
        else:
            self.stops.append(finding)

    def within(self, view: Strided, index: Value, extent: Value, axis: int, mask: Mask, site: tree.Site) -> None:
        """Stop at the first lane whose index is outside its array."""
        bad = (index < 0) | (index >= extent)
        if not isinstance(bad, np.ndarray):
            if not bad:
                return
            bad = np.full(self.count, True)
        if mask is not None:
            bad = bad & mask
        if not bad.any():
            return
        lane = int(bad.argmax())
        block = lane // self.threads
        value = int(index[lane]) if isinstance(index, np.ndarray) else int(index)
        size = int(extent[lane]) if isinstance(extent, np.ndarray) else int(extent)
        raise Stop(
            sayings.out_of_bounds(
                self.launch.name, site, view.name, axis, value, size, self.block_of(block), self.thread_of(lane),
                self.first + block, int(self.phase[block]), view.sliced,
            )
        )  # fmt: skip

    def races(self, piece: Piece, log: list[Any], cells: Integers) -> None:
        """Say the races on some cells of a piece."""
        accesses = piece.accesses(log, piece.telling(log, cells))
        for block in sorted({a.thread // self.threads for a in accesses}):
            own = [a for a in accesses if a.thread // self.threads == block]
            for pair in races.racing_pairs(own):
                array, index = self.cell_name(piece, pair.first.cell)
                last = int(self.last[block])
                thread = block * self.threads
                pair = replace(
                    pair,
                    first=replace(pair.first, thread=pair.first.thread - thread),
                    second=replace(pair.second, thread=pair.second.thread - thread),
                )
                self.found(
                    sayings.race_in_block(
                        self.launch.name, pair, self.launch.program.sites, array, piece.space, index,
                        self.block_of(block), self.launch.block, self.first + block, int(self.phase[block]),
                        (last or None, self.closing),
                    )
                )  # fmt: skip

    def cell_name(self, piece: Piece, cell: int) -> tuple[str, tuple[int, ...]]:
        """The array and index that a cell of a piece is called by."""
        if piece.space == "shared":
            cell %= piece.cells // self.blocks
            return piece.name, sayings.element_of(cell, piece.cell, piece.item, piece.extents)
        for argument in self.launch.arguments:
            if isinstance(argument, Argument) and argument.memory.name == piece.name:
                return argument.name, sayings.index_in(argument, cell)
        return piece.name, (cell,)

    def unwritten(self, piece: Piece, racy: Integers | None, blocks: Mask) -> None:
        """Say reads of shared memory that nobody wrote, but for cells that race anyway."""
        pending, piece.pending = piece.pending, []
        for cells, lanes, site, view in pending:
            if blocks is not None:
                now = blocks[lanes]
                if not now.all():
                    piece.pending.append((cells[~now], lanes[~now], site, view))
                cells, lanes = cells[now], lanes[now]
            if racy is not None:
                alone = ~np.isin(cells, racy)
                cells, lanes = cells[alone], lanes[alone]
            if len(lanes):
                lane = int(lanes[0])
                block = lane // self.threads
                array, index = self.cell_name(piece, int(cells[0]))
                self.found(
                    sayings.uninitialised(
                        self.launch.name, site.line, array, "shared", index, self.block_of(block),
                        self.thread_of(lane), self.first + block, int(self.phase[block]),
                    )
                )  # fmt: skip

    def unwritten_local(self, view: LocalView, element: int, mask: Mask, site: tree.Site) -> None:
        """Say a read of a local array that its thread never wrote."""
        lane = 0 if mask is None else int(mask.argmax())
        block = lane // self.threads
        finding = sayings.uninitialised(
            self.launch.name, site.line, view.name, "local", sayings.coordinates(element, view.memory.shape),
            self.block_of(block), self.thread_of(lane), self.first + block, int(self.phase[block]),
        )  # fmt: skip
        self.held.append((block, finding))
