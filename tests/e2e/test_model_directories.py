"""Model directories broken in every way: a clear error that names what is wrong; and loading
and unloading while others serve."""

import json
import pathlib
import shutil
import struct
import subprocess
import sys
import threading

import pytest

from goldens import served_models, tensors
from server_process import SERVER, ZOO, Server

sys.path.append(str(pathlib.Path(__file__).parents[1] / "models/convert"))
import torch_pickles  # noqa: E402

MODEL = served_models("longformer")["classification"]
IDS = {"inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [1, 4],
                   "data": [5, 6, 7, 8]}]}


def edit_config(**changes):
    def edit(directory):
        path = directory / "config.json"
        config = {**json.loads(path.read_text()), **changes}
        path.write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
    return edit


def edit_header(change):
    """Rewrites the JSON header of model.safetensors."""
    def edit(directory):
        path = directory / "model.safetensors"
        data = path.read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + size])
        change(header)
        packed = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(packed)) + packed + data[8 + size:])
    return edit


def rename(old, new):
    return edit_header(lambda header: header.update({new: header.pop(old)}))


def reshape(header):
    name = "classifier.out_proj.bias"
    header[name]["shape"] = [1, *header[name]["shape"]]


def overlap(header):
    header["classifier.dense.bias"]["data_offsets"] = \
        header["classifier.out_proj.bias"]["data_offsets"]


def write(name, data):
    return lambda directory: (directory / name).write_bytes(data)


def truncate(directory):
    path = directory / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def only_pickle(directory):
    (directory / "model.safetensors").rename(directory / "pytorch_model.bin")


BROKEN = {
    "config not JSON": (write("config.json", b"{"), ["config.json"]),
    "config empty": (write("config.json", b""), ["config.json"]),
    "unknown architecture": (edit_config(architectures=["GPT2LMHeadModel"], model_type="gpt2"),
                             ["GPT2LMHeadModel", "--task"]),
    "no architecture": (edit_config(architectures=[], model_type="gpt2"),
                        ["architectures", "gpt2", "longformer"]),
    "odd window": (edit_config(attention_window=[8, 7, 4]), ["attention_window", "7"]),
    "windows of another depth": (edit_config(attention_window=[8]), ["attention_window"]),
    "unknown activation": (edit_config(hidden_act="mish"), ["hidden_act", "mish"]),
    "heads do not divide": (edit_config(num_attention_heads=5), ["num_attention_heads", "5"]),
    "string for a number": (edit_config(hidden_size="x"), ["hidden_size"]),
    "unknown longview key": (write("longview.json", b'{"dtpye": "bf16"}'),
                             ["longview.json", "dtpye"]),
    "weights missing": (lambda d: (d / "model.safetensors").unlink(), ["model.safetensors"]),
    "weights empty": (write("model.safetensors", b""), ["model.safetensors"]),
    "weights a git-lfs pointer": (write("model.safetensors",
                                        b"version https://git-lfs.github.com/spec/v1\n"),
                                  ["model.safetensors"]),
    "weights truncated": (truncate, ["model.safetensors"]),
    "header too long": (write("model.safetensors", struct.pack("<Q", 1 << 60)), ["header"]),
    "tensor missing": (rename("classifier.dense.weight", "classifier.dense.wait"),
                       ["classifier.dense.weight"]),
    "tensor misshapen": (edit_header(reshape), ["classifier.out_proj.bias"]),
    "tensors overlap": (edit_header(overlap), ["classifier"]),
    "pickle only": (only_pickle, ["models/convert/"]),
    "tokenizer broken": (write("tokenizer.json", b"{\"model\": 7}"), ["tokenizer.json"]),
}


def test_pickled_weights_answer_as_their_twin(tmp_path):
    """A directory with nothing but pytorch_model.bin, in both of torch.save's formats."""
    with Server([f"twin={MODEL}"], "--dtype=fp32") as server:
        want = server.post_json("/v2/models/twin/infer", IDS)[1]["outputs"]
    for container in ("zip", "legacy"):
        directory = tmp_path / container
        shutil.copytree(MODEL, directory)
        weights = {name: ("F32", value.shape, value.astype("<f4").tobytes())
                   for name, value in tensors(directory / "model.safetensors").items()}
        (directory / "model.safetensors").unlink()
        entries, storages, counts = torch_pickles.state_dict(weights, container == "legacy")
        torch_pickles.save(directory / "pytorch_model.bin", torch_pickles.dictionary(entries),
                           storages, counts, container)
        with Server([f"twin={directory}"], "--dtype=fp32") as server:
            assert server.post_json("/v2/models/twin/infer", IDS)[1]["outputs"] == want


