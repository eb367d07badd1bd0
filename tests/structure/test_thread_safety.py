"""Who holds which lock: clang checks the annotations of absl/base/thread_annotations.h, and no lock lacks them.

The units of a folder are read together, as the build reads them: those that are annotated or include a header that is,
and for a header that none of them reaches, one that does."""

import collections
import functools
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LONGVIEW_BUILD", ROOT / "build"))
DEPS = pathlib.Path(os.environ.get("DEPS_DIR", ROOT / ".deps"))
ROOMS = ("server", "models", "client")

CLANG = shutil.which("clang++-14") or shutil.which("clang++")
FLAGS = ["-std=c++20", "-fsyntax-only", "-Wthread-safety", "-Wthread-safety-beta", "-Werror=thread-safety",
         "-Werror=thread-safety-beta", "-ferror-limit=0", "-DLONGVIEW_HD=", "-DAT_PER_OPERATOR_HEADERS",
         '-DLONGVIEW_VERSION=""',
         f"-I{ROOT}", f"-I{BUILD}/proto", f"-I{BUILD}/generated", f"-idirafter{DEPS}/libtorch/torch/include"]
ANNOTATION = r"ABSL_(PT_)?(GUARDED_BY|ACQUIRED_(AFTER|BEFORE)|\w*LOCKS_(REQUIRED|EXCLUDED))\("
INCLUDE = r'^\s*#\s*include "([^"]+)"'

# Locks that cannot be annotated. A line that has one says why.
PLAIN_LOCK = re.compile(r"std::(\w*mutex|condition_variable\w*|lock_guard|unique_lock|scoped_lock|shared_lock)\b")


def grep(pattern):
    """The lines of the rooms that hold a pattern, by file."""
    found = subprocess.run(["git", "grep", "--untracked", "-P", pattern, "--",
                            *(f"{room}/*{suffix}" for room in ROOMS for suffix in (".h", ".cc"))],
                           cwd=ROOT, check=True, capture_output=True, text=True).stdout
    lines = collections.defaultdict(list)
    for line in found.splitlines():
        name, _, text = line.partition(":")
        lines[name].append(text)
    return lines


def reached(name, includes):
    """A file and the headers of the rooms that it sees."""
    seen = {name}
    waiting = [name]
    while waiting:
        for header in includes.get(waiting.pop(), ()):
            if header not in seen:
                seen.add(header)
                waiting.append(header)
    return seen


@functools.lru_cache(maxsize=None)
def units():
    """Units to read, by folder."""
    annotated = set(grep(ANNOTATION))
    includes = {name: re.findall(INCLUDE, "\n".join(lines), re.MULTILINE) for name, lines in grep(INCLUDE).items()}
    chosen = {name for name in includes if name.endswith(".cc")
              and annotated & {name, *includes[name]}}
    missed = annotated - set().union(*(reached(name, includes) for name in chosen))
    for name in sorted(includes):
        if name.endswith(".cc") and missed & reached(name, includes):
            chosen.add(name)
            missed -= reached(name, includes)
    assert not missed
    folders = collections.defaultdict(list)
    for name in sorted(chosen):
        folders[name.rpartition("/")[0]].append(name)
    return folders


def complaints(text, tmp_path):
    """What clang says of a unit, none if it is content."""
    unit = tmp_path / "unit.cc"
    unit.write_text(text)
    done = subprocess.run([CLANG, *FLAGS, unit], capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def unexplained(name, text):
    """Lines with a lock of the standard library and without a reason."""
    return [f"{name}:{i}: {line.strip()}" for i, line in enumerate(text.splitlines(), 1)
            if PLAIN_LOCK.search(line.partition("//")[0]) and "//" not in line]


needs_clang = pytest.mark.skipif(CLANG is None, reason="no clang++ (deploy/install_deps.sh --tests installs it)")
needs_build = pytest.mark.skipif(not (BUILD / "proto").is_dir(), reason="no generated messages: build first")


@needs_clang
@needs_build
@pytest.mark.parametrize("folder", units())
def test_locks_are_held_where_they_must_be(folder, tmp_path):
    assert complaints("".join(f'#include "{name}"\n' for name in units()[folder]), tmp_path) == ""


def test_the_rooms_are_annotated():
    assert len(units()) > 12 and sum(map(len, units().values())) > 40
    assert "server/scheduler/device_queue.cc" in units()["server/scheduler"]


@needs_clang
@pytest.mark.parametrize("body, complaint", [
    ("return count_;", "reading variable 'count_' requires holding mutex 'mutex_'"),
    ("Add();", "calling function 'Add' requires holding mutex 'mutex_'"),
    ("absl::MutexLock lock(&mutex_); Wait();", "cannot call function 'Wait' while mutex 'mutex_' is held"),
    ("absl::MutexLock lock(&mutex_); absl::MutexLock first(&first_);", "'first_' must be acquired before 'mutex_'"),
    ("absl::MutexLock lock(&mutex_); WithoutLock(&mutex_, [this] { return count_; });", "reading variable 'count_'"),
    ("changed_.Wait(&mutex_);", "calling function 'Wait' requires holding mutex 'mutex_'"),
])
def test_a_violation_is_seen(body, complaint, tmp_path):
    planted = """#include "server/scheduler/steady_cond_var.h"
#include "server/scheduler/without_lock.h"
namespace longview::server {
class Planted {
 public:
  int Do() { %s }
 private:
  void Add() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { ++count_; }
  void Wait() ABSL_LOCKS_EXCLUDED(mutex_) {}
  absl::Mutex first_;
  absl::Mutex mutex_ ABSL_ACQUIRED_AFTER(first_);
  SteadyCondVar changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};
}
"""
    assert complaints(planted % "absl::MutexLock lock(&mutex_); Add(); return count_;", tmp_path) == ""
    assert complaint in complaints(planted % body, tmp_path)


def test_every_lock_can_be_annotated():
    found = [line for name in grep(r"std::\w*(mutex|lock|condition_variable)")
             for line in unexplained(name, (ROOT / name).read_text(encoding="utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("line", [
    "  mutable std::mutex mutex_;", "  std::condition_variable changed_;", "std::lock_guard lock(mutex_);",
    "void F(std::unique_lock<std::mutex>& lock);", "std::shared_mutex mutex_;"])
def test_a_plain_lock_is_seen(line):
    assert unexplained("planted.h", line)
    assert not unexplained("planted.h", line + "  // Waits on the steady clock.")
    assert not unexplained("planted.h", "// " + line)
