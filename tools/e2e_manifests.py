"""What tests/e2e/*/*.json and src/families/*/descriptor.json must be: `model_ci validate`."""
import hashlib
import json
import pathlib
import re
import sys

import onnx_routes
import packed

ROOT = pathlib.Path(__file__).resolve().parent.parent
E2E, FAMILIES = ROOT / "tests/e2e", ROOT / "src/families"
CONTRACT = ["hashes", "checkpoint", "rope_schedule", "prompt_bytes", "token_ids", "greedy", "float32", "bfloat16",
            "backend"]
THRESHOLDS = {
    "float32": ["logits_relative_l2", "logits_cosine", "logsumexp_difference", "hidden_relative_l2",
                "greedy_mismatches", "perplexity_relative"],
    "bfloat16": ["cosine_p5", "relative_l2_p95", "float32_error_share", "argmax_agreement", "argmax_margin",
                 "continuation_edit_distance"],
    "bfloat16_kv": ["noise_factor", "relative_l2"],
}
ONNX_THRESHOLDS = ["continuation_edit_distance", "chat_edit_distance", "logprob_difference"]


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def is_text(value):
    return isinstance(value, str) and value != ""


def is_hash(value, digits):
    return isinstance(value, str) and re.fullmatch(f"[0-9a-f]{{{digits}}}", value) is not None


def is_list_of_texts(value):
    return isinstance(value, list) and value != [] and all(map(is_text, value))


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def keys_complaint(value, keys, what):
    if not isinstance(value, dict):
        return f"{what}: not an object"
    missing, unknown = [k for k in keys if k not in value], [k for k in value if k not in keys]
    problems = [f"{k} is missing" for k in missing] + [f"{k} is unknown" for k in unknown]
    return f"{what}: {', '.join(problems)}" if problems else None


def check(errors, condition, text):
    if not condition:
        errors.append(text)


def validate_descriptor(path, errors):
    """A family's descriptor, or None if it is not even one."""
    if not path.exists():
        errors.append(f"{path.relative_to(ROOT)}: missing")
        return None
    descriptor = json.loads(path.read_text())
    where = str(path.relative_to(ROOT))
    complaint = keys_complaint(descriptor, ["family", "architectures", "strategy", "files", "cases"], where)
    if complaint:
        errors.append(complaint)
        return None
    check(errors, descriptor["family"] == path.parent.name, f"{where}: family is not the folder's name")
    check(errors, is_list_of_texts(descriptor["architectures"]), f"{where}: architectures: names expected")
    check(errors, is_text(descriptor["strategy"]), f"{where}: strategy: a name expected")
    check(errors, is_list_of_texts(descriptor["files"]), f"{where}: files: names expected")
    for name in descriptor["files"]:
        check(errors, (path.parent / name).is_file(), f"{where}: {name} is not there")
    for case in descriptor["cases"]:
        manifest = E2E / descriptor["family"] / f"{case}.json"
        check(errors, manifest.is_file(), f"{where}: {manifest.relative_to(ROOT)} is not there")
    source = "\n".join(file.read_text() for file in sorted(path.parent.glob("*.cc")))
    for text in [*descriptor["architectures"], descriptor["strategy"]]:
        check(errors, f'"{text}"' in source, f"{where}: \"{text}\" does not stand in the family's sources")
    return descriptor


def validate_descriptors(errors):
    descriptors = []
    for cmake in sorted(FAMILIES.glob("*/family.cmake")):
        descriptor = validate_descriptor(cmake.parent / "descriptor.json", errors)
        if descriptor:
            descriptors.append(descriptor)
    check(errors, descriptors, "there is no family")
    owners, strategies = {}, {}
    for descriptor in descriptors:
        for architecture in descriptor["architectures"]:
            other = owners.setdefault(architecture, descriptor["family"])
            check(errors, other == descriptor["family"],
                  f"{architecture}: claimed by {other} and {descriptor['family']}")
        other = strategies.setdefault(descriptor["strategy"], descriptor["family"])
        check(errors, other == descriptor["family"],
              f"strategy {descriptor['strategy']}: of {other} and {descriptor['family']}")
    return {d["family"]: d for d in descriptors}


