"""Three posts of 60 MB of plain text, which a tokenizer would turn into gigabytes."""

import concurrent.futures
import json

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
    text = "x" * 20_000_000
    body = json.dumps({"model": "code-language", "input": [text, text, text]}).encode()
    with victim.watched() as figures:
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            answers = list(pool.map(lambda _: post(victim.http_port, "/v1/embeddings", body),
                                    range(3)))
        figures["answers"] = [status for status, _ in answers]
        assert all(status in LIMITS for status, _ in answers)


def test_a_long_text_behind_a_prompt_is_cut_on_the_left(victim):
    """The tokens in front of those that stay are not held on the way."""
    body = json.dumps({"model": "code-language", "input": "int value = compute(left, right);\n" * 350_000,
                       "prompt": "query: ", "truncate": True,
                       "truncation_direction": "left"}).encode()
    with victim.watched() as figures:
        status, answer = post(victim.http_port, "/v1/embeddings", body)
        figures["answers"] = [status]
        assert status == 200, answer[:300]
