"""How far answers may be from the oracle's: the edit distances that a manifest's `onnx` allows. Standard library only."""


def edit_distance(a, b):
    """Insertions, removals and exchanges that make `a` of `b`, as a share of the longer one."""
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, right in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (left != right))
    return row[-1] / max(len(a), len(b), 1)


def check(name, figure, threshold, at_most=True, note=""):
    """As `trtmc verify --json` has them."""
    passed = figure <= threshold if at_most else figure >= threshold
    return {"name": name, "figure": float(figure), "threshold": threshold, "at_most": at_most, "passed": bool(passed),
            "note": note}


def text_checks(answers, gates):
    """The worst answer of each kind: `answers` are (case's name, tokens, the oracle's tokens)."""
    kinds = {"continuation": [], "chat": []}
    for name, tokens, expected in answers:
        kinds["chat" if name.endswith("chat") else "continuation"].append((edit_distance(tokens, expected), name))
    checks = []
    for kind, found in kinds.items():
        if found:
            worst, name = max(found)
            exact = sum(distance == 0 for distance, _ in found)
            checks.append(check(f"{kind}: edit distance, worst answer", worst, gates[f"{kind}_edit_distance"],
                                note=f"{exact} of {len(found)} without a wrong token" + (f"; {name}" if worst else "")))
    return checks
