#!/usr/bin/env python3
"""Records what Transformers computes, for `trtmc verify --goldens` and the tests. docs/testing.md
describes the files.

    make_goldens.py                      re-makes every committed golden under tests/golden/
    make_goldens.py NAME...              only those (smollm3-tiny, smollm3-3b, a case of golden_cases.py)
    make_goldens.py --check [NAME...]    compares with the committed files instead: 1e-5 for float32
    make_goldens.py --checkpoint DIR --out FILE    of a checkpoint that is at hand, such as the 3B

Needs tests/requirements.txt: Transformers 5.17.0 and torch 2.11.0, on the CPU, one thread.
"""
import argparse
import base64
import copy
import hashlib
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import numpy as np
import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import golden_cases
import make_random_checkpoint
import packed

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests/golden"
TINY = ROOT / "models/smollm3-tiny"
SMOLLM3_3B = ROOT / "tests/data/smollm3-3b"  # The published text files.
VERSIONS = {"transformers": "5.17.0", "torch": "2.11.0"}
NUM_COLUMNS, NUM_HIDDEN_COLUMNS = 64, 8
MAX_FULL_POSITIONS = 16
RANDOM_CONTINUATION = 12
MIN_MARGIN = 1e-4  # Of a random model's greedy token over the second: beyond the noise of float32.
NUM_FIRST = 4  # So many of the largest logits are recorded for each token of a continuation.
MAX_KV_POSITIONS, MAX_KV_POSITIONS_LONG = 16, 250


def spread(count, wanted):
    """At most `wanted` whole numbers below `count`, evenly spread, the first and the last among them."""
    if count <= wanted:
        return list(range(count))
    return sorted({round(i * (count - 1) / (wanted - 1)) for i in range(wanted)})


def pack(array, dtype="f32"):
    """An array as JSON: little-endian, base64. bf16 values are exact, since they come from bf16."""
    array = np.ascontiguousarray(array, dtype=np.float32)
    raw = array if dtype == "f32" else (array.view(np.uint32) >> 16).astype(np.uint16)
    return {"dtype": dtype, "shape": list(array.shape), "data": base64.b64encode(raw.tobytes()).decode()}


