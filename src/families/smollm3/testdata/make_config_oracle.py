#!/usr/bin/env python3
"""Writes config_oracle.json.xz: configurations, and what Transformers makes of each of them."""
import copy
import json
import pathlib
import sys

import torch
import transformers
from transformers.models.smollm3.configuration_smollm3 import SmolLM3Config
from transformers.models.smollm3.modeling_smollm3 import SmolLM3Attention, SmolLM3RotaryEmbedding

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[3] / "tools"))
import packed  # noqa: E402  pylint: disable=wrong-import-position

PUBLISHED = HERE.parents[3] / "tests/data/smollm3-3b/config.json"
YARN = {"factor": 2.0, "original_max_position_embeddings": 65536, "rope_type": "yarn"}
MISSING = object()

CHANGES = {
    "as published": {},
    "the list wins over the interval": {"no_rope_layer_interval": 2},
    "interval without a list": {"no_rope_layers": None, "no_rope_layer_interval": 3},
    "interval 1 rotates nowhere": {"no_rope_layers": MISSING, "no_rope_layer_interval": 1},
    "neither list nor interval": {"no_rope_layers": MISSING, "no_rope_layer_interval": MISSING},
    "a longer list": {"no_rope_layers": [0, 1, 1, 1, 1, 1, 1, 0, 0, 0]},
    "no theta": {"rope_theta": MISSING},
    "yarn of the model card": {"rope_scaling": YARN, "max_position_embeddings": 131072},
    "yarn with the legacy type": {
        "rope_scaling": {"factor": 2.0, "original_max_position_embeddings": 65536, "type": "yarn"},
        "max_position_embeddings": 131072},
    "yarn with the context left as it is": {"rope_scaling": YARN},
    "yarn in the style of Transformers 5": {
        "rope_theta": MISSING, "rope_scaling": MISSING, "max_position_embeddings": 262144,
        "rope_parameters": YARN | {"factor": 4.0, "rope_theta": 5000000.0}},
    "yarn with a null factor": {"rope_scaling": YARN | {"factor": None}, "max_position_embeddings": 196608},
    "yarn without an original context": {"rope_scaling": {"rope_type": "yarn", "factor": 2.0}},
    "yarn with the original context outside": {
        "rope_scaling": {"rope_type": "yarn", "factor": 2.0}, "original_max_position_embeddings": 32768},
    "yarn with its own attention factor": {"rope_scaling": YARN | {"attention_factor": 1.25}},
    "yarn with both mscales": {"rope_scaling": YARN | {"mscale": 0.707, "mscale_all_dim": 1.0}},
    "yarn with one mscale": {"rope_scaling": YARN | {"mscale": 0.707}},
    "yarn with mscale 0": {"rope_scaling": YARN | {"mscale": 0, "mscale_all_dim": 1.0}},
    "yarn with betas 0 and null": {"rope_scaling": YARN | {"beta_fast": 0, "beta_slow": None}},
    "yarn with other betas": {"rope_scaling": YARN | {"beta_fast": 16, "beta_slow": 2}},
    "yarn not truncated": {"rope_scaling": YARN | {"truncate": False}},
    "yarn with truncate null": {"rope_scaling": YARN | {"truncate": None}},
    "default in the style of Transformers 5": {
        "rope_theta": MISSING, "rope_scaling": MISSING,
        "rope_parameters": {"rope_type": "default", "rope_theta": 5000000.0}, "dtype": "bfloat16"},
    "llama3": {"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}},
    "a head dimension of its own": {"head_dim": 32},
    "windows where layer_types say so": {
        "use_sliding_window": True, "sliding_window": 64,
        "layer_types": ["full_attention", "sliding_attention"] * 4},
    "windows on the layers that do not rotate": {
        "use_sliding_window": True, "sliding_window": 64, "layer_types": None},
    "a window that is not used": {"use_sliding_window": False, "sliding_window": 64, "layer_types": None},
    "windows asked for without a size": {"use_sliding_window": True, "layer_types": None},
    "as many KV heads as heads": {"num_key_value_heads": None},
    "tied where nothing is said": {"tie_word_embeddings": MISSING},
    "untied": {"tie_word_embeddings": False},
}


def base_config():
    """The published configuration, but narrower and with 8 layers."""
    config = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    config |= {"hidden_size": 128, "intermediate_size": 160, "num_attention_heads": 2, "num_key_value_heads": 1,
               "num_hidden_layers": 8, "vocab_size": 128}
    config["no_rope_layers"] = config["no_rope_layers"][:8]
    config["layer_types"] = config["layer_types"][:8]
    return config


def with_changes(changes):
    config = base_config() | copy.deepcopy({k: v for k, v in changes.items() if v is not MISSING})
    return {k: v for k, v in config.items() if changes.get(k) is not MISSING}


def result(config):
    read = SmolLM3Config.from_dict(copy.deepcopy(config))
    rotary = SmolLM3RotaryEmbedding(read)
    attention = [SmolLM3Attention(read, i) for i in range(read.num_hidden_layers)]
    return {"theta": read.rope_parameters["rope_theta"], "inv_freq": [float(f) for f in rotary.inv_freq],
            "attention_factor": rotary.attention_scaling, "rotates": [bool(a.use_rope) for a in attention],
            "windows": [a.sliding_window or 0 for a in attention], "head_dim": attention[0].head_dim,
            "num_kv_heads": read.num_key_value_heads, "tied": read.tie_word_embeddings}


def main():
    torch.set_grad_enabled(False)
    cases = []
    for name, changes in CHANGES.items():
        config = with_changes(changes)
        cases.append({"name": name, "config": config, "expected": result(config)})
    text = json.dumps({"transformers": transformers.__version__, "cases": cases}, indent=0)
    packed.write_xz(HERE / "config_oracle.json.xz", (text + "\n").encode())


main()
