#include "graph/onnx_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"
#include "base/file.h"
#include "graph/protobuf_message.h"

namespace trtmc {
namespace {

constexpr int64_t kIrVersion = 11;  // That came with opset 23.

// The numbers of the fields of onnx.ai's messages, as far as they are written here.
namespace model_proto {
constexpr int kIrVersionField = 1, kProducerName = 2, kProducerVersion = 3, kGraph = 7;
constexpr int kOpsetImport = 8;
}  // namespace model_proto
namespace opset_proto {
constexpr int kVersion = 2;
}
namespace graph_proto {
constexpr int kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12;
}
namespace node_proto {
constexpr int kInput = 1, kOutput = 2, kName = 3, kOpType = 4, kAttribute = 5;
}
namespace attribute_proto {
constexpr int kName = 1, kFloat = 2, kInt = 3, kInts = 8, kType = 20;
constexpr int64_t kTypeFloat = 1, kTypeInt = 2, kTypeInts = 7;
}  // namespace attribute_proto
namespace tensor_proto {
constexpr int kDims = 1, kDataType = 2, kName = 8, kRawData = 9, kExternalData = 13;
constexpr int kDataLocation = 14;
constexpr int64_t kLocationExternal = 1;
}  // namespace tensor_proto
namespace entry_proto {
constexpr int kKey = 1, kValue = 2;
}
namespace value_info_proto {
constexpr int kName = 1, kType = 2;
}
namespace type_proto {
constexpr int kTensorType = 1, kElementType = 1, kShape = 2, kDim = 1, kDimValue = 1, kDimParam = 2;
}

ProtobufMessage entry(std::string_view key, std::string_view value) {
  ProtobufMessage message;
  message.bytes(entry_proto::kKey, key);
  message.bytes(entry_proto::kValue, value);
  return message;
}

ProtobufMessage value_info(std::string_view name, OnnxType type, std::span<const Axis> axes) {
  ProtobufMessage shape;
  for (const Axis& axis : axes) {
    ProtobufMessage dim;
    if (axis.length > 0) {
      dim.integer(type_proto::kDimValue, axis.length);
    } else {
      dim.bytes(type_proto::kDimParam, axis.name);
    }
    shape.message(type_proto::kDim, dim);
  }
  ProtobufMessage tensor;
  tensor.integer(type_proto::kElementType, static_cast<int64_t>(type));
  tensor.message(type_proto::kShape, shape);
  ProtobufMessage outer;
  outer.message(type_proto::kTensorType, tensor);
  ProtobufMessage info;
  info.bytes(value_info_proto::kName, name);
  info.message(value_info_proto::kType, outer);
  return info;
}

ProtobufMessage encode(const OnnxAttribute& attribute) {
  ProtobufMessage message;
  message.bytes(attribute_proto::kName, attribute.name);
  if (const auto* integer = std::get_if<int64_t>(&attribute.value)) {
    message.integer(attribute_proto::kInt, *integer);
    message.integer(attribute_proto::kType, attribute_proto::kTypeInt);
  } else if (const auto* real = std::get_if<float>(&attribute.value)) {
    message.real(attribute_proto::kFloat, *real);
    message.integer(attribute_proto::kType, attribute_proto::kTypeFloat);
  } else {
    for (const int64_t value : std::get<std::vector<int64_t>>(attribute.value)) {
      message.integer(attribute_proto::kInts, value);
    }
    message.integer(attribute_proto::kType, attribute_proto::kTypeInts);
  }
  return message;
}

}  // namespace

OnnxType onnx_type(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return OnnxType::kFloat;
    case ElementType::kFloat16:
      return OnnxType::kFloat16;
    case ElementType::kBFloat16:
      return OnnxType::kBFloat16;
    case ElementType::kInt32:
      return OnnxType::kInt32;
    case ElementType::kInt64:
      return OnnxType::kInt64;
    case ElementType::kBool:
      return OnnxType::kBool;
  }
  TRTMC_CHECK(false, "not an element type");
}

OnnxGraph::Id OnnxGraph::add_value(std::string name) {
  names_.push_back(std::move(name));
  return static_cast<Id>(names_.size()) - 1;
}

OnnxGraph::Id OnnxGraph::input(std::string_view name, OnnxType type, std::span<const Axis> axes) {
  const Id id = add_value(std::string(name));
  inputs_.push_back({id, type, {axes.begin(), axes.end()}});
  return id;
}

OnnxGraph::Id OnnxGraph::node(std::string_view op, std::vector<Id> inputs,
                              std::vector<OnnxAttribute> attributes) {
  const Id id = add_value(fmt::format("{}_{}", op, nodes_.size()));
  nodes_.push_back({op, std::move(inputs), id, std::move(attributes)});
  return id;
}