def unpack(array):
    raw = base64.b64decode(array["data"])
    if array["dtype"] == "f32":
        return np.frombuffer(raw, np.float32).reshape(array["shape"])
    return (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(array["shape"])


# ---------------------------------------------------------------- Transformers

def float64_inverse_frequencies(config):
    """Transformers' inverse frequencies and attention factor, computed in float64 throughout.

    The formulas are those of modeling_rope_utils; the caller holds them to its float32 buffer.
    """
    rope = config.rope_parameters
    dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    plain = 1.0 / rope["rope_theta"] ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    if rope["rope_type"] == "default":
        return plain
    original, base = rope["original_max_position_embeddings"], rope["rope_theta"]

    def correction_dim(rotations):
        return dim * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(base))

    low = correction_dim(rope.get("beta_fast") or 32)
    high = correction_dim(rope.get("beta_slow") or 1)
    if rope.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    ramp = (torch.arange(dim // 2, dtype=torch.float64) - low) / ((high - low) or 0.001)
    ramp = ramp.clamp(0, 1)
    return plain / rope["factor"] * ramp + plain * (1 - ramp)


def use_float64_angles(model):
    """Makes the rotary embedding compute its angles, cosines and sines in float64.

    Transformers' own float32 angles are off by 4e-3 at position 70 000.
    """
    rotary = model.model.rotary_emb
    frequencies = float64_inverse_frequencies(model.config)
    torch.testing.assert_close(frequencies.float(), rotary.inv_freq, rtol=2e-6, atol=0)

    def forward(x, position_ids):
        angles = position_ids[:, :, None].double() * frequencies
        angles = torch.cat((angles, angles), dim=-1)
        scale = rotary.attention_scaling
        return (angles.cos() * scale).to(x.dtype), (angles.sin() * scale).to(x.dtype)

    rotary.forward = forward


def load_model(path, dtype, angles):
    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=dtype).eval()
    if angles == "float64":
        use_float64_angles(model)
    return model


@torch.no_grad()
def forward(model, ids):
    """Logits [tokens, vocab] and hidden states [1 + layers, tokens, hidden]: of the embedding and of each
    layer, the last one before the final norm (Transformers' own hidden_states has it after)."""
    states = []
    modules = [model.model.embed_tokens, *model.model.layers]
    hooks = [module.register_forward_hook(
        lambda _, __, out: states.append((out[0] if isinstance(out, tuple) else out)[0].float().numpy()))
        for module in modules]
    logits = model(torch.tensor([ids]), use_cache=False).logits[0].float()
    for hook in hooks:
        hook.remove()
    return logits, np.stack(states)


@torch.no_grad()
def greedy(model, ids, count, stop_id):
    """The greedy continuation, ended by `stop_id`, and for each of its tokens the ids and logits of the
    NUM_FIRST largest."""
    out, first, logits, past, step = [], [], [], None, torch.tensor([ids])
    while len(out) < count:
        result = model(step, past_key_values=past, use_cache=True)
        past = result.past_key_values
        top = result.logits[0, -1].float().topk(NUM_FIRST)
        out.append(int(top.indices[0]))
        first.append(top.indices.tolist())
        logits.append(top.values.tolist())
        if out[-1] == stop_id:
            break
        step = torch.tensor([[out[-1]]])
    return out, first, logits


class Bfloat16Cache(transformers.DynamicCache):
    """Keys and values as a cache of bf16 holds them; everything else keeps the model's type."""

    def update(self, key_states, value_states, *args, **kwargs):
        kind = key_states.dtype
        return super().update(key_states.bfloat16().to(kind), value_states.bfloat16().to(kind), *args, **kwargs)


@torch.no_grad()
def record_bfloat16_kv(model, ids, positions, columns):
    """What the float32 model computes when its keys and values are rounded to bf16, and how far that is from
    what it computes in float64: a last bit of float32 decides now and then which way a key is rounded."""
    rows = [positions[i] for i in
            spread(len(positions), MAX_KV_POSITIONS_LONG if len(ids) > 1024 else MAX_KV_POSITIONS)]
    single, double = (run(torch.tensor([ids]), past_key_values=Bfloat16Cache(config=model.config),
                          use_cache=True).logits[0][rows][:, columns].double()
                      for run in (model, copy.deepcopy(model).double()))
    noise = (single - double).norm(dim=-1) / double.norm(dim=-1)
    return {"positions": rows, "columns": pack(single), "noise": pack(noise)}


# ---------------------------------------------------------------- Records

def record(model, ids, plan, dtype, columns, hidden_columns, continuation_tokens, stop_id):
    """One case's results. `plan` says which positions are recorded, and how."""
    logits, hidden = forward(model, ids)
    rows = plan["positions"]
    if dtype == "bf16" and len(rows) > 512:
        rows = rows[::4]
    top = logits[rows].topk(2).values
    out = {
        "positions": rows,
        "logits": pack(logits[plan["full_positions"]], dtype),
        "columns": pack(logits[rows][:, columns], dtype),
        "logsumexp": pack(logits[rows].logsumexp(-1)),
        "argmax": logits[rows].argmax(-1).tolist(),
        "margins": pack(top[:, 0] - top[:, 1]),
    }
    if dtype == "f32":
        out["hidden"] = pack(hidden[:, plan["hidden_positions"]])
        out["hidden_norms"] = pack(np.linalg.norm(hidden[:, rows].astype(np.float64), axis=-1))
        out["hidden_columns"] = pack(hidden[:, plan["hidden_column_positions"]][:, :, hidden_columns])
    out["continuation"], out["continuation_first"], first = greedy(model, ids, continuation_tokens, stop_id)
    out["continuation_logits"] = pack(first, dtype)
    return out


def make_plan(num_tokens, full, positions):
    full_positions = spread(num_tokens, full) if full > 1 else [num_tokens - 1]
    return {"full_positions": full_positions, "positions": positions,
            "hidden_positions": full_positions[-4:], "hidden_column_positions": spread(num_tokens, 16)}


def perplexity_windows(model, ids, window):
    """Per disjoint window, the sum of the negative log-likelihoods of all its tokens but the first."""
    sums = []
    with torch.no_grad():
        for start in range(0, len(ids) - 1, window):
            part = torch.tensor([ids[start:start + window]])
            if part.size(1) < 2:
                continue
            logprobs = torch.log_softmax(model(part, use_cache=False).logits[0, :-1].double(), -1)
            sums.append(-float(logprobs.gather(1, part[0, 1:, None]).sum()))
    return sums


def header(name, config, angles, vocab, hidden, seed):
    """What every golden begins with; the columns are drawn once for the file."""
    generator = np.random.Generator(np.random.PCG64(seed))
    columns = sorted(generator.choice(vocab, min(NUM_COLUMNS, vocab), replace=False).tolist())
    hidden_columns = sorted(generator.choice(hidden, NUM_HIDDEN_COLUMNS, replace=False).tolist())
    return {**VERSIONS, "format": 1, "name": name, "angles": angles, "config": config,
            "columns": columns, "hidden_columns": hidden_columns}


def make_random_golden(name):
    case = golden_cases.CASES[name]
    config, weights = golden_cases.case_config(name), golden_cases.case_weights(name)
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
    angles = case.get("angles", "float32")
    golden = header(name, config, angles, config["vocab_size"], config["hidden_size"], seed)
    tensors = make_random_checkpoint.tensor_list(config, weights["gain"], weights["embedding_gain"])
    golden["weights"] = {"seed": seed, "dtype": weights["dtype"], "tensors": tensors}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "config.json").write_text(json.dumps(config))
        make_random_checkpoint.write_weights(folder, tensors, weights["dtype"], seed)
        digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
        golden["weights"]["sha256"] = digest
        models = {"float32": load_model(folder, torch.float32, angles)}
        if weights["dtype"] == "bf16" and angles == "float32":
            models["bfloat16"] = load_model(folder, torch.bfloat16, angles)
        golden["cases"] = [random_prompt(golden, models, case.get("prompt_tokens", 48), config)]
    return golden


