#include "tests/tensorrt/fake_graph.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "tensor/dtype.h"

namespace trtmc::fake_nvinfer {

using nvinfer1::DataType;

int64_t elements(const Lengths& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), int64_t{1}, std::multiplies<>());
}

void round_to(DataType type, std::vector<float>& values) {
  for (float& value : values) {
    if (type == DataType::kBF16) value = bf16_to_float(float_to_bf16(value));
    if (type == DataType::kHALF) value = f16_to_float(float_to_f16(value));
  }
}

size_t bytes_of(DataType type) {
  switch (type) {
    case DataType::kFLOAT:
    case DataType::kINT32:
      return 4;
    case DataType::kHALF:
    case DataType::kBF16:
      return 2;
    case DataType::kBOOL:
      return 1;
    default:
      return 8;
  }
}

Array read_array(const void* memory, DataType type, const Lengths& lengths) {
  Array array{lengths, std::vector<float>(static_cast<size_t>(elements(lengths)))};
  const auto* bytes = static_cast<const std::byte*>(memory);
  for (size_t i = 0; i < array.values.size(); ++i) {
    const std::byte* at = bytes + i * bytes_of(type);
    if (type == DataType::kFLOAT) std::memcpy(&array.values[i], at, 4);
    int32_t whole = 0;
    uint16_t half = 0;
    if (type == DataType::kINT32) std::memcpy(&whole, at, 4);
    if (type == DataType::kHALF || type == DataType::kBF16) std::memcpy(&half, at, 2);
    if (type == DataType::kINT32) array.values[i] = static_cast<float>(whole);
    if (type == DataType::kHALF) array.values[i] = f16_to_float(half);
    if (type == DataType::kBF16) array.values[i] = bf16_to_float(half);
    if (type == DataType::kBOOL) array.values[i] = static_cast<float>(std::to_integer<int>(*at));
  }
  return array;
}

void write_array(const Array& array, DataType type, void* memory) {
  auto* bytes = static_cast<std::byte*>(memory);
  for (size_t i = 0; i < array.values.size(); ++i) {
    std::byte* at = bytes + i * bytes_of(type);
    const uint16_t half =
        type == DataType::kHALF ? float_to_f16(array.values[i]) : float_to_bf16(array.values[i]);
    if (type == DataType::kFLOAT) {
      std::memcpy(at, &array.values[i], 4);
    } else {
      std::memcpy(at, &half, 2);
    }
  }
}

