"""Stock clients of JavaScript, Go, Rust and Java at their defaults: they answer what the server answers without them,
and send once what is refused."""

import json

import pytest

from programs import CLIENTS, INPUTS, is_grpc, split

pytestmark = pytest.mark.languages

TOLERANCE = 1e-6
OPENAI = ("embed", "embed_short", "complete", "stream", "models")
CASES = {
    "javascript-openai": OPENAI,
    "javascript-huggingface": ("embed", "embed_settings", "similarity", "classify"),
    "javascript-cohere": ("rerank", "rerank_first", "rerank_settings", "embed", "embed_query"),
    "javascript-langchain": ("embed", "embed_one_line", "embed_short", "complete", "stream"),
    "javascript-vercel": ("embed", "complete_as_user"),
    "go-openai": OPENAI,
    "go-sashabaranov": OPENAI,
    "go-cohere": ("rerank", "rerank_first", "rerank_settings", "embed", "embed_query"),
    "go-grpc": ("embed", "rerank", "classify", "stream", "models"),
    "rust-async-openai": OPENAI,
    "java-openai": OPENAI,
    "java-cohere": ("score", "embed", "embed_query"),
    "java-jina": ("score", "embed"),
    "java-grpc": ("embed", "rerank", "classify", "stream", "models"),
}
# Calls by which each client meets a model without the task.
COMPLETION = ("/v1/completions", {"model": "embedder", "prompt": INPUTS["prompt"]})
LACKING = {**dict.fromkeys(("openai", "async-openai", "sashabaranov", "langchain", "vercel"), COMPLETION),
           "huggingface": ("/v1/embeddings", {"model": "code-lm", "input": "a"}),
           "grpc": ("/v1/embeddings", {"model": "code-lm", "input": "a"}),
           "cohere": ("/v1/rerank", {"model": "code-lm", "query": "a", "documents": ["b"]}),
           "jina": ("/v1/rerank", {"model": "code-lm", "query": "a", "documents": ["b"]})}

# Times that a refused call is sent by clients that repeat whatever fails, and do not look at the status.
SENT = {"java-cohere": 3, "java-jina": 3}


def ask(server, path, body):
    status, answer = server.post_json(path, body)
    assert status == 200, answer
    return answer


def vectors(server, **more):
    answer = ask(server, "/v1/embeddings", {"model": "embedder", "input": INPUTS["texts"], **more})
    return [entry["embedding"] for entry in answer["data"]]


def ranked(server):
    answer = ask(server, "/v1/rerank", {"model": "reranker", "query": INPUTS["query"],
                                        "documents": INPUTS["documents"]})
    return [[entry["index"], entry["relevance_score"]] for entry in answer["results"]]


def text(server, prompt=INPUTS["prompt"], **more):
    answer = ask(server, "/v1/completions", {"model": "code-lm", "prompt": prompt, "temperature": 0,
                                             "max_tokens": INPUTS["max_tokens"], **more})
    return answer["choices"][0]["text"]


def labels(server):
    answer = ask(server, "/v1/classify", {"model": "code-language", "text": INPUTS["sources"][0]})
    return [{"label": label["name"], "score": label["score"]} for label in answer["labels"]]


def similarity(server):
    query, *documents = (entry["embedding"] for entry in ask(
        server, "/v1/embeddings", {"model": "embedder", "input": [INPUTS["query"], *INPUTS["documents"]]})["data"])
    return [sum(a * b for a, b in zip(query, document)) for document in documents]


def models(server):
    return [model["id"] for model in json.loads(server.get("/v1/models")[2])["data"]]


WANTED = {
    "embed": vectors,
    "embed_settings": vectors,  # The directory normalises already.
    "embed_one_line": lambda server: vectors(server, input=[text.replace("\n", " ") for text in INPUTS["texts"]]),
    "embed_short": lambda server: vectors(server, dimensions=INPUTS["dimensions"]),
    "embed_query": lambda server: vectors(server, prompt_name="query"),
    "complete": text,
    # This client makes a conversation of a prompt.
    "complete_as_user": lambda server: text(server, f"user:\n{INPUTS['prompt']}\n\nassistant:\n", stop=["\nuser:"]),
    "stream": text,
    "classify": labels,
    "models": models,
    "rerank": ranked,
    "rerank_first": ranked,
    "rerank_settings": lambda server: ranked(server)[:2],
    "score": lambda server: [score for _, score in sorted(ranked(server))],
    "similarity": similarity,
}


def differences(got, wanted, place="answer"):
    """Sentences about what differs."""
    if isinstance(wanted, (int, float)) and isinstance(got, (int, float)):
        if abs(got - wanted) > TOLERANCE:
            yield f"{place} is {got}, not {wanted}"
    elif isinstance(wanted, list) and isinstance(got, list) and len(got) == len(wanted):
        for index, pair in enumerate(zip(got, wanted)):
            yield from differences(*pair, f"{place}[{index}]")
    elif isinstance(wanted, dict) and isinstance(got, dict) and sorted(got) == sorted(wanted):
        for name in wanted:
            yield from differences(got[name], wanted[name], f"{place}.{name}")
    elif got != wanted:
        yield f"{place} is {str(got)[:300]}, not {str(wanted)[:300]}"


@pytest.mark.parametrize("client, case", [(client, case) for client in CLIENTS for case in CASES[client]])
def test_answers_are_the_servers_own(calls, server, client, case):
    assert not list(differences(calls(client).answers[case], WANTED[case](server)))


def refusal(server, path, body):
    """(status, message) of a call without a client."""
    status, answer = server.post_json(path, body)
    assert status >= 400
    return status, answer["error"]["message"]


def assert_refused(answer, status, message):
    assert isinstance(answer, dict) and sorted(answer) == ["error"], answer
    said = answer["error"]
    # Some clients print the answer as JSON, with its quotes escaped.
    assert message in said["message"].replace("\\", ""), said
    assert said["status"] in (status, None), said


@pytest.mark.parametrize("client", CLIENTS)
def test_an_unknown_model_is_said(calls, server, client):
    status, message = refusal(server, "/v1/embeddings", {"model": "nobody", "input": "a"})
    assert status == 404
    assert_refused(calls(client).answers["unknown_model"], 5 if is_grpc(client) else 404, message)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_lacking_task_is_said(calls, server, client):
    status, message = refusal(server, *LACKING[split(client)[1]])
    assert_refused(calls(client).answers["lacking_task"], 12 if is_grpc(client) else status, message)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_refused_call_is_sent_once(calls, client):
    """Clients repeat what they take for a passing fault, for seconds or minutes."""
    sent = SENT.get(client, 1)
    assert calls(client).refused == {"NOT_FOUND": sent, "UNIMPLEMENTED": sent}


@pytest.mark.parametrize("client", ["javascript-huggingface"])
def test_labels_are_not_ignored_by_a_model_without_zero_shot(calls, client):
    assert_refused(calls(client).answers["zero_shot_refused"], 400, "candidate_labels")
