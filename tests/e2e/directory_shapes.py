"""Shapes in which model directories lie on people's disks: tiny copies of BGE's, of those that old
and new sentence-transformers write, of exports with further files beside."""

import json
import shutil

import numpy as np
from safetensors.numpy import load_file, save_file

from plain_bert import WIDTH, Bert

OLD, NEW = "sentence_transformers.models.", "sentence_transformers.sentence_transformer.modules."
BASE = Bert("BertModel", {"pooler.dense.weight": (WIDTH, WIDTH), "pooler.dense.bias": (WIDTH,)},
            prefix="", seed=21)


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def edit(path, **changes):
    content = json.loads(path.read_text()) if path.exists() else {}
    content.update(changes)
    write(path, {key: value for key, value in content.items() if value is not ...})


def sentence(folder, pooling="mean", transformer="", types=OLD):
    """modules.json, as the library's releases before 6 write it."""
    name = {OLD: "{}", NEW: "transformer.{}"}[types]
    modules = [(transformer, types + name.format("Transformer")),
               ("1_Pooling", types + name.format("Pooling").replace("transformer.", "pooling.")),
               ("2_Normalize", types + name.format("Normalize").replace("transformer.",
                                                                        "normalize."))]
    write(folder / "modules.json", [{"idx": i, "name": str(i), "path": path, "type": kind}
                                    for i, (path, kind) in enumerate(modules)])
    write(folder / "1_Pooling/config.json",
          {"word_embedding_dimension": WIDTH, "pooling_mode_cls_token": pooling == "cls",
           "pooling_mode_mean_tokens": pooling == "mean"})


def limits(folder, name="bert", **content):
    write(folder / f"sentence_{name}_config.json", content)


def bge(folder):
    sentence(folder, "cls")
    limits(folder, max_seq_length=32, do_lower_case=True)


def lowered_for_a_cased_tokenizer(folder):
    bge(folder)
    edit(folder / "tokenizer_config.json", do_lower_case=False)


def newer_types(folder):
    sentence(folder, types=NEW)
    write(folder / "1_Pooling/config.json", {"embedding_dimension": WIDTH, "pooling_mode": "mean"})


def moved(folder, name):
    files = list(folder.iterdir())
    (folder / name).mkdir()
    for file in files:
        file.rename(folder / name / file.name)


def in_its_own_folder(folder):
    moved(folder, "0_Transformer")
    sentence(folder, transformer="0_Transformer")
    limits(folder / "0_Transformer", max_seq_length=32)
    write(folder / "config.json", {"__version__": "0.3.0"})


def in_a_folder_without_config_beside(folder):
    moved(folder, "encoder")
    sentence(folder, transformer="encoder/", pooling="cls")


def package(folder):
    sentence(folder)
    moved(folder, "model")
    write(folder / "__init__.py", "")


def masked_lm_without_head(folder):
    sentence(folder)
    edit(folder / "config.json", architectures=["BertForMaskedLM"])


def unserved_class(folder):
    edit(folder / "config.json", architectures=["BertForNextSentencePrediction"])


def no_class(folder):
    edit(folder / "config.json", architectures=...)


def newer_keys(folder):
    edit(folder / "config.json", dtype="float32", transformers_version="5.2.0",
         classifier_dropout=None, use_cache=True, is_decoder=False, add_cross_attention=False,
         rope_parameters=None, bos_token_id=None, eos_token_id=None, tie_word_embeddings=True)


def older_keys(folder):
    edit(folder / "config.json", torch_dtype="float32", transformers_version="4.0.0",
         gradient_checkpointing=False, position_embedding_type="absolute", pruned_heads={},
         torchscript=False, finetuning_task=None, output_past=True,
         _name_or_path="somebody/something", directionality="bidi", pooler_fc_size=768)


