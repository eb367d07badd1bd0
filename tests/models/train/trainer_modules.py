"""Imports a trainer's modules for a while: trainers have modules of the same names."""

import contextlib
import importlib
import sys


@contextlib.contextmanager
def modules_of(folder):
    """Gives a function that imports by name, from `folder` first."""
    names = {path.stem for path in [*folder.glob("*.py"), *(folder.parent / "pages").glob("*.py")]}
    kept = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(str(folder))
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(kept)
