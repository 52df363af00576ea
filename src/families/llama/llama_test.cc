#include <gmock/gmock.h>

#include <filesystem>

#include "base/file.h"
#include "checkpoint/hf_directory.h"
#include "families/model_family.h"
#include "model/rope_table.h"
#include "tests/support/captured_log.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_checkpoint.h"

namespace trtmc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const ModelFamily& family() {
  return find_family(Json::parse(R"({"architectures": ["LlamaForCausalLM"]})"));
}

Json oracle() {
  return Json::parse(read_file(std::filesystem::path(TRTMC_BINARY_DIR) /
                               "testdata/src/families/llama/testdata/config_oracle.json"));
}

// The oracle's first configuration, that of a Llama 3.2, with the members of `changes`.
Json changed(std::string_view changes) {
  const Json cases = oracle();
  Json config = JsonCursor(cases).at("cases").elements().at(0).at("config").json();
  const Json members = Json::parse(changes);
  for (const auto& [key, value] : *members.object()) config.set(key, value);
  return config;
}

Json without(std::string_view key) {
  Json config = changed("{}");
  std::erase_if(*config.object(), [&](const auto& member) { return member.first == key; });
  return config;
}

std::string complaint(ErrorCode code, const Json& config) {
  const CapturedLog log;
  const Error error = error_of([&] { family().read_spec(config); });
  EXPECT_EQ(error.code(), code) << error.what();
  return error.what();
}

TEST(Llama, APublishedConfigIsReadWhole) {
  const CapturedLog log;
  const DecoderSpec spec = family().read_spec(changed("{}"));
  EXPECT_EQ(spec.vocab_size, 128);
  EXPECT_EQ(spec.hidden_size, 128);
  EXPECT_EQ(spec.intermediate_size, 160);
  EXPECT_EQ(spec.num_heads, 4);
  EXPECT_EQ(spec.context_length, 131072);
  EXPECT_EQ(spec.rms_norm_eps, 1e-5f);
  EXPECT_EQ(spec.rope, (RopeSpec{.theta = 500000,
                                 .rotary_dim = 32,
                                 .scaling = Llama3Scaling{.factor = 32,
                                                          .low_freq_factor = 1,
                                                          .high_freq_factor = 4,
                                                          .original_context = 8192}}));
  EXPECT_EQ(spec.layers, std::vector<LayerSpec>(2, {.rope = true, .sliding_window = 0}));
  EXPECT_THAT(log.lines(), IsEmpty());
}

TEST(Llama, EveryConfigurationIsReadAsTransformersReadsIt) {
  const Json json = oracle();
  const CapturedLog log;
  const auto cases = JsonCursor(json).at("cases").elements();
  ASSERT_GE(cases.size(), 15u);
  for (const JsonCursor& test : cases) {
    SCOPED_TRACE(test.at("name").string());
    const JsonCursor expected = test.at("expected");
    const DecoderSpec spec = family().read_spec(test.at("config").json());
    EXPECT_EQ(spec.head_dim, expected.at("head_dim").integer());
    EXPECT_EQ(spec.num_kv_heads, expected.at("num_kv_heads").integer());
    EXPECT_EQ(spec.tied_embeddings, expected.at("tied").boolean());
    EXPECT_EQ(spec.rope.theta, expected.at("theta").number());
    const RopeTable table = make_rope_table(spec.rope);
    EXPECT_DOUBLE_EQ(table.attention_factor, expected.at("attention_factor").number());
    const auto frequencies = expected.at("inv_freq").elements();
    ASSERT_EQ(table.inverse_frequencies.size(), frequencies.size());
    for (size_t i = 0; i < frequencies.size(); ++i) {
      // Transformers computes in float32.
      const double frequency = frequencies[i].number();
      EXPECT_NEAR(table.inverse_frequencies[i], frequency, 1e-6 * frequency) << i;
    }
  }
}

