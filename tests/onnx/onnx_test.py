"""What `trtmc export` writes, run by onnxruntime on the CPU, against Transformers' recorded results.

    onnx_test.py --trtmc PROGRAM [CLASS]

The gates are those of the E2E manifests (tests/e2e), as for the backends. Needs tests/requirements.txt.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
try:
    import numpy as np
    import onnx
    from onnx_generate import OnnxModel
    from onnx_verify import float32_checks, half_checks, relative_l2
except ImportError as missing:
    print(f"skipped: {missing} (make it with: .venv/bin/pip install -r tests/requirements.txt)")
    sys.exit(77)
import make_random_checkpoint
from packed import read_text

TINY = ROOT / "models/smollm3-tiny"
TRTMC = []  # The program, from the command line.


def trtmc(*arguments):
    return subprocess.run([*TRTMC, *map(str, arguments)], check=True, capture_output=True).stdout


def reference_answer(bundle, ids, tokens, *arguments):
    """What `trtmc run` says of a greedy answer to `ids`."""
    return json.loads(trtmc("run", bundle, "--raw", "--prompt-ids", json.dumps(ids), "--temperature", "0", "--max-tokens",
                            tokens, "--json", "--backend", "reference", *arguments))


def thresholds(manifest):
    return json.loads(next((ROOT / "tests/e2e").glob(f"*/{manifest}.json")).read_text())["thresholds"]


def failures(checks):
    """The gates that a model does not pass."""
    return [f"{check['name']}: {check['figure']:.3g}" for check in checks if not check["passed"]]


def steps_after_prefill(model, ids, prefill):
    """Logits of `ids` with all but the first `prefill` fed one by one."""
    logits, past = model.run([ids[:prefill]])
    rows = [logits[0]]
    for token in ids[prefill:]:
        logits, past = model.run([[token]], past=past)
        rows.append(logits[0])
    return np.concatenate(rows)


class OnnxCase(unittest.TestCase):
    """Exports go into a folder of the class."""

    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory(prefix="onnx_test.")
        cls.folder = pathlib.Path(cls.holder.name)

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    @classmethod
    def bundle(cls, checkpoint, quant="none"):
        path = cls.folder / f"{checkpoint.name}.{quant}.trtmc"
        if not path.exists():
            trtmc("build", checkpoint, "-o", path, "--quant", quant)
        return path

    @classmethod
    def export(cls, checkpoint, name, *arguments, quant="none"):
        out = cls.folder / f"{name}.onnx.d"
        trtmc("export", cls.bundle(checkpoint, quant), "--format", "onnx", "-o", out, *arguments)
        return out

    @classmethod
    def checkpoint_of(cls, golden, name, **config):
        """The model of a golden, with members of its config.json changed."""
        checkpoint = cls.folder / name
        checkpoint.mkdir()
        (checkpoint / "config.json").write_text(json.dumps({**golden["config"], **config}))
        weights = golden["weights"]
        make_random_checkpoint.write_weights(checkpoint, weights["tensors"], weights["dtype"], weights["seed"])
        return checkpoint

    @classmethod
    def export_golden(cls, golden, name, *arguments, **config):
        return cls.export(cls.checkpoint_of(golden, name, **config), name, *arguments)


def random_golden(name):
    return json.loads(read_text(next((ROOT / "tests/golden").glob(f"*-random/{name}.json.zst"))))


class Embedded(OnnxCase):
    """The embedded model, which has tokenizer, template and answers worth comparing."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.golden = json.loads(read_text(ROOT / "tests/golden/smollm3-tiny/logits.json"))
        cls.out = cls.export(TINY, "f32")
        cls.model = OnnxModel(cls.out)
        cls.gates = thresholds("smollm3-tiny")
        # For the further exports of a model that has passed whole.
        cls.short = {**cls.golden, "cases": cls.golden["cases"][:3]}

    def test_float32_is_as_in_transformers(self):
        self.assertEqual(failures(float32_checks(self.model, self.golden, self.gates["float32"])), [])

    def test_float16_passes_the_gates_of_16_bits(self):
        model = OnnxModel(self.export(TINY, "f16", "--dtype", "f16"))
        self.assertEqual(model.caches[0].type, "tensor(float16)")
        self.assertEqual(failures(half_checks(model, self.short, self.gates["bfloat16"])), [])

    def test_a_layer_kept_in_float32_stays_so_among_float16(self):
        model = OnnxModel(self.export(TINY, "f16_layer", "--dtype", "f16", "--fp32-layer", 0))
        self.assertEqual([cache.type for cache in model.caches[:4]], ["tensor(float)"] * 2 + ["tensor(float16)"] * 2)
        self.assertEqual(failures(half_checks(model, self.short, self.gates["bfloat16"])), [])

    def test_prefill_and_32_steps_are_one_prefill(self):
        ids = self.golden["cases"][-1]["prompt_ids"][:80]
        at_once = self.model.run([ids])[0][0]
        self.assertLess(relative_l2(steps_after_prefill(self.model, ids, 48), at_once).max(), 1e-5)

    def test_padding_on_the_left_changes_no_row(self):
        self.assert_padding_changes_no_row(self.model)

    def assert_padding_changes_no_row(self, model):
        ids = self.golden["cases"][-1]["prompt_ids"]
        rows = [ids[:5], ids[5:30], ids[30:42]]
        width = max(map(len, rows))
        padded = [[0] * (width - len(row)) + row for row in rows]
        mask = np.array([[0] * (width - len(row)) + [1] * len(row) for row in rows])
        positions = np.maximum(mask.cumsum(-1) - 1, 0)
        logits, past = model.run(padded, mask, positions)
        self.assertTrue(np.isfinite(logits).all())
        next_ids = [[ids[50]], [ids[51]], [ids[52]]]
        stepped, _ = model.run(next_ids, np.hstack([mask, np.ones((3, 1), np.int64)]),
                                    positions[:, -1:] + 1, past)
        for row, token, actual, step in zip(rows, next_ids, logits, stepped):
            alone = model.run([row + token])[0][0]
            self.assertLess(relative_l2(actual[-len(row):], alone[:-1]).max(), 1e-5)
            self.assertLess(relative_l2(step, alone[-1:]).max(), 1e-5)

    def test_the_answer_is_that_of_trtmc_run(self):
        bundle, prompt = self.bundle(TINY), "Once upon a time, there was a little"
        expected = trtmc("run", bundle, "--raw", "--temperature", "0", "--max-tokens", 200, "--quiet", prompt)
        actual = subprocess.run([sys.executable, ROOT / "tools/onnx_generate.py", self.out, prompt, "--max-tokens",
                                 "200"], check=True, capture_output=True).stdout
        self.assertEqual(actual.decode().strip(), expected.decode().strip())
        self.assertGreater(len(actual), 100)

    def test_plain_operators_are_as_in_transformers(self):
        plain = self.export(TINY, "composed", "--plain-operators")
        operators = {node.op_type for node in onnx.load(plain / "model.onnx", load_external_data=False).graph.node}
        self.assertFalse(operators & {"RMSNormalization", "RotaryEmbedding", "Attention"})
        model = OnnxModel(plain)
        self.assertEqual(failures(float32_checks(model, self.short, self.gates["float32"])), [])
        ids = self.golden["cases"][-1]["prompt_ids"][:80]
        self.assertLess(relative_l2(steps_after_prefill(model, ids, 48), model.run([ids])[0][0]).max(), 1e-5)
        self.assert_padding_changes_no_row(model)

    def test_plain_operators_in_float16_pass_the_gates_of_16_bits(self):
        out = self.export(TINY, "composed_f16", "--plain-operators", "--dtype", "f16", "--fp32-layer", 1)
        nodes = onnx.load(out / "model.onnx", load_external_data=False).graph.node
        attention = [node for node in nodes if node.op_type == "Attention"]
        layers = json.loads((TINY / "config.json").read_text())["num_hidden_layers"]
        self.assertEqual(len(attention), layers - 1)  # But for the layer in float32.
        self.assertFalse([a.name for node in attention for a in node.attribute])
        self.assertEqual(failures(half_checks(OnnxModel(out), self.short, self.gates["bfloat16"])), [])


