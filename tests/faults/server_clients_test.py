#!/usr/bin/env python3
"""Clients that misbehave: slow, gone, half, huge, wrong. Only they suffer from it; the server goes on.

    server_clients_test.py --bin DIR --bundle FILE [unittest's own arguments]
"""
import contextlib
import json
import pathlib
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "clients"))
from client_case import Case, main  # noqa: E402  pylint: disable=wrong-import-position
from served_model import (GOLDENS, MODEL, TIMEOUT_S, await_that, chat_golden, chat_request,  # noqa: E402  pylint: disable=wrong-import-position
                          completion_request)

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def head(path, length, *more):
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: a", "Content-Type: application/json",
                        f"Content-Length: {length}", *more, "", ""]).encode()


def request_bytes(path, body):
    data = json.dumps(body).encode()
    return head(path, len(data)) + data


class Connections(Case):
    def connect(self, receive_bytes=None):
        connection = socket.socket()
        self.addCleanup(connection.close)
        if receive_bytes:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        connection.settimeout(TIMEOUT_S)
        connection.connect(self.server.address)
        return connection

    def running(self):
        return self.server.metrics()[f'trtmc_sequences_running{{model="{MODEL}"}}']

    def assert_it_goes_on(self):
        answer = self.server.ask(CHAT, chat_request("capital"))
        self.assertEqual(answer["choices"][0]["message"]["content"].strip(), chat_golden("capital")[0])


class SlowReaders(Connections):
    options = ("--max-unsent", "64KiB")

    def test_they_are_cut_off_and_cost_nobody_else_anything(self):
        # More than the system itself keeps for a connection: about 20 KB a step.
        long = completion_request(0, n=16, max_tokens=2000, ignore_eos=True, logprobs=20, stream=True)
        connections = [self.connect(receive_bytes=4096) for _ in range(2)]
        before = self.server.memory()
        for connection in connections:
            connection.sendall(request_bytes(COMPLETIONS, long))
        self.assertTrue(await_that(lambda: self.running() == 32))
        for index in range(3):  # Beside them.
            answer = self.server.ask(COMPLETIONS, completion_request(index))
            self.assertEqual(answer["choices"][0]["text"], GOLDENS["prompts"][index]["answer"])
        # What they don't read piles up; then they are cut off, long before their answers' end.
        self.assertTrue(await_that(lambda: self.running() == 0, 30), "slow readers still run")
        self.assertLess(self.server.memory() - before, 64 << 20)
        for connection in connections:
            received = b""
            with contextlib.suppress(ConnectionError):
                while piece := connection.recv(1 << 16):
                    received += piece
            self.assertNotIn(b"[DONE]", received)
        self.assert_it_goes_on()

    def test_who_reads_slowly_enough_gets_all(self):
        """Less than what may wait, read in small pieces."""
        connection = self.connect(receive_bytes=4096)
        connection.sendall(request_bytes(COMPLETIONS, completion_request(1, stream=True)))
        received = b""
        while b"[DONE]" not in received:
            piece = connection.recv(512)
            self.assertTrue(piece, "cut off")
            received += piece
            time.sleep(0.002)
        texts = [json.loads(line[6:])["choices"][0]["text"] for line in received.decode().split("\n")
                 if line.startswith("data: {")]
        self.assertEqual("".join(texts), GOLDENS["prompts"][1]["answer"])


class VanishingClients(Connections):
    def vanish(self, stream, reset):
        body = completion_request(0, max_tokens=3000, ignore_eos=True, stream=stream)
        connections = [self.connect() for _ in range(40)]
        for connection in connections:
            connection.sendall(request_bytes(COMPLETIONS, body))
        if stream:
            for connection in connections:
                self.assertTrue(connection.recv(64))
        self.assertTrue(await_that(lambda: self.running() > 0))
        for connection in connections:
            if reset:  # Close with RST, not FIN.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        self.assertTrue(await_that(lambda: self.running() == 0, 20), "answers to nobody still run")

    def test_their_answers_end(self):
        descriptors = self.server.descriptors()
        for stream in (True, False):
            for reset in (True, False):
                with self.subTest(stream=stream, reset=reset):
                    self.vanish(stream, reset)
        self.assertTrue(await_that(lambda: self.server.descriptors() <= descriptors + 1), "connections are kept")
        self.await_no_work()
        self.assert_it_goes_on()


