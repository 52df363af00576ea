"""A GGUF with random weights in a given shape: speed does not depend on values.

Standard library only, one block in memory. There is no tokenizer in it, which both llama.cpp and trtmc accept.
"""
import hashlib
import importlib
import json
import math
import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What differs from SmolLM3-3B's config.json.
SHAPES = {
    "3b": {},
    "135m": {"hidden_size": 576, "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
             "intermediate_size": 1536, "vocab_size": 49152},
}
ELEMENT_TYPES = {"f32": 0, "f16": 1, "bf16": 30, "q8_0": 8, "q6_k": 14, "q4_0": 2}  # ggml_type
FILE_TYPES = {"f32": 0, "f16": 1, "bf16": 32, "q8_0": 7, "q6_k": 18, "q4_0": 2}  # llama_ftype
# Of a block: its weights, its bytes, which two of them are a scale in f16, and what that is multiplied with at most.
BLOCKS = {"q8_0": (32, 34, 0, 127), "q6_k": (256, 210, 208, 127 * 32), "q4_0": (32, 18, 0, 8)}
UINT32, FLOAT32, STRING = 4, 6, 8  # gguf_metadata_value_type
ALIGNMENT = 32
MODEL_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
LAYER_NAMES = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
               "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
               "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def checkpoint_module():
    """tools/make_random_checkpoint.py, which knows the tensors of a shape and makes their values."""
    sys.path.insert(0, str(ROOT / "tools"))
    return importlib.import_module("make_random_checkpoint")


def config_of(shape):
    config = json.loads((ROOT / "tests/data/smollm3-3b/config.json").read_text(encoding="utf-8"))
    return {**config, **SHAPES[shape]}


def gguf_name(name):
    name = name.removesuffix(".weight")
    if name in MODEL_NAMES:
        return MODEL_NAMES[name] + ".weight"
    _, _, layer, stem = name.split(".", 3)
    return f"blk.{layer}.{LAYER_NAMES[stem]}.weight"


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, value):
    if isinstance(value, str):
        return text(key) + struct.pack("<I", STRING) + text(value)
    if isinstance(value, float):
        return text(key) + struct.pack("<If", FLOAT32, value)
    return text(key) + struct.pack("<II", UINT32, value)


def metadata(config, name, dtype):
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    arch = {
        "vocab_size": config["vocab_size"], "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"], "block_count": config["num_hidden_layers"],
        "feed_forward_length": config["intermediate_size"], "attention.head_count": config["num_attention_heads"],
        "attention.head_count_kv": config["num_key_value_heads"], "rope.dimension_count": head_dim,
        "rope.freq_base": float(config["rope_theta"]),
        "attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
    }
    values = {"general.architecture": "smollm3", "general.type": "model", "general.name": name,
              "general.file_type": FILE_TYPES[dtype], "tokenizer.ggml.model": "no_vocab",
              **{f"smollm3.{key}": value for key, value in arch.items()}}
    return struct.pack("<Q", len(values)), b"".join(entry(key, value) for key, value in values.items())


def tensor_bytes(source, count, kind):
    if kind not in BLOCKS:
        return count * source.ELEMENT_BYTES[kind]
    weights, size, _, _ = BLOCKS[kind]
    return count // weights * size


def block_values(seed, name, count, amplitude, kind):
    """Random codes, and one scale with which they reach `amplitude`; yields 2^15 blocks at a time."""
    weights, size, scale_at, largest = BLOCKS[kind]
    scale = struct.pack("<e", amplitude / largest)
    for first in range(0, count // weights, 1 << 15):
        blocks = min(1 << 15, count // weights - first)
        out = bytearray(hashlib.shake_128(f"{seed}/{name}/{first}".encode()).digest(blocks * size))
        for byte in range(2):
            out[scale_at + byte::size] = scale[byte:byte + 1] * blocks
        yield bytes(out)


def write(path, shape, dtype="bf16", seed=1):
    """Matrices of `dtype`, vectors of f32."""
    source = checkpoint_module()
    config = config_of(shape)
    tensors, infos, offset = [], b"", 0
    for name, dimensions, center, amplitude in source.tensor_list(config):
        kind = dtype if len(dimensions) > 1 else "f32"
        tensors.append((name, math.prod(dimensions), center, amplitude, kind, offset))
        infos += text(gguf_name(name)) + struct.pack("<I", len(dimensions))
        infos += struct.pack(f"<{len(dimensions)}Q", *reversed(dimensions))
        infos += struct.pack("<IQ", ELEMENT_TYPES[kind], offset)
        offset += -(-tensor_bytes(source, math.prod(dimensions), kind) // ALIGNMENT) * ALIGNMENT
    count, entries = metadata(config, f"random {shape} {dtype}", dtype)
    head = b"GGUF" + struct.pack("<IQ", 3, len(tensors)) + count + entries + infos
    start = -(-len(head) // ALIGNMENT) * ALIGNMENT
    partial = path.with_suffix(".part")
    with open(partial, "wb") as file:
        file.write(head)
        for name, size, center, amplitude, kind, at in tensors:
            file.seek(start + at)
            values = (block_values(seed, name, size, amplitude, kind) if kind in BLOCKS
                      else source.tensor_values(seed, name, size, center, amplitude, kind))
            for block in values:
                file.write(block)
        file.truncate(start + offset)
    partial.rename(path)
