"""Chapters on a learner's server: a new version comes, and nothing that they wrote is lost."""

import json

import pytest

from tilelab.grading.errors import GradingError
from tilelab.grading.exchange.materials import MANIFEST, update, version_in

ONE = {"01.ipynb": b"one", "data/a.csv": b"1"}


def test_the_first_version_is_written(tmp_path):
    done = update(tmp_path / "course", 1, ONE)
    assert sorted(done.new) == ["01.ipynb", "data/a.csv"]
    assert (tmp_path / "course/data/a.csv").read_bytes() == b"1"
    assert version_in(tmp_path / "course") == 1


def test_what_was_not_touched_is_replaced(tmp_path):
    update(tmp_path, 1, ONE)
    done = update(tmp_path, 2, ONE | {"01.ipynb": b"two"})
    assert (done.new, done.replaced, done.beside) == ([], ["01.ipynb"], [])
    assert (tmp_path / "01.ipynb").read_bytes() == b"two"


def test_what_a_learner_changed_stays_and_the_new_one_lies_beside(tmp_path):
    update(tmp_path, 1, ONE)
    (tmp_path / "01.ipynb").write_bytes(b"mine")
    done = update(tmp_path, 2, ONE | {"01.ipynb": b"two"})
    assert done.beside == ["01 (version 2).ipynb"]
    assert (tmp_path / "01.ipynb").read_bytes() == b"mine"
    assert (tmp_path / "01 (version 2).ipynb").read_bytes() == b"two"
    assert "1 beside yours" in str(done)
    again = update(tmp_path, 3, ONE | {"01.ipynb": b"two"})
    assert again.beside == [], "the same new file is not put there again"


def test_a_file_of_theirs_with_the_name_of_a_new_chapter_stays(tmp_path):
    (tmp_path / "01.ipynb").write_bytes(b"mine")
    update(tmp_path, 1, ONE)
    assert (tmp_path / "01.ipynb").read_bytes() == b"mine"
    assert (tmp_path / "01 (version 1).ipynb").read_bytes() == b"one"


def test_what_they_deleted_stays_deleted_until_it_changes(tmp_path):
    update(tmp_path, 1, ONE)
    (tmp_path / "01.ipynb").unlink()
    assert update(tmp_path, 2, ONE).new == []
    assert update(tmp_path, 3, ONE | {"01.ipynb": b"two"}).new == ["01.ipynb"]


def test_what_is_withdrawn_stays_with_them(tmp_path):
    update(tmp_path, 1, ONE)
    update(tmp_path, 2, {"01.ipynb": b"one"})
    assert (tmp_path / "data/a.csv").exists()


@pytest.mark.parametrize("content", ["", "[]", "{", '{"version": "x", "files": {}}', '{"version": 1, "files": 3}'])
def test_a_manifest_that_is_broken_loses_nothing(tmp_path, content):
    update(tmp_path, 1, ONE)
    (tmp_path / "01.ipynb").write_bytes(b"mine")
    (tmp_path / MANIFEST).write_text(content)
    update(tmp_path, 2, ONE | {"01.ipynb": b"two"})
    assert (tmp_path / "01.ipynb").read_bytes() == b"mine"
    assert json.loads((tmp_path / MANIFEST).read_text())["version"] == 2


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "course").write_text("a file where a folder should be")
    with pytest.raises(GradingError, match="could not be brought to version 1"):
        update(tmp_path / "course", 1, ONE)


def test_a_name_that_leads_elsewhere_is_refused(tmp_path):
    with pytest.raises(GradingError):
        update(tmp_path / "course", 1, {"../x": b""})
    assert not (tmp_path / "x").exists()
