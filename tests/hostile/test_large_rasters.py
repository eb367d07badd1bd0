"""Small files that decode to the largest pictures the limit allows."""

import concurrent.futures
import io

import pytest

from http1 import post

SIDE = 8000  # 64 million pixels of the 67 that --max_image_pixels allows.


@pytest.fixture(scope="module")
def picture():
    from PIL import Image
    Image.MAX_IMAGE_PIXELS = None
    file = io.BytesIO()
    Image.new("L", (SIDE, SIDE)).save(file, "png")
    return file.getvalue()


@pytest.mark.serves("code-language", "page-type")
def test_large_rasters_wait_for_each_other(victim, picture):
    """Each decodes to 192 MB, which is one client's whole budget: twelve at once."""
    with victim.watched() as figures:
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda _: post(
                victim.http_port, "/v1/classify?model=page-type", picture, "image/png",
                timeout=120), range(12)))
        figures.update(sent_KB=len(picture) // 1000,
                       answers=[status for status, _ in answers])
        assert {status for status, _ in answers} <= {200, 400, 413, 422, 429}