def validate_checkpoint(manifest, where, errors):
    checkpoint = manifest["checkpoint"]
    complaint = keys_complaint(checkpoint, ["kind", "path", "files"], f"{where}: checkpoint")
    if complaint:
        errors.append(complaint)
        return
    kind = checkpoint["kind"]
    check(errors, kind in ("embedded", "hub", "generated"), f"{where}: checkpoint.kind: {kind}")
    for name, digest in checkpoint["files"].items():
        check(errors, is_hash(digest, 64), f"{where}: checkpoint.files.{name}: a SHA-256 expected")
    if kind == "hub":
        check(errors, re.fullmatch(r"[\w.-]+/[\w.-]+", manifest["hub_id"] or ""), f"{where}: hub_id: OWNER/NAME expected")
        check(errors, is_hash(manifest["revision"], 40), f"{where}: revision: a pinned commit expected")
        check(errors, checkpoint["files"], f"{where}: checkpoint.files: hashes of a hub's checkpoint expected")
    else:
        check(errors, manifest["hub_id"] is None and manifest["revision"] is None,
              f"{where}: hub_id and revision belong to a hub's checkpoint only")
    if kind == "embedded":
        folder = ROOT / (checkpoint["path"] or "")
        check(errors, checkpoint["path"] and folder.is_dir(), f"{where}: checkpoint.path is no folder")
        for name, digest in checkpoint["files"].items():
            there = (folder / name).is_file()
            check(errors, there and sha256(folder / name) == digest, f"{where}: {name} is missing or another file")


def validate_thresholds(thresholds, names, where, errors):
    complaint = keys_complaint(thresholds, names, where)
    if complaint:
        errors.append(complaint)
        return
    for name, value in thresholds.items():
        check(errors, is_number(value), f"{where}.{name}: a number expected")


def validate_goldens(manifest, path, where, errors):
    goldens = manifest["goldens"]
    if goldens != "live":
        check(errors, is_list_of_texts(goldens), f"{where}: goldens: \"live\" or a list of files expected")
    for name in goldens if isinstance(goldens, list) else []:
        file = path.parent / name
        if not packed.exists(file):
            errors.append(f"{where}: {name} is not there")
            continue
        versions = json.loads(packed.read_text(file).split("\n", 1)[0].rstrip(",") + "}")
        for key in ("transformers", "torch"):
            check(errors, versions.get(key) == manifest["oracle"].get(key), f"{where}: {name}: made with another {key}")


def validate_manifest(path, descriptors, errors):
    where = str(path.relative_to(ROOT))
    manifest = json.loads(path.read_text())
    complaints = [keys_complaint(manifest, [
        "format", "case", "hub_id", "revision", "checkpoint", "family", "strategy", "precision", "context", "oracle",
        "contract", "prompt", "goldens", "thresholds", "onnx"], where)]
    if not complaints[0]:
        complaints += [
            keys_complaint(manifest["precision"], ["weights", "activations", "kv"], f"{where}: precision"),
            keys_complaint(manifest["oracle"], ["transformers", "torch", "device", "made_by"], f"{where}: oracle"),
            keys_complaint(manifest["thresholds"], list(THRESHOLDS), f"{where}: thresholds"),
            keys_complaint(manifest["onnx"], ["precisions", "thresholds"], f"{where}: onnx")]
    if any(complaints):
        errors.extend(c for c in complaints if c)
        return
    for precision, names in THRESHOLDS.items():
        validate_thresholds(manifest["thresholds"][precision], names, f"{where}: thresholds.{precision}", errors)
    validate_thresholds(manifest["onnx"]["thresholds"], ONNX_THRESHOLDS, f"{where}: onnx.thresholds", errors)
    precisions = [*onnx_routes.FLOATS, *onnx_routes.QUANTISED]
    check(errors, is_list_of_texts(manifest["onnx"]["precisions"])
          and all(each in precisions for each in manifest["onnx"]["precisions"]),
          f"{where}: onnx.precisions: among {precisions}")
    check(errors, manifest["format"] == 1, f"{where}: format: 1 expected")
    check(errors, manifest["case"] == path.stem, f"{where}: case is not the file's name")
    check(errors, manifest["context"] is None or isinstance(manifest["context"], int), f"{where}: context")
    check(errors, isinstance(manifest["contract"], list) and manifest["contract"]
          and all(clause in CONTRACT for clause in manifest["contract"]), f"{where}: contract: among {CONTRACT}")
    descriptor = descriptors.get(manifest["family"])
    check(errors, descriptor is not None and path.parent.name == manifest["family"], f"{where}: family is unknown")
    if descriptor:
        check(errors, manifest["strategy"] == descriptor["strategy"], f"{where}: strategy is not the family's")
        check(errors, manifest["case"] in descriptor["cases"], f"{where}: the family's descriptor does not list it")
    if manifest["prompt"] is not None:
        check(errors, (path.parent / manifest["prompt"]).is_file(), f"{where}: {manifest['prompt']} is not there")
    validate_checkpoint(manifest, where, errors)
    validate_goldens(manifest, path, where, errors)


def validate():
    errors = []
    descriptors = validate_descriptors(errors)
    manifests = sorted(E2E.glob("*/*.json"))
    cases = [path.stem for path in manifests]
    check(errors, len(set(cases)) == len(cases), "two manifests of one name")
    for path in manifests:
        validate_manifest(path, descriptors, errors)
    for error in errors:
        print(error, file=sys.stderr)
    if not errors:
        print(f"{len(descriptors)} families and {len(manifests)} cases are sound")
    return 1 if errors else 0
