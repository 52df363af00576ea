#include "backends/tensorrt/nvinfer_sink.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "backends/tensorrt/nvinfer_versions.h"
#include "base/check.h"
#include "base/error.h"

namespace trtmc::tensorrt {
namespace {

using nvinfer1::DataType;
using nvinfer1::Dims;

constexpr int kTokenAxis = 2;  // Of [1, H, S, D].

Dims dims_of(std::span<const int64_t> lengths) {
  TRTMC_CHECK(lengths.size() <= Dims::MAX_DIMS, "a tensor of too many axes");
  Dims dims{};
  dims.nbDims = static_cast<int32_t>(lengths.size());
  for (size_t i = 0; i < lengths.size(); ++i) dims.d[i] = lengths[i];
  return dims;
}

Dims dims_of(std::initializer_list<int64_t> lengths) {
  return dims_of(std::span(lengths.begin(), lengths.size()));
}

ElementType element_type(DataType type) {
  switch (type) {
    case DataType::kFLOAT:
      return ElementType::kFloat32;
    case DataType::kHALF:
      return ElementType::kFloat16;
    case DataType::kBF16:
      return ElementType::kBFloat16;
    default:
      TRTMC_CHECK(false, "no type of weights");
  }
}

nvinfer1::Permutation heads_and_tokens_swapped() {
  nvinfer1::Permutation permutation{};
  for (int32_t i = 0; i < Dims::MAX_DIMS; ++i) permutation.order[i] = i;
  std::swap(permutation.order[1], permutation.order[2]);
  return permutation;
}

}  // namespace

DataType data_type(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return DataType::kFLOAT;
    case ElementType::kFloat16:
      return DataType::kHALF;
    case ElementType::kBFloat16:
      return DataType::kBF16;
    case ElementType::kInt32:
      return DataType::kINT32;
    case ElementType::kInt64:
      return DataType::kINT64;
    case ElementType::kBool:
      return DataType::kBOOL;
  }
  TRTMC_CHECK(false, "not an element type");
}

NvInferSink::NvInferSink(nvinfer1::INetworkDefinition& network, const DecoderSpec& spec,
                         const WeightStream& weights, ElementType type, AxisLengths lengths)
    : network_(network),
      spec_(spec),
      stream_(weights),
      type_(data_type(type)),
      lengths_(std::move(lengths)) {}

nvinfer1::ITensor& NvInferSink::get(NetworkTensor tensor) const {
  return *tensors_[static_cast<size_t>(tensor)];
}

DataType NvInferSink::type_of(NetworkTensor tensor) const {
  return types_[static_cast<size_t>(tensor)];
}

NetworkTensor NvInferSink::keep(nvinfer1::ITensor* tensor, DataType type) {
  TRTMC_CHECK(tensor != nullptr, "a layer without an output");
  tensors_.push_back(tensor);
  types_.push_back(type);
  return NetworkTensor{static_cast<int>(tensors_.size()) - 1};
}

nvinfer1::ILayer& NvInferSink::made(nvinfer1::ILayer* layer, std::string_view operation) const {
  if (layer == nullptr) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("TensorRT refuses the layer \"{}\"", operation),
                "--verbose prints what it says");
  }
  return *layer;
}

NetworkTensor NvInferSink::keep_output(nvinfer1::ILayer* layer, DataType type,
                                       std::string_view operation) {
  return keep(made(layer, operation).getOutput(0), type);
}

NetworkTensor NvInferSink::input(std::string_view name, ElementType type,
                                 std::span<const Axis> axes) {
  InputShape shape{.name = std::string(name), .lengths = {}};
  std::vector<int64_t> lengths;
  for (const Axis& axis : axes) {
    int64_t length = axis.length;
    if (length == 0) {
      const auto fixed = lengths_.find(axis.name);
      if (fixed != lengths_.end()) length = fixed->second;
    }
    shape.lengths.push_back({length, length == 0 ? std::string(axis.name) : std::string()});
    lengths.push_back(length == 0 ? -1 : length);
  }
  nvinfer1::ITensor* tensor =
      network_.addInput(shape.name.c_str(), data_type(type), dims_of(lengths));
  if (tensor == nullptr) {
    throw Error(ErrorCode::kUnsupported, fmt::format("TensorRT refuses the input \"{}\"", name),
                "--verbose prints what it says");
  }
  inputs_.push_back(std::move(shape));
  return keep(tensor, data_type(type));
}

void NvInferSink::output(std::string_view name, ElementType type, NetworkTensor x,
                         std::span<const Axis> /*axes*/) {
  TRTMC_CHECK(type_of(x) == data_type(type), "an output of another type");
  nvinfer1::ITensor& tensor = get(x);
  tensor.setName(std::string(name).c_str());
  network_.markOutput(tensor);
}