namespace {

Array permuted(const Array& x, const std::vector<int>& order) {
  if (order.empty()) return x;
  const size_t rank = x.lengths.size();
  Array out{Lengths(rank), std::vector<float>(x.values.size())};
  for (size_t i = 0; i < rank; ++i) out.lengths[i] = x.lengths[static_cast<size_t>(order[i])];
  Lengths index(rank, 0);
  for (float& value : out.values) {
    int64_t from = 0;
    Lengths source(rank);
    for (size_t i = 0; i < rank; ++i) source[static_cast<size_t>(order[i])] = index[i];
    for (size_t i = 0; i < rank; ++i) from = from * x.lengths[i] + source[i];
    value = x.values[static_cast<size_t>(from)];
    for (size_t i = rank; i-- > 0;) {
      if (++index[i] < out.lengths[i]) break;
      index[i] = 0;
    }
  }
  return out;
}

Lengths permuted(const Lengths& lengths, const std::vector<int>& order) {
  if (order.empty()) return lengths;
  Lengths out;
  for (size_t i = 0; i < lengths.size(); ++i) out.push_back(lengths[static_cast<size_t>(order[i])]);
  return out;
}

Lengths reshaped(Lengths wanted, int64_t count) {
  int64_t known = 1;
  for (const int64_t length : wanted) known *= length < 0 ? 1 : length;
  for (int64_t& length : wanted) {
    if (length < 0 && count >= 0) length = count / known;
  }
  return wanted;
}

bool unknown(const Lengths& lengths) { return std::ranges::find(lengths, -1) != lengths.end(); }

// [outer, lengths[axis], inner]
struct Around {
  int64_t outer = 1, inner = 1;
  Around(const Lengths& lengths, int axis) {
    for (size_t i = 0; i < lengths.size(); ++i) {
      (static_cast<int>(i) < axis ? outer : inner) *= static_cast<int>(i) == axis ? 1 : lengths[i];
    }
  }
};

Array sliced(const Array& x, const SliceSettings& settings, int64_t size) {
  Array out{x.lengths, {}};
  const auto axis = static_cast<size_t>(settings.axis);
  TRTMC_CHECK(settings.start + size <= x.lengths[axis], "a slice beyond its input");
  out.lengths[axis] = size;
  const Around around(x.lengths, settings.axis);
  for (int64_t o = 0; o < around.outer; ++o) {
    const auto first = x.values.begin() + (o * x.lengths[axis] + settings.start) * around.inner;
    out.values.insert(out.values.end(), first, first + size * around.inner);
  }
  return out;
}

// Along one row of scores: softmax over those that the mask lets through.
void attend(const float* q, const Array& k, const Array& v, const float* mask, int64_t head,
            float* out) {
  const int64_t tokens = k.lengths[2];
  const int64_t width = k.lengths[3];
  std::vector<double> scores(static_cast<size_t>(tokens), -std::numeric_limits<double>::infinity());
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t t = 0; t < tokens; ++t) {
    if (mask[t] == 0) continue;
    double score = 0;
    for (int64_t i = 0; i < width; ++i) {
      score +=
          double{q[i]} * double{k.values[static_cast<size_t>((head * tokens + t) * width + i)]};
    }
    scores[static_cast<size_t>(t)] = score;
    largest = std::max(largest, score);
  }
  double total = 0;
  for (double& score : scores) total += score = std::exp(score - largest);
  for (int64_t i = 0; i < width; ++i) {
    double mixed = 0;
    for (int64_t t = 0; t < tokens; ++t) {
      if (mask[t] == 0) continue;
      mixed += scores[static_cast<size_t>(t)] / total *
               double{v.values[static_cast<size_t>((head * tokens + t) * width + i)]};
    }
    out[i] = static_cast<float>(mixed);
  }
}

}  // namespace

Node shuffle(int input, std::shared_ptr<ShuffleSettings> settings) {
  Node node{.inputs = {input}};
  node.infer = [settings](const std::vector<Lengths>& in) {
    const Lengths first = permuted(in[0], settings->first);
    return permuted(reshaped(settings->reshape, unknown(first) ? -1 : elements(first)),
                    settings->second);
  };
  node.compute = [settings](const std::vector<Array>& in) {
    Array x = permuted(in[0], settings->first);
    x.lengths = reshaped(settings->reshape, elements(x.lengths));
    return permuted(x, settings->second);
  };
  return node;
}

Node slice(int input, std::shared_ptr<SliceSettings> settings) {
  Node node{.inputs = {input}};
  node.infer = [settings](const std::vector<Lengths>& in) {
    Lengths out = in[0];
    out[static_cast<size_t>(settings->axis)] = in.size() > 1 ? -1 : settings->size;
    return out;
  };
  node.compute = [settings](const std::vector<Array>& in) {
    const int64_t size = in.size() > 1 ? static_cast<int64_t>(in[1].values[0]) : settings->size;
    return sliced(in[0], *settings, size);
  };
  return node;
}

Node gather(int table, int indices, int axis) {
  Node node{.inputs = {table, indices}};
  node.infer = [axis](const std::vector<Lengths>& in) {
    Lengths out(in[0].begin(), in[0].begin() + axis);
    out.insert(out.end(), in[1].begin(), in[1].end());
    out.insert(out.end(), in[0].begin() + axis + 1, in[0].end());
    return out;
  };
  const auto infer = node.infer;
  node.compute = [axis, infer](const std::vector<Array>& in) {
    Array out{infer({in[0].lengths, in[1].lengths}), {}};
    const Around around(in[0].lengths, axis);
    const int64_t length = in[0].lengths[static_cast<size_t>(axis)];
    for (int64_t o = 0; o < around.outer; ++o) {
      for (const float index : in[1].values) {
        TRTMC_CHECK(index >= 0 && static_cast<int64_t>(index) < length, "an index out of range");
        const auto row =
            in[0].values.begin() + (o * length + static_cast<int64_t>(index)) * around.inner;
        out.values.insert(out.values.end(), row, row + around.inner);
      }
    }
    return out;
  };
  return node;
}

