"""`longview quantize` on bundled models: what it says and writes, and what it keeps where one linear is bad."""

import json
import os
import shutil
import subprocess

import numpy
import pytest
from safetensors.numpy import load_file, save_file
from server_process import CLIENT, ROOT, SERVER, ZOO, Server

# Sources of several languages. Of short pieces the model is less sure, so that damage shows in its answers; of much
# shorter ones that of 16-bit linears does, too, which the others are where the processor multiplies them.
SOURCES = ("client/**/*.cc", "client/**/*.py", "tests/e2e/*.py", "tests/support/*.sh", "tests/**/CMakeLists.txt",
           "models/*.md", "tests/languages/**/*.go", "tests/languages/**/*.rs")
PIECES, LENGTH = 150, 1000
BAD = "longformer.encoder.layer.1.attention.output.dense"


def quantize(directory, *arguments, program=CLIENT):
    command = [program, "quantize", directory] if program == CLIENT else [program, f"--quantize={directory}"]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=240)


def copied(tmp_path):
    directory = tmp_path / "code-language"
    shutil.copytree(ZOO / "code-language", directory)
    return directory


def settings(directory):
    return json.loads((directory / "longview.json").read_text())


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    files = [path for pattern in SOURCES for path in sorted(ROOT.glob(pattern))]
    assert len(files) > PIECES
    path = tmp_path_factory.mktemp("texts") / "pieces.jsonl"
    path.write_text("".join(json.dumps({"text": files[i * len(files) // PIECES].read_text()[:LENGTH]}) + "\n"
                            for i in range(PIECES)))
    return path


def planted(tmp_path):
    """The model with one column of a linear 1,000 times as large, and what feeds it as much smaller: the same model,
    whose other weights of that linear are nothing in the column's steps of 8 bits."""
    directory = copied(tmp_path)
    weights = {name: tensor.astype(numpy.float32)
               for name, tensor in load_file(directory / "model.safetensors").items()}
    weight = weights[f"{BAD}.weight"]
    column = int(numpy.argmax(numpy.median(numpy.abs(weight), axis=0)))
    weight[:, column] *= 1000
    attention = BAD.removesuffix("output.dense") + "self."
    for part in ("value", "value_global"):
        weights[f"{attention}{part}.weight"][column] /= 1000
        weights[f"{attention}{part}.bias"][column] /= 1000
    save_file(weights, directory / "model.safetensors", {"format": "pt"})
    return directory


def test_what_is_found_is_said_written_and_served(tmp_path, pieces):
    directory = copied(tmp_path)
    (directory / "longview.json").write_text('{"truncate": true, "dtype": "fp32"}')
    done = quantize(directory, "--texts", pieces)
    assert done.returncode == 0, done.stderr
    assert "longformer, text-classification" in done.stdout
    for word in ("metric", "bound", "top-1 agreement", ">= 99.50 %", "weights", "seconds an input", "fp32", "int8"):
        assert word in done.stdout, done.stdout
    assert "fp32: " in done.stderr and "\r" not in done.stderr, "lines where there is no terminal"
    written = (directory / "longview.json").read_text()
    assert list(settings(directory)) == ["truncate", "dtype", "int8_keep"], "the order of the file stays"
    kept = settings(directory)["int8_keep"]
    assert settings(directory)["dtype"] == "int8" and kept == sorted(kept)
    assert quantize(directory, "--texts", pieces).returncode == 0
    assert (directory / "longview.json").read_text() == written, "the same inputs, the same file"
    with Server([directory]) as server:
        model = json.loads(server.get("/v1/models")[2])["data"][0]
        assert model["dtype"] == "int8", model
        assert "int8: " in server.log() and "nothing was compared" not in server.log()
        status, answer = server.post_json("/v1/classify", {"text": "def main():\n    return 1\n" * 9, "top_k": 1})
        assert status == 200 and answer["labels"][0]["name"] == "Python", answer


def test_a_bad_linear_is_found_and_kept(tmp_path, pieces):
    directory = planted(tmp_path)
    done = quantize(directory, "--texts", pieces)
    assert done.returncode == 0, done.stdout + done.stderr
    kept = settings(directory)["int8_keep"]
    assert BAD in kept and len(kept) <= 8, done.stdout
    assert "(fails)" in done.stdout and f"{len(kept)} of " in done.stdout
    noises = [line.split()[0] for line in done.stdout.splitlines() if " noise " in line]
    assert noises[0] == BAD and sorted(noises) == kept, "the worst comes first"


def test_a_dry_run_writes_nothing(tmp_path):
    directory = copied(tmp_path)
    before = (directory / "longview.json").read_bytes()
    lines = tmp_path / "texts.jsonl"
    lines.write_text("".join(json.dumps({"text": text}) + "\n"
                             for text in ("int main() { return 0; }", "def f(x): return x")))
    done = quantize(directory, "--texts", lines, "--dry_run")
    assert done.returncode == 0, done.stderr
    assert "not written" in done.stdout and '"dtype": "int8"' in done.stdout
    assert (directory / "longview.json").read_bytes() == before
    assert sorted(os.listdir(directory)) == sorted(os.listdir(ZOO / "code-language"))


@pytest.mark.parametrize("arguments, status, said", [
    (["--texts", "/no/such/file"], 1, "/no/such/file"),
    (["--texts", "{empty}"], 1, "no files"),
    (["--pictures", "{samples}"], 1, "reads texts: none were given"),
    ([], 2, "--texts"),
    (["--texts", "{samples}", "--device=cuda"], 2, "int8"),
])
def test_what_cannot_be_is_said(tmp_path, arguments, status, said):
    (tmp_path / "empty").mkdir()
    places = {"empty": tmp_path / "empty", "samples": ZOO / "samples"}
    program = SERVER if "--device=cuda" in arguments else CLIENT
    done = quantize(ZOO / "code-language", *(part.format(**places) for part in arguments), "--dry_run", program=program)
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stderr, done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_said_before_the_work(tmp_path, pieces):
    directory = copied(tmp_path)
    directory.chmod(0o555)
    done = quantize(directory, "--texts", pieces)
    directory.chmod(0o755)
    assert done.returncode == 1 and "longview.json cannot be written" in done.stderr
    assert "fp32: " not in done.stderr


def test_pictures_of_a_detector(tmp_path):
    """Scores at the threshold may move across it, so that nothing may do: the file follows the exit status."""
    directory = tmp_path / "page-layout"
    shutil.copytree(ZOO / "page-layout", directory)
    done = quantize(directory, "--pictures", ZOO / "samples")
    assert done.returncode in (0, 1), done.stderr
    assert "F1 of boxes" in done.stdout
    assert (settings(directory)["dtype"] == "int8") == (done.returncode == 0)


def test_bits_per_byte_of_a_language_model(tmp_path):
    directory = tmp_path / "code-lm"
    shutil.copytree(ZOO / "code-lm", directory)
    done = quantize(directory, "--texts", ROOT / "client/cpp")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "bits per byte, more by" in done.stdout and settings(directory)["dtype"] == "int8"
