#!/usr/bin/env python3
"""The cache is shared with huggingface_hub: what trtmc pulls its tools find, and the other way round.

    huggingface_test.py --bin DIR [unittest's own arguments]
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

os.environ |= {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1",
               "HF_HUB_DISABLE_UPDATE_CHECK": "1"}
for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_TOKEN", "HF_HUB_DISABLE_SYMLINKS"):
    os.environ.pop(name, None)
try:
    import filelock
    import huggingface_hub
except ImportError:
    print("skipped: this Python has no huggingface_hub")
    sys.exit(77)

from fake_hub import FakeHub, Repository  # noqa: E402

TIMEOUT_S = 60
OPTIONS = argparse.Namespace()
ID = "owner/name"
FILES = {"config.json": b'{"a": 1}', "tokenizer.json": b"{}" * 3000, "model.safetensors": bytes(range(256)) * 40}


class SharedCache(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)
        self.cache = self.work / "hub"
        self.repository = Repository(FILES)
        self.hub = FakeHub({ID: self.repository})
        self.addCleanup(self.hub.__exit__)
        self.environment = {"HOME": str(self.work), "HF_HUB_CACHE": str(self.cache), "HF_ENDPOINT": self.hub.endpoint,
                            "PATH": os.environ["PATH"]}

    def trtmc(self, *arguments, **more):
        done = subprocess.run([OPTIONS.bin / "trtmc", *arguments], capture_output=True, text=True, check=False,
                              env=self.environment | more, cwd=self.work, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def snapshot_download(self, **more):
        return huggingface_hub.snapshot_download(ID, cache_dir=self.cache, endpoint=self.hub.endpoint, token=False,
                                                 **more)

    def test_huggingface_hub_finds_what_trtmc_pulled(self):
        folder = self.trtmc("pull", ID).strip()
        info = huggingface_hub.scan_cache_dir(self.cache)
        self.assertEqual(info.warnings, [])
        (model,) = info.repos
        self.assertEqual((model.repo_id, model.repo_type), (ID, "model"))
        (revision,) = model.revisions
        self.assertEqual((revision.commit_hash, revision.refs), (self.repository.revisions["main"], {"main"}))
        self.assertEqual({file.file_name for file in revision.files}, set(FILES))
        self.assertEqual(model.size_on_disk, sum(map(len, FILES.values())))
        self.assertEqual(self.snapshot_download(local_files_only=True), folder)
        path = huggingface_hub.hf_hub_download(ID, "config.json", cache_dir=self.cache, local_files_only=True)
        self.assertEqual(pathlib.Path(path).read_bytes(), FILES["config.json"])

    def test_huggingface_hub_downloads_nothing_that_trtmc_pulled(self):
        folder = self.trtmc("pull", ID).strip()
        before = len(self.hub.asked("cdn"))
        self.assertEqual(self.snapshot_download(), folder)
        self.assertEqual(len(self.hub.asked("cdn")), before)

    def test_trtmc_uses_what_huggingface_hub_downloaded(self):
        folder = self.snapshot_download()
        before = len(self.hub.asked("cdn"))
        answer = json.loads(self.trtmc("pull", ID, "--json"))
        self.assertEqual((answer["folder"], answer["downloaded_bytes"]), (folder, 0))
        self.assertEqual(len(self.hub.asked("cdn")), before)
        self.assertEqual(self.trtmc("pull", ID, HF_HUB_OFFLINE="1").strip(), folder)

    def test_trtmc_completes_what_huggingface_hub_began(self):
        self.snapshot_download(allow_patterns="*.json")
        answer = json.loads(self.trtmc("pull", ID, "--json"))
        self.assertEqual(answer["downloaded_bytes"], len(FILES["model.safetensors"]))
        self.assertEqual(self.snapshot_download(local_files_only=True), answer["folder"])

    def test_trtmc_waits_for_huggingface_hubs_lock(self):
        self.trtmc("pull", ID)
        (blob,) = [path for path in self.cache.glob("*/blobs/*") if path.read_bytes() == FILES["model.safetensors"]]
        blob.unlink()
        lock = self.cache / ".locks" / "models--owner--name" / f"{blob.name}.lock"
        self.assertTrue(lock.exists())
        with filelock.FileLock(lock):
            process = subprocess.Popen([OPTIONS.bin / "trtmc", "pull", ID], env=self.environment,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            time.sleep(0.7)
            self.assertIsNone(process.poll())
            self.assertFalse(blob.exists())
        _, stderr = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 0, stderr)
        self.assertIn("model.safetensors: waiting for another program that downloads it", stderr)
        self.assertTrue(blob.exists())

    def test_each_sees_what_the_other_removed(self):
        old = self.repository.revisions["main"]
        self.trtmc("pull", ID)
        self.repository.commit("main", FILES | {"config.json": b"{}"})
        self.snapshot_download()
        self.trtmc("rm", f"{ID}@{old}", "--yes")
        info = huggingface_hub.scan_cache_dir(self.cache)
        self.assertEqual(info.warnings, [])
        (revision,) = next(iter(info.repos)).revisions
        info.delete_revisions(revision.commit_hash).execute()
        self.assertEqual(json.loads(self.trtmc("list", "--json"))["checkpoints"], [])

    def test_huggingface_hub_finds_an_unfinished_download(self):
        if not hasattr(huggingface_hub.scan_cache_dir(self.make_cache()), "incomplete_files"):
            self.skipTest("this huggingface_hub does not look for them")
        (self.cache / "models--owner--name" / "blobs").mkdir(parents=True)
        (self.cache / "models--owner--name" / "snapshots").mkdir()
        (self.cache / "models--owner--name" / "blobs" / f"{'0' * 64}.trtmc.incomplete").write_bytes(b"x")
        self.assertEqual(len(huggingface_hub.scan_cache_dir(self.cache).incomplete_files), 1)

    def make_cache(self):
        self.cache.mkdir()
        return self.cache


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    options, rest = parser.parse_known_args()
    OPTIONS.bin = options.bin.resolve()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
