#!/usr/bin/env python3
"""rtx_onnx_test.py --trtmc PROGRAM: TensorRT-RTX reads and builds what `trtmc export` writes, on a CPU.

Each export is parsed by TensorRT-RTX's own reader of ONNX, from the file, and built with the profiles of the routes whose
keys and values go in and come out: `standard` (two engines) and `dual_profile` (one engine, two profiles). The weights are
those of the file. Nothing is run: this proves no number and no speed, and RTX's rules need not be those of TensorRT.
What is refused is expected with the words of the refusal, so that the day it is taken shows here and in docs/tensorrt.md.
Needs the packages of tests/tensorrt/requirements.txt; without them the test is skipped (exit status 77).
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import tensorrt_rtx_libs  # noqa: F401  Loads the library.
    import tensorrt_rtx_bindings as trt
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import make_random_checkpoint  # pylint: disable=wrong-import-position
from packed import read_text  # pylint: disable=wrong-import-position

CAPACITY, MOST_TOKENS = 512, 128
# Least, usual and most tokens of a run, and of those before it: as engine_shape.cc has them.
PROMPTS = {"tokens": (1, MOST_TOKENS, MOST_TOKENS), "past": (0, 0, CAPACITY - 1)}
SINGLES = {"tokens": (1, 1, 1), "past": (1, CAPACITY // 2, CAPACITY - 1)}
ROUTES = {"standard": [[PROMPTS], [SINGLES]], "dual_profile": [[PROMPTS, SINGLES]]}
ELEMENTS = {"f32": trt.float32, "f16": trt.float16, "bf16": trt.bfloat16}


class Log(trt.ILogger):
    """Keeps the errors."""

    def __init__(self):
        trt.ILogger.__init__(self)
        self.errors = []

    def log(self, severity, message):
        if severity <= trt.ILogger.Severity.ERROR:
            self.errors.append(message)


class Parsed:
    """A network made of an export's file."""

    def __init__(self, folder):
        self.log = Log()
        self.builder = trt.Builder(self.log)
        self.network = self.builder.create_network(0)
        parser = trt.OnnxParser(self.network, self.log)
        self.taken = parser.parse_from_file(str(folder / "model.onnx"))
        self.errors = [parser.get_error(i).desc() for i in range(parser.num_errors)]

    def inputs(self):
        return [self.network.get_input(i) for i in range(self.network.num_inputs)]

    def count(self, kind):
        return sum(self.network.get_layer(i).type == kind for i in range(self.network.num_layers))

    def profile(self, lengths):
        profile = self.builder.create_optimization_profile()
        total = [past + tokens for past, tokens in zip(lengths["past"], lengths["tokens"])]
        for tensor in self.inputs():
            if tensor.name.startswith("past_key_values."):
                shapes = [(1, tensor.shape[1], past, tensor.shape[3]) for past in lengths["past"]]
            else:
                shapes = [(1, n) for n in (total if tensor.name == "attention_mask" else lengths["tokens"])]
            profile.set_shape(tensor.name, *shapes)
        return profile

    def plan_bytes(self, profiles):
        config = self.builder.create_builder_config()
        config.clear_flag(trt.BuilderFlag.TF32)
        for lengths in profiles:
            if config.add_optimization_profile(self.profile(lengths)) < 0:
                raise ValueError("a profile was refused")
        plan = self.builder.build_serialized_network(self.network, config)
        return 0 if plan is None else plan.nbytes


