"""Converters are programs in a folder, not a package: tests import them, and what tests share, by
name."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2] / "models/convert"), str(HERE)]
