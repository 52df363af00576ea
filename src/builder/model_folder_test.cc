#include "builder/model_folder.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/thread_pool.h"
#include "builder/builder.h"
#include "checkpoint/hf_directory.h"
#include "tests/support/captured_log.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_checkpoint.h"

namespace trtmc {
namespace {

Bundle build(const std::filesystem::path& checkpoint, const std::filesystem::path& bundle) {
  ThreadPool pool(1);
  build_bundle(plan_build(open_hf_directory(checkpoint), {}), bundle,
               AtomicFile::IfExists::kReplace, pool, [](uint64_t, uint64_t) {});
  return Bundle(bundle);
}

// Builds `checkpoint`, puts the text files made of the bundle in the place of its own, and builds
// again: what a bundle is, but for the files it came from.
void expect_same_bundle_of_its_texts(const std::filesystem::path& checkpoint) {
  const TemporaryFolder folder;
  const Bundle first = build(checkpoint, folder.path() / "first.trtmc");
  std::filesystem::create_directory(folder.path() / "again");
  std::filesystem::copy(checkpoint / "model.safetensors", folder.path() / "again");
  for (const TextFile& file : model_text_files(first)) {
    write_text(folder.path() / "again" / file.name, file.text);
  }
  const CapturedLog log;
  const Bundle second = build(folder.path() / "again", folder.path() / "second.trtmc");
  EXPECT_EQ(second.spec(), first.spec());
  EXPECT_EQ(second.manifest().stop_ids, first.manifest().stop_ids);
  EXPECT_EQ(second.manifest().default_sampling, first.manifest().default_sampling);
  EXPECT_EQ(second.manifest().markers, first.manifest().markers);
  EXPECT_EQ(second.manifest().special_tokens, first.manifest().special_tokens);
  EXPECT_EQ(second.chat_template(), first.chat_template());
  EXPECT_TRUE(std::ranges::equal(second.tokenizer_tables(), first.tokenizer_tables()));
  EXPECT_TRUE(log.lines().empty()) << log.lines().front();
}

TEST(ModelFolder, OfTheEmbeddedModelBuildsTheSameBundle) {
  expect_same_bundle_of_its_texts(std::filesystem::path(TRTMC_SOURCE_DIR) / "models/smollm3-tiny");
}

struct NamedConfig {
  const char* name;
  const char* members;
};
void PrintTo(const NamedConfig& config, std::ostream* out) { *out << config.name; }

class ModelFolderOf : public testing::TestWithParam<NamedConfig> {};

TEST_P(ModelFolderOf, BuildsTheSameBundle) {
  const TemporaryFolder folder;
  TinyCheckpointOptions options;
  options.chat_template = "{{ messages[0].content }}";
  options.config = Json::parse(GetParam().members);
  options.generation_config = Json::parse(R"({"do_sample": false})");
  write_tiny_checkpoint(folder.path() / "checkpoint", options);
  expect_same_bundle_of_its_texts(folder.path() / "checkpoint");
}

INSTANTIATE_TEST_SUITE_P(
    All, ModelFolderOf,
    testing::Values(NamedConfig{"Schedule", R"({"no_rope_layers": [0, 1, 1, 0]})"},
                    NamedConfig{"Window", R"({"use_sliding_window": true, "sliding_window": 7,
            "layer_types": ["full_attention", "sliding_attention", "sliding_attention",
                            "full_attention"]})"},
                    NamedConfig{"Yarn", R"({"rope_scaling": {"rope_type": "yarn", "factor": 4.0,
            "beta_fast": 16, "beta_slow": 2, "truncate": false, "attention_factor": 1.25,
            "original_max_position_embeddings": 128}})"},
                    NamedConfig{"Llama3",
                                R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
            "pretraining_tp": 1,
            "no_rope_layer_interval": null, "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
            "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64}})"}),
    [](const auto& config) { return config.param.name; });

}  // namespace
}  // namespace trtmc
