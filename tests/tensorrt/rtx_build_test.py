#!/usr/bin/env python3
"""rtx_build_test.py --driver PROGRAM: TensorRT-RTX takes what the TensorRT backend would build, on a CPU.

Each graph that tests/tensorrt/routes_driver prints is made a network, layer by layer as src/backends/tensorrt/nvinfer_sink.cc
makes it, and built with the route's own profiles: types, shapes and lowering are checked by NVIDIA's builder. Nothing is
run, and weights are zeros: this proves no number and no speed, and RTX's rules need not be those of TensorRT.
Needs the packages of tests/tensorrt/requirements.txt; without them the test is skipped (exit status 77).
"""
import argparse
import json
import re
import subprocess
import sys
import unittest

try:
    import numpy as np
    import tensorrt_rtx_libs  # noqa: F401  Loads the library.
    import tensorrt_rtx_bindings as trt
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

TYPES = {"f32": trt.float32, "f16": trt.float16, "bf16": trt.bfloat16, "i32": trt.int32, "bool": trt.bool}
BINARY = {"add": trt.ElementWiseOperation.SUM, "subtract": trt.ElementWiseOperation.SUB,
          "multiply": trt.ElementWiseOperation.PROD, "divide": trt.ElementWiseOperation.DIV}


class Network:
    """Replays the text of a graph into a network of TensorRT."""

    def __init__(self, network, build, fixed):
        self.network, self.build, self.fixed = network, build, fixed
        self.tensors, self.types, self.constants, self.inputs, self.kept = [], [], {}, {}, []
        self.caches = set()

    def keep(self, layer, kind):
        if layer is None:
            raise ValueError("a layer was refused")
        self.tensors.append(layer if isinstance(layer, trt.ITensor) else layer.get_output(0))
        self.types.append(kind)

    def weights(self, name, shape, kind):
        if name not in self.constants:
            count = int(np.prod(shape))
            zeros = np.zeros(count, {"f32": np.float32, "i32": np.int32}.get(kind, np.uint16))
            self.kept.append(zeros)
            values = trt.Weights(TYPES[kind], zeros.ctypes.data, count)
            self.constants[name] = self.network.add_constant(shape, values).get_output(0)
        return self.constants[name]

    def index(self, value):
        array = np.array([value], np.int32)
        self.kept.append(array)
        return self.network.add_constant((1,), array).get_output(0)

    def layer_type(self, weight):
        match = re.match(r"layers\.(\d+)\.", weight)
        return "f32" if match and int(match[1]) in self.build["fp32_layers"] else self.build["type"]

    def reshaped(self, tensor, shape, first=None, second=None):
        layer = self.network.add_shuffle(tensor)
        if first:
            layer.first_transpose = first
        layer.reshape_dims = shape
        if second:
            layer.second_transpose = second
        return layer

    def used(self, cache, mask):
        """The tokens of a cache that a mask has room for."""
        shape = self.network.add_shape(mask).get_output(0)
        length = self.network.add_gather(shape, self.index(3), 0).get_output(0)
        layer = self.network.add_slice(cache, (0,), (1,), (1,))
        layer.axes = (2,)
        layer.set_input(2, length)
        return layer.get_output(0)

    def input(self, name, kind, axes):
        axes = [int(axis) if axis.isdigit() else self.fixed.get(axis, axis) for axis in axes.split(", ")]
        self.inputs[name] = axes
        self.keep(self.network.add_input(name, TYPES[kind], [-1 if isinstance(axis, str) else axis for axis in axes]), kind)

    def output(self, name, tensor):
        self.tensors[tensor].name = name
        self.network.mark_output(self.tensors[tensor])

    def operation(self, name, arguments):
        network, x = self.network, [self.tensors[int(word[1:])] for word in re.findall(r"%\d+", arguments)]
        kinds = [self.types[int(word[1:])] for word in re.findall(r"%\d+", arguments)]
        last = arguments.split(", ")[-1]
        if name == "embed":
            table = self.weights(last, self.build["weights"][last], self.build["type"])
            self.keep(network.add_gather(table, x[0], 0), self.build["type"])
        elif name == "linear":
            kind, shape = self.layer_type(last), self.build["weights"][last]
            raised = self.reshaped(self.weights(last, shape, kind), (1, *shape)).get_output(0)
            self.keep(network.add_matrix_multiply(x[0], trt.MatrixOperation.NONE, raised,
                                                  trt.MatrixOperation.TRANSPOSE), kind)
        elif name == "vector":
            self.keep(self.weights(last, (1, 1, *self.build["weights"][last]), "f32"), "f32")
        elif name == "cast":
            self.keep(network.add_cast(x[0], TYPES[last]), last)
        elif name == "mean":
            self.keep(network.add_reduce(x[0], trt.ReduceOperation.AVG, 4, True), kinds[0])
        elif name == "square_root":
            self.keep(network.add_unary(x[0], trt.UnaryOperation.SQRT), kinds[0])
        elif name == "sigmoid":
            self.keep(network.add_activation(x[0], trt.ActivationType.SIGMOID), kinds[0])
        elif name in BINARY:
            self.keep(network.add_elementwise(x[0], x[1], BINARY[name]), kinds[0])
        elif name in ("gather", "select_tokens"):
            self.keep(network.add_gather(x[0], x[1], 0 if name == "gather" else 1), kinds[0])
        elif name == "split_heads":
            heads = int(last)
            self.keep(self.reshaped(x[0], (1, -1, heads, x[0].shape[2] // heads), second=(0, 2, 1, 3)), kinds[0])
        elif name == "merge_heads":
            self.keep(self.reshaped(x[0], (1, -1, x[0].shape[1] * x[0].shape[3]), first=(0, 2, 1, 3)), kinds[0])
        elif name == "slice":
            first, count = map(int, arguments.split(", ")[1:])
            layer = network.add_slice(x[0], (first,), (count,), (1,))
            layer.axes = (len(x[0].shape) - 1,)
            self.keep(layer, kinds[0])
        elif name == "concat":
            layer = network.add_concatenation(x)
            layer.axis = int(last.removeprefix("axis "))
            self.keep(layer, kinds[0])
        elif name == "update_cache":
            self.keep(network.add_kv_cache_update(x[0], x[1], x[2], trt.KVCacheMode.LINEAR), kinds[0])
            self.caches.add(len(self.tensors) - 1)
        elif name == "attention":
            self.attention(arguments, x, kinds)
        else:
            raise ValueError(f"unknown operation {name}")

    def attention(self, arguments, x, kinds):
        q, k, v, mask = x
        if int(re.findall(r"%(\d+)", arguments)[1]) in self.caches:
            k, v = self.used(k, mask), self.used(v, mask)
        scale = self.weights("attention.scale", (1, 1, 1, 1), "f32")
        wide = q if kinds[0] == "f32" else self.network.add_cast(q, trt.float32).get_output(0)
        q = self.network.add_elementwise(wide, scale, trt.ElementWiseOperation.PROD).get_output(0)
        if kinds[0] != "f32":
            q = self.network.add_cast(q, TYPES[kinds[0]]).get_output(0)
        layer = self.network.add_attention_v2(q, k, v, trt.AttentionNormalizationOp.SOFTMAX, trt.CausalMaskKind.NONE)
        layer.mask = mask
        layer.decomposable = True
        self.keep(layer, kinds[0])

    def replay(self, text):
        for line in text.splitlines():
            if match := re.match(r"output (\S+) %(\d+) ", line):
                self.output(match[1], int(match[2]))
            elif match := re.match(r"%\d+ = input (\S+) (\w+) \[(.*)\]$", line):
                self.input(*match.groups())
            elif match := re.match(r"%\d+ = constant (\S+) \[(.*)\]$", line):
                self.keep(self.weights(match[1], tuple(map(int, match[2].split(", "))), "f32"), "f32")
            elif match := re.match(r"%\d+ = constant (\S+) (\S+)$", line):
                self.keep(self.weights(match[1], (1, 1, 1), "f32"), "f32")
            else:
                self.operation(*re.match(r"%\d+ = (\w+)\((.*)\)$", line).groups())


def build_engine(build, engine):
    """The size of the plan."""
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = Network(builder.create_network(0), build, engine["fixed"])
    network.replay(build["graph"])
    config = builder.create_builder_config()
    config.clear_flag(trt.BuilderFlag.TF32)
    for lengths in engine["profiles"]:
        profile = builder.create_optimization_profile()
        for name, axes in network.inputs.items():
            shapes = [tuple(axis if isinstance(axis, int) else lengths[axis][i] for axis in axes) for i in range(3)]
            profile.set_shape(name, *shapes)
        if config.add_optimization_profile(profile) < 0:
            raise ValueError("a profile was refused")
    plan = builder.build_serialized_network(network.network, config)
    return 0 if plan is None else plan.nbytes


class RtxBuilds(unittest.TestCase):
    def test_every_route_and_type_is_built(self):
        builds = json.loads(subprocess.run([OPTIONS.driver], capture_output=True, text=True, check=True).stdout)
        self.assertEqual(len(builds), 16)
        for build in builds:
            for engine in build["engines"]:
                with self.subTest(build["name"]):
                    size = build_engine(build, engine)
                    print(f"{build['name']:<36} {len(engine['profiles'])} profiles  {size / 1e6:.2f} MB")
                    self.assertGreater(size, 0)

    def test_types_that_differ_are_refused(self):
        """The check can fail: a product of bf16 and f32."""
        build = json.loads(subprocess.run([OPTIONS.driver], capture_output=True, text=True, check=True).stdout)[2]
        build["fp32_layers"] = [0]  # Of the weights only: the graph has bf16 in that layer.
        try:
            self.assertEqual(build_engine(build, build["engines"][0]), 0)
        except (ValueError, RuntimeError):
            pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
