"""Fetches the packages of a plan, packages.json unless --plan names another, and writes the corpus.

    python collect.py --work DIR [--plan FILE]

Needs apt-get, dpkg-deb, mvn, npm and cargo on the path, and no root. Writes DIR/train.jsonl and
DIR/test.jsonl, one object {language, package, path, text} a line. A package is in one of them
only. Documents of test packages whose lines mostly occur in training documents are copies
(vendored libraries, boilerplate) and are left out, so that test accuracy is about unseen files.
"""
import argparse
import collections
import hashlib
import json
import pathlib
import random
import re

import fetch
import languages

HERE = pathlib.Path(__file__).parent
# Documents of one language from one package, and of one language; a plan's "limits" come before.
LIMITS = {"per_package": {"train": 250, "test": 40}, "per_language": {"train": 1600, "test": 200}}
COPIED_LINES = 0.5  # A test document with more of its long lines seen in training is a copy.


def fingerprint(text):
    return hashlib.sha1(re.sub(r"\s+", " ", text).encode()).hexdigest()


def long_lines(text):
    return {hash(line.strip()) for line in text.splitlines() if len(line.strip()) >= 24}


def documents(files, package, seen, rng):
    """The labelled documents of a package that occur nowhere before, in random order."""
    found = []
    for path, data in files:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            continue
        if not languages.usable(text):
            continue
        language = languages.label(path, text)
        if language is None or (key := fingerprint(text)) in seen:
            continue
        seen.add(key)
        found.append({"language": language, "package": package, "path": path, "text": text})
    rng.shuffle(found)
    return found


def is_copy(text, known):
    lines = long_lines(text)
    return len(lines & known) > COPIED_LINES * len(lines)


def choose(work, split, plan, most, seen, train_lines):
    """Documents by language, at most `most` of each from a package."""
    rng = random.Random(f"longview {split}")
    chosen = collections.defaultdict(list)
    for kind, packages in plan[split].items():
        for package in packages:
            taken = collections.Counter()
            for document in documents(fetch.FETCHERS[kind](work, package), package, seen, rng):
                language = document["language"]
                known = train_lines[language]
                if taken[language] >= most or \
                        (split == "test" and is_copy(document["text"], known)):
                    continue
                if split == "train":
                    known |= long_lines(document["text"])
                taken[language] += 1
                chosen[language].append(document)
            print(f"{split} {package}: {dict(taken)}", flush=True)
    return chosen


def write(path, split, most, chosen):
    rng = random.Random(f"longview {split} files")
    with open(path, "w", encoding="utf-8") as out:
        for language in languages.LANGUAGES:
            rng.shuffle(chosen[language])
            kept = chosen[language][:most]
            packages = len({document["package"] for document in kept})
            print(f"{split} {language}: {len(kept)} of {len(chosen[language])}, {packages} packages")
            for document in kept:
                out.write(json.dumps(document) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--plan", type=pathlib.Path, default=HERE / "packages.json")
    options = parser.parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    plan = json.loads(options.plan.read_text())
    limits = plan.get("limits", LIMITS)
    fetch.prepare_apt(work, plan["debian_suite"])
    seen, train_lines = set(), collections.defaultdict(set)
    for split in ("train", "test"):
        chosen = choose(work, split, plan, limits["per_package"][split], seen, train_lines)
        write(work / f"{split}.jsonl", split, limits["per_language"][split], chosen)


if __name__ == "__main__":
    main()
