#!/usr/bin/env python3
"""What decoding loses to another process that computes on the same cores.

    busy_neighbour.py TRTMC BUNDLE [--threads 2] [--neighbours 1] [--tokens 64] [--repeat 5]

Runs `trtmc bench` alone and beside busy loops, in turn. The share taken is the loops' CPU time of all that the cores had
meanwhile; what is lost beyond it went to waiting. A loop is a session of its own, as another user's would be.
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

LOOP = "while True: pass"


@contextlib.contextmanager
def busy(count):
    loops = [subprocess.Popen([sys.executable, "-c", LOOP], start_new_session=True) for _ in range(count)]
    try:
        yield loops
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def cpu_seconds(process):
    return int(pathlib.Path(f"/proc/{process.pid}/schedstat").read_text(encoding="utf-8").split()[0]) / 1e9


def decode(options, loops=()):
    """Tokens a second, and the share of the cores that `loops` took."""
    start, before = time.perf_counter(), sum(map(cpu_seconds, loops))
    done = subprocess.run([options.trtmc, "bench", options.bundle, "--prefill", "0", "--decode", str(options.tokens), "--threads",
                           str(options.threads), "--repeat", str(options.repeat), "--json"], capture_output=True, check=True, text=True)
    had = (time.perf_counter() - start) * len(os.sched_getaffinity(0))
    case, = json.loads(done.stdout)
    return case["tokens_per_second"]["median"], (sum(map(cpu_seconds, loops)) - before) / had


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("trtmc", type=pathlib.Path)
    parser.add_argument("bundle", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--neighbours", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    speeds, shares = {"alone": [], "beside": []}, []
    for _ in range(options.repeat):  # In turn, since the machine's own speed drifts.
        speeds["alone"].append(decode(options)[0])
        with busy(options.neighbours) as loops:
            speed, share = decode(options, loops)
            speeds["beside"].append(speed)
            shares.append(share)
    for name, values in speeds.items():
        print(f"{name:>7} {statistics.median(values):8.1f} tokens/s ({min(values):.1f} to {max(values):.1f})")
    lost = 1 - statistics.median(speeds["beside"]) / statistics.median(speeds["alone"])
    print(f"   lost {lost:8.1%}, of which the neighbour took {statistics.median(shares):.1%} of the cores")


if __name__ == "__main__":
    sys.exit(main())