Node element_wise(int a, int b, nvinfer1::ElementWiseOperation operation) {
  Node node{.inputs = {a, b}};
  node.infer = [](const std::vector<Lengths>& in) {
    TRTMC_CHECK(in[0].size() == in[1].size(), "ranks that differ");
    Lengths out = in[0];
    for (size_t i = 0; i < out.size(); ++i) {
      if (in[0][i] == 1) out[i] = in[1][i];
      TRTMC_CHECK(in[0][i] == in[1][i] || in[0][i] == 1 || in[1][i] == 1, "lengths that differ");
    }
    return out;
  };
  const auto infer = node.infer;
  node.compute = [operation, infer](const std::vector<Array>& in) {
    using nvinfer1::ElementWiseOperation;
    Array out{infer({in[0].lengths, in[1].lengths}), {}};
    Lengths index(out.lengths.size(), 0);
    const auto at = [&](const Array& x) {
      int64_t offset = 0;
      for (size_t i = 0; i < index.size(); ++i) {
        offset = offset * x.lengths[i] + (x.lengths[i] == 1 ? 0 : index[i]);
      }
      return x.values[static_cast<size_t>(offset)];
    };
    const int64_t count = elements(out.lengths);
    for (int64_t n = 0; n < count; ++n) {
      const float x = at(in[0]);
      const float y = at(in[1]);
      out.values.push_back(operation == ElementWiseOperation::kSUM    ? x + y
                           : operation == ElementWiseOperation::kSUB  ? x - y
                           : operation == ElementWiseOperation::kPROD ? x * y
                                                                      : x / y);
      for (size_t i = index.size(); i-- > 0;) {
        if (++index[i] < out.lengths[i]) break;
        index[i] = 0;
      }
    }
    return out;
  };
  return node;
}

Node each(int input, std::function<float(float)> function) {
  Node node{.inputs = {input}};
  node.infer = [](const std::vector<Lengths>& in) { return in[0]; };
  node.compute = [function = std::move(function)](const std::vector<Array>& in) {
    Array out = in[0];
    for (float& value : out.values) value = function(value);
    return out;
  };
  return node;
}

Node mean_of_last(int input) {
  Node node{.inputs = {input}};
  node.infer = [](const std::vector<Lengths>& in) {
    Lengths out = in[0];
    out.back() = 1;
    return out;
  };
  node.compute = [](const std::vector<Array>& in) {
    Array out = in[0];
    out.lengths.back() = 1;
    const auto width = static_cast<size_t>(in[0].lengths.back());
    out.values.clear();
    for (size_t row = 0; row < in[0].values.size() / width; ++row) {
      double sum = 0;
      for (size_t i = 0; i < width; ++i) sum += double{in[0].values[row * width + i]};
      out.values.push_back(static_cast<float>(sum / static_cast<double>(width)));
    }
    return out;
  };
  return node;
}

Node concatenation(const std::vector<int>& inputs, std::shared_ptr<int> axis) {
  Node node{.inputs = inputs};
  node.infer = [axis](const std::vector<Lengths>& in) {
    Lengths out = in[0];
    int64_t& length = out[static_cast<size_t>(*axis)];
    for (size_t i = 1; i < in.size(); ++i) {
      const int64_t other = in[i][static_cast<size_t>(*axis)];
      length = length < 0 || other < 0 ? -1 : length + other;
    }
    return out;
  };
  const auto infer = node.infer;
  node.compute = [axis, infer](const std::vector<Array>& in) {
    std::vector<Lengths> lengths;
    for (const Array& part : in) lengths.push_back(part.lengths);
    Array out{infer(lengths), {}};
    const int64_t outer = Around(out.lengths, *axis).outer;
    for (int64_t o = 0; o < outer; ++o) {
      for (const Array& part : in) {
        const auto size = static_cast<int64_t>(part.values.size()) / outer;
        out.values.insert(out.values.end(), part.values.begin() + o * size,
                          part.values.begin() + (o + 1) * size);
      }
    }
    return out;
  };
  return node;
}

