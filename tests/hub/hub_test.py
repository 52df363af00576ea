#!/usr/bin/env python3
"""`trtmc pull`, `list`, `rm` and `build` of a hub id, against a hub of our own (fake_hub.py) and what may go
wrong on the way to it.

    hub_test.py --bin DIR --checkpoint DIR [unittest's own arguments]
"""
import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import time
import unittest

from fake_hub import Cut, Drip, Endless, IgnoreRange, Lie, Redirect, Slow, Status, git_blob_id
from hub_case import CHUNK, CONFIG, FILES, ID, NEEDED, OPTIONS, TIMEOUT_S, WEIGHTS, Case

class Pull(Case):
    def test_puts_what_a_build_needs_into_the_cache(self):
        folder = self.pull()
        self.assertEqual(folder, self.cache / "models--owner--name" / "snapshots" / self.commit)
        self.assert_whole(folder)
        self.assertEqual(os.readlink(folder / "config.json"), f"../../blobs/{git_blob_id(CONFIG)}")
        self.assertEqual(os.readlink(folder / "model.safetensors"),
                         f"../../blobs/{hashlib.sha256(WEIGHTS).hexdigest()}")
        self.assertEqual((self.cache / "models--owner--name/refs/main").read_text(), self.commit)

    def test_fetches_nothing_twice(self):
        self.pull()
        before = len(self.hub.requests)
        self.assert_whole(self.pull())
        self.assertEqual(len(self.hub.requests), before + 1)  # The listing.

    def test_json_names_commit_folder_and_files(self):
        done = self.trtmc("pull", ID, "--json")
        answer = json.loads(done.stdout)
        self.assertEqual(answer["commit"], self.commit)
        self.assertEqual(answer["downloaded_bytes"], sum(len(FILES[name]) for name in NEEDED))
        self.assertEqual({file["name"] for file in answer["files"]}, NEEDED)

    def test_takes_the_revision_asked_for(self):
        old = self.commit
        self.repository.commit("v2", FILES | {"config.json": b'{"v": 2}'})
        self.repository.commit("refs/pr/1", FILES | {"config.json": b'{"pr": 1}'})
        self.assertEqual((self.pull(f"{ID}@v2") / "config.json").read_bytes(), b'{"v": 2}')
        self.assertEqual((self.pull(f"{ID}@refs/pr/1") / "config.json").read_bytes(), b'{"pr": 1}')
        self.assertEqual(self.pull(f"{ID}@{old}").name, old)
        refs = self.cache / "models--owner--name" / "refs"
        self.assertEqual({path.relative_to(refs).as_posix() for path in refs.rglob("*") if path.is_file()},
                         {"v2", "refs/pr/1"})

    def test_large_files_come_in_parallel_ranges(self):
        data = os.urandom(CHUNK + 1000)
        self.repository.commit("main", FILES | {"model.safetensors": data})
        folder = self.pull()
        self.assertEqual((folder / "model.safetensors").read_bytes(), data)
        ranges = sorted(request.headers["range"] for request in self.hub.asked("cdn", "model.safetensors"))
        self.assertEqual(ranges, [f"bytes=0-{CHUNK - 1}", f"bytes={CHUNK}-{CHUNK + 999}"])

    def test_an_empty_file_is_a_file(self):
        self.repository.commit("main", FILES | {"tokenizer_config.json": b""})
        self.assertEqual((self.pull() / "tokenizer_config.json").read_bytes(), b"")

    def test_offline_uses_the_cache_and_asks_nobody(self):
        self.refused(3, "not in the cache", HF_HUB_OFFLINE="1")
        folder = self.pull()
        before = len(self.hub.requests)
        self.assertEqual(self.pull(HF_HUB_OFFLINE="1"), folder)
        self.assertEqual(len(self.hub.requests), before)

    def test_without_symlinks_there_are_copies(self):
        folder = self.pull(HF_HUB_DISABLE_SYMLINKS="1")
        self.assertFalse((folder / "config.json").is_symlink())
        self.assert_whole(folder)

    def test_goes_through_a_proxy(self):
        self.assert_whole(self.pull(HF_ENDPOINT="http://hub.invalid", http_proxy=self.hub.endpoint))

    def test_a_pipe_gets_no_progress(self):
        done = self.trtmc("pull", ID)
        self.assertNotIn("\r", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 2)

    def test_a_terminal_gets_progress(self):
        self.hub.fault("cdn", "model.safetensors", Slow(20000))
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        with subprocess.Popen([OPTIONS.bin / "trtmc", "pull", ID], stdout=subprocess.PIPE, stderr=slave,
                              env=self.environment(), cwd=self.work) as process:
            os.close(slave)
            self.assertEqual(process.wait(TIMEOUT_S), 0)
        shown = os.read(master, 1 << 16).decode()
        self.assertIn("\r\x1b[Kpulling   owner/name@", shown)
        self.assertIn(" %  ", shown)


