"""S2: the longest text that answers in 2 GB, beside full attention, and whether Estimate knew."""

import dataclasses
import importlib.util

from tables.limited import Asked, Peak, answers, needed, peer_answers, predicted, within
from tables.longest import longest
from tables.memory_limit import MemoryLimit
from tables.shapes import BERT, LS_BASE, directory, shape
from tables.table import Row, Table, Verdict

TITLE = "S2: the longest text in 2 GB"
LIMIT, TINY_LIMIT = 2 << 30, 1 << 30
OVER = {"eager": 30, "sdpa": 8}  # Ours over HuggingFace's full attention, at least.
CLOSE = 0.05
GUESS = {"eager": 3_600, "sdpa": 37_500}
LINEAR = 768 * 769  # Parameters.
BERT_LAYER = 4 * LINEAR + 2 * 768 * 3072 + 3072 + 768 + 4 * 768
LONGFORMER_LAYER = BERT_LAYER + 3 * LINEAR  # Queries, keys and values of global tokens.
LS_LAYER = BERT_LAYER + LINEAR + 4 * 768  # Scores of 12 x 64 landmarks, two norms more.


@dataclasses.dataclass
class Kind:
    """`positions`: how long a text its tables are for, a little more than the limit. `apart`: parameters of layers
    that do not run, whose bytes the limit is lower by: what a pass takes beside the weights is the same for each layer.
    `watched`: read so far, and memory's growth carried on, where the whole way would take too long."""
    name: str
    asked: Asked
    positions: int
    apart: int = 0
    watched: int = 0


def kinds(tiny):
    longformer = shape("longformer-base-4096", architectures=["LongformerForSequenceClassification"], num_labels=2,
                       num_hidden_layers=2, attention_window=[512] * 2)
    model = shape("LS small enwik8")
    if tiny:  # Both ways that a limit is found.
        longformer.update(vocab_size=100, max_position_embeddings=2_050)
        return [Kind("Longformer-base", Asked(longformer), 2_048),
                Kind("LS language model", Asked({**model, "n_layer": 1}, True), 4_096, watched=1_024)]
    led = shape("led-base-16384", max_encoder_position_embeddings=61_440, encoder_layers=1, attention_window=[1024])
    bert = {**BERT, "num_hidden_layers": 2, "max_position_embeddings": 61_440}
    return [
        Kind("Longformer-base", Asked({**longformer, "max_position_embeddings": 196_610}), 196_608,
             10 * LONGFORMER_LAYER),
        Kind("LS language model, 44 M", Asked(model, True), 600_000, watched=32_768),
        Kind("LS encoder of RoBERTa-base's shape", Asked({**LS_BASE, "layers": 2, "max_seq_len": 49_152}), 49_152,
             10 * LS_LAYER),
        Kind("LED-base", Asked(led, True), 61_440, 5 * LONGFORMER_LAYER),
        Kind("BERT-base, full attention, here", Asked(bert), 61_440, 10 * BERT_LAYER)]


@dataclasses.dataclass
class Found:
    predicted: int
    longest: int  # That answered; by the growth of memory where the way was not gone to its end.
    error: float  # Of the prediction.
    token: float  # Bytes that a token takes beside the weights, its row of positions left out.


def grown(kind, folder, limit, tokens):
    """Bytes that a server grows by while it reads so many, those it had before, and what Estimate says of more."""
    with within(limit, kind.asked, folder) as served:
        before = limit.used() or 0
        far = predicted(served, kind.asked, limit.limit - before, kind.positions)
        token = (needed(served, kind.asked, far) - needed(served, kind.asked, tokens)) / max(1, far - tokens)
        with Peak(limit) as peak:
            kind.asked.ask(served, tokens)
    return peak.bytes - before, before, far, token


