"""`trtmc serve` as a process with a model, for the tests of clients; and what Transformers says of the embedded model."""
import base64
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import packed  # noqa: E402  pylint: disable=wrong-import-position

GOLDENS = json.loads((pathlib.Path(__file__).resolve().parent / "goldens.json").read_text(encoding="utf-8"))
MODEL = "tiny"
TIMEOUT_S = 60
START_S = 60


def environment():
    keep = {name: value for name, value in os.environ.items()
            if name.startswith(("ASAN_", "UBSAN_", "TSAN_", "LSAN_"))}
    return keep | {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}


class ServedModel:
    """A server on a free port of loopback. `log` is what it has written to standard error."""

    def __init__(self, program, bundle, *options, port=0, before=None, preload=None):
        self.process = subprocess.Popen([program, "serve", f"{MODEL}={bundle}", "--port", str(port), "--kv-type",
                                         "f32", *options],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=environment() | ({"LD_PRELOAD": preload} if preload else {}), preexec_fn=before)
        self.lines = []
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()
        watchdog = threading.Timer(START_S, self.process.kill)
        watchdog.start()
        self.url = self.process.stdout.readline().strip()
        watchdog.cancel()
        if not self.url:
            self.kill()
            raise AssertionError(f"the server did not start: {self.log}")
        parts = urllib.parse.urlsplit(self.url)
        self.address = (parts.hostname, parts.port)
        # It listens before it has read its models.
        if not await_that(lambda: self.request("GET", "/health/ready")[0] == 200, START_S):
            self.kill()
            raise AssertionError(f"the server did not become ready: {self.log}")

    def read_log(self):
        for line in self.process.stderr:
            self.lines.append(line)

    @property
    def log(self):
        return "".join(self.lines)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, timeout=TIMEOUT_S):
        """The exit status."""
        status = self.process.wait(timeout)
        self.reader.join(timeout)
        self.process.stdout.close()
        self.process.stderr.close()
        return status

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        with contextlib.suppress(ValueError):  # Closed already.
            self.wait()

    def stop(self):
        """Ends the server as an operator does. It must end well, and must not have met a bug of its own."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        try:
            status = self.wait()
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"SIGTERM did not end the server: {self.log}") from None
        except ValueError:  # Ended and waited for before.
            return
        if status != 0 or "bug" in self.log:
            raise AssertionError(f"the server ended with {status}: {self.log}")

    def request(self, method, path, body=None, headers=None, timeout=TIMEOUT_S):
        """Status, headers, body of one request on a connection of its own."""
        connection = http.client.HTTPConnection(*self.address, timeout=timeout)
        with contextlib.closing(connection):
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
                headers = {"Content-Type": "application/json"} | (headers or {})
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.headers, response.read()

    def ask(self, path, body):
        """The JSON of an answer that must come."""
        status, _, text = self.request("POST", path, body)
        if status != 200:
            raise AssertionError(f"{status}: {text.decode()}")
        return json.loads(text)

    def metrics(self):
        """Name with labels -> number, of all that /metrics says."""
        status, _, text = self.request("GET", "/metrics")
        if status != 200:
            raise AssertionError(f"/metrics: {status}")
        return {name: float(value) for name, value in re.findall(r"^([^#\s].*) (\S+)$", text.decode(), re.M)}

    def memory(self):
        """Resident bytes."""
        pages = int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def events(body):
    """The data of server-sent events, as JSON but for the last, which must be [DONE]; comments are left out."""
    data = [line.removeprefix("data: ") for line in body.decode().split("\n") if line.startswith("data: ")]
    if not data or data[-1] != "[DONE]":
        raise AssertionError(f"the stream has no end: {body[-300:]}")
    return [json.loads(text) for text in data[:-1]]


def greedy(**more):
    return {"model": MODEL, "temperature": 0} | more


def chat_request(name, **more):
    """The request of a conversation of goldens.json, greedy."""
    golden = GOLDENS["conversations"][name]
    return greedy(date=GOLDENS["date"], max_tokens=GOLDENS["max_tokens"], **golden["request"]) | more


def chat_golden(name):
    """What the answer has to be: content, reasoning, prompt tokens, completion tokens."""
    golden = GOLDENS["conversations"][name]
    text, reasoning = golden["answer"], None
    if text.startswith("<think>"):
        reasoning, text = text.removeprefix("<think>").split("</think>")
    return text.strip(), reasoning and reasoning.strip(), golden["prompt_tokens"], len(golden["answer_ids"])


def completion_request(index, **more):
    return greedy(prompt=GOLDENS["prompts"][index]["text"], max_tokens=GOLDENS["max_tokens"]) | more


def await_that(condition, seconds=20):
    """Waits until `condition()` holds; whether it does."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def work_left(server):
    """The gauges of what was asked that are not 0. A sequence ends a moment after the last byte of its answer was read, so that
    one look says nothing: await that there are none."""
    metrics = server.metrics()
    names = (f'trtmc_{name}{{model="{MODEL}"}}' for name in ("requests_queued", "sequences_running", "kv_blocks_used"))
    return {name: metrics[name] for name in names if metrics[name] != 0}


def golden_file(name):
    """A golden of tests/golden, packed or not."""
    return json.loads(packed.read_text(ROOT / "tests/golden" / name))


def floats(array):
    """The numbers of an array of a golden, in one list."""
    data = base64.b64decode(array["data"])
    if array["dtype"] != "f32":
        raise ValueError(array["dtype"])
    return struct.unpack(f"<{len(data) // 4}f", data)
