"""The architecture of models/zoo/code-language."""
import transformers

import languages

WINDOW = 128      # two-sided, as in HuggingFace's config: 64 tokens each way
MAX_LENGTH = 4096 # tokens, special tokens included


def config(vocabulary):
    return transformers.LongformerConfig(
        architectures=["LongformerForSequenceClassification"],
        vocab_size=vocabulary, hidden_size=128, num_hidden_layers=4, num_attention_heads=2,
        intermediate_size=512, attention_window=[WINDOW] * 4, max_position_embeddings=MAX_LENGTH + 2,
        type_vocab_size=1, layer_norm_eps=1e-5, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, bos_token_id=0, pad_token_id=1, eos_token_id=2,
        sep_token_id=2, problem_type="single_label_classification",
        id2label=dict(enumerate(languages.LANGUAGES)),
        label2id={language: i for i, language in enumerate(languages.LANGUAGES)})


def build(vocabulary):
    return transformers.LongformerForSequenceClassification(config(vocabulary))
