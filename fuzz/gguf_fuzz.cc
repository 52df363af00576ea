// A GGUF file: whatever the header claims, what is accepted lies in the file, and all that a
// checkpoint makes of it (configuration, tokenizer, rows) is made or refused.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "checkpoint/gguf_config.h"
#include "checkpoint/gguf_tensor.h"
#include "checkpoint/gguf_tokenizer.h"

volatile unsigned checksum = 0;  // So that the reads are not optimised away.

namespace {

constexpr std::string_view kEmbedding = "token_embd.weight";
constexpr std::string_view kRopeFactors = "rope_freqs.weight";

unsigned sum_of(std::span<const std::byte> bytes) {
  unsigned sum = 0;
  for (const std::byte byte : bytes) sum += std::to_integer<unsigned>(byte);
  return sum;
}

// The one way to refuse is an Error.
template <typename Action>
void attempt(Action action) {
  try {
    action();
  } catch (const trtmc::Error&) {
  }
}

void read_rows(const trtmc::CheckpointTensor& tensor) {
  std::vector<std::byte> buffer;
  for (int64_t row = 0; row < tensor.shape[0]; ++row) {
    checksum = checksum + sum_of(tensor.rows(row, row + 1, buffer));
  }
}

void read_config(const trtmc::GgufContents& contents) {
  trtmc::GgufTensorFacts facts{
      .vocab_size = 1, .tied = true, .attention_bias = false, .mlp_bias = false, .factors = {}};
  const auto embedding = contents.tensors.find(kEmbedding);
  if (embedding != contents.tensors.end()) facts.vocab_size = embedding->second.shape[0];
  const auto factors = contents.tensors.find(kRopeFactors);
  if (factors != contents.tensors.end() && factors->second.type->plain == trtmc::DType::kF32) {
    facts.factors.resize(factors->second.bytes.size() / sizeof(float));
    decode_blocks(*factors->second.type, factors->second.bytes, facts.factors);
  }
  attempt([&] { gguf_config(contents.metadata, facts).dump(); });
  attempt([&] { gguf_generation_config(contents.metadata).dump(); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  attempt([&] {
    const trtmc::GgufContents contents = trtmc::parse_gguf(file);
    read_config(contents);
    attempt([&] {
      if (const auto tokenizer = gguf_tokenizer(contents.metadata)) tokenizer->dump();
    });
    attempt([&] {
      if (const auto config = gguf_tokenizer_config(contents.metadata)) config->dump();
    });
    for (const auto& entry : contents.tensors) {
      const trtmc::GgufTensor& tensor = entry.second;
      TRTMC_CHECK(tensor.bytes.data() >= file.data() &&
                      tensor.bytes.data() + tensor.bytes.size() <= file.data() + file.size(),
                  "a tensor outside the file");
      attempt(
          [&] { read_rows(gguf_checkpoint_tensor(entry.first, tensor, {.query = 2, .key = 1})); });
    }
  });
  return 0;
}
