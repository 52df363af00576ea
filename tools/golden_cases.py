"""The random checkpoints that tools/make_goldens.py records Transformers' results for.

Each case changes a few things of its family's configuration in BASE_CONFIGS: `config` (a value of
None removes the key), `weights` (how the values are drawn, see tools/make_random_checkpoint.py) and
`prompt_tokens`. A case without `family` is one of smollm3.
"""
import copy

BASE_CONFIG = {
    "architectures": ["SmolLM3ForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": 128,
    "intermediate_size": 160,
    "max_position_embeddings": 256,
    "mlp_bias": False,
    "model_type": "smollm3",
    "num_attention_heads": 4,
    "num_hidden_layers": 4,
    "num_key_value_heads": 2,
    "no_rope_layer_interval": 4,
    "no_rope_layers": [1, 1, 1, 0],
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "sliding_window": None,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.54.0.dev0",
    "use_cache": False,
    "use_sliding_window": False,
    "vocab_size": 320,
}
LLAMA_CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "bos_token_id": 0,
    "eos_token_id": [1, 2],
    "hidden_act": "silu",
    "hidden_size": 96,
    "intermediate_size": 112,
    "max_position_embeddings": 256,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 6,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "rope_theta": 500000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.45.0.dev0",
    "vocab_size": 192,
}
BASE_CONFIGS = {"smollm3": BASE_CONFIG, "llama": LLAMA_CONFIG}
BASE_WEIGHTS = {"dtype": "bf16", "gain": 1.2, "embedding_gain": 1.2}
# rope_scaling null is a value, as in the published config, and not an absent key.
KEEP_NULL = {"rope_scaling", "sliding_window"}


def heads(query, kv, head_dim):
    return {"num_attention_heads": query, "num_key_value_heads": kv, "head_dim": head_dim}


def yarn_v4(factor, original, **more):
    return {"rope_scaling": {"factor": factor, "original_max_position_embeddings": original, "type": "yarn", **more}}


def yarn_v5(factor, original, **more):
    return {"rope_theta": None, "rope_scaling": "absent", "torch_dtype": None, "dtype": "bfloat16",
            "rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": factor,
                                "original_max_position_embeddings": original, **more}}


def llama3(factor, original, **more):
    return {"rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": original, **more}


CASES = {
    # The layers that rotate.
    "schedule_list": {"config": {"no_rope_layers": [1, 0, 1, 1]}},
    "schedule_longer_list": {"config": {"no_rope_layers": [0, 1, 1, 0, 1, 1]}},
    "schedule_interval": {"config": {"no_rope_layers": None, "no_rope_layer_interval": 3}},
    "schedule_default": {"config": {"no_rope_layers": None, "no_rope_layer_interval": None, "num_hidden_layers": 5}},
    # Without layer_types, the layers that don't rotate get the window.
    "sliding_window": {"config": {"no_rope_layers": [1, 0, 1, 0], "use_sliding_window": True, "sliding_window": 20}},
    # Where theta stands, and what it is when nobody says.
    "theta_large": {"config": {"rope_theta": 5000000.0}},
    "config_v5": {"config": {"rope_theta": None, "rope_scaling": "absent", "torch_dtype": None, "dtype": "bfloat16",
                             "rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}}},
    # YaRN, always with prompts longer than the original context.
    "yarn_2": {"config": yarn_v4(2.0, 64) | {"max_position_embeddings": 128}, "prompt_tokens": 104},
    "yarn_4_v5": {"config": yarn_v5(4.0, 32) | {"max_position_embeddings": 128}, "prompt_tokens": 104},
    "yarn_attention_factor": {"config": yarn_v4(4.0, 48, attention_factor=0.8, beta_fast=2, beta_slow=0.5)
                              | {"max_position_embeddings": 192}, "prompt_tokens": 104},
    "yarn_mscale": {"config": yarn_v5(4.0, 32, mscale=1.0, mscale_all_dim=0.5, truncate=False)
                    | {"max_position_embeddings": 128}, "prompt_tokens": 104},
    # The card's trap: max_position_embeddings left as it was; the factor counts all the same.
    "yarn_context_unchanged": {"config": yarn_v4(2.0, 128) | {"max_position_embeddings": 128}, "prompt_tokens": 104},
    "yarn_beyond_2048": {"config": yarn_v4(4.0, 640) | {"max_position_embeddings": 2560, "hidden_size": 64,
                         "intermediate_size": 64, "num_hidden_layers": 2, "no_rope_layers": [1, 0], "vocab_size": 320}
                         | heads(2, 1, 64), "prompt_tokens": 2500, "angles": "float64"},
    # Shapes.
    "untied": {"config": {"tie_word_embeddings": False}},
    "heads_1_to_1": {"config": heads(2, 2, 64)},
    "heads_3_to_1": {"config": heads(6, 2, 64)},
    "heads_4_to_1": {"config": heads(8, 2, 64)},
    "heads_8_to_1": {"config": heads(8, 1, 64)},
    "head_dim_128": {"config": heads(4, 1, 128)},
    "odd_sizes": {"config": {"hidden_size": 72, "intermediate_size": 90, "vocab_size": 301} | heads(3, 1, 24)},
    # Element types of the weights.
    "weights_f16": {"weights": {"dtype": "f16"}, "config": {"torch_dtype": "float16"}},
    "weights_f32": {"weights": {"dtype": "f32"}, "config": {"torch_dtype": "float32"}},
    # Hidden states so small that the epsilon of the norms decides.
    "small_embedding": {"weights": {"embedding_gain": 0.02}, "config": {"tie_word_embeddings": False}},
    # Llama as its second version wrote it: neither grouped queries nor a theta.
    "llama_2": {"family": "llama", "config": {"num_key_value_heads": None, "rope_theta": None}},
    # The third's scaling in both styles, with prompts longer than the original context.
    "llama_3_scaling": {"family": "llama", "prompt_tokens": 80, "config": {
        "rope_scaling": llama3(8.0, 32), "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 32,
        "tie_word_embeddings": True}},
    "llama_3_scaling_v5": {"family": "llama", "prompt_tokens": 80, "config": {
        "rope_theta": None, "rope_scaling": "absent", "torch_dtype": None, "dtype": "bfloat16", "num_key_value_heads": 3,
        "rope_parameters": llama3(32.0, 48, rope_theta=10000.0, high_freq_factor=8.0)}},
    # SmolLM2: a large theta and nothing else.
    "llama_smollm2": {"family": "llama", "config": {
        "rope_theta": 100000, "tie_word_embeddings": True, "is_llama_config": True, "rope_interleaved": False}},
}


def case_family(name):
    return CASES[name].get("family", "smollm3")


def case_config(name):
    """The case's config.json."""
    config = copy.deepcopy(BASE_CONFIGS[case_family(name)])
    for key, value in CASES[name].get("config", {}).items():
        if value == "absent" or (value is None and key not in KEEP_NULL):
            config.pop(key, None)
        else:
            config[key] = value
    return config


def case_weights(name):
    return BASE_WEIGHTS | CASES[name].get("weights", {})
