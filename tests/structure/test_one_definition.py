"""One type per qualified name: two types of one name in one program are undefined behaviour, which no linker tells of.

Types within functions and unnamed namespaces belong to their file and are left out, as are forward declarations and
specializations of templates."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("server/", "models/", "kernels/", "client/")
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|'
                   r'^[ \t]*#(?:[^\n\\]|\\\n)*', re.DOTALL | re.MULTILINE)
# What a brace opens: the words since the last end of a statement or block.
NAMESPACE = re.compile(r"^(?:inline\s+)?namespace\s*([\w:]*)$")
TYPE = re.compile(r"(?:^|\s)(?:class|struct|union|enum(?:\s+class|\s+struct)?)\s+(?:alignas\s*\([^)]*\)\s*)?"
                  r"(?:\[\[[^\]]*\]\]\s*)?([A-Za-z_][\w:]*)\s*(?:final\s*)?(?::(?!:)[^{]*)?$")


def types_of(text):
    """The qualified names of the types that a file defines for the whole program."""
    text = NOISE.sub(lambda match: "" if match.group(0).startswith("#") else " ", text)
    scopes = []  # A name, "" for a namespace without one, None for a block of code.
    start = 0
    for match in re.finditer(r"[{};]|\)\s*:(?!:)|\b(?:public|private|protected)\s*:", text):
        if match.group(0) not in "{};":
            if match.group(0).endswith(":") and not match.group(0).startswith(")"):
                start = match.end()
            continue
        if match.group(0) == "{":
            words = " ".join(text[start:match.start()].split())
            words = re.sub(r"^template\s*<.*>\s*(?=class|struct|union)", "", words)
            namespace = NAMESPACE.match(words)
            defined = TYPE.search(words) if "(" not in words.split(":")[0] else None
            if namespace:
                scopes.append(namespace.group(1))
            elif defined and "=" not in words:
                scopes.append(defined.group(1))
                if None not in scopes and "" not in scopes:
                    yield "::".join(scopes)
            else:
                scopes.append(None)
        elif match.group(0) == "}" and scopes:
            scopes.pop()
        start = match.end()


def duplicates(files):
    """Names that several files define, with these files."""
    places = {}
    for name, text in files.items():
        for defined in set(types_of(text)):
            places.setdefault(defined, []).append(name)
    return {defined: sorted(where) for defined, where in places.items() if len(where) > 1}


def sources():
    listing = subprocess.run(["git", "ls-files", "-z", "*.h", "*.cc", "*.cuh", "*.cu"], cwd=ROOT, check=True,
                             capture_output=True, text=True).stdout.split("\0")
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in listing if name.startswith(ROOMS)}


def test_a_name_is_one_type():
    files = sources()
    assert sum(len(set(types_of(text))) for text in files.values()) > 900
    assert not duplicates(files)


def test_two_types_of_a_name_are_seen():
    one = "namespace a::b {\nclass C;\nclass C final : public D<int> {\n  struct E { int f; };\n};\n}\n"
    other = "namespace a {\nnamespace b {\nstruct C {\n  void Run() { struct Local { int x; }; }\n};\n}\n}\n"
    hidden = "namespace a::b {\nnamespace {\nstruct C {};\n}\nvoid F() {\n  struct C {};\n}\n}\n"
    assert duplicates({"one.h": one, "other.h": other, "hidden.cc": hidden}) == {"a::b::C": ["one.h", "other.h"]}
    assert set(types_of(one)) == {"a::b::C", "a::b::C::E"}
