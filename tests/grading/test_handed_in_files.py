"""Which files of a submission are taken along: plain ones, and not too much of them."""

import os

import pytest

from tilelab.grading.sandbox.files import MOST_FILES, beginning, copy_plain_files, plain_files, regular_files


def names(folder, **limits):
    return sorted(str(path.relative_to(folder)) for path in plain_files(folder, **limits))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "a.csv").write_bytes(bytes(10))
    (tmp_path / "data" / "b.csv").write_bytes(bytes(20))
    (tmp_path / "run.sh").write_bytes(bytes(5))
    (tmp_path / "run.sh").chmod(0o4711)
    return tmp_path


def test_notebooks_links_pipes_and_the_time_are_left_out(folder):
    for name in ("exercise_1.ipynb", "timestamp.txt"):
        (folder / name).touch()
    (folder / "link").symlink_to("a.csv")
    (folder / "up").symlink_to("..")
    os.mkfifo(folder / "pipe")
    assert names(folder) == ["a.csv", "data/b.csv", "run.sh"]
    assert names(folder, deepest=1) == ["a.csv", "run.sh"]


def test_what_is_too_much_is_left_out(folder):
    assert names(folder, most=15) == ["a.csv", "run.sh"]
    with (folder / "0").open("wb") as file:
        file.truncate(1 << 40)
    assert "0" not in names(folder)
    for number in range(MOST_FILES):
        (folder / f"1-{number}").touch()
    assert len(list(regular_files(folder))) == MOST_FILES


def test_copies_have_the_contents_and_no_special_rights(folder, tmp_path_factory):
    copy = tmp_path_factory.mktemp("copy")
    copy_plain_files(folder, copy)
    assert names(copy) == names(folder)
    assert (copy / "data" / "b.csv").read_bytes() == bytes(20)
    assert (copy / "run.sh").stat().st_mode & 0o7777 == 0o755
    assert (copy / "a.csv").stat().st_mode & 0o7777 == 0o644


def test_the_beginning_of_what_is_no_file_is_empty(folder):
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("a.csv")
    assert [beginning(folder / name, 3) for name in ("a.csv", "pipe", "link", "data", "none")] == [bytes(3), *[b""] * 4]


def test_a_folder_that_is_not_there_holds_nothing(tmp_path):
    assert plain_files(tmp_path / "none") == []
