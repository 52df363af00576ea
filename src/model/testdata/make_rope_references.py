#!/usr/bin/env python3
"""Writes llama3_reference.json and yarn_variants.json: inverse frequencies and attention factors
that Transformers itself computes (in float32) for settings other than the model card's.

yarn_reference.json holds the card's settings in float64.
"""
import json
import pathlib

import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.smollm3.configuration_smollm3 import SmolLM3Config

HERE = pathlib.Path(__file__).parent


def compute(head_dim, context, rope):
    config = SmolLM3Config(hidden_size=head_dim * 2, num_attention_heads=2, num_key_value_heads=2, head_dim=head_dim,
                           max_position_embeddings=context, rope_parameters=dict(rope))
    frequencies, factor = ROPE_INIT_FUNCTIONS[rope["rope_type"]](config, "cpu")
    return {"head_dim": head_dim, "max_position_embeddings": context, "rope": rope,
            "attention_factor": factor, "inv_freq": [float(f) for f in frequencies]}


def write(name, cases):
    text = json.dumps({"transformers": transformers.__version__, "cases": cases}, indent=1)
    (HERE / name).write_text(text + "\n", encoding="utf-8")


LLAMA31 = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
           "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
CARD = {"rope_type": "yarn", "rope_theta": 5000000.0, "factor": 2.0, "original_max_position_embeddings": 65536}

write("llama3_reference.json", [
    compute(128, 131072, LLAMA31),                                   # Llama 3.1
    compute(64, 131072, LLAMA31 | {"factor": 32.0}),                 # Llama 3.2
])
write("yarn_variants.json", [
    compute(128, 131072, CARD | {"truncate": False}),
    compute(128, 131072, CARD | {"beta_fast": 64, "beta_slow": 2}),
    compute(128, 131072, CARD | {"attention_factor": 1.5}),
    compute(128, 131072, CARD | {"mscale": 0.707, "mscale_all_dim": 1.0, "factor": 40.0}),
    # The correction range falls outside of the dimensions: clamped at one end, then at both.
    compute(64, 2048, CARD | {"rope_theta": 100.0, "original_max_position_embeddings": 1024}),
    compute(16, 64, CARD | {"rope_theta": 10000.0, "original_max_position_embeddings": 4}),
    compute(16, 64, CARD | {"rope_theta": 10000.0, "original_max_position_embeddings": 8, "beta_fast": 1}),
])
