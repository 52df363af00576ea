#!/usr/bin/env python3
"""The server's end under load, and too little memory.

    server_ends_test.py --bin DIR --bundle FILE [unittest's own arguments]
"""
import asyncio
import contextlib
import errno
import json
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/clients"), str(ROOT / "bench")]
from client_case import OPTIONS, main  # noqa: E402  pylint: disable=wrong-import-position
from serve_load import ask  # noqa: E402  pylint: disable=wrong-import-position
from served_model import (GOLDENS, TIMEOUT_S, ServedModel, completion_request, environment,  # noqa: E402  pylint: disable=wrong-import-position
                          greedy)

COMPLETIONS = "/v1/completions"
STREAMS = 32
AT_ONCE_S = 15  # A second for clients to take their last words, and what a busy machine adds.


def stream_all(server, on_all_started, **more):
    """The streams of many clients, or the exception that each met; `on_all_started` is called once each has begun."""
    started = set()

    def on_event(stream):
        started.add(id(stream))
        if len(started) == STREAMS and on_all_started:
            on_all_started.pop()()

    async def run():
        wishes = [completion_request(i % 3, stream=True, **more) for i in range(STREAMS)]
        return await asyncio.gather(*(ask(server.address, COMPLETIONS, wish, on_event=on_event) for wish in wishes),
                                    return_exceptions=True)

    return asyncio.run(run())


class Stop:
    """Two SIGTERM, the second once the first has been heard."""

    def __init__(self, server):
        self.server = server
        self.time = None

    def __call__(self):
        self.server.signal(signal.SIGTERM)
        deadline = time.monotonic() + TIMEOUT_S
        while "stopping: " not in self.server.log and time.monotonic() < deadline:
            time.sleep(0.01)
        self.server.signal(signal.SIGTERM)
        self.time = time.monotonic()

    def seconds_since(self):
        return time.monotonic() - self.time


