#!/usr/bin/env python3
"""The server under load: many streams at a time, little memory, a short queue, bundles that are loaded again.

    server_load_test.py --bin DIR --bundle FILE [unittest's own arguments]
"""
import asyncio
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/clients"), str(ROOT / "bench")]
from client_case import OPTIONS, Case, main  # noqa: E402  pylint: disable=wrong-import-position
from serve_load import ask  # noqa: E402  pylint: disable=wrong-import-position
from served_model import (GOLDENS, ServedModel, await_that, chat_golden, chat_request,  # noqa: E402  pylint: disable=wrong-import-position
                          completion_request)

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


def requests():
    """Twenty requests that differ in prompt, dialect and sampling, as (path, body)."""
    for i in range(3):
        yield COMPLETIONS, completion_request(i, max_tokens=24, stream=True)
    for name in ("capital", "two_turns", "system"):
        yield CHAT, chat_request(name, stream=True)
    for seed in range(7):
        yield COMPLETIONS, completion_request(seed % 3, max_tokens=16, temperature=1, seed=seed, stream=True)
        yield CHAT, chat_request("system", max_tokens=16, temperature=1, seed=seed, stream=True)


def ask_all(server, wishes, **more):
    async def run():
        return await asyncio.gather(*(ask(server.address, path, body, **more) for path, body in wishes))

    return asyncio.run(run())


def said(stream):
    """What must not depend on company."""
    return stream.text(), stream.finish()


class Load(Case):
    def test_two_hundred_streams_are_each_what_they_are_alone(self):
        wishes = list(requests())
        self.assertEqual(len(wishes), 20)
        alone = [said(ask_all(self.server, [wish])[0]) for wish in wishes]
        for wish, (text, _) in zip(wishes, alone):  # Some are Transformers' own.
            if wish[1]["temperature"] == 0 and wish[0] == COMPLETIONS:
                golden = next(g for g in GOLDENS["prompts"] if g["text"] == wish[1]["prompt"])
                self.assertEqual(text, "".join(golden["pieces"][:24]))
        streams = ask_all(self.server, wishes * 10)
        self.assertEqual(sum(stream.is_whole for stream in streams), 200)
        for i, stream in enumerate(streams):
            self.assertEqual(said(stream), alone[i % 20], wishes[i % 20])
            self.assertEqual(len({chunk["id"] for chunk in stream.chunks()}), 1)
        self.assertEqual(len({stream.chunks()[0]["id"] for stream in streams}), 200)

    def test_nothing_is_left_when_all_is_over(self):
        ask_all(self.server, list(requests()) * 2)
        self.await_no_work()
        descriptors = self.server.descriptors()
        ask_all(self.server, list(requests()) * 4)
        self.assertTrue(await_that(lambda: self.server.descriptors() <= descriptors + 2),
                        f"{self.server.descriptors()} descriptors, {descriptors} before")
        self.await_no_work()


class LittleMemory(Case):
    options = ("--kv-memory", "3MiB")  # Room for about two of the streams below.

    def test_streams_that_do_not_fit_at_once_wait_and_are_the_same(self):
        wishes = [(COMPLETIONS, completion_request(i % 3, max_tokens=64, stream=True)) for i in range(12)]
        for i, stream in enumerate(ask_all(self.server, wishes)):
            self.assertTrue(stream.is_whole)
            self.assertEqual(stream.text(), GOLDENS["prompts"][i % 3]["answer"])

    def test_what_never_fits_is_refused_by_name(self):
        status, _, body = self.server.request("POST", COMPLETIONS, completion_request(0, prompt=[300] * 4000))
        self.assertEqual(status, 400, body)
        self.assertEqual(json.loads(body)["error"]["param"], "prompt")


class ShortQueue(Case):
    options = ("--max-queue", "2", "--kv-memory", "3MiB")

    def test_what_does_not_fit_is_told_to_come_back_and_what_does_is_whole(self):
        wishes = [(COMPLETIONS, completion_request(i % 3, stream=True)) for i in range(48)]
        streams = ask_all(self.server, wishes)
        refused = [stream for stream in streams if stream.status == 429]
        self.assertTrue(refused)
        for stream in refused:
            self.assertGreaterEqual(int(stream.headers["retry-after"]), 1)
            self.assertEqual(json.loads(stream.body)["error"]["type"], "rate_limit_error")
        for i, stream in enumerate(streams):
            if stream.status == 429:
                continue
            self.assertTrue(stream.is_whole)
            self.assertEqual(stream.text(), GOLDENS["prompts"][i % 3]["answer"])
        # And then there is room again.
        self.await_no_work()
        self.assertTrue(ask_all(self.server, wishes[:1])[0].is_whole)


class JumpingClock(unittest.TestCase):
    """Days that come and go with every look at the wall clock; what waits goes by the steady one."""

    @unittest.skipUnless("TRTMC_JUMPING_CLOCK" in os.environ, "ctest has the library")
    def test_streams_do_not_notice(self):
        with ServedModel(OPTIONS.bin / "trtmc", OPTIONS.bundle, preload=os.environ["TRTMC_JUMPING_CLOCK"]) as server:
            dates = {server.request("GET", "/v1/models")[1]["date"].split()[1] for _ in range(40)}
            self.assertGreater(len(dates), 1, "the clock does not jump")
            wishes = [(COMPLETIONS, completion_request(i % 3, stream=True)) for i in range(12)]
            for i, stream in enumerate(ask_all(server, wishes)):
                self.assertTrue(stream.is_whole)
                self.assertEqual(stream.text(), GOLDENS["prompts"][i % 3]["answer"])


class Reload(unittest.TestCase):
    def test_a_bundle_that_is_loaded_again_under_load_loses_no_stream(self):
        with tempfile.TemporaryDirectory() as folder:
            bundle, other = pathlib.Path(folder) / "a.trtmc", pathlib.Path(folder) / "b.trtmc"
            shutil.copyfile(OPTIONS.bundle, bundle)
            with ServedModel(OPTIONS.bin / "trtmc", bundle) as server:
                for count in (1, 2):
                    self.reload_within_streams(server, bundle, other)
                    # A reload that has not begun yet would take the next bundle for its own.
                    self.assertTrue(await_that(lambda: server.log.count("loaded again from") == count), server.log)  # pylint: disable=cell-var-from-loop
                # A damaged one is not taken, and what is there stays.
                other.write_bytes(bundle.read_bytes()[:100_000])
                other.rename(bundle)
                server.signal(signal.SIGHUP)
                self.assertTrue(await_that(lambda: "can't be loaded again" in server.log), server.log)
                answer = server.ask(CHAT, chat_request("capital"))
                self.assertEqual(answer["choices"][0]["message"]["content"].strip(), chat_golden("capital")[0])

    def reload_within_streams(self, server, bundle, other):
        """A new file of the same content comes in the old one's place while streams run."""
        wishes = [(COMPLETIONS, completion_request(i % 3, stream=True)) for i in range(24)]
        shutil.copyfile(OPTIONS.bundle, other)
        done = []

        def on_event(_):
            if not done:
                done.append(True)
                other.rename(bundle)
                server.signal(signal.SIGHUP)

        for i, stream in enumerate(ask_all(server, wishes, on_event=on_event)):
            self.assertTrue(stream.is_whole)
            self.assertEqual(stream.text(), GOLDENS["prompts"][i % 3]["answer"])


if __name__ == "__main__":
    main(__doc__)
