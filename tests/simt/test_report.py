"""A report tells the line, the conflict and the sectors; as data, as text and as a page."""

import json
import re

import numpy as np
import pytest

from tilelab.simt import RaceError, cuda, float32

T = 16


@cuda.jit
def eight_ways(out, a):
    tile = cuda.shared.array((T, T), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    tile[ty, tx] = a[ty, tx]
    cuda.syncthreads()
    out[ty, tx] = tile[tx, ty]


@cuda.jit
def split(out, n):
    i = cuda.grid(1)
    if i % 2 == 0:
        out[i] = out[i] * float32(2) + float32(1)
    for k in range(i % 3):
        out[i] += k


@cuda.jit
def straight(out):
    i = cuda.grid(1)
    out[i] = i


@cuda.jit
def passes_or_fails(out):
    s = cuda.shared.array(64, float32)
    i = cuda.threadIdx.x
    s[i] = 0
    cuda.syncthreads()
    s[i] = i
    out[i] = s[(i + 1) % 64]


@cuda.jit
def half_written(out):
    s = cuda.shared.array(32, float32)
    i = cuda.threadIdx.x
    if i < 16:
        s[i] = i
    cuda.syncthreads()
    out[i] = s[i]


def conflict_report():
    a = np.arange(T * T, dtype=np.float32).reshape(T, T)
    return cuda.inspect(eight_ways)[1, (T, T)](np.zeros_like(a), a)


def test_the_line_with_the_conflict():
    report = conflict_report()
    assert report.ok
    (worst,) = report.conflicts
    line = next(n for n, text in report.source if "tile[tx, ty]" in text)
    assert (worst.line, worst.text, worst.ways, worst.wavefronts, worst.replays) == (line, "tile[tx, ty]", 8, 64, 56)
    assert f"{line}" in str(report)
    assert "8-way conflict, 56 replays" in " ".join(str(report).split())
    assert report.line(line)[0].space in ("global", "shared")
    assert report.check() is report


def test_as_data():
    record = conflict_report().to_dict()
    assert json.loads(json.dumps(record)) == record
    assert record["accesses"][0]["line"] > 0
    assert {s["phase"] for s in record["snapshots"]} == {0, 1}
    tile = record["snapshots"][0]["arrays"]["tile"]
    assert tile["values"] == list(range(T * T))
    assert tile["written"] == list(range(T * T))


def test_as_a_page():
    html = conflict_report()._repr_html_()
    assert "8-way" in html
    assert html.count("<svg") >= 5
    assert 'type="range"' in html
    assert "<script" not in html
    assert re.search(r"tile\[tx, ty\], 8-way; who waits", html)
    assert len(html) < 1_000_000
    assert "No error was found, but 1 costly access." in html
    assert "read tile[tx, ty] has an 8-way bank conflict: 64 wavefronts where 8 would do." in html
    clean = cuda.inspect(straight)[1, 32](np.zeros(32, np.float32))._repr_html_()
    assert "Nothing wrong was found." in clean
    assert "1 warp, 4 sectors" in clean


def test_what_was_found_is_said_first():
    assert str(conflict_report()).splitlines()[1:3] == [
        "No error was found, but 1 costly access.",
        "Line {}: read tile[tx, ty] has an 8-way bank conflict: 64 wavefronts where 8 would do.".format(
            next(n for n, text in conflict_report().source if "tile[tx, ty]" in text)
        ),
    ]
    report = cuda.inspect(split)[1, 32](np.zeros(32, np.float32), 1)
    assert report.verdict == "No error was found, but 2 costly accesses."
    assert "moves 4 sectors where 2 would do (50% used)." in report.costs[0]
    assert cuda.inspect(straight)[1, 32](np.zeros(32, np.float32)).verdict == "Nothing wrong was found."
    racy = cuda.inspect(passes_or_fails)[1, 64](np.zeros(64))
    assert racy.verdict == "Found: 1 error."


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_text_has_room_at_any_width(width):
    from tilelab.simt.table import as_text

    text = as_text(conflict_report(), width)
    assert max(map(len, text.splitlines())) <= width
    assert "    out[ty, tx] = tile[tx, ty]" in text
    assert "read tile[tx, ty]: 8 warps, 64 wavefronts" in text
    assert not re.search(r"\b1 (warps|sectors|wavefronts|replays)\b", text)


def test_a_long_array_is_folded():
    page = cuda.inspect(passes_or_fails)[1, 64](np.zeros(64))._repr_html_()
    picture = re.search(r'class="tl-step">.*?viewBox="\S+ \S+ (\d+) (\d+)"', page, re.S)
    width, height = map(float, picture.groups())
    assert width < 900, "64 numbers in four rows, not in one"
    assert height > 100


def test_branches_and_arithmetic():
    report = cuda.inspect(split)[2, 48](np.zeros(96, np.float32), 1)
    by_text = {b.text: b for b in report.branches}
    assert (by_text["if i % 2 == 0:"].warps, by_text["if i % 2 == 0:"].divergent) == (4, 4)
    loop = by_text["for k in range(i % 3):"]
    assert (loop.warps, loop.divergent) == (12, 8)
    line = next(n for n, text in report.source if "float32(2)" in text)
    assert report.arithmetic[line] == {"float32 *": 48, "float32 +": 48}
    assert report.flops == 96 + sum(i % 3 for i in range(96))


def test_findings_as_data_and_as_an_error():
    report = cuda.inspect(passes_or_fails)[1, 64](np.zeros(64))
    assert not report.ok
    (race,) = report.races
    assert json.loads(json.dumps(race.to_dict()))["lines"] == list(race.lines)
    with pytest.raises(RaceError, match="race: s"):
        report.check()
    html = report._repr_html_()
    assert "tl-bad" in html
    assert race.hint.split("`")[0][:20] in html


def test_a_race_passes_in_one_order_and_fails_in_another():
    right = {(i + 1) % 64 for i in range(64)}
    results = set()
    for seed in range(6):
        out = np.zeros(64)
        cuda.simulate(passes_or_fails, checks=False, seed=seed)[1, 64](out)
        again = np.zeros(64)
        cuda.simulate(passes_or_fails, checks=False, seed=seed)[1, 64](again)
        assert out.tolist() == again.tolist(), "a seed fixes the order"
        results.add(tuple(out))
        assert set(out) <= right | {0.0}
    assert len(results) > 1
    lanes = np.zeros(64)
    cuda.simulate(passes_or_fails, checks=False)[1, 64](lanes)
    assert lanes.tolist() == [(i + 1) % 64 for i in range(64)], "in step, the race does not show in the values"


def test_an_early_end_is_said():
    @cuda.jit
    def bad(out):
        out[cuda.grid(1)] = 1

    report = cuda.inspect(bad)[3, 32](np.zeros(70))
    assert not report.complete
    assert report.findings[-1].block == (2, 0, 0)
    assert sum(a.threads for a in report.accesses) == 64
    assert "ended early" in str(report)


def test_the_host_side_of_numba():
    a = cuda.to_device(np.arange(4.0))
    out = cuda.device_array_like(a)
    assert np.isnan(out).all()

    @cuda.jit("void(float64[:], float64[:])")
    def copy(out, a):
        i = cuda.grid(1)
        if i < a.shape[0]:
            out[i] = a[i]

    copy[1, 32, cuda.stream()](out, a)
    cuda.synchronize()
    assert out.copy_to_host().tolist() == [0, 1, 2, 3]
    assert cuda.is_available()


@pytest.mark.parametrize("wanted", [True, False])
def test_a_long_launch_shows_how_far_it_is(monkeypatch, capfd, wanted):
    monkeypatch.setattr("tilelab.simt.launch.PATIENCE", -1.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    cuda.simulate(split, chunk=32, progress=wanted)[64, 32](np.zeros(2048, np.float32), 1)
    assert ("simulating split" in capfd.readouterr().err) == wanted


def test_a_page_shows_elements_that_nobody_wrote():
    report = cuda.inspect(half_written)[1, 32](np.zeros(32, np.float32))
    assert {finding.kind for finding in report.findings} == {"uninitialised"}
    page = report._repr_html_()
    assert page.count(">·</text>") >= 16
    assert "uninitialised" in page or "nobody wrote" in page


@cuda.jit
def many_mistakes(o, v):
    s = cuda.shared.array(64, float32)
    u = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = o[t]
    s[(t + 1) % 64] = o[t]
    s[(t + 2) % 64] = o[t]
    s[(t + 3) % 64] = o[t]
    s[(t + 4) % 64] = o[t]
    v[0] = 1
    o[t] = s[t] + u[t]


def test_of_many_findings_the_first_of_each_kind_are_written_out():
    report = cuda.inspect(many_mistakes)[1, 64](np.zeros(64, np.float32), np.zeros(1, np.int32))
    first, rest = report.foremost
    assert len(first) == 8
    assert sorted([*first, *rest], key=str) == sorted(report.findings, key=str)
    assert {(f.severity, f.kind) for f in first} == {(f.severity, f.kind) for f in report.findings}
    assert [f.severity for f in first] == ["error"] * 7 + ["warning"]
    start = many_mistakes.source.first
    told = f"And {len(rest)} more, in lines {start + 6} to {start + 11}"
    assert f"{told} (findings holds them all)." in str(report)
    assert str(report).count("error · ") == 7
    page = report._repr_html_()
    assert f"<summary>{told}</summary>" in page
    assert page.count("with no barrier in between") == len(report.races)


@cuda.jit
def many_costs(o):
    t = cuda.threadIdx.x
    o[8 * t] = 1
    o[8 * t + 1] = 1
    o[8 * t + 2] = 1
    o[8 * t + 3] = 1
    o[8 * t + 4] = 1
    o[8 * t + 5] = 1
    o[8 * t + 6] = 1
    o[8 * t + 7] = 1
    o[8 * t + 256] = 1
    o[8 * t + 257] = 1


def test_of_many_costs_the_first_are_written_out():
    report = cuda.inspect(many_costs)[1, 32](np.zeros(520, np.float32))
    assert report.verdict == "No error was found, but 10 costly accesses."
    assert str(report).count(" where 4 would do") == 8
    assert "And 2 more costly accesses (costs holds them all)." in str(report)
    assert report._repr_html_().count(" where 4 would do") == 10


def test_without_checks_nothing_is_claimed():
    report = cuda.inspect(passes_or_fails, checks=False)[1, 64](np.zeros(64))
    assert report.verdict == "It ran without checks: nothing was looked for."
    assert "Nothing wrong" not in str(report) + report._repr_html_()
    assert report.to_dict()["checked"] is False


@cuda.jit
def many_phases(o):
    s = cuda.shared.array((2, 1000), float32)
    t = cuda.threadIdx.x
    for i in range(30):
        s[0, t] = i
        cuda.syncthreads()
    o[t] = s[0, t]


def test_a_page_does_not_grow_with_every_phase():
    report = cuda.inspect(many_phases)[1, 32](np.zeros(32, np.float32))
    page = report._repr_html_()
    assert len(report.snapshots) == 31
    assert page.count('class="tl-step"') == 20
    assert "phase by phase (11 later phases not drawn; snapshots holds them):" in page
    assert len(page) < 5_000_000
