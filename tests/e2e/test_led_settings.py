"""LED with random weights and configurations beside HuggingFace: states, logits, and generate with
settings drawn anew in every run (slow; needs torch and transformers 5). LONGVIEW_SEED repeats a
run."""


import numpy
import pytest

from drawn_models import SEED, assert_same, infer, seeded, serve

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.slow

MODELS = 12
SETTINGS = 8  # Of each model.


def draw_model(rng):
    """A model and what its directory says about generation, or nothing."""
    encoder_heads, decoder_heads = rng.choice([1, 2, 3]), rng.choice([1, 2, 4])
    width = encoder_heads * decoder_heads * rng.choice([4, 5, 8])
    layers = rng.choice([1, 2, 3])
    base = rng.choice([4, 6, 16])  # HuggingFace pads to the largest, all others divide it.
    windows = [base * rng.choice([1, 2, 4]) for _ in range(layers)]
    pad, eos = rng.choice([(1, 2), (1, 2), (0, 5), (3, [2, 6]), (2, 2)])
    vocab = rng.choice([30, 200])
    config = transformers.LEDConfig(
        vocab_size=vocab, d_model=width, encoder_layers=layers,
        decoder_layers=rng.choice([1, 2]), encoder_attention_heads=encoder_heads,
        decoder_attention_heads=decoder_heads, encoder_ffn_dim=rng.choice([7, 48]),
        decoder_ffn_dim=rng.choice([9, 64]),
        attention_window=windows if rng.random() < 0.7 else windows[0],
        max_encoder_position_embeddings=-(-120 // max(windows)) * max(windows),
        max_decoder_position_embeddings=48, init_std=0.25, pad_token_id=pad, eos_token_id=eos,
        bos_token_id=0, decoder_start_token_id=rng.choice([2, 2, 4]),
        activation_function=rng.choice(["gelu", "relu", "gelu_new", "silu"]),
        tie_word_embeddings=rng.random() < 0.7)
    model = transformers.LEDForConditionalGeneration(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += 0.2 * torch.randn_like(parameter)
        model.final_logits_bias = torch.randn(1, vocab)
        for end in numpy.atleast_1d(eos):  # Outputs of many lengths.
            model.final_logits_bias[0, end] += rng.choice([0, 1, 3])
    if rng.random() < 0.5:
        for name, value in draw_settings(rng, vocab).items():
            # Of two names of one thing HuggingFace prefers one, whoever said it.
            if name not in ("max_new_tokens", "num_return_sequences"):
                setattr(model.generation_config, name, value)
    return model


def draw_document(rng, vocab):
    """Ids, mask and global marks of one document."""
    length = rng.choice([1, 2, 3, 16, 40, 97, 120])
    ids = numpy.array([[0] + [rng.randrange(7, vocab) for _ in range(length - 1)]])
    mask, marks = numpy.ones_like(ids), numpy.zeros_like(ids)
    if length > 2 and rng.random() < 0.3:
        mask[0, 1:-1][rng.sample(range(length - 2), length // 4)] = 0  # Holes, not padding.
    marks[0, rng.sample(range(length), min(length, rng.choice([0, 1, 1, 4, 120])))] = 1
    return {"input_ids": ids, "attention_mask": mask, "global_attention_mask": marks}


def draw_settings(rng, vocab):
    """Parameters of generate, all valid, under which no two outputs are equally good: two forced
    ends would be, and banned ends that `remove_invalid_values` makes finite drown all scores."""
    def token():
        return rng.randrange(7, vocab)

    ngrams = [1, 2, 3] if vocab > 120 else [2, 3]  # Enough is left to say.

    beams = rng.choice([1, 1, 2, 3, 5])
    # Of one forced token alone, a second beam is one of many that are equally impossible.
    settings = {"num_beams": beams}
    settings[rng.choice(["max_new_tokens", "max_length"])] = rng.randrange(3, 40)
    options = {
        "min_length": lambda: rng.randrange(2, 30),
        "min_new_tokens": lambda: rng.randrange(0, 20),
        "no_repeat_ngram_size": lambda: rng.choice(ngrams),
        "encoder_no_repeat_ngram_size": lambda: rng.choice(ngrams),
        "repetition_penalty": lambda: rng.choice([0.8, 1.3, 2.0]),
        "encoder_repetition_penalty": lambda: rng.choice([0.7, 1.5]),
        "bad_words_ids": lambda: [[token()], [token(), 7], [token(), token(), 8]],
        "sequence_bias": lambda: [[[token()], 2.5], [[2, token()], 4.0],
                                  [[token(), token()], -1.5]],
        "suppress_tokens": lambda: rng.sample(range(8, vocab), 5),
        "begin_suppress_tokens": lambda: [2, 9],
        "forced_bos_token_id": lambda: rng.choice([0, 7]),
        "forced_eos_token_id": lambda: 2,
        "exponential_decay_length_penalty": lambda: [rng.randrange(1, 8), rng.choice([0.9, 1.2])],
        "renormalize_logits": lambda: True,
        "eos_token_id": lambda: rng.choice([2, [2, 8], [9, 10, 11]]),
    }
    for name in rng.sample(sorted(options), rng.randrange(0, 6)):
        settings[name] = options[name]()
    if beams > 1:
        settings["length_penalty"] = rng.choice([-1.0, 0.0, 0.6, 1.0, 2.0])
        settings["early_stopping"] = rng.choice([True, False, "never"])
        settings["num_return_sequences"] = rng.randrange(1, beams + 1)
    return settings


def generated(model, given, start, settings):
    """Rows of ids without the prompt and what fills them, and their scores (beams)."""
    tensors = {name: torch.tensor(value) for name, value in given.items()}
    if start is not None:
        tensors["decoder_input_ids"] = torch.tensor(start)
    answer = model.generate(**tensors, do_sample=False, return_dict_in_generate=True,
                            output_scores=True, **settings)
    ends = settings.get("eos_token_id", model.generation_config.eos_token_id)
    prompt = 1
    if start is not None:
        prompt = start.shape[1] + (start[0, 0] != model.generation_config.decoder_start_token_id)
    rows = []
    for row in answer.sequences[:, prompt:].tolist():
        stops = [i for i, token in enumerate(row) if token in numpy.atleast_1d(ends)]
        rows.append(row[:stops[0] + 1] if stops else row)
    scores = getattr(answer, "sequences_scores", None)
    return rows, None if scores is None else scores.numpy()


def compare_states(server, name, model, rng):
    vocab = model.config.vocab_size
    given = draw_document(rng, vocab)
    start = model.config.decoder_start_token_id
    given["decoder_input_ids"] = numpy.array(
        [[start] + [rng.randrange(vocab) for _ in range(rng.choice([0, 1, 20, 47]))]])
    answer = model(**{key: torch.tensor(value) for key, value in given.items()})
    got = infer(server, name, given, ["logits", "encoder_last_hidden_state"], {"max_tokens": 0})
    what = f"{name}: {model.config}"
    assert_same(got["logits"], answer.logits.numpy(), what)
    seen = given["attention_mask"][0] == 1  # What masked tokens become is nobody's business.
    assert_same(got["encoder_last_hidden_state"][:, seen],
                answer.encoder_last_hidden_state.numpy()[:, seen], what)


def compare_generated(server, name, model, rng):
    """Returns whether HuggingFace itself is sure."""
    vocab = model.config.vocab_size
    given, settings = draw_document(rng, vocab), draw_settings(rng, vocab)
    start = None
    if rng.random() < 0.3:
        start = numpy.array([[rng.randrange(vocab) for _ in range(rng.choice([1, 2, 5]))]])
        settings = {**settings, "max_new_tokens": rng.randrange(3, 30)}
        settings.pop("max_length", None)
    single, scores = generated(model, given, start, settings)
    double, _ = generated(model.double(), given, start, settings)
    model.float()
    if single != double:
        return False
    tensors = {**given, **({} if start is None else {"decoder_input_ids": start})}
    outputs = ["token_ids", "num_tokens"] + (["scores"] if scores is not None else [])
    got = infer(server, name, tensors, outputs, settings)
    what = f"{name}: {tensors} {settings} {model.config} {model.generation_config}"
    rows = [row[:count].tolist() for row, count in zip(got["token_ids"], got["num_tokens"])]
    assert rows == single, (SEED, rows, single, what)
    if scores is not None:
        assert_same(got["scores"], scores, what)
    return True


def test_settings_as_huggingface(tmp_path):
    print(f"LONGVIEW_SEED={SEED}")
    rng = seeded()
    models = []
    for index in range(MODELS):
        models.append(draw_model(rng))
        models[-1].save_pretrained(tmp_path / f"model-{index}")
    sure = 0
    with serve(tmp_path) as server, torch.no_grad():
        for index, model in enumerate(models):
            for _ in range(SETTINGS):
                compare_states(server, f"model-{index}", model, rng)
                sure += compare_generated(server, f"model-{index}", model, rng)
    assert sure > MODELS * SETTINGS // 2
