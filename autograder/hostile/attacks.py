"""The attacks on the grader itself: forged and endless messages, disks filled, processes that take a kernel's place."""

from case_kinds import ALL, NO_ORDER, NOTHING, PROBLEM, RIGHT_TABLE, Case, before_order, first, found_out

from tilelab.grading.answers import MIME

#: Speaks on the kernel's own channels, with its own key: whatever a kernel can say, a learner can.
SPEAK = """
kernel = get_ipython().kernel
def say(kind, content, parent=None, channel=None):
    parent = kernel.get_parent() if parent is None else parent
    kernel.session.send(channel or kernel.iopub_socket, kind, content, parent=parent)
"""
RECORD = (
    f"{{'{MIME}': {{'version': 1, 'problem': '{PROBLEM}', 'answers': "
    f"{{'table': {RIGHT_TABLE}, 'order': 'column-major', 'contiguous': True}}}}}}"
)


def speaking(source: str, words: str = "", points: tuple[float, float, float] | None = ALL) -> Case:
    """Return a case in which a cell says things on the kernel's channels."""
    return first(SPEAK + source.strip(), points, words)


def filling(folder: str) -> str:
    """Return code that writes files until something stops it, and then lets go of none."""
    return f"""
import errno, os
number, stopped = 0, None
while stopped is None:
    try:
        with open(os.path.join({folder}, f'full-{{number}}'), 'wb') as file: file.write(bytes(1 << 20))
        number += 1
    except OSError as error: stopped = error.errno
print(number, 'MiB', errno.errorcode[stopped])
"""


SHARED = "next(p for p in (l.split()[1] for l in open('/proc/mounts')) if '/tilelab-' in p and p.endswith('/c'))"

