"""llama.cpp as a peer: how to get it, how to run its benchmarks, how to read what they print."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

from peers.samples import Case, Sample

NAME = "llama.cpp"
PACKAGE, VERSION = "llama-cpp-python", "0.3.36"  # PyPI's source package has llama.cpp in vendor/.
TARGETS = ["llama-bench", "llama-batched-bench"]
# Native code; no network, and no web interface, whose build would download.
OPTIONS = ["-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DGGML_CCACHE=OFF", "-DLLAMA_CURL=OFF", "-DLLAMA_OPENSSL=OFF",
           "-DLLAMA_BUILD_UI=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF", "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF",
           "-DLLAMA_BUILD_APP=OFF"]


def get(folder):
    """Downloads and builds the pinned version below `folder`, unless it is there; returns the folder of its programs."""
    build = folder / f"llama.cpp-{VERSION}"
    if all((build / "bin" / target).exists() for target in TARGETS):
        return build / "bin"
    source = folder / f"{PACKAGE.replace('-', '_')}-{VERSION}"
    if not source.exists():
        archive = folder / f"{source.name}.tar.gz"
        if not archive.exists():
            # pip also fetches the package's build back end, to read its metadata.
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", PACKAGE,
                            "--dest", folder, f"{PACKAGE}=={VERSION}"], check=True)
        with tarfile.open(archive) as file:
            file.extractall(folder, filter="data")
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    subprocess.run(["cmake", "-S", source / "vendor/llama.cpp", "-B", build, *generator, *OPTIONS],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build, "-j", str(os.cpu_count()), "--target", *TARGETS],
                   check=True, stdout=subprocess.DEVNULL)
    return build / "bin"


def objects(output):
    """The JSON objects in `output`, among other text. What is divided by zero is printed as no JSON: it becomes null."""
    output = re.sub(r": -?(nan|inf)\b", ": null", output)
    decoder, at = json.JSONDecoder(), 0
    while (at := output.find("{", at)) >= 0:
        try:
            value, at = decoder.raw_decode(output, at)
            yield value
        except ValueError:
            at += 1


def commands(programs, model, cases, threads):
    """The command lines that measure `cases` once each, and how to read what each prints."""
    programs = pathlib.Path(programs)
    single = [case for case in cases if case.batch == 1]
    result = []
    for depth in sorted({case.depth for case in single}):
        lengths = {kind: ",".join(str(case.tokens) for case in single if case.kind == kind and case.depth == depth)
                   for kind in ("prefill", "decode")}
        result.append(([programs / "llama-bench", "-m", model, "-t", str(threads), "-r", "1", "-o", "jsonl", "-d", str(depth),
                        "-p", lengths["prefill"] or "0", "-n", lengths["decode"] or "0"], read_bench))
    # llama-bench has one sequence only; the other program generates, from prompts as long as the depth.
    for case in cases:
        if case.batch > 1 and case.kind == "decode":
            context = case.batch * (case.depth + case.tokens)
            result.append(([programs / "llama-batched-bench", "-m", model, "-t", str(threads), "-c", str(context),
                            "-npp", str(case.depth), "-ntg", str(case.tokens), "-npl", str(case.batch),
                            "--output-format", "jsonl"], read_batched_bench))
    return result


def read_bench(output):
    samples = []
    for line in objects(output):
        kind, tokens = ("decode", line["n_gen"]) if line["n_gen"] else ("prefill", line["n_prompt"])
        samples.append(Sample(Case(kind, tokens, line["n_depth"], 1), line["avg_ts"]))
    return samples


def read_batched_bench(output):
    return [Sample(Case("decode", line["tg"], line["pp"], line["pl"]), line["speed_tg"]) for line in objects(output)]
