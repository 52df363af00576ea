// A network as the fake of TensorRT keeps it, and what each layer computes according to NvInfer.h:
// read this as the meaning that the backend relies on.
#pragma once

#include <NvInfer.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace trtmc::fake_nvinfer {

using Lengths = std::vector<int64_t>;

// Values of any type as floats: exact for whole numbers below 2^24.
struct Array {
  Lengths lengths;
  std::vector<float> values;
};

int64_t elements(const Lengths& lengths);
// Rounded to the type that a tensor has.
void round_to(nvinfer1::DataType type, std::vector<float>& values);
size_t bytes_of(nvinfer1::DataType type);
Array read_array(const void* memory, nvinfer1::DataType type, const Lengths& lengths);
void write_array(const Array& array, nvinfer1::DataType type, void* memory);

struct Node {
  std::string name = {};  // Of an input, an output or weights.
  nvinfer1::DataType type = nvinfer1::DataType::kFLOAT;
  std::vector<int> inputs = {};  // Other nodes.
  // -1 where a length differs from run to run.
  std::function<Lengths(const std::vector<Lengths>& inputs)> infer = {};
  std::function<Array(const std::vector<Array>& inputs)> compute =
      {};  // Empty: an input or weights.
  bool is_weights = false, is_input = false;
  int in_place_of = -1;  // The input whose memory this has to have.
};

struct Graph {
  std::vector<std::shared_ptr<Node>> nodes;
  std::vector<int> outputs;
  std::map<std::string, std::vector<std::byte>> weights;  // As they were when the engine was built.
};

// What layers are told after they were added.
struct ShuffleSettings {
  std::vector<int> first = {}, second = {};
  Lengths reshape = {};
};
struct SliceSettings {
  int64_t start, size;  // The size is the second input's, if there is one.
  int axis = -1;
};

// Layers, by what they are asked for.
Node shuffle(int input, std::shared_ptr<ShuffleSettings> settings);
Node slice(int input, std::shared_ptr<SliceSettings> settings);
Node gather(int table, int indices, int axis);
Node element_wise(int a, int b, nvinfer1::ElementWiseOperation operation);
Node each(int input, std::function<float(float)> function);
Node mean_of_last(int input);
Node concatenation(const std::vector<int>& inputs, std::shared_ptr<int> axis);
Node product_transposed(int a, int b);
Node shape_of(int input);
Node attention(int q, int k, int v);  // The mask is the fourth input.
Node cache_update(int cache, int update, int index);

}  // namespace trtmc::fake_nvinfer
