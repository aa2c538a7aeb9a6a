"""A class at a real hub on loopback: everybody fetches and submits within a minute, through hub, proxy and exchange.

Each learner logs in and gets a token as their server would have one; servers themselves are not started. Then, first
all at once and then spread over the seconds given, each learner lists, fetches the assignment and hands it in, with an
output of 200 kB in a notebook. Afterwards what the exchange holds is compared with what was sent.

    python benchmarks/hub.py [--json] [--learners 40] [--spread 60]
"""

import argparse
import hashlib
import json
import os
import platform
import random
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "autograder" / "hub"), str(ROOT / "tools")]

COURSE = """
[course]
id = "tiles"
release = ["exercises"]
[people]
instructors = ["iris"]
learners = {learners}
[authenticator]
kind = "shared-password"
[hub]
url = "http://127.0.0.1:{port}"
port = {port}
state = "state"
idle_minutes = 0
"""
PASSWORD = "for-loopback-alone"
OUTPUT = 200_000


def started(folder, learners):
    """Return a hub that is ready to be started, on which the exercises are released."""
    from demo import release, walls
    from deployment import read_deployment
    from running import RunningHub, free_port

    file = folder / "course.toml"
    file.write_text(COURSE.format(learners=json.dumps(learners), port=free_port()))
    of = read_deployment(file)
    of.state.mkdir()
    accounts, before = walls(of)
    os.environ["TILELAB_ACCOUNTS"] = accounts
    of = read_deployment(file)
    release(of, before)
    return RunningHub(of, before, {"TILELAB_DEMO_PASSWORD": PASSWORD})


def work(client, learner, delay, sent):
    """List, fetch, hand in; return the seconds of each."""
    time.sleep(delay)
    begin = time.perf_counter()
    client.released()
    listed = time.perf_counter()
    files = client.handed_out("exercises")
    fetched = time.perf_counter()
    name = min(files)
    files[name] += f"\n{learner} ".encode() + random.Random(learner).randbytes(OUTPUT)
    receipt = client.submit("exercises", files)
    done = time.perf_counter()
    sent[learner, receipt.time] = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return {"list": listed - begin, "fetch": fetched - listed, "submit": done - fetched, "end": done}


def round_of(clients, spread, sent, name):
    """Let everybody work, and return a row."""
    moments = random.Random(len(sent))
    begin = time.perf_counter()
    with ThreadPoolExecutor(len(clients)) as pool:
        jobs = [
            pool.submit(work, client, learner, moments.uniform(0, spread), sent) for learner, client in clients.items()
        ]
        took = [job.result() for job in jobs]
    row = {"learners": len(clients), "how": name, "s until all are in": round(max(t["end"] for t in took) - begin, 2)}
    for step in ("list", "fetch", "submit"):
        seconds = sorted(t[step] for t in took)
        row[f"{step}, median s"] = round(statistics.median(seconds), 3)
        row[f"{step}, p95 s"] = round(seconds[int(0.95 * (len(seconds) - 1))], 3)
    return row


def measure(learners, spread):
    """Run both rounds and return the rows, and how many submissions are lost or differ."""
    names = [f"learner-{number:02}" for number in range(1, learners + 1)]
    with tempfile.TemporaryDirectory(prefix="tilelab-hub-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        with started(Path(name), names) as running:
            from visitor import Visitor

            base = f"{running.of.at('proxy')}/"
            begin = time.perf_counter()
            clients = {learner: Visitor(base, learner, PASSWORD).exchange() for learner in names}
            login = (time.perf_counter() - begin) / learners
            sent = {}
            rows = [
                round_of(clients, 0.0, sent, "all at once"),
                round_of(clients, spread * 0.9, sent, f"over {spread:g} s"),
            ]
            kept = Visitor(base, "iris", PASSWORD).exchange().submissions(everybody=True)
    held = {(one.learner, one.time): one.digests for one in kept}
    lost = sum(held.get(one) != digests for one, digests in sent.items())
    return rows, lost + abs(len(held) - 2 * learners), login


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--learners", type=int, default=40)
    parser.add_argument("--spread", type=float, default=60.0)
    asked = parser.parse_args()
    threading.stack_size(512 * 1024)
    rows, lost, login = measure(asked.learners, asked.spread)
    targets = [
        ("submissions lost or altered", lost, 0, "<="),
        ("seconds until a class that starts at once is in", rows[0]["s until all are in"], 60, "<="),
        ("seconds until a class within a minute is in", rows[1]["s until all are in"], 60, "<="),
        ("p95 of submit, all at once, s", rows[0]["submit, p95 s"], 10, "<="),
    ]
    result = {
        "rows": rows,
        "targets": [
            {"name": name, "value": value, "bound": bound, "sense": sense, "ok": value <= bound}
            for name, value, bound, sense in targets
        ],
        "where": {
            "cores": len(os.sched_getaffinity(0)),
            "load": [round(load, 1) for load in os.getloadavg()],
            "python": platform.python_version(),
            "s for a login and a token": round(login, 3),
            **{name: version(name) for name in ("jupyterhub", "tornado", "nbgrader")},
        },
    }
    if asked.json:
        print(json.dumps(result))
        return
    for name in rows[0]:
        print(f"{name:>22}", *(f"{row[name]:>16}" for row in rows))
    for one in result["targets"]:
        print(f"{'ok ' if one['ok'] else 'NOT'} {one['name']}: {one['value']} ({one['sense']} {one['bound']})")
    print(result["where"])


if __name__ == "__main__":
    main()
