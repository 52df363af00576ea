#!/usr/bin/env python3
"""Compares bundles built from GGUFs that PyPI's `gguf` writes with the bundle of the same safetensors, live.

usage: gguf_diff.py TRTMC CHECKPOINT

Of CHECKPOINT and of random Llamas of tools/golden_cases.py. A GGUF of bf16 or f32, in one file or split, must give the same tensors, tokenizer tables and template to the
byte, so the same ids and logits. A quantised one must give the values that `gguf` decodes, bit for bit.
"""
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

try:
    import gguf
except ImportError:
    print("skipped: this Python has no module gguf (pip install -r tests/requirements.txt)")
    sys.exit(77)

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import golden_cases  # pylint: disable=wrong-import-position
import make_gguf  # pylint: disable=wrong-import-position
import make_random_checkpoint  # pylint: disable=wrong-import-position

QUANTISED = ["f16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1"]


class Comparison:
    """Builds and compares; counts what differs."""

    def __init__(self, trtmc, checkpoint, folder):
        self.program, self.checkpoint, self.folder = trtmc, checkpoint, folder
        self.failures = 0
        self.reference = self.build(checkpoint, "safetensors")

    def trtmc(self, *arguments):
        result = subprocess.run([self.program, *map(str, arguments)], capture_output=True, check=False)
        if result.returncode != 0:
            raise RuntimeError(f"trtmc {arguments[0]}: {result.stderr.decode(errors='replace')}")
        return result.stdout

    def build(self, source, name):
        bundle = self.folder / f"{name}.trtmc"
        self.trtmc("build", source, "-o", bundle, "--force")
        return bundle

    def report(self, what, passed):
        print(f"{'equal' if passed else 'DIFFERENT'}  {what}", flush=True)
        self.failures += not passed

    def facts(self, bundle):
        """What the runtime reads: everything but where it came from and where it lies."""
        found = json.loads(self.trtmc("inspect", bundle, "--json"))
        sections = {s["name"]: (s.get("dtype"), s["sha256"]) for s in found["sections"]}
        return sections, {key: found[key] for key in ("family", "strategy", "spec", "stop_ids")}

    def same_bundle(self, path, name):
        bundle = self.build(path, name)
        ours, theirs = self.facts(bundle), self.facts(self.reference)
        self.report(f"{name}: every section", ours[0] == theirs[0])
        self.report(f"{name}: family, spec, stop ids", ours[1] == theirs[1])
        if not (self.checkpoint / "tokenizer.json").exists():
            return  # `run` answers in text.
        answers = [self.trtmc("run", b, "--raw", "--prompt-ids", "[5, 60, 7, 150]", "--temperature", 0, "--max-tokens", 12,
                              "--json", "--logprobs", 2) for b in (bundle, self.reference)]
        parts = [json.loads(answer) for answer in answers]
        self.report(f"{name}: ids and log-probabilities",
                    all(parts[0][key] == parts[1][key] for key in ("ids", "logprobs")))

    def same_values(self, path, name):
        bundle = self.build(path, name)
        decoded = self.folder / f"{name}-decoded"
        decoded.mkdir()
        shutil.copyfile(self.checkpoint / "config.json", decoded / "config.json")
        write_safetensors(decoded / "model.safetensors", decoded_tensors(path, self.checkpoint))
        theirs = self.facts(self.build(decoded, f"{name}-decoded"))[0]
        ours = {key: value for key, value in self.facts(bundle)[0].items() if key in theirs}
        self.report(f"{name}: every value", ours == theirs and len(ours) > 10)
        shutil.rmtree(decoded)
        for file in self.folder.glob(f"{name}*.trtmc"):
            file.unlink()


def decoded_tensors(path, checkpoint):
    """The GGUF's values as `gguf` decodes them, by the names and in the order of the rows that Transformers has."""
    config = json.loads((checkpoint / "config.json").read_text())
    heads = {"attn_q": config["num_attention_heads"],
             "attn_k": config.get("num_key_value_heads") or config["num_attention_heads"]}
    theirs = {make_gguf.gguf_name(name): name for file in checkpoint.glob("*.safetensors")
              for name, _, _ in make_gguf.read_safetensors(file)}
    for tensor in gguf.GGUFReader(path).tensors:
        if tensor.name not in theirs:
            continue  # rope_freqs.weight, which belongs to the configuration.
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        for stem, count in heads.items():
            if f".{stem}." in tensor.name:
                rows = values.shape[0] // count
                values = values.reshape(count, rows // 2, 2, -1).swapaxes(1, 2).reshape(values.shape)
        keeps_type = tensor.tensor_type == gguf.GGMLQuantizationType.F16
        yield theirs[tensor.name], *stored(np.ascontiguousarray(values), keeps_type)


def stored(values, keeps_f16):
    """Type and elements of a tensor as a build from a GGUF stores it: no value may change."""
    bits = values.view(np.uint32)
    with np.errstate(over="ignore"):
        half = values.astype(np.float16)
    if values.ndim == 1:
        return "F32", values
    if not keeps_f16 and not (bits & 0xFFFF).any():
        return "BF16", (bits >> 16).astype(np.uint16)
    if (half.astype(np.float32).view(np.uint32) == bits).all():
        return "F16", half
    return "F32", values


def write_safetensors(path, tensors):
    header, blobs, offset = {}, [], 0
    for name, dtype, elements in tensors:
        header[name] = {"dtype": dtype, "shape": list(elements.shape), "data_offsets": [offset, offset + elements.nbytes]}
        blobs.append(elements.tobytes())
        offset += elements.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def compare(trtmc, checkpoint, kinds):
    """How much differs."""
    print(f"{checkpoint.name}:", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(trtmc, checkpoint, pathlib.Path(folder))
        for kind in ("bf16", "f32"):
            path = comparison.folder / f"{kind}.gguf"
            make_gguf.write_gguf(checkpoint, path, kind)
            comparison.same_bundle(path, kind)
            path.unlink()
        make_gguf.write_gguf(checkpoint, comparison.folder / "parts.gguf", "bf16", split=9)
        comparison.same_bundle(min(comparison.folder.glob("parts-00001-of-*.gguf")), "parts")
        for kind in kinds:
            path = comparison.folder / f"{kind}.gguf"
            make_gguf.write_gguf(checkpoint, path, kind)
            comparison.same_values(path, kind)
            path.unlink()
    return comparison.failures


def main():
    trtmc = sys.argv[1]
    failures = compare(trtmc, pathlib.Path(sys.argv[2]), ["q8_0", "q4_1"])
    with tempfile.TemporaryDirectory() as folder:
        for name in ("llama_2", "llama_3_scaling", "llama_smollm2"):
            checkpoint = pathlib.Path(folder) / name
            make_random_checkpoint.write_checkpoint(checkpoint, golden_cases.case_config(name))
            failures += compare(trtmc, checkpoint, QUANTISED)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