NetworkTensor NvInferSink::constant_of(const std::string& name, const Dims& dims,
                                       NamedWeights weights) {
  const NamedWeights& kept = weights_.emplace(name, std::move(weights)).first->second;
  nvinfer1::IConstantLayer* layer = network_.addConstant(dims, kept.view());
  made(layer, name).setName(name.c_str());
  // By this name an engine gets the values again that its plan does not hold.
  network_.setWeightsName(kept.view(), name.c_str());
  const NetworkTensor tensor = keep(layer->getOutput(0), kept.type);
  constants_.emplace(name, tensor);
  return tensor;
}

NetworkTensor NvInferSink::weight(const TensorKey& key, DataType type, const Shape& shape) {
  const std::string name = to_string(key);
  if (const auto found = constants_.find(name); found != constants_.end()) {
    TRTMC_CHECK(weights_.at(name).type == type, "a weight in two types");
    return found->second;
  }
  NamedWeights weights{.type = type, .bytes = {}, .count = num_elements(shape)};
  const ElementType element = element_type(type);
  weights.bytes.reserve(static_cast<size_t>(weights.count) * element_bytes(element));
  stream_.read(key, element, MatrixOrder::kByRows, [&](std::span<const std::byte> piece) {
    weights.bytes.insert(weights.bytes.end(), piece.begin(), piece.end());
  });
  return constant_of(name, dims_of(shape), std::move(weights));
}

NetworkTensor NvInferSink::matrix(const TensorKey& key, DataType type) {
  return weight(key, type, tensor_shape(spec_, key));
}

NetworkTensor NvInferSink::embed(NetworkTensor ids, const TensorKey& table) {
  return gather(matrix(table, type_), ids);
}

NetworkTensor NvInferSink::linear(NetworkTensor x, const TensorKey& weight) {
  const Shape shape = tensor_shape(spec_, weight);
  nvinfer1::IShuffleLayer* raised = network_.addShuffle(get(matrix(weight, type_of(x))));
  made(raised, "linear");
  raised->setReshapeDimensions(dims_of({1, shape[0], shape[1]}));  // Ranks have to be equal.
  return keep_output(
      network_.addMatrixMultiply(get(x), nvinfer1::MatrixOperation::kNONE, *raised->getOutput(0),
                                 nvinfer1::MatrixOperation::kTRANSPOSE),
      type_of(x), "linear");
}

NetworkTensor NvInferSink::vector(const TensorKey& key) {
  return weight(key, DataType::kFLOAT, {1, 1, tensor_shape(spec_, key)[0]});
}

NetworkTensor NvInferSink::constant(std::string_view name, const Shape& shape,
                                    std::vector<float> values) {
  if (const auto found = constants_.find(name); found != constants_.end()) return found->second;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  return constant_of(std::string(name), dims_of(shape),
                     {.type = DataType::kFLOAT,
                      .bytes = {bytes.begin(), bytes.end()},
                      .count = static_cast<int64_t>(values.size())});
}

NetworkTensor NvInferSink::index(std::string_view name, int32_t value) {
  if (const auto found = constants_.find(name); found != constants_.end()) return found->second;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(&value, 1));
  return constant_of(std::string(name), dims_of({1}),
                     {.type = DataType::kINT32, .bytes = {bytes.begin(), bytes.end()}, .count = 1});
}

NetworkTensor NvInferSink::binary(Binary operation, NetworkTensor a, NetworkTensor b) {
  using nvinfer1::ElementWiseOperation;
  constexpr std::array kOperations = {ElementWiseOperation::kSUM, ElementWiseOperation::kSUB,
                                      ElementWiseOperation::kPROD, ElementWiseOperation::kDIV};
  return keep_output(
      network_.addElementWise(get(a), get(b), kOperations[static_cast<size_t>(operation)]),
      type_of(a), "binary");
}

NetworkTensor NvInferSink::unary(Unary operation, NetworkTensor x) {
  if (operation == Unary::kSigmoid) {
    return keep_output(network_.addActivation(get(x), nvinfer1::ActivationType::kSIGMOID),
                       type_of(x), "sigmoid");
  }
  return keep_output(network_.addUnary(get(x), nvinfer1::UnaryOperation::kSQRT), type_of(x),
                     "square root");
}

NetworkTensor NvInferSink::cast(NetworkTensor x, ElementType type) {
  return keep_output(network_.addCast(get(x), data_type(type)), data_type(type), "cast");
}

NetworkTensor NvInferSink::mean(NetworkTensor x) {
  constexpr uint32_t kLastOfThree = 1U << 2U;
  TRTMC_CHECK(get(x).getDimensions().nbDims == 3, "means are taken of [B, S, W]");
  return keep_output(
      network_.addReduce(get(x), nvinfer1::ReduceOperation::kAVG, kLastOfThree, true), type_of(x),
      "mean");
}

NetworkTensor NvInferSink::gather(NetworkTensor table, NetworkTensor indices) {
  return keep_output(network_.addGather(get(table), get(indices), 0), type_of(table), "gather");
}

