#!/usr/bin/env python3
"""make_nvinfer_stubs.py INCLUDE OUT: TensorRT's interfaces, each function of which aborts.

Behind each class of NvInfer.h stands an abstract one, apiv::V<Name>, that the library implements. For each
of them this writes a class Stub<Name> into the header OUT; a fake overrides the functions that it has. Made
from the headers in use, so that it fits every version of them and nothing of theirs is kept here.
"""
import pathlib
import re
import sys

CLASS = re.compile(r"^class (V\w+)\s*:\s*public (\w+)\s*\{(.*?)^\};", re.S | re.M)
FUNCTION = re.compile(r"(?:TRT_NODISCARD|TRT_DEPRECATED|\s)*virtual\s+([^;{}]*?)\b(\w+)\(([^;{}]*)\)\s*(const)?\s*noexcept\s*=\s*0\s*;",
                      re.S)


def stub(name, body):
    lines = [f"class Stub{name[1:]} : public nvinfer1::apiv::{name} {{", " public:"]
    for result, function, arguments, const in FUNCTION.findall(body):
        arguments = re.sub(r"\s+", " ", arguments).strip()
        result = re.sub(r"\s+", " ", result).strip()
        lines.append(f"  {result} {function}({arguments}) {const and const + ' '}noexcept override "
                     f"{{ unexpected(\"{name[1:]}::{function}\"); }}")
    return "\n".join([*lines, "};", ""])


def main():
    include, out = map(pathlib.Path, sys.argv[1:])
    text = (include / "NvInferImpl.h").read_text(encoding="utf-8")
    text = re.sub(r"^#if ENABLE_FEATURE.*?^#endif[^\n]*", "", text, flags=re.S | re.M)  # Off unless it is asked for.
    text = re.sub(r"//.*", "", text)
    classes = [(name, body) for name, base, body in CLASS.findall(text) if base == "VRoot"]
    head = ["// Made by make_nvinfer_stubs.py.", "#pragma once", "", "#include <NvInfer.h>", "",
            "namespace trtmc::fake_nvinfer {", "", "using namespace nvinfer1;", "",
            "// Ends the program: the fake has no such function.",
            "[[noreturn]] void unexpected(const char* function);", ""]
    out.write_text("\n".join([*head, *(stub(name, body) for name, body in classes),
                              "}  // namespace trtmc::fake_nvinfer", ""]), encoding="utf-8")


main()
