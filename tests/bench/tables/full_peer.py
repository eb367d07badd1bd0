"""HuggingFace's BERT-base, fp32, on one text: a process of its own, which memory may end.

  full_peer.py ATTENTION TOKENS [LAYERS]       exit status 0: it answered

The weights of all 12 layers lie in memory and one layer runs, or LAYERS: what a pass takes beside the weights is given
back after each layer, so that the memory is that of the model and the time a twelfth.
"""

import sys

import torch
import transformers


def model(attention, tokens):
    config = transformers.BertConfig(num_labels=2, max_position_embeddings=tokens)
    with torch.device("meta"):
        made = transformers.BertForSequenceClassification._from_config(config, attn_implementation=attention)
    made.to_empty(device="cpu")
    for tensor in [*made.parameters(), *made.buffers()]:
        tensor.data.zero_()
    embeddings = made.bert.embeddings
    embeddings.position_ids = torch.arange(tokens)[None]
    return made.eval()


def main():
    attention, tokens = sys.argv[1], int(sys.argv[2])
    torch.set_grad_enabled(False)
    made = model(attention, tokens)
    layers = made.bert.encoder.layer  # Held on to, so that their weights stay in memory.
    made.bert.encoder.layer = layers[:int(sys.argv[3]) if len(sys.argv) > 3 else 1]
    made(input_ids=torch.ones(1, tokens, dtype=torch.int64))


if __name__ == "__main__":
    main()
