#!/usr/bin/env python3
"""quality_test.py TRTMC MODEL TEXT: what quantised weights, and keys and values in bytes, change of the small model's
predictions stays below what docs/quantization.md promises."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM, MODEL, TEXT = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
BYTES = 16000  # Of the text, those that docs/quantization.md measures llama.cpp's formats on.
WINDOW = 512


class QualityTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.text = cls.folder / "text.txt"
        cls.text.write_bytes(TEXT.read_bytes()[:BYTES])
        cls.original = cls.build("none")

    @classmethod
    def build(cls, quant):
        bundle = cls.folder / f"{quant}.trtmc"
        subprocess.run([PROGRAM, "build", MODEL, "-o", bundle, "--quant", quant, "--quiet"], check=True)
        return bundle

    def divergence(self, bundle, *options):
        """The mean KL divergence from the original weights, in nats."""
        run = subprocess.run([PROGRAM, "score", bundle, "--against", self.original, "--file", self.text, "--window",
                              str(WINDOW), "--json", *options], check=True, capture_output=True)
        return json.loads(run.stdout)["kl_mean"]

    def test_q8(self):
        divergence = self.divergence(self.build("q8"))
        self.assertGreater(divergence, 0)
        self.assertLessEqual(divergence, 0.002)

    def test_q6_is_no_worse_than_llama_cpp_between_its_formats(self):
        # Q5_0 and Q8_0 from the same weights diverge by 0.0484 and 0.00102: exponentially between, 0.0134 at 6.5 bits.
        divergence = self.divergence(self.build("q6"))
        self.assertGreater(divergence, 0)
        self.assertLessEqual(divergence, 0.0134)

    def test_q4_q6_is_no_worse_than_llama_cpp_between_its_formats(self):
        # IQ4_NL and Q5_0, 0.1585 and 0.0484: 0.0963 at the 4.92 bits that a layer's weights have.
        self.assertLessEqual(self.divergence(self.build("q4_q6")), 0.0963)

    def test_q4_is_no_worse_than_iq4_nl(self):
        # llama.cpp's IQ4_NL from the same weights, without its rounding of activations: bench/quality.py.
        self.assertLessEqual(self.divergence(self.build("q4")), 0.15852)

    def test_keys_and_values_in_bytes(self):
        divergence = self.divergence(self.original, "--kv-type", "q8")
        self.assertGreater(divergence, 0)
        self.assertLessEqual(divergence, 0.002)

    def test_keys_and_values_in_fp8(self):
        # Errors of 2.6 % of a component beside 0.5 % of bytes, and a divergence grows with their square.
        divergence = self.divergence(self.original, "--kv-type", "fp8")
        self.assertGreater(divergence, 0)
        self.assertLessEqual(divergence, 0.002 * (2.6 / 0.5) ** 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