void OnnxGraph::output(std::string_view name, Id value, OnnxType type, std::span<const Axis> axes) {
  const auto is_value = [value](const auto& other) { return other.id == value; };
  const bool made_here = std::any_of(nodes_.begin(), nodes_.end(),
                                     [value](const Node& node) { return node.output == value; });
  TRTMC_CHECK(made_here && std::none_of(outputs_.begin(), outputs_.end(), is_value),
              "an output is what one node gives, and is named once");
  names_[static_cast<size_t>(value)] = name;
  outputs_.push_back({value, type, {axes.begin(), axes.end()}});
}

OnnxGraph::Id OnnxGraph::find_constant(std::string_view name) const {
  const auto found = constant_ids_.find(name);
  return found == constant_ids_.end() ? kAbsent : found->second;
}

OnnxGraph::Id OnnxGraph::add_constant(std::string_view name, Constant constant) {
  if (const Id id = find_constant(name); id != kAbsent) return id;
  constant.id = add_value(std::string(name));
  constant_ids_.emplace(name, constant.id);
  constants_.push_back(std::move(constant));
  return constants_.back().id;
}

OnnxGraph::Id OnnxGraph::constant(std::string_view name, OnnxType type, const Shape& shape,
                                  std::span<const std::byte> bytes) {
  return add_constant(name, {kAbsent, type, shape, std::string(as_text(bytes))});
}

OnnxGraph::Id OnnxGraph::integers(std::span<const int64_t> values) {
  return constant(fmt::format("integers_{}", fmt::join(values, "_")), OnnxType::kInt64,
                  {static_cast<int64_t>(values.size())}, std::as_bytes(values));
}

OnnxGraph::Id OnnxGraph::integer(int64_t value) {
  return constant(fmt::format("integer_{}", value), OnnxType::kInt64, {},
                  std::as_bytes(std::span(&value, 1)));
}

OnnxGraph::Id OnnxGraph::external(std::string_view name, OnnxType type, const Shape& shape,
                                  uint64_t offset, uint64_t bytes) {
  return add_constant(name, {kAbsent, type, shape, Place{offset, bytes}});
}

std::string OnnxGraph::encode_graph(std::string_view name, std::string_view data_file) const {
  const auto name_of = [this](Id id) {
    return id == kAbsent ? std::string_view() : std::string_view(names_[static_cast<size_t>(id)]);
  };
  ProtobufMessage graph;
  for (const Node& node : nodes_) {
    ProtobufMessage message;
    for (const Id input : node.inputs) message.bytes(node_proto::kInput, name_of(input));
    message.bytes(node_proto::kOutput, name_of(node.output));
    message.bytes(node_proto::kName, fmt::format("{}/{}", node.op, name_of(node.output)));
    message.bytes(node_proto::kOpType, node.op);
    for (const OnnxAttribute& attribute : node.attributes) {
      message.message(node_proto::kAttribute, trtmc::encode(attribute));
    }
    graph.message(graph_proto::kNode, message);
  }
  graph.bytes(graph_proto::kName, name);
  for (const Constant& constant : constants_) {
    ProtobufMessage message;
    for (const int64_t dim : constant.shape) message.integer(tensor_proto::kDims, dim);
    message.integer(tensor_proto::kDataType, static_cast<int64_t>(constant.type));
    message.bytes(tensor_proto::kName, name_of(constant.id));
    if (const auto* place = std::get_if<Place>(&constant.content)) {
      message.message(tensor_proto::kExternalData, entry("location", data_file));
      message.message(tensor_proto::kExternalData, entry("offset", fmt::to_string(place->offset)));
      message.message(tensor_proto::kExternalData, entry("length", fmt::to_string(place->bytes)));
      message.integer(tensor_proto::kDataLocation, tensor_proto::kLocationExternal);
    } else {
      message.bytes(tensor_proto::kRawData, std::get<std::string>(constant.content));
    }
    graph.message(graph_proto::kInitializer, message);
  }
  for (const Border& input : inputs_) {
    graph.message(graph_proto::kInput, value_info(name_of(input.id), input.type, input.axes));
  }
  for (const Border& output : outputs_) {
    graph.message(graph_proto::kOutput, value_info(name_of(output.id), output.type, output.axes));
  }
  return graph.encoded();
}

std::string OnnxGraph::encode(std::string_view graph_name, std::string_view producer_version,
                              std::string_view data_file) const {
  ProtobufMessage opset;  // Of ONNX's own operators: the domain without a name.
  opset.integer(opset_proto::kVersion, kOnnxOpset);
  ProtobufMessage model;
  model.integer(model_proto::kIrVersionField, kIrVersion);
  model.message(model_proto::kOpsetImport, opset);
  model.bytes(model_proto::kProducerName, "trtmc");
  model.bytes(model_proto::kProducerVersion, producer_version);
  model.bytes(model_proto::kGraph, encode_graph(graph_name, data_file));
  return model.encoded();
}

}  // namespace trtmc