class FewBits(OnnxCase):
    """Weights of 8, 6 and 4 bits, against the executor that decodes them and adds in double: `reference`."""

    def test_are_those_of_the_bundle(self):
        ids = json.loads(read_text(ROOT / "tests/golden/smollm3-tiny/logits.json"))["cases"][0]["prompt_ids"]
        for quant in ("q8", "q6", "q4"):
            answer = reference_answer(self.bundle(TINY, quant), ids, 4, "--logprobs", 0)
            expected = [token["logprob"] for token in answer["logprobs"]["content"]]
            self.assertEqual(len(expected), 4)
            for dtype, bound in (("f32", 1e-4), ("f16", 2e-2)):
                with self.subTest(f"{quant} {dtype}"):
                    out = self.export(TINY, f"{quant}_{dtype}", "--dtype", dtype, quant=quant)
                    onnx.checker.check_model(str(out / "model.onnx"), full_check=True)
                    rows = OnnxModel(out).run([ids + answer["ids"]])[0][0, len(ids) - 1:-1].astype(np.float64)
                    logprobs = rows - np.logaddexp.reduce(rows, -1, keepdims=True)
                    actual = logprobs[np.arange(4), answer["ids"]]
                    self.assertLess(np.abs(actual - expected).max(), bound)

    def test_are_smaller_files(self):
        sizes = [(self.export(TINY, f"size_{quant}", quant=quant) / "model.onnx_data").stat().st_size
                 for quant in ("none", "q8", "q4")]
        self.assertLess(sizes[1], sizes[0] / 3)
        self.assertLess(sizes[2], sizes[1] * 0.8)


