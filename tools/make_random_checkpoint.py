#!/usr/bin/env python3
"""Writes a checkpoint with random weights in the shape of a config.json: for tests and for speed.

    make_random_checkpoint.py OUT --like DIR [--config FILE] [--dtype bf16|f16|f32] [--seed N]
                              [--gain G] [--embedding-gain G] [--max-shard-bytes N]

DIR gives config.json and the files beside it (generation_config.json, tokenizer, chat template;
FILE.xz stands for FILE); --config takes another config.json. The shards are split as Hugging Face
splits them: in the order of the model's state dict, whenever the next tensor would make a shard
larger than --max-shard-bytes (5 GB). For SmolLM3-3B that gives the published files' split: 258 and
68 tensors, layer 28 in both.

Every value follows from a formula that tests/support/golden_checkpoint.cc repeats:

    b = SHAKE-128("<seed>/<tensor name>/<i / 2^20>") [i % 2^20]
    value[i] = center + amplitude * ((2 b - 255) / 255)     in double, rounded to float, then to dtype

Norm weights have center 1 and amplitude 0.25. Matrices have center 0 and amplitude
gain * sqrt(3 / columns), so that a product of independent inputs of variance 1 has the standard
deviation `gain`. Only the standard library is used, and one block of 2^20 values is in memory.
"""
import argparse
import hashlib
import json
import math
import pathlib
import struct

import packed

BLOCK = 1 << 20
ELEMENT_BYTES = {"f32": 4, "f16": 2, "bf16": 2}
SAFETENSORS_NAMES = {"f32": "F32", "f16": "F16", "bf16": "BF16"}
COMPANIONS = ["generation_config.json", "tokenizer.json", "tokenizer_config.json",
              "special_tokens_map.json", "chat_template.jinja"]


def element_bits(value, dtype):
    """The little-endian bytes of `value`, a double, rounded to float and then to dtype."""
    as_float = struct.pack("<f", value)
    if dtype == "f32":
        return as_float
    if dtype == "f16":
        return struct.pack("<e", struct.unpack("<f", as_float)[0])
    bits = struct.unpack("<I", as_float)[0]
    bits += 0x7FFF + ((bits >> 16) & 1)  # To nearest, ties to even; no NaN comes here.
    return struct.pack("<H", bits >> 16)


