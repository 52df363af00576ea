// Proofs that a bundle is what it should be, as values: each check has its figure and its
// threshold.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "base/json.h"
#include "bundle/bundle.h"

namespace trtmc {

struct Check {
  std::string name;  // "logits relative L2, worst position"
  double figure;
  double threshold;
  bool at_most;      // figure <= threshold passes, else figure >= threshold.
  std::string note;  // Where the worst stood, or empty.
  bool passed() const { return at_most ? figure <= threshold : figure >= threshold; }
};

struct VerifyReport {
  std::vector<Check> checks;
  bool passed() const;
};

// Hashes of every section, and the padding between them.
VerifyReport verify_hashes(const Bundle& bundle);
// Every stored tensor against the checkpoint's: bit-equal, where it is quantised to what quantising
// the checkpoint's again gives; file hashes.
VerifyReport verify_checkpoint(const Bundle& bundle, const std::filesystem::path& checkpoint);
// `backend` against reference on fixed batches of tokens, whole steps. Throws kUnsupported if the
// model's context is shorter than their longest sequence.
VerifyReport verify_backend(const Bundle& bundle, std::string_view backend,
                            const ExecutorOptions& options);
// A file for verify_goldens: an E2E manifest (its thresholds and the goldens that it lists,
// relative to it), or a golden alone. Names that end in .zst are unpacked. Throws kNotFound,
// kCorrupt, kInvalidArgument.
Json read_goldens(const std::filesystem::path& path);
// Against Transformers' recorded results, as read_goldens() gives them: {"thresholds": …,
// "goldens": […]}, or one golden with "thresholds". docs/testing.md has the format. Checks of
// float32 where KV is float32, those of bfloat16_kv where it is bf16, those of bfloat16 always.
// Throws kInvalidArgument for goldens of a model of another shape or with a longer context.
VerifyReport verify_goldens(const Bundle& bundle, std::string_view backend,
                            const ExecutorOptions& options, const Json& goldens);

}  // namespace trtmc
