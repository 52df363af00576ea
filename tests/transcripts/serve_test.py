#!/usr/bin/env python3
"""`trtmc serve` from outside: its start, its end, its keys, its lines.

    serve_test.py --bin DIR --bundle FILE [unittest's own arguments]
"""
import argparse
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

TIMEOUT_S = 120
OPTIONS = argparse.Namespace()

REST_OF_REQUEST = b'{"prompt": "Hello"}'


def await_text(read, accepts, what):
    """The text that read() gives once accepts() its lines."""
    deadline = time.monotonic() + TIMEOUT_S / 4
    while not accepts((text := read()).splitlines()):
        if time.monotonic() > deadline:
            raise AssertionError(f"no {what} in\n{text}")
        time.sleep(0.01)
    return text


class Server:
    """A server of the embedded model, called "tiny", on a port that is free."""

    def __init__(self, *arguments, environment=None, bundle=None):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [OPTIONS.bin / "trtmc", "serve", bundle or f"tiny={OPTIONS.bundle}", *arguments], stdout=subprocess.PIPE,
            stderr=self.log, env={**os.environ, "TRTMC_PORT": "0", **(environment or {})})
        self.url = self.process.stdout.readline().decode().strip()
        self.port = int(self.url.rpartition(":")[2] or 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(TIMEOUT_S)
        self.process.stdout.close()
        self.log.close()

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def await_metrics(self, line):
        """What /metrics says once it has this line: an answer ends a moment after its client has gone."""
        return await_text(lambda: self.ask("GET", "/metrics")[2].decode(), lambda lines: line in lines, line)

    def half_request(self):
        """A connection whose request has begun, as the server has said: it waits for the body, REST_OF_REQUEST."""
        connection = socket.create_connection(("127.0.0.1", self.port), TIMEOUT_S)
        connection.sendall(b"POST /tokenize HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
                           % len(REST_OF_REQUEST))
        received = b""
        while not received.endswith(b"\r\n\r\n"):
            received += connection.recv(1)
        assert received.startswith(b"HTTP/1.1 100"), received
        return connection

    def stop(self, *signals):
        for number in signals:
            self.process.send_signal(number)
        return self.process.wait(TIMEOUT_S)

    def lines(self):
        self.log.seek(0)
        return self.log.read().decode().splitlines()

    def await_line(self, accepts, what):
        await_text(lambda: "\n".join(self.lines()), lambda lines: any(map(accepts, lines)), what)


def fails(*arguments):
    done = subprocess.run([OPTIONS.bin / "trtmc", "serve", *arguments], capture_output=True, timeout=TIMEOUT_S,
                          check=False)
    return done.returncode, done.stderr.decode().splitlines()[0]


class Serve(unittest.TestCase):
    def test_it_prints_its_url_and_answers(self):
        with Server() as server:
            self.assertRegex(server.url, r"^http://127\.0\.0\.1:\d+$")
            status, _, body = server.ask("GET", "/v1/models")
            self.assertEqual((status, json.loads(body)["data"][0]["id"]), (200, "tiny"))

    def test_a_model_is_called_as_its_checkpoint(self):
        with Server(bundle=OPTIONS.bundle) as server:
            self.assertEqual(json.loads(server.ask("GET", "/v1/models")[2])["data"][0]["id"], "smollm3-tiny")

    def test_both_signals_end_it_with_success(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with Server() as server:
                server.ask("GET", "/v1/models")
                self.assertEqual(server.stop(number), 0)

    def test_a_request_that_runs_is_answered_before_the_end(self):
        with Server() as server, server.half_request() as connection:
            server.process.send_signal(signal.SIGTERM)
            connection.sendall(REST_OF_REQUEST)
            answer = connection.makefile("rb").read()
            self.assertTrue(answer.startswith(b"HTTP/1.1 200"), answer)
            self.assertEqual(server.process.wait(TIMEOUT_S), 0)

    def test_a_stream_that_runs_is_sent_to_its_end(self):
        with Server() as server:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT_S)
            connection.request("POST", "/v1/completions", json.dumps(
                {"prompt": "Hello", "max_tokens": 50, "ignore_eos": True, "stream": True}))
            answer = connection.getresponse()
            answer.readline()
            server.process.send_signal(signal.SIGTERM)
            self.assertTrue(answer.read().endswith(b"data: [DONE]\n\n"))
            connection.close()
            self.assertEqual(server.process.wait(TIMEOUT_S), 0)

    def test_who_goes_away_costs_nothing_more(self):
        with Server() as server:
            for stream in (True, False):
                body = json.dumps({"prompt": "Hello", "max_tokens": 4000, "ignore_eos": True, "stream": stream}).encode()
                with socket.create_connection(("127.0.0.1", server.port), TIMEOUT_S) as connection:
                    connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b"
                                       % (len(body), body))
                    if stream:
                        connection.recv(1)
                    server.await_metrics("trtmc_http_requests_in_flight 2")
                server.await_metrics("trtmc_http_requests_in_flight 1")
            metrics = server.await_metrics('trtmc_answers_total{model="tiny",reason="cancelled"} 2')
            self.assertIn('trtmc_answers_total{model="tiny",reason="length"} 0', metrics.splitlines())

    def test_a_second_signal_ends_it_at_once(self):
        with Server("--drain-seconds", "3600") as server, server.half_request():
            server.process.send_signal(signal.SIGTERM)
            server.await_line(lambda line: line.startswith("stopping"), "word of an end")
            self.assertEqual(server.stop(signal.SIGTERM), -signal.SIGTERM)

    def test_the_deadline_ends_it(self):
        with Server("--drain-seconds", "0") as server, server.half_request():
            self.assertEqual(server.stop(signal.SIGINT), 130)

    def test_a_hangup_does_not_end_it(self):
        with Server() as server:
            server.process.send_signal(signal.SIGHUP)
            self.assertEqual(server.ask("GET", "/v1/models")[0], 200)
            self.assertEqual(server.stop(signal.SIGTERM), 0)

    def test_keys_let_in(self):
        with tempfile.TemporaryDirectory() as folder:
            keys = pathlib.Path(folder) / "keys"
            keys.write_text("# ours\nsk-1\nsk-2\n", encoding="utf-8")
            keys.chmod(0o600)
            with Server("--api-key-file", keys) as server:
                self.assertEqual(server.ask("GET", "/v1/models", Authorization="Bearer sk-2")[0], 200)
                status, headers, body = server.ask("GET", "/v1/models", Authorization="Bearer sk-3")
                self.assertEqual((status, headers["WWW-Authenticate"]), (401, "Bearer"))
                self.assertEqual(json.loads(body)["error"]["code"], "invalid_api_key")

    def test_a_hangup_reads_the_keys_again(self):
        with tempfile.TemporaryDirectory() as folder:
            keys = pathlib.Path(folder) / "keys"
            keys.write_text("old\n", encoding="utf-8")
            keys.chmod(0o600)
            with Server("--api-key-file", keys) as server:
                for text, what in (("new\n", "read again"), ("", "as before")):  # A file without a key is not taken.
                    keys.write_text(text, encoding="utf-8")
                    server.process.send_signal(signal.SIGHUP)
                    server.await_line(lambda line, end=f", keys {what}": line.endswith(end), f"keys {what}")
                    self.assertEqual(server.ask("GET", "/v1/models", Authorization="Bearer new")[0], 200)
                self.assertEqual(server.ask("GET", "/v1/models", Authorization="Bearer old")[0], 401)

    def test_lines_on_requests_have_nothing_of_what_was_asked(self):
        with Server("--log-format", "json") as server:
            server.ask("GET", "/health/ready")
            server.ask("POST", "/v1/nothing?q=secret", b"secret", X_Request_Id="mine-1")
            server.stop(signal.SIGTERM)
            lines = [json.loads(line) for line in server.lines()]
            self.assertEqual([(line["id"], line["path"], line["status"]) for line in lines if "message" not in line],
                             [("mine-1", "/v1/nothing", 404)])
            self.assertFalse(any("secret" in line for line in server.lines()))
        with Server("--log-format", "none") as server:
            server.ask("GET", "/")
            server.stop(signal.SIGTERM)
            self.assertFalse(any("GET" in line for line in server.lines()))

    def test_the_environment_and_limits_apply(self):
        with Server(environment={"TRTMC_MAX_BODY": "1KiB"}) as server:
            self.assertEqual(server.ask("POST", "/v1/models", b"x" * 1024)[0], 405)
            self.assertEqual(server.ask("POST", "/v1/models", b"x" * 1025)[0], 413)

    def test_tls(self):
        if not (shutil.which("openssl") and shutil.which("curl")):
            self.skipTest("there is no openssl or no curl here")
        with tempfile.TemporaryDirectory() as folder:
            files = {name: f"{folder}/{name}.pem" for name in ("cert", "key")}
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                            "-keyout", files["key"], "-out", files["cert"], "-days", "1", "-subj", "/CN=localhost",
                            "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
            with Server("--tls-cert", files["cert"], "--tls-key", files["key"]) as server:
                done = subprocess.run(["curl", "--silent", "--cacert", files["cert"], f"{server.url}/v1/models"],
                                      capture_output=True, timeout=TIMEOUT_S, check=True)
                self.assertEqual(json.loads(done.stdout)["data"][0]["id"], "tiny")

    def test_what_is_wrong_is_said_before_a_model_is_read(self):
        tiny = f"tiny={OPTIONS.bundle}"
        self.assertEqual(fails(tiny, "--tls-cert", "x"), (2, "trtmc: --tls-cert is given without --tls-key"))
        self.assertEqual(fails(tiny, "--api-key-file", "/no/such")[0], 3)
        self.assertEqual(fails("/no/such.trtmc")[0], 3)
        self.assertEqual(fails(tiny, tiny), (2, f"trtmc: {OPTIONS.bundle} and {OPTIONS.bundle}: both are called \"tiny\""))
        self.assertEqual(fails("=x")[0], 2)
        with Server() as server:
            self.assertEqual(fails(tiny, "--port", str(server.port)),
                             (6, f"trtmc: 127.0.0.1:{server.port}: the port is taken"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--bundle", required=True, type=pathlib.Path)
    options, rest = parser.parse_known_args()
    OPTIONS.__dict__.update(vars(options))
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