def tensor_values(seed, name, count, center, amplitude, dtype):
    """Yields the tensor's bytes, a block at a time."""
    table = [element_bits(center + amplitude * ((2 * b - 255) / 255.0), dtype) for b in range(256)]
    planes = [bytes(entry[k] for entry in table) for k in range(ELEMENT_BYTES[dtype])]
    for block in range((count + BLOCK - 1) // BLOCK):
        size = min(BLOCK, count - block * BLOCK)
        noise = hashlib.shake_128(f"{seed}/{name}/{block}".encode()).digest(size)
        out = bytearray(size * len(planes))
        for k, plane in enumerate(planes):
            out[k::len(planes)] = noise.translate(plane)
        yield bytes(out)


def tensor_list(config, gain=1.5, embedding_gain=None):
    """[name, shape, center, amplitude] of every tensor, in the order of the model's state dict."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    heads = config["num_attention_heads"]
    kv_heads = config.get("num_key_value_heads") or heads
    head_dim = config.get("head_dim") or hidden // heads

    def matrix(name, rows, columns, matrix_gain=gain):
        return [name + ".weight", [rows, columns], 0.0, matrix_gain * math.sqrt(3 / columns)]

    def norm(name):
        return [name + ".weight", [hidden], 1.0, 0.25]

    tensors = [matrix("model.embed_tokens", config["vocab_size"], hidden,
                      gain if embedding_gain is None else embedding_gain)]
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        tensors += [matrix(prefix + "self_attn.q_proj", heads * head_dim, hidden),
                    matrix(prefix + "self_attn.k_proj", kv_heads * head_dim, hidden),
                    matrix(prefix + "self_attn.v_proj", kv_heads * head_dim, hidden),
                    matrix(prefix + "self_attn.o_proj", hidden, heads * head_dim),
                    matrix(prefix + "mlp.gate_proj", inner, hidden),
                    matrix(prefix + "mlp.up_proj", inner, hidden),
                    matrix(prefix + "mlp.down_proj", hidden, inner),
                    norm(prefix + "input_layernorm"),
                    norm(prefix + "post_attention_layernorm")]
    tensors.append(norm("model.norm"))
    if not config.get("tie_word_embeddings", True):
        tensors.append(matrix("lm_head", config["vocab_size"], hidden))
    return tensors


def tensor_bytes(shape, dtype):
    return math.prod(shape) * ELEMENT_BYTES[dtype]


def split_into_shards(tensors, dtype, max_shard_bytes):
    """The tensors of each file."""
    shards, size = [[]], 0
    for tensor in tensors:
        bytes_ = tensor_bytes(tensor[1], dtype)
        if shards[-1] and size + bytes_ > max_shard_bytes:
            shards.append([])
            size = 0
        shards[-1].append(tensor)
        size += bytes_
    return shards


def write_safetensors(path, tensors, dtype, seed):
    """One file; its tensors lie in the order of their names, as the safetensors library writes them."""
    tensors = sorted(tensors)
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, shape, _, _ in tensors:
        end = offset + tensor_bytes(shape, dtype)
        header[name] = {"dtype": SAFETENSORS_NAMES[dtype], "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape, center, amplitude in tensors:
            for block in tensor_values(seed, name, math.prod(shape), center, amplitude, dtype):
                file.write(block)


def write_weights(out, tensors, dtype, seed, max_shard_bytes=5_000_000_000):
    """model.safetensors, or shards with their index."""
    shards = split_into_shards(tensors, dtype, max_shard_bytes)
    if len(shards) == 1:
        write_safetensors(out / "model.safetensors", tensors, dtype, seed)
        return
    total = sum(tensor_bytes(shape, dtype) for _, shape, _, _ in tensors)
    index = {"metadata": {"total_size": total}, "weight_map": {}}
    for number, shard in enumerate(shards, 1):
        name = f"model-{number:05}-of-{len(shards):05}.safetensors"
        index["weight_map"].update((tensor[0], name) for tensor in shard)
        write_safetensors(out / name, shard, dtype, seed)
    index["weight_map"] = dict(sorted(index["weight_map"].items()))
    (out / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def copy_companions(source, out):
    """The text files beside the weights; a packed one is unpacked."""
    for name in COMPANIONS:
        if packed.exists(source / name):
            (out / name).write_bytes(packed.read_bytes(source / name))


def write_checkpoint(out, config, *, like=None, dtype="bf16", seed=1, gain=1.5, embedding_gain=None,
                     max_shard_bytes=5_000_000_000):
    out.mkdir(parents=True, exist_ok=True)
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    if like:
        copy_companions(like, out)
    write_weights(out, tensor_list(config, gain, embedding_gain), dtype, seed, max_shard_bytes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--like", type=pathlib.Path)
    parser.add_argument("--config", type=pathlib.Path)
    parser.add_argument("--dtype", choices=list(ELEMENT_BYTES), default="bf16")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gain", type=float, default=1.5)
    parser.add_argument("--embedding-gain", type=float)
    parser.add_argument("--max-shard-bytes", type=int, default=5_000_000_000)
    args = parser.parse_args()
    if not args.like and not args.config:
        parser.error("--like DIR or --config FILE is needed")
    if args.out.exists() and any(args.out.iterdir()):
        parser.error(f"{args.out} is not empty")
    config = json.loads((args.config or args.like / "config.json").read_text())
    write_checkpoint(args.out, config, like=args.like, dtype=args.dtype, seed=args.seed, gain=args.gain,
                     embedding_gain=args.embedding_gain, max_shard_bytes=args.max_shard_bytes)


if __name__ == "__main__":
    main()
