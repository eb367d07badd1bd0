"""Trains the byte-level BPE on the training documents and writes HuggingFace tokenizer files.

    python train_tokenizer.py --work DIR

Writes DIR/model/tokenizer.json and tokenizer_config.json, and the documents as token ids:
DIR/train.npz and DIR/test.npz (ids, offsets, labels; no special tokens).
"""
import argparse
import collections
import json
import pathlib
import random

import numpy
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

import languages

VOCABULARY = 8192
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]  # ids 0 to 3, RoBERTa's order; <mask> is the last id
SAMPLE_DOCUMENTS = 250      # per language
SAMPLE_CHARACTERS = 12_000  # of each
DOCUMENT_CHARACTERS = 32_000  # Longer documents are cut here: it is more than 4,096 tokens.
MAX_LENGTH = 4096


def documents(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def sample(path, rng):
    """The same number of documents of every language, a window of each."""
    by_language = collections.defaultdict(list)
    for document in documents(path):
        by_language[document["language"]].append(document["text"])
    for language in languages.LANGUAGES:
        texts = by_language[language]
        for text in rng.sample(texts, min(SAMPLE_DOCUMENTS, len(texts))):
            start = rng.randrange(max(1, len(text) - SAMPLE_CHARACTERS))
            yield text[start:start + SAMPLE_CHARACTERS]


def train(path):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - 1, special_tokens=SPECIAL, min_frequency=2, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(sample(path, random.Random(1)), trainer)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False, special=True)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0),
                                                            trim_offsets=True, add_prefix_space=False)
    return tokenizer


def save(tokenizer, folder):
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=MAX_LENGTH, bos_token="<s>", eos_token="</s>",
        unk_token="<unk>", sep_token="</s>", pad_token="<pad>", cls_token="<s>",
        mask_token=AddedToken("<mask>", lstrip=True, normalized=False, special=True),
        clean_up_tokenization_spaces=False).save_pretrained(folder)
    # The name under which transformers 4 and 5 both read tokenizer.json and nothing else.
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    settings.pop("backend", None)
    path.write_text(json.dumps(settings, indent=2) + "\n")


def encode(tokenizer, source, target):
    ids, offsets, labels = [], [0], []
    index = {language: i for i, language in enumerate(languages.LANGUAGES)}
    for document in documents(source):
        encoded = tokenizer.encode(document["text"][:DOCUMENT_CHARACTERS], add_special_tokens=False)
        ids.append(numpy.array(encoded.ids, dtype=numpy.uint16))
        offsets.append(offsets[-1] + len(encoded.ids))
        labels.append(index[document["language"]])
    numpy.savez(target, ids=numpy.concatenate(ids), offsets=numpy.array(offsets), labels=numpy.array(labels))
    print(f"{target}: {len(labels)} documents, {offsets[-1]} tokens")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    work = parser.parse_args().work
    tokenizer = train(work / "train.jsonl")
    (work / "model").mkdir(exist_ok=True)
    save(tokenizer, work / "model")
    for split in ("train", "test"):
        encode(tokenizer, work / f"{split}.jsonl", work / f"{split}.npz")


if __name__ == "__main__":
    main()
