"""S1: sizes and costs that the papers print, beside what the server says of a checkpoint of each configuration."""

from tables import configurations, counted, rules
from tables.table import Row, Table, Verdict

TITLE = "S1: parameters and multiply-adds of every model that the papers name"
# Cells that no count can meet: of sizes one, of costs two (CvT-13 at 384 and Performer of T8).
SIZES_AMISS, COSTS_AMISS = 1, 2
TOLERANCE = 0.02
TINY_MILLIONS = 45
CLASSES = 1000  # Of the head that a detector's backbone was trained with.


def is_global(row):
    return bool(row.config.get("only_global"))


def counts_goal(row):
    """Whether a FLOPs cell is one of the 147: the papers' own reading of a rule that is known."""
    return row.has_cost and not row.other_reading and not is_global(row)


def with_head(row, parameters):
    """As the papers count a detector: with the norm and the 1000-class head of its backbone, which no detection
    needs and no server asks for."""
    if "detector" not in row.config:
        return parameters
    width = int(row.config["arch"].split(",d")[-1].split(",")[0])
    return parameters + 2 * width + (width + 1) * CLASSES


def why_counted(row):
    """Why the server's count is not the paper's, from what either holds."""
    kind, family = row.config.get("attn_type"), row.config["model_type"]
    if family == "transformer_ls":
        return "counted: the last layer reads its class row alone, texts have no norms"
    if row.meaning == "M1":
        return "counted: key tiles end at borders, norms are no multiply-adds"
    if is_global(row):
        return "no rule is known that gives these cells"
    if kind == "performer":
        return "counted: 4 N m d (features and products) where the rule has 6 L m d"
    if row.meaning == "M3":
        return "counted: tokens in attention, where the rule has channels"
    if row.meaning == "M2r":
        return "counted: chunks end at borders, where the rule has 9 w^2 keys everywhere"
    return "counted: global tokens and all keys of three chunks a side, where the rule has (2w + 1)^2 keys"


def why_missed(row):
    """Why a cell cannot be met."""
    if row.config.get("attn_type") == "performer":
        return "6 L m d is the rule of T14's 16 cells; T8's lie between it and 4 L m d"
    return row.note


def verdict(row, agrees):
    if row.other_reading:
        return Verdict.REPORTED, row.note
    return (Verdict.MET, "") if agrees else (Verdict.MISSED, why_missed(row))


def size_row(row, count):
    ours = with_head(row, count.parameters) / 1e6
    agreed, why = verdict(row, row.parameters.agrees(ours, TOLERANCE))
    beside = f" ({count.parameters / 1e6:.2f} without a 1000-class head)" if "detector" in row.config else ""
    return Row(f"{row.paper} {row.table} {row.name}", f"{row.parameters.text} M", f"{ours:.3f} M{beside}",
               ours / row.parameters.value, agreed, why)


def cost_row(row, count):
    name, paper = f"{row.paper} {row.table} {row.name}", f"{row.flops.text} GMAC"
    by_rule = (rules.by_rule(row.meaning, row.config) or 0) / 1e9
    ours = count.multiply_adds / 1e9
    differs = "" if abs(ours / (by_rule or row.flops.value) - 1) <= TOLERANCE else why_counted(row)
    if not by_rule:
        return Row(name, paper, f"counted {ours:.3f}", ours / row.flops.value, why=differs)
    agreed, why = verdict(row, row.flops.agrees(by_rule, TOLERANCE))
    return Row(name, paper, f"{by_rule:.3f} by the rule, counted {ours:.3f}", by_rule / row.flops.value, agreed,
               "; ".join(part for part in (why, differs) if part))


def pairs_row(row):
    """CST's ratio of score pairs, which is of a formula alone."""
    ours = rules.by_rule("C", row.config, row.flops.text.split()[1])
    agrees = row.flops.agrees(ours, TOLERANCE)
    return Row(f"{row.paper} {row.table} {row.name}", row.flops.text, f"{ours:.3f}", ours / row.flops.value,
               Verdict.MET if agrees else Verdict.MISSED, "" if agrees else row.note)


def total(name, agreed, of, amiss, why=""):
    met = agreed >= of - amiss
    return Row(name, f"{of} cells", f"{agreed} within 2 % or to the printed digits", agreed / max(of, 1),
               Verdict.MET if met else Verdict.MISSED, why)


def selection(rows, tiny):
    """With `tiny` the first of each rule and family of which something is printed, small ones."""
    if not tiny:
        return rows
    small = [row for row in rows if (row.parameters or row.flops)
             and (not row.parameters or row.parameters.value < TINY_MILLIONS)]
    first = {(row.meaning, row.config["model_type"], "detector" in row.config): row for row in reversed(small)}
    return list(first.values())


def run(options):
    rows = selection([row for row in configurations.read() if row.served], options.tiny)
    counts = counted.count(rows, options.scratch)
    failed = {row.cell: row.name for row in rows if counts[row.cell].problem}
    table = Table(TITLE, ("paper", "ours", "over the paper's", ""))
    there = [row for row in rows if row.cell not in failed]
    sizes = [(row, size_row(row, counts[row.cell])) for row in there if row.parameters]
    costs = [(row, cost_row(row, counts[row.cell])) for row in there if row.has_cost]
    pairs = [(row, pairs_row(row)) for row in there if row.meaning == "C"]
    own_sizes = [line.verdict is Verdict.MET for row, line in sizes if not row.other_reading]
    own_costs = [line.verdict is Verdict.MET for row, line in costs if counts_goal(row)]
    as_counted = [row.flops.agrees(counts[row.cell].multiply_adds / 1e9, TOLERANCE) for row, _ in costs
                  if not row.other_reading]
    table.rows = [
        Row("configurations whose checkpoint loads", f"{len(counts)}", f"{len(counts) - len(failed)}",
            verdict=Verdict.MISSED if failed else Verdict.MET),
        total("parameters", sum(own_sizes), len(own_sizes), SIZES_AMISS),
        total("multiply-adds by the paper's rule", sum(own_costs), len(own_costs), COSTS_AMISS),
        Row("multiply-adds as the server counts", f"{len(as_counted)} cells",
            f"{sum(as_counted)} within 2 % or to the printed digits", sum(as_counted) / max(len(as_counted), 1),
            why="useful pairs of queries and keys, rows that the answer needs"),
        *(Row(name, "", "does not load or has no cost", verdict=Verdict.MISSED) for name in failed.values()),
        *(line for _, line in sizes + costs + pairs)]
    table.notes = [f"parameters {sum(own_sizes)} of {len(own_sizes)}; by the paper's rule {sum(own_costs)} of "
                   f"{len(own_costs)}.",
                   *(f"{name}: {counts[cell].problem}" for cell, name in failed.items())]
    return table
