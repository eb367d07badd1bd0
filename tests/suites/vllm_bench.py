"""Runs `vllm bench serve` as it stands in vLLM's sources, without the rest of vLLM.

  vllm_bench.py SOURCES [flags of `vllm bench serve`]    SOURCES: the folder that holds `vllm/`

vLLM itself needs torch, CUDA's libraries and its own binaries; the benchmark imports a few names of them that it uses
for pictures, audio and adapters only. Empty modules stand for those; what sends, receives and counts is vLLM's own.
"""

import importlib
import pathlib
import sys
import types

import transformers

# Modules that are not run, and the names that the benchmark takes out of them.
STAND_INS = {
    "vllm.inputs": ["MultiModalDataDict"],
    "vllm.lora.request": ["LoRARequest"],
    "vllm.lora.utils": ["get_adapter_absolute_path"],
    "vllm.multimodal.audio": ["get_audio_duration"],
    "vllm.multimodal.image": ["convert_image_mode"],
    "vllm.multimodal.utils": ["encode_image_url", "fetch_image"],
    "vllm.tokenizers": ["TokenizerLike", "get_tokenizer"],
    "vllm.transformers_utils.repo_utils": ["hf_api"],
    "vllm.utils.mistral": ["is_mistral_tokenizer"],
}
# Packages whose own first lines import torch; their other modules are found on disk.
FOLDERS = ["vllm", "vllm.utils", "vllm.lora", "vllm.multimodal", "vllm.transformers_utils"]


def stand_in(sources):
    for name in FOLDERS:
        module = types.ModuleType(name)
        module.__path__ = [str(sources / name.replace(".", "/"))]
        sys.modules[name] = module
    for name, members in STAND_INS.items():
        module = types.ModuleType(name)
        for member in members:
            setattr(module, member, type(member, (), {}))
        sys.modules[name] = module
    # vLLM's own wraps the same class.
    sys.modules["vllm.tokenizers"].get_tokenizer = lambda name, **_: transformers.AutoTokenizer.from_pretrained(name)


def main(sources, *flags):
    stand_in(pathlib.Path(sources))
    serve = importlib.import_module("vllm.benchmarks.serve")
    parser = importlib.import_module("vllm.utils.argparse_utils").FlexibleArgumentParser()
    serve.add_cli_args(parser)
    serve.main(parser.parse_args(flags))


if __name__ == "__main__":
    main(*sys.argv[1:])
