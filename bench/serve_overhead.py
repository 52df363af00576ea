#!/usr/bin/env python3
"""What a step of the engine costs, and what it costs while its tokens go to as many streams.

    serve_overhead.py TRTMC BUNDLE [--streams 64] [--tokens 192] [--threads 1] [--repeat 3]

Three ways to the same steps, as many sequences of as many tokens: `trtmc bench` (the executor alone), one request for so
many answers that comes as a whole (the engine, and nothing to send), and a stream for each. The latter two by one server,
steps and seconds from its /metrics. With a thread fewer than cores, as beside a GPU, the server has a core of its own; the
client, which reads nothing while it runs, shares it. Computing and other threads: their CPU time, which a machine's other
guests disturb less than the clock.
"""
import argparse
import contextlib
import http.client
import json
import pathlib
import random
import re
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
            seconds[task.name] = int((task / "schedstat").read_text().split()[0]) / 1e9
    return seconds


def serve(process, address, wishes, options):
    """Milliseconds a step while all sequences run: by the clock, of the CPU of the threads that compute, of the others'."""
    before, connections = metrics(address), []
    for wish in wishes:
        connection = socket.socket()
        # A client that reads would take of the server's core; the answers wait in its socket instead.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        connection.connect(address)
        connection.sendall(request(wish))
        connections.append(connection)
    first = last = None
    while not last or seen["trtmc_sequences_running"]:
        time.sleep(0.2)  # Rarely, since looking costs too.
        seen = metrics(address)
        # Not while prompts are read.
        begun = seen["trtmc_generated_tokens_total"] >= before["trtmc_generated_tokens_total"] + 16 * options.streams
        if begun and seen["trtmc_sequences_running"] == options.streams:
            last = (time.perf_counter(), seen["trtmc_steps_total"], thread_seconds(process.pid))
            first = first or last
    for connection in connections:
        connection.close()
    steps = last[1] - first[1]
    busy = sorted((seconds - first[2].get(name, 0) for name, seconds in last[2].items()), reverse=True)
    milliseconds = last[0] - first[0], sum(busy[:options.threads]), sum(busy[options.threads:])
    return [seconds / steps * 1e3 for seconds in milliseconds]


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
        runs = {0: [], options.streams: []}
        for _ in range(options.repeat):  # In turn, since the machine's own speed drifts.
            for streams, seen in runs.items():
                seen.append(serve(process, (host, int(port)), bodies(options, streams), options))
        for streams, seen in runs.items():
            name = f"{streams} streams" if streams else "one answer"
            print(f"{name:>16} " + ", ".join(
                f"{what} {statistics.median(values):6.2f} ms ({min(values):.2f} to {max(values):.2f})"
                for what, values in zip(("a step", "computing", "other threads"), zip(*seen))), flush=True)
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
