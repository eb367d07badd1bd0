"""A model directory in PyTorch without a graph, behind model_pipe's protocol.

  eager_pipe.py DIRECTORY ATTENTION THREADS      ATTENTION: eager or sdpa

Answers seconds, logits and peak_bytes, the peak of resident memory above what the loaded model takes; documents of
a batch are of one length.
"""

import json
import pathlib
import re
import sys
import time

import torch
import transformers


def resident(field):
    text = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+) kB", text)[1]) * 1024


def main():
    directory, attention, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.set_grad_enabled(False)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    model = transformers.AutoModelForSequenceClassification.from_pretrained(directory, attn_implementation=attention)
    model = model.float().eval()
    loaded = resident("VmRSS")
    print(json.dumps({"ready": torch.__version__}), flush=True)
    for line in sys.stdin:
        ids = torch.tensor(json.loads(line)["documents"])
        pathlib.Path("/proc/self/clear_refs").write_text("5")
        start = time.perf_counter()
        logits = model(ids).logits
        seconds = time.perf_counter() - start
        print(json.dumps({"seconds": seconds, "logits": logits.tolist(), "peak_bytes": resident("VmHWM") - loaded}),
              flush=True)


if __name__ == "__main__":
    main()
