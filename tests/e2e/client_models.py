"""The models that clients of other languages call (tests/languages), live and as recorded bytes."""

from server_process import GOLDEN, ZOO, Server

MODELS = {"embedder": GOLDEN / "sentence_transformers/longformer_mean/model",
          "reranker": GOLDEN / "xlm_roberta/text_reranker/model",
          "code-language": ZOO / "code-language",
          "code-lm": ZOO / "code-lm"}


def client_models_server():
    return Server([",".join(f"{name}={path}" for name, path in MODELS.items())], "--dtype=fp32")
