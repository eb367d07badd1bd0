"""Generation against the real binary: stock clients, documents, bad input, cancellation."""

import json
import subprocess
import time

import numpy as np
import openai
import pytest
import tritonclient.grpc
import tritonclient.http

from goldens import tensors
from server_process import CLIENT, GOLDEN, SERVER, Server, wait_until

CASE = GOLDEN / "transformer_ls_lm/paper_dh32_r2_l16_w64"  # Bytes as tokens, bos = eos = 256.
INPUTS = tensors(CASE / "inputs.safetensors")
EXPECTED = tensors(CASE / "expected.safetensors")
PROMPT = "The ferry left at six, before the fog"
TOKENS = len(PROMPT) + 1  # With the bos in front.
TEXT = "longview.v1.TextService/"


@pytest.fixture(scope="module")
def lm():
    checked = subprocess.run([SERVER, "--check", CASE / "model"], capture_output=True, text=True)
    if checked.returncode != 0:
        pytest.skip(f"the family is not served: {checked.stderr or checked.stdout}")
    with Server([f"lm={CASE / 'model'}"], "--dtype=fp32", "--cache_bytes=64MiB") as server:
        yield server


@pytest.fixture(scope="module")
def client(lm):
    return openai.OpenAI(base_url=f"{lm.url}/v1", api_key="none", max_retries=0)


def complete(client, prompt=PROMPT, **options):
    return client.completions.create(model="lm", prompt=prompt,
                                     **{"temperature": 0, "max_tokens": 40, **options})


def grpcurl(server, method, *messages):
    return subprocess.run(["grpcurl", "-plaintext", "-d", "\n".join(map(json.dumps, messages)),
                           server.grpc, method], capture_output=True, text=True, timeout=60)


def answers(done):
    """The messages grpcurl printed, one JSON object after the other."""
    assert done.returncode == 0, done.stderr
    decoder, text, found = json.JSONDecoder(), done.stdout.strip(), []
    while text:
        message, end = decoder.raw_decode(text)
        found.append(message)
        text = text[end:].lstrip()
    return found


def nothing_is_left(server):
    wait_until(lambda: server.metric("longview_running_requests", model="lm") == 0 and
               server.metric("longview_queued_requests", model="lm") == 0, what="an idle server")


