"""JSON of almost 64 MB that is deep, wide, or all of it small values."""

import concurrent.futures

import pytest

from http1 import post

SIZE = 60_000_000


def filled(beginning, piece, end):
    return beginning + piece * ((SIZE - len(beginning) - len(end)) // len(piece)) + end


BODIES = {
    "deep lists": lambda: b"[" * SIZE,
    "deep objects": lambda: b'{"a":' * (SIZE // 5),
    "wide list": lambda: filled(b'{"model":"code-language","token_ids":[', b"1,", b"1]}"),
    "wide list of objects": lambda: filled(b'{"input":[', b"{},", b"{}]}"),
    "wide list of lists": lambda: filled(b'{"input":[', b"[],", b"[]]}"),
    "many strings": lambda: filled(b'{"model":"code-language","input":[', b'"",', b'""]}'),
    "one member again and again": lambda: filled(b'{"text":"x"', b',"text":"x"', b"}"),
    "many members": lambda: b"{" + b",".join(b'"%d":0' % i for i in range(4_000_000)) + b"}",
}
QUICK = ("deep objects", "wide list of lists", "many members")
CASES = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in BODIES]
PATHS = ("/v1/classify", "/v1/embeddings", "/v1/completions", "/v2/models/code-language/infer")


@pytest.mark.parametrize("name", CASES)
def test_large_json(victim, name):
    body = BODIES[name]()
    with victim.watched() as figures:
        with concurrent.futures.ThreadPoolExecutor(len(PATHS)) as pool:
            answers = list(pool.map(lambda path: post(victim.http_port, path, body), PATHS))
        figures["answers"] = [status for status, _ in answers]
        assert all(status in (0, 400, 413, 429) for status, _ in answers)
        assert all(len(answer) < 2000 for _, answer in answers)


def test_a_wide_tensor(victim):
    ids = filled(b'{"inputs":[{"name":"input_ids","datatype":"INT64","shape":[1,29999972],'
                 b'"data":[', b"1,", b"1]}]}")
    with victim.watched() as figures:
        figures["answer"] = post(victim.http_port, "/v2/models/code-language/infer", ids)[0]
        assert figures["answer"] in (0, 400, 413, 429)
