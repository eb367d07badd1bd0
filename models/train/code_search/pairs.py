"""Questions and the pieces of a file that answer them.

Each function takes the text of a file and returns (text, pairs): the text without the comments
or headings that became questions, and [question, begin, end, kind] with ranges of that text.
"""
import ast
import gzip
import re
import warnings

import wording

MOST_LINES = 60  # A piece has no more.
FEWEST_LETTERS = 40
COMMENTED = {".go": "Go", ".rs": "Rust", ".js": "JavaScript", ".ts": "JavaScript", ".java": "Java",
             ".h": "C, C++", ".hpp": "C, C++", ".hh": "C, C++", "": "C, C++"}
NO_DEFINITION = re.compile(r"\s*(#\s*(if|endif|else|include|define|undef|pragma)|package\b|use\b|"
                           r"import\b|[})\]])")


def _without(lines, removed, found):
    """The text without the removed lines; found: (question, first line, line behind, kind)."""
    begins, size, kept = [], 0, []
    for number, line in enumerate(lines):
        begins.append(size)
        if number not in removed:
            kept.append(line)
            size += len(line)
    begins.append(size)
    text, pairs = "".join(kept), []
    for question, first, behind, kind in found:
        begin, end = begins[first], begins[min(behind, len(lines))]
        if sum(c.isalnum() for c in text[begin:end]) >= FEWEST_LETTERS:
            pairs.append([question, begin, end, kind])
    return text, pairs


def python(text):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text, []
    lines, removed, found = text.splitlines(keepends=True), set(), []
    # Form feeds separate lines for str.splitlines, not for the parser.
    if len(lines) != text.count("\n") + (not text.endswith("\n")):
        return text, []
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        documentation = ast.get_docstring(node)
        first = node.body[0]
        if not documentation or first.lineno == node.lineno:
            continue
        removed.update(range(first.lineno - 1, first.end_lineno))
        question = wording.question(documentation, node.name)
        begin = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
        if question and len(node.body) > 1:
            length = MOST_LINES + first.end_lineno - first.lineno
            found.append((question, begin, min(node.end_lineno or begin, begin + length), "Python"))
    return _without(lines, removed, found)


def _end_of_definition(lines, begin):
    """The line behind a declaration, or behind the braces that follow it."""
    depth, opened = 0, False
    for number in range(begin, min(len(lines), begin + MOST_LINES)):
        line = re.sub(r'"(\\.|[^"\\])*"|//.*', "", lines[number])
        if not line.strip() and depth == 0:
            return number
        depth += sum(map(line.count, "{([")) - sum(map(line.count, "})]"))
        opened |= "{" in line
        ended = opened or line.rstrip().endswith((";", ",") if number == begin else ";")
        if depth <= 0 and ended:
            return number + 1
    return min(len(lines), begin + MOST_LINES)


def _declared(line):
    """The name that a line declares, as Go's comments repeat it."""
    match = re.match(r"\s*(?:pub(?:\([a-z]+\))?\s+)?(?:func(?:\s*\([^)]*\))?|fn|type|struct|var|const|class)"
                     r"\s+(\w+)", line)
    return match[1] if match else ""


def commented(text, kind):
    """Comments directly in front of definitions."""
    lines, removed, found = text.splitlines(keepends=True), set(), []
    number = 0
    while number < len(lines):
        begin = number
        if re.match(r"\s*//", lines[number]):
            while number < len(lines) and re.match(r"\s*//", lines[number]):
                number += 1
        elif re.match(r"\s*/\*", lines[number]):
            while number < len(lines) and "*/" not in lines[number]:
                number += 1
            number += 1
        else:
            number += 1
            continue
        if number >= len(lines) or not lines[number].strip() or NO_DEFINITION.match(lines[number]):
            continue
        removed.update(range(begin, number))
        question = wording.question("".join(lines[begin:number]), _declared(lines[number]))
        if question:
            found.append((question, number, _end_of_definition(lines, number), kind))
    return _without(lines, removed, found)


def sections(text):
    """Headings of Markdown and reStructuredText and what stands below them."""
    lines, removed, headings = text.splitlines(keepends=True), set(), []
    fenced = False
    for number, line in enumerate(lines):
        fenced ^= line.lstrip().startswith("```")
        below = lines[number + 1] if number + 1 < len(lines) else ""
        if not fenced and (match := re.match(r"#{1,5}\s+(.*?)\s*#*\s*$", line)):
            headings.append((number, number + 1, match[1]))
        elif re.match(r"([=~^\"'-])\1{3,}\s*$", below) and line.strip() and line[0].isalnum() \
                and len(line.strip()) <= len(below.strip()) + 1:
            headings.append((number, number + 2, line.strip()))
    found = []
    for place, (begin, behind, title) in enumerate(headings):
        removed.update(range(begin, behind))
        end = headings[place + 1][0] if place + 1 < len(headings) else len(lines)
        title = re.sub(r"\s+", " ", re.sub(r"[`*:_\[\]]|\(http[^)]*\)", " ", title)).strip()
        words = re.findall(r"[A-Za-z]{2,}", title)
        if 2 <= len(words) <= 16 and title.isascii() and not wording.REFUSED.search(title) and \
                sum(map(len, lines[behind:end])) >= 150:
            found.append((title, behind, min(end, behind + MOST_LINES), "text"))
    return _without(lines, removed, found)


def manual(data):
    """The purpose of a manual page, and how the page goes on."""
    text = gzip.decompress(data).decode("utf-8", "replace")
    text = re.sub(r'(?m)^[.\'](\\"|de |ds |TH|ie|el|if|nr|hy|ad|nh|tr|rm).*$', "", text)
    text = re.sub(r"\\f(\(..|\[[^\]]*\]|.)|\\[&|^%/,c]|\\s[+-]?\d", "", text)
    text = re.sub(r"\\\((..)|\\\[([^\]]*)\]", " ", text.replace("\\-", "-"))
    text = re.sub(r'(?m)^[.\'](S[HS]|[A-Z]{1,2}|Nm|Nd|Ar|Op|Fl)\s*"?', "", text)
    match = re.search(r"(?mi)^\s*NAME\"?\s*\n(.*?\S)\s+-+\s+([^\n]+)\n(.*)", text, re.S)
    if match is None or len(match[1]) > 200:
        return "", []
    body = re.sub(r"\n\s*\n+", "\n", match[3]).strip()[:2500]
    words = re.findall(r"[A-Za-z]{2,}", match[2])
    if not 3 <= len(words) <= wording.MOST_WORDS or len(body) < 200 or not match[2].isascii():
        return "", []
    return body, [[match[2].strip(), 0, len(body), "manual page"]]


def of_file(path, text):
    if path.suffix == ".py":
        return python(text)
    if path.suffix in {".md", ".rst", ".txt"}:
        return sections(text)
    return commented(text, COMMENTED[path.suffix])
