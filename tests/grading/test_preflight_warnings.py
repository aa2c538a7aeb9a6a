"""Newer Pythons warn of a fork beside threads: the preflight reads what it found, whatever else a kernel says."""

from pathlib import Path

from tilelab.grading.sandbox import preflight, probe


def test_a_warning_in_the_kernel_is_no_finding(tmp_path, monkeypatch):
    source = Path(probe.__file__).read_text()
    noisy = tmp_path / "probe.py"
    noisy.write_text(
        source.replace(
            'if __name__ == "__main__"', 'import sys\nprint("careful", file=sys.stderr)\n\nif __name__ == "__main__"'
        )
    )
    monkeypatch.setattr(probe, "__file__", str(noisy))
    assert preflight.holes(preflight.in_a_kernel([])) == []
