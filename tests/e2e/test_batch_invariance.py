"""An answer never depends on who shared the batch: bitwise, over the wire."""

import concurrent.futures
import random

import numpy as np
import pytest
import tritonclient.grpc

from goldens import served_models
from server_process import Server

MODEL = served_models("longformer")["classification"]


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_same_bits_alone_and_in_a_batch(dtype):
    rng = random.Random(7)
    documents = [np.array([[rng.randrange(4, 90) for _ in range(n)]], np.int64)
                 for n in (1, 2, 15, 16, 17, 63, 64, 65, 200, 511, 900, 1200)]

    def infer(client, ids):
        tensor = tritonclient.grpc.InferInput("input_ids", list(ids.shape), "INT64")
        tensor.set_data_from_numpy(ids)
        answer = client.infer("classification", [tensor])
        batch = answer.get_response().parameters["batch_items"].int64_param
        return answer.as_numpy("logits").tobytes(), batch

    with Server([f"classification={MODEL}"], f"--dtype={dtype}") as server:
        client = tritonclient.grpc.InferenceServerClient(server.grpc)
        alone = [infer(client, ids)[0] for ids in documents]
        shared = 0
        with concurrent.futures.ThreadPoolExecutor(48) as pool:
            for _ in range(8):
                order = [rng.randrange(len(documents)) for _ in range(48)]
                for index, (bits, batch) in zip(
                        order, pool.map(lambda i: infer(client, documents[i]), order), strict=True):
                    assert bits == alone[index], f"document {index} in a batch of {batch}"
                    shared += batch > 1
        assert shared > 0, "no batch had two items: the test showed nothing"