TEST(Llama, MathsThatIsNotImplementedIsRefusedByName) {
  const auto refusal = [](std::string_view changes) {
    return complaint(ErrorCode::kUnsupported, changed(changes));
  };
  EXPECT_EQ(refusal(R"({"attention_bias": true})"),
            "attention_bias: true is not supported, expected false");
  EXPECT_EQ(refusal(R"({"mlp_bias": true})"), "mlp_bias: true is not supported, expected false");
  EXPECT_EQ(refusal(R"({"pretraining_tp": 2})"), "pretraining_tp: 2 is not supported, expected 1");
  EXPECT_THAT(refusal(R"({"hidden_act": "gelu"})"), HasSubstr("hidden_act: \"gelu\""));
  EXPECT_THAT(refusal(R"({"quantization_config": {"quant_method": "gptq", "bits": 4}})"),
              HasSubstr("quantization_config: not supported"));
  EXPECT_THAT(refusal(R"({"rope_scaling": {"rope_type": "linear", "factor": 2.0}})"),
              HasSubstr("rope type \"linear\""));
}

TEST(Llama, ValuesThatMakeNoModelAreNamed) {
  const auto refusal = [](std::string_view changes) {
    return complaint(ErrorCode::kInvalidArgument, changed(changes));
  };
  // Transformers refuses this one too, though head_dim is given.
  EXPECT_THAT(refusal(R"({"num_attention_heads": 3})"),
              HasSubstr("hidden_size: 128, expected a multiple of num_attention_heads"));
  EXPECT_THAT(refusal(R"({"num_key_value_heads": 3})"), HasSubstr("KV heads is 3"));
  EXPECT_THAT(refusal(R"({"pretraining_tp": "1"})"), HasSubstr("pretraining_tp: a string"));
}

TEST(Llama, SizesThatAreMissingAreNamedAndNotGuessed) {
  for (const std::string key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
        "num_attention_heads", "max_position_embeddings", "rms_norm_eps"}) {
    EXPECT_EQ(complaint(ErrorCode::kInvalidArgument, without(key)), "\"" + key + "\" is missing");
  }
}

// Every rule finds a tensor of its shape, and nothing is left over.
TEST(Llama, AnUntiedCheckpointIsDescribedByItsRules) {
  const TemporaryFolder folder;
  write_tiny_checkpoint(folder.path(), {.num_heads = 6,
                                        .num_kv_heads = 2,
                                        .head_dim = 10,
                                        .tied = false,
                                        .config = Json::parse(R"({"model_type": "llama"})")});
  const auto checkpoint = open_hf_directory(folder.path());
  const DecoderSpec spec = find_family(Json(), "smollm3").read_spec(checkpoint->config());
  std::vector<std::string> names;
  for (const TensorRule& rule : family().tensor_rules(spec)) {
    const auto tensor = checkpoint->tensor(rule.sources.at(0));
    ASSERT_TRUE(tensor) << rule.sources[0];
    EXPECT_EQ(tensor->shape, rule.shape) << rule.sources[0];
    names.push_back(rule.sources[0]);
  }
  EXPECT_THAT(checkpoint->tensor_names(), ::testing::UnorderedElementsAreArray(names));
  EXPECT_THAT(family().ignored_tensors(spec), IsEmpty());
}

// Llama 3.1 lists the ends of a text, of a turn and of a message to a tool.
TEST(Llama, EveryEndInTheFilesStopsAndNoOther) {
  const TemporaryFolder folder;
  write_tiny_checkpoint(folder.path(),
                        {.config = Json::parse(R"({"eos_token_id": 257})"),
                         .generation_config = Json::parse(R"({"eos_token_id": [257, 264, 265]})")});
  EXPECT_THAT(family().defaults(*open_hf_directory(folder.path())).stop_ids,
              ElementsAre(257, 264, 265));
}

}  // namespace
}  // namespace trtmc
