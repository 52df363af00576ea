"""trtmc's side: bundle, command line, and what `trtmc bench --json` prints."""
import json
import pathlib
import subprocess

from peers.samples import Case, Sample


def build(program, model):
    """The bundle of `model`, a GGUF, beside it."""
    bundle = pathlib.Path(model).with_suffix(".trtmc")
    if not bundle.exists() or bundle.stat().st_mtime < pathlib.Path(model).stat().st_mtime:
        bundle.unlink(missing_ok=True)
        subprocess.run([program, "build", model, "-o", bundle, "--quiet"], check=True)
    return bundle


def commands(program, bundle, cases, threads, kv_type):
    """One command line for each depth and batch, which measures its cases once, and how to read what it prints."""
    result = []
    for depth, batch in sorted({(case.depth, case.batch) for case in cases}):
        lengths = {kind: ",".join(str(case.tokens) for case in cases if case.kind == kind and (case.depth, case.batch) == (depth, batch))
                   for kind in ("prefill", "decode")}
        result.append(([program, "bench", bundle, "--json", "--quiet", "--threads", str(threads), "--kv-type", kv_type,
                        "--repeat", "1", "--depth", str(depth), "--batch", str(batch),
                        "--prefill", lengths["prefill"] or "0", "--decode", lengths["decode"] or "0"], read_bench))
    return result


def read_bench(output):
    samples = []
    for line in json.loads(output):
        speed = line["tokens_per_second"]["median"]
        samples.append(Sample(Case(line["kind"], line["tokens"], line["depth"], line["batch"]), speed,
                              bytes_per_token=line["gb_per_second"] * 1e9 / speed,
                              operations_per_token=line["gflop_per_second"] * 1e9 / speed,
                              read_roof=line["read_roof_gb_per_second"] * 1e9,
                              multiply_roof=line["multiply_roof_gflop_per_second"] * 1e9))
    return samples
