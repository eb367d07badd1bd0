"""Options of /v1/completions that vLLM's and OpenAI's clients send."""

import collections

import openai
import pytest

PROMPT = "def add(a, b):\n    return "


@pytest.fixture(scope="module")
def client(zoo_server):
    return openai.OpenAI(base_url=f"{zoo_server.url}/v1", api_key="none", max_retries=0)


def complete(client, **options):
    extra = options.pop("extra_body", {})
    return client.completions.create(model="code-lm", prompt=options.pop("prompt", PROMPT),
                                     max_tokens=options.pop("max_tokens", 24),
                                     temperature=options.pop("temperature", 0), seed=1,
                                     extra_body=extra, **options).choices[0]


def token_of(zoo_server, character):
    body = {"model": "code-lm", "prompt": character, "add_special_tokens": False}
    return zoo_server.post_json("/tokenize", body)[1]["tokens"][0]


def test_logit_bias_forces_and_forbids(client, zoo_server):
    token = str(token_of(zoo_server, "Q"))
    assert complete(client, logit_bias={token: 100}, max_tokens=5).text == "QQQQQ"
    plain = complete(client).text
    first = str(token_of(zoo_server, plain[0]))
    assert not complete(client, logit_bias={first: -100}).text.startswith(plain[0])
    assert complete(client, logit_bias={}).text == plain


def test_penalties_are_of_what_was_generated(client, zoo_server):
    bias = {str(token_of(zoo_server, character)): 50 for character in "QZ"}
    plain = complete(client, logit_bias=bias, max_tokens=16).text
    assert set(plain) <= set("QZ")
    often = complete(client, logit_bias=bias, frequency_penalty=2.0, max_tokens=16).text
    counts = collections.Counter(often)
    assert abs(counts["Q"] - counts["Z"]) <= abs(plain.count("Q") - plain.count("Z"))
    for option in ("frequency_penalty", "presence_penalty"):
        assert complete(client, **{option: 0}, max_tokens=16).text == \
            complete(client, max_tokens=16).text
        first = complete(client, **{option: 2.0}, max_tokens=1).text
        assert first == complete(client, max_tokens=1).text, "the prompt does not count"


def test_the_shift_is_exactly_the_penalty(client, zoo_server):
    """A bias of one token makes up for the penalty that it has after it was generated once."""
    token = token_of(zoo_server, "Q")
    once = complete(client, logit_bias={str(token): 100}, presence_penalty=2, max_tokens=3)
    assert once.text == "QQQ"


def test_min_p_and_top_k(client):
    greedy = complete(client).text
    for extra in ({"min_p": 1.0}, {"top_k": 1}):
        assert complete(client, temperature=1.5, extra_body=extra).text == greedy
    assert complete(client, temperature=1.5, extra_body={"top_k": -1}).text == \
        complete(client, temperature=1.5, extra_body={"top_k": 0}).text


def test_ignore_eos(client):
    """Nothing but the length ends it."""
    choice = complete(client, max_tokens=200, extra_body={"ignore_eos": True})
    assert choice.finish_reason == "length"


@pytest.mark.parametrize("options, field", [
    ({"frequency_penalty": 2.5}, "frequency_penalty"),
    ({"presence_penalty": -3}, "presence_penalty"),
    ({"logit_bias": {"x": 1}}, "logit_bias"), ({"logit_bias": {"99999": 1}}, "logit_bias"),
    ({"logit_bias": {"1": 200}}, "logit_bias"), ({"extra_body": {"min_p": 1.5}}, "min_p"),
    ({"extra_body": {"ignore_eos": 1}}, "ignore_eos"), ({"extra_body": {"top_k": -2}}, "top_k")])
def test_refusals(client, options, field):
    with pytest.raises(openai.BadRequestError) as caught:
        complete(client, **options)
    assert caught.value.body["param"] == field, caught.value.body
