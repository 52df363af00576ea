#!/usr/bin/env python3
"""tools/model_ci: what `validate` refuses, and that a case which can't run is never called passed."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import e2e_manifests  # pylint: disable=wrong-import-position
from text_gates import edit_distance, text_checks  # pylint: disable=wrong-import-position


class Validate(unittest.TestCase):
    """Runs on a copy of the manifests and descriptors, with one thing changed."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        for part in ("src/families", "tests/e2e", "tests/golden", "models"):
            (self.root / part).parent.mkdir(parents=True, exist_ok=True)
            if part in ("tests/golden", "models"):
                (self.root / part).symlink_to(ROOT / part)
            else:
                shutil.copytree(ROOT / part, self.root / part)
        self.saved = e2e_manifests.ROOT, e2e_manifests.E2E, e2e_manifests.FAMILIES
        e2e_manifests.ROOT = self.root
        e2e_manifests.E2E, e2e_manifests.FAMILIES = self.root / "tests/e2e", self.root / "src/families"

    def tearDown(self):
        e2e_manifests.ROOT, e2e_manifests.E2E, e2e_manifests.FAMILIES = self.saved
        self.folder.cleanup()

    def complaints(self, file=None, change=None):
        if file:
            path = self.root / file
            document = json.loads(path.read_text())
            change(document)
            path.write_text(json.dumps(document))
        errors = []
        descriptors = e2e_manifests.validate_descriptors(errors)
        for path in sorted(e2e_manifests.E2E.glob("*/*.json")):
            e2e_manifests.validate_manifest(path, descriptors, errors)
        return "\n".join(errors)

    def test_the_committed_ones_are_sound(self):
        self.assertEqual(self.complaints(), "")

    def test_a_manifest_has_exactly_its_keys(self):
        self.assertIn("revision is missing", self.complaints(
            "tests/e2e/smollm3/smollm3-3b.json", lambda d: d.pop("revision")))
        self.assertIn("tolerance is unknown", self.complaints(
            "tests/e2e/smollm3/smollm3-tiny.json", lambda d: d.update(tolerance=1)))

    def test_every_threshold_is_declared(self):
        self.assertIn("cosine_p5 is missing", self.complaints(
            "tests/e2e/smollm3/smollm3-tiny.json", lambda d: d["thresholds"]["bfloat16"].pop("cosine_p5")))

    def test_precisions_of_onnx_are_those_that_can_run(self):
        path = "tests/e2e/smollm3/smollm3-tiny.json"
        self.assertIn("onnx.precisions: among", self.complaints(path, lambda d: d["onnx"]["precisions"].append("bf16")))
        self.assertIn("chat_edit_distance is missing",
                      self.complaints(path, lambda d: d["onnx"]["thresholds"].pop("chat_edit_distance")))

    def test_a_revision_is_pinned(self):
        self.assertIn("a pinned commit expected", self.complaints(
            "tests/e2e/smollm3/smollm3-3b.json", lambda d: d.update(revision="main")))

    def test_the_strategy_is_the_familys(self):
        self.assertIn("strategy is not the family's", self.complaints(
            "tests/e2e/smollm3/smollm3-3b.json", lambda d: d.update(strategy="other")))

    def test_another_model_than_the_pinned_one_is_seen(self):
        self.assertIn("config.json is missing or another file", self.complaints(
            "tests/e2e/smollm3/smollm3-tiny.json", lambda d: d["checkpoint"]["files"].update({"config.json": "0" * 64})))

    def test_a_golden_of_another_oracle_is_seen(self):
        self.assertIn("made with another torch", self.complaints(
            "tests/e2e/smollm3/smollm3-tiny.json", lambda d: d["oracle"].update(torch="2.10.0")))

    def test_a_familys_files_are_there(self):
        self.assertIn("nowhere.cc is not there", self.complaints(
            "src/families/smollm3/descriptor.json", lambda d: d["files"].append("nowhere.cc")))

    def test_two_families_claim_nothing_twice(self):
        other = self.root / "src/families/other"
        shutil.copytree(self.root / "src/families/smollm3", other)
        path = other / "descriptor.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"family": "other", "cases": []}))
        complaints = self.complaints()
        self.assertIn("SmolLM3ForCausalLM: claimed by other and smollm3", complaints)
        self.assertIn("strategy smollm3_decoder_kv_cache: of other and smollm3", complaints)


class TextGates(unittest.TestCase):
    def test_the_edit_distance_is_a_share_of_the_longer_one(self):
        self.assertEqual(edit_distance("kitten", "sitting"), 3 / 7)
        self.assertEqual(edit_distance([1, 2, 3], [1, 2, 3]), 0)
        self.assertEqual(edit_distance([], [1]), 1)
        self.assertEqual(edit_distance([], []), 0)

    def test_chats_are_held_to_their_own_threshold(self):
        gates = {"continuation_edit_distance": 0.25, "chat_edit_distance": 0.15}
        five = [1, 2, 3, 4, 5]
        checks = text_checks([("0_raw", [9, *five[1:]], five), ("1_chat", [9, *five[1:]], five), ("2_raw", five, five)], gates)
        self.assertEqual([(c["name"][:4], c["figure"], c["passed"]) for c in checks], [("cont", 0.2, True), ("chat", 0.2, False)])
        self.assertEqual(checks[0]["note"], "1 of 2 without a wrong token; 0_raw")


class Prove(unittest.TestCase):
    def run_model_ci(self, *arguments):
        with tempfile.TemporaryDirectory() as home:
            environment = {"PATH": os.environ["PATH"], "HOME": home}
            return subprocess.run([sys.executable, ROOT / "tools/model_ci", *arguments], capture_output=True, text=True,
                                  env=environment, check=False)

    def test_without_its_checkpoint_a_case_is_not_run(self):
        result = self.run_model_ci("prove", "smollm3-3b", "--trtmc", "/bin/true")
        self.assertEqual(result.returncode, 77)
        self.assertIn("not run: checkpoint not found: HuggingFaceTB/SmolLM3-3B@a07cc9a0", result.stderr)
        self.assertNotIn("passed", result.stdout)

    def test_without_onnxruntime_its_routes_are_not_run(self):
        result = self.run_model_ci("prove", "smollm3-tiny", "--route", "onnx", "--trtmc", "/bin/true", "--python", "/bin/false")
        self.assertEqual(result.returncode, 77)
        self.assertIn("not run: /bin/false has no onnxruntime", result.stderr)

    def test_a_program_that_does_nothing_fails(self):
        result = self.run_model_ci("prove", "smollm3-tiny", "--trtmc", "/bin/true")
        self.assertEqual(result.returncode, 1)

    def test_an_unknown_case_is_wrong_usage(self):
        result = self.run_model_ci("prove", "nothing")
        self.assertEqual(result.returncode, 2)
        self.assertIn("smollm3-tiny", result.stderr)


if __name__ == "__main__":
    unittest.main()
