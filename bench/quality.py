#!/usr/bin/env python3
"""quality.py TRTMC LIBGGML CHECKPOINT TEXT [--window N] [--backend NAME]

What quantised weights lose: trtmc's q8, q6 and q4 beside llama.cpp's formats of as many bits, from the same weights
and on the same text. TRTMC is the program, LIBGGML llama.cpp's libggml-base.so, CHECKPOINT a folder with one
model.safetensors of bf16. Needs numpy.

Divergences: each format is decoded to float32, the values make a checkpoint, and `trtmc score --against` compares its
bundle with that of the original weights. So everything but the values of the weights is the same on both sides. The
embedding is q8 (for llama.cpp Q8_0) in all of them. llama.cpp quantises by its own ggml_quantize_chunk, without an
importance matrix; K-quants are left out where a row is no multiple of 256, as llama.cpp leaves them.

Roles: all layers in q4, but for the matrices of one role, which are q6.

Errors: on random tensors in the shape of a model of 3 billion weights, for three distributions.
"""
import argparse
import ctypes
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy as np

# Numbers of ggml.h; bits a weight.
GGML_TYPES = {"Q8_0": (8, 8.5), "Q6_K": (14, 6.5625), "Q5_0": (6, 5.5), "Q5_K": (13, 5.5), "Q4_0": (2, 4.5),
              "IQ4_NL": (20, 4.5), "IQ4_XS": (23, 4.25), "Q4_K": (12, 4.5)}
OUR_BITS = {"q8": 8.5, "q6": 6.5, "q4": 4.5}
SCHEMES = ("q8", "q6", "q4_q6", "q4")
GRID = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)


class Ggml:
    """llama.cpp's own quantisation of a matrix and back."""

    class Traits(ctypes.Structure):  # ggml_type_traits, ggml.h
        _fields_ = [("name", ctypes.c_char_p), ("block", ctypes.c_int64), ("interleaved", ctypes.c_int64),
                    ("bytes", ctypes.c_size_t), ("quantized", ctypes.c_bool), ("to_float", ctypes.c_void_p)]

    def __init__(self, path):
        self.lib = ctypes.CDLL(str(path))
        self.lib.ggml_get_type_traits.restype = ctypes.POINTER(self.Traits)
        self.lib.ggml_quantize_chunk.restype = ctypes.c_size_t

    def block(self, name):
        return self.lib.ggml_get_type_traits(GGML_TYPES[name][0]).contents.block

    def decoded(self, name, matrix):
        number = GGML_TYPES[name][0]
        traits = self.lib.ggml_get_type_traits(number).contents
        matrix = np.ascontiguousarray(matrix, np.float32)
        rows, cols = matrix.shape
        packed = (ctypes.c_uint8 * (matrix.size // traits.block * traits.bytes))()
        written = self.lib.ggml_quantize_chunk(ctypes.c_int(number), matrix.ctypes.data_as(ctypes.c_void_p), packed,
                                               ctypes.c_int64(0), ctypes.c_int64(rows), ctypes.c_int64(cols), None)
        assert written == len(packed)
        out = np.empty_like(matrix)
        to_float = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(traits.to_float)
        to_float(ctypes.addressof(packed), out.ctypes.data, out.size)
        return out


def read_safetensors(path):
    """Every tensor as float32, by name."""
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + at for at in entry["data_offsets"])
        if entry["dtype"] != "BF16":
            sys.exit(f"{path}: {name} is {entry['dtype']}, expected BF16")
        values = np.frombuffer(data[begin:end], np.uint16).astype(np.uint32) << 16
        tensors[name] = values.view(np.float32).reshape(entry["shape"])
    return tensors


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [at, at + 4 * values.size]}
        at += 4 * values.size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            file.write(np.ascontiguousarray(values, np.float32).tobytes())


def scales_of(raw):
    return raw.view(np.float16).astype(np.float32)


