// GGUF files for tests, byte by byte, sound or not. The writer follows
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and checks nothing.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trtmc {

class GgufBytes {
 public:
  // A number as it lies in memory.
  template <typename T>
  static std::string number(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }
  static std::string text(std::string_view text) {
    return number(uint64_t{text.size()}) + std::string(text);
  }

  // A key with its type's number and its value's bytes.
  void pair(std::string_view key, uint32_t type, const std::string& value) {
    pairs_ += text(key) + number(type) + value;
    ++num_pairs;
  }
  void u32(std::string_view key, uint32_t value) { pair(key, 4, number(value)); }
  void f32(std::string_view key, float value) { pair(key, 6, number(value)); }
  void flag(std::string_view key, bool value) { pair(key, 7, number(uint8_t{value})); }
  void string(std::string_view key, std::string_view value) { pair(key, 8, text(value)); }
  void strings(std::string_view key, const std::vector<std::string>& values) {
    std::string elements;
    for (const std::string& value : values) elements += text(value);
    pair(key, 9, number(uint32_t{8}) + number(uint64_t{values.size()}) + elements);
  }
  void integers(std::string_view key, const std::vector<int32_t>& values) {
    std::string elements;
    for (const int32_t value : values) elements += number(value);
    pair(key, 9, number(uint32_t{5}) + number(uint64_t{values.size()}) + elements);
  }

  // A tensor's header alone. `dimensions` in the file's order: a row's length first.
  void header(std::string_view name, const std::vector<uint64_t>& dimensions, uint32_t type,
              uint64_t offset) {
    tensors_ += text(name) + number(static_cast<uint32_t>(dimensions.size()));
    for (const uint64_t dimension : dimensions) tensors_ += number(dimension);
    tensors_ += number(type) + number(offset);
    ++num_tensors;
  }
  // With its bytes, behind those before.
  void tensor(std::string_view name, const std::vector<uint64_t>& dimensions, uint32_t type,
              const std::string& bytes) {
    header(name, dimensions, type, data_.size());
    data_ += bytes;
    data_.resize((data_.size() + 31) / 32 * 32);
  }
  void f32_tensor(std::string_view name, const std::vector<uint64_t>& dimensions,
                  std::span<const float> values) {
    std::string bytes(values.size_bytes(), '\0');
    std::memcpy(bytes.data(), values.data(), values.size_bytes());
    tensor(name, dimensions, 0, bytes);
  }

  std::string bytes() const {
    std::string file =
        magic + number(version) + number(num_tensors) + number(num_pairs) + pairs_ + tensors_;
    file.resize((file.size() + 31) / 32 * 32);
    return file + data_;
  }

  std::string magic = "GGUF";
  uint32_t version = 3;
  uint64_t num_tensors = 0, num_pairs = 0;

 private:
  std::string pairs_, tensors_, data_;
};

}  // namespace trtmc