class Tokens(Case):
    def setUp(self):
        super().setUp()
        self.repository.token = "hf_secret"

    def test_the_token_goes_to_the_hub_and_not_to_the_cdn(self):
        self.assert_whole(self.pull(HF_TOKEN="hf_secret"))
        self.assertEqual({request.token for request in self.hub.asked("hub")}, {"hf_secret"})
        self.assertTrue(self.hub.asked("cdn"))
        self.assertEqual({request.token for request in self.hub.asked("cdn")}, {""})

    def test_the_token_file_is_read(self):
        (self.work / "hf").mkdir()
        (self.work / "hf" / "token").write_text("hf_secret\n")
        self.assert_whole(self.pull())

    def test_a_token_is_not_sent_if_that_is_switched_off(self):
        self.refused(3, "needs a token", HF_TOKEN="hf_secret", HF_HUB_DISABLE_IMPLICIT_TOKEN="1")
        self.assertEqual({request.token for request in self.hub.asked("hub")}, {""})

    def test_a_private_model_is_refused_without_a_token(self):
        self.refused(3, "no such model, or one that needs a token (401)")

    def test_a_wrong_token_is_refused(self):
        done = self.refused(2, "the token is not valid (401)", HF_TOKEN="hf_wrong")
        self.assertNotIn("hf_wrong", done.stderr)

    def test_a_gated_model_says_so(self):
        self.repository.gated = True
        self.refused(2, "access is granted to certain users only (403)", HF_TOKEN="hf_wrong")

    def test_verbose_output_has_no_token(self):
        self.hub.fault("hub", "/api/", Status(503))
        done = self.trtmc("pull", ID, "--verbose", HF_TOKEN="hf_secret")
        self.assertEqual(done.returncode, 0)
        self.assertNotIn("hf_secret", done.stdout + done.stderr)


