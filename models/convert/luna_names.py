"""Names and shapes of the tensors of a Luna checkpoint (fairseq-apollo, 2021), by its config.json."""


def linear(name, out, width):
    return {name + ".weight": (out, width), name + ".bias": (out,)}


def norm(name, width):
    return {name + ".weight": (width,), name + ".bias": (width,)}


def attention(name, width, tied):
    """Luna attention: pack and unpack, of an encoder layer or across."""
    parts = ("pq", "q", "pc", "c", "out") if tied else ("pq", "q", "pk", "pv", "k", "v", "out")
    return _projections(name, parts, width)


def causal_attention(name, width, tied):
    parts = ("pq", "q", "pc", "c", "out") if tied else ("pq", "q", "pc", "k", "v", "out")
    return _projections(name, parts, width)


def _projections(name, parts, width):
    shapes = {}
    for part in parts:
        shapes |= linear(f"{name}.{part}_proj", width, width)
    return shapes


def _feed_forward(layer, width, inner):
    shapes = linear(layer + "fc1", inner, width) | linear(layer + "fc2", width, inner)
    return shapes | norm(layer + "final_layer_norm", width)


def encoder_layers(prefix, config, stored):
    width, shapes = config["hidden_size"], {}
    for i in range(stored):
        layer = f"{prefix}layers.{i}."
        shapes |= attention(layer + "self_attn", width, config["tie_kv"])
        for name in ("self_attn_layer_norm", "self_atten_proj_layer_norm"):
            shapes |= norm(layer + name, width)
        shapes |= _feed_forward(layer, width, config["ffn_size"])
    if config["norm_position"] == "pre":
        shapes |= norm(prefix + "layer_norm", width) | norm(prefix + "proj_layer_norm", width)
    return shapes


def decoder_layers(config):
    width, shapes = config["hidden_size"], {}
    for i in range(config["decoder_layers"]):
        layer = f"decoder.layers.{i}."
        shapes |= causal_attention(layer + "self_attn", width, config["tie_kv"])
        shapes |= attention(layer + "encoder_attn", width, config["tie_kv"])
        for name in ("self_attn", "encoder_attn", "encoder_atten_proj"):
            shapes |= norm(f"{layer}{name}_layer_norm", width)
        shapes |= _feed_forward(layer, width, config["decoder_ffn_size"])
    if config["decoder_norm_position"] == "pre":
        shapes |= norm("decoder.layer_norm", width) | norm("decoder.proj_layer_norm", width)
    return shapes


def _embeddings(prefix, config, embedding_norms):
    width = config["hidden_size"]
    shapes = {
        prefix + "embed_tokens.weight": (config["vocab_size"], width),
        prefix + "projected_embeddings": (config["proj_len"], width),
    }
    if config["position_type"] == "learned":
        shapes[prefix + "embed_positions.weight"] = (config["max_positions"] + 2, width)
    if config["embedding_layer_norm"]:
        for name in embedding_norms:
            shapes |= norm(prefix + name, width)
    return shapes


def lra(config):
    prefix = "encoder.encoder."
    stored = 1 if config["tie_layer_weights"] else config["num_layers"]
    shapes = _embeddings(prefix, config, ("emb_layer_norm", "proj_emb_layer_norm"))
    shapes |= encoder_layers(prefix, config, stored)
    features = config["classifier_in_dim"]
    for i in range(config["classifier_layers"]):
        shapes |= linear(f"classifier.{i}", config["classifier_out_dim"], features)
        features = config["classifier_out_dim"]
    return shapes | {"sentence_projection_layer.weight": (config["num_labels"], features)}


def bert(config, heads):
    """`heads`: {name inside classification_heads: (labels, inner width)}."""
    width, prefix = config["hidden_size"], "encoder.sentence_encoder."
    shapes = _embeddings(prefix, config, ("emb_layer_norm", "proj_emb_layer_norm"))
    shapes |= encoder_layers(prefix, config, config["num_layers"])
    shapes |= linear("encoder.lm_head.dense", width, width) | norm("encoder.lm_head.layer_norm", width)
    shapes["encoder.lm_head.bias"] = (config["vocab_size"],)
    if not config["tie_word_embeddings"]:
        shapes["encoder.lm_head.weight"] = (config["vocab_size"], width)
    for name, (labels, inner) in heads.items():
        head = f"classification_heads.{name}."
        shapes |= linear(head + "dense", inner, width) | linear(head + "out_proj", labels, inner)
        if name == "pooling_classification_head":
            shapes |= linear(head + "in_proj", width, width)
        if name == "attention_classification_head":
            shapes |= _projections(head + "attn", ("q", "k", "v", "out"), width)
            shapes |= norm(head + "layernorm", width)
    return shapes


def translation(config):
    width = config["hidden_size"]
    shapes = _embeddings("encoder.", config,
                         ("layernorm_embedding", "layernorm_porjected_embedding"))
    shapes |= encoder_layers("encoder.", config, config["num_layers"])
    shapes |= decoder_layers(config)
    shapes["decoder.embed_tokens.weight"] = (config["decoder_vocab_size"], width)
    if config["decoder_position_type"] == "learned":
        shapes["decoder.embed_positions.weight"] = (config["decoder_max_positions"] + 2, width)
    if config["embedding_layer_norm"]:
        shapes |= norm("decoder.layernorm_embedding", width)
    if not config["share_decoder_input_output_embed"]:
        shapes["decoder.output_projection.weight"] = (config["decoder_vocab_size"], width)
    return shapes


def optional(config):
    """Tensors that may be there: second copies of tied matrices and constant buffers."""
    width = config["hidden_size"]
    shapes = {f"{side}.version": (1,) for side in ("encoder", "decoder")}
    for prefix in ("encoder.", "encoder.encoder.", "encoder.sentence_encoder.", "decoder."):
        shapes[prefix + "embed_positions._float_tensor"] = (1,)
        shapes[prefix + "projected_positions"] = (config["proj_len"], width)
    shapes["encoder.lm_head.weight"] = (config["vocab_size"], width)
    vocab = config.get("decoder_vocab_size", config["vocab_size"])
    shapes["decoder.output_projection.weight"] = (vocab, width)
    return shapes
