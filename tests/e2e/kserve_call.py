"""One inference by the stock kserve client: kserve_call.py rest|binary|grpc ADDRESS MODEL IDS."""

import asyncio
import json
import sys

import kserve
import numpy as np
from kserve.protocol.infer_type import RequestedOutput


def request(model, ids, binary=False):
    tensor = kserve.InferInput("input_ids", list(ids.shape), "INT64")
    tensor.set_data_from_numpy(ids, binary_data=binary)
    outputs = [RequestedOutput("logits", {"binary_data": True})] if binary else None
    return kserve.InferRequest(model_name=model, infer_inputs=[tensor], request_outputs=outputs)


async def rest(url, model, ids, binary=False):
    client = kserve.InferenceRESTClient(kserve.inference_client.RESTConfig(protocol="v2"))
    assert await client.is_server_live(url)
    assert await client.is_server_ready(url)
    assert await client.is_model_ready(url, model)
    return await client.infer(url, request(model, ids, binary), model_name=model)


async def binary(url, model, ids):
    return await rest(url, model, ids, binary=True)


async def grpc(address, model, ids):
    client = kserve.InferenceGRPCClient(address)
    assert await client.is_server_ready()
    assert await client.is_model_ready(model)
    return await client.infer(request(model, ids))


# As kserve's own examples call: nothing but names, shapes and values.
def default_request(model, ids):
    tensor = kserve.InferInput("input_ids", list(ids.shape), "INT64")
    tensor.set_data_from_numpy(ids)
    return kserve.InferRequest(model_name=model, infer_inputs=[tensor])


async def rest_default(url, model, ids):
    client = kserve.InferenceRESTClient(kserve.inference_client.RESTConfig(protocol="v2"))
    return await client.infer(url, default_request(model, ids), model_name=model)


async def grpc_default(address, model, ids):
    return await kserve.InferenceGRPCClient(address).infer(default_request(model, ids))


def main(transport, address, model, ids):
    ids = np.array(json.loads(ids), np.int64)
    calls = {"rest": rest, "binary": binary, "grpc": grpc, "rest-default": rest_default,
             "grpc-default": grpc_default}
    answer = asyncio.run(calls[transport](address, model, ids))
    logits = [output for output in answer.outputs if output.name == "logits"][0]
    print(json.dumps(logits.as_numpy().tolist()))


if __name__ == "__main__":
    main(*sys.argv[1:])