class Ends(unittest.TestCase):
    def server(self, *options, **more):
        server = ServedModel(OPTIONS.bin / "trtmc", OPTIONS.bundle, *options, **more)
        self.addCleanup(server.kill)
        return server

    def test_sigterm_lets_streams_end_and_takes_no_more(self):
        server = self.server()
        late = []

        def stop():
            server.signal(signal.SIGTERM)
            deadline = time.monotonic() + TIMEOUT_S
            while time.monotonic() < deadline:  # Soon nobody is let in any more.
                try:
                    socket.create_connection(server.address, 1).close()
                except OSError:
                    late.append("refused")
                    return
                time.sleep(0.005)

        for i, stream in enumerate(stream_all(server, [stop])):
            self.assertNotIsInstance(stream, Exception)
            self.assertTrue(stream.is_whole)
            self.assertEqual(stream.text(), GOLDENS["prompts"][i % 3]["answer"])
        self.assertEqual(server.wait(), 0, server.log)
        self.assertEqual(late, ["refused"])

    def test_a_deadline_ends_what_takes_longer(self):
        server = self.server("--drain-seconds", "1")
        streams = stream_all(server, [lambda: server.signal(signal.SIGTERM)], max_tokens=3900, ignore_eos=True)
        for stream in streams:
            self.assertNotIsInstance(stream, Exception)
            error = json.loads(stream.events[-1])["error"]
            self.assertEqual((error["message"], error["type"]), ("the answer was cut off, since the server stops", "server_error"))
        self.assertEqual(server.wait(), -signal.SIGTERM, server.log)
        self.assertNotIn("bug", server.log)

    def test_a_second_sigterm_ends_it_at_once(self):
        server = self.server()
        stop = Stop(server)
        stream_all(server, [stop], max_tokens=3900, ignore_eos=True)
        self.assertEqual(server.wait(), -signal.SIGTERM, server.log)
        self.assertLess(stop.seconds_since(), AT_ONCE_S)

    def opened_once_somebody_reads(self, fifo):
        """The end of `fifo` to write to, which is there once somebody has it open to read."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                self.assertEqual(error.errno, errno.ENXIO)
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)

    def test_a_second_sigterm_waits_for_no_reload(self):
        with tempfile.TemporaryDirectory() as folder:
            keys = pathlib.Path(folder) / "keys"
            keys.touch(0o600)
            keys.write_text("sk-one\n", encoding="utf-8")
            server = self.server("--api-key-file", keys)
            keys.unlink()
            os.mkfifo(keys)  # Nobody writes to it, so that who opens it waits for ever.
            server.signal(signal.SIGHUP)
            self.addCleanup(os.close, self.opened_once_somebody_reads(keys))
            stop = Stop(server)
            stop()
            self.assertEqual(server.wait(), -signal.SIGTERM, server.log)
            self.assertLess(stop.seconds_since(), AT_ONCE_S)

    def test_it_asks_for_the_descriptors_that_its_connections_take(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        server = self.server("--max-connections", "200", before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard)))
        limits = pathlib.Path(f"/proc/{server.process.pid}/limits").read_text(encoding="ascii")
        allowed = int(re.search(r"^Max open files +(\d+)", limits, re.M)[1])
        probes = 64  # docs/operations.md
        self.assertGreaterEqual(allowed, 200 + probes + server.descriptors())
        server.stop()

    def test_a_reload_that_is_asked_for_too_early_waits(self):
        command = [OPTIONS.bin / "trtmc", "serve", *(f"m{i}={OPTIONS.bundle}" for i in range(8)), "--port", "0", "--threads", "1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()) as process:
            for line in process.stderr:
                if line.startswith("loading"):
                    break
            process.send_signal(signal.SIGHUP)
            self.assertTrue(process.stdout.readline().startswith("http://"))
            for line in process.stderr:
                if line.startswith("reloaded"):
                    break
            process.terminate()
            process.communicate(timeout=TIMEOUT_S)
            self.assertEqual(process.returncode, 0)

    def test_after_kill_9_clients_know_and_the_port_is_free(self):
        server = self.server()
        for stream in stream_all(server, [server.process.kill], max_tokens=3900, ignore_eos=True):
            self.assertIsInstance(stream, (OSError, EOFError))
        self.assertEqual(server.wait(), -signal.SIGKILL)
        again = self.server(port=server.address[1])
        self.assertEqual(again.ask(COMPLETIONS, completion_request(0))["choices"][0]["text"], GOLDENS["prompts"][0]["answer"])
        again.stop()


class Memory(unittest.TestCase):
    def start(self, limit):
        """A server under a limit on its addresses, or None and what it said."""
        command = [OPTIONS.bin / "trtmc", "serve", f"tiny={OPTIONS.bundle}", "--port", "0", "--threads", "1", "--log-format", "none"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        try:
            _, log = process.communicate(timeout=3)
        except subprocess.TimeoutExpired:  # It runs.
            process.terminate()
            process.communicate(timeout=TIMEOUT_S)
            return process.returncode, None
        return process.returncode, log

    def test_it_starts_or_says_why_not(self):
        ends = []
        for limit in range(64 << 20, 2 << 30, 96 << 20):
            status, log = self.start(limit)
            ends.append(status)
            if log is None:
                break
            # Below what the system loads a program in, it is the system that says so.
            self.assertTrue(status == 6 and "trtmc: " in log or status == 127, (limit, status, log))
        self.assertEqual(ends[-1], 0, ends)
        self.assertIn(6, ends)

    def test_requests_beyond_the_limit_are_told_so_and_the_next_one_is_answered(self):
        with self.least_server() as server:
            # A body of 600 KB, of which some MB of values are made before it is known that nobody wants them.
            statuses = []
            for _ in range(5):  # On a busy machine the bodies may come one after the other.
                streams = stream_all(server, [], prompt=[300] * 3000, max_tokens=4, unknown=[0] * 200_000)
                for stream in streams:
                    if not isinstance(stream, Exception):  # There may be no memory to say so.
                        self.assert_whole_or_told(stream)
                        statuses.append(stream.status)
                if 503 in statuses:
                    break
            self.assertIn(503, statuses)  # Else there was memory for all.
            self.assertEqual(server.request("GET", "/health/ready")[0], 200)
            answer = server.ask(COMPLETIONS, completion_request(0))
            self.assertEqual(answer["choices"][0]["text"], GOLDENS["prompts"][0]["answer"])

    def least_server(self):
        """A server under about the lowest limit under which one starts."""
        for limit in range(64 << 20, 2 << 30, 16 << 20):
            with contextlib.suppress(AssertionError, OSError):  # The test above has these.
                return ServedModel(OPTIONS.bin / "trtmc", OPTIONS.bundle, "--threads", "1",
                                   before=lambda limit=limit: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        raise AssertionError("no server starts")

    def assert_whole_or_told(self, stream):
        """A stream that found no memory is a 503, or ends with an event of the same error."""
        if stream.status == 200 and stream.is_whole:
            return
        self.assertIn(stream.status, (200, 503))
        last = stream.body if stream.status == 503 else stream.chunks()[-1]
        error = (last if isinstance(last, dict) else json.loads(last))["error"]
        self.assertEqual((error["message"], error["type"]), ("out of memory", "server_error"))


if __name__ == "__main__":
    main(__doc__)
