// Bundles of golden checkpoints, right ones and wrong ones, and what verification says of them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/json.h"
#include "bundle/bundle.h"
#include "tests/support/golden_checkpoint.h"
#include "verify/verify.h"

namespace trtmc {

// A case of one of tests/golden/*-random/.
Json random_golden(std::string_view name);

// verify_goldens() with the thresholds of an E2E manifest of tests/e2e/*/.
VerifyReport verify_case(const Bundle& bundle, std::string_view backend, Json golden,
                         std::string_view manifest_case, KvType kv_type = KvType::kF32,
                         int num_threads = 1,
                         ActivationType activation_type = ActivationType::kF32);

// Builds the golden's checkpoint, changed, in `folder` as the command does.
Bundle build_golden_bundle(const Json& golden, const std::filesystem::path& folder,
                           const GoldenCheckpointChanges& changes = {});
// Builds the checkpoint in `checkpoint`. `quantization`: one of quant_schemes().
Bundle build_checkpoint_bundle(const std::filesystem::path& checkpoint,
                               const std::filesystem::path& bundle,
                               std::string quantization = "none");

// The failed checks whose names begin with `prefix`, a line each with figure and threshold.
std::string failures(const VerifyReport& report, std::string_view prefix = "");

}  // namespace trtmc
