#!/usr/bin/env python3
"""Instructions a token of a small model, counted by callgrind, held against those in counts.json.

    instructions_test.py --program model_steps --build "GNU 12.2.0, …" [--counts counts.json]

A count does not depend on what else the machine does, so a few per cent are seen, where a clock sees nothing. But it depends
on the compiler: where this is not the build that counts.json is of, the test is skipped. Instruction sets are those that
valgrind knows. TRTMC_UPDATE_GOLDEN=1 writes the counts of this build instead of comparing them; the diff is the review.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ISAS = ("generic", "avx2")
DTYPES = ("f32", "f16", "bf16", "q8", "q6", "q4")
PROMPT_TOKENS = 24  # As in model_steps.cc.
ABOUT = "Instructions a token; TRTMC_UPDATE_GOLDEN=1 tools/test.sh --stage instructions records them anew."


def collected(program, bundle, isa, prefills, decodes):
    """Instructions of a whole run with so many steps of each kind."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out"
        run = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", program, "run", bundle, isa,
                              str(prefills), str(decodes)], capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise RuntimeError(f"{isa}: valgrind ended with {run.returncode}:\n{run.stderr}")
        return int(re.search(r"^totals: (\d+)", out.read_text(encoding="utf-8"), re.M).group(1))


def instructions_per_token(program, bundle, isa):
    """What one more step costs, so that the program's start drops out."""
    least = collected(program, bundle, isa, 1, 1)
    return {"prefill": round((collected(program, bundle, isa, 2, 1) - least) / PROMPT_TOKENS),
            "decode": collected(program, bundle, isa, 1, 2) - least}


def measure(program):
    """{isa: {dtype: {kind: instructions a token}}}, several runs at a time: they do not disturb each other."""
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        bundles = {dtype: pathlib.Path(folder) / f"{dtype}.trtmc" for dtype in DTYPES}
        for dtype, bundle in bundles.items():
            subprocess.run([program, "write", bundle, dtype], check=True)
        counts = {isa: {dtype: pool.submit(instructions_per_token, program, bundles[dtype], isa) for dtype in DTYPES}
                  for isa in ISAS}
        return {isa: {dtype: count.result() for dtype, count in of_isa.items()} for isa, of_isa in counts.items()}


def rows(counts):
    for isa, of_isa in counts.items():
        for dtype, of_dtype in of_isa.items():
            for kind, count in of_dtype.items():
                yield (isa, dtype, kind), count


def compare(recorded, measured):
    """Prints a table, and returns what differs by more than the tolerance."""
    tolerance = recorded["tolerance"]
    before = dict(rows(recorded["instructions_per_token"]))
    wrong = sorted(before.keys() ^ dict(rows(measured)).keys())
    print(f"{'':20} {'recorded':>12} {'now':>12}   change (at most {tolerance:.0%})")
    for row, now in rows(measured):
        if row not in before:
            continue
        change = now / before[row] - 1
        if abs(change) > tolerance:
            wrong.append(row)
        print(f"{' '.join(row):20} {before[row]:>12,} {now:>12,}  {change:>+7.1%}{' <' if row in wrong else ''}")
    return wrong


def skipped(reason):
    print(f"skipped: {reason}")
    return 77


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--build", required=True, help="compiler and flags of the program, as counts.json names them")
    parser.add_argument("--counts", type=pathlib.Path, default=HERE / "counts.json")
    options = parser.parse_args()
    update = os.environ.get("TRTMC_UPDATE_GOLDEN") == "1"
    recorded = json.loads(options.counts.read_text(encoding="utf-8"))
    if not update and options.build != recorded["build"]:
        return skipped(f"counts are recorded of {recorded['build']}; this is {options.build}")
    if " avx2 " not in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        return skipped("this processor has no AVX2")
    measured = measure(options.program)
    if update:
        new = {"about": ABOUT, "build": options.build, "tolerance": recorded["tolerance"],
               "instructions_per_token": measured}
        options.counts.write_text(json.dumps(new, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {options.counts}")
        return 0
    wrong = compare(recorded, measured)
    if not wrong:
        return 0
    print(f"{len(wrong)} of these differ by more than the tolerance (a row that is new or gone counts). More: find out why. Fewer, "
          "or a price worth paying: TRTMC_UPDATE_GOLDEN=1 tools/test.sh --stage instructions records the new counts.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