class Faults(Case):
    def test_a_cut_connection_goes_on_where_it_was(self):
        self.hub.fault("cdn", "model.safetensors", Cut(5000))
        self.assert_whole(self.pull())
        self.assertEqual([request.headers["range"] for request in self.hub.asked("cdn", "model.safetensors")],
                         [f"bytes=0-{len(WEIGHTS) - 1}", f"bytes=5000-{len(WEIGHTS) - 1}"])

    def test_too_many_requests_are_tried_again_when_the_server_says(self):
        self.hub.fault("hub", "/api/", Status(429, {"Retry-After": "1"}))
        start = time.monotonic()
        self.assert_whole(self.pull())
        self.assertGreaterEqual(time.monotonic() - start, 1)

    def test_a_server_in_trouble_is_tried_again(self):
        self.hub.fault("cdn", "model.safetensors", Status(503))
        self.assert_whole(self.pull())

    def test_a_drip_is_no_download(self):
        self.hub.fault("hub", "/api/", Drip())
        self.assert_whole(self.pull(HF_HUB_DOWNLOAD_TIMEOUT="2"))

    def test_a_length_that_is_too_long_is_a_cut(self):
        size = len(WEIGHTS)
        self.hub.fault("cdn", "model.safetensors",
                       Lie(WEIGHTS[:100], {"Content-Length": str(size), "Content-Range": f"bytes 0-{size - 1}/{size}"},
                           206))
        self.assert_whole(self.pull())

    def test_a_file_of_another_length_is_refused(self):
        self.hub.fault("cdn", "model.safetensors", Lie(WEIGHTS + b"x"), times=9)
        self.refused(4, f"a file of {len(WEIGHTS) + 1} bytes, but its list says {len(WEIGHTS)}")

    def test_more_bytes_than_the_list_says_are_refused(self):
        self.hub.fault("cdn", "model.safetensors", Lie(WEIGHTS + b"x", {"Content-Length": None}), times=9)
        self.refused(4, "more bytes than were asked for")

    def test_an_endless_file_is_refused(self):
        self.hub.fault("cdn", "model.safetensors", Endless(), times=9)
        self.refused(4, "model.safetensors: the server sends a file of")

    def test_wrong_bytes_are_refused_and_thrown_away(self):
        for name in ("config.json", "model.safetensors"):  # In the order of their download.
            with self.subTest(name):
                wrong = bytes([FILES[name][0] ^ 1]) + FILES[name][1:]
                self.hub.fault("cdn" if name == "model.safetensors" else "hub", name, Lie(wrong))
                self.refused(4, f"{name}: the bytes hash to ")
                self.assertFalse(list(self.cache.glob(f"*/blobs/{git_blob_id(FILES[name])}*")))
        self.assert_whole(self.pull())

    def test_a_server_without_ranges_gives_the_whole_file(self):
        data = os.urandom(CHUNK + 1000)
        self.repository.commit("main", FILES | {"model.safetensors": data})
        self.hub.fault("cdn", "model.safetensors", IgnoreRange(), times=9)
        self.assertEqual((self.pull() / "model.safetensors").read_bytes(), data)

    def test_redirects_in_a_circle_end(self):
        self.hub.fault("hub", "/api/", Redirect("{hub}/api/models/owner/name/revision/main"), times=99)
        self.refused(4, "redirects more than 10 times")

    def test_a_redirect_to_a_file_is_refused(self):
        self.hub.fault("hub", "/api/", Redirect("file:///etc/passwd"))
        self.refused(4, "expected a web address")

    def test_hostile_names_are_refused(self):
        entry = {"size": 1, "blobId": git_blob_id(b"x")}
        for name in ("../../../evil", "/tmp/evil", "a/../../evil", "evil\n", "tokenizer/../../evil"):
            with self.subTest(name):
                answer = {"sha": self.commit, "siblings": [entry | {"rfilename": name}]}
                self.hub.fault("hub", "/api/", Lie(json.dumps(answer).encode()))
                self.refused(4, "expected a path inside the repository")
        self.assertFalse(list(self.work.rglob("evil*")))

    def test_hostile_answers_are_refused(self):
        for body in (b"", b"<html>", b"[" * 100000, b'{"sha": "../../x", "siblings": []}', b"\xff\xfe",
                     b'{"sha": 1e999}'):
            with self.subTest(body[:20]):
                self.hub.fault("hub", "/api/", Lie(body))
                self.refused(4, "the server's list of files makes no sense")

    def test_an_endless_answer_is_refused(self):
        self.hub.fault("hub", "/api/", Endless())
        self.refused(4, "the server sends more than 8388608 bytes")

    def test_endless_headers_are_no_answer(self):
        self.hub.fault("hub", "/api/", Lie(b"", {f"X-{i}": "x" * 8000 for i in range(60)}))
        self.assert_whole(self.pull())

    def test_an_unknown_model_or_revision_is_not_found(self):
        self.refused(3, "owner/other: no such model", "pull", "owner/other")
        self.refused(3, "owner/name@v9: no such revision", "pull", f"{ID}@v9")

    def test_pickles_are_refused_with_the_reason(self):
        self.repository.commit("main", {"config.json": CONFIG, "pytorch_model.bin": b"x"})
        self.refused(5, "no safetensors; the weights are in another format (pytorch_model.bin)")

    def test_no_server_is_a_sentence(self):
        self.refused(3, "127.0.0.1:9", "pull", ID, HF_ENDPOINT="http://127.0.0.1:9")


