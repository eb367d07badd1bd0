"""20 minutes of soak.py (LONGVIEW_SOAK_MINUTES: others); hours are by hand."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_nothing_grows_is_lost_or_mixed_up(tmp_path):
    import soak  # pylint: disable=import-outside-toplevel  # Its own imports need the path above.
    minutes = float(os.environ.get("LONGVIEW_SOAK_MINUTES", "20"))
    assert not soak.soak(minutes * 60, 0, tmp_path, "tests/soak/test_soak.py")
