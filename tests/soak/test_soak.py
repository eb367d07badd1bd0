"""20 minutes of soak.py (LONGVIEW_SOAK_MINUTES: others); hours are by hand."""

import os
import pathlib
import runpy
import sys

import pytest

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER))


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_nothing_grows_is_lost_or_mixed_up(tmp_path):
    # By its path: pytest may have taken the folder for a module of this name.
    soak = runpy.run_path(str(FOLDER / "soak.py"))["soak"]
    minutes = float(os.environ.get("LONGVIEW_SOAK_MINUTES", "20"))
    assert not soak(minutes * 60, 0, tmp_path, "tests/soak/test_soak.py")
