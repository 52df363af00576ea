#!/usr/bin/env python3
"""Writes config_oracle.json.xz: configurations, and what Transformers makes of each of them."""
import copy
import json
import pathlib
import sys

import torch
import transformers
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[3] / "tools"))
import packed  # noqa: E402  pylint: disable=wrong-import-position

MISSING = object()
LLAMA3 = {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}
V5 = {"rope_theta": MISSING, "rope_scaling": MISSING}

# The keys of a published Llama 3.2 configuration, but narrower and with 2 layers.
BASE = {
    "architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 1,
    "eos_token_id": [2, 3], "head_dim": 32, "hidden_act": "silu", "hidden_size": 128, "initializer_range": 0.02,
    "intermediate_size": 160, "max_position_embeddings": 131072, "mlp_bias": False, "model_type": "llama",
    "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "pretraining_tp": 1,
    "rms_norm_eps": 1e-05, "rope_scaling": LLAMA3, "rope_theta": 500000.0, "tie_word_embeddings": True,
    "torch_dtype": "bfloat16", "transformers_version": "4.45.0.dev0", "use_cache": True, "vocab_size": 128,
}
CHANGES = {
    "llama 3.2": {},
    "llama 3.1": {"rope_scaling": LLAMA3 | {"factor": 8.0}, "tie_word_embeddings": False, "head_dim": MISSING},
    "llama 3.2 in the style of Transformers 5": V5 | {"rope_parameters": LLAMA3 | {"rope_theta": 500000.0}},
    "llama 3": {"rope_scaling": None, "max_position_embeddings": 8192, "tie_word_embeddings": False,
                "head_dim": MISSING, "eos_token_id": 2},
    "llama 2": {"rope_scaling": None, "rope_theta": MISSING, "max_position_embeddings": 4096, "head_dim": MISSING,
                "tie_word_embeddings": False, "num_key_value_heads": 4},
    "llama 2 before grouped queries": {
        "rope_scaling": MISSING, "rope_theta": MISSING, "num_key_value_heads": MISSING, "head_dim": MISSING,
        "attention_bias": MISSING, "mlp_bias": MISSING, "pretraining_tp": MISSING, "tie_word_embeddings": MISSING},
    "smollm2": {"rope_scaling": None, "rope_theta": 100000, "is_llama_config": True, "rope_interleaved": False,
                "head_dim": MISSING, "attention_bias": False, "max_position_embeddings": 8192},
    "default in the style of Transformers 5": V5 | {"rope_parameters": {"rope_type": "default", "rope_theta": 130000}},
    "no theta, by name": {"rope_scaling": None, "rope_theta": MISSING},
    "yarn": {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}},
    "llama3 without an original context": {
        "rope_scaling": {k: v for k, v in LLAMA3.items() if k != "original_max_position_embeddings"},
        "original_max_position_embeddings": 8192},
    "other frequencies": {"rope_scaling": LLAMA3 | {"low_freq_factor": 2.0, "high_freq_factor": 32.0, "factor": 16.0}},
    "a head dimension of its own": {"head_dim": 64},
    "as many KV heads as heads": {"num_key_value_heads": None},
    "one KV head": {"num_key_value_heads": 1},
    "head_dim null": {"head_dim": None},
    "untied where nothing is said": {"tie_word_embeddings": MISSING},
}


def with_changes(changes):
    config = BASE | copy.deepcopy({k: v for k, v in changes.items() if v is not MISSING})
    return {k: v for k, v in config.items() if changes.get(k) is not MISSING}


def result(config):
    read = LlamaConfig.from_dict(copy.deepcopy(config))
    rotary = LlamaRotaryEmbedding(read)
    return {"theta": read.rope_parameters["rope_theta"], "inv_freq": [float(f) for f in rotary.inv_freq],
            "attention_factor": rotary.attention_scaling, "head_dim": LlamaAttention(read, 0).head_dim,
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
