"""Calls of a running server's /v1/completions, for the samples of the model card; the standard library only."""
import json
import urllib.request


def complete(url, **body):
    """The answer to one completion of code-lm."""
    call = urllib.request.Request(f"{url}/v1/completions", json.dumps({"model": "code-lm", **body}).encode(),
                                  {"content-type": "application/json"})
    with urllib.request.urlopen(call) as answer:
        return json.load(answer)


def bits_per_byte(url, text):
    """What the model pays for a text: fewer bits for what it expects."""
    scored = complete(url, prompt=text, max_tokens=0, echo=True, logprobs=0)["choices"][0]["logprobs"]
    scores = [score for score in scored["token_logprobs"] if score is not None]
    return -sum(scores) / len(scores) / 0.6931471805599453