def decode_panels(data, rows, cols, dtype):
    """The matrix in a section of a quantised type, as docs/bundle_format.md has it."""
    panels, groups = -(-rows // 16), -(-cols // 64)
    size = {"q8": 1088, "q6": 832, "q4": 576}[dtype]
    data = data.reshape(panels, groups, size)
    raw = data[:, :, :64].copy().view(np.uint16).reshape(panels, groups, 2, 16)  # block, row
    if dtype == "q8":
        codes = data[:, :, 64:].reshape(panels, groups, 2, 8, 16, 4).astype(np.float32) - 128
        scales = scales_of(raw)
    else:
        if dtype == "q6":
            lines = data[:, :, 64:].reshape(panels, groups, 2, 2, 3, 16, 4)  # block, half of it, line, row, column
            last = (lines >> 6).astype(int)
            last = 16 * last[:, :, :, :, 0] + 4 * last[:, :, :, :, 1] + last[:, :, :, :, 2]
            codes = np.concatenate([lines & 63, last[:, :, :, :, None]], axis=4).astype(np.float32) - 32
            codes = codes.reshape(panels, groups, 2, 8, 16, 4)
        else:
            pairs = data[:, :, 64:].reshape(panels, groups, 8, 16, 4)
            codes = GRID[np.stack([pairs & 15, pairs >> 4], axis=2)]
        shifts = ((raw & 15).astype(np.float32) - 8) * 2
        codes = codes + shifts[:, :, :, None, :, None]
        scales = scales_of(raw & 0xfff0)
    values = codes * scales[:, :, :, None, :, None]  # panel, group, block, quad, row, column
    return values.transpose(0, 4, 1, 2, 3, 5).reshape(panels * 16, groups * 64)[:rows, :cols]


class Trtmc:
    def __init__(self, program, backend):
        self.program, self.backend = str(program), backend

    def run(self, *arguments):
        command = [self.program, *map(str, arguments)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def build(self, checkpoint, bundle, quant="none"):
        self.run("build", checkpoint, "-o", bundle, "--force", "--quiet", "--quant", quant)
        return bundle

    def divergence(self, bundle, against, text, window):
        return json.loads(self.run("score", bundle, "--against", against, "--file", text, "--window", window,
                                   "--backend", self.backend, "--json"))

    def matrices(self, bundle):
        """The quantised matrices of a bundle, decoded, by name."""
        sections = json.loads(self.run("inspect", bundle, "--json"))["sections"]
        data = np.memmap(bundle, np.uint8, "r")
        for section in sections:
            if section.get("dtype") in OUR_BITS:
                part = np.array(data[section["offset"]:section["offset"] + section["bytes"]])
                yield section["name"], decode_panels(part, *section["shape"], section["dtype"])


def copy_checkpoint(source, folder, tensors):
    folder.mkdir()
    for path in source.iterdir():
        if path.suffix in (".json", ".jinja") and "safetensors" not in path.name:
            shutil.copy(path, folder)
    write_safetensors(folder / "model.safetensors", tensors)
    return folder


def is_embedding(name):
    return "embed_tokens" in name or "lm_head" in name


def peer_checkpoint(ggml, name, tensors):
    return {key: values if values.ndim == 1 else ggml.decoded("Q8_0" if is_embedding(key) else name, values)
            for key, values in tensors.items()}


def print_divergence(name, bits, result):
    print(f"| {name:<8} | {bits:5.2f} | {result['kl_mean']:.5f} | {result['kl_99']:.4f} | "
          f"{100 * result['top1_agreement']:.2f} % | {result['perplexity']:.4f} |", flush=True)


def compare_divergences(options, ggml, trtmc, work):
    tensors = read_safetensors(options.checkpoint / "model.safetensors")
    original = trtmc.build(options.checkpoint, work / "original.trtmc")
    print("| weights | bits | mean KL | 99 % KL | same top | perplexity |\n|---|---:|---:|---:|---:|---:|")
    own = trtmc.divergence(original, original, options.text, options.window)
    print_divergence("bf16", 16, own)
    narrowest = min(values.shape[1] for key, values in tensors.items() if values.ndim == 2)
    for name, (_, bits) in GGML_TYPES.items():
        if narrowest % ggml.block(name) != 0:
            continue
        folder = copy_checkpoint(options.checkpoint, work / name, peer_checkpoint(ggml, name, tensors))
        bundle = trtmc.build(folder, work / f"{name}.trtmc")
        print_divergence(name, bits, trtmc.divergence(bundle, original, options.text, options.window))
    for name in SCHEMES:
        bundle = trtmc.build(options.checkpoint, work / f"{name}.trtmc", name)
        print_divergence(name, bits_of_layers(trtmc, bundle), divergence_of_values(
            options, trtmc, work, name, tensors, trtmc.matrices(bundle), original))
    compare_roles(options, trtmc, work, tensors, original)


def divergence_of_values(options, trtmc, work, name, tensors, matrices, original):
    """Of decoded matrices through the same float path as the peers', by way of float32."""
    decoded = dict(tensors)
    for section, values in matrices:
        decoded[source_name(section, tensors)] = values
    folder = copy_checkpoint(options.checkpoint, work / name, decoded)
    bundle = trtmc.build(folder, work / f"{name}.f32.trtmc")
    return trtmc.divergence(bundle, original, options.text, options.window)


def compare_roles(options, trtmc, work, tensors, original):
    fine, coarse = (dict(trtmc.matrices(work / f"{name}.trtmc")) for name in ("q6", "q4"))
    sizes = {name: values.size for name, values in coarse.items() if name.startswith("layers.")}
    base = None
    print("\n| q6 | of the layers | bits | mean KL | less by | for each bit |\n|---|---:|---:|---:|---:|---:|")
    for role in ("none", "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"):
        chosen = {name for name in sizes if name.endswith(role)}
        matrices = {**coarse, **{name: fine[name] for name in chosen}}
        result = divergence_of_values(options, trtmc, work, f"role.{role}", tensors, matrices.items(), original)
        base = base or result["kl_mean"]
        share = sum(sizes[name] for name in chosen) / sum(sizes.values())
        less = base - result["kl_mean"]
        print(f"| {role} | {100 * share:.1f} % | {4.5 + 2 * share:.2f} | {result['kl_mean']:.5f} | {less:.5f} | "
              f"{less / (2 * share) if share else 0:.4f} |", flush=True)


def bits_of_layers(trtmc, bundle):
    """A weight of a layer's matrix, scales included."""
    matrices = [section for section in json.loads(trtmc.run("inspect", bundle, "--json"))["sections"]
                if section["name"].startswith("layers.") and section.get("dtype") in OUR_BITS]
    weights = sum(section["shape"][0] * section["shape"][1] for section in matrices)
    return 8 * sum(section["bytes"] for section in matrices) / weights


def source_name(section, tensors):
    """The checkpoint's name of a section: layers.3.q_proj is model.layers.3.self_attn.q_proj.weight."""
    if section == "embedding":
        return "model.embed_tokens.weight"
    if section == "lm_head":
        return "lm_head.weight"
    layer, name = section.split(".")[1:]
    (found,) = [key for key in tensors if key.startswith(f"model.layers.{layer}.") and f".{name}." in key]
    return found


def synthetic_tensors(seed=1):
    """Of a 3B model's MLP, thinned to some of its rows: normal, with long tails, with loud columns."""
    random = np.random.default_rng(seed)
    shape = (1024, 2048)
    normal = random.standard_normal(shape)
    tails = random.standard_t(5, shape)
    columns = random.standard_normal(shape) * np.exp(0.5 * random.standard_normal(shape[1]))
    return {"normal": normal, "Student t, 5": tails, "uneven columns": columns}


def our_decoded(trtmc, matrix, work, quant):
    """`matrix` through `build --quant`, as the gate projection of a model that has little else."""
    intermediate, hidden = matrix.shape
    config = {"architectures": ["LlamaForCausalLM"], "hidden_size": hidden, "intermediate_size": intermediate,
              "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 64,
              "vocab_size": 16, "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
              "tie_word_embeddings": True, "model_type": "llama", "hidden_act": "silu", "eos_token_id": 0}
    layer = "model.layers.0."
    shapes = {"model.embed_tokens.weight": (16, hidden), "model.norm.weight": (hidden,),
              layer + "input_layernorm.weight": (hidden,), layer + "post_attention_layernorm.weight": (hidden,),
              layer + "self_attn.q_proj.weight": (64, hidden), layer + "self_attn.k_proj.weight": (64, hidden),
              layer + "self_attn.v_proj.weight": (64, hidden), layer + "self_attn.o_proj.weight": (hidden, 64),
              layer + "mlp.up_proj.weight": (intermediate, hidden),
              layer + "mlp.down_proj.weight": (hidden, intermediate)}
    tensors = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    tensors[layer + "mlp.gate_proj.weight"] = matrix
    folder = work / "synthetic"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    write_safetensors(folder / "model.safetensors", tensors)
    bundle = trtmc.build(folder, work / "synthetic.trtmc", quant)
    return dict(trtmc.matrices(bundle))["layers.0.gate_proj"]


def compare_errors(ggml, trtmc, work):
    print("\n| distribution | format | bits | squared error | weighted by x² |\n|---|---|---:|---:|---:|")
    for label, values in synthetic_tensors().items():
        matrix = (0.02 * values).astype(np.float32)
        decoded = {name: (bits, ggml.decoded(name, matrix))
                   for name, (_, bits) in GGML_TYPES.items() if name != "Q8_0"}
        for name in ("q6", "q4"):
            decoded[name] = (OUR_BITS[name], our_decoded(trtmc, matrix, work, name))
        square = matrix.astype(np.float64) ** 2
        for name, (bits, back) in decoded.items():
            error = (back.astype(np.float64) - matrix) ** 2
            print(f"| {label} | {name} | {bits} | {error.sum() / square.sum():.3e} | "
                  f"{(error * square).sum() / (square * square).sum():.3e} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trtmc", type=pathlib.Path)
    parser.add_argument("libggml", type=pathlib.Path)
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--backend", default="cpu")
    options = parser.parse_args()
    ggml, trtmc = Ggml(options.libggml), Trtmc(options.trtmc, options.backend)
    with tempfile.TemporaryDirectory() as folder:
        compare_divergences(options, ggml, trtmc, pathlib.Path(folder))
        compare_errors(ggml, trtmc, pathlib.Path(folder))


if __name__ == "__main__":
    main()
