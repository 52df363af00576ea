#!/usr/bin/env python3
"""Files that fail while `trtmc` reads or writes them: a layer under it (failing_files.cc) makes them.

    file_layer_test.py --bin DIR --layer FILE --checkpoint DIR --gguf FILE --hub-tests DIR [unittest's own arguments]
"""
import argparse
import errno
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TIMEOUT_S = 60
OPTIONS = argparse.Namespace()
UNREADABLE = "can't be read any more: it was cut short while in use, or its disk fails"


def layer(call, path, number):
    """The environment that makes `call` fail on files with `path` in theirs."""
    return {"LD_PRELOAD": str(OPTIONS.layer), "TRTMC_FAULT": f"{call}:{path}:{number}"}


class FileLayer(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "out"
        self.out.mkdir()

    def trtmc(self, *arguments, **more):
        return subprocess.run([OPTIONS.bin / "trtmc", *arguments], cwd=self.folder, capture_output=True, text=True,
                              env=os.environ | more, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, check=False)

    def refused(self, status, text, *arguments, **more):
        done = self.trtmc(*arguments, **more)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn(text, done.stderr)
        self.assertNotIn("a bug of trtmc", done.stderr)

    def build(self):
        self.assertEqual(self.trtmc("build", OPTIONS.checkpoint, "-o", "x.trtmc").returncode, 0)

    def test_a_text_of_a_checkpoint_that_cant_be_read_is_named(self):
        for name in ("config.json", "tokenizer.json", "chat_template.jinja"):
            with self.subTest(name):
                self.refused(4, f"{name}: can't read: Input/output error", "build", OPTIONS.checkpoint, "-o",
                             "out/x.trtmc", **layer("read", f"/{name}", errno.EIO))
                self.assertEqual(os.listdir(self.out), [])

    def test_weights_that_cant_be_read_end_the_build_and_leave_nothing(self):
        self.refused(4, f"model.safetensors: {UNREADABLE}", "build", OPTIONS.checkpoint, "-o", "out/x.trtmc",
                     **layer("mmap", "model.safetensors", errno.EIO))
        self.assertEqual(os.listdir(self.out), [])

    def test_a_gguf_file_that_cant_be_read_is_named(self):
        self.refused(4, f"smollm3.gguf: {UNREADABLE}", "build", OPTIONS.gguf, "-o", "out/x.trtmc",
                     **layer("mmap", "smollm3.gguf", errno.EIO))
        self.assertEqual(os.listdir(self.out), [])

    def test_a_bundle_that_cant_be_read_ends_every_command_with_a_sentence(self):
        self.build()
        for arguments in (("verify", "x.trtmc"), ("run", "x.trtmc", "--raw", "a", "--max-tokens", "1")):
            with self.subTest(arguments[0]):
                self.refused(4, f"x.trtmc: {UNREADABLE}", *arguments, **layer("mmap", "x.trtmc", errno.EIO))

    def test_a_bundle_that_cant_be_written_leaves_nothing(self):
        for call, number, status in (("pwrite", errno.EDQUOT, 6), ("pwrite", errno.EIO, 4), ("fsync", errno.EIO, 4)):
            with self.subTest(call, number=number):
                self.refused(status, os.strerror(number), "build", OPTIONS.checkpoint, "-o", "out/x.trtmc",
                             **layer(call, str(self.out), number))
                self.assertEqual(os.listdir(self.out), [])

    def test_a_file_system_that_reserves_nothing_is_written_to(self):
        done = self.trtmc("build", OPTIONS.checkpoint, "-o", "out/x.trtmc",
                          **layer("posix_fallocate", str(self.out), errno.EOPNOTSUPP))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.trtmc("verify", "out/x.trtmc").returncode, 0)

    def test_a_plot_that_finds_no_space_is_said_after_the_figures(self):
        self.build()
        done = self.trtmc("bench", "x.trtmc", "--prefill", "0", "--decode", "1", "--repeat", "1", "--plot",
                          "out/speed.svg", **layer("pwrite", str(self.out), errno.ENOSPC))
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn("out/speed.svg: can't write: No space left on device", done.stderr)
        self.assertIn("\ndecode ", done.stdout)
        self.assertEqual(os.listdir(self.out), [])


class Pull(unittest.TestCase):
    """A download whose partial files fail; the next one goes on or begins anew, and is whole."""

    def setUp(self):
        import hub_case  # pylint: disable=import-outside-toplevel
        hub_case.OPTIONS.bin = OPTIONS.bin
        self.case = hub_case.Case()
        self.case.setUp()
        self.addCleanup(self.case.doCleanups)
        self.id = hub_case.ID

    def test_partial_files_that_cant_be_written_are_said(self):
        for call, number, status in (("pwrite", errno.ENOSPC, 6), ("pwrite", errno.EIO, 4), ("fsync", errno.EIO, 4),
                                     ("posix_fallocate", errno.ENOSPC, 6)):
            with self.subTest(call, number=number):
                self.case.refused(status, os.strerror(number), "pull", self.id, **layer(call, ".incomplete", number))
        self.case.assert_whole(self.case.pull())

    def test_a_partial_file_that_cant_be_read_back_is_said(self):
        self.case.refused(4, UNREADABLE, "pull", self.id, **layer("mmap", ".incomplete", errno.EIO))
        self.case.assert_whole(self.case.pull())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--layer", required=True, type=pathlib.Path)
    parser.add_argument("--checkpoint", required=True, type=pathlib.Path)
    parser.add_argument("--gguf", required=True, type=pathlib.Path)
    parser.add_argument("--hub-tests", required=True, type=pathlib.Path)
    options, rest = parser.parse_known_args()
    for name, value in vars(options).items():
        setattr(OPTIONS, name, value.absolute())
    sys.path.insert(0, str(OPTIONS.hub_tests))
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
