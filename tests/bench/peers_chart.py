#!/usr/bin/env python3
"""Draws peers.json, which document_peers.py --record writes, as the bars of the README.

  tests/bench/peers_chart.py            writes peers.svg, and the figures below it in README.md

Of each program the faster element type counts. Documents below 4,096 tokens are left out.
"""

import html
import json
import pathlib
import re
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
README = HERE.parents[1] / "README.md"
SHORTEST = 4096
NAMES = {"longview": "Longview", "openvino": "OpenVINO", "hf": "HuggingFace transformers",
         "hf-compiled": "HuggingFace transformers, compiled"}
MODELS = {"modernbert-base": "ModernBERT-base", "longformer-base": "Longformer-base", "bge-m3": "bge-m3"}
WIDTH, LEFT, RIGHT, ROW = 760, 220, 150, 26

STYLE = """
 .card{fill:#fff;stroke:#d0d7de} text{font:14px system-ui,sans-serif;fill:#1f2328}
 .head{font-weight:600} .note{font-size:12px;fill:#59636e} .ours{fill:#0969da} .peer{fill:#afb8c1}
 @media (prefers-color-scheme:dark){.card{fill:#0d1117;stroke:#3d444d} text{fill:#f0f6fc} .note{fill:#9198a1}
  .ours{fill:#4493f8} .peer{fill:#656c76}}
"""


def best(who):
    """[(kind of peer, element type or "", seconds)], the fastest of each program, Longview first, then by time."""
    found = {}
    for name, figures in who.items():
        kind, _, dtype = name.partition(":")
        program = kind.partition("-")[0]
        if program not in found or figures["median_s"] < found[program][2]:
            found[program] = (kind, dtype, figures["median_s"])
    return sorted(found.values(), key=lambda row: (row[0] != "longview", row[2]))


def seconds(value):
    return f"{value:.3g} s"


def results():
    found = [entry for entry in json.loads((HERE / "peers.json").read_text()) if entry["tokens"] >= SHORTEST]
    return sorted(found, key=lambda entry: (-entry["tokens"], entry["model"]))


def sentence(entry):
    ours, *others = best(entry["who"])
    beside = ", ".join(f"{NAMES[kind]} {seconds(value)}" for kind, _, value in others)
    return f"{MODELS[entry['model']]}, {entry['tokens']:,} tokens: Longview {seconds(ours[2])}, {beside}"


def caption(found):
    """What the picture says, for those who do not see it."""
    return "; ".join(map(sentence, found))


def footer(found):
    days = sorted({entry["date"] for entry in found})
    machines = sorted({entry["machine"] for entry in found})
    return f"{'; '.join(machines)}; {' and '.join(days)}"


def svg(found):
    lines, y = [], 34

    def text(x, kind, words):
        lines.append(f'<text x="{x}" y="{y}" class="{kind}">{html.escape(words)}</text>')

    text(16, "head", "Seconds for one document, shorter is better")
    for entry in found:
        rows = best(entry["who"])
        scale = (WIDTH - LEFT - RIGHT) / max(row[2] for row in rows)
        y += 34
        text(16, "head", f"{MODELS[entry['model']]}, {entry['tokens']:,} tokens")
        for kind, dtype, value in rows:
            y += ROW
            bar, long = ("ours" if kind == "longview" else "peer"), value * scale
            text(16, "", NAMES[kind] + (f", {dtype}" if dtype else ""))
            lines.append(f'<rect x="{LEFT}" y="{y - 14}" width="{long:.1f}" height="18" rx="3" class="{bar}"/>')
            times = "" if kind == "longview" else f"  ({value / rows[0][2]:.1f} times as long)"
            text(round(LEFT + long + 8), "", seconds(value) + times)
    y += 32
    text(16, "note", "Random weights of the published shape, best settings of each; each group has a scale of its own.")
    y += 18
    text(16, "note", footer(found))
    height = y + 16
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img">\n'
            f"<title>{html.escape(caption(found))}</title>\n<style>{STYLE}</style>\n"
            f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>\n'
            + "\n".join(lines) + "\n</svg>\n")


def with_caption(readme, found):
    """The README with the caption of its picture as it is now."""
    words = textwrap.fill(f"![{caption(found)}](tests/bench/peers.svg)", 118, break_on_hyphens=False)
    text, count = re.subn(r"!\[[^\]]*\]\(tests/bench/peers\.svg\)", lambda _: words, readme)
    if count != 1:
        raise SystemExit("README.md does not show tests/bench/peers.svg once")
    return text


def main():
    found = results()
    (HERE / "peers.svg").write_text(svg(found))
    README.write_text(with_caption(README.read_text(), found))


if __name__ == "__main__":
    main()