class Random(OnnxCase):
    """Every schedule, scaling and shape that Transformers' results are recorded for."""

    def test_every_golden_is_as_in_transformers(self):
        for manifest in ("smollm3-random", "llama-random"):
            gates = thresholds(manifest)["float32"]
            for path in sorted((ROOT / "tests/golden" / manifest).glob("*.json.zst")):
                name = path.name.removesuffix(".json.zst")
                with self.subTest(name):
                    golden = json.loads(read_text(path))
                    self.assertEqual(failures(float32_checks(OnnxModel(self.export_golden(golden, name)), golden, gates)), [])

    def test_plain_operators_are_as_in_transformers(self):
        gates = thresholds("smollm3-random")["float32"]
        for name in ("head_dim_128", "heads_3_to_1", "heads_1_to_1", "odd_sizes", "sliding_window", "yarn_4_v5"):
            with self.subTest(name):
                golden = random_golden(name)
                out = self.export_golden(golden, f"plain_{name}", "--plain-operators")
                self.assertEqual(failures(float32_checks(OnnxModel(out), golden, gates)), [])

    def test_weights_of_few_bits_in_blocks_that_are_not_whole(self):
        golden = random_golden("odd_sizes")
        ids = golden["cases"][0]["prompt_ids"][:12]
        checkpoint = self.checkpoint_of(golden, "few_bits")
        for quant in ("q8", "q6", "q4", "q4_q6"):
            answer = reference_answer(self.bundle(checkpoint, quant), ids, 8)
            self.assertGreater(len(answer["ids"]), 3)
            for name, operators in (("own", []), ("plain", ["--plain-operators"])):
                with self.subTest(f"{quant} {name}"):
                    model = OnnxModel(self.export(checkpoint, f"few_bits_{quant}_{name}", *operators, quant=quant))
                    self.assertEqual(model.greedy(ids, len(answer["ids"])), answer["ids"])

    def test_a_layer_that_does_not_rotate_sees_no_distance(self):
        golden = random_golden("schedule_list")
        ids = [golden["cases"][0]["prompt_ids"][:12]]
        near, far = [np.arange(12)], [np.arange(12) * 3 + 1]
        still = OnnxModel(self.export_golden(golden, "nope", no_rope_layers=[0, 0, 0, 0]))
        turning = OnnxModel(self.export_golden(golden, "rope", no_rope_layers=[1, 1, 1, 1]))
        self.assertTrue((still.run(ids, None, near)[0] == still.run(ids, None, far)[0]).all())
        self.assertGreater(relative_l2(turning.run(ids, None, near)[0], turning.run(ids, None, far)[0])[0, -1], 1e-3)

    def test_the_table_of_rotations_is_that_of_transformers_for_yarn(self):
        """Whole positions apart: the angles' cosines and sines, times the attention factor."""
        golden = random_golden("yarn_4_v5")
        out = self.export_golden(golden, "yarn")
        graph = onnx.load(out / "model.onnx").graph
        tables = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer if t.name.startswith("rope.")}
        rope = golden["config"]["rope_parameters"]
        squares = tables["rope.cos"].astype(np.float64) ** 2 + tables["rope.sin"].astype(np.float64) ** 2
        factor = rope.get("attention_factor") or 0.1 * np.log(rope["factor"]) + 1
        np.testing.assert_allclose(np.sqrt(squares), factor, rtol=1e-6)


