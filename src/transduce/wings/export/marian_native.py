"""The names of weights in Marian's own files, whose matrices are transposed, and the options that go with them."""

import re

# The entry of a .npz file with the options of the model, as YAML text.
OPTIONS_KEY = "special:model.yml"
SHARED_TABLE, SOURCE_TABLE, TARGET_TABLE = "Wemb", "encoder_Wemb", "decoder_Wemb"
NATIVE_BIAS = "decoder_ff_logit_out_b"
DESCRIPTION_SUFFIX = (
    "decoder.yml"  # the end of the name of the file that names model and vocabularies
)
SIZE_OPTIONS = {  # Marian's option -> ours
    "dim-emb": "d_model",
    "enc-depth": "num_encoder_layers",
    "dec-depth": "num_decoder_layers",
    "transformer-dim-ffn": "d_ff",
    "transformer-heads": "num_heads",
}
NATIVE_ACTIVATIONS = {
    "relu": "relu",
    "swish": "silu",
}  # Marian's gelu is another function than ours
# Options that all supported models share.
# With preprocess "n", Marian's decoder normalises the queries of its self-attention, but not keys and values.
FIXED_OPTIONS = """\
type: transformer
transformer-preprocess: ""
transformer-postprocess: dan
transformer-postprocess-top: ""
transformer-decoder-autoreg: self-attention
transformer-ffn-depth: 2
transformer-decoder-ffn-depth: 0
transformer-decoder-dim-ffn: 0
transformer-train-position-embeddings: false
transformer-disable-position-embeddings: false
transformer-alibi-shift: false
transformer-no-projection: false
transformer-no-bias: false
transformer-no-affine: false
transformer-rnn-projection: false
transformer-pool: false
transformer-tied-layers:
  []
transformer-postprocess-emb: d
lemma-dim-emb: 0
right-left: false
ulr: false
"""
# Other values that mean the same.
SYNONYMS = {"transformer-decoder-ffn-depth": "2", "transformer-postprocess-emb": ""}
WEIGHT_NAME = re.compile(
    r"model\.(?P<stack>\w+?)\.layers\.(?P<layer>\d+)\.(?P<part>[\w.]+)\.(?P<kind>\w+)"
)
SUBLAYERS = {"self_attn": "self", "encoder_attn": "context", "final": "ffn"}


Yaml = dict[str, str | list[str]]


def parse_yaml(text: str) -> Yaml:
    """The options of a file that Marian wrote: a text for each key, or a list of texts."""
    options: Yaml = {}
    key = ""
    for line in text.replace("\0", "").split("\n"):
        item = line.strip()
        listed = options.get(key)
        if item.startswith("- ") and isinstance(listed, list):
            listed.append(item[2:].strip("\"'"))
        elif item == "[]":
            options[key] = []
        elif ":" in item:
            key, _, value = item.partition(":")
            options[key] = value.strip().strip("\"'") if value.strip() else []
    return options


def native_name(name: str) -> str:
    """Marian's name of a weight that has a name in Hugging Face's format."""
    found = WEIGHT_NAME.fullmatch(name)
    assert found
    part = found["part"]
    is_matrix = found["kind"] == "weight"
    kind = "scale" if is_matrix else "bias"
    prefix = f"{found['stack']}_l{int(found['layer']) + 1}"
    letter = "W" if is_matrix else "b"
    if part.startswith("fc"):
        return f"{prefix}_ffn_{letter}{part[-1]}"
    if part.endswith("_layer_norm"):
        sublayer = SUBLAYERS[part.removesuffix("_layer_norm")]
        output = "ffn" if sublayer == "ffn" else "Wo"
        return f"{prefix}_{sublayer}_{output}_ln_{kind}"
    attention, projection = part.split(".")
    return f"{prefix}_{SUBLAYERS[attention]}_{letter}{projection[0]}"
