// A decoder's graph as an ONNX model of opset 23, its weights in a file beside it.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "bundle/bundle.h"
#include "graph/graph_ops.h"
#include "graph/onnx_graph.h"
#include "graph/weight_stream.h"

namespace trtmc {

// A stretch of the data file.
struct OnnxData {
  struct Matrix {
    TensorKey key;
    ElementType type;
    MatrixOrder order;
  };
  struct Part {
    TensorKey key;
    QuantizedPart part;
    MatrixOrder order;
  };
  using Content = std::variant<Matrix, Part, std::vector<float>>;

  uint64_t offset, bytes;
  Content content;
};

class OnnxSink final : public NetworkSink {
 public:
  // For a graph of `form`, of this bundle's weights. `composed`: for systems that lack the
  // operators for norms and rotations, and for TensorRT's parser: it takes no `softmax_precision`,
  // no Attention in float32 that its builder might do by several kernels, and codes before
  // DequantizeLinear only.
  OnnxSink(const Bundle& bundle, const GraphForm& form, bool composed);

  const OnnxGraph& graph() const { return graph_; }
  // What the data file holds, in its order, without overlaps; between them zeros.
  const std::vector<OnnxData>& data() const { return data_; }
  uint64_t data_bytes() const;

  NetworkTensor input(std::string_view name, ElementType type, std::span<const Axis> axes) override;
  void output(std::string_view name, ElementType type, NetworkTensor x,
              std::span<const Axis> axes) override;
  NetworkTensor embed(NetworkTensor ids, const TensorKey& table) override;
  NetworkTensor linear(NetworkTensor x, const TensorKey& weight) override;
  NetworkTensor vector(const TensorKey& weight) override;
  NetworkTensor constant(std::string_view name, const Shape& shape,
                         std::vector<float> values) override;
  NetworkTensor binary(Binary operation, NetworkTensor a, NetworkTensor b) override;
  NetworkTensor unary(Unary operation, NetworkTensor x) override;
  NetworkTensor cast(NetworkTensor x, ElementType type) override;
  NetworkTensor mean(NetworkTensor x) override;
  NetworkTensor gather(NetworkTensor table, NetworkTensor indices) override;
  NetworkTensor select_tokens(NetworkTensor x, NetworkTensor rows) override;
  NetworkTensor split_heads(NetworkTensor x, int heads) override;
  NetworkTensor merge_heads(NetworkTensor x) override;
  NetworkTensor slice(NetworkTensor x, int first, int count) override;
  NetworkTensor concat(std::span<const NetworkTensor> parts, int axis) override;
  NetworkTensor attention(NetworkTensor q, NetworkTensor k, NetworkTensor v, NetworkTensor mask,
                          ElementType type) override;
  NetworkTensor update_cache(NetworkTensor cache, NetworkTensor update,
                             NetworkTensor write_indices) override;
  NetworkTensor causal_mask(NetworkTensor attention_mask, NetworkTensor ids, int window) override;
  NetworkTensor rms_norm(NetworkTensor x, NetworkTensor weight, float epsilon) override;
  NetworkTensor rotate(NetworkTensor x, NetworkTensor cos, NetworkTensor sin, int rotary_dim,
                       int head_dim) override;

 private:
  // In float32, of products and a softmax.
  NetworkTensor composed_attention(NetworkTensor q, NetworkTensor k, NetworkTensor v,
                                   NetworkTensor mask);
  NetworkTensor node(std::string_view op, std::vector<OnnxGraph::Id> inputs,
                     std::vector<OnnxAttribute> attributes = {});
  // The whole matrix, in the graph's type.
  OnnxGraph::Id matrix(const TensorKey& key, MatrixOrder order);
  // A quantised one: its numbers and scales (see QuantizedPart), which `pick` may take rows of
  // first; the blocks lie along `axis` of what it gives.
  template <typename Pick>
  OnnxGraph::Id dequantized(const TensorKey& key, MatrixOrder order, int64_t axis, Pick pick);
  OnnxGraph::Id part(const TensorKey& key, QuantizedPart part, MatrixOrder order);
  OnnxGraph::Id external(std::string_view name, OnnxType type, const Shape& shape,
                         OnnxData::Content content);

  const Bundle& bundle_;
  const GraphForm& form_;
  bool composed_;
  OnnxGraph graph_;
  std::vector<OnnxData> data_;
};

}  // namespace trtmc
