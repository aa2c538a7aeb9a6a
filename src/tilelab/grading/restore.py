"""Put a submitted notebook's locked and graded cells back as they were released.

The *plan* is what was released: from the gradebook in a course, from the learner's copy for a single notebook. Cells
are matched by their grade id; locked cells get their source back, missing ones are put back in, a copied one counts
once, and what was released never comes from the submission.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from nbformat import NotebookNode, v4

from tilelab.grading.submitted import note, notes


@dataclass(frozen=True)
class PlannedCell:
    """A cell with a grade id as it was released."""

    grade_id: str
    cell_type: str
    source: str
    checksum: str
    locked: bool
    grade: bool
    solution: bool
    task: bool
    points: float

    @property
    def metadata(self) -> NotebookNode:
        """Return the cell's nbgrader metadata, schema 3."""
        data = NotebookNode(
            grade_id=self.grade_id,
            cell_type=self.cell_type,
            checksum=self.checksum,
            locked=self.locked,
            grade=self.grade,
            solution=self.solution,
            task=self.task,
            schema_version=3,
        )
        if self.grade or self.task:
            data["points"] = self.points
        return data


def plan_of(released: NotebookNode) -> list[PlannedCell]:
    """Return the plan that a released notebook states."""
    plan = []
    for cell in released.cells:
        data = cell.metadata.get("nbgrader")
        if data:
            plan.append(
                PlannedCell(
                    grade_id=data["grade_id"],
                    cell_type=cell.cell_type,
                    source=cell.source,
                    checksum=data.get("checksum", ""),
                    locked=bool(data.get("locked")),
                    grade=bool(data.get("grade")),
                    solution=bool(data.get("solution")),
                    task=bool(data.get("task")),
                    points=float(data.get("points", 0)),
                )
            )
    return plan


def restore(notebook: NotebookNode, plan: Sequence[PlannedCell]) -> None:
    """Restore a notebook made by `tilelab.grading.submitted.read_submitted`, in place."""
    planned = {cell.grade_id: cell for cell in plan}
    found: dict[str, NotebookNode] = {}
    _recognise(notebook, plan)
    for place in reversed(range(len(notebook.cells))):  # of a cell's copies the last one counts
        cell = notebook.cells[place]
        claimed = cell.metadata.pop("nbgrader", {}).get("grade_id", "")
        if claimed not in planned:
            continue
        if claimed in found:
            note(found[claimed], f"there were several cells {claimed}: the last one was taken")
            continue
        found[claimed] = notebook.cells[place] = _restored(cell, planned[claimed])
    _put_back(notebook, plan, found)
    _put_in_order(notebook, plan)


def _put_in_order(notebook: NotebookNode, plan: Sequence[PlannedCell]) -> None:
    """Put named cells that were moved back in the released order; cells without a name stay where they are."""
    order = {was.grade_id: number for number, was in enumerate(plan)}
    places = [place for place, cell in enumerate(notebook.cells) if "nbgrader" in cell.metadata]
    cells = sorted((notebook.cells[place] for place in places), key=lambda cell: order[cell.metadata.nbgrader.grade_id])
    for place, cell in zip(places, cells, strict=True):
        if notebook.cells[place] is not cell and cell.metadata.nbgrader.grade:
            note(cell, "cells had been moved: they were put back in their order")
    for place, cell in zip(places, cells, strict=True):
        notebook.cells[place] = cell


def _recognise(notebook: NotebookNode, plan: Sequence[PlannedCell]) -> None:
    """Give locked cells that lost their grade id it back, where their source is still the released one."""
    known = {cell.grade_id for cell in plan}
    claimed = {cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells}
    lost = {cell.source.strip(): cell.grade_id for cell in plan if cell.locked and cell.grade_id not in claimed}
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") not in known and cell.source.strip() in lost:
            cell.metadata["nbgrader"] = NotebookNode(grade_id=lost.pop(cell.source.strip()))
            note(cell, "this cell had lost its name: it was recognised by its content")


def _restored(cell: NotebookNode, was: PlannedCell) -> NotebookNode:
    """Return the cell with the released type and metadata, and the released source where it is locked."""
    fixed = was.locked or (was.grade and not was.solution)
    make = v4.new_code_cell if was.cell_type == "code" else v4.new_markdown_cell
    restored: NotebookNode = make(was.source if fixed else cell.source, id=cell.id)
    restored.metadata["nbgrader"] = was.metadata
    for text in notes(cell):
        note(restored, text)
    if fixed and cell.source.strip() != was.source.strip():
        note(restored, "this locked cell had been changed: it was put back as it was released")
    return restored


def _put_back(notebook: NotebookNode, plan: Sequence[PlannedCell], found: dict[str, NotebookNode]) -> None:
    """Insert the locked and graded cells that are missing, each after the cell that it followed."""
    previous: NotebookNode | None = None
    for number, was in enumerate(plan):
        if was.grade_id not in found:
            if not (was.locked or was.grade or was.task):
                continue
            made = _restored(NotebookNode(source=was.source, id=f"restored-{number}", metadata={}), was)
            note(made, "this cell was missing: it was put back")
            places = [place for place, cell in enumerate(notebook.cells) if cell is previous]
            notebook.cells.insert(places[0] + 1 if places else 0, made)
            found[was.grade_id] = made
        previous = found[was.grade_id]
