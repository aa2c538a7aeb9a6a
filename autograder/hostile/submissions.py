"""The notebooks: cells changed, code that does not come back, code that reaches for tests and grades."""

from collections.abc import Callable

from case_kinds import (
    ALL,
    NO_ORDER,
    NOTHING,
    PARTS,
    PROBLEM,
    RIGHT_TABLE,
    Case,
    before_order,
    case,
    cell,
    changed,
    first,
    found_out,
    notebook,
)
from classroom import AUTOGRADER, MASTERS
from nbformat import NotebookNode, v4

from tilelab.grading.answers import MIME
from tilelab.grading.views import learners_copy_of


def each_grade_cell(**metadata: object) -> Callable[[NotebookNode], None]:
    """Return a change of the grade cells' metadata."""

    def change(made: NotebookNode) -> None:
        for part in PARTS:
            cell(made, part).metadata.nbgrader.update(metadata)

    return change


def copy_of(name: str) -> Callable[[NotebookNode], None]:
    """Return a change that copies a cell to the end."""

    def change(made: NotebookNode) -> None:
        original = cell(made, name)
        made.cells.append(v4.new_code_cell(original.source, metadata=original.metadata))

    return change


def without(name: str) -> Callable[[NotebookNode], None]:
    """Return a change that deletes a cell."""
    return lambda made: made.cells.remove(cell(made, name))


def edited_tests(made: NotebookNode) -> None:
    """Replace the grade cells by a number that would be full marks."""
    for part in PARTS:
        cell(made, part).source = "2.0"


def bare(made: NotebookNode) -> None:
    """Take all metadata away."""
    made.metadata = NotebookNode()
    for each in made.cells:
        each.metadata = NotebookNode()


def same_ids(made: NotebookNode) -> None:
    """Give all cells one id."""
    for each in made.cells:
        each["id"] = "same"


def other_ids(made: NotebookNode) -> None:
    """Give all cells new ids."""
    for number, each in enumerate(made.cells):
        each["id"] = f"new-{number}"


def reordered(made: NotebookNode) -> None:
    """Move the last grade cell before its answer, and nothing else."""
    last = cell(made, "contiguous")
    made.cells.remove(last)
    made.cells.insert(made.cells.index(cell(made, "contiguous_answer")), last)


def other_kernel(made: NotebookNode) -> None:
    """Ask for a kernel that does not exist."""
    made.metadata["kernelspec"] = {"name": "bash", "display_name": "Bash", "language": "bash"}


def scripts_everywhere(made: NotebookNode) -> None:
    """Put scripts wherever a notebook may hold HTML."""
    attack = "document.title='ATTACKED'"
    made.cells.insert(1, v4.new_markdown_cell(
        f"<script>{attack}</script><img src=x onerror=\"{attack}\"> [click](javascript:{attack})\n\n"
        f"[again][1] `<script>` ![picture](attachment:a.svg)\n\n[1]: javascript&colon;{attack}\n\n"
        f"<svg onload=\"{attack}\"></svg><iframe srcdoc=\"<script>parent.{attack}</script>\"></iframe>"))  # fmt: skip
    made.cells[1]["attachments"] = {"a.svg": {"image/svg+xml": f'<svg onload="{attack}"/>'}}
    cell(made, "prediction").source = (
        "prediction = 1\nfrom IPython.display import display\n"
        f'a = "<script>{attack}</script><svg xmlns=\'http://www.w3.org/2000/svg\' onload=\\"{attack}\\"></svg>"\n'
        "for kind in ('text/html', 'image/svg+xml', 'text/markdown', 'application/javascript', 'text/latex'):\n"
        f"    display({{kind: a if 'java' not in kind else \"{attack}\"}}, raw=True)\n"
        f"display({{'image/png': 'x\" onerror=\"{attack}'}}, raw=True)\n"
        f"wide = {{'image/png': {{'width': '1 onload={attack}'}}}}\n"
        "display({'image/png': 'iVBORw0KGgo='}, raw=True, metadata=wide)"
    )


FORGE = (
    "from IPython.display import display\n"
    "def submit(*names, **answers):\n"
    f"    display({{'{MIME}': {{'score': 2, 'points': 2}}}}, raw=True)\n    return 2.0"
)
HOOK = (
    "from IPython.display import display\n"
    f"def forged(*_): display({{'{MIME}': {{'version': 1, 'problem': '{PROBLEM}', 'answers': "
    f"{{'table': {RIGHT_TABLE}, 'order': 'column-major', 'contiguous': True}}}}}}, raw=True)\n"
    "get_ipython().events.register('post_run_cell', forged)"
)

