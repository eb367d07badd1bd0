"""Text encoders of published shapes with random weights, and the peers that run them: nothing is downloaded."""

import copy
import pathlib

import numpy as np
import torch
import transformers

# Name: transformers' class, its configuration, and its fastest attention on a CPU.
SHAPES = {
    "longformer-base": ("Longformer", {
        "vocab_size": 50265, "max_position_embeddings": 4098, "type_vocab_size": 1, "layer_norm_eps": 1e-5,
        "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "sep_token_id": 2, "attention_window": 512,
        "initializer_range": 0.04}, "eager"),
    "modernbert-base": ("ModernBert", {}, "sdpa"),
    "bge-base": ("Bert", {}, "sdpa"),  # BERT-base.
    "bge-m3": ("XLMRoberta", {
        "vocab_size": 250002, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
        "intermediate_size": 4096, "max_position_embeddings": 8194, "type_vocab_size": 1,
        "layer_norm_eps": 1e-5}, "sdpa"),
}
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def build(shape="longformer-base", layers=None):
    """A classifier of two labels in fp32; `layers` shortens the stack."""
    name, settings, attention = SHAPES[shape]
    config = getattr(transformers, f"{name}Config")(num_labels=2, **settings)
    if layers:
        config.num_hidden_layers = layers
        if getattr(config, "layer_types", None):
            config.layer_types = config.layer_types[:layers]
        if isinstance(getattr(config, "attention_window", None), list):
            config.attention_window = config.attention_window[:layers]
    torch.manual_seed(1)
    return getattr(transformers, f"{name}ForSequenceClassification")._from_config(
        config, attn_implementation=attention).float().eval()


def documents(lengths, vocabulary):
    """Random token ids, the same in each run."""
    generator = torch.Generator().manual_seed(7)
    return [[0] + torch.randint(5, vocabulary, (n - 1,), generator=generator).tolist() for n in lengths]


def padded(given, pad=1, marks_global=True):
    """ids, mask and, where asked for, the first token as the only global one, of a batch as HuggingFace wants it."""
    n = max(map(len, given))
    ids = torch.full((len(given), n), pad)
    mask = torch.zeros_like(ids)
    for row, document in enumerate(given):
        ids[row, :len(document)] = torch.tensor(document)
        mask[row, :len(document)] = 1
    if not marks_global:
        return ids, mask
    first = torch.zeros_like(ids)
    first[:, 0] = 1
    return ids, mask, first


class Logits(torch.nn.Module):
    """A model whose inputs and output are plain tensors."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, mask, global_mask=None):
        marks = {} if global_mask is None else {"global_attention_mask": global_mask}
        return self.model(input_ids=ids, attention_mask=mask, return_dict=False, **marks)[0]


class Peers:
    """Functions of a batch that return its logits in fp32, [documents, labels]."""

    def __init__(self, model, threads):
        self.models, self.threads = {"fp32": model}, threads
        self.windows = getattr(model.config, "attention_window", None) is not None

    def of(self, dtype):
        if dtype not in self.models:
            self.models[dtype] = copy.deepcopy(self.models["fp32"]).to(DTYPES[dtype])
        return Logits(self.models[dtype])

    def batch(self, given):
        return padded(given, self.models["fp32"].config.pad_token_id, self.windows)

    def truth(self, given):
        """Each document alone, in fp32."""
        return torch.cat([self.of("fp32")(*self.batch([document])) for document in given])

    def function(self, name, given):
        """name: KIND:DTYPE with hf, hf-compiled, hf-one-by-one or openvino."""
        kind, dtype = name.split(":")
        batch = self.batch(given)
        if kind == "openvino":
            return self.openvino(batch, dtype)
        model = self.of(dtype)
        if kind == "hf-compiled":
            torch._dynamo.config.recompile_limit = 64  # With the default of 8 the last layers run eagerly.
            torch._inductor.config.freezing = True
            model = torch.compile(model, dynamic=False)
        elif kind == "hf-one-by-one":
            each = [self.batch([document]) for document in given]
            return lambda: torch.cat([model(*x) for x in each]).float()
        elif kind != "hf":
            raise SystemExit(f"unknown peer {name}")
        return lambda: model(*batch).float()

    @staticmethod
    def beside_int8():
        """The type of what is not int8: bf16 where the CPU multiplies it."""
        flags = pathlib.Path("/proc/cpuinfo").read_text()
        return "bf16" if "avx512_bf16" in flags or "amx_bf16" in flags else "f32"

    @staticmethod
    def quantized(converted, batch):
        """NNCF's post-training quantization of a transformer, calibrated on this very batch."""
        import nncf
        dataset = nncf.Dataset([tuple(x.numpy() for x in batch)] * 4)
        return nncf.quantize(converted, dataset, model_type=nncf.ModelType.TRANSFORMER, subset_size=4)

    def openvino(self, batch, dtype):
        """Compiled for the very shape; Longformer's is padded to its window, as the converter needs it."""
        import openvino
        if self.windows:
            pad = -batch[0].shape[1] % 512
            batch = [torch.nn.functional.pad(x, (0, pad), value=int(i == 0)) for i, x in enumerate(batch)]
        converted = openvino.convert_model(self.of("fp32"), example_input=tuple(batch),
                                           input=[tuple(x.shape) for x in batch])
        if dtype == "int8":
            converted = self.quantized(converted, batch)
        request = openvino.Core().compile_model(converted, "CPU", {
            "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": self.threads,
            "INFERENCE_PRECISION_HINT": {"fp32": "f32", "bf16": "bf16", "int8": self.beside_int8()}[dtype],
        }).create_infer_request()
        arrays = [x.numpy() for x in batch]
        return lambda: torch.from_numpy(np.array(request.infer(arrays)[0]))
