#!/usr/bin/env python3
"""Files that are not what they were, or not what they seem, while `trtmc` reads them.

    read_faults_test.py --bin DIR --checkpoint DIR [unittest's own arguments]
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

TIMEOUT_S = 60
OPTIONS = argparse.Namespace()


class ReadFaults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def trtmc(self, *arguments):
        return subprocess.run([OPTIONS.bin / "trtmc", *arguments], cwd=self.folder, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, check=False)

    def score_while(self, change):
        """What a run ends with whose bundle is changed when it is mapped and the text is yet to come."""
        self.assertEqual(self.trtmc("build", OPTIONS.checkpoint, "-o", "x.trtmc", "--force").returncode, 0)
        process = subprocess.Popen([OPTIONS.bin / "trtmc", "score", "x.trtmc"], cwd=self.folder, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        maps = pathlib.Path(f"/proc/{process.pid}/maps")
        while "x.trtmc" not in maps.read_text() and process.poll() is None:
            time.sleep(0.001)
        change()
        output, errors = process.communicate("The text is read after the model.", timeout=TIMEOUT_S)
        return process.returncode, output, errors

    def test_a_bundle_that_is_cut_while_in_use_ends_the_run_with_a_sentence(self):
        status, output, errors = self.score_while(lambda: os.truncate(self.folder / "x.trtmc", 1_000_000))
        self.assertEqual((status, output), (4, ""))
        self.assertEqual(errors.splitlines()[0], "trtmc: x.trtmc: can't be read any more: it was cut short "
                                                 "while in use, or its disk fails")

    def test_a_bundle_that_is_overwritten_while_in_use_crashes_nothing(self):
        # Weights that are no numbers, and tables of a tokenizer that lead anywhere.
        for start, byte in ((1_000_000, 0xFF), (37_900_000, 0xFF)):
            def overwrite(start=start, byte=byte):
                with open(self.folder / "x.trtmc", "r+b") as file:
                    size = file.seek(0, os.SEEK_END)
                    file.seek(start)
                    file.write(bytes([byte]) * (size - start))

            with self.subTest(start=start, byte=byte):
                status, _, errors = self.score_while(overwrite)
                self.assertIn(status, (0, 4), errors)
                self.assertNotIn("a bug of trtmc", errors)

    def test_a_named_pipe_in_place_of_a_bundle_is_refused_at_once(self):
        os.mkfifo(self.folder / "pipe")
        result = self.trtmc("inspect", "pipe")
        self.assertEqual((result.returncode, result.stderr), (2, "trtmc: pipe: not a regular file\n"))

    def test_whatever_is_no_file_in_a_checkpoint_is_refused_by_name(self):
        for name in sorted(os.listdir(OPTIONS.checkpoint)):
            if not name.endswith((".json", ".jinja", ".safetensors")):
                continue
            for make, status in ((os.mkfifo, 2), (os.mkdir, 2), (lambda path: os.symlink("nothing", path), 3),
                                 (lambda path: os.symlink("/dev/zero", path), 2)):
                with self.subTest(name, status=status), tempfile.TemporaryDirectory() as folder:
                    for other in os.listdir(OPTIONS.checkpoint):
                        if other != name:
                            os.symlink(OPTIONS.checkpoint / other, pathlib.Path(folder, other))
                    make(pathlib.Path(folder, name))
                    result = self.trtmc("build", folder, "-o", "y.trtmc")
                    self.assertEqual(result.returncode, status, result.stderr)
                    self.assertIn(name, result.stderr)
                    self.assertEqual(os.listdir(self.folder), [])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--checkpoint", required=True, type=pathlib.Path)
    options, rest = parser.parse_known_args()
    OPTIONS.bin = options.bin.absolute()
    OPTIONS.checkpoint = options.checkpoint.absolute()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
