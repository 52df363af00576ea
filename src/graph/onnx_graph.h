// A graph of ONNX operators under construction, and its file. Names, numbers of fields and types
// are those of the ONNX specification (onnx.ai); the operators are the caller's business.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "graph/network_sink.h"
#include "tensor/tensor_view.h"

namespace trtmc {

inline constexpr int kOnnxOpset = 23;  // The first with Attention, RMSNormalization and the like.

// TensorProto.DataType.
enum class OnnxType : int {
  kFloat = 1,
  kInt8 = 3,
  kInt32 = 6,
  kInt64 = 7,
  kBool = 9,
  kFloat16 = 10,
  kBFloat16 = 16,
  kUint4 = 21
};
OnnxType onnx_type(ElementType type);

struct OnnxAttribute {
  std::string_view name;
  std::variant<int64_t, float, std::vector<int64_t>> value;
};

class OnnxGraph {
 public:
  using Id = int;
  static constexpr Id kAbsent = -1;  // An optional input that is left out.

  Id input(std::string_view name, OnnxType type, std::span<const Axis> axes);
  // Of the operator's one output.
  Id node(std::string_view op, std::vector<Id> inputs, std::vector<OnnxAttribute> attributes = {});
  // Gives the value its name outside. It must be a node's, and have no such name yet.
  void output(std::string_view name, Id value, OnnxType type, std::span<const Axis> axes);

  // A constant within the file. Asked for again by the same name, the same.
  Id constant(std::string_view name, OnnxType type, const Shape& shape,
              std::span<const std::byte> bytes);
  Id integers(std::span<const int64_t> values);  // int64 [values.size()].
  Id integer(int64_t value);                     // int64, a scalar.
  // A constant in the data file, at `offset`. Likewise.
  Id external(std::string_view name, OnnxType type, const Shape& shape, uint64_t offset,
              uint64_t bytes);
  // The constant of that name, or kAbsent.
  Id find_constant(std::string_view name) const;

  // The file. `data_file`: the name of the file beside it that holds the external constants.
  std::string encode(std::string_view graph_name, std::string_view producer_version,
                     std::string_view data_file) const;

 private:
  struct Node {
    std::string_view op;
    std::vector<Id> inputs;
    Id output;
    std::vector<OnnxAttribute> attributes;
  };
  struct Place {
    uint64_t offset, bytes;
  };
  struct Constant {
    Id id;
    OnnxType type;
    Shape shape;
    std::variant<std::string, Place> content;
  };
  struct Border {  // An input or an output.
    Id id;
    OnnxType type;
    std::vector<Axis> axes;
  };

  Id add_value(std::string name);
  Id add_constant(std::string_view name, Constant constant);
  std::string encode_graph(std::string_view name, std::string_view data_file) const;

  std::vector<std::string> names_;  // By id.
  std::vector<Node> nodes_;
  std::vector<Constant> constants_;
  std::map<std::string, Id, std::less<>> constant_ids_;
  std::vector<Border> inputs_, outputs_;
};

}  // namespace trtmc
