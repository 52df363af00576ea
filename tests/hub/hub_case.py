"""A test that has a hub of our own, a cache of its own, and trtmc to run with both."""
import argparse
import hashlib
import os
import pathlib
import subprocess
import tempfile
import unittest

from fake_hub import FakeHub, Repository

TIMEOUT_S = 60
OPTIONS = argparse.Namespace()
ID = "owner/name"
CHUNK = 32 << 20  # As src/hub/download.h.
CONFIG = b'{"architectures": ["SmolLM3ForCausalLM"]}'
WEIGHTS = bytes(range(256)) * 40
FILES = {"config.json": CONFIG, "tokenizer.json": b"{}" * 3000, "model.safetensors": WEIGHTS,
         "README.md": b"---\nlicense: mit\n---\n", "vocab.json": b"{}", "onnx/model.onnx": b"x"}
NEEDED = {"config.json", "tokenizer.json", "model.safetensors", "README.md"}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)
        self.cache = self.work / "hf" / "hub"
        self.repository = Repository(FILES)
        self.hub = FakeHub({ID: self.repository})
        self.addCleanup(self.hub.__exit__)

    @property
    def commit(self):
        return self.repository.revisions["main"]

    def environment(self, **more):
        keep = {name: value for name, value in os.environ.items()
                if name.startswith(("ASAN_", "UBSAN_", "TSAN_", "LSAN_", "PATH"))}
        return keep | {"HOME": str(self.work), "HF_HOME": str(self.work / "hf"), "HF_ENDPOINT": self.hub.endpoint} | more

    def trtmc(self, *arguments, **more):
        return subprocess.run([OPTIONS.bin / "trtmc", *arguments], capture_output=True, text=True, check=False,
                              cwd=self.work, env=self.environment(**more), timeout=TIMEOUT_S, stdin=subprocess.DEVNULL)

    def pull(self, *arguments, **more):
        """The snapshot's folder of a pull that succeeds."""
        done = self.trtmc("pull", *(arguments or [ID]), **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return pathlib.Path(done.stdout.removesuffix("\n"))

    def refused(self, status, text, *arguments, **more):
        done = self.trtmc(*(arguments or ["pull", ID]), **more)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn(text, done.stderr)
        self.assertNotIn("a bug of trtmc", done.stderr)
        self.assertFalse((self.cache / "models--owner--name" / "snapshots").exists(), "a snapshot of a failure")
        return done

    def assert_whole(self, folder, files=None):
        files = files or {name: FILES[name] for name in NEEDED}
        self.assertEqual({path.name for path in folder.iterdir()}, set(files))
        for name, data in files.items():
            self.assertEqual((folder / name).read_bytes(), data, name)

    def arrived(self, data):
        """How much of `data` an unfinished download has: the count behind the bytes (src/hub/partial_file.h)."""
        for path in self.cache.glob(f"*/blobs/{hashlib.sha256(data).hexdigest()}*.incomplete"):
            return int.from_bytes(path.read_bytes()[len(data):], "little")
        return 0
