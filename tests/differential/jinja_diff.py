#!/usr/bin/env python3
"""Renders the same templates with trtmc and with jinja2, as Transformers sets it up, and wants the same bytes.

Cases are random but their seed is fixed. With --transformers the environment is not rebuilt from jinja2, but
Transformers' own function is asked.
"""
import argparse
import collections
import copy
import functools
import json
import pathlib
import subprocess
import sys
import warnings

try:
    import jinja2  # noqa: F401
except ImportError:
    print("skipped: jinja2 is not installed")
    sys.exit(77)

import chat_conversations
import jinja_cases
import jinja_environment
import jinja_expressions
import jinja_fuzz

# Texts that no two implementations print alike.
ADDRESS = (" at 0x", "generator object", "built-in method", "bound method", "reverseiterator", "reversed object", "_iterator object")


def expected(case):
    """What jinja2 renders, or None if it refuses."""
    try:
        # A copy, as jinja2's indent filter appends to a list that it is given.
        return jinja_environment.render(case["template"], copy.deepcopy(case["input"]), case["date"])
    except Exception:  # jinja2 lets every kind of Python error through.
        return None


def actual(driver, cases):
    lines = "".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases)
    run = subprocess.run([driver], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in run.stdout.decode().split("\n")[:-1]]


def transformers_renderer():
    """chat_template_utils.render_jinja_template with a date of our own."""
    try:
        from transformers.utils import chat_template_utils
    except ImportError:
        print("skipped: transformers is not installed")
        sys.exit(77)

    class Clock:
        @staticmethod
        def now():
            return jinja_environment.noon(Clock.date)

    chat_template_utils.datetime = Clock

    def render(case):
        Clock.date = case["date"]
        arguments = dict(case["input"])
        messages = arguments.pop("messages")
        try:
            return chat_template_utils.render_jinja_template([messages], chat_template=case["template"], **arguments)[0][0]
        except Exception:
            return None

    return render


def compare(name, cases, driver, oracle, limit):
    """Prints what differs and returns how often."""
    counts = collections.Counter()
    for case, answer in zip(cases, actual(driver, cases)):
        want = oracle(case)
        if want is not None and any(word in want.lower() for word in ADDRESS):
            counts["not comparable"] += 1
            continue
        got = answer.get("text")
        counts["refused by both" if want is None and got is None else "rendered"] += 1
        if got == want:
            continue
        counts["different"] += 1
        if counts["different"] <= limit:
            print(f"--- {name}\n{case['template'] if len(case['template']) < 2000 else json.dumps(case['input'])!r}\n"
                  f"jinja2: {want!r}\ntrtmc:  {answer!r}")
    print(f"{name}: {len(cases)} cases, {dict(counts)}", flush=True)
    return counts["different"]


@functools.lru_cache(maxsize=200)
def compiled(template, date):
    return jinja_environment.environment(date).from_string(template)


def chat_oracle(case):
    """expected() for a template that comes again and again."""
    try:
        return compiled(case["template"], case["date"]).render(**jinja_environment.variables(case["input"]))
    except Exception:
        return None


def compare_styles(options, count):
    """Random conversations with a template of each style."""
    different = 0
    for path in sorted(options.styles.glob("*.jinja")):
        conversations, template = chat_conversations.RandomConversations(options.seed), path.read_text(encoding="utf-8")
        cases = [conversations.case(template) for _ in range(count)]
        different += compare(path.stem, cases, options.driver, chat_oracle, options.show)
    return different


def compare_expressions(options):
    """Random expressions over random values, a thousand at a time."""
    random_expressions, different = jinja_expressions.Expressions(options.seed), 0
    for start in range(0, options.expressions, 1000):
        cases = [random_expressions.case() for _ in range(min(1000, options.expressions - start))]
        different += compare("random expressions", cases, options.driver, expected, options.show)
    return different


def compare_corpora(options):
    """What a fuzzer found worth keeping, by its coverage of our code: fuzz/jinja_grammar.cc makes templates of it."""
    different = 0
    for corpus in options.corpus:
        lines = subprocess.run([options.driver, "--templates", corpus], stdout=subprocess.PIPE, check=True).stdout
        cases = [json.loads(line) for line in lines.decode().split("\n")[:-1]]
        different += compare(f"corpus {corpus.name}", cases, options.driver, expected, options.show)
    return different


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--chat-template", required=True, type=pathlib.Path)
    parser.add_argument("--styles", required=True, type=pathlib.Path, help="the folder of templates of other styles")
    parser.add_argument("--transformers", action="store_true")
    parser.add_argument("--expressions", type=int, help="compare that many random expressions and nothing else")
    parser.add_argument("--corpus", type=pathlib.Path, action="append", help="compare the templates of a fuzz corpus and nothing else")
    parser.add_argument("--seed", type=int, default=20260904)
    parser.add_argument("--scale", type=float, default=1, help="how many times the usual number of cases")
    parser.add_argument("--show", type=int, default=10, help="how many differences to print of each kind")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # Python warns of odd code that jinja2 makes of odd templates.

    chat = options.chat_template.read_text(encoding="utf-8")
    count = lambda usual: int(usual * options.scale)
    cases, fuzz = jinja_cases.Cases(options.seed), jinja_fuzz.Fuzz(options.seed)
    conversations = [{"template": chat, **cases.conversation()} for _ in range(count(2000))]
    if options.corpus:
        return 1 if compare_corpora(options) else 0
    if options.expressions:
        return 1 if compare_expressions(options) else 0
    if options.transformers:
        usable = [case for case in conversations if all(isinstance(tool, dict) for tool in case["input"].get("tools") or [])
                  and isinstance(case["input"]["messages"], list)]
        return 1 if compare("transformers", usable, options.driver, transformers_renderer(), options.show) else 0

    small = lambda template: {"template": template, "date": "2026-09-04", "input": {
        "messages": [], "add_generation_prompt": False, **jinja_fuzz.VARIABLES}}
    expressions = [small("{{ " + fuzz.expression(fuzz.random.randint(1, 3)) + " }}") for _ in range(count(3000))]
    templates = [small(fuzz.template()) for _ in range(count(1200))]
    different = compare("conversations", conversations, options.driver, chat_oracle, options.show)
    different += compare_styles(options, count(60))
    different += compare("expressions", expressions, options.driver, expected, options.show)
    different += compare("templates", templates, options.driver, expected, options.show)
    return 1 if different else 0


sys.exit(main())