class RtxReads(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory(prefix="rtx_onnx_test.")
        cls.folder = pathlib.Path(cls.holder.name)
        cls.embedded = ROOT / "models/smollm3-tiny"

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def random_checkpoint(self, golden_name):
        golden = json.loads(read_text(next((ROOT / "tests/golden").glob(f"*-random/{golden_name}.json.zst"))))
        checkpoint = self.folder / golden_name
        if not checkpoint.exists():
            checkpoint.mkdir()
            (checkpoint / "config.json").write_text(json.dumps(golden["config"]))
            weights = golden["weights"]
            make_random_checkpoint.write_weights(checkpoint, weights["tensors"], weights["dtype"], weights["seed"])
        return checkpoint

    def export(self, checkpoint, dtype, *arguments, quant="none"):
        bundle = self.folder / f"{checkpoint.name}.{quant}.trtmc"
        if not bundle.exists():
            subprocess.run([OPTIONS.trtmc, "build", checkpoint, "-o", bundle, "--quant", quant, "--quiet"], check=True)
        out = pathlib.Path(tempfile.mkdtemp(dir=self.folder)) / "onnx"
        subprocess.run([OPTIONS.trtmc, "export", bundle, "--format", "onnx", "-o", out, "--dtype", dtype, "--quiet",
                        *arguments], check=True)
        return Parsed(out)

    def assert_built(self, name, parsed, routes=("dual_profile",)):
        self.assertTrue(parsed.taken, parsed.errors)
        for route in routes:
            for profiles in ROUTES[route]:
                size = parsed.plan_bytes(profiles)
                print(f"{name:<32} {route:<13} {len(profiles)} profiles  {size / 1e6:.2f} MB", flush=True)
                self.assertGreater(size, 0, parsed.log.errors)

    def test_the_embedded_model_is_built_for_every_route_and_type(self):
        layers = json.loads((self.embedded / "config.json").read_text())["num_hidden_layers"]
        for dtype, element in ELEMENTS.items():
            with self.subTest(dtype):
                parsed = self.export(self.embedded, dtype, "--plain-operators")
                self.assert_built(f"embedded {dtype}", parsed, ROUTES)
                self.assertEqual({tensor.dtype for tensor in parsed.inputs() if "past" in tensor.name}, {element})
                self.assertEqual(parsed.network.get_output(0).dtype, element)
                # One layer of TensorRT where it has a kernel for it.
                self.assertEqual(parsed.count(trt.LayerType.ATTENTION_INPUT), 0 if dtype == "f32" else layers)

    def test_a_layer_in_float32_among_others_is_built(self):
        for dtype in ("f16", "bf16"):
            with self.subTest(dtype):
                parsed = self.export(self.embedded, dtype, "--plain-operators", "--fp32-layer", "0")
                self.assert_built(f"embedded {dtype}, layer 0 in f32", parsed, ROUTES)
                self.assertEqual([tensor.dtype for tensor in parsed.inputs()[3:7:2]], [trt.float32, ELEMENTS[dtype]])

    def test_weights_of_8_bits_are_built(self):
        for dtype in ELEMENTS:
            with self.subTest(dtype):
                parsed = self.export(self.embedded, dtype, "--plain-operators", quant="q8")
                self.assert_built(f"embedded q8 {dtype}", parsed, ROUTES)
                self.assertGreater(parsed.count(trt.LayerType.DEQUANTIZE), 0)

    def test_random_checkpoints_are_built(self):
        for name in ("head_dim_128", "sliding_window", "yarn_4_v5", "llama_3_scaling"):
            for dtype in ELEMENTS:
                with self.subTest(f"{name} {dtype}"):
                    parsed = self.export(self.random_checkpoint(name), dtype, "--plain-operators")
                    self.assert_built(f"{name} {dtype}", parsed)

    def test_heads_24_wide_are_built_for_single_tokens_in_float32_only(self):
        checkpoint = self.random_checkpoint("odd_sizes")
        self.assert_built("odd_sizes f32", self.export(checkpoint, "f32", "--plain-operators"))
        for dtype in ("f16", "bf16"):
            with self.subTest(dtype):
                parsed = self.export(checkpoint, dtype, "--plain-operators")
                self.assertTrue(parsed.taken, parsed.errors)
                self.assertGreater(parsed.plan_bytes([PROMPTS]), 0)
                self.assertEqual(parsed.plan_bytes([SINGLES]), 0, "TensorRT-RTX builds it now")
                self.assertIn("Attention operation was not supported by a dedicated kernel", "\n".join(parsed.log.errors))

    def assert_refused(self, parsed, words):
        """By the parser, in these words. When it begins to take such files, docs/tensorrt.md says something wrong."""
        self.assertFalse(parsed.taken, "TensorRT-RTX takes it now")
        self.assertIn(words, "\n".join(parsed.errors))

    def test_a_softmax_of_stated_precision_is_refused(self):
        for dtype in ELEMENTS:
            with self.subTest(dtype):
                self.assert_refused(self.export(self.embedded, dtype),
                                    "Setting softmax precision is not supported in TensorRT Attention")

    def test_weights_of_6_and_4_bits_are_refused(self):
        for quant, words in (("q6", "Non-zero zero point is not supported"),
                             ("q4_q6", "Failed to import initializer: layers.0.gate_proj.codes"),
                             ("q4", "Failed to import initializer: layers.0.q_proj.codes")):
            with self.subTest(quant):
                self.assert_refused(self.export(self.embedded, "f16", "--plain-operators", quant=quant), words)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--trtmc", required=True)
    OPTIONS, rest = arguments.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
