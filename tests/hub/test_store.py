"""The exchange's folder: only ever added to, whole or not at all."""

import os
import stat
from datetime import UTC, datetime, timedelta

import pytest

from tilelab.grading.errors import GradingError
from tilelab.grading.exchange import bundle, store
from tilelab.grading.exchange.store import MissingError, NoSpaceError, Store

FILES = {"exercise_1.ipynb": b"{}", "data/table.csv": b"1,2\n"}


def key(number):
    return f"{number:032x}"


@pytest.fixture
def kept(tmp_path):
    made = Store(tmp_path / "exchange")
    made.release("exercises", FILES)
    return made


def test_what_is_released_comes_back_and_cannot_be_altered(kept):
    assert kept.released() == {"exercises": 1}
    assert kept.handed_out("exercises") == FILES
    folder = kept.root / "released" / "exercises" / "0001"
    modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")} | {stat.S_IMODE(folder.stat().st_mode)}
    assert modes == {0o444, 0o555}


def test_a_second_release_must_be_meant_and_keeps_the_first(kept):
    with pytest.raises(GradingError, match="released already"):
        kept.release("exercises", {"exercise_1.ipynb": b"new"})
    assert kept.release("exercises", {"exercise_1.ipynb": b"new"}, again=True) == 2
    assert kept.handed_out("exercises") == {"exercise_1.ipynb": b"new"}
    assert (kept.root / "released/exercises/0001/exercise_1.ipynb").read_bytes() == b"{}"


def test_a_withdrawn_assignment_is_not_handed_out_and_nothing_is_lost(kept):
    kept.submit("ada", "exercises", FILES, key(1))
    kept.withdraw("exercises")
    with pytest.raises(MissingError, match="no assignment 'exercises' is released; there is none"):
        kept.handed_out("exercises")
    assert len(kept.submissions("ada")) == 1
    assert kept.release("exercises", FILES) == 2


@pytest.mark.parametrize("secret", store.SECRETS)
def test_a_file_with_a_solution_is_not_released(kept, secret):
    with pytest.raises(GradingError, match="generate_assignment"):
        kept.release("practice", {"a.ipynb": b"x\n" + secret + b"\n"})
    assert list(kept.released()) == ["exercises"]


def test_each_submission_is_kept(kept):
    first = kept.submit("ada", "exercises", {"a.ipynb": b"first"}, key(1))
    second = kept.submit("ada", "exercises", {"a.ipynb": b"second"}, key(2))
    assert [one.time for one in kept.submissions("ada", "exercises")] == [first.time, second.time]
    assert kept.submitted("ada", "exercises", first.time) == {"a.ipynb": b"first"}
    assert kept.submitted("ada", "exercises", second.time) == {"a.ipynb": b"second"}


def test_an_upload_that_is_repeated_is_one_submission(kept):
    first = kept.submit("ada", "exercises", FILES, key(1))
    assert kept.submit("ada", "exercises", FILES, key(1)) == first
    assert kept.submissions("ada") == [first]


def test_a_clock_that_goes_back_does_not_put_a_submission_before_an_earlier_one(tmp_path):
    moments = iter([datetime(2027, 3, 1, 12, tzinfo=UTC), datetime(2027, 3, 1, 11, tzinfo=UTC)])
    kept = Store(tmp_path / "exchange", now=lambda: next(moments))
    kept.release("exercises", FILES)
    first, second = (kept.submit("ada", "exercises", FILES, key(n)) for n in (1, 2))
    assert second.moment - first.moment == timedelta(microseconds=1)


@pytest.mark.parametrize("name", ["", ".", "..", "../ada", "a/b", ".hidden", "a b", "a\0", "é", "x" * 101, None])
def test_odd_names_are_refused(kept, name):
    with pytest.raises(GradingError, match="is not a name"):
        kept.submit(name, "exercises", FILES, key(1))
    with pytest.raises(GradingError, match="is not a name"):
        kept.release(name, FILES)


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../x", "a//b", "a/./b", "a\\b", "", "a\nb", "x" * 201, "a/" * 9 + "b"]
)
def test_a_file_stays_inside_its_folder(kept, name):
    with pytest.raises(GradingError):
        kept.submit("ada", "exercises", {name: b""}, key(1))
    assert kept.submissions() == []


def test_a_name_cannot_be_a_file_and_a_folder(kept):
    with pytest.raises(GradingError, match="a file and a folder"):
        kept.submit("ada", "exercises", {"a": b"", "a/b": b""}, key(1))


