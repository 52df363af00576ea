#!/usr/bin/env python3
"""make_nvinfer11_headers.py INCLUDE OUT: the headers of TensorRT 10 with what the backend takes from 11.

The headers of TensorRT 11 are in no package that could be installed for a test. So that what is written for 11 is
compiled and run against the fake all the same, this copies the headers of 10 and adds the few declarations of 11
that the backend names, as its documentation describes them. It proves nothing of the layout of 11's own classes.
"""
import pathlib
import sys

ENUMS = """
enum class CausalMaskKind : int32_t { kNONE = 0, kUPPER_LEFT = 1, kLOWER_RIGHT = 2 };
enum class KVCacheMode : int32_t { kLINEAR = 0 };
class IKVCacheUpdateLayer;
"""
IMPLEMENTED = """
class VKVCacheUpdateLayer : public VRoot
{
public:
};

class VNetworkDefinition : public VRoot
{
public:
    virtual IAttention* addAttentionV2(ITensor& query, ITensor& key, ITensor& value,
        AttentionNormalizationOp normOp, CausalMaskKind kind) noexcept = 0;
    virtual IKVCacheUpdateLayer* addKVCacheUpdate(ITensor& cache, ITensor& update, ITensor& writeIndices,
        KVCacheMode mode) noexcept = 0;
"""
LAYER = """
class IKVCacheUpdateLayer : public ILayer
{
protected:
    virtual ~IKVCacheUpdateLayer() noexcept = default;
    apiv::VKVCacheUpdateLayer* mImpl;
};

"""
METHODS = """
    IAttention* addAttentionV2(ITensor& query, ITensor& key, ITensor& value, AttentionNormalizationOp normOp,
        CausalMaskKind kind) noexcept
    {
        return mImpl->addAttentionV2(query, key, value, normOp, kind);
    }
    IKVCacheUpdateLayer* addKVCacheUpdate(
        ITensor& cache, ITensor& update, ITensor& writeIndices, KVCacheMode mode) noexcept
    {
        return mImpl->addKVCacheUpdate(cache, update, writeIndices, mode);
    }

"""


def replaced(text, old, new):
    if text.count(old) != 1:
        sys.exit(f"make_nvinfer11_headers.py: {old!r} stands {text.count(old)} times in a header, expected once")
    return text.replace(old, new)


def main():
    include, out = map(pathlib.Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    files = {file.name: file.read_text(encoding="utf-8") for file in include.glob("NvInfer*.h")}
    version = replaced(files["NvInferVersion.h"], "#define TRT_MAJOR_ENTERPRISE 10", "#define TRT_MAJOR_ENTERPRISE 11")
    files["NvInferVersion.h"] = replaced(version, "#define TRT_MINOR_ENTERPRISE 14", "#define TRT_MINOR_ENTERPRISE 1")
    implementation = replaced(files["NvInferImpl.h"], "class IActivationLayer;\n", f"{ENUMS}class IActivationLayer;\n")
    files["NvInferImpl.h"] = replaced(
        implementation, "class VNetworkDefinition : public VRoot\n{\npublic:\n", IMPLEMENTED)
    network = "class INetworkDefinition : public INoCopy\n{\npublic:\n"
    head, tail = files["NvInfer.h"].split(network)
    comment = head.rindex("//!\n//! \\class INetworkDefinition")
    files["NvInfer.h"] = head[:comment] + LAYER + head[comment:] + network + METHODS + tail
    for name, text in files.items():
        path = out / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


main()
