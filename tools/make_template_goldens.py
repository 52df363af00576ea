#!/usr/bin/env python3
"""make_template_goldens.py: writes tests/golden/template_goldens.json.xz, what jinja2 makes of the templates in tests/golden/templates.

They are ours, in the style of published ones. `rendered` is null where jinja2 refuses. Needs jinja2 3.1.6 and CPython 3.11.
"""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "differential"))

import chat_conversations  # noqa: E402
import jinja_environment  # noqa: E402
import packed  # noqa: E402

DATE = "2026-09-04"


def rendered(template, conversation):
    try:
        return jinja_environment.render(template, chat_conversations.request(conversation), DATE)
    except Exception:  # Whatever jinja2, the template or Python says: it is refused.
        return None


def main():
    conversations = chat_conversations.CONVERSATIONS
    golden = {"note": "Made by tools/make_template_goldens.py with jinja2 3.1.6; null is refused.", "date": DATE,
              "conversations": {name: chat_conversations.request(conversation) for name, conversation in conversations.items()}, "rendered": {}}
    for path in sorted((ROOT / "tests" / "golden" / "templates").glob("*.jinja")):
        template = path.read_text(encoding="utf-8")
        golden["rendered"][path.stem] = {name: rendered(template, conversation) for name, conversation in conversations.items()}
    text = json.dumps(golden, ensure_ascii=False, indent=0)
    packed.write_xz(ROOT / "tests/golden/template_goldens.json.xz", (text + "\n").encode())


main()
