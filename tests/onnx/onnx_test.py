"""What `trtmc export` writes, run by onnxruntime on the CPU, against Transformers' recorded results.

    onnx_test.py --trtmc PROGRAM [CLASS]

The gates are those of the E2E manifests (tests/e2e), as for the backends. Needs tests/requirements.txt.
"""
import argparse
import base64
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
except ImportError as missing:
    print(f"skipped: {missing} (make it with: .venv/bin/pip install -r tests/requirements.txt)")
    sys.exit(77)
import make_random_checkpoint
from packed import read_text

TINY = ROOT / "models/smollm3-tiny"
TRTMC = []  # The program, from the command line.


def trtmc(*arguments):
    return subprocess.run([*TRTMC, *map(str, arguments)], check=True, capture_output=True).stdout


def unpack(packed):
    raw = base64.b64decode(packed["data"])
    if packed["dtype"] == "f32":
        return np.frombuffer(raw, np.float32).reshape(packed["shape"])
    return (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(packed["shape"])


def relative_l2(actual, expected):
    """Of each row."""
    actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    return np.linalg.norm(actual - expected, axis=-1) / np.linalg.norm(expected, axis=-1)


def cosine(a, b):
    a, b = a.astype(np.float64), b.astype(np.float64)
    return (a * b).sum(-1) / (np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))


def reference_answer(bundle, ids, tokens, *arguments):
    """What `trtmc run` says of a greedy answer to `ids`."""
    return json.loads(trtmc("run", bundle, "--raw", "--prompt-ids", json.dumps(ids), "--temperature", "0", "--max-tokens",
                            tokens, "--json", "--backend", "reference", *arguments))


def thresholds(manifest):
    return json.loads(next((ROOT / "tests/e2e").glob(f"*/{manifest}.json")).read_text())["thresholds"]


class Failures(list):
    """The gates that a model does not pass."""

    def gate(self, name, passed, figure):
        if not passed:
            self.append(f"{name}: {figure:.3g}")


def float32_failures(model, golden, gates):
    """As `trtmc verify --goldens` judges float32, but for hidden states, which an export does not show."""
    failures = Failures()
    for case in golden["cases"]:
        expected, rows = case["float32"], case["float32"]["positions"]
        logits = model.run([case["prompt_ids"]])[0][0]
        for name, actual, wanted in (("logits", logits[case["full_positions"]], unpack(expected["logits"])),
                                     ("columns", logits[rows][:, golden["columns"]], unpack(expected["columns"]))):
            worst = relative_l2(actual, wanted).max()
            failures.gate(f"{case['name']} {name} l2", worst <= gates["logits_relative_l2"], worst)
            worst = cosine(actual, wanted).min()
            failures.gate(f"{case['name']} {name} cosine", worst >= gates["logits_cosine"], worst)
        sums = np.logaddexp.reduce(logits[rows].astype(np.float64), axis=-1)
        worst = np.abs(sums - unpack(expected["logsumexp"])).max()
        failures.gate(f"{case['name']} logsumexp", worst <= gates["logsumexp_difference"], worst)
        tokens = model.greedy(case["prompt_ids"], len(expected["continuation"]))
        wrong = sum(a != b for a, b in zip(tokens, expected["continuation"]))
        failures.gate(f"{case['name']} greedy", wrong <= gates["greedy_mismatches"], wrong)
    return failures