Node product_transposed(int a, int b) {
  Node node{.inputs = {a, b}};
  node.infer = [](const std::vector<Lengths>& in) {
    TRTMC_CHECK(in[0].size() == 3 && in[1].size() == 3 && in[0][2] == in[1][2], "factors");
    return Lengths{in[0][0], in[0][1], in[1][1]};
  };
  const auto infer = node.infer;
  node.compute = [infer](const std::vector<Array>& in) {
    Array out{infer({in[0].lengths, in[1].lengths}), {}};
    const auto width = static_cast<size_t>(in[0].lengths[2]);
    for (size_t row = 0; row < static_cast<size_t>(in[0].lengths[1]); ++row) {
      for (size_t column = 0; column < static_cast<size_t>(in[1].lengths[1]); ++column) {
        double sum = 0;
        for (size_t i = 0; i < width; ++i) {
          sum += double{in[0].values[row * width + i]} * double{in[1].values[column * width + i]};
        }
        out.values.push_back(static_cast<float>(sum));
      }
    }
    return out;
  };
  return node;
}

Node shape_of(int input) {
  Node node{.inputs = {input}};
  node.infer = [](const std::vector<Lengths>& in) {
    return Lengths{static_cast<int64_t>(in[0].size())};
  };
  node.compute = [](const std::vector<Array>& in) {
    Array out{{static_cast<int64_t>(in[0].lengths.size())}, {}};
    for (const int64_t length : in[0].lengths) out.values.push_back(static_cast<float>(length));
    return out;
  };
  return node;
}

Node attention(int q, int k, int v) {
  Node node{.inputs = {q, k, v}};
  node.infer = [](const std::vector<Lengths>& in) { return in[0]; };
  node.compute = [](const std::vector<Array>& in) {
    const Array& queries = in[0];
    const Array& allowed = in[3];
    const int64_t heads = queries.lengths[1];
    const int64_t rows = queries.lengths[2];
    const int64_t tokens = in[1].lengths[2];
    TRTMC_CHECK((allowed.lengths == Lengths{1, 1, rows, tokens}), "a mask of another shape");
    Array out{queries.lengths, std::vector<float>(queries.values.size())};
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t at = (head * rows + row) * queries.lengths[3];
        attend(&queries.values[static_cast<size_t>(at)], in[1], in[2],
               &allowed.values[static_cast<size_t>(row * tokens)],
               head / (heads / in[1].lengths[1]), &out.values[static_cast<size_t>(at)]);
      }
    }
    return out;
  };
  return node;
}

// A write beyond the cache is dropped, says the documentation: never to be relied on.
Node cache_update(int cache, int update, int index) {
  Node node{.inputs = {cache, update, index}};
  node.infer = [](const std::vector<Lengths>& in) { return in[0]; };
  node.compute = [](const std::vector<Array>& in) {
    Array out = in[0];
    const int64_t rows = in[1].lengths[2] * in[1].lengths[3];
    const auto first = static_cast<int64_t>(in[2].values[0]);
    TRTMC_CHECK(first + in[1].lengths[2] <= out.lengths[2], "a write beyond the cache");
    for (int64_t head = 0; head < out.lengths[1]; ++head) {
      std::copy_n(in[1].values.begin() + head * rows, rows,
                  out.values.begin() + (head * out.lengths[2] + first) * out.lengths[3]);
    }
    return out;
  };
  node.in_place_of = cache;
  return node;
}

}  // namespace trtmc::fake_nvinfer
