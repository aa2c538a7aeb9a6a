"""The CUDA C++ floor's compilers and emulated kernels, run inside.

``with use_runner(run_inside): …`` and everything that :mod:`tilelab.cudacpp` starts meanwhile is started here.
"""

from dataclasses import replace

from tilelab.cudacpp.processes import Finished, Task
from tilelab.grading.sandbox.limits import Limits
from tilelab.grading.sandbox.runner import run

#: A task's files lie in memory while it runs, so its home may be as large as what it was given and may make.
ROOM = 4


def run_inside(task: Task, /) -> Finished:
    """Run a task of the CUDA C++ floor in a sandbox of its own.

    Raises
    ------
    SandboxError
        Where the sandbox cannot be built.
    """
    given = sum(map(len, task.files.values()))
    limits = Limits()
    limits = replace(
        limits,
        seconds=task.limits.seconds,
        memory=min(task.limits.memory, limits.memory),
        file_size=min(task.limits.file_size, limits.scratch),
        output=task.limits.output,
        scratch=limits.scratch + ROOM * given,
    )
    done = run(task.argv, task.files, limits, fetch=task.wanted, show=[str(folder) for folder in task.readable])
    words = {"memory": "it used more memory than is allowed", "shared files": "it wrote more files than are allowed"}
    return Finished(
        code=done.returncode if done.returncode <= 128 else 128 - done.returncode,
        stdout=done.stdout.decode(errors="replace"),
        stderr=done.stderr.decode(errors="replace") + words.get(done.ended, ""),
        files=done.files,
        timed_out=done.ended == "time",
    )
