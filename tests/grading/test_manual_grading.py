"""nbgrader's formgrader on a graded course, in a browser: what waits, why, and the rubric a person grades by."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import pytest
from classroom import hand_in, make_course, solved

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]


@contextmanager
def server(root, home):
    """Run a Jupyter server with formgrader on a course, and yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (home / "jupyter_server_config.json").write_text(
        json.dumps({"ServerApp": {"jpserver_extensions": {"nbgrader.server_extensions.formgrader": True}}})
    )
    told = {"JUPYTER_CONFIG_DIR": str(home), "JUPYTER_DATA_DIR": str(home / "data"), "HOME": str(home)}
    command = [sys.executable, "-m", "jupyter_server", "--ip=127.0.0.1", f"--port={port}", "--no-browser"]
    command += ["--allow-root", "--ServerApp.token=", "--ServerApp.port_retries=0", f"--ServerApp.root_dir={root}"]
    process = subprocess.Popen(command, cwd=root, env=os.environ | told, stderr=subprocess.PIPE, text=True)
    try:
        address = f"http://127.0.0.1:{port}/formgrader"
        for _ in range(240):
            assert process.poll() is None, process.stderr.read()
            try:
                urllib.request.urlopen(f"{address}/api/assignments").close()
                break
            except OSError:
                time.sleep(0.25)
        yield address
    finally:
        process.terminate()
        process.communicate()


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_an_instructor_sees_what_waits_and_the_rubric(tmp_path):
    from playwright.sync_api import sync_playwright

    course = make_course(tmp_path / "course", "practice", problems=["practice_6", "practice_8"])
    hand_in(course, "ada", "practice", *((f"{name}.ipynb", solved(name)) for name in ("practice_6", "practice_8")))
    result = course.grade("practice", "ada")
    assert result.status == "graded", result.message
    home = tmp_path / "home"
    home.mkdir()
    with server(course.root, home) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page()

        def submission_of(problem):
            page.goto(f"{address}/gradebook/practice/{problem}")
            page.locator("a", has_text="Submission #1").first.click()
            page.locator("#toc, .nbgrader_cell").first.wait_for()

        page.goto(f"{address}/manage_submissions/practice")
        page.get_by_text("needs manual grading").wait_for()
        assert page.locator("tr", has_text="ada").get_by_text(f"{result.score:g} / 16").count() == 1

        submission_of("practice_6")
        assert page.get_by_text("0 of 4 points, 4 pending").count() == 1
        assert page.get_by_text("measurement: pending, to be compared within 10 % with the judge's own").count() == 1

        submission_of("practice_8")
        assert page.get_by_text("This is what is looked for").count() == 1
        assert page.get_by_text("2 points. The decision").count() == 1
        assert page.locator("summary", has_text="Hint 1: flops and bytes").count() == 1
        box = page.locator(".nbgrader_cell", has_text="Example of a plan").locator("input.score").first
        box.fill("5")
        box.press("Tab")
        page.wait_for_timeout(1000)
        browser.close()
    (graded,) = course.results("practice")
    text = next(part for part in graded.parts if part.cell == "practice_8_text")
    assert (text.score, text.needs_person) == (5, False), "a person's points are recorded"
