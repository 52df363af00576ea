// A decoder's graph as a strongly typed network of TensorRT: what onnx_sink.h writes into a file,
// built in memory. One sequence at a time: the batch axis has length 1.
#pragma once

#include <NvInfer.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/network_sink.h"
#include "graph/weight_stream.h"

namespace trtmc::tensorrt {

nvinfer1::DataType data_type(ElementType type);

// Values that a network and its engine refer to by name.
struct NamedWeights {
  nvinfer1::DataType type;
  std::vector<std::byte> bytes;
  int64_t count;

  nvinfer1::Weights view() const { return {type, bytes.data(), count}; }
};

// An input of the network, with what its lengths depend on.
struct InputShape {
  struct Length {
    int64_t fixed;     // 0: that of the axis.
    std::string axis;  // "sequence_length"
  };
  std::string name;
  std::vector<Length> lengths;
};

class NvInferSink final : public NetworkSink {
 public:
  using AxisLengths = std::map<std::string, int64_t, std::less<>>;

  // `type` is the graph's, `lengths` are those of axes that are the same in every run. What is
  // borrowed and this object must live until an engine was built and has got its weights.
  NvInferSink(nvinfer1::INetworkDefinition& network, const DecoderSpec& spec,
              const WeightStream& weights, ElementType type, AxisLengths lengths);

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
  // Never: masks are given.
  NetworkTensor causal_mask(NetworkTensor attention_mask, NetworkTensor ids, int window) override;

  const std::vector<InputShape>& inputs() const { return inputs_; }
  const std::map<std::string, NamedWeights, std::less<>>& weights() const { return weights_; }

 private:
  nvinfer1::ITensor& get(NetworkTensor tensor) const;
  nvinfer1::DataType type_of(NetworkTensor tensor) const;
  NetworkTensor keep(nvinfer1::ITensor* tensor, nvinfer1::DataType type);
  // The layer's only output. Throws kUnsupported naming the operation if there is no layer.
  NetworkTensor keep_output(nvinfer1::ILayer* layer, nvinfer1::DataType type,
                            std::string_view operation);
  nvinfer1::ILayer& made(nvinfer1::ILayer* layer, std::string_view operation) const;

  // A constant that is made once, [dims]; a matrix in the type given, [out, in].
  NetworkTensor constant_of(const std::string& name, const nvinfer1::Dims& dims,
                            NamedWeights weights);
  NetworkTensor weight(const TensorKey& key, nvinfer1::DataType type, const Shape& shape);
  NetworkTensor matrix(const TensorKey& key, nvinfer1::DataType type);
  // One whole number as a tensor [1].
  NetworkTensor index(std::string_view name, int32_t value);
  NetworkTensor scaled_queries(NetworkTensor q);
  // The first positions of a cache [1, H, capacity, D], as many as the mask [1, 1, S, T] has.
  NetworkTensor tokens_in_use(NetworkTensor cache, NetworkTensor mask);

  nvinfer1::INetworkDefinition& network_;
  const DecoderSpec& spec_;
  const WeightStream& stream_;
  nvinfer1::DataType type_;
  AxisLengths lengths_;
  std::vector<nvinfer1::ITensor*> tensors_;  // By number.
  std::vector<nvinfer1::DataType> types_;    // Theirs: TensorRT infers them later.
  std::vector<InputShape> inputs_;
  std::map<std::string, NamedWeights, std::less<>> weights_;
  std::map<std::string, NetworkTensor, std::less<>> constants_;
  std::set<NetworkTensor> caches_;  // Those that are written in place.
};

}  // namespace trtmc::tensorrt
