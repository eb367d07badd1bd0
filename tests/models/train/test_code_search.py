"""Pairs of questions and pieces as the training of an embedding model collects them."""

import pytest

TRAINER = "code_search"

PYTHON = '''\
class Heap:
    def push(self, item):
        """Push an item onto the heap, keeping its order.

        More about it.
        """
        self.items.append(item)
        self._sift_down(0, len(self.items) - 1)

    def size(self):
        """Too short."""
        return len(self.items)
'''

GO = '''\
// Copyright 2026 somebody with all rights.

// NextDelay returns the seconds to wait before a refused call is repeated. It is capped.
func NextDelay(attempt int) float64 {
	return math.Min(30, 0.1*math.Pow(2, float64(attempt)))
}

var other = 1
'''

MARKDOWN = "# Guide\n\nShort.\n\n## Rotating access keys\n\n" + "Put the new key into the file. " * 8 + "\n"


@pytest.fixture(scope="module")
def pairs(modules):
    return modules("pairs")


def pieces(found):
    text, of_text = found
    return {question: (text[begin:end], kind) for question, begin, end, kind in of_text}


def test_a_docstring_is_the_question_and_leaves_the_piece(pairs):
    text, _ = found = pairs.python(PYTHON)
    assert '"""' not in text, "questions stand nowhere in what is searched, also those of no use"
    (question, (piece, kind)), = pieces(found).items()
    assert question == "an item onto the heap, keeping its order", "without the name, whatever its case"
    assert kind == "Python"
    assert piece.strip().startswith("def push") and piece.rstrip().endswith("- 1)")
    assert pairs.python("def broken(:\n") == ("def broken(:\n", [])


def test_a_comment_without_the_name_it_begins_with(pairs):
    found = pieces(pairs.commented(GO, "Go"))
    assert list(found) == ["returns the seconds to wait before a refused call is repeated"]
    (piece, _), = found.values()
    assert piece.startswith("func NextDelay") and piece.endswith("}\n") and "other" not in piece


def test_a_heading_and_its_section(pairs):
    found = pieces(pairs.sections(MARKDOWN))
    assert list(found) == ["Rotating access keys"]
    assert "Put the new key" in found["Rotating access keys"][0]


def test_a_package_is_on_one_side_in_all_its_versions(modules):
    sources = modules("sources")
    assert sources.held_out("networkx") and not sources.held_out("torch")
    share = sum(sources.held_out(f"package{i}") for i in range(2000)) / 2000
    assert 0.03 < share < 0.1
