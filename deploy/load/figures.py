"""Turns the results of run.py into report.md and plots."""

MILLISECOND = 1e6  # ghz counts nanoseconds.


def latency(report, percentage):
    """Milliseconds that so many percent of the answered calls did not exceed; None without any."""
    for entry in report.get("latencyDistribution") or []:
        if entry["percentage"] == percentage:
            return entry["latency"] / MILLISECOND
    return None


def answered(report):
    """Answers per second."""
    return report["statusCodeDistribution"].get("OK", 0) / (report["total"] / 1e9)


def number(value, digits=1):
    return "" if value is None else f"{value:.{digits}f}"


def codes(report):
    return ", ".join(f"{name} {count}" for name, count in
                     sorted(report["statusCodeDistribution"].items()))


def table(head, rows):
    """A Markdown table; every cell is text."""
    return "\n".join(["| " + " | ".join(head) + " |", "|" + " --- |" * len(head),
                      *("| " + " | ".join(row) + " |" for row in rows)])


def file_rows(files):
    for name, report, reason in files:
        if report is None:
            yield [name, "", "", "", reason]
        else:
            yield [name, number(answered(report)), number(latency(report, 50), 2),
                   number(latency(report, 99), 2), codes(report)]


def load_rows(results, label):
    for key, report in results:
        yield [label(key), number(answered(report)), number(latency(report, 50)),
               number(latency(report, 99)), codes(report), *gpu_cells(report)]


def watched(results):
    return any(report.get("gpu") for _, report in results)


def gpu_cells(report):
    """How busy the GPU was, the share of the time the server computed, memory, power."""
    if not (found := report.get("gpu")):
        return []
    computing = found.get("computing")
    return [number(found.get("utilisation"), 0),
            number(None if computing is None else 100 * computing, 0),
            number(found.get("memory_mib"), 0), number(found.get("watts"), 0)]


def load_table(first, results, label):
    """A table of (key, report) with the GPU's columns where it was watched."""
    head = [first, "answers/s", "p50 ms", "p99 ms", "codes"]
    if watched(results):
        head += ["GPU %", "server computes %", "GPU MiB", "W"]
    return table(head, load_rows(results, label))


def verdict(results):
    """One sentence on the overload: goodput against the peak."""
    rates = {share: answered(report) for share, report in results}
    peak, overload = max(rates.values()), rates[max(rates)]
    if not peak:
        return "Nothing was answered: the arrivals were too few."
    last = dict(results)[max(rates)]
    refused = last["statusCodeDistribution"].get("ResourceExhausted", 0)
    return (f"At {max(rates):g} times the peak rate the server answers {overload:.1f} a second, "
            f"{overload / peak:.0%} of its best, and refuses {refused} of {last['count']}.")


def stream_rows(report):
    for name in ("timeToFirstToken", "tokenGap"):
        if summary := report.get(name):
            yield [name, str(summary["count"]), number(latency(summary, 50), 2),
                   number(latency(summary, 99), 2), number(summary["slowest"] / MILLISECOND, 2)]


def plots(out, results):
    """Writes the plots; returns their Markdown. Nothing without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return "Plots need matplotlib, which is not installed here."
    matplotlib.use("Agg")
    from matplotlib import pyplot
    made = []

    def finish(name, x, y):
        pyplot.xlabel(x)
        pyplot.ylabel(y)
        pyplot.ylim(bottom=0)
        pyplot.legend()
        pyplot.grid(alpha=0.3)
        pyplot.tight_layout()
        pyplot.savefig(out / f"{name}.png", dpi=110)
        pyplot.close()
        made.append(f"![{name}]({name}.png)")

    if results["outstanding"]:
        counts = [count for count, _ in results["outstanding"]]
        reports = [report for _, report in results["outstanding"]]
        for percentage in (50, 99):
            pyplot.plot(counts, [latency(report, percentage) for report in reports], marker="o",
                        label=f"p{percentage}")
        finish("latency_by_outstanding", "requests outstanding", "milliseconds")
        pyplot.plot(counts, [answered(report) for report in reports], marker="o", label="answers")
        finish("rate_by_outstanding", "requests outstanding", "answers per second")
    if results["arrivals"]:
        offered = [report["options"]["rps"] for _, report in results["arrivals"]]
        reports = [report for _, report in results["arrivals"]]
        pyplot.plot(offered, [answered(report) for report in reports], marker="o", label="answered")
        pyplot.plot(offered, offered, linestyle=":", label="offered")
        finish("goodput", "arrivals per second", "answers per second")
        for percentage in (50, 99):
            pyplot.plot(offered, [latency(report, percentage) for report in reports], marker="o",
                        label=f"p{percentage} of the answered")
        finish("latency_by_arrivals", "arrivals per second", "milliseconds")
    return "\n\n".join(made)


def write_report(out, results):
    """Writes report.md and what it shows; returns its path."""
    parts = ["# Load report", table(["", ""], [[key, value] for key, value in
                                              results["about"].items()])]
    head = ["answers/s", "p50 ms", "p99 ms", "codes"]
    if results["outstanding"]:
        parts += ["## Requests outstanding (closed loop)",
                  load_table("outstanding", results["outstanding"], str)]
    if results["arrivals"]:
        parts += ["## Poisson arrivals (open loop)",
                  load_table("arrivals, of the peak rate", results["arrivals"],
                             lambda share: f"{share:g}"),
                  verdict(results["arrivals"])]
    if (results["streams"] or {}).get("timeToFirstToken"):
        parts += ["## Streams", table(["", "count", "p50 ms", "p99 ms", "slowest ms"],
                                      stream_rows(results["streams"]))]
    parts += ["## Every call", table(["file", *head], file_rows(results["files"]))]
    parts += ["## Plots", plots(out, results)]
    report = out / "report.md"
    report.write_text("\n\n".join(parts) + "\n")
    return report
