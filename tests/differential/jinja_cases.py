"""Random conversations for a chat template, from one seed."""
import random

DATES = ["2026-09-04", "2024-02-29", "1999-12-31", "2031-01-01", "2026-05-09"]
WORDS = ["hello", "it's", 'say "hi"', "both ' and \"", "tab\there", "line\nbreak", "back\\slash", "ünï", "日本語", "🙂🙃",
         "/think", "/no_think", "/system_override", "<|im_end|>", "<think>", "</think>", "{{ x }}", "{% if %}", "\x00\x1f\x7f",
         "\u00a0nbsp", "\u2028sep", "\ud7ff\ue000", "\u0301combining", "\u200bzw", "", " ", "\r\n", "\ufeffbom", "\U000e0001tag", "%d",
         "a" * 40, "&<>", "ǅ", "ß", "İ", "Σας", "1e5", "null", "-0", "\x85nel", "\x1cfs"]
KEYS = ["type", "function", "name", "description", "parameters", "properties", "items", "required", "enum", "default", "x y", "it's",
        "ключ", "", "keys", "values", "get", "strict", "0", "_private", "content", "minimum"]
NUMBERS = [0, 1, -1, 7, 100, 2**31, 2**53 + 1, 2**63 - 1, -2**63, 2**63, 2**64, -2**70, 10**30, 0.0, -0.0, 0.1, 1.5, 1e-7, 1e16, 1e15,
           123456789.123, 1e22, 1e23, 5e-324, 1.7976931348623157e308, 1e100, 0.0001, 0.00001, 3.0, 1 / 3]


class Cases:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def text(self, most=6):
        return self.random.choice(["", " ", " "]).join(
            self.random.choice(WORDS) for _ in range(self.random.randint(0, most)))

    def value(self, depth=3):
        kinds = ["text", "number", "true", "false", "null"] + (["list", "dict", "dict"] if depth else [])
        kind = self.random.choice(kinds)
        if kind == "text":
            return self.text(3)
        if kind == "number":
            return self.random.choice(NUMBERS)
        if kind == "list":
            return [self.value(depth - 1) for _ in range(self.random.randint(0, 4))]
        if kind == "dict":
            return {self.random.choice(KEYS): self.value(depth - 1) for _ in range(self.random.randint(0, 5))}
        return {"true": True, "false": False, "null": None}[kind]

    def tool(self):
        flat = {"name": self.random.choice(["get_weather", "f", "it's"]), "description": self.text(),
                "parameters": {"type": "object", "properties": self.value(4), "required": self.value(1)}}
        return self.random.choice([flat, {"type": "function", "function": flat, "strict": None}, self.value(4)])

    def tools(self):
        return self.random.choice([None, []] + 4 * [[self.tool() for _ in range(self.random.randint(1, 4))]])

    def content(self):
        return self.random.choice(5 * [self.text()] + [None, [{"type": "text", "text": self.text()}], self.value(2)])

    def message(self):
        role = self.random.choice(["user", "assistant", "assistant", "tool", "system", "developer", "User", self.text(1), None])
        message = {"role": role, "content": self.content()}
        if self.random.random() < 0.2:
            message["tool_calls"] = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": self.value(2)}}]
        if self.random.random() < 0.1:
            message["reasoning_content"] = self.text()
        if self.random.random() < 0.05:
            del message["content"]
        if self.random.random() < 0.03:
            del message["role"]
        return message

    def conversation(self):
        messages = [self.message() for _ in range(self.random.randint(0, 6))]
        if self.random.random() < 0.5:
            flags = self.random.choice(["", "/think", "/no_think", "/system_override", "/think /no_think", " /no_think/system_override"])
            messages.insert(0, {"role": "system", "content": self.text() + flags + self.text(1)})
        if self.random.random() < 0.05:
            messages.insert(0, {"role": "system", "content": self.content()})
        request = {"messages": messages, "add_generation_prompt": self.random.random() < 0.7}
        for key in ("tools", "xml_tools", "python_tools"):
            if self.random.random() < 0.25:
                request[key] = self.tools()
        if self.random.random() < 0.4:
            request["enable_thinking"] = self.random.choice([True, False, None, 0, 1, "", "no"])
        for key, value in (("bos_token", "<s>"), ("eos_token", "</s>")):
            if self.random.random() < 0.2:
                request[key] = value
        if self.random.random() < 0.02:
            request["messages"] = self.random.choice(["text", {}, None, {"role": "user"}, [], [None], ["text"], [[]]])
        return {"input": request, "date": self.random.choice(DATES)}
