"""A record names the commit that ran, and says where files were not as in it."""

import subprocess

from tilelab.measure import records


def git(folder, *words):
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


def test_a_commit_is_named_and_changes_are_said(tmp_path, monkeypatch):
    monkeypatch.delenv("TILELAB_COMMIT", raising=False)
    code = tmp_path / "src" / "records.py"
    (tmp_path / "benchmarks" / "records").mkdir(parents=True)
    code.parent.mkdir()
    code.write_text("one")
    monkeypatch.setattr(records, "__file__", str(code))
    assert records.commit() == ""  # no repository
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "one")
    head = records.commit()
    assert head
    assert "changes" not in head
    (tmp_path / "benchmarks" / "records" / "ladder.json").write_text("{}")
    assert records.commit() == head  # a run writes records one after another
    (tmp_path / "more.py").write_text("two")
    assert records.commit() == f"{head} with changes"
    monkeypatch.setenv("TILELAB_COMMIT", "abc")
    assert records.commit() == "abc"
