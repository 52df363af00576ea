#!/usr/bin/env python3
"""`trtmc build` that is stopped from outside: by a signal, by a limit on a file's size. Nothing is left.

    build_signals_test.py --bin DIR --checkpoint DIR [unittest's own arguments]
"""
import argparse
import ctypes
import os
import pathlib
import platform
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

TIMEOUT_S = 60
OPTIONS = argparse.Namespace()


def use_default_signals():
    """What a caller had ignored is ignored by the program too."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def refuse_unnamed_files():
    """open() with O_TMPFILE fails from now on, as on file systems that have no unnamed files."""
    openat = {"x86_64": 257, "aarch64": 56}[platform.machine()]
    load, equal, bits, answer = 0x20, 0x15, 0x45, 0x06  # Instructions of a seccomp filter.
    program = b"".join(struct.pack("HBBI", *instruction) for instruction in (
        (load, 0, 0, 0),  # The number of the call.
        (equal, 0, 3, openat),
        (load, 0, 0, 32),  # Its third argument.
        (bits, 0, 1, os.O_TMPFILE & ~os.O_DIRECTORY),
        (answer, 0, 0, 0x00050000 | 95),  # EOPNOTSUPP.
        (answer, 0, 0, 0x7FFF0000)))  # Go on.
    buffer = ctypes.create_string_buffer(program)
    head = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, head, 0, 0):  # No new privileges; the filter.
        raise OSError(ctypes.get_errno(), "no filter on system calls")


class Build(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, before=use_default_signals, **more):
        return subprocess.Popen([OPTIONS.bin / "trtmc", "build", OPTIONS.checkpoint, "-o", "x.trtmc"],
                                cwd=self.folder, stderr=subprocess.PIPE, preexec_fn=before, **more)

    def stop_in_the_middle(self, number):
        """The exit status of a build that got the signal while it wrote."""
        def before():
            use_default_signals()
            refuse_unnamed_files()

        for _ in range(20):
            process = self.start(before)
            while process.poll() is None and not os.listdir(self.folder):
                time.sleep(0.0005)
            self.assertTrue(os.listdir(self.folder)[0].startswith((".x.trtmc.partial-", "x.trtmc")))
            process.send_signal(number)
            process.communicate(timeout=TIMEOUT_S)
            if process.returncode != 0:
                return process.returncode
            os.remove(self.folder / "x.trtmc")  # It was quicker.
        return self.fail("each build was quicker than the signal")

    def test_every_signal_that_ends_it_removes_the_named_file_of_a_poor_file_system(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM),
                               (signal.SIGHUP, -signal.SIGHUP)):
            with self.subTest(number):
                self.assertEqual(self.stop_in_the_middle(number), status)
                self.assertEqual(os.listdir(self.folder), [])

    def test_a_kill_leaves_no_file_of_that_name_and_the_next_build_works(self):
        for before in (use_default_signals, refuse_unnamed_files):
            with self.subTest(before.__name__):
                for _ in range(20):
                    process = self.start(before)
                    process.stderr.readline()  # "reading".
                    time.sleep(0.003)
                    process.kill()
                    process.communicate(timeout=TIMEOUT_S)
                    if not (self.folder / "x.trtmc").exists():
                        break
                    os.remove(self.folder / "x.trtmc")  # It was quicker.
                else:
                    self.fail("each build was quicker than the kill")
                process = self.start(before)
                self.assertEqual(process.communicate(timeout=TIMEOUT_S)[1].count(b"100 %"), 1)
                verify = subprocess.run([OPTIONS.bin / "trtmc", "verify", "x.trtmc"], cwd=self.folder, check=False,
                                        capture_output=True)
                self.assertEqual(verify.returncode, 0, verify.stderr)
                os.remove(self.folder / "x.trtmc")

    def test_a_limit_on_a_files_size_is_a_sentence(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))

        process = self.start(limit)
        errors = process.communicate(timeout=TIMEOUT_S)[1].decode()
        self.assertEqual(process.returncode, 6)
        self.assertRegex(errors, r"\ntrtmc: x\.trtmc: can't reserve \d+ bytes: File too large\n$")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_reader_of_its_messages_that_leaves_does_not_end_it(self):
        process = self.start()
        process.stderr.close()
        self.assertEqual(process.wait(TIMEOUT_S), 0)
        self.assertEqual(os.listdir(self.folder), ["x.trtmc"])

    def test_a_signal_that_the_caller_ignores_stays_ignored(self):
        process = self.start(lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.stderr.readline()  # "reading".
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 0)


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