class Mistakes(OnnxCase):
    """A wrong model must not pass."""

    def wrong(self, golden_name, **config):
        golden = random_golden(golden_name)
        model = OnnxModel(self.export_golden(golden, golden_name, **config))
        return failures(float32_checks(model, golden, thresholds("smollm3-random")["float32"]))

    def test_a_flipped_flag_of_the_schedule_fails(self):
        self.assertNotEqual(self.wrong("schedule_list", no_rope_layers=[1, 1, 1, 1]), [])

    def test_a_dropped_attention_factor_fails(self):
        rope = {**random_golden("yarn_4_v5")["config"]["rope_parameters"], "attention_factor": 1.0}
        self.assertNotEqual(self.wrong("yarn_4_v5", rope_parameters=rope), [])

    def test_a_mask_from_the_upper_left_fails(self):
        """The mistake that only steps after the first one show: queries counted from the first token."""
        golden = random_golden("schedule_list")
        out = self.export_golden(golden, "mask")
        ids = golden["cases"][0]["prompt_ids"]
        right = OnnxModel(out)
        at_once = right.run([ids])[0][0]
        self.assertLess(relative_l2(steps_after_prefill(right, ids, 8), at_once).max(), 1e-5)
        model = onnx.load(out / "model.onnx", load_external_data=False)
        slices = [node for node in model.graph.node if node.op_type == "Slice"]
        self.assertEqual(len(slices), 1)
        first = next(node for node in model.graph.node if node.output[0] == slices[0].input[1])
        zero, length = slices[0].input[3], first.input[1]
        slices[0].input[1], slices[0].input[2] = zero, length
        onnx.save(model, out / "wrong.onnx")
        wrong = OnnxModel(out, "wrong.onnx")
        self.assertLess(relative_l2(wrong.run([ids])[0][0], at_once).max(), 1e-5)
        self.assertGreater(relative_l2(steps_after_prefill(wrong, ids, 8), at_once).max(), 1e-2)


