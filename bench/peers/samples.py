"""What is measured, and the figures of all rounds put together."""
import dataclasses
import statistics


@dataclasses.dataclass(frozen=True, order=True)
class Case:
    """`batch` sequences of `depth` tokens go on by `tokens` tokens, at once (prefill) or one by one (decode)."""
    kind: str
    tokens: int
    depth: int
    batch: int


@dataclasses.dataclass(frozen=True)
class Sample:
    """One figure of one round. What trtmc alone reports: the work of a token and the machine's own speeds."""
    case: Case
    tokens_per_second: float
    bytes_per_token: float = 0.0
    operations_per_token: float = 0.0
    read_roof: float = 0.0  # Bytes a second.
    multiply_roof: float = 0.0  # Operations a second, in the type that products take; 0: not measured.


def range_of(values):
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def compare(case, peer, ours):
    """One row: speeds of the peer and of trtmc over the rounds, their ratio, and shares of the roof.

    Both read the same weights and do the same work, so that trtmc's account of a token holds for the peer.
    The ratio's range is that of neighbouring rounds, its median that of the medians.
    """
    row = {**dataclasses.asdict(case), "trtmc": range_of([sample.tokens_per_second for sample in ours])}
    decode = case.kind == "decode"
    roof = statistics.median(sample.read_roof if decode else sample.multiply_roof for sample in ours)
    work = statistics.median(sample.bytes_per_token if decode else sample.operations_per_token for sample in ours)
    row["roof"] = {"of": "bytes read" if decode else "multiply-add", "per_second": roof, "work_per_token": work}
    row["trtmc_share"] = share(row["trtmc"]["median"], work, roof)
    if peer:
        row["peer"] = range_of([sample.tokens_per_second for sample in peer])
        row["peer_share"] = share(row["peer"]["median"], work, roof)
        pairs = [b.tokens_per_second / a.tokens_per_second for a, b in zip(peer, ours)]
        row["ratio"] = {"min": min(pairs), "median": row["trtmc"]["median"] / row["peer"]["median"], "max": max(pairs)}
    return row


def share(tokens_per_second, work_per_token, roof):
    return tokens_per_second * work_per_token / roof if roof else None
