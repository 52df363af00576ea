// Which of its three ways the TensorRT backend takes with a model, and every reason for and against
// each. Pure: asked when a model is loaded, and by `trtmc inspect` on machines without TensorRT.
// docs/tensorrt.md tells what the routes are and what of them was proved.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bundle/bundle.h"
#include "model/decoder_spec.h"
#include "tensor/dtype.h"

namespace trtmc {

// kNativeKv: TensorRT writes keys and values into caches that stay where they are; one engine, with
//   a profile for prompts and one for single tokens.
// kStandard: past keys and values go in, present ones come out; an engine for prompts and one for
//   single tokens, so two copies of the weights.
// kDualProfile: the graph of kStandard as one engine with two profiles, for devices without room
//   for two copies.
enum class DecoderRoute { kNativeKv, kStandard, kDualProfile };

std::string_view decoder_route_name(DecoderRoute route);  // "native_kv", "standard", "dual_profile"

struct TensorRtVersion {
  int major;
  int minor;
  // clang-tidy 14 sees a null pointer in what the compiler makes of this.
  auto operator<=>(const TensorRtVersion&) const = default;  // NOLINT(modernize-use-nullptr)
};

inline constexpr TensorRtVersion kOldestTensorRt{10, 14};    // The first with attention layers.
inline constexpr TensorRtVersion kNewestTensorRt{11, 1};     // The newest that was looked at.
inline constexpr TensorRtVersion kNativeKvTensorRt{10, 15};  // The first with a KV-update layer.

// What is asked for. A spec can say neither another activation than SiLU nor biases, since the
// families refuse them; the routes are asked about them all the same.
struct RouteQuestion {
  DecoderSpec spec;
  std::string quantization = "none";  // One of quant_schemes().
  std::string activation = "silu";    // Of the MLP's gate.
  bool biases = false;                // Of the projections.
  DType precision = DType::kBF16;     // Of weights, activations, keys and values.
  std::vector<int> fp32_layers;       // Those kept in float32 whatever the precision; rising.
  int capacity = 0;                   // The most tokens a sequence may have; 0: the spec's context.
  TensorRtVersion version = kNewestTensorRt;
  uint64_t device_bytes = 0;  // Free memory of the GPU; 0: not known.
};

struct RouteReason {
  bool in_favour;
  std::string subject;  // "precision", "heads", …: the same ones in the same order for each route.
  std::string text;
  bool operator==(const RouteReason&) const = default;
};

// A route is possible if no reason speaks against it.
struct RouteVerdict {
  DecoderRoute route;
  std::vector<RouteReason> reasons;
  bool possible() const;
};

struct RouteDecision {
  std::vector<RouteVerdict> verdicts;  // Of the three routes, in their order.
  // The first possible one, or nothing.
  std::optional<DecoderRoute> taken() const;
  // The reasons against every route in one sentence, for the case that none is taken.
  std::string refusal() const;
};

// Throws kInvalidArgument for a question that makes no sense: a layer that the model does not have,
// layers that do not rise, a capacity beyond the context, a quantised type as precision.
RouteDecision choose_decoder_route(const RouteQuestion& question);

// The type of the bundle's matrices: the precision that is taken if none is asked for. bf16 where
// they are quantised.
DType stored_precision(const Bundle& bundle);

// Throws kInvalidArgument for a layer that the model does not have, and for layers that do not
// rise.
void check_fp32_layers(const DecoderSpec& spec, const std::vector<int>& fp32_layers);

// The types in which layers are computed: `precision`, but float32 for those of `fp32_layers`.
// [layers]. Throws as above.
std::vector<DType> layer_precisions(const DecoderSpec& spec, DType precision,
                                    const std::vector<int>& fp32_layers);

}  // namespace trtmc
