"""Formgrader goes on after a write that failed."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy.exc import StatementError


def test_a_write_that_failed_leaves_the_next_one_alone(tmp_path, monkeypatch):
    from nbgrader.api import Gradebook
    from nbgrader.server_extensions.formgrader.base import BaseHandler

    from tilelab.grading.exchange.formgrader import mend

    # nbgrader makes a new gradebook with a program that lies beside this Python
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.setattr(BaseHandler, "on_finish", lambda page: None)
    mend()
    mend()
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}", "tiles") as gradebook:
        assignment = gradebook.add_assignment("exercises")
        assignment.duedate = "never"
        with pytest.raises(StatementError):
            gradebook.db.commit()
        page = SimpleNamespace(settings={"nbgrader_gradebook": gradebook})
        BaseHandler.on_finish(page)
        assert [one.name for one in gradebook.assignments] == ["exercises"]
    BaseHandler.on_finish(SimpleNamespace(settings={"nbgrader_gradebook": None}))