def optimum(folder):
    write(folder / "onnx/model.onnx", "no weights of ours")
    write(folder / "onnx/config.json", {"architectures": ["BertModel"]})
    write(folder / "openvino/openvino_model.xml", "<net/>")
    write(folder / "ort_config.json", {"opset": 14})


def other_weights(folder):
    for name in ("pytorch_model.bin", "tf_model.h5", "flax_model.msgpack", "rust_model.ot",
                 "training_args.bin", "optimizer.pt"):
        write(folder / name, "of others")


def noise(folder):
    for name in ("README.md", ".gitattributes", ".git/config", "eval/similarity_results.csv",
                 "data_config.json", "train_script.py", "tokenizer.model.note"):
        write(folder / name, "{}")


def shards(folder):
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    parts = {f"model-0000{i + 1}-of-00002.safetensors": names[i::2] for i in range(2)}
    for file, part in parts.items():
        save_file({name: tensors[name] for name in part}, folder / file, {"format": "pt"})
    write(folder / "model.safetensors.index.json",
          {"metadata": {}, "weight_map": {name: file for file, part in parts.items()
                                          for name in part}})


def renamed(folder, rename):
    tensors = load_file(folder / "model.safetensors")
    save_file({rename(name): tensor for name, tensor in tensors.items()},
              folder / "model.safetensors", {"format": "pt"})


def prefixed(folder):
    renamed(folder, lambda name: "bert." + name)


def gamma_and_beta(folder):
    renamed(folder, lambda name: name.replace("LayerNorm.weight", "LayerNorm.gamma")
            .replace("LayerNorm.bias", "LayerNorm.beta"))


def stored_position_ids(folder):
    tensors = load_file(folder / "model.safetensors")
    tensors["embeddings.position_ids"] = np.arange(40)[None]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def limit_above_the_tokenizers(folder):
    sentence(folder)
    limits(folder, "xlm-roberta", max_seq_length=512)
    edit(folder / "tokenizer_config.json", model_max_length=4)


def no_limit(folder):
    edit(folder / "tokenizer_config.json", model_max_length=1000000000000000019884624838656)


def plain(folder):
    del folder


# Each with its pooling and whether vectors are normalised.
SERVED = {plain: ("mean", False), bge: ("cls", True), lowered_for_a_cased_tokenizer: ("cls", True),
          newer_types: ("mean", True), in_its_own_folder: ("mean", True),
          in_a_folder_without_config_beside: ("cls", True), package: ("mean", True),
          masked_lm_without_head: ("mean", True), unserved_class: ("mean", False),
          no_class: ("mean", False), newer_keys: ("mean", False), older_keys: ("mean", False),
          optimum: ("mean", False), other_weights: ("mean", False), noise: ("mean", False),
          shards: ("mean", False), prefixed: ("mean", False), gamma_and_beta: ("mean", False),
          stored_position_ids: ("mean", False), limit_above_the_tokenizers: ("mean", True),
          no_limit: ("mean", False)}


def only_pickles(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def only_onnx(folder):
    optimum(folder)
    (folder / "model.safetensors").unlink()


def unknown_type(folder):
    edit(folder / "config.json", architectures=["NewModel"], model_type="new")


def masked_lm_alone(folder):
    edit(folder / "config.json", architectures=["BertForMaskedLM"])


def unknown_module(folder):
    sentence(folder)
    edit(folder / "config.json")
    modules = json.loads((folder / "modules.json").read_text())
    modules[2]["type"] = OLD + "LSTM"
    write(folder / "modules.json", modules)


def two_models_in_folders(folder):
    moved(folder, "english")
    shutil.copytree(folder / "english", folder / "german")


# The sentence of each refusal.
REFUSED = {only_pickles: "pickle_to_safetensors.py", only_onnx: "no weights",
           unknown_type: "--task", masked_lm_alone: "--task embedding", unknown_module: "LSTM",
           two_models_in_folders: "name one of its folders"}


def make(shape, folder):
    BASE.save(folder)
    shape(folder)
    return folder
