#!/usr/bin/env python3
"""Writes a Hugging Face checkpoint of the llama or smollm3 architecture as a GGUF, with PyPI's `gguf`.

    make_gguf.py CHECKPOINT OUT.gguf [--type TYPE] [--pre NAME] [--split N]

For tests: keys, names and layout are those of llama.cpp's converter (conversion/llama.py). TYPE is
that of the matrices: bf16 (as they are), f32, f16, q8_0, q4_0, q4_1, q5_0 or q5_1; vectors are f32
and matrices whose rows are no whole blocks f16. NAME is tokenizer.ggml.pre. N tensors at most go
into one file: OUT-00001-of-0000M.gguf.
"""
import argparse
import json
import math
import pathlib
import struct

import gguf
import numpy as np

LAYER_NAMES = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
               "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
               "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
               "mlp.down_proj": "ffn_down"}
MODEL_NAMES = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
               "lm_head.weight": "output.weight"}


def read_safetensors(path):
    """Yields (name, values as float32, type) of each tensor."""
    data = path.read_bytes()
    length, = struct.unpack("<Q", data[:8])
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        raw = data[8 + length + begin:8 + length + end]
        if entry["dtype"] == "BF16":
            values = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            values = np.frombuffer(raw, {"F32": np.float32, "F16": np.float16}[entry["dtype"]]).astype(np.float32)
        yield name, values.reshape(entry["shape"]), entry["dtype"].lower()


def gguf_name(name):
    if name in MODEL_NAMES:
        return MODEL_NAMES[name]
    _, _, layer, stem = name.split(".", 3)
    return f"blk.{layer}.{LAYER_NAMES[stem.removesuffix('.weight')]}.weight"


def permuted(values, heads):
    """A head's two halves interleaved, as llama.cpp rotates them."""
    return values.reshape(heads, 2, values.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(values.shape)


def head_dim(config):
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def rope_settings(config):
    return config.get("rope_parameters") or {"rope_theta": config.get("rope_theta", 10000.0),
                                             **(config.get("rope_scaling") or {})}


def rope_factors(config):
    """What Llama 3's scaling divides each frequency by, in float32 as the converter has it."""
    rope, dim = rope_settings(config), head_dim(config)
    frequencies = 1.0 / (np.float32(rope["rope_theta"]) ** (np.arange(0, dim, 2, dtype=np.float32) / np.float32(dim)))
    original, low, high = (rope[k] for k in ("original_max_position_embeddings", "low_freq_factor", "high_freq_factor"))
    factors = []
    for frequency in frequencies:
        wavelength = 2 * math.pi / frequency
        if wavelength < original / high:
            factors.append(1)
        elif wavelength > original / low:
            factors.append(rope["factor"])
        else:
            smooth = (original / wavelength - low) / (high - low)
            factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return np.array(factors, dtype=np.float32)


def add_parameters(writer, config):
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config.get("num_key_value_heads") or config["num_attention_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    if config.get("head_dim"):
        writer.add_key_length(config["head_dim"])
        writer.add_value_length(config["head_dim"])
    writer.add_rope_dimension_count(head_dim(config))
    rope = rope_settings(config)
    writer.add_rope_freq_base(rope["rope_theta"])
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if kind == "llama3":
        writer.add_tensor("rope_freqs.weight", rope_factors(config))


def add_tokenizer(writer, folder, config, pre):
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    added = {token["id"]: token for token in tokenizer["added_tokens"]}
    by_id = {id_: token for token, id_ in tokenizer["model"]["vocab"].items()}
    tokens, types = [], []
    for id_ in range(config["vocab_size"]):
        if id_ in added:
            tokens.append(added[id_]["content"])
            types.append(gguf.TokenType.CONTROL if added[id_]["special"] else gguf.TokenType.USER_DEFINED)
        elif id_ in by_id:
            tokens.append(by_id[id_])
            types.append(gguf.TokenType.NORMAL)
        else:
            tokens.append(f"[PAD{id_}]")
            types.append(gguf.TokenType.UNUSED)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]])
    writer.add_add_bos_token(False)
    if (folder / "chat_template.jinja").exists():
        writer.add_chat_template((folder / "chat_template.jinja").read_text(encoding="utf-8"))


def add_ends(writer, folder, config):
    """The ids that end a text: the first two of those in both files."""
    generation = folder / "generation_config.json"
    ends = config["eos_token_id"]
    if generation.exists():
        ends = json.loads(generation.read_text(encoding="utf-8"))["eos_token_id"]
    ends = ends if isinstance(ends, list) else [ends]
    writer.add_eos_token_id(ends[0])
    if len(ends) > 1:
        writer.add_eot_token_id(ends[1])


def add_tensors(writer, folder, config, type_name):
    heads = {"q_proj": config["num_attention_heads"],
             "k_proj": config.get("num_key_value_heads") or config["num_attention_heads"]}
    for path in sorted(folder.glob("*.safetensors")):
        for name, values, _ in read_safetensors(path):
            for projection, count in heads.items():
                if projection in name:
                    values = permuted(values, count)
            if values.ndim == 1 or type_name == "f32":
                writer.add_tensor(gguf_name(name), values)
                continue
            kind = gguf.GGMLQuantizationType[type_name.upper()]
            if values.shape[-1] % gguf.GGML_QUANT_SIZES[kind][0] != 0:
                kind = gguf.GGMLQuantizationType.F16
            writer.add_tensor(gguf_name(name), gguf.quants.quantize(values, kind), raw_dtype=kind)


def write_gguf(folder, out, type_name="bf16", pre="smaug-bpe", split=0):
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    writer = gguf.GGUFWriter(out, {"SmolLM3ForCausalLM": "smollm3", "LlamaForCausalLM": "llama"}[
        config["architectures"][0]], split_max_tensors=split)
    writer.add_name(out.stem)
    writer.add_license("apache-2.0")
    add_parameters(writer, config)
    add_ends(writer, folder, config)
    if (folder / "tokenizer.json").exists():
        add_tokenizer(writer, folder, config, pre)
    add_tensors(writer, folder, config, type_name)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--type", default="bf16")
    parser.add_argument("--pre", default="smaug-bpe")
    parser.add_argument("--split", type=int, default=0)
    args = parser.parse_args()
    write_gguf(args.checkpoint, args.out, args.type, args.pre, args.split)


if __name__ == "__main__":
    main()