class Formats(OnnxCase):
    """What the files are, whoever reads them."""

    def test_every_type_is_a_valid_model(self):
        for dtype, element in (("f32", onnx.TensorProto.FLOAT), ("f16", onnx.TensorProto.FLOAT16),
                               ("bf16", onnx.TensorProto.BFLOAT16)):
            out = self.export(TINY, dtype, "--dtype", dtype)
            onnx.checker.check_model(str(out / "model.onnx"), full_check=True)
            model = onnx.shape_inference.infer_shapes(onnx.load(out / "model.onnx", load_external_data=False),
                                                      check_type=True, strict_mode=True, data_prop=True)
            self.assertEqual(model.opset_import[0].version, 23)
            border = [*model.graph.input, *model.graph.output]
            floats = {v.name: v.type.tensor_type.elem_type for v in border if "ids" not in v.name and "mask" not in v.name}
            self.assertEqual(set(floats.values()), {element})

    def test_what_is_bfloat16_never_is_float16(self):
        model = onnx.load(self.export(TINY, "bf16_types", "--dtype", "bf16") / "model.onnx", load_external_data=False)
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph
        kinds = {v.type.tensor_type.elem_type for v in inferred.value_info} | {t.data_type for t in inferred.initializer}
        self.assertIn(onnx.TensorProto.BFLOAT16, kinds)
        self.assertNotIn(onnx.TensorProto.FLOAT16, kinds)
        tables = {t.name: t.data_type for t in inferred.initializer if "norm" in t.name or "rope" in t.name}
        self.assertEqual(set(tables.values()), {onnx.TensorProto.FLOAT})

    def test_only_the_tables_of_rotations_follow_the_context(self):
        """A step has nothing to do with a capacity: of 1 234 and of 8 765 tokens the graph is the same."""
        graphs = []
        for context in (1234, 8765):
            bundle, out = self.folder / f"context_{context}.trtmc", self.folder / f"context_{context}.onnx.d"
            trtmc("build", TINY, "-o", bundle, "--context", context)
            trtmc("export", bundle, "--format", "onnx", "-o", out)
            graph = onnx.load(out / "model.onnx", load_external_data=False).graph
            self.assertEqual([t.name for t in graph.initializer if context in t.dims], ["rope.cos", "rope.sin"])
            users = [node for node in graph.node if set(node.input) & {"rope.cos", "rope.sin"}]
            self.assertEqual([node.op_type for node in users], ["Gather", "Gather"])
            graphs.append((graph.node, graph.input, graph.output))
        self.assertEqual(graphs[0], graphs[1])

    def test_names_are_those_of_optimum(self):
        model = OnnxModel(self.export(TINY, "names"))
        layers = json.loads((TINY / "config.json").read_text())["num_hidden_layers"]
        pairs = [f"{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
        self.assertEqual([i.name for i in model.session.get_inputs()],
                         ["input_ids", "attention_mask", "position_ids", *(f"past_key_values.{p}" for p in pairs)])
        self.assertEqual(model.outputs, ["logits", *(f"present.{p}" for p in pairs)])
        self.assertEqual(model.session.get_inputs()[3].shape, ["batch_size", 2, "past_sequence_length", 64])

    def test_the_folder_holds_what_goes_with_a_model(self):
        out = self.export(TINY, "folder")
        self.assertEqual({p.name for p in out.iterdir()},
                         {"model.onnx", "model.onnx_data", "config.json", "generation_config.json", "tokenizer.json",
                          "tokenizer_config.json", "chat_template.jinja", "README.md"})
        self.assertEqual((out / "chat_template.jinja").read_text(), (TINY / "chat_template.jinja").read_text())
        theirs = json.loads((TINY / "config.json").read_text())
        ours = json.loads((out / "config.json").read_text())
        for key in ("architectures", "model_type", "hidden_size", "no_rope_layers", "rope_theta", "tie_word_embeddings",
                    "rms_norm_eps", "max_position_embeddings"):
            self.assertEqual(ours[key], theirs[key], key)

    def test_the_tokenizer_is_that_of_the_checkpoint(self):
        import tokenizers  # pylint: disable=import-outside-toplevel
        out = self.export(TINY, "tokenizer")
        ours, theirs = (tokenizers.Tokenizer.from_file(str(p / "tokenizer.json")) for p in (out, TINY))
        text = (ROOT / "tests/golden/smollm3-tiny/eval.txt").read_text() + "<|im_start|> 3.14 \t\n  é€<think>"
        self.assertEqual(ours.encode(text).ids, theirs.encode(text).ids)
        self.assertEqual(ours.decode(ours.encode(text).ids, skip_special_tokens=False), text)
        self.assertEqual(ours.get_vocab(with_added_tokens=True), theirs.get_vocab(with_added_tokens=True))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trtmc", required=True)
    parser.add_argument("tests", nargs="*")
    arguments = parser.parse_args()
    TRTMC.append(str(pathlib.Path(arguments.trtmc).resolve()))
    unittest.main(argv=[sys.argv[0], *arguments.tests])