def half_failures(model, golden, gates):
    """A float of 16 bits against float32's results, by the gates of bfloat16."""
    l2, cosines, agreed = [], [], []
    for case in golden["cases"]:
        expected, rows = case["float32"], case["float32"]["positions"]
        logits = model.run([case["prompt_ids"]])[0][0].astype(np.float32)
        columns = logits[rows][:, golden["columns"]]
        l2 += list(relative_l2(columns, unpack(expected["columns"])))
        cosines += list(cosine(columns, unpack(expected["columns"])))
        decided = unpack(expected["margins"]) >= gates["argmax_margin"]
        agreed += list((logits[rows].argmax(-1) == np.array(expected["argmax"]))[decided])
    failures = Failures()
    failures.gate("l2", np.percentile(l2, 95) <= gates["relative_l2_p95"], np.percentile(l2, 95))
    failures.gate("cosine", np.percentile(cosines, 5) >= gates["cosine_p5"], np.percentile(cosines, 5))
    failures.gate("argmax", np.mean(agreed) >= gates["argmax_agreement"], np.mean(agreed))
    return failures


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
        self.assertEqual(float32_failures(self.model, self.golden, self.gates["float32"]), [])

    def test_float16_passes_the_gates_of_16_bits(self):
        model = OnnxModel(self.export(TINY, "f16", "--dtype", "f16"))
        self.assertEqual(model.caches[0].type, "tensor(float16)")
        self.assertEqual(half_failures(model, self.short, self.gates["bfloat16"]), [])

    def test_a_layer_kept_in_float32_stays_so_among_float16(self):
        model = OnnxModel(self.export(TINY, "f16_layer", "--dtype", "f16", "--fp32-layer", 0))
        self.assertEqual([cache.type for cache in model.caches[:4]], ["tensor(float)"] * 2 + ["tensor(float16)"] * 2)
        self.assertEqual(half_failures(model, self.short, self.gates["bfloat16"]), [])

    def test_prefill_and_32_steps_are_one_prefill(self):
        ids = self.golden["cases"][-1]["prompt_ids"][:80]
        at_once = self.model.run([ids])[0][0]
        self.assertLess(relative_l2(steps_after_prefill(self.model, ids, 48), at_once).max(), 1e-5)

    def test_padding_on_the_left_changes_no_row(self):
        ids = self.golden["cases"][-1]["prompt_ids"]
        rows = [ids[:5], ids[5:30], ids[30:42]]
        width = max(map(len, rows))
        padded = [[0] * (width - len(row)) + row for row in rows]
        mask = np.array([[0] * (width - len(row)) + [1] * len(row) for row in rows])
        positions = np.maximum(mask.cumsum(-1) - 1, 0)
        logits, past = self.model.run(padded, mask, positions)
        self.assertTrue(np.isfinite(logits).all())
        next_ids = [[ids[50]], [ids[51]], [ids[52]]]
        stepped, _ = self.model.run(next_ids, np.hstack([mask, np.ones((3, 1), np.int64)]),
                                    positions[:, -1:] + 1, past)
        for row, token, actual, step in zip(rows, next_ids, logits, stepped):
            alone = self.model.run([row + token])[0][0]
            self.assertLess(relative_l2(actual[-len(row):], alone[:-1]).max(), 1e-5)
            self.assertLess(relative_l2(step, alone[-1:]).max(), 1e-5)

    def test_the_answer_is_that_of_trtmc_run(self):
        bundle, prompt = self.bundle(TINY), "Once upon a time, there was a little"
        expected = trtmc("run", bundle, "--raw", "--temperature", "0", "--max-tokens", 200, "--quiet", prompt)
        actual = subprocess.run([sys.executable, ROOT / "tools/onnx_generate.py", self.out, prompt, "--max-tokens",
                                 "200"], check=True, capture_output=True).stdout
        self.assertEqual(actual.decode().strip(), expected.decode().strip())
        self.assertGreater(len(actual), 100)

    def test_norms_and_rotations_composed_of_plain_operations_are_as_in_transformers(self):
        plain = self.export(TINY, "composed", "--plain-operators")
        operators = {node.op_type for node in onnx.load(plain / "model.onnx", load_external_data=False).graph.node}
        self.assertFalse(operators & {"RMSNormalization", "RotaryEmbedding"})
        self.assertEqual(float32_failures(OnnxModel(plain), self.short, self.gates["float32"]), [])


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
                    self.assertEqual(float32_failures(OnnxModel(self.export_golden(golden, name)), golden, gates), [])

    def test_weights_of_few_bits_in_blocks_that_are_not_whole(self):
        golden = random_golden("odd_sizes")
        ids = golden["cases"][0]["prompt_ids"][:12]
        checkpoint = self.checkpoint_of(golden, "few_bits")
        for quant in ("q8", "q6", "q4", "q4_q6"):
            with self.subTest(quant):
                answer = reference_answer(self.bundle(checkpoint, quant), ids, 8)
                model = OnnxModel(self.export(checkpoint, f"few_bits_{quant}", quant=quant))
                self.assertEqual(model.greedy(ids, len(answer["ids"])), answer["ids"])
                self.assertGreater(len(answer["ids"]), 3)

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
        return float32_failures(model, golden, thresholds("smollm3-random")["float32"])

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