def random_prompt(golden, models, num_tokens, config):
    """A prompt of drawn ids. It is drawn once: one whose tokens are a coin's to decide is not replaced in
    silence, since what is left after such a choice proves less."""
    long = num_tokens > 512
    plan = make_plan(num_tokens, 4 if long else MAX_FULL_POSITIONS // 2,
                     spread(num_tokens, 96) if long else list(range(num_tokens)))
    generator = np.random.Generator(np.random.PCG64([golden["weights"]["seed"], 0]))
    ids = generator.integers(3, config["vocab_size"], num_tokens).tolist()
    case = {"name": "random", "prompt_ids": ids, **plan}
    for precision, model in models.items():
        dtype = "f32" if precision == "float32" else "bf16"
        case[precision] = record(model, ids, plan, dtype, golden["columns"], golden["hidden_columns"],
                                 RANDOM_CONTINUATION, None)
    first = unpack(case["float32"]["continuation_logits"])
    margin = (first[:, 0] - first[:, 1]).min()
    if margin < MIN_MARGIN:
        raise RuntimeError(f"{golden['name']}: float32 does not decide a token: margin {margin}; rename the case")
    case["bfloat16_kv"] = record_bfloat16_kv(models["float32"], ids, plan["positions"], golden["columns"])
    del case["positions"]
    return case


