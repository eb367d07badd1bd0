"""The programs that call a server with stock clients of other languages, and the clients' versions.

tests/support/install_languages.sh builds them under .deps/languages.
"""

import json
import os
import pathlib
import re
import subprocess

import pytest

from server_process import ROOT

SOURCES = pathlib.Path(__file__).parent
BUILT = pathlib.Path(os.environ.get("DEPS_DIR", ROOT / ".deps")) / "languages"
INPUTS = json.loads((SOURCES / "inputs.json").read_text())

# Modules of one project have one version.
JAVA_MODULES = re.compile("-(cohere|jina)$")
# language-name -> package, what is called; the program of the language knows the client by its name.
CLIENTS = {
    "javascript-openai": ("openai", "embeddings, also shortened; completions, streamed; models"),
    "javascript-huggingface": ("@huggingface/inference", "features, similarity, classification, zero-shot"),
    "javascript-cohere": ("cohere-ai", "rerank, v1 and v2; embed"),
    "javascript-langchain": ("@langchain/openai", "`OpenAIEmbeddings`, also shortened; `OpenAI`, streamed"),
    "javascript-vercel": ("@ai-sdk/openai-compatible", "`embedMany` and `generateText` of `ai`"),
    "go-openai": ("github.com/openai/openai-go/v3", "embeddings, also shortened; completions, streamed; models"),
    "go-sashabaranov": ("github.com/sashabaranov/go-openai",
                        "embeddings, also shortened; completions, streamed; models"),
    "go-cohere": ("github.com/cohere-ai/cohere-go/v2", "rerank, v1 and v2; embed"),
    "go-grpc": ("google.golang.org/grpc", "typed calls with stubs of proto/, a stream"),
    "rust-async-openai": ("async-openai", "embeddings, also shortened; completions, streamed; models"),
    "java-openai": ("openai-java", "embeddings, also shortened; completions, streamed; models"),
    "java-cohere": ("langchain4j-cohere", "`CohereScoringModel`, `CohereEmbeddingModel`"),
    "java-jina": ("langchain4j-jina", "`JinaScoringModel`, `JinaEmbeddingModel`"),
    "java-grpc": ("grpc-java", "typed calls with stubs of proto/, a stream"),
}


def split(client):
    """(language, the name that the program knows)"""
    language, _, name = client.partition("-")
    return language, name


def is_grpc(client):
    return client.endswith("-grpc")


def require(language):
    """The folder of a language's program; skips the test where its toolchain or registry cannot be had."""
    folder = BUILT / language
    if not folder.exists():
        pytest.skip("tests/support/install_languages.sh did not run")
    if (folder / "missing").exists():
        pytest.skip(f"{language} cannot be had: {(folder / 'missing').read_text().strip()}")
    assert not (folder / "broken").exists(), (folder / "broken").read_text()
    return folder


def class_path(folder):
    return f"{folder / 'target/classes'}:{(folder / 'target/classpath').read_text()}"


def command(language, folder):
    return {"javascript": lambda: ["node", folder / "clients.mjs"],
            "go": lambda: [folder / "clients"],
            "rust": lambda: [folder / "target/debug/longview-test-clients"],
            "java": lambda: ["java", "-cp", class_path(folder), "clients.Main"]}[language]()


def run(client, address, case=None):
    """case -> answer of every case, or of one; without the user's settings of clients and proxies."""
    language, name = split(client)
    arguments = [*command(language, require(language)), name, address, *([case] if case else [])]
    kept = {key: value for key, value in os.environ.items()
            if not key.lower().endswith("_proxy") and not key.startswith(("OPENAI_", "CO_", "HF_"))}
    done = subprocess.run(arguments, input=json.dumps(INPUTS), capture_output=True, text=True, timeout=240, env=kept)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def version(client):
    """The version that the language's file of dependencies pins."""
    language, _ = split(client)
    package = re.escape(CLIENTS[client][0])
    file, pattern = {
        "javascript": ("javascript/package.json", rf'"{package}": "([^"]+)"'),
        "go": ("go/go.mod", rf"\t{package} v(\S+)"),
        "rust": ("rust/Cargo.toml", rf'{package} = \{{ version = "=([^"]+)"'),
        "java": ("java/pom.xml", rf"<{JAVA_MODULES.sub('', CLIENTS[client][0])}\.version>([^<]+)<"),
    }[language]
    return re.search(pattern, (SOURCES / file).read_text())[1]
