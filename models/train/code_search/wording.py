"""Questions that a person might ask, from what an author wrote about a piece of code."""
import re

FEWEST_WORDS, MOST_WORDS = 4, 32
REFUSED = re.compile(r"copyright|licen[cs]e|all rights|generated|deprecated|do not edit|todo|fixme|"
                     r"nolint|http://|https://|inherit|see also|internal use|@param|-{4}|={4}", re.I)


def plain(comment):
    """The comment without its markers and markup."""
    text = re.sub(r"(?m)^\s*(///?!?|//|/\*+!?|\*+/|\*|#+)", "", comment)
    text = re.sub(r"\*+/\s*$", "", text)
    text = re.sub(r"[\\@](brief|details|short)\b", "", text)
    text = re.sub(r":[a-z:]+:`~?([^`]*)`", r"\1", text)     # Sphinx roles.
    text = re.sub(r"\[([^\]]+)\](\([^)]*\)|\[[^\]]*\])?", r"\1", text)
    text = re.sub(r"</?[a-zA-Z][^>]*>|\{@\w+ ([^}]*)\}", r" \1 ", text)
    return re.sub(r"[`*]+", "", text)


def question(comment, name=""):
    """The first sentence of a comment, without the name of what it is about; None if it is no use."""
    text = plain(comment).strip()
    text = re.split(r"\n\s*\n|\n\s*[@:\\]|\n\s*(?:Args|Parameters|Returns|Example)", text)[0]
    text = re.sub(r"\s+", " ", text)
    text = re.split(r"(?<=[a-z0-9)])[.:;!?](?:\s|$)", text)[0].strip()
    if name and text.lower().startswith(name.lower() + " "):
        text = text[len(name):].strip()
    words = re.findall(r"[A-Za-z][A-Za-z'_-]*", text)
    if not FEWEST_WORDS <= len(words) <= MOST_WORDS or REFUSED.search(text):
        return None
    if len(text) > 300 or sum(map(len, words)) < 0.6 * len(text):
        return None
    return text if text.isascii() else None