class Interrupts(Case):
    def half_pulled(self, data):
        """A pull of `data` as weights that has some of them and needs seconds for the rest."""
        self.repository.commit("main", FILES | {"model.safetensors": data})
        self.hub.fault("cdn", "model.safetensors", Slow(1 << 20))
        process = subprocess.Popen([OPTIONS.bin / "trtmc", "pull", ID], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=self.environment(), cwd=self.work)
        deadline = time.monotonic() + TIMEOUT_S
        while self.arrived(data) < 200000 and time.monotonic() < deadline:
            time.sleep(0.01)
        return process

    def test_ctrl_c_keeps_what_has_arrived(self):
        data = os.urandom(4 << 20)
        with self.half_pulled(data) as process:
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(TIMEOUT_S), 130)
            self.assertIn(b"what has arrived is kept", process.stderr.read())
        self.assertEqual(len(list(self.cache.glob("*/blobs/*.incomplete"))), 1)
        self.assertFalse(list(self.cache.glob("*/snapshots/*")))
        self.assertEqual((self.pull() / "model.safetensors").read_bytes(), data)
        first = self.hub.asked("cdn", "model.safetensors")[-1].headers["range"].removeprefix("bytes=").split("-")[0]
        self.assertGreater(int(first), 100000)
        self.assertFalse(list(self.cache.glob("*/blobs/*.incomplete")))

    def test_a_kill_keeps_it_too(self):
        data = os.urandom(4 << 20)
        with self.half_pulled(data) as process:
            process.kill()
            process.wait(TIMEOUT_S)
        self.assertEqual((self.pull() / "model.safetensors").read_bytes(), data)
        last = self.hub.asked("cdn", "model.safetensors")[-1].headers["range"]
        self.assertFalse(last.startswith("bytes=0-"), last)

    def test_two_at_once_download_once(self):
        data = os.urandom(2 << 20)
        self.repository.commit("main", FILES | {"model.safetensors": data})
        self.hub.fault("cdn", "model.safetensors", Slow(4 << 20))
        processes = [subprocess.Popen([OPTIONS.bin / "trtmc", "pull", ID], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, env=self.environment(), cwd=self.work)
                     for _ in range(2)]
        for process in processes:
            out, err = process.communicate(timeout=TIMEOUT_S)
            self.assertEqual(process.returncode, 0, err)
            self.assertEqual((pathlib.Path(out.decode().strip()) / "model.safetensors").read_bytes(), data)
        self.assertEqual(len(self.hub.asked("cdn", "model.safetensors")), 1)


class ListAndRemove(Case):
    def listed(self):
        return json.loads(self.trtmc("list", "--json").stdout)

    def test_lists_checkpoints_with_revisions_and_sizes(self):
        self.assertEqual(self.listed(), {"checkpoints": [], "bundles": []})
        self.pull()
        (model,) = self.listed()["checkpoints"]
        self.assertEqual(model["id"], ID)
        self.assertEqual(model["bytes"], sum(len(FILES[name]) for name in NEEDED))
        self.assertEqual([(r["commit"], r["refs"], r["files"]) for r in model["revisions"]],
                         [(self.commit, ["main"], len(NEEDED))])
        self.assertIn(f"{ID}  {self.commit[:12]}", self.trtmc("list").stdout)

    def test_a_name_can_not_begin_a_row_of_its_own(self):
        self.pull()
        (self.cache / "models--owner--name/refs/a\nb").write_text(self.commit)
        self.assertIn("  a?b, main\n", self.trtmc("list").stdout)

    def test_listing_and_removing_need_no_hub_and_no_token(self):
        folder = self.pull()
        self.assertIn(ID, self.trtmc("list", HF_TOKEN="a b", HF_ENDPOINT="nowhere").stdout)
        done = self.trtmc("rm", ID, "--yes", HF_TOKEN="a b", HF_ENDPOINT="nowhere")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(folder.exists())

    def test_removes_a_revision_and_keeps_what_another_uses(self):
        self.pull()
        old = self.commit
        new = self.repository.commit("main", FILES | {"config.json": b"{}"})
        folder = self.pull()
        done = self.trtmc("rm", f"{ID}@{old[:12]}", "--yes")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_whole(folder, {name: FILES[name] for name in NEEDED} | {"config.json": b"{}"})
        (model,) = self.listed()["checkpoints"]
        self.assertEqual([revision["commit"] for revision in model["revisions"]], [new])
        self.assertFalse((self.cache / "models--owner--name/blobs" / git_blob_id(CONFIG)).exists())

    def test_a_branch_goes_before_a_commit_and_digits_of_two_commits_are_refused(self):
        snapshots = self.cache / "models--owner--name/snapshots"
        commits = ["abcdef1" + digit * 33 for digit in "123"]
        for commit in commits:
            (snapshots / commit).mkdir(parents=True)
            (snapshots / commit / "config.json").write_text("{}")
        done = self.trtmc("rm", f"{ID}@abcdef1", "--yes")
        self.assertEqual(done.returncode, 2)
        self.assertIn("3 commits begin with abcdef1", done.stderr)
        (snapshots.parent / "refs").mkdir()
        (snapshots.parent / "refs/abcdef1").write_text(commits[2])
        self.assertEqual(self.trtmc("rm", f"{ID}@abcdef1", "--yes").returncode, 0)
        self.assertEqual(sorted(path.name for path in snapshots.iterdir()), commits[:2])

    def test_removes_a_model(self):
        self.pull()
        self.assertEqual(self.trtmc("rm", ID, "--yes").returncode, 0)
        self.assertFalse((self.cache / "models--owner--name").exists())
        self.assertEqual(self.trtmc("rm", ID, "--yes").returncode, 3)

    def test_asks_before_it_removes(self):
        folder = self.pull()
        done = self.trtmc("rm", ID)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--yes", done.stderr)
        self.assert_whole(folder)
        for answer, gone in (("n\n", False), ("y\n", True)):
            master, slave = pty.openpty()
            with subprocess.Popen([OPTIONS.bin / "trtmc", "rm", ID], stdin=slave, stderr=slave,
                                  env=self.environment(), cwd=self.work) as process:
                os.write(master, answer.encode())
                self.assertEqual(process.wait(TIMEOUT_S), 0)
            os.close(slave)
            shown = b""
            with contextlib.suppress(OSError), open(master, "rb", buffering=0) as terminal:
                while piece := terminal.read(1 << 16):  # One read may have the echo of the answer alone.
                    shown += piece
            self.assertIn(f"remove {ID} (1 revision)", shown.decode())
            self.assertEqual(not folder.exists(), gone)

    def test_removes_nothing_else(self):
        (self.work / "notes.txt").write_text("precious")
        (self.work / "folder").mkdir()
        for target, status in (("notes.txt", 2), ("folder", 2), ("absent.trtmc", 3), ("../..", 2), ("/etc/passwd", 2)):
            with self.subTest(target):
                self.assertEqual(self.trtmc("rm", target, "--yes").returncode, status)
        self.assertTrue((self.work / "notes.txt").exists())
        self.assertTrue((self.work / "folder").exists())


