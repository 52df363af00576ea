#include "tests/support/golden_bundle.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/thread_pool.h"
#include "builder/builder.h"
#include "checkpoint/hf_directory.h"

namespace trtmc {
namespace {

const std::filesystem::path kTests = std::filesystem::path(TRTMC_SOURCE_DIR) / "tests";

// The file called `name` in one of the folders of `parent`.
std::filesystem::path find_in_folders(const std::filesystem::path& parent, std::string_view name) {
  for (const auto& folder : std::filesystem::directory_iterator(parent)) {
    if (std::filesystem::exists(folder.path() / name)) return folder.path() / name;
  }
  throw Error(ErrorCode::kNotFound, fmt::format("{}: no {}", parent.string(), name));
}

}  // namespace

Json random_golden(std::string_view name) {
  return read_goldens(find_in_folders(kTests / "golden", fmt::format("{}.json.zst", name)));
}

VerifyReport verify_case(const Bundle& bundle, std::string_view backend, Json golden,
                         std::string_view manifest_case, KvType kv_type, int num_threads,
                         ActivationType activation_type) {
  ExecutorOptions options;
  options.num_threads = num_threads;
  options.kv_type = kv_type;
  options.activation_type = activation_type;
  const auto manifest = find_in_folders(kTests / "e2e", fmt::format("{}.json", manifest_case));
  const Json thresholds = Json::parse(read_file(manifest));
  golden.set("thresholds", JsonCursor(thresholds).at("thresholds").json());
  return verify_goldens(bundle, backend, options, golden);
}

Bundle build_checkpoint_bundle(const std::filesystem::path& checkpoint,
                               const std::filesystem::path& bundle, std::string quantization) {
  ThreadPool pool(1);
  const BuildOptions options{.quantization = std::move(quantization)};
  build_bundle(plan_build(open_hf_directory(checkpoint), options), bundle,
               AtomicFile::IfExists::kReplace, pool, [](uint64_t, uint64_t) {});
  return Bundle(bundle);
}

Bundle build_golden_bundle(const Json& golden, const std::filesystem::path& folder,
                           const GoldenCheckpointChanges& changes) {
  write_golden_checkpoint(golden, folder / "checkpoint", changes);
  return build_checkpoint_bundle(folder / "checkpoint", folder / "golden.trtmc");
}

std::string failures(const VerifyReport& report, std::string_view prefix) {
  std::string out;
  for (const Check& check : report.checks) {
    if (check.passed() || !check.name.starts_with(prefix)) continue;
    out += fmt::format("{}: {:.3g}, {} {:.3g} ({})\n", check.name, check.figure,
                       check.at_most ? "at most" : "at least", check.threshold, check.note);
  }
  return out;
}

}  // namespace trtmc
