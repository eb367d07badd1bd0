"""S6: the vision models of Transformer-LS over those they are built on, batch of 32."""

import pathlib
import statistics

import timing
from pipe import Ours
from tables.shapes import directory, shape
from tables.served import serving
from tables.table import Row, Table

TITLE = "S6: long-short attention in vision, batch 32"
TURNS = {224: 3, 384: 2}
LS384 = {"image_size": 384, "windows": [12, 6, 3]}
# (name, side, ours, what it is over, the paper's ratio of latencies)
PAIRS = (("ViL-LS-Medium over ViL-Medium", 224, ("ViL-LS-Medium 224", {}), ("ViL-Medium 224", {}), "0.71"),
         ("CvT*-LS-13 over CvT-13", 224, ("CvT*-LS-13 224", {}), ("CvT-13 224", {}), "0.68"),
         ("ViL-LS-Medium over ViL-Medium", 384, ("ViL-LS-Medium 384", {}), ("ViL-Medium-RPB 384", {}), ""),
         ("CvT*-LS-13 over CvT-13", 384, ("CvT*-LS-13 224", LS384), ("CvT-13 384", {}), ""))


def types():
    """Element types that this CPU multiplies."""
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    return ["fp32", "bf16"] if "avx512_bf16" in flags or "amx_bf16" in flags else ["fp32"]


def tiny(config):
    """One block a stage."""
    if "arch" in config:
        return {**config, "arch": ",".join("n1" if part.startswith("n") else part
                                           for part in config["arch"].split(","))}
    return {**config, "depths": [1, 1, 1]}


def counted(folders, side):
    """Multiply-adds of the second over those of the first, as Estimate says; None from an older server."""
    with serving({"ours": folders[0], "theirs": folders[1]}) as served:
        costs = [served.estimate(name, width=side, height=side).get("multiply_adds") for name in ("ours", "theirs")]
    return costs[0] / costs[1] if all(costs) else None


def pixels_of(options, batch, side):
    path = pathlib.Path(options.scratch) / f"pixels-{batch}-{side}"
    if not path.exists():
        path.write_bytes(b"\0\0\0\x3f" * (batch * 3 * side * side))  # 0.5 everywhere.
    return path


def measured(options, folders, dtype, side):
    """Median seconds of both, in turns."""
    batch = 2 if options.tiny else 32
    pixels, pipes = pixels_of(options, batch, side), [Ours(folder, dtype, 2) for folder in folders]
    turns = [lambda pipe=pipe: float(pipe.classify(pixels, (batch, 3, side, side))["seconds"]) for pipe in pipes]
    times = timing.interleave(dict(enumerate(turns)), 1 if options.tiny else TURNS[side])
    for pipe in pipes:
        pipe.close()
    return [statistics.median(times[i]) for i in range(2)]


def run(options):
    table = Table(TITLE, ("paper", "ours", "ratio of times", ""))
    for name, side, *models, paper in PAIRS:
        if options.tiny and side == 384:
            continue
        configs = [shape(known, **changes) for known, changes in models]
        folders = [directory(options, tiny(config) if options.tiny else config) for config in configs]
        count = counted(folders, side)
        for dtype in types():
            ours, theirs = measured(options, folders, dtype, side)
            said = f", {count:.3f} by count" if count else ""
            table.rows.append(Row(f"{name}, {side}, {dtype}", paper, f"{ours:.2f} s over {theirs:.2f} s{said}",
                                  ours / theirs))
    if "bf16" not in types():
        table.notes.append("This CPU does not multiply bf16.")
    table.notes.append("Zeros for weights, one batch of 32, 2 threads, in turns, medians of 3 at 224 and of 2 at 384. "
                       "The paper's ratios are a V100's at 224, and it credits the first to a better implementation, "
                       "not to less work.")
    return table