def make_checkpoint_golden(path, name, prompts, eval_ids, stop_id):
    """A real checkpoint: `prompts` as (name, ids); one long prompt and the perplexity of `eval_ids`."""
    config = json.loads((path / "config.json").read_text())
    golden = header(name, config, "float32", config["vocab_size"], config["hidden_size"], 1)
    golden["cases"] = []
    for prompt_name, ids in prompts + ([("long", eval_ids[:2000])] if eval_ids else []):
        long = prompt_name == "long"
        tail = list(range(max(0, len(ids) - 32), len(ids)))
        rows = list(range(len(ids))) if long else sorted({*range(0, len(ids), 16), *tail})
        golden["cases"].append({"name": prompt_name, "prompt_ids": ids, **make_plan(len(ids), 4 if long else 1, rows)})
    for precision, torch_dtype, dtype in (("float32", torch.float32, "f32"), ("bfloat16", torch.bfloat16, "bf16")):
        model = load_model(path, torch_dtype, "float32")
        for case in golden["cases"]:
            case[precision] = record(model, case["prompt_ids"], case, dtype, golden["columns"],
                                     golden["hidden_columns"], 48, stop_id)
            if dtype == "f32":
                case["bfloat16_kv"] = record_bfloat16_kv(model, case["prompt_ids"], case["positions"],
                                                         golden["columns"])
        if dtype == "f32" and eval_ids:
            golden["perplexity"] = {"window": 512, "ids": eval_ids, "nll": perplexity_windows(model, eval_ids, 512)}
        del model
    for case in golden["cases"]:
        del case["positions"]
    return golden


def make_tiny_golden():
    """The embedded model: the prompts of the reference that came with it, whose tokens must come out again."""
    reference = json.loads((GOLDEN / "smollm3-tiny/reference.json").read_text())
    tokenizer = transformers.AutoTokenizer.from_pretrained(TINY)
    text = (GOLDEN / "smollm3-tiny/eval.txt").read_text()
    prompts = [(f"{i}_{p['kind']}", p["input_ids"]) for i, p in enumerate(reference["prompts"])]
    golden = make_checkpoint_golden(TINY, "smollm3-tiny", prompts,
                                    tokenizer(text, add_special_tokens=False).input_ids, reference["eos"])
    for case, prompt in zip(golden["cases"], reference["prompts"]):
        assert case["float32"]["continuation"] == prompt["float32"]["greedy_ids"], case["name"]
    return golden


PROMPT_TEXTS = ["Once upon a time, there was a little", "The capital of France is", "def fibonacci(n):\n\treturn",
                "1. Apples\n2. Bananas\n3.", "L'été, c'est l'heure d'aller à l'eau: 3333+777 = <|im_end|>"]
WEATHER = {"name": "get_weather", "description": "Get a city's weather", "parameters": {"type": "object",
           "properties": {"city": {"type": "string", "default": None}}, "required": ["city"], "strict": True}}
PROMPT_CHATS = [("What is 2+2?", False, None), ("What is 2+2?", True, None),
                ("What is the weather in Paris?", False, [WEATHER])]
PROMPT_DATE = "04 September 2026"


