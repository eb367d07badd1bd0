"""The pages of the repository as their readers copy them: blocks, and the commands in these."""

import re
import subprocess

from server_process import ROOT

SHELLS = {"sh"}
# The top level is given; build folders and installed dependencies beside it are somebody else's.
ROOMS = ["server", "proto", "kernels", "models", "client", "deploy", "tests"]
PAGES = sorted([*ROOT.glob("*.md"), *(path for room in ROOMS for path in (ROOT / room).rglob("*.md")
                                      if not re.search(r"/(\.\w+|node_modules|golden/\w+)/", str(path)))])


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def blocks(page):
    """[(language, text)] of the fenced blocks of a page; the language of a bare one is empty."""
    found, language, lines = [], None, []
    for line in page.read_text(encoding="utf-8").splitlines():
        fence = re.match(r"\s*```(\w*)", line)
        if fence and language is None:
            language, lines = fence[1], []
        elif fence:
            found.append((language, "\n".join(lines)))
            language = None
        elif language is not None:
            lines.append(line)
    assert language is None, f"{page}: a block does not end"
    return found


def indented_blocks(page):
    """First lines of blocks that are indented instead of fenced; parts of lists are none."""
    text = re.sub(r"^\s*```.*?^\s*```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [match[2] for match in re.finditer(r"^(.*)\n\n {4}(\S.*)$", text, re.MULTILINE)
            if not re.match(r"\s*([*-]|\d+\.) |  ", match[1])]


def shell_commands(text):
    """The commands of a block: lines, joined while a backslash, a quote or a loop continues them."""
    commands, command = [], ""
    for line in text.splitlines():
        command += line
        if command.endswith("\\"):
            command = command[:-1]
        elif subprocess.run(["bash", "-n", "-c", command], capture_output=True).returncode:
            command += "\n"
        else:
            if command.strip() and not command.strip().startswith("#"):
                commands.append(command.strip())
            command = ""
    assert not command, f"not a whole command: {command}"
    return commands


def commands():
    """[(page's name, command)] of all shell blocks."""
    return [(name_of(page), command) for page in PAGES for language, text in blocks(page)
            if language in SHELLS for command in shell_commands(text)]