// With a batch of one, tokens count along the second axis.
NetworkTensor NvInferSink::select_tokens(NetworkTensor x, NetworkTensor rows) {
  return keep_output(network_.addGather(get(x), get(rows), 1), type_of(x), "selection of tokens");
}

NetworkTensor NvInferSink::split_heads(NetworkTensor x, int heads) {
  const int64_t width = get(x).getDimensions().d[2];
  nvinfer1::IShuffleLayer* layer = network_.addShuffle(get(x));
  made(layer, "split of heads");
  layer->setReshapeDimensions(dims_of({1, -1, heads, width / heads}));
  layer->setSecondTranspose(heads_and_tokens_swapped());
  return keep(layer->getOutput(0), type_of(x));
}

NetworkTensor NvInferSink::merge_heads(NetworkTensor x) {
  const Dims dims = get(x).getDimensions();
  nvinfer1::IShuffleLayer* layer = network_.addShuffle(get(x));
  made(layer, "merge of heads");
  layer->setFirstTranspose(heads_and_tokens_swapped());
  layer->setReshapeDimensions(dims_of({1, -1, dims.d[1] * dims.d[3]}));
  return keep(layer->getOutput(0), type_of(x));
}

NetworkTensor NvInferSink::slice(NetworkTensor x, int first, int count) {
  const int64_t last_axis = get(x).getDimensions().nbDims - 1;
  nvinfer1::ISliceLayer* layer =
      network_.addSlice(get(x), dims_of({first}), dims_of({count}), dims_of({1}));
  made(layer, "slice");
  layer->setAxes(dims_of({last_axis}));
  return keep(layer->getOutput(0), type_of(x));
}

NetworkTensor NvInferSink::concat(std::span<const NetworkTensor> parts, int axis) {
  std::vector<nvinfer1::ITensor*> tensors;
  for (const NetworkTensor part : parts) tensors.push_back(&get(part));
  nvinfer1::IConcatenationLayer* layer =
      network_.addConcatenation(tensors.data(), static_cast<int32_t>(tensors.size()));
  made(layer, "concatenation");
  layer->setAxis(axis);
  return keep(layer->getOutput(0), type_of(parts.front()));
}

// TensorRT takes no scale: q / sqrt(D), worked out in float32 and rounded once.
NetworkTensor NvInferSink::scaled_queries(NetworkTensor q) {
  const float scale = 1 / std::sqrt(static_cast<float>(spec_.head_dim));
  const DataType type = type_of(q);
  const NetworkTensor factor = constant("attention.scale", {1, 1, 1, 1}, {scale});
  if (type == DataType::kFLOAT) return binary(Binary::kMultiply, q, factor);
  return cast(binary(Binary::kMultiply, cast(q, ElementType::kFloat32), factor),
              element_type(type));
}

// A step reads what is in use, not what there is room for: without this, attention would cost by
// the cache's capacity.
NetworkTensor NvInferSink::tokens_in_use(NetworkTensor cache, NetworkTensor mask) {
  constexpr int32_t kLastOfMask = 3;
  const NetworkTensor axis = index("mask.last_axis", kLastOfMask);
  nvinfer1::IShapeLayer* shape = network_.addShape(get(mask));
  made(shape, "shape");
  nvinfer1::IGatherLayer* length = network_.addGather(*shape->getOutput(0), get(axis), 0);
  made(length, "gather");
  nvinfer1::ISliceLayer* layer =
      network_.addSlice(get(cache), dims_of({0}), dims_of({1}), dims_of({1}));
  made(layer, "slice");
  layer->setAxes(dims_of({kTokenAxis}));
  layer->setInput(2, *length->getOutput(0));
  return keep(layer->getOutput(0), type_of(cache));
}

NetworkTensor NvInferSink::attention(NetworkTensor q, NetworkTensor k, NetworkTensor v,
                                     NetworkTensor mask, ElementType type) {
  if (caches_.contains(k)) {
    k = tokens_in_use(k, mask);
    v = tokens_in_use(v, mask);
  }
  nvinfer1::IAttention* layer = add_attention(network_, get(scaled_queries(q)), get(k), get(v));
  // Fused where there is a kernel, several otherwise.
  if (layer == nullptr || !layer->setMask(get(mask)) || !layer->setDecomposable(true)) {
    throw Error(ErrorCode::kUnsupported, "TensorRT refuses the layer \"attention\"",
                "--verbose prints what it says");
  }
  return keep(layer->getOutput(0), data_type(type));
}

NetworkTensor NvInferSink::update_cache(NetworkTensor cache, NetworkTensor update,
                                        NetworkTensor write_indices) {
  const NetworkTensor updated =
      keep_output(add_cache_update(network_, get(cache), get(update), get(write_indices)),
                  type_of(cache), "KV update");
  caches_.insert(updated);
  return updated;
}

NetworkTensor NvInferSink::causal_mask(NetworkTensor /*attention_mask*/, NetworkTensor /*ids*/,
                                       int /*window*/) {
  TRTMC_CHECK(false, "masks are given to TensorRT");
}

}  // namespace trtmc::tensorrt