@pytest.mark.parametrize("break_it,fragments", BROKEN.values(), ids=BROKEN.keys())
def test_broken_directory(tmp_path, break_it, fragments):
    directory = tmp_path / "broken"
    shutil.copytree(MODEL, directory)
    break_it(directory)
    done = subprocess.run([SERVER, "--grpc_port=0", "--http_port=0", directory],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    for fragment in fragments:
        assert fragment in last
    # Its path once, and once more in a command to copy.
    assert last.count(str(directory)) == 1 + last.count("models/convert/"), last
    checked = subprocess.run([SERVER, "--check", directory], capture_output=True, text=True,
                             timeout=60)
    assert checked.returncode != 0


@pytest.fixture
def repository(tmp_path):
    """A folder with two good models, one with a version folder, and a folder that is none."""
    shutil.copytree(MODEL, tmp_path / "first")
    shutil.copytree(MODEL, tmp_path / "second" / "3")
    (tmp_path / "notes").mkdir()
    return tmp_path


def test_versions_and_folders(repository):
    with Server([repository]) as server:
        status, answer = server.post_json("/v2/models/second/infer", IDS)
        assert status == 200 and answer["model_version"] == "3"
        assert server.post_json("/v2/models/second/versions/3/infer", IDS)[0] == 200
        assert server.post_json("/v2/models/second/versions/2/infer", IDS)[0] == 404
        assert json.loads(server.get("/v2/models/first")[2])["versions"] == ["1"]


def test_load_and_unload_do_not_disturb_others(repository):
    with Server([repository]) as server:
        stop, failures = threading.Event(), []
        wanted = server.post_json("/v2/models/first/infer", IDS)[1]["outputs"]

        def traffic():
            while not stop.is_set():
                status, answer = server.post_json("/v2/models/first/infer", IDS)
                if status != 200 or answer["outputs"] != wanted:
                    failures.append(answer)

        workers = [threading.Thread(target=traffic) for _ in range(3)]
        for worker in workers:
            worker.start()
        for _ in range(5):
            assert server.post("/v2/repository/models/second/unload")[0] == 200
            assert server.post_json("/v2/models/second/infer", IDS)[0] == 404
            assert server.get("/readyz")[0] == 200
            assert server.post("/v2/repository/models/second/load")[0] == 200
            assert server.post_json("/v2/models/second/infer", IDS)[0] == 200
        stop.set()
        for worker in workers:
            worker.join()
        assert not failures, failures[:1]


def test_a_broken_new_model_is_refused_while_serving(repository):
    with Server([repository]) as server:
        shutil.copytree(MODEL, repository / "third")
        truncate(repository / "third")
        status, _, answer = server.post("/v2/repository/models/third/load")
        assert status >= 400 and b"model.safetensors" in answer
        index = json.loads(server.post("/v2/repository/index")[2])
        states = {model["name"]: model["state"] for model in index}
        assert states["third"] == "UNAVAILABLE" and states["first"] == "READY"
        assert server.post_json("/v2/models/first/infer", IDS)[0] == 200


def test_a_broken_model_of_a_folder_is_left_out(repository):
    shutil.copytree(MODEL, repository / "third")
    truncate(repository / "third")
    with Server([repository]) as server:
        assert server.get("/readyz")[0] == 200
        assert server.post_json("/v2/models/first/infer", IDS)[0] == 200
        index = {model["name"]: model for model in json.loads(server.post("/v2/repository/index")[2])}
        assert index["first"]["state"] == "READY"
        assert index["third"]["state"] == "UNAVAILABLE"
        assert "model.safetensors" in index["third"]["reason"]
        status, answer = server.post_json("/v2/models/third/infer", IDS)
        assert status == 404 and "model.safetensors" in answer["error"]
        log = [json.loads(line) for line in server.log().splitlines()]
        said, = [line for line in log if "--strict" in line["msg"]]
        assert said["models"] == "third"
        shutil.rmtree(repository / "third")
        shutil.copytree(MODEL, repository / "third")
        assert server.post("/v2/repository/models/third/load")[0] == 200
        assert server.post_json("/v2/models/third/infer", IDS)[0] == 200


@pytest.mark.parametrize("flags, paths", [
    (["--strict"], ["."]),            # All of a folder.
    ([], ["first", "third"]),         # Those that are named.
    ([], ["x=third", "second"]),
])
def test_a_broken_model_stops_the_start(repository, flags, paths):
    shutil.copytree(MODEL, repository / "third")
    truncate(repository / "third")
    done = subprocess.run([SERVER, "--grpc_port=0", "--http_port=0", *flags, *paths], cwd=repository,
                          capture_output=True, text=True, timeout=60)
    said, = [line for line in done.stderr.splitlines() if line.startswith("longview-server: ")]
    assert done.returncode == 1 and "model.safetensors" in said
    assert said.count("third") == (2 if "x=third" not in paths else 1), "its name and its path, once"


def test_folders_that_hold_no_model_are_passed_by(repository):
    (repository / "notes/page.jpg").write_bytes(b"no model")
    (repository / "lost").mkdir()
    shutil.copy(MODEL / "model.safetensors", repository / "lost")
    with Server([repository]) as server:
        log = server.log()
        assert "notes" not in log
        skipped = [json.loads(line) for line in log.splitlines() if "skipped" in line]
        assert [(pathlib.Path(line["directory"]).name, line["reason"]) for line in skipped] == \
            [("lost", "no config.json")]


def test_the_bundled_models_start_without_a_warning():
    with Server([ZOO], env={"LONGVIEW_SERVER": "localhost:1", "LONGVIEW_API_KEY": "k",
                            "LONGVIEW_PREFIX": "/nowhere"}) as server:
        lines = [json.loads(line) for line in server.log().splitlines()]
        assert [line for line in lines if line["level"] not in ("info", "INFO")] == []
        assert "samples" not in server.log()


def test_model_control_can_be_forbidden(repository):
    with Server([repository], "--allow_model_control=false") as server:
        assert server.post("/v2/repository/models/first/unload")[0] == 403
        assert server.post_json("/v2/models/first/infer", IDS)[0] == 200
