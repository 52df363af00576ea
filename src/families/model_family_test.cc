#include "families/model_family.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/support/error_of.h"

namespace trtmc {
namespace {

using ::testing::HasSubstr;

TEST(ModelFamily, IsFoundByArchitecture) {
  const Json config = Json::parse(R"({"architectures": ["SmolLM3ForCausalLM"]})");
  EXPECT_EQ(find_family(config).name, "smollm3");
}

TEST(ModelFamily, IsFoundByNameWhateverTheArchitecture) {
  const Json config = Json::parse(R"({"architectures": ["MyFineTune"]})");
  EXPECT_EQ(find_family(config, "smollm3").name, "smollm3");
}

TEST(ModelFamily, AnUnknownArchitectureIsRefusedNamingWhatIsSupported) {
  const Error error = error_of(
      [] { find_family(Json::parse(R"({"architectures": ["Qwen3ForCausalLM", "Other"]})")); });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_STREQ(error.what(), "the architecture Qwen3ForCausalLM, Other is not supported");
  EXPECT_THAT(error.hint(), HasSubstr("SmolLM3ForCausalLM (smollm3)"));
}

TEST(ModelFamily, AConfigWithoutArchitecturesIsRefused) {
  for (const std::string_view config :
       {"{}", R"({"architectures": null})", R"({"architectures": []})"}) {
    const Error error = error_of([&] { find_family(Json::parse(config)); });
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_STREQ(error.what(), "config.json names no architecture");
    EXPECT_THAT(error.hint(), HasSubstr("--family"));
  }
}

TEST(ModelFamily, AnUnknownNameIsRefusedNamingWhatIsSupported) {
  const Error error = error_of([] { find_family(Json::parse("{}"), "gpt2"); });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_STREQ(error.what(), "no model family is called \"gpt2\"");
  EXPECT_THAT(error.hint(), HasSubstr("smollm3"));
}

TEST(ModelFamily, NoTwoShareAnArchitectureANameOrAStrategy) {
  std::set<std::string_view> names;
  std::set<std::string_view> strategies;
  std::set<std::string_view> architectures;
  for (const ModelFamily* family : all_families()) {
    EXPECT_TRUE(names.insert(family->name).second) << family->name;
    EXPECT_TRUE(strategies.insert(family->strategy).second) << family->strategy;
    EXPECT_FALSE(family->architectures.empty()) << family->name;
    for (const std::string_view architecture : family->architectures)
      EXPECT_TRUE(architectures.insert(architecture).second) << architecture;
  }
  EXPECT_TRUE(names.contains("smollm3"));
}

DecoderSpec spec_with(std::vector<LayerSpec> layers) {
  return {.vocab_size = 11,
          .hidden_size = 16,
          .intermediate_size = 24,
          .num_heads = 4,
          .num_kv_heads = 2,
          .head_dim = 4,
          .context_length = 32,
          .rms_norm_eps = 0.5F,
          .tied_embeddings = true,
          .rope = {.theta = 10000, .rotary_dim = 4, .scaling = {}},
          .layers = std::move(layers)};
}

TEST(ModelFamily, WritesNoConfigThatWouldReadAsAnotherModel) {
  const ModelFamily& smollm3 = find_family(Json(), "smollm3");
  const ModelFamily& llama = find_family(Json(), "llama");
  const DecoderSpec one_window = spec_with({{true, 8}, {false, 8}, {false, 0}});
  EXPECT_EQ(smollm3.read_spec(config_json(smollm3, one_window)), one_window);
  const DecoderSpec plain = spec_with({{true, 0}, {true, 0}});
  EXPECT_EQ(llama.read_spec(config_json(llama, plain)), plain);

  const Error windows = error_of([&] { config_json(smollm3, spec_with({{true, 8}, {false, 4}})); });
  EXPECT_EQ(windows.code(), ErrorCode::kUnsupported);
  EXPECT_STREQ(windows.what(), "a config.json of smollm3 can't say what this model is");
  for (const LayerSpec layer : {LayerSpec{false, 0}, LayerSpec{true, 8}}) {
    EXPECT_EQ(error_of([&] { config_json(llama, spec_with({layer})); }).code(),
              ErrorCode::kUnsupported);
  }
  DecoderSpec odd = spec_with({{true, 0}});
  odd.hidden_size = 18;  // LlamaConfig wants a multiple of the heads.
  EXPECT_THAT(error_of([&] { config_json(llama, odd); }).hint(), HasSubstr("hidden_size"));
}

}  // namespace
}  // namespace trtmc