def make_prompts(path):
    """Texts and ids of a few prompts, in the form of smollm3-tiny/reference.json, without any numbers."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    prompts = [{"kind": "raw", "text": text} for text in PROMPT_TEXTS]
    for user, think, tools in PROMPT_CHATS if tokenizer.chat_template else []:
        text = tokenizer.apply_chat_template([{"role": "user", "content": user}], tokenize=False,
                                             add_generation_prompt=True, enable_thinking=think,
                                             **({"xml_tools": tools} if tools else {}))
        text = re.sub(r"Today Date: .*\n", f"Today Date: {PROMPT_DATE}\n", text, count=1)
        prompts.append({"kind": "chat", "text": text, "user": user, "think": think, "tools": tools})
    for prompt in prompts:
        prompt["input_ids"] = tokenizer(prompt["text"], add_special_tokens=False).input_ids
    return {**VERSIONS, "date": PROMPT_DATE, "prompts": prompts}


def make_3b_prompts():
    with tempfile.TemporaryDirectory() as folder:
        make_random_checkpoint.copy_companions(SMOLLM3_3B, pathlib.Path(folder))
        (pathlib.Path(folder) / "config.json").write_bytes((SMOLLM3_3B / "config.json").read_bytes())
        return make_prompts(folder)


def make_live_golden(path):
    prompts = [(f"{i}_{p['kind']}", p["input_ids"]) for i, p in enumerate(make_prompts(path)["prompts"])]
    generation = path / "generation_config.json"
    stop = json.loads(generation.read_text()).get("eos_token_id") if generation.exists() else None
    return make_checkpoint_golden(path, path.name, prompts, None, stop[0] if isinstance(stop, list) else stop)


# ---------------------------------------------------------------- Files

def dump(golden):
    """The versions on a line of their own, then a line for every other key."""
    first = json.dumps({k: golden[k] for k in VERSIONS})[:-1] + ","
    if "prompts" in golden:
        return (first + json.dumps({k: golden[k] for k in golden if k not in VERSIONS}, indent=1,
                                   ensure_ascii=False)[1:] + "\n").encode()
    rest = [f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in golden.items() if k not in VERSIONS]
    return (first + "\n" + ",\n".join(rest) + "}\n").encode()


def write(path, golden):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".xz":
        packed.write_xz(path, dump(golden))
    elif path.suffix == ".zst":
        subprocess.run(["zstd", "-q", "-f", "-19", "--no-progress", "-o", path, "-"], input=dump(golden), check=True)
    else:
        path.write_bytes(dump(golden))


def differences(old, new, path=""):
    """Yields what is not the same: arrays of float32 to 1e-5 of their norm, of bf16 to 2e-2 (CPUs differ
    in how they add in bf16), perplexities to 1e-6, everything else exactly."""
    if path.endswith(".noise"):
        return  # Chance: which way a few values were rounded.
    if isinstance(old, dict) and "data" in old and "dtype" in old:
        loose = ".bfloat16." in path
        exact = not any(name in path for name in ("margins", "bfloat16_kv"))
        if loose and any(name in path for name in ("margins", "continuation")):
            return
        a, b = unpack(old).astype(np.float64), unpack(new).astype(np.float64)
        error = np.linalg.norm(a - b) / max(np.linalg.norm(a), 1e-30)
        # Margins are small differences of large numbers: bound by the size of logits, about 1. What is
        # rounded to bf16 may be rounded the other way.
        bound = 2e-2 if loose else 1e-5 if exact else 1e-4
        if not error <= bound:
            yield f"{path}: relative difference {error:.2e}, at most {bound:.0e} expected"
    elif isinstance(old, dict):
        if list(old) != list(new):
            yield f"{path}: keys differ"
            return
        for key in old:
            yield from differences(old[key], new[key], f"{path}.{key}")
    elif isinstance(old, list) and old and isinstance(old[0], dict):
        for i, (a, b) in enumerate(zip(old, new)):
            yield from differences(a, b, f"{path}[{i}]")
        if len(old) != len(new):
            yield f"{path}: {len(old)} and {len(new)} entries"
    elif path.endswith(".nll"):
        if not np.allclose(old, new, rtol=1e-6, atol=0):
            yield f"{path}: negative log-likelihoods differ"
    elif ".bfloat16." in path or path.endswith("continuation_first"):
        return  # Tokens of a bf16 run depend on the CPU, the order of all but the first on rounding.
    elif old != new:
        yield f"{path}: differs"


def golden_path(name):
    named = {"smollm3-tiny": "smollm3-tiny/logits.json.xz", "smollm3-3b": "smollm3-3b/prompts.json"}
    if name in named:
        return GOLDEN / named[name]
    return GOLDEN / f"{golden_cases.case_family(name)}-random/{name}.json.zst"


def make_golden(name):
    named = {"smollm3-tiny": make_tiny_golden, "smollm3-3b": make_3b_prompts}
    return named[name]() if name in named else make_random_golden(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--checkpoint", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()
    found = {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}
    if found != VERSIONS:
        sys.exit(f"make_goldens.py: goldens are made with {VERSIONS}, this is {found}")
    torch.set_num_threads(1 if not args.checkpoint else os.cpu_count())
    torch.use_deterministic_algorithms(True)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    if args.checkpoint:
        write(args.out, make_live_golden(args.checkpoint))
        return
    bad = 0
    for name in args.names or ["smollm3-tiny", "smollm3-3b", *golden_cases.CASES]:
        golden = make_golden(name)
        if not args.check:
            write(golden_path(name), golden)
            print(f"{name}: {golden_path(name).stat().st_size} bytes", flush=True)
            continue
        found = list(differences(json.loads(packed.read_bytes(golden_path(name))), json.loads(dump(golden)), name))
        print("\n".join(found) if found else f"{name}: equal", flush=True)
        bad += len(found)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
