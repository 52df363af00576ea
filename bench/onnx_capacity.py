#!/usr/bin/env python3
"""onnx_capacity.py TRTMC CHECKPOINT [--capacities 1024,16384] [--used 64,256,960] [--dtype f32] [--steps N] [--rounds N]

What a step costs by ONNX Runtime on a CPU with the same number of tokens in use, under exports of several contexts: the
median of single-token steps, each with the same past. The exports take turns, so that a neighbour slows all of them; not at every step, since the threads
of the one spin for a while after its step and would slow the other's.
Needs tests/requirements.txt.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
from onnx_generate import OnnxModel  # pylint: disable=wrong-import-position


def export(options, capacity, folder):
    bundle, out = folder / f"{capacity}.trtmc", folder / f"{capacity}.onnx.d"
    for arguments in (["build", options.checkpoint, "-o", bundle, "--context", capacity],
                      ["export", bundle, "--format", "onnx", "-o", out, "--dtype", options.dtype]):
        subprocess.run([options.trtmc, *map(str, arguments), "--quiet"], check=True)
    return OnnxModel(out)


def step_seconds(model, past, steps):
    seconds = []
    for _ in range(steps):
        start = time.perf_counter()
        model.run([[1]], past=past)
        seconds.append(time.perf_counter() - start)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(word) for word in text.split(",")]  # noqa: E731
    parser.add_argument("trtmc")
    parser.add_argument("checkpoint")
    parser.add_argument("--capacities", type=numbers, default=[1024, 16384])
    parser.add_argument("--used", type=numbers, default=[64, 256, 960])
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="onnx_capacity.") as folder:
        models = {capacity: export(options, capacity, pathlib.Path(folder)) for capacity in options.capacities}
        print("in use   " + "   ".join(f"context {capacity:>6}" for capacity in models) + "   last / first")
        for used in options.used:
            ids = (np.arange(used) % 1000 + 1)[None]
            pasts = {capacity: model.run(ids)[1] for capacity, model in models.items()}
            seconds = {capacity: [] for capacity in models}
            for _ in range(options.rounds):
                for capacity, model in models.items():
                    seconds[capacity] += step_seconds(model, pasts[capacity], options.steps)
            medians = [statistics.median(s) for s in seconds.values()]
            print(f"{used:>6}   " + "   ".join(f"{m * 1e3:>11.2f} ms" for m in medians)
                  + f"   {medians[-1] / medians[0]:>12.3f}", flush=True)


if __name__ == "__main__":
    main()
