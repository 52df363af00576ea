#include "tests/support/safetensors_writer.h"

#include <fstream>
#include <span>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/json.h"

namespace trtmc {

OwnedTensor make_tensor(std::string name, DType dtype, Shape shape,
                        const std::vector<float>& values) {
  OwnedTensor tensor{std::move(name), dtype, std::move(shape), {}};
  const auto append = [&](const auto& bits) {
    const auto bytes = std::as_bytes(std::span(&bits, 1));
    tensor.bytes.insert(tensor.bytes.end(), bytes.begin(), bytes.end());
  };
  for (const float value : values) {
    if (dtype == DType::kF32) append(value);
    if (dtype == DType::kF16) append(float_to_f16(value));
    if (dtype == DType::kBF16) append(float_to_bf16(value));
  }
  return tensor;
}

void write_safetensors(const std::filesystem::path& path, const std::vector<OwnedTensor>& tensors) {
  constexpr std::string_view kNames[] = {"F32", "F16", "BF16"};  // By DType.
  Json header = Json::Object{{"__metadata__", Json::Object{{"format", "pt"}}}};
  int64_t offset = 0;
  for (const OwnedTensor& tensor : tensors) {
    const int64_t end = offset + static_cast<int64_t>(tensor.bytes.size());
    header.set(tensor.name,
               Json::Object{{"dtype", kNames[static_cast<size_t>(tensor.dtype)]},
                            {"shape", Json::Array(tensor.shape.begin(), tensor.shape.end())},
                            {"data_offsets", Json::Array{offset, end}}});
    offset = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::ofstream file(path, std::ios::binary);
  const uint64_t length = text.size();
  char length_bytes[8];
  for (int i = 0; i < 8; ++i) length_bytes[i] = static_cast<char>(length >> (8 * i));
  file.write(length_bytes, 8);
  file << text;
  for (const OwnedTensor& tensor : tensors) {
    file.write(reinterpret_cast<const char*>(tensor.bytes.data()),
               static_cast<std::streamsize>(tensor.bytes.size()));
  }
  TRTMC_CHECK(file.flush().good(), "the test's folder can be written to");
}

}  // namespace trtmc
