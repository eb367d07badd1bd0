"""What image models keep of the sizes they saw stays within --image_plan_bytes."""

import numpy as np
import pytest

from server_process import ROOT, Server

MODELS = {f"{family}.any_size": ROOT / "tests/golden" / family / "any_size/model"
          for family in ("vil_ls", "cvt_ls")}
BOUND = 256 << 10
SIZES = [(32 + 8 * (i % 9), 32 + 8 * (i // 9)) for i in range(63)]


@pytest.fixture(scope="module")
def bounded():
    models = [f"{name}={directory}" for name, directory in MODELS.items()]
    with Server(models, "--dtype=fp32", f"--image_plan_bytes={BOUND}") as running:
        yield running


def logits(server, model, height, width):
    """Those of a picture that follows from its size."""
    values = np.random.default_rng(1000 * height + width).random((1, 3, height, width), np.float32)
    status, answer = server.post_json(f"/v2/models/{model}/infer", {"inputs": [{
        "name": "pixel_values", "datatype": "FP32", "shape": list(values.shape),
        "data": values.ravel().tolist()}], "outputs": [{"name": "logits"}]})
    assert status == 200, answer
    return answer["outputs"][0]["data"]


def kept(server, model):
    return server.metric("longview_image_plan_bytes", model=model)


@pytest.mark.parametrize("model", MODELS)
def test_many_sizes_stay_within_the_bound(bounded, model):
    assert kept(bounded, model) <= BOUND
    most = 0
    for height, width in SIZES:
        logits(bounded, model, height, width)
        now = kept(bounded, model)
        assert now <= BOUND
        most = max(most, now)
    assert most > BOUND // 2  # Else the bound was never near.


@pytest.mark.parametrize("bound", ["0", "1GiB"])
def test_answers_do_not_depend_on_the_bound(bounded, bound):
    models = [f"{name}={directory}" for name, directory in MODELS.items()]
    with Server(models, "--dtype=fp32", f"--image_plan_bytes={bound}") as server:
        for model in MODELS:
            for height, width in SIZES[::7]:
                assert logits(server, model, height, width) == logits(bounded, model, height, width)
            if bound == "0":
                assert kept(server, model) == 0
                continue
            # What is asked for again is there, what is not comes on top.
            before = kept(server, model)
            for height, width in SIZES[::7]:
                logits(server, model, height, width)
            assert kept(server, model) == before > 0
            for height, width in SIZES:
                logits(server, model, height, width)
            assert kept(server, model) > max(before, BOUND)
