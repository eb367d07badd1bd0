"""Luna's speed and memory over full attention, ours and PyTorch's, in the shape of Luna's table 2."""

import contextlib
import os
import pathlib
import sys

from pipe import TUNED, Pipe

from . import encoders, plain
from .running import SETTINGS, THREADS, documents, estimates, make, medians, running
from .table import Row, Table, Verdict

TITLE = "S4: Luna over full attention, LRA Text"
ROWS = (16, 128, 256)
PAPER = {"speed": {16: (1.2, 1.8, 3.7, 5.5), 128: (1.1, 1.7, 3.4, 5.1), 256: (1.1, 1.7, 3.3, 4.9)},
         "memory": {16: (0.44, 0.23, 0.17, 0.10), 128: (0.49, 0.28, 0.21, 0.14), 256: (0.60, 0.33, 0.23, 0.16)}}
BY_COUNT = {16: 3.59, 128: 3.12, 256: 2.72}  # Full over Luna, a layer at 4,096 tokens.
LONGEST = 4096
FASTER, SMALLER, OF_COUNT = 8, 0.05, 0.8  # Goals at the longest.
EAGER_MATRICES = 2  # Of scores, alive at once: before and behind scaling, or softmax.
SCORES = 1 << 30  # Bytes that eager attention may take for one matrix of scores.


def configs(shape):
    return {"full": encoders.full(shape), **{f"Luna-{rows}": encoders.luna(shape, rows) for rows in ROWS}}


@contextlib.contextmanager
def pytorch(directory, attention, allocator):
    pipe = Pipe([sys.executable, str(pathlib.Path(__file__).with_name("eager_pipe.py")), str(directory), attention,
                 str(THREADS)], {**os.environ, **allocator})
    try:
        yield pipe
    finally:
        pipe.close()


class Measured:
    """Seconds and bytes of a batch, by name; peers run the part of it whose scores fit. `weighed` are the peers
    under the default allocator: one that keeps all memory holds nearly three times what is alive. `held` has the
    most that each of our processes took for any batch: it keeps its scratch, which a later batch takes for nothing."""

    def __init__(self, ours, peers, weighed, shape, batch, tokens, held):
        self.given = documents(batch, tokens)
        self.bytes, self.part = held, {}
        fitting = max(1, min(batch, SCORES // (shape.heads * tokens * tokens * 4)))
        for name in (*ours, *peers):
            self.part[name] = batch if name in ours else fitting
        functions = {name: self.function(name, process) for name, process in {**ours, **peers}.items()}
        truth = ours["full"].run(self.given[:1])["logits"][0]
        for name, peer in peers.items():
            plain.check(f"full beside {name}", truth, peer.run(self.given[:1])["logits"][0])
        self.seconds = medians(functions, 2, warmup=0)
        self.bytes = dict(held)
        for name, peer in weighed.items():
            self.bytes[name] = 0
            self.function(name, peer)()

    def words(self, tokens):
        each = (f"{name} {seconds:.3g} s and {self.bytes[name] / 1e6:.0f} MB"
                + (f" ({self.part[name]} at once)" if self.part[name] < len(self.given) else "")
                for name, seconds in self.seconds.items())
        return f"{tokens:,} tokens: {'; '.join(each)}."

    def function(self, name, process):
        def run():
            answer = process.run(self.given[:self.part[name]])
            whole = len(self.given) / self.part[name]
            self.bytes[name] = max(self.bytes.get(name, 0), answer["peak_bytes"] * whole)
            return float(answer["seconds"] * whole)
        return run


def judged(name, paper, ours, ratio, met, why):
    """`met` is None where there is no goal, `why` what is said if it is missed."""
    verdict = Verdict.REPORTED if met is None else Verdict.MET if met else Verdict.MISSED
    return Row(name, paper, ours, ratio, verdict, why if verdict is Verdict.MISSED else "")


def over_eager(measured, shape, tokens, column, rows, count):
    """Speed and memory of Luna with so many rows over PyTorch's full attention."""
    name, goals = f"Luna-{rows}", tokens == LONGEST or None
    speed = measured.seconds["eager"] / measured.seconds[name]
    own = measured.seconds["eager"] / measured.seconds["full"]
    printed = PAPER["speed"][rows][column]
    yield judged(f"{name} at {tokens:,}, speed over PyTorch", f"{printed}x", f"{speed:.2f}x", speed / printed,
                 goals and speed >= FASTER, f"by count {count:.2f}x, and own full attention is {own:.2f}x PyTorch's")
    memory = measured.bytes[name] / measured.bytes["eager"]
    printed = PAPER["memory"][rows][column]
    each = measured.bytes[name] / (len(measured.given) * tokens)
    scores = EAGER_MATRICES * 4 * shape.heads * tokens
    yield judged(f"{name} at {tokens:,}, memory over PyTorch's", f"{printed}", f"{memory:.3f}", memory / printed,
                 goals and memory <= SMALLER, f"{each / 1e3:.1f} KB a token in fp32 rows, against {scores / 1e3:.0f} "
                 f"KB of {EAGER_MATRICES} matrices of scores")


def rows_of(measured, shape, tokens, column, counted):
    for rows in ROWS:
        name = f"Luna-{rows}"
        count = counted["full", tokens]["multiply_adds"] / counted[name, tokens]["multiply_adds"]
        if "eager" in measured.seconds:
            yield from over_eager(measured, shape, tokens, column, rows, count)
        own = measured.seconds["full"] / measured.seconds[name]
        goal = OF_COUNT * BY_COUNT[rows]
        yield judged(f"{name} at {tokens:,}, speed over own full", f"{count:.2f}x by count", f"{own:.2f}x", own / count,
                     own >= goal if tokens == LONGEST else None,
                     f"the goal is {goal:.2f}, {OF_COUNT:g} of what a whole layer counts")


def run(options):
    lengths = [64, 96] if options.tiny else [1024, 2048, 3072, LONGEST]
    shape = encoders.Shape(32, 2, 64, 2, 128) if options.tiny else encoders.Shape(256, 4, 1024, 4, lengths[-1])
    batch = 2 if options.tiny else 32
    directories = make(options, "s4", configs(shape))
    counted = estimates(directories, lengths)
    table = Table(f"{TITLE}, batch of {batch}", ("paper", "ours", "ours over paper, or over count", ""))
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(running(directories))
        peers, weighed = {}, {}
        if plain.available(options):
            plain.check_all({name: directories[name] for name in directories if name != "full"}, ours,
                            documents(1, lengths[0])[0])
            peers, weighed = ({name: stack.enter_context(pytorch(directories["full"], name, allocator))
                               for name in ("eager", "sdpa")} for allocator in (TUNED, {}))
        else:
            table.notes.append("No PyTorch here: no peers, and answers were not compared.")
        held = {}
        for column, tokens in enumerate(lengths):
            measured = Measured(ours, peers, weighed, shape, batch, tokens, held)
            table.rows += rows_of(measured, shape, tokens, column, counted)
            table.notes.append(measured.words(tokens))
    table.notes.append(f"{shape}, {SETTINGS}. Full attention is BERT's configuration; PyTorch runs the same weights by "
                       "transformers: timed with an allocator that keeps its memory, weighed with the default one. "
                       "What it takes for fewer documents at once is scaled to the batch. The paper's ratios are "
                       "of training steps.")
    return table