class Build(Case):
    def setUp(self):
        super().setUp()
        self.files = {path.name: path.read_bytes() for path in OPTIONS.checkpoint.iterdir() if path.is_file()}
        self.repository.commit("main", self.files)

    def build(self, *arguments, **more):
        done = self.trtmc("build", ID, *arguments, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_builds_what_it_pulls_and_records_the_commit(self):
        self.assertEqual(self.trtmc("build", ID, "--dry-run").returncode, 3)  # Not in the cache.
        done = self.build("-o", "a.trtmc")
        self.assertIn(f"pulling   {ID}@{self.commit[:12]}", done.stderr)
        inspected = json.loads(self.trtmc("inspect", "a.trtmc", "--json").stdout)
        self.assertEqual((inspected["source"], inspected["source_revision"]), (ID, self.commit))
        self.assertIn(f"{ID}@{self.commit}", self.trtmc("inspect", "a.trtmc").stdout)
        self.build("-o", "b.trtmc", HF_HUB_OFFLINE="1")
        self.assertEqual((self.work / "a.trtmc").read_bytes(), (self.work / "b.trtmc").read_bytes())
        self.build("--dry-run")
        listed = json.loads(self.trtmc("list", "--json").stdout)
        self.assertEqual([(b["path"], b["source_revision"]) for b in listed["bundles"]],
                         [("a.trtmc", self.commit), ("b.trtmc", self.commit)])
        self.assertEqual(self.trtmc("rm", "a.trtmc", "--yes").returncode, 0)
        self.assertFalse((self.work / "a.trtmc").exists())

    def test_an_unknown_architecture_is_refused_before_its_weights(self):
        self.repository.commit("main", FILES | {"config.json": b'{"architectures": ["FooForCausalLM"]}'})
        done = self.trtmc("build", ID, "-o", "a.trtmc")
        self.assertEqual(done.returncode, 5)
        self.assertIn("FooForCausalLM", done.stderr)
        self.assertEqual(self.hub.asked("cdn", "model.safetensors"), [])

    def test_a_folder_of_that_name_wins(self):
        (self.work / "owner").mkdir()
        (self.work / "owner" / "name").symlink_to(OPTIONS.checkpoint)
        done = self.build("--dry-run")
        self.assertIn("is here, and used in place of the hub's model", done.stderr)
        self.assertEqual(self.hub.requests, [])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--checkpoint", required=True, type=pathlib.Path)
    options, rest = parser.parse_known_args()
    OPTIONS.__dict__.update({name: path.resolve() for name, path in vars(options).items()})
    # Where a shell runs the tests in the background it has Ctrl-C ignored, and trtmc keeps to that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
