#include "tests/support/golden_checkpoint.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

constexpr size_t kBlock = size_t{1} << 20;

std::vector<unsigned char> shake128(const std::string& key, size_t size) {
  std::vector<unsigned char> out(size);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  TRTMC_CHECK(EVP_DigestInit_ex(context.get(), EVP_shake128(), nullptr) == 1 &&
                  EVP_DigestUpdate(context.get(), key.data(), key.size()) == 1 &&
                  EVP_DigestFinalXOF(context.get(), out.data(), out.size()) == 1,
              "OpenSSL has SHAKE-128");
  return out;
}

std::vector<float> draw(int64_t seed, const std::string& name, size_t count, double center,
                        double amplitude) {
  std::vector<float> values;
  values.reserve(count);
  for (size_t block = 0; values.size() < count; ++block) {
    const std::string key = fmt::format("{}/{}/{}", seed, name, block);
    for (const int b : shake128(key, std::min(kBlock, count - values.size()))) {
      values.push_back(static_cast<float>(center + amplitude * ((2 * b - 255) / 255.0)));
    }
  }
  return values;
}

}  // namespace

void write_golden_checkpoint(const Json& golden, const std::filesystem::path& path,
                             const GoldenCheckpointChanges& changes) {
  const JsonCursor root(golden);
  const JsonCursor weights = root.at("weights");
  const DType dtype = parse_dtype(weights.at("dtype").string()).value();
  std::vector<OwnedTensor> tensors;
  for (const JsonCursor& entry : weights.at("tensors").elements()) {
    const std::vector<JsonCursor> fields = entry.elements();  // Name, shape, center, amplitude.
    Shape shape;
    for (const JsonCursor& size : fields.at(1).elements()) shape.push_back(size.integer());
    const std::vector<float> values = draw(weights.at("seed").integer(), fields[0].string(),
                                           static_cast<size_t>(num_elements(shape)),
                                           fields.at(2).number(), fields.at(3).number());
    tensors.push_back(make_tensor(fields[0].string(), dtype, shape, values));
    if (changes.tensor) changes.tensor(tensors.back());
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const OwnedTensor& a, const OwnedTensor& b) { return a.name < b.name; });
  Json config = root.at("config").json();
  if (changes.config) changes.config(config);
  std::filesystem::create_directories(path);
  write_text(path / "config.json", config.dump(2));
  write_safetensors(path / "model.safetensors", tensors);
}

}  // namespace trtmc