@pytest.mark.client("openai", "completions: streams, samples, stop, echo, scores")
class TestOpenAi:
    @pytest.mark.parametrize("index", [0, 1, 2])
    def test_greedy_is_the_golden(self, client, index):
        prompt, wanted = INPUTS[f"prompt.{index}"].tolist(), EXPECTED[f"greedy.{index}"].tolist()
        answer = complete(client, prompt, max_tokens=len(wanted), logprobs=0)
        wanted = wanted[:wanted.index(256) + 1] if 256 in wanted else wanted
        text = bytes(token for token in wanted if token < 256).decode(errors="replace")
        assert answer.choices[0].text == text
        assert answer.usage.prompt_tokens == len(prompt)
        assert answer.usage.completion_tokens == len(wanted) == len(answer.choices[0].logprobs.tokens)

    def test_scoring_is_the_golden(self, client):
        ids = INPUTS["text_ids"].tolist()
        answer = complete(client, ids, max_tokens=0, echo=True, logprobs=2)
        choice = answer.choices[0]
        assert choice.text == bytes(ids[1:]).decode() and choice.finish_reason == "length"
        assert choice.logprobs.token_logprobs[0] is None
        scores = -np.array(choice.logprobs.token_logprobs[1:])
        assert np.abs(scores - EXPECTED["text_nll"]).max() < 2e-3
        tokens = choice.logprobs.tokens[1:]
        assert [token for token in tokens if token.startswith("bytes:")], "the text has accents"
        raw = b"".join(bytes.fromhex(token[6:].replace("\\x", "")) if token.startswith("bytes:")
                       else token.encode() for token in tokens)
        assert raw == bytes(ids[1:])
        for token, offset in zip(tokens, choice.logprobs.text_offset[1:]):
            if not token.startswith("bytes:"):
                assert choice.text[offset:].startswith(token)
        assert all(2 <= len(top) <= 3 for top in choice.logprobs.top_logprobs[1:])

    def test_a_stream_is_the_whole_in_pieces(self, client):
        whole = complete(client)
        pieces = list(complete(client, stream=True, stream_options={"include_usage": True}))
        assert pieces[-1].choices == [] and pieces[-1].usage.completion_tokens == 40
        assert pieces[-1].usage.total_tokens == 40 + TOKENS
        assert all(piece.usage is None for piece in pieces[:-1])
        assert "".join(piece.choices[0].text for piece in pieces[:-1]) == whole.choices[0].text
        assert [piece.choices[0].finish_reason for piece in pieces[:-1]][-1] == "length"
        assert len({piece.id for piece in pieces}) == 1

    def test_samples_of_several_prompts(self, client):
        prompts = [PROMPT, "one, two, three;"]
        options = {"n": 3, "seed": 7, "temperature": 0.9, "max_tokens": 12}
        first = complete(client, prompts, **options)
        assert [choice.index for choice in first.choices] == list(range(6))
        assert len({choice.text for choice in first.choices[:3]}) > 1
        again = complete(client, prompts, **options)
        assert [choice.text for choice in again.choices] == [c.text for c in first.choices]
        texts = dict.fromkeys(range(6), "")
        for piece in complete(client, prompts, stream=True, **options):
            texts[piece.choices[0].index] += piece.choices[0].text
        assert list(texts.values()) == [choice.text for choice in first.choices]

    def test_stop_cuts_text_and_never_shows(self, client):
        text = complete(client, max_tokens=60).choices[0].text
        at = next(i for i in range(8, 50) if "\ufffd" not in text[i:i + 2] and
                  text.find(text[i:i + 2]) == i)
        stop = text[at:at + 2]
        for stops in (stop, [stop], ["never there", stop]):
            answer = complete(client, max_tokens=60, stop=stops).choices[0]
            assert (answer.text, answer.finish_reason) == (text[:at], "stop")
        pieces = list(complete(client, max_tokens=60, stop=stop, stream=True))
        assert "".join(piece.choices[0].text for piece in pieces) == text[:at]
        assert pieces[-1].choices[0].finish_reason == "stop"

    def test_echo(self, client):
        plain = complete(client).choices[0].text
        echoed = complete(client, echo=True, logprobs=1)
        assert echoed.choices[0].text == PROMPT + plain
        assert len(echoed.choices[0].logprobs.tokens) == TOKENS + 40

    @pytest.mark.parametrize("options, param", [
        ({"prompt": "x" * 200_000}, "prompt"),
        ({"max_tokens": 1 << 30}, None),
        ({"stop": ["x"] * 17}, "stop"),
        ({"temperature": -1}, "temperature"),
        ({"top_p": 2}, "top_p"),
        ({"n": 0}, "n"),
        ({"logprobs": 21}, "logprobs"),
        ({"best_of": 4}, "best_of"),
        ({"extra_body": {"max_new_tokens": 5}}, "max_new_tokens"),
        ({"extra_body": {"no_such_member": 5}}, "no_such_member"),
    ])
    @pytest.mark.parametrize("stream", [False, True])
    def test_bad_requests(self, client, options, param, stream):
        with pytest.raises(openai.BadRequestError) as caught:
            list(complete(client, stream=stream, **{"prompt": PROMPT, **options}))
        assert caught.value.body["type"] == "invalid_request_error"
        if param:
            assert caught.value.body["param"] == param

    def test_what_can_never_be_reserved_names_need_and_limit(self, client):
        with pytest.raises(openai.BadRequestError) as caught:
            complete(client, "x" * 100, n=100, max_tokens=100_000)
        assert any(ch.isdigit() for ch in caught.value.body["message"])

    def test_leaving_in_mid_stream_frees_the_state(self, lm, client):
        def held():
            return lm.metric("longview_generation_cache_bytes", model="lm")
        complete(client, max_tokens=1)
        nothing_is_left(lm)
        before = held()
        for _ in range(30):
            stream = complete(client, stream=True, max_tokens=50_000)
            next(iter(stream))
            stream.close()
        nothing_is_left(lm)
        assert held() <= before + 64 * 1024 * 1024 * 0.02


@pytest.mark.client("tritonclient", "generation, whole and streamed")
class TestTriton:
    def request(self, module, *prompts):
        given = module.InferInput("text", [len(prompts)], "BYTES")
        given.set_data_from_numpy(np.array([prompt.encode() for prompt in prompts], dtype=object))
        return [given]

    def test_unary_collects(self, lm, client):
        wanted = complete(client).choices[0].text
        for module, address in ((tritonclient.grpc, lm.grpc), (tritonclient.http, lm.http)):
            triton = module.InferenceServerClient(address)
            answer = triton.infer("lm", self.request(module, PROMPT, "one"),
                                  parameters={"max_tokens": 40})
            assert answer.as_numpy("text")[0].decode() == wanted
            assert answer.as_numpy("token_ids").shape[0] == 2
            assert answer.as_numpy("num_tokens")[0] == 40

    def test_stream_by_pieces(self, lm):
        options = {"max_tokens": 40, "num_return_sequences": 2, "do_sample": True, "seed": 3}
        triton = tritonclient.grpc.InferenceServerClient(lm.grpc)
        whole = triton.infer("lm", self.request(tritonclient.grpc, PROMPT), parameters=options)
        wanted = [text.decode() for text in whole.as_numpy("text")]
        assert triton.get_model_config("lm").config.model_transaction_policy.decoupled
        heard = []
        triton.start_stream(lambda result, error: heard.append((result, error)))
        triton.async_stream_infer("lm", self.request(tritonclient.grpc, PROMPT), request_id="a",
                                  parameters=options,
                                  enable_empty_final_response=True)
        triton.async_stream_infer("lm", self.request(tritonclient.grpc, PROMPT), request_id="bad",
                                  parameters={"temperature": "hot"})
        triton.stop_stream()
        assert any("temperature" in str(error) for _, error in heard if error is not None)
        texts, finals = {0: "", 1: ""}, []
        for result, error in heard:
            if error is not None:
                continue
            parameters = result.get_response().parameters
            finals.append(parameters["triton_final_response"].bool_param)
            texts[parameters["sequence_index"].int64_param] += result.as_numpy("text")[0].decode()
        assert texts == {0: wanted[0], 1: wanted[1]}
        assert finals[-1] and not any(finals[:-1])

    def test_prompt_scores(self, lm):
        triton = tritonclient.grpc.InferenceServerClient(lm.grpc)
        ids = INPUTS["text_ids"][None].astype(np.int64)
        given = tritonclient.grpc.InferInput("input_ids", list(ids.shape), "INT64")
        given.set_data_from_numpy(ids)
        scores = triton.infer("lm", [given], parameters={"max_tokens": 0}).as_numpy("token_logprobs")
        assert scores.shape == ids.shape and scores[0, 0] == 0
        assert np.abs(-scores[0, 1:] - EXPECTED["text_nll"]).max() < 2e-3


