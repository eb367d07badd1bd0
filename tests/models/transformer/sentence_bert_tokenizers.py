"""Small tokenizers of two kinds, trained on a few sentences, saved as published models save theirs."""

import io
import json
import pathlib
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import (Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

CORPUS = """The licenses for most software are designed to take away your freedom to share it.
Paris est la capitale de la France; l'été, la ville se vide, et naïve est la foule qui reste.
Die Größe der Würfel ändert sich nicht, während das Licht über die Straße fällt.
中文 文本 与 日本語 の テキスト は 単語 の 間 に 空白 が ない。
Съешь же ещё этих мягких французских булок, да выпей чаю; кириллица.
Ελληνικά και עברית εμφανίζονται μαζί. What is the longest of all texts, and where is it cut?
A model reads a query or a passage: documents are long, questions are short, answers are free."""
TOKENS = 240
# A few of NFKC's rules, as SentencePiece compiles them: full width, a ligature, an ideographic space.
RULES = {**{chr(0xFEE0 + code): chr(code) for code in range(0x21, 0x7F)}, "\ufb01": "fi", "\u3000": " "}


def charsmap():
    """The compiled normalizer of XLM-R's kind, with RULES alone."""
    with tempfile.TemporaryDirectory() as folder:
        rules = pathlib.Path(folder) / "rules.tsv"
        rules.write_text("".join(f"{ord(char):X}\t{' '.join(f'{ord(c):X}' for c in given)}\n"
                                 for char, given in RULES.items()))
        written = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(CORPUS.split("\n")), model_writer=written, vocab_size=TOKENS,
            hard_vocab_limit=False, normalization_rule_tsv=str(rules), minloglevel=2)
    return sentencepiece_model_pb2.ModelProto.FromString(
        written.getvalue()).normalizer_spec.precompiled_charsmap


def saved(tokenizer, folder, saved_limit, settings, **padding):
    """Writes tokenizer.json, with truncation and padding as a training run left them if there is a
    limit, and returns how many tokens it has."""
    if saved_limit:
        tokenizer.enable_truncation(saved_limit)
        tokenizer.enable_padding(length=saved_limit, **padding)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1))
    return tokenizer.get_vocab_size()


def unigram(folder, saved_limit=None):
    """XLM-R's kind: <s> 0, <pad> 1, </s> 2, <unk> 3, <mask> last."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Precompiled(charsmap())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(),
                                                       pre_tokenizers.Metaspace()])
    tokenizer.decoder = decoders.Metaspace()
    names = ["<s>", "<pad>", "</s>", "<unk>"]
    tokenizer.train_from_iterator(CORPUS.split("\n"), trainers.UnigramTrainer(
        vocab_size=TOKENS - 1, special_tokens=names, unk_token="<unk>", show_progress=False))
    tokenizer.add_special_tokens(["<mask>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)])
    return saved(
        tokenizer, folder, saved_limit,
        {"tokenizer_class": "XLMRobertaTokenizer", "bos_token": "<s>", "cls_token": "<s>",
         "eos_token": "</s>", "sep_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>",
         "mask_token": "<mask>", "model_max_length": 512}, pad_id=1, pad_token="<pad>")


def wordpiece(folder, saved_limit=None):
    """BERT's kind, uncased: [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4."""
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(CORPUS.split("\n"), trainers.WordPieceTrainer(
        vocab_size=TOKENS, special_tokens=names, show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokens = sorted(tokenizer.get_vocab().items(), key=lambda entry: entry[1])
    (folder / "vocab.txt").write_text("".join(token + "\n" for token, _ in tokens))
    return saved(
        tokenizer, folder, saved_limit,
        {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "strip_accents": None,
         "tokenize_chinese_chars": True, "unk_token": "[UNK]", "sep_token": "[SEP]",
         "pad_token": "[PAD]", "cls_token": "[CLS]", "mask_token": "[MASK]",
         "model_max_length": 512}, pad_id=0, pad_token="[PAD]")