CASES: dict[str, Case] = {
    # disks
    "fills_its_home": before_order(filling("'.'"), ALL),
    "fills_all_it_can": before_order("".join(map(filling, ("'/tmp'", "'/dev/shm'", "'.'"))), ALL),
    "fills_what_both_sides_write": before_order(filling(SHARED), NO_ORDER, "more files than are allowed|kernel|order"),
    "folders_where_both_sides_write": before_order(
        f"import os\nfor n in range(1_000_000): os.mkdir({SHARED} + f'/{{n}}')", NO_ORDER, "kernel|order"
    ),
    "sockets_removed": first(
        f"import os\nplace = {SHARED}\nfor name in os.listdir(place): os.unlink(place + '/' + name)", ALL
    ),
    # messages
    "answers_shown_elsewhere": first(
        f"from IPython.display import display\nfor _ in range(3): display({RECORD}, raw=True)",
        NO_ORDER,
        "order: not right",
        order_answer='order = "row-major"',
    ),
    "count_is_a_list": speaking("""
import atexit
def later(*_): say('execute_input', {'code': '', 'execution_count': [1, {}]})
get_ipython().events.register('post_run_cell', later)"""),
    "count_is_huge": speaking("""
def later(*_): say('execute_input', {'code': '', 'execution_count': 10 ** 4000})
get_ipython().events.register('post_run_cell', later)"""),
    "messages_of_no_form": speaking(
        """
for kind, content in [('stream', {}), ('stream', {'name': 7, 'text': [1]}), ('display_data', {'data': 5}),
        ('error', {'ename': 1}), ('execute_result', {}), ('nonsense', {}), ('status', {}), ('clear_output', {})]:
    say(kind, content)""",
        "",
        ALL,
    ),
    "half_a_character_said": speaking(r"""
say('stream', b'{"name": "stdout", "text": "a \\ud800 b"}')
say('display_data', b'{"data": {"text/plain": "\\udfff", "text/html": "<b>\\ud800</b>"}, "metadata": {}}')"""),
    "idle_said_early": speaking("""
say('status', {'execution_state': 'idle'})
print('late')"""),
    "not_json": speaking("say('stream', b'{{{{')"),
    "messages_without_a_head": speaking("""
import json
def raw(*parts):
    parts = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in parts]
    kernel.iopub_socket.send_multipart([b'<IDS|MSG>', kernel.session.sign(parts), *parts])
for head in ({}, [], b'null', {'msg_id': 'a', 'msg_type': 5, 'date': 'x'}): raw(head, {}, 5, [])
raw(b'null', b'null', b'null', b'null')
for parts in ([b'x'], [b'<IDS|MSG>']): kernel.iopub_socket.send_multipart(parts)"""),
    "key_of_the_session": before_order("get_ipython().kernel.session.key = b'own'", NO_ORDER, "the kernel was lost"),
    "nested_deep": speaking("say('stream', b'[' * 50_000)"),
    "replies_forged": speaking("""
def later(*_):
    stream = getattr(kernel, 'shell_stream', None) or kernel.shell_socket
    for status in ('ok', 'error', None, 5):
        kernel.session.send(stream, 'execute_reply', {'status': status}, parent=kernel.get_parent('shell'))
get_ipython().events.register('post_run_cell', later)"""),
    "a_message_of_100_mb": first("print('x' * 100_000_000)", ALL),
    "many_messages_of_7_mb": speaking("""
text = 'x' * 7_000_000
for _ in range(300): say('stream', {'name': 'stdout', 'text': text})"""),
    "a_message_of_300_mb": first("import os\nprint('x' * 300_000_000)", None),
    "messages_of_100_mb": speaking(
        """
text = 'x' * 100_000_000
for _ in range(100): say('stream', {'name': 'stdout', 'text': text})""",
        "",
        None,
    ),
    "metadata_of_3_mb": first(
        "from IPython.display import display\n"
        "display({'text/plain': 'x'}, raw=True, metadata={'x': 'y' * 3_000_000, 'isolated': True})",
        ALL,
    ),
    "messages_for_seconds": first(
        "import time\nend = time.monotonic() + 3\nwhile time.monotonic() < end: print('x' * 1000, flush=True)", ALL
    ),
    "endless_messages": first(
        "import threading\ndef talk():\n    while True: print('x' * 1000, flush=True)\n"
        "threading.Thread(target=talk, daemon=True).start()",
        None,
    ),
    "thousands_of_outputs": first(
        "from IPython.display import display, HTML\nfor n in range(5000): display(HTML('<b>'))", ALL
    ),
    "colours": first("print('\\x1b[31m' * 700_000)", ALL),
    "an_error_of_3_mb": first("raise ValueError('\\x1b[1m<svg' * 400_000)", ALL),
    "drawings_that_do_not_end": first(
        "from IPython.display import display, HTML\n"
        "for _ in range(20): display(HTML('<svg' * 40_000 + '<b>' * 10_000))",
        ALL,
    ),
    # another program in the kernel's place
    "another_program": before_order("import os; os.execv('/bin/sleep', ['sleep', '54321'])", NO_ORDER, "kernel"),
    "preloaded": before_order(
        "import os, sys\nos.environ['LD_PRELOAD'] = '/tmp/own.so'\n"
        "os.execv(sys.executable, [sys.executable, '-c', '0'])",
        NO_ORDER,
        "kernel ended in a cell",
    ),
    "stopped": before_order("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", NO_ORDER, "kernel|order"),
    "everything_killed": before_order("import os, signal; os.kill(-1, signal.SIGKILL)", NO_ORDER, "kernel|order"),
    "descriptors_closed": before_order("import os; os.closerange(0, 1024)", NO_ORDER, "kernel"),
    "limits_lowered": before_order(
        "import resource\nfor name in ('NOFILE', 'FSIZE', 'NPROC', 'DATA', 'STACK', 'AS'):\n"
        "    resource.setrlimit(getattr(resource, f'RLIMIT_{name}'), (0, 0))",
        NO_ORDER,
        "kernel|order",
    ),
    "priority": before_order("import os; os.nice(-5)", NO_ORDER, "'order' is not defined"),
    "threads": before_order(
        "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(60,)).start()",
        NO_ORDER,
        "order|kernel",
    ),
    "course_code_replaced": first(
        "import tilelab.grading.notebook_side as side, tilelab.grading.answers as answers\n"
        "side.submit = answers.plain = answers.read = lambda *a, **k: {'score': 2}",
        NOTHING,
        "no answer was recorded",
    ),
    "names_of_the_grader": found_out(
        "import gc\n"
        "out = [o for o in gc.get_objects() if type(o).__name__ in ('Judge', 'Verdict', 'Ledger', 'Gradebook')]"
    ),
    "frames_of_the_grader": found_out(
        "frame = sys._getframe()\nwhile frame: out = out or 'check_order' in frame.f_globals; frame = frame.f_back"
    ),
    "other_sandboxes": found_out("out = [name for name in os.listdir('/dev/shm') if 'tilelab' in name][1:]"),
}