def watch(kind, folder, limit):
    """Reads two parts of the way: from what memory grew by follows how long a text would fill the limit."""
    half, *_ = grown(kind, folder, limit, kind.watched // 2)
    whole, before, far, token = grown(kind, folder, limit, kind.watched)
    if not limit.group:
        return Found(far, far, 0.0, token)
    slope = max(1.0, (whole - half) / (kind.watched - kind.watched // 2))
    full = kind.watched + (limit.limit - before - whole) / slope
    return Found(far, int(min(far, full)), far / full - 1, token)


def find(kind, options, limit):
    relative = {"max_tokens": kind.positions + 1} if kind.watched else {}  # No table in the config says how long.
    folder = directory(options, kind.asked.config, **relative)
    if kind.watched:
        return watch(kind, folder, limit)
    with within(limit, kind.asked, folder) as served:
        room = limit.limit - (limit.used() or served.get("/v1/models")["data"][0]["memory_bytes"])
        far = predicted(served, kind.asked, room, kind.positions)
        token = needed(served, kind.asked, far) / far
    most, first_not = longest(lambda n: answers(limit, kind.asked, folder, n), far, kind.positions)
    inside = most <= far <= (first_not or most)
    return Found(far, most, 0.0 if inside else far / most - 1, token)


def peers(options, limit):
    """attention -> the longest text of HuggingFace's BERT-base; none without its packages."""
    if not options.peers or not importlib.util.find_spec("transformers") or not importlib.util.find_spec("torch"):
        return {}
    if options.tiny:
        return {"eager": 64 * peer_answers(limit, "eager", 64)}
    return {name: longest(lambda n, name=name: peer_answers(limit, name, n), guess, 1 << 20)[0]
            for name, guess in GUESS.items()}


def why(kind, found, name, tokens, size):
    """By counts, where a ratio is missed."""
    leaves = size / (OVER[name] * tokens) / 1024
    table = 4 * kind.asked.config.get("hidden_size", 0) / 1024 if not kind.asked.generates else 0
    rows = f", and its row of the position table {table:.1f}" if table else ""
    return (f"a token takes {found.token / 1024:.1f} KB of activations beside the weights{rows}; {OVER[name]} times "
            f"{name} would leave {leaves:.1f} KB, weights included")


def rows_of(kind, found, full, size):
    yield Row(kind.name, "", f"{found.longest:,} tokens")
    for name, tokens in full.items():
        if not tokens or "here" in kind.name:
            continue
        ratio = found.longest / tokens
        met = ratio >= OVER[name]
        yield Row(f"{kind.name}, over HuggingFace's {name}", f"{OVER[name]}x", f"{ratio:.3g}x", ratio / OVER[name],
                  Verdict.MET if met else Verdict.MISSED, "" if met else why(kind, found, name, tokens, size))
    close = abs(found.error) <= CLOSE
    how = (f"{found.predicted / (1 + found.error):,.0f} by growth to {kind.watched:,} tokens" if kind.watched
           else f"{found.longest:,} answered, 4 % more did not" if found.longest < kind.positions
           else f"all {kind.positions:,} positions answered")
    yield Row(f"Estimate of it: {kind.name}", f"{found.predicted:,}", how, 1 + found.error,
              Verdict.MET if close else Verdict.MISSED, "" if close else why_off(kind, found))


def why_off(kind, found):
    """A cause, where it is known."""
    careful = kind.asked.generates and found.error < 0
    return "too careful: workspace and state are added up, and are not held at once" if careful else ""


def run(options):
    table = Table(TITLE, ("goal or prediction", "ours", "ours over goal, or predicted over true", ""))
    with MemoryLimit(TINY_LIMIT if options.tiny else LIMIT) as limit:
        full = peers(options, limit)
        for name, tokens in full.items():
            table.rows.append(Row(f"HuggingFace BERT-base, {name}", "", f"{tokens:,} tokens"))
        for kind in kinds(options.tiny):
            with MemoryLimit(limit.limit - 4 * kind.apart) as left:
                table.rows += rows_of(kind, find(kind, options, left), full, limit.limit)
        table.notes = [
            f"{limit.limit / 2**30:.0f} GB held by {limit.kind}; fp32, weights and process included. What a pass takes "
            "beside the weights is the same for each layer, but for the last of a classifier, which reads one row: so "
            "of classifiers here two layers run and of LED's encoder one, in a limit that is lower by the weights of "
            "the others; of HuggingFace's one runs, and the others' weights lie in memory. The language model "
            "reads a part of the way, and the growth of memory says how far it would come."]
        if not full:
            table.notes.append("HuggingFace's packages are not here: no ratios.")
    return table
