// Which library of TensorRT goes with this build, as sentences. Needs no TensorRT.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "graph/decoder_route.h"

namespace trtmc::tensorrt {

// As getInferLibVersion() counts since TensorRT 10: 101401 is 10.14.1.
constexpr TensorRtVersion version_of(int number) { return {number / 10000, number / 100 % 100}; }
std::string version_name(int number);  // "10.14.1"

// Of the library that a module compiled against `compiled_major` opens.
std::string library_name(int compiled_major);  // "libnvinfer.so.10"

// Why a library can't be used: classes of another major version are laid out differently, and those
// of an earlier minor one lack functions at their end.
std::optional<std::string> version_refusal(int number, TensorRtVersion compiled);

// What to do if there is no library to open; `reason` is the system's.
std::string missing_library(int compiled_major, std::string_view reason);

}  // namespace trtmc::tensorrt
