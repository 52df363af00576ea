// What a manifest's `quantization` says of the weights: which type each role has under which
// scheme. The one place that knows; builder, reader and command line ask here.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "model/tensor_key.h"
#include "tensor/dtype.h"

namespace trtmc {

// Every scheme by name, "none" first.
std::span<const std::string_view> quant_schemes();
bool is_quant_scheme(std::string_view name);

// The type of a tensor of this role, or nothing where the scheme leaves it as the checkpoint has
// it. `scheme` is one of quant_schemes().
std::optional<DType> quantized_type(std::string_view scheme, Role role);

}  // namespace trtmc