def test_too_much_is_refused_by_name(kept, monkeypatch):
    monkeypatch.setattr(bundle, "MOST_BYTES", 1000)
    with pytest.raises(GradingError, match=r"'big\.bin' alone"):
        kept.submit("ada", "exercises", {"big.bin": b"x" * 1001, "small": b""}, key(1))


def test_a_learner_has_a_share_of_the_disk_and_no_more(tmp_path):
    kept = Store(tmp_path / "exchange", quota=50_000)
    kept.release("exercises", FILES)
    kept.submit("ada", "exercises", {"a.ipynb": b"x" * 30_000}, key(1))
    with pytest.raises(NoSpaceError, match="your submissions take"):
        kept.submit("ada", "exercises", {"a.ipynb": b"x" * 30_000}, key(2))
    kept.submit("ben", "exercises", {"a.ipynb": b"x" * 30_000}, key(3))
    assert len(kept.submissions()) == 2


def test_empty_files_take_a_share_too(tmp_path):
    kept = Store(tmp_path / "exchange", quota=100_000)
    kept.release("exercises", FILES)
    kept.submit("ada", "exercises", {str(n): b"" for n in range(15)}, key(1))
    with pytest.raises(NoSpaceError, match="your submissions take"):
        kept.submit("ada", "exercises", {str(n): b"" for n in range(15)}, key(2))


def test_a_disk_without_its_reserve_takes_nothing(tmp_path):
    kept = Store(tmp_path / "exchange", reserve=1 << 60)
    with pytest.raises(NoSpaceError, match="nothing was stored and nothing was lost"):
        kept.release("exercises", FILES)
    assert kept.released() == {}


def test_a_write_that_fails_leaves_nothing(kept, monkeypatch):
    def full(handle):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(store.os, "fsync", full)
    with pytest.raises(NoSpaceError, match="full"):
        kept.submit("ada", "exercises", FILES, key(1))
    monkeypatch.undo()
    assert kept.submissions() == []
    assert not list(kept.root.rglob(".*"))
    kept.submit("ada", "exercises", FILES, key(1))


def test_what_a_killed_writer_left_is_swept_away_and_never_seen(kept):
    draft = kept.root / "submissions" / "ada" / "exercises" / f".{key(7)}"
    (draft / "files").mkdir(parents=True)
    (draft / "files" / "a.ipynb").write_text("half")
    (draft / "files").chmod(0o555)
    assert kept.submissions() == []
    assert kept.sweep() == 1
    assert not draft.exists()
    assert kept.sweep() == 0


def test_feedback_belongs_to_one_submission_and_its_newest_version_counts(kept):
    receipt = kept.submit("ada", "exercises", FILES, key(1))
    kept.give_feedback("ada", "exercises", receipt.time, {"exercise_1.html": b"one"})
    kept.give_feedback("ada", "exercises", receipt.time, {"exercise_1.html": b"two"})
    assert kept.feedback("ada", "exercises") == {receipt.time: {"exercise_1.html": b"two"}}
    assert kept.feedback("ben", "exercises") == {}
    with pytest.raises(MissingError, match="ben handed in no"):
        kept.give_feedback("ben", "exercises", receipt.time, {"exercise_1.html": b"x"})


def test_materials_have_versions(kept):
    assert kept.materials() == (0, {})
    assert kept.publish({"01.ipynb": b"a"}) == 1
    assert kept.publish({"01.ipynb": b"b"}) == 2
    assert kept.materials() == (2, {"01.ipynb": b"b"})


def test_a_folder_that_others_can_read_is_no_exchange(tmp_path):
    (tmp_path / "open").mkdir(mode=0o755)
    with pytest.raises(GradingError, match="chmod 700"):
        Store(tmp_path / "open")


def test_links_and_odd_files_are_not_handed_in(tmp_path):
    (tmp_path / "a.ipynb").write_text("{}")
    (tmp_path / "secret").symlink_to("/etc/passwd")
    (tmp_path / "folder").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".ipynb_checkpoints" / "a.ipynb").write_text("old")
    assert bundle.read_folder(tmp_path, [".ipynb_checkpoints"]) == {"a.ipynb": b"{}"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not JSON"),
        (b"[" * 10_000, "not JSON"),
        (b"[]", "is a list"),
        (b'{"files": [' + b"{}," * 100_000 + b"{}]}", "more than 20,000 values"),
    ],
)
def test_a_message_that_is_no_object_is_refused(body, words):
    with pytest.raises(GradingError, match=words):
        bundle.read_json(body)


@pytest.mark.parametrize("said", [None, [], "x", {}, {"a": 1}, {"a": "???"}, {"a": None}, {"../a": "eA=="}])
def test_files_that_are_none_are_refused(said):
    with pytest.raises(GradingError):
        bundle.from_json(said)