class Bytes(Connections):
    def status_of(self, data, close_writing=False):
        """The status that `data` gets; None if the connection is closed without."""
        connection = self.connect()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # Refused before all was sent.
            connection.sendall(data)
            if close_writing:
                connection.shutdown(socket.SHUT_WR)
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while b"\r\n" not in received and (piece := connection.recv(4096)):
                received = (received + piece).removeprefix(CONTINUE)
        return int(received.split()[1]) if received else None

    def test_who_has_finished_sending_gets_an_answer(self):
        whole = request_bytes(CHAT, chat_request("capital"))
        self.assertEqual(self.status_of(whole, close_writing=True), 200)
        self.assertIsNone(self.status_of(whole[:-1], close_writing=True))
        self.assert_it_goes_on()

    def test_half_requests_cost_nothing(self):
        whole = request_bytes(CHAT, chat_request("capital"))
        connections = []
        for cut in (1, 20, len(whole) // 2, len(whole) - 1):
            for _ in range(10):
                connections.append(self.connect())
                connections[-1].sendall(whole[:cut])
        self.assert_it_goes_on()
        connections[-1].sendall(whole[-1:])  # One of them goes on.
        self.assertIn(b" 200 ", connections[-1].recv(4096))
        for connection in connections[:-1]:
            connection.close()
        self.assert_it_goes_on()

    def test_floods_are_refused(self):
        for what, data, statuses in [
                ("many headers", head(CHAT, 0, *(f"X-{i}: {'x' * 50}" for i in range(20_000))), {431}),
                ("one long header", head(CHAT, 0, "X: " + "x" * (1 << 20)), {431}),
                ("a long target", b"GET /" + b"x" * (1 << 20) + b" HTTP/1.1\r\n\r\n", {414, 431}),
                ("a body said to be huge", head(CHAT, 1 << 40), {413}),
                ("a huge body", head(CHAT, 64 << 20) + b"x" * (64 << 20), {413}),
                ("a length that is none", head(CHAT, "9" * 40), {400, 413}),
                ("a negative length", head(CHAT, -1), {400}),
                ("two lengths", head(CHAT, 5, "Content-Length: 6") + b"12345", {400}),
                ("no HTTP", b"\x16\x03\x01" + bytes(200) + b"\r\n\r\n", {400, None})]:
            with self.subTest(what):
                self.assertIn(self.status_of(data), statuses)
        self.assert_it_goes_on()

    def refused(self, path, body, param=""):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        status, _, text = self.server.request("POST", path, data, {"Content-Type": "application/json"})
        self.assertEqual(status, 400, text)
        error = json.loads(text)["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        if param != "":
            self.assertEqual(error["param"], param)

    def test_what_is_no_request_is_refused(self):
        for path in (CHAT, COMPLETIONS):
            for what, body in [("nothing", b""), ("no JSON", b"{"), ("two", b"{}{}"), ("no object", b"[]"),
                               ("null", b"null"), ("deep arrays", b"[" * 100_000), ("deep objects", b'{"a":' * 100_000),
                               ("deep messages", b'{"messages":' + b"[" * 5000 + b"]" * 5000 + b"}"),
                               ("no UTF-8", b'{"prompt": "\xff\xfe", "messages": [{"role": "user", "content": "\xc3\x28"}]}'),
                               ("half a surrogate", b'{"prompt": "\\ud800", "messages": [{"role": "user", "content": "\\ud800"}]}'),
                               ("a large number", b'{"prompt": "a", "messages": [{"role": "user", "content": "a"}], "max_tokens": 1e999}')]:
                with self.subTest(what, path=path):
                    self.refused(path, body)
        self.assert_it_goes_on()

    def test_wrong_types_are_refused_by_name(self):
        hello = {"messages": [{"role": "user", "content": "Hello"}]}
        for field, value in [("messages", {}), ("messages", "x"), ("temperature", "warm"), ("temperature", []), ("max_tokens", 1.5),
                             ("n", "2"), ("stream", "yes"), ("stop", {"a": 1}), ("seed", "x"), ("tools", {}),
                             ("logit_bias", []), ("model", 7), ("stream_options", []), ("chat_template_kwargs", 3)]:
            with self.subTest(field, value=value):
                self.refused(CHAT, hello | {field: value}, field)
        for field, value in [("prompt", {}), ("prompt", 7), ("prompt", []), ("echo", 1), ("logprobs", "5"), ("max_tokens", -1)]:
            with self.subTest(field, value=value):
                self.refused(COMPLETIONS, {"prompt": "x"} | {field: value}, field)

    def test_many_wrong_ones_at_a_time(self):
        statuses = []
        bodies = [b"{", b"[" * 10_000, b'{"messages": 1}', b'{"prompt": "\xff"}']

        def client(index):
            for i in range(20):
                statuses.append(self.server.request("POST", CHAT, bodies[(index + i) % 4])[0])

        threads = [threading.Thread(target=client, args=(i,)) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(statuses, [400] * 320)
        self.assert_it_goes_on()


if __name__ == "__main__":
    main(__doc__)
