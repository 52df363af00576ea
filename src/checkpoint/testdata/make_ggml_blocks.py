#!/usr/bin/env python3
"""Writes ggml_blocks.json.xz: random blocks of each element type, and the values that PyPI's `gguf` gives them."""
import importlib.metadata
import json
import pathlib
import sys

import gguf
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "tools"))
import packed  # noqa: E402  pylint: disable=wrong-import-position

# Where a block has its f16 scales: any finite ones, subnormal and negative ones among them.
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2],
          "Q6_K": [208]}
FIRST_SCALES = [0x0001, 0x83FF, 0x3C00, 0xBC01]


def make(name, generator):
    kind = gguf.GGMLQuantizationType[name]
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    count = max(1, 128 // elements) if elements < 256 else 2
    blocks = generator.integers(0, 256, (count, size), dtype=np.uint8)
    for place in SCALES.get(name, []):
        bits = generator.integers(0, 0x7C00, count) | generator.integers(0, 2, count) << 15
        bits[:len(FIRST_SCALES)] = FIRST_SCALES[:count]
        blocks[:, place:place + 2] = bits.astype(np.uint16).reshape(-1, 1).view(np.uint8)
    if name in ("F32", "F16", "BF16"):  # Finite numbers.
        blocks = generator.standard_normal(count).astype(np.float32).reshape(-1, 1)
        blocks = gguf.quants.quantize(blocks, kind).view(np.uint8).reshape(count, size)
    values = gguf.quants.dequantize(blocks, kind).astype(np.float32).ravel()
    assert np.isfinite(values).all(), name
    return {"blocks": blocks.tobytes().hex(), "values": values.tobytes().hex()}


def main():
    generator = np.random.Generator(np.random.PCG64(1))
    types = {name: make(name, generator) for name in
             ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"]}
    text = json.dumps({"gguf": importlib.metadata.version("gguf"), "types": types}, indent=0)
    packed.write_xz(HERE / "ggml_blocks.json.xz", (text + "\n").encode())


main()
