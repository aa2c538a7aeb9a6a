"""Random kernels: branches, loops, break, continue, early return, barriers, atomics, warps, local arrays."""

import random

WORDS = 96


class Writer:
    """Writes one kernel from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.name = f"kernel_{seed}"
        self.loops = 0
        # Kernels with few barriers and many shared accesses nearly all race; most kernels keep to their own words.
        self.tame = self.random.random() < 0.7
        self.counter = self.random.choice(["add", "max"])  # one only: a mixture depends on the order
        self.features = {
            f
            for f in ("atomics", "warp", "local", "global", "float", "device", "views", "partly")
            if self.random.random() < 0.3
        }

    def index(self) -> str:
        """A word of shared memory."""
        r = self.random
        if self.tame and r.random() < 0.97:
            return "tx"
        return r.choice(
            [
                f"(tx * {r.choice([1, 1, 2, 3, 5])} + {r.randrange(4)}) % {WORDS}",
                "tx",
                f"(tx + k) % {WORDS}",
                f"{r.randrange(WORDS)}",
                f"(tx ^ {1 << r.randrange(5)}) % {WORDS}",
            ]
        )

    def condition(self) -> str:
        """A condition, the same for a block or not."""
        r = self.random
        return r.choice(
            [
                f"tx < {r.randrange(1, 70)}",
                f"tx % {r.randint(2, 4)} == {r.randrange(2)}",
                f"x < {r.randrange(60)}",
                "b == 0",
                "b < 2 and k < 2",
                f"tx > 5 or s[tx] > {r.randrange(50)}",
                "not (x & 1)",
                f"{r.randrange(4)} <= tx % 7 < s[tx] % 9 <= 5",
                "0 <= tx - 5 < s[tx - 5] + 20" if r.random() < 0.2 else "b <= tx % 3 < 2",
            ]
        )

    def value(self) -> str:
        """An integer expression."""
        r = self.random
        return r.choice(
            [f"tx + {r.randrange(9)}", "x", "x * 3 - tx", f"s[{self.index()}]", "(x // 3) % 7", "x >> 1",
             "tx if x > 3 else b", "x % 3 or tx", "tx % 2 and x + 1", f"x % 2 and s[{self.index()}] or b",
             "min(x, tx)", "abs(x - 20)", "divmod(x, 5)[1]", "abs(int8(x * 7))", "-uint8(tx) % 50", "~int16(x) & 15"]
        )  # fmt: skip

    def statements(self, depth: int, indent: int, in_loop: bool) -> list[str]:
        """One to three random statements."""
        out: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            out += self.statement(depth, "    " * indent, indent, in_loop)
        return out

    def statement(self, depth: int, pad: str, indent: int, in_loop: bool) -> list[str]:
        """One random statement."""
        r = self.random
        kind = r.random()
        if kind < 0.16:
            return [f"{pad}s[{self.index()}] = {self.value()}"]
        if kind < 0.32:
            return [f"{pad}x += s[{self.index()}]"]
        if kind < 0.38:
            return [f"{pad}s[tx] += x"]
        if kind < 0.44:
            return [f"{pad}x = {self.value()}"]
        if kind < 0.54:
            return [pad + line for line in self.special()]
        if kind < 0.66 and depth:
            out = [f"{pad}if {self.condition()}:", *self.statements(depth - 1, indent + 1, in_loop)]
            if r.random() < 0.4:
                out += [f"{pad}else:", *self.statements(depth - 1, indent + 1, in_loop)]
            return out
        if kind < 0.75 and depth:
            span = r.choice(["3", "tx % 4", "b + 1", "1, 3", "4, 0, -2", "x % 3"])
            return [f"{pad}for k in range({span}):", *self.statements(depth - 1, indent + 1, True)]
        if kind < 0.80 and depth:
            self.loops += 1
            w = f"w{self.loops}"
            bound = r.choice(["2", "tx % 3", "b + 1"])
            return [f"{pad}{w} = 0", f"{pad}while {w} < {bound}:", f"{pad}    {w} += 1",
                    *self.statements(depth - 1, indent + 1, True)]  # fmt: skip
        if kind < 0.84 and in_loop:
            return [f"{pad}if tx % {r.randint(2, 5)} == 0:", f"{pad}    {r.choice(['break', 'continue'])}"]
        if kind < 0.843:
            return [f"{pad}if tx == {r.randrange(99)}:", f"{pad}    return"]
        return [f"{pad}cuda.syncthreads()"]

    def syncwarp(self) -> str:
        """A ``syncwarp`` of the whole warp, or of parts of it."""
        mask = self.random.choice(["", "0xffff", "0xff00ff", "0x33333333", "3 << lane // 2 * 2", "1 << lane"])
        return f"cuda.syncwarp({f'{mask} if {mask} >> lane & 1 else 0xffffffff ^ {mask}' if '0x' in mask else mask})"

    def exchanges(self) -> list[str]:
        """A phase in which lanes read each other's words with nothing but ``syncwarp`` between."""
        r = self.random
        parts = [r.choice(["s[tx] = x", f"x += s[tx ^ {r.choice([1, 2, 4, 16])}]", self.syncwarp(), self.syncwarp()])
                 for _ in range(r.randint(2, 5))]  # fmt: skip
        return [f"    {part}" for part in ("cuda.syncthreads()", *parts, "cuda.syncthreads()")]

    def special(self) -> list[str]:
        """A statement of one of the kernel's features."""
        r = self.random
        if not self.features:
            return [f"x = x + {r.randrange(5)}"]
        feature = r.choice(sorted(self.features))
        if feature == "atomics":
            op = r.choice(["add", "max", "min", "sub", "xor", "exch"])
            if r.random() < 0.5:
                return [f"cuda.atomic.{op}(c, {r.randrange(4)}, x + tx)"]
            return [f"cuda.atomic.{self.counter}(g, tx % 5, 1 + tx % 3)"]
        if feature == "warp":
            return [r.choice([f"x += cuda.shfl_xor_sync(0xffffffff, x, {1 << r.randrange(4)})", self.syncwarp(),
                              f"x += cuda.popc(cuda.ballot_sync(0xffffffff, x > {r.randrange(20)}))"])]  # fmt: skip
        if feature == "local":
            i = r.choice(["0", "1", "k % 3", "tx % 3"])
            if r.random() < 0.3:
                return [r.choice([f"x += a[1:][{r.choice(['0', 'tx % 2', '1'])}]", "w = a[tx % 2:]", "w[1] = x"])]
            return [f"a[{i}] = x", f"x += a[{r.choice([i, '2'])}]"] if r.random() < 0.8 else [f"x += a[{i}]"]
        if feature == "global":
            i = r.choice(["b * cuda.blockDim.x + tx"] * 4 + ["tx"])
            return [f"d[{i}] += x"] if r.random() < 0.5 else [f"x += d[{i}]"]
        if feature == "float":
            return [f"f = f * float32(0.5) + s[{self.index()}]", "x = x + int(f) % 5"]
        if feature == "views":
            i = r.choice(["tx"] * 5 + ["tx ^ 1", "tx % 3"])
            return [r.choice([f"e[{i}] = x", f"e[{i}] = 7", f"h[2 * ({i})] = 7", f"h[2 * ({i}) + 1] = x",
                              f"y[4 * ({i})] = 7", f"x += e[{i}]", f"x += h[2 * ({i}) + 1]", f"x += y[4 * ({i}) + 1]",
                              f"e[{i}] += 1"])]  # fmt: skip
        if feature == "partly":
            self.loops += 1
            test = f"tx % {r.randint(2, 4)} == {r.randrange(2)}"
            other = test if r.random() < 0.6 else "tx < 40"
            return [f"if {test}:", f"    v{self.loops} = x", f"if {other}:", f"    x += v{self.loops}"]
        return ["x = helper(x, tx)"]

    def write(self) -> str:
        """The kernel's source."""
        head = ["@cuda.jit", f"def {self.name}(out, g, d):", f"    s = cuda.shared.array({WORDS}, int32)",
                "    c = cuda.shared.array(4, int32)", "    a = cuda.local.array(3, int32)",
                "    e = cuda.shared.array(0, int32)", "    h = cuda.shared.array(0, int16)",
                "    y = cuda.shared.array(0, uint8)", "    lane = cuda.laneid", "    w = a[0:2]",
                "    tx = cuda.threadIdx.x", "    b = cuda.blockIdx.x", "    x = 0", "    k = 0", "    f = float32(0)",
                "    a[0] = 1", "    a[1] = tx", "    for q in range(2):",
                f"        if tx + q * cuda.blockDim.x < {WORDS}:",
                "            s[tx + q * cuda.blockDim.x] = tx", "            e[tx + q * cuda.blockDim.x] = tx",
                "    if tx < 4:", "        c[tx] = 0",
                "    cuda.syncthreads()"]  # fmt: skip
        if self.random.random() < 0.1:
            head = [line for line in head if "a[1] = tx" not in line]
        if "views" not in self.features:
            head = [line for line in head if "(0, " not in line and " e[" not in line]
        return "\n".join(
            [
                *head,
                *self.statements(3, 1, False),
                *(self.exchanges() if "warp" in self.features else []),
                *self.statements(3, 1, False),
                *self.statements(2, 1, False),
                "    out[b * cuda.blockDim.x + tx] = x",
                "",
            ]
        )


HEAD = """\
from tilelab.simt import cuda, float32, int8, int16, int32, uint8


@cuda.jit(device=True)
def helper(x, t):
    if x > 40:
        return x - 40
    for i in range(t % 3):
        x += i
        if x > 30:
            return x // 2
    return x
"""


def module_text(seeds: range) -> str:
    """A module with a kernel for each seed."""
    return "\n\n".join([HEAD, *(Writer(seed).write() for seed in seeds)])
