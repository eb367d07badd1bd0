"""Three posts of 60 MB of plain text, which a tokenizer would turn into gigabytes."""

import concurrent.futures

from http1 import post

LIMITS = (400, 413, 429, 503)


def test_large_texts_are_refused_before_they_are_tokenised(victim):
    text = b"def f(x):\n    return x + 1\n" * (60_000_000 // 27)
    with victim.watched() as figures:
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            answers = list(pool.map(lambda _: post(
                victim.http_port, "/v1/classify?model=code-language", text, "text/plain"),
                range(3)))
        figures["answers"] = [status for status, _ in answers]
        for status, answer in answers:
            assert status in LIMITS, answer[:300]
            assert len(answer) < 2000


def test_large_texts_in_members_of_a_list(victim):
    import json
    text = "x" * 20_000_000
    body = json.dumps({"model": "code-language", "input": [text, text, text]}).encode()
    with victim.watched() as figures:
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            answers = list(pool.map(lambda _: post(victim.http_port, "/v1/embeddings", body),
                                    range(3)))
        figures["answers"] = [status for status, _ in answers]
        assert all(status in LIMITS for status, _ in answers)
