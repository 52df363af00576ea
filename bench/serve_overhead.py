#!/usr/bin/env python3
"""What a step of the engine costs, and what it costs while its tokens go to as many streams.

    serve_overhead.py TRTMC BUNDLE [--streams 64] [--tokens 192] [--threads 1] [--repeat 3]

Three ways to the same steps, as many sequences of as many tokens: `trtmc bench` (the executor alone), one request for so
many answers that comes as a whole (the engine, and nothing to send), and a stream for each. The latter two by one server,
steps and seconds from its /metrics. With a thread fewer than cores, as beside a GPU, the server has a core of its own; the
client, which reads and looks at nothing, shares it. CPU is that of all threads but those that compute.
"""
import argparse
import contextlib
import http.client
import json
import pathlib
import random
import re
import selectors
import socket
import statistics
import subprocess
import sys
import time

PROMPT_TOKENS = 32


def metrics(address):
    connection = http.client.HTTPConnection(*address, timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    return {name: float(value) for name, value in re.findall(r"^(trtmc_\w+)\{[^}]*\} (\S+)$", text, re.M)}


def request(body):
    data = json.dumps(body).encode()
    return f"POST /v1/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


def bodies(options, streams):
    """The same work for the engine either way: one prompt, as many answers."""
    draw = random.Random(1)
    common = {"max_tokens": options.tokens, "ignore_eos": True, "temperature": 0,
              "prompt": [draw.randrange(300, 10_000) for _ in range(PROMPT_TOKENS)]}
    return [common | {"stream": True}] * streams or [common | {"n": options.streams}]


def thread_seconds(pid):
    """CPU seconds of each thread of the process."""
    seconds = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            fields = (task / "stat").read_text().rpartition(")")[2].split()
            seconds[task.name] = (int(fields[11]) + int(fields[12])) / 100
    return seconds


def serve(process, address, wishes, options):
    """Milliseconds a step while all sequences run, and of the server's other threads' CPU."""
    selector, left = selectors.DefaultSelector(), len(wishes)
    for wish in wishes:
        connection = socket.create_connection(address)
        connection.sendall(request(wish))
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ)
    first = last = None
    looks, generated = 0.0, metrics(address)["trtmc_generated_tokens_total"]
    while left:
        for key, _ in selector.select(0.05):
            if not key.fileobj.recv(1 << 20):
                selector.unregister(key.fileobj)
                key.fileobj.close()
                left -= 1
        now = time.perf_counter()
        if now - looks > 0.2:  # Rarely, since looking costs too.
            looks, seen = now, metrics(address)
            # Not while prompts are read.
            begun = seen["trtmc_generated_tokens_total"] >= generated + 16 * options.streams
            if begun and seen["trtmc_sequences_running"] == options.streams:
                last = (time.perf_counter(), seen["trtmc_steps_total"], thread_seconds(process.pid))
                first = first or last
    steps = last[1] - first[1]
    busy = sorted((seconds - first[2].get(name, 0) for name, seconds in last[2].items()), reverse=True)
    return (last[0] - first[0]) / steps * 1e3, sum(busy[options.threads:]) / steps * 1e3


def alone(options):
    done = subprocess.run([options.trtmc, "bench", options.bundle, "--prefill", "0", "--decode", str(options.tokens), "--batch",
                           str(options.streams), "--depth", str(PROMPT_TOKENS), "--threads", str(options.threads), "--repeat",
                           str(options.repeat), "--json"], capture_output=True, check=True, text=True)
    case, = json.loads(done.stdout)
    return options.streams / case["tokens_per_second"]["median"] * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("trtmc", type=pathlib.Path)
    parser.add_argument("bundle", type=pathlib.Path)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=192)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    print(f"{'executor alone':>16} {alone(options):8.2f} ms a step", flush=True)
    process = subprocess.Popen([options.trtmc, "serve", options.bundle, "--port", "0", "--threads", str(options.threads), "--quiet",
                                "--log-format", "none", "--kv-memory", "256MiB"], stdout=subprocess.PIPE, text=True)
    try:
        host, port = process.stdout.readline().strip().removeprefix("http://").rsplit(":", 1)
        time.sleep(1)  # It listens before it has read the bundle.
        for name, streams in (("one answer", 0), (f"{options.streams} streams", options.streams)):
            runs = [serve(process, (host, int(port)), bodies(options, streams), options) for _ in range(options.repeat)]
            steps, others = (statistics.median(values) for values in zip(*runs))
            print(f"{name:>16} {steps:8.2f} ms a step, {others:6.3f} ms of other threads", flush=True)
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
