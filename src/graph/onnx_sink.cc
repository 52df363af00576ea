#include "graph/onnx_sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "tensor/block_formats.h"

namespace trtmc {
namespace {

using Id = OnnxGraph::Id;

// Where a constant begins in the data file: a page, so that it can be used where it is mapped.
constexpr uint64_t kDataAlignment = 4096;
// A constant of more floats than this lies in the data file.
constexpr size_t kMaxInlineFloats = 64;

Id id_of(NetworkTensor tensor) { return static_cast<Id>(tensor); }

uint64_t data_bytes_of(OnnxType type, uint64_t elements) {
  switch (type) {
    case OnnxType::kUint4:
      return (elements + 1) / 2;
    case OnnxType::kInt8:
    case OnnxType::kBool:
      return elements;
    case OnnxType::kFloat16:
    case OnnxType::kBFloat16:
      return 2 * elements;
    case OnnxType::kFloat:
    case OnnxType::kInt32:
      return 4 * elements;
    case OnnxType::kInt64:
      return 8 * elements;
  }
  TRTMC_CHECK(false, "not a type of ONNX");
}

bool is_of_vocabulary(Role role) { return role == Role::kEmbedding || role == Role::kLmHead; }

}  // namespace

OnnxSink::OnnxSink(const Bundle& bundle, const GraphForm& form, bool composed)
    : bundle_(bundle), form_(form), composed_(composed) {}

uint64_t OnnxSink::data_bytes() const {
  return data_.empty() ? 0 : data_.back().offset + data_.back().bytes;
}

NetworkTensor OnnxSink::node(std::string_view op, std::vector<Id> inputs,
                             std::vector<OnnxAttribute> attributes) {
  return NetworkTensor{graph_.node(op, std::move(inputs), std::move(attributes))};
}

NetworkTensor OnnxSink::input(std::string_view name, ElementType type, std::span<const Axis> axes) {
  return NetworkTensor{graph_.input(name, onnx_type(type), axes)};
}

void OnnxSink::output(std::string_view name, ElementType type, NetworkTensor x,
                      std::span<const Axis> axes) {
  graph_.output(name, id_of(x), onnx_type(type), axes);
}

// ---- Weights

Id OnnxSink::external(std::string_view name, OnnxType type, const Shape& shape,
                      OnnxData::Content content) {
  if (const Id id = graph_.find_constant(name); id != OnnxGraph::kAbsent) return id;
  const uint64_t offset = (data_bytes() + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
  const uint64_t bytes = data_bytes_of(type, static_cast<uint64_t>(num_elements(shape)));
  data_.push_back({offset, bytes, std::move(content)});
  return graph_.external(name, type, shape, offset, bytes);
}

Id OnnxSink::part(const TensorKey& key, QuantizedPart part, MatrixOrder order) {
  Shape shape = tensor_shape(bundle_.spec(), key);
  OnnxType type = bundle_.weight(key).dtype == DType::kQ4 ? OnnxType::kUint4 : OnnxType::kInt8;
  std::string_view name = "codes";
  if (part != QuantizedPart::kCodes) {
    shape[1] = (shape[1] + kBlockColumns - 1) / kBlockColumns;
    type = part == QuantizedPart::kScales ? OnnxType::kFloat : OnnxType::kInt8;
    name = part == QuantizedPart::kScales ? "scales" : "zeros";
  }
  if (order == MatrixOrder::kByColumns) std::reverse(shape.begin(), shape.end());
  return external(fmt::format("{}.{}", to_string(key), name), type, shape,
                  OnnxData::Part{key, part, order});
}

// Scales are float32, so products with them are too; rounded once to the layer's type. In f16 a
// product from 65520 on is infinite, as 127 * 516 of q8 is: only weights next to f16's largest
// value have such scales.
template <typename Pick>
Id OnnxSink::dequantized(const TensorKey& key, MatrixOrder order, int64_t axis, Pick pick) {
  const DType dtype = bundle_.weight(key).dtype;
  std::vector<Id> inputs{pick(part(key, QuantizedPart::kCodes, order)),
                         pick(part(key, QuantizedPart::kScales, order))};
  if (dtype == DType::kQ4) {
    const Id grid = graph_.constant("q4_grid", OnnxType::kInt8, {std::ssize(kQ4Grid)},
                                    std::as_bytes(std::span(kQ4Grid)));
    const Id index =
        graph_.node("Cast", {inputs[0]}, {{"to", static_cast<int64_t>(OnnxType::kInt32)}});
    inputs[0] = graph_.node("Gather", {grid, index}, {{"axis", int64_t{0}}});
  }
  if (dtype != DType::kQ8) inputs.push_back(pick(part(key, QuantizedPart::kZeros, order)));
  const NetworkTensor values = node("DequantizeLinear", std::move(inputs),
                                    {{"axis", axis}, {"block_size", int64_t{kBlockColumns}}});
  const ElementType type = layer_type(form_, key.layer);
  return id_of(type == ElementType::kFloat32 ? values : cast(values, type));
}

Id OnnxSink::matrix(const TensorKey& key, MatrixOrder order) {
  if (is_quantized(bundle_.weight(key).dtype)) {
    const int64_t axis = order == MatrixOrder::kByRows ? 1 : 0;
    return dequantized(key, order, axis, [](Id whole) { return whole; });
  }
  Shape shape = tensor_shape(bundle_.spec(), key);
  if (order == MatrixOrder::kByColumns) std::reverse(shape.begin(), shape.end());
  const ElementType type = layer_type(form_, key.layer);
  return external(to_string(key), onnx_type(type), shape, OnnxData::Matrix{key, type, order});
}

// Of a quantised table only the rows that are asked for are decoded, but for systems that take
// codes nowhere but before DequantizeLinear.
NetworkTensor OnnxSink::embed(NetworkTensor ids, const TensorKey& table) {
  const auto rows = [&](Id whole) {
    return graph_.node("Gather", {whole, id_of(ids)}, {{"axis", int64_t{0}}});
  };
  if (composed_ || !is_quantized(bundle_.weight(table).dtype)) {
    return NetworkTensor{rows(matrix(table, MatrixOrder::kByRows))};
  }
  constexpr int64_t kWidthAxis = 2;  // Of [B, S, W].
  return NetworkTensor{dequantized(table, MatrixOrder::kByRows, kWidthAxis, rows)};
}

// MatMul takes a matrix as [in, out]. Matrices of the vocabulary are the largest there are, and a
// tied one is the embedding as well, stored once: these are turned by the graph.
NetworkTensor OnnxSink::linear(NetworkTensor x, const TensorKey& weight) {
  if (!is_of_vocabulary(weight.role)) {
    return node("MatMul", {id_of(x), matrix(weight, MatrixOrder::kByColumns)});
  }
  const NetworkTensor turned = node("Transpose", {matrix(weight, MatrixOrder::kByRows)},
                                    {{"perm", std::vector<int64_t>{1, 0}}});
  return node("MatMul", {id_of(x), id_of(turned)});
}

NetworkTensor OnnxSink::vector(const TensorKey& weight) {
  const OnnxData::Matrix content{weight, ElementType::kFloat32, MatrixOrder::kByRows};
  return NetworkTensor{
      external(to_string(weight), OnnxType::kFloat, tensor_shape(bundle_.spec(), weight), content)};
}

NetworkTensor OnnxSink::constant(std::string_view name, const Shape& shape,
                                 std::vector<float> values) {
  if (values.size() <= kMaxInlineFloats) {
    return NetworkTensor{
        graph_.constant(name, OnnxType::kFloat, shape, std::as_bytes(std::span(values)))};
  }
  return NetworkTensor{external(name, OnnxType::kFloat, shape, std::move(values))};
}

// ---- Element by element

NetworkTensor OnnxSink::binary(Binary operation, NetworkTensor a, NetworkTensor b) {
  constexpr std::string_view kOps[] = {"Add", "Sub", "Mul", "Div"};
  return node(kOps[static_cast<size_t>(operation)], {id_of(a), id_of(b)});
}

NetworkTensor OnnxSink::unary(Unary operation, NetworkTensor x) {
  return node(operation == Unary::kSquareRoot ? "Sqrt" : "Sigmoid", {id_of(x)});
}

NetworkTensor OnnxSink::cast(NetworkTensor x, ElementType type) {
  return node("Cast", {id_of(x)}, {{"to", static_cast<int64_t>(onnx_type(type))}});
}

NetworkTensor OnnxSink::mean(NetworkTensor x) {
  return node("ReduceMean", {id_of(x), graph_.integers(std::array<int64_t, 1>{-1})},
              {{"keepdims", int64_t{1}}});
}

// ---- Arrangement

NetworkTensor OnnxSink::gather(NetworkTensor table, NetworkTensor indices) {
  return node("Gather", {id_of(table), id_of(indices)}, {{"axis", int64_t{0}}});
}

NetworkTensor OnnxSink::select_tokens(NetworkTensor x, NetworkTensor rows) {
  // In a shape 0 stands for the length that is there, -1 for what is left.
  const NetworkTensor flat =
      node("Reshape", {id_of(x), graph_.integers(std::array<int64_t, 3>{1, -1, 0})});
  return node("Gather", {id_of(flat), id_of(rows)}, {{"axis", int64_t{1}}});
}

NetworkTensor OnnxSink::split_heads(NetworkTensor x, int heads) {
  const NetworkTensor split =
      node("Reshape", {id_of(x), graph_.integers(std::array<int64_t, 4>{0, 0, heads, -1})});
  return node("Transpose", {id_of(split)}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
}

NetworkTensor OnnxSink::merge_heads(NetworkTensor x) {
  const NetworkTensor turned =
      node("Transpose", {id_of(x)}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  return node("Reshape", {id_of(turned), graph_.integers(std::array<int64_t, 3>{0, 0, -1})});
}

NetworkTensor OnnxSink::slice(NetworkTensor x, int first, int count) {
  const auto single = [this](int64_t value) { return graph_.integers(std::span(&value, 1)); };
  return node("Slice", {id_of(x), single(first), single(first + count), single(-1)});
}

NetworkTensor OnnxSink::concat(std::span<const NetworkTensor> parts, int axis) {
  std::vector<Id> ids;
  for (const NetworkTensor part : parts) ids.push_back(id_of(part));
  return node("Concat", std::move(ids), {{"axis", int64_t{axis}}});
}

// ---- Attention

NetworkTensor OnnxSink::attention(NetworkTensor q, NetworkTensor k, NetworkTensor v,
                                  NetworkTensor mask, ElementType type) {
  if (composed_ && type == ElementType::kFloat32) return composed_attention(q, k, v, mask);
  std::vector<OnnxAttribute> attributes;
  if (!composed_)
    attributes.push_back({"softmax_precision", static_cast<int64_t>(OnnxType::kFloat)});
  return node("Attention", {id_of(q), id_of(k), id_of(v), id_of(mask)}, std::move(attributes));
}

// Query heads that read one KV head are rows of one product. Each side is scaled by half of the
// scale's exponent, as the operator's specification has it.
NetworkTensor OnnxSink::composed_attention(NetworkTensor q, NetworkTensor k, NetworkTensor v,
                                           NetworkTensor mask) {
  const DecoderSpec& spec = bundle_.spec();
  const auto by_heads = [&](NetworkTensor x, int heads) {
    return node("Reshape", {id_of(x), graph_.integers(std::array<int64_t, 4>{0, heads, -1, 0})});
  };
  const NetworkTensor root = constant("attention.root_of_scale", {1, 1, 1, 1},
                                      {std::pow(static_cast<float>(spec.head_dim), -0.25F)});
  const NetworkTensor unseen =
      constant("attention.unseen", {1, 1, 1, 1}, {std::numeric_limits<float>::lowest()});
  const NetworkTensor keys = node("Transpose", {id_of(binary(Binary::kMultiply, k, root))},
                                  {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  const NetworkTensor queries = by_heads(binary(Binary::kMultiply, q, root), spec.num_kv_heads);
  const NetworkTensor scores =
      by_heads(node("MatMul", {id_of(queries), id_of(keys)}), spec.num_heads);
  const NetworkTensor seen = node("Where", {id_of(mask), id_of(scores), id_of(unseen)});
  const NetworkTensor weights =
      by_heads(node("Softmax", {id_of(seen)}, {{"axis", int64_t{-1}}}), spec.num_kv_heads);
  return by_heads(node("MatMul", {id_of(weights), id_of(v)}), spec.num_heads);
}

NetworkTensor OnnxSink::update_cache(NetworkTensor /*cache*/, NetworkTensor /*update*/,
                                     NetworkTensor /*write_indices*/) {
  TRTMC_CHECK(false, "opset 23 has no operator that writes into a cache");
}

NetworkTensor OnnxSink::causal_mask(NetworkTensor attention_mask, NetworkTensor ids, int window) {
  const auto make = [this](std::string_view op, std::vector<Id> inputs,
                           std::vector<OnnxAttribute> attributes = {}) {
    return graph_.node(op, std::move(inputs), std::move(attributes));
  };
  const auto length = [&](NetworkTensor x) {  // Of axis 1: [1].
    return make("Shape", {id_of(x)}, {{"start", int64_t{1}}, {"end", int64_t{2}}});
  };
  const Id axis_0 = graph_.integers(std::array<int64_t, 1>{0});
  const Id total = length(attention_mask);
  const Id keys =
      make("Range", {graph_.integer(0), make("Squeeze", {total, axis_0}), graph_.integer(1)});
  const Id first = make("Sub", {total, length(ids)});
  const Id queries = make("Unsqueeze", {make("Slice", {keys, first, total, axis_0}),
                                        graph_.integers(std::array<int64_t, 1>{1})});
  Id sees = make("LessOrEqual", {keys, queries});  // [S, T]
  if (window > 0) {
    const Id before = make("Sub", {queries, graph_.integer(window)});
    sees = make("And", {sees, make("Greater", {keys, before})});
  }
  const Id itself = make("Equal", {keys, queries});
  const Id tokens = make("Unsqueeze", {id_of(cast(attention_mask, ElementType::kBool)),
                                       graph_.integers(std::array<int64_t, 2>{1, 2})});
  return NetworkTensor{make("And", {sees, make("Or", {tokens, itself})})};
}

// ---- What opset 23 has operators for

NetworkTensor OnnxSink::rms_norm(NetworkTensor x, NetworkTensor weight, float epsilon) {
  if (composed_) return NetworkSink::rms_norm(x, weight, epsilon);
  return node("RMSNormalization", {id_of(x), id_of(weight)},
              {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
}

NetworkTensor OnnxSink::rotate(NetworkTensor x, NetworkTensor cos, NetworkTensor sin,
                               int rotary_dim, int head_dim) {
  if (composed_) return NetworkSink::rotate(x, cos, sin, rotary_dim, head_dim);
  return node("RotaryEmbedding", {id_of(x), id_of(cos), id_of(sin)},
              {{"rotary_embedding_dim", int64_t{rotary_dim == head_dim ? 0 : rotary_dim}}});
}

}  // namespace trtmc
