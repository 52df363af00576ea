#include "tests/support/safetensors_writer.h"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/json.h"

namespace trtmc {

OwnedTensor make_tensor(std::string name, DType dtype, Shape shape,
                        const std::vector<float>& values) {
  const size_t width = element_bytes(dtype);
  OwnedTensor tensor{std::move(name), dtype, std::move(shape), {}};
  tensor.bytes.resize(values.size() * width);
  std::byte* out = tensor.bytes.data();
  for (const float value : values) {
    const uint16_t half = dtype == DType::kF16 ? float_to_f16(value) : float_to_bf16(value);
    std::memcpy(out, dtype == DType::kF32 ? static_cast<const void*>(&value) : &half, width);
    out += width;
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
