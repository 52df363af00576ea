#!/usr/bin/env python3
"""Conversations with the embedded model as Transformers has them: prompts by its template, answers greedy in float32.

    make_goldens.py [--check]

Writes goldens.json beside this file; --check compares with what is there. Needs Transformers and torch; the tests that
read the file don't.
"""
import argparse
import json
import pathlib
import re
import sys

import torch
import transformers

HERE = pathlib.Path(__file__).resolve().parent
MODEL = HERE.parent.parent / "models/smollm3-tiny"
DATE = "01 January 2026"
MAX_TOKENS = 64

WEATHER = {"name": "get_weather", "description": "Get the weather in a city",
           "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "The city"}},
                          "required": ["city"]}}
TOOLS = [{"type": "function", "function": WEATHER}]
QUESTION = {"role": "user", "content": "What is the weather in Paris?"}
CALL = {"name": "get_weather", "arguments": {"city": "Paris"}}

# Requests as OpenAI's clients send them, without what they say on sampling.
CONVERSATIONS = {
    "capital": {"messages": [{"role": "user", "content": "What is the capital of France?"}]},
    "two_turns": {"messages": [{"role": "user", "content": "My name is Anna."},
                               {"role": "assistant", "content": "Nice to meet you, Anna."},
                               {"role": "user", "content": "What is my name?"}]},
    "system": {"messages": [{"role": "system", "content": "You are a friendly helper."},
                            {"role": "user", "content": "List three fruits."}]},
    "sum_with_reasoning": {"messages": [{"role": "user", "content": "What is 7 + 5?"}],
                           "chat_template_kwargs": {"enable_thinking": True}},
    "tool_call": {"messages": [QUESTION], "tools": TOOLS},
    "tool_result": {"messages": [QUESTION,
                                 {"role": "assistant", "content": "",
                                  "tool_calls": [{"id": "call_1", "type": "function", "function": CALL}]},
                                 {"role": "tool", "tool_call_id": "call_1", "content": "It is sunny in Paris, 21 degrees."}],
                    "tools": TOOLS},
    "tool_result_without_tools": {"messages": [QUESTION,
                                               {"role": "assistant", "content": "",
                                                "tool_calls": [{"id": "call_1", "type": "function", "function": CALL}]},
                                               {"role": "tool", "tool_call_id": "call_1", "content": "Sunny, 21 degrees."}]},
}
# Texts after which the answer is sampled greedily from several prompts at a time.
PROMPTS = ["Once upon a time, there was a little", "Gravity is the force that", "One day, Luna the fox walked to the river and"]


def prompt_of(tokenizer, request):
    kwargs = {"enable_thinking": False} | request.get("chat_template_kwargs", {})
    tools = {"xml_tools": request["tools"]} if "tools" in request else {}
    text = tokenizer.apply_chat_template(request["messages"], tokenize=False, add_generation_prompt=True, **kwargs, **tools)
    return re.sub(r"Today Date: .*\n", f"Today Date: {DATE}\n", text, count=1)


def answer_to(model, tokenizer, ids, stop_ids):
    """Greedy tokens up to the first stop id, and whether there was one."""
    with torch.no_grad():
        out = model.generate(torch.tensor([ids]), max_new_tokens=MAX_TOKENS, do_sample=False, eos_token_id=stop_ids,
                             temperature=None, top_p=None, pad_token_id=stop_ids[0])
    tokens = out[0, len(ids):].tolist()
    stopped = tokens[-1] in stop_ids
    return tokens[:-1] if stopped else tokens, stopped


def make():
    tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
    model = transformers.AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32).eval()
    stop_ids = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|end_of_text|>"])
    goldens = {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0], "date": "2026-01-01",
               "max_tokens": MAX_TOKENS, "conversations": {}, "prompts": []}
    for name, request in CONVERSATIONS.items():
        text = prompt_of(tokenizer, request)
        ids = tokenizer(text, add_special_tokens=False).input_ids
        tokens, stopped = answer_to(model, tokenizer, ids, stop_ids)
        request = {"chat_template_kwargs": {"enable_thinking": False}} | request
        goldens["conversations"][name] = {"request": request, "prompt": text, "prompt_tokens": len(ids), "answer_ids": tokens,
                                          "answer": tokenizer.decode(tokens), "stopped": stopped}
    for text in PROMPTS:
        ids = tokenizer(text, add_special_tokens=False).input_ids
        tokens, stopped = answer_to(model, tokenizer, ids, stop_ids)
        goldens["prompts"].append({"text": text, "ids": ids, "answer_ids": tokens, "answer": tokenizer.decode(tokens),
                                   "pieces": [tokenizer.decode([token]) for token in tokens], "stopped": stopped})
    return json.dumps(goldens, indent=1, ensure_ascii=False) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="compare with goldens.json")
    path = HERE / "goldens.json"
    text = make()
    if not parser.parse_args().check:
        path.write_text(text, encoding="utf-8")
    elif path.read_text(encoding="utf-8") != text:
        sys.exit(f"{path} is not what Transformers {transformers.__version__} says")


if __name__ == "__main__":
    main()
