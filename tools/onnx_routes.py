"""The routes of `model_ci prove` through ONNX: each precision exported, run by onnxruntime, held to the manifest's gates."""
import json
import pathlib
import subprocess

import packed

FLOATS = ("f32", "f16")
QUANTISED = ("q8", "q6", "q4_q6", "q4")
# Of an answer by `reference`, which adds in double one number after the other.
MAX_REFERENCE_TOKENS = 16
VERIFY = pathlib.Path(__file__).resolve().parent / "onnx_verify.py"


def why_not(python):
    """Why onnxruntime can't run here, or None."""
    if subprocess.run([python, "-c", "import onnxruntime"], capture_output=True, check=False).returncode == 0:
        return None
    return f"{python} has no onnxruntime (tests/requirements.txt); --route native leaves ONNX out"


def prove(proof, checkpoint, name, goldens):
    """Each golden against the export of the bundle; quantised ones against `reference` on the same bundle."""
    for precision in proof.args.precision or proof.manifest["onnx"]["precisions"]:
        quant = precision if precision in QUANTISED else "none"
        bundle = proof.build(checkpoint, f"{name}.onnx.{precision}", "--quant", quant)
        dtype = precision if precision in FLOATS else "f32"
        export = proof.folder / f"{name}.{precision}.onnx.d"
        proof.trtmc("export", bundle, "--format", "onnx", "-o", export, "--dtype", dtype)
        for golden in goldens:
            what = f"onnx {precision}"
            if quant == "none":
                verify(proof, what, export, "--golden", golden, "--dtype", dtype)
            else:
                prove_quantised(proof, what, bundle, export, golden)


def shortest_cases(golden):
    """One of each kind of prompt: (name, prompt, tokens)."""
    cases = {}
    for case in sorted(golden["cases"], key=lambda case: len(case["prompt_ids"])):
        count = min(len(case["float32"]["continuation"]), MAX_REFERENCE_TOKENS)
        cases.setdefault(case["name"].endswith("chat"), (case["name"], case["prompt_ids"], count))
    return list(cases.values())


def prove_quantised(proof, what, bundle, export, golden):
    cases = shortest_cases(json.loads(packed.read_text(golden)))
    file = proof.folder / "answers.json"
    file.write_text(json.dumps([answer(proof, bundle, *case) for case in cases]))
    verify(proof, what, export, "--answers", file)


def answer(proof, bundle, name, prompt_ids, tokens):
    result = json.loads(proof.trtmc("run", bundle, "--raw", "--prompt-ids", json.dumps(prompt_ids), "--temperature", "0",
                                    "--max-tokens", tokens, "--logprobs", "0", "--json", "--backend", "reference"))
    logprobs = [token["logprob"] for token in result["logprobs"]["content"]]
    return {"name": name, "prompt_ids": prompt_ids, "ids": result["ids"][:len(logprobs)], "logprobs": logprobs}


def verify(proof, what, export, *arguments):
    result = subprocess.run([proof.args.python, VERIFY, export, "--manifest", proof.manifest_path, *map(str, arguments)],
                            capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"{what}: {result.stderr.strip()}")
    proof.report_checks(what, json.loads(result.stdout)["checks"])