class TestTyped:
    def test_grpcurl_streams_numbered_messages(self, lm, client):
        messages = answers(grpcurl(lm, TEXT + "Generate",
                                   {"model": "lm", "text": PROMPT, "max_tokens": 40}))
        assert [message.get("number", 0) for message in messages] == list(range(len(messages)))
        text = "".join(message.get("text", "") for message in messages)
        assert text == complete(client).choices[0].text
        assert messages[-1]["finish_reason"] == "length"
        assert messages[-1]["usage"]["output_tokens"] == 40
        assert all("usage" not in message for message in messages[:-1])

    def test_documents(self, lm, client):
        parts = [{"model": "lm"}, {"text": PROMPT[:10]}, {"text": PROMPT[10:]}]
        document = answers(grpcurl(lm, TEXT + "OpenDocument", *parts))[0]
        assert document["usage"]["input_tokens"] == TOKENS
        wanted = complete(client, PROMPT + " had").choices[0].text
        request = {"document": document["handle"], "text": " had", "max_tokens": 40,
                   "collect": True}
        for _ in range(2):
            assert answers(grpcurl(lm, TEXT + "Generate", request))[0]["text"] == wanted
        closed = answers(grpcurl(lm, TEXT + "CloseDocument", {"handle": document["handle"]}))[0]
        assert closed["state_bytes"] > 0
        gone = grpcurl(lm, TEXT + "Generate", request)
        assert "NotFound" in gone.stderr and document["handle"][:8] in gone.stderr

    def test_a_lease_ends(self, lm):
        document = answers(grpcurl(lm, TEXT + "OpenDocument",
                                   {"model": "lm", "text": PROMPT, "lease_seconds": 1}))[0]
        time.sleep(3.5)
        late = grpcurl(lm, TEXT + "Generate", {"document": document["handle"], "text": "x"})
        assert "NotFound" in late.stderr

    @pytest.mark.parametrize("request_, word", [
        ({"temperature": "NaN"}, "temperature"),
        ({"stop": ["x"] * 200}, "stop"),
        ({"max_tokens": 1 << 30}, ""),
        ({"document": "no-such-handle"}, "no-such-handle"),
    ])
    def test_bad_requests(self, lm, request_, word):
        done = grpcurl(lm, TEXT + "Generate", {"model": "lm", "text": PROMPT, **request_})
        assert done.returncode != 0 and word in done.stderr
        assert "InvalidArgument" in done.stderr or "NotFound" in done.stderr

    def test_estimate_counts_what_is_to_be_generated(self, lm):
        def estimate(**request):
            status, body = lm.post_json("/v1/estimate", {"model": "lm", **request})
            assert status == 200, body
            return body
        short, long = estimate(num_tokens=100, max_tokens=10), estimate(num_tokens=100,
                                                                        max_tokens=5000)
        assert long["state_bytes"] > short["state_bytes"] > 0
        assert long["seconds"] > short["seconds"]
        several = estimate(text=PROMPT, max_tokens=10, n=4)
        assert several["usage"]["input_tokens"] == TOKENS
        assert several["state_bytes"] > estimate(text=PROMPT, max_tokens=10)["state_bytes"]


def test_command_line(lm, client, tmp_path):
    (tmp_path / "a.txt").write_text(PROMPT)
    (tmp_path / "b.txt").write_text("one, two,")

    def run(*arguments, **kwargs):
        return subprocess.run([CLIENT, "generate", f"--server={lm.grpc}", "--max_tokens=40",
                               *arguments], capture_output=True, timeout=60, **kwargs)
    wanted = complete(client).choices[0].text
    assert run(str(tmp_path / "a.txt")).stdout.decode() == wanted + "\n"
    assert run("-", input=PROMPT.encode()).stdout.decode() == wanted + "\n"
    lines = run("--json", "--n=2", "--temperature=0.9", "--seed=5",
                str(tmp_path)).stdout.decode().splitlines()
    first = json.loads(lines[0])
    assert len(lines) == 2 and first["input"].endswith("a.txt")
    assert [sample["index"] for sample in first["samples"]] == [0, 1]
    assert run("--temperature=-1", str(tmp_path / "a.txt")).returncode == 1