CASES: dict[str, Case] = {
    # honest
    "good": case(notebook(), ALL, "all 12 offsets are right"),
    "blank": case(learners_copy_of(MASTERS / f"{PROBLEM}.md", AUTOGRADER), NOTHING, "not answered"),
    "wrong": case(notebook(order_answer='order = "row-major"'), NO_ORDER, "order: not right"),
    "slow_honest": before_order("import time; time.sleep(2)", ALL),
    # code that does not come back
    "infinite": before_order("while True: pass", NO_ORDER, "CellTimeoutError|'order' is not defined"),
    "infinite_ignore_sigint": before_order(
        "while True:\n    try:\n        while True: pass\n    except KeyboardInterrupt: pass",
        NO_ORDER,
        "not defined|kernel",
    ),
    "sigint_ignored": before_order(
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", NO_ORDER, "interrupted"
    ),
    "input_call": before_order("input('? ')", NO_ORDER, "'order' is not defined|StdinNotImplementedError"),
    # kernels that end
    "os_exit": before_order("import os; os._exit(1)", NO_ORDER, "the kernel ended in a cell"),
    "os_exit_in_fn": case(
        notebook(
            table_answer="import os\nclass Table(list):\n    def tolist(self): os._exit(1)\n"
            f"    def __iter__(self): os._exit(1)\ntable = Table({RIGHT_TABLE})"
        ),
        (0, 1, 1),
        "the kernel ended in a cell",
    ),
    "systemexit": before_order("import sys; sys.exit(3)", NO_ORDER, "'order' is not defined"),
    "quit": before_order("quit()", NO_ORDER, "the kernel ended in a cell"),
    "ends_in_another_question": before_order(
        "import os, threading; threading.Timer(0.3, os._exit, (1,)).start()", None, "contiguous: right"
    ),
    "segfault": before_order("import ctypes; ctypes.string_at(16)", NO_ORDER, "the kernel ended in a cell"),
    "memory": before_order("x = bytearray(64 << 30)", NO_ORDER, "'order' is not defined"),
    "memory_of_many": before_order(  # a slow machine takes longer for so much than a cell may
        "import os, time\nfor _ in range(3): os.fork()\nx = b'x' * (200 << 20)\ntime.sleep(20)",
        NO_ORDER,
        "kernel was ended in a cell: it used more|a cell ran past its time",
    ),
    "fork_bomb": before_order("import os\nwhile True:\n    os.fork()", NO_ORDER, "'order'|kernel"),
    "huge_output": first("for _ in range(1000): print('x' * 100_000)", ALL),
    "stdout_none": first("import sys\nsys.stdout = None", ALL),
    # cells changed
    "test_deleted": changed(without("order"), ALL, "this cell was missing"),
    "test_edited": changed(edited_tests, ALL, "had been changed"),
    "points_edited": changed(each_grade_cell(points=100), ALL),
    "gradeid_renamed": changed(lambda made: cell(made, "order").metadata.nbgrader.update(grade_id="mine"), ALL, "name"),
    "flags_flipped": changed(each_grade_cell(grade=False, solution=True, locked=False), ALL),
    "dup_gradeid": changed(copy_of("order"), ALL, "several cells exercise_1_order"),
    "dup_solution": changed(copy_of("order_answer"), ALL),
    "cell_ids_changed": changed(other_ids, ALL),
    "cell_ids_all_same": changed(same_ids, ALL),
    "metadata_stripped": changed(bare, ALL, "recognised by its content"),
    "solution_deleted": changed(without("order_answer"), NO_ORDER, "'order' is not defined"),
    "reordered": changed(reordered, ALL, "put back in their order"),
    "other_kernelspec": changed(other_kernel, ALL),
    # looking for tests, and reaching for grades
    "read_hidden": found_out(
        "for folder, _, names in os.walk('/'):\n"
        "    if folder.startswith(('/proc', '/sys', '/usr')): continue\n"
        "    for name in names:\n"
        "        if name in ('exercise_1.py', 'exercise_1.ipynb') and 'problems' not in folder:\n"
        "            out = out or 'def check_order' in open(os.path.join(folder, name), errors='ignore').read()"
    ),
    "read_hidden_ns": found_out("out = any('Ver' + 'dict' in str(value) for value in list(globals().values()))"),
    "gradebook_write": found_out("import glob; out = glob.glob('/**/gradebook.db', recursive=True)"),
    "atexit_regrade": found_out(
        "import subprocess\n"
        "wait = 'import glob, sqlite3, time; time.sleep(3); '\n"
        "find = 'd = sqlite3.connect(glob.glob(chr(47) + chr(42) * 2 + \"/gradebook.db\", recursive=True)[0]); '\n"
        "write = 'd.execute(\"update grade set auto_score = 777\"); d.commit()'\n"
        "subprocess.Popen([sys.executable, '-c', wait + find + write, 'tilelab-hostile'], start_new_session=True)"
    ),
    "network": found_out("import socket; socket.create_connection(('192.0.2.1', 80), 2); out = True"),
    "interfaces": found_out("import socket; out = [name for _, name in socket.if_nameindex() if name != 'lo']"),
    "env_leak": found_out("out = 'TILELAB_HOSTILE_SECRET' in os.environ"),
    "signal_grader_probe": found_out("os.kill(os.getppid(), 0); out = os.getppid() > 2"),
    "orphan_process": before_order(
        "import subprocess; subprocess.Popen(['sleep', '54321'], start_new_session=True)", ALL
    ),
    # cheating the checks
    "assert_patch_ast": first(
        "import ast\nclass Drop(ast.NodeTransformer):\n    def visit_Assert(self, node): return ast.Pass()\n"
        "get_ipython().ast_transformers.append(Drop())",
        (0, 1, 1),
        "not answered",
        table_answer="table = [[None] * 4 for _ in range(3)]",
    ),
    "eq_always_true": case(
        notebook(table_answer="class Yes:\n    def __eq__(self, other): return True\ntable = Yes()"), (0, 1, 1), "Yes"
    ),
    "time_patch": first("import time\ntime.perf_counter = time.monotonic = lambda: 0.0", ALL),
    "input_transformer": first(
        "get_ipython().input_transformers_cleanup.append(lambda lines: ['pass\\n'])", NOTHING, "no answer was recorded"
    ),
    "partial_credit_forge": first(FORGE, ALL, "redefines submit"),
    "post_run_display": first(HOOK, NOTHING, "answers were recorded"),
    # in the page
    "xss": changed(scripts_everywhere, ALL),
}
