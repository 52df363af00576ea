#!/usr/bin/env python3
"""`trtmc` under a limit on its memory: it works, or says that there is not enough; whatever the limit.

    memory_limit_test.py --bin DIR --bundle FILE --checkpoint DIR [unittest's own arguments]
"""
import argparse
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

TIMEOUT_S = 120
STEP = 4 << 20
OPTIONS = argparse.Namespace()


class MemoryLimit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def trtmc(self, limit, *arguments):
        def before():
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

        return subprocess.run([OPTIONS.bin / "trtmc", *arguments], cwd=self.folder, capture_output=True, text=True,
                              input="Hello there.", timeout=TIMEOUT_S, check=False, preexec_fn=before)

    def lowest(self):
        """The least memory that the program itself starts in: with less, the system can't load it."""
        limit = STEP
        while self.trtmc(limit, "version").returncode != 0:
            limit += STEP
        return limit

    def sweep(self, steps, *arguments):
        """The exit statuses under limits from the lowest up, `steps` of them, until it works."""
        statuses, lowest = [], self.lowest()
        for i in range(OPTIONS.steps or steps):
            limit = lowest + (i << 20 if OPTIONS.steps else i * (256 << 20) // steps)
            done = self.trtmc(limit, *arguments)
            statuses.append(done.returncode)
            with self.subTest(arguments[0], limit=limit):
                self.assertIn(done.returncode, (0, 6), done.stderr)
                if done.returncode:
                    self.assertRegex(done.stderr, r"(?m)^trtmc: ")
                    self.assertEqual(os.listdir(self.folder), [])
            if done.returncode == 0:
                break
        return statuses

    def test_a_build_works_or_says_that_memory_is_short_and_leaves_nothing(self):
        statuses = self.sweep(12, "build", OPTIONS.checkpoint, "-o", "x.trtmc")
        self.assertEqual((statuses[0], statuses[-1]), (6, 0))

    def test_an_answer_comes_or_the_reason(self):
        statuses = self.sweep(8, "run", OPTIONS.bundle, "--max-tokens", "1", "hello")
        self.assertEqual((statuses[0], statuses[-1]), (6, 0))

    def test_a_text_is_tokenized_or_the_reason_said(self):
        self.assertEqual(self.sweep(8, "tokenize", OPTIONS.bundle)[-1], 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--bundle", required=True, type=pathlib.Path)
    parser.add_argument("--checkpoint", required=True, type=pathlib.Path)
    parser.add_argument("--steps", type=int, help="try every megabyte, so many")
    options, rest = parser.parse_known_args()
    OPTIONS.steps = options.steps
    for name in ("bin", "bundle", "checkpoint"):
        setattr(OPTIONS, name, getattr(options, name).absolute())
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
