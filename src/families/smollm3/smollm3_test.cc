#include <gmock/gmock.h>

#include <filesystem>

#include "base/file.h"
#include "checkpoint/hf_directory.h"
#include "families/model_family.h"
#include "model/rope_table.h"
#include "model/trace_ops.h"
#include "tests/support/captured_log.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_checkpoint.h"

namespace trtmc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::filesystem::path kSource = TRTMC_SOURCE_DIR;

const std::filesystem::path kPublished = kSource / "tests/data/smollm3-3b";

Json published_config() { return Json::parse(read_file(kPublished / "config.json")); }

const ModelFamily& family() { return find_family(Json(), "smollm3"); }

// The published configuration with the members of `changes` in their places.
Json changed(std::string_view changes) {
  Json config = published_config();
  const Json members = Json::parse(changes);
  for (const auto& [key, value] : *members.object()) config.set(key, value);
  return config;
}

Json without(std::string_view key) {
  Json config = published_config();
  std::erase_if(*config.object(), [&](const auto& member) { return member.first == key; });
  return config;
}

std::string complaint(ErrorCode code, const Json& config) {
  const CapturedLog log;
  const Error error = error_of([&] { family().read_spec(config); });
  EXPECT_EQ(error.code(), code) << error.what();
  return error.what();
}

TEST(SmolLm3, ThePublishedConfigIsReadWhole) {
  const CapturedLog log;
  const DecoderSpec spec = family().read_spec(published_config());
  EXPECT_EQ(spec.vocab_size, 128256);
  EXPECT_EQ(spec.hidden_size, 2048);
  EXPECT_EQ(spec.intermediate_size, 11008);
  EXPECT_EQ(spec.num_heads, 16);
  EXPECT_EQ(spec.num_kv_heads, 4);
  EXPECT_EQ(spec.head_dim, 128);  // The file has no such key.
  EXPECT_EQ(spec.context_length, 65536);
  EXPECT_EQ(spec.rms_norm_eps, 1e-6f);
  EXPECT_TRUE(spec.tied_embeddings);
  EXPECT_EQ(spec.rope, (RopeSpec{.theta = 5000000, .rotary_dim = 128, .scaling = {}}));
  ASSERT_EQ(spec.num_layers(), 36);
  EXPECT_THAT(log.lines(), IsEmpty());
}

TEST(SmolLm3, EveryFourthLayerOfThePublishedModelHasNoRope) {
  const DecoderSpec spec = family().read_spec(published_config());
  int rotating = 0;
  for (int i = 0; i < spec.num_layers(); ++i) {
    EXPECT_EQ(spec.layers[static_cast<size_t>(i)].rope, i % 4 != 3) << i;
    EXPECT_EQ(spec.layers[static_cast<size_t>(i)].sliding_window, 0) << i;
    rotating += spec.layers[static_cast<size_t>(i)].rope ? 1 : 0;
  }
  EXPECT_EQ(rotating, 27);  // The ones in the published list.
}

TEST(SmolLm3, EveryConfigurationIsReadAsTransformersReadsIt) {
  const Json oracle =
      Json::parse(read_file(std::filesystem::path(TRTMC_BINARY_DIR) /
                            "testdata/src/families/smollm3/testdata/config_oracle.json"));
  const CapturedLog log;
  const auto cases = JsonCursor(oracle).at("cases").elements();
  ASSERT_GE(cases.size(), 30u);
  for (const JsonCursor& test : cases) {
    SCOPED_TRACE(test.at("name").string());
    const JsonCursor expected = test.at("expected");
    const DecoderSpec spec = family().read_spec(test.at("config").json());
    EXPECT_EQ(spec.head_dim, expected.at("head_dim").integer());
    EXPECT_EQ(spec.num_kv_heads, expected.at("num_kv_heads").integer());
    EXPECT_EQ(spec.tied_embeddings, expected.at("tied").boolean());
    EXPECT_EQ(spec.rope.theta, expected.at("theta").number());
    const auto rotates = expected.at("rotates").elements();
    const auto windows = expected.at("windows").elements();
    ASSERT_EQ(spec.layers.size(), rotates.size());
    for (size_t i = 0; i < rotates.size(); ++i) {
      EXPECT_EQ(spec.layers[i].rope, rotates[i].boolean()) << i;
      EXPECT_EQ(spec.layers[i].sliding_window, windows[i].integer()) << i;
    }
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

TEST(SmolLm3, TheContextIsWhatTheFileSaysAndNeverMultiplied) {
  const DecoderSpec spec = family().read_spec(changed(
      R"({"max_position_embeddings": 131072, "rope_scaling":
          {"factor": 2.0, "original_max_position_embeddings": 65536, "type": "yarn"}})"));
  EXPECT_EQ(spec.context_length, 131072);
}

TEST(SmolLm3, MathsThatIsNotImplementedIsRefusedByName) {
  const auto refusal = [](std::string_view changes) {
    return complaint(ErrorCode::kUnsupported, changed(changes));
  };
  EXPECT_EQ(refusal(R"({"attention_bias": true})"),
            "attention_bias: true is not supported, expected false");
  EXPECT_EQ(refusal(R"({"mlp_bias": true})"), "mlp_bias: true is not supported, expected false");
  EXPECT_THAT(refusal(R"({"hidden_act": "gelu"})"), HasSubstr("hidden_act: \"gelu\""));
  EXPECT_THAT(refusal(R"({"quantization_config": {"quant_method": "gptq", "bits": 4}})"),
              HasSubstr("quantization_config: not supported"));
  EXPECT_THAT(refusal(R"({"is_encoder_decoder": true})"), HasSubstr("is_encoder_decoder: true"));
  EXPECT_THAT(refusal(R"({"add_cross_attention": true})"), HasSubstr("add_cross_attention: true"));
  EXPECT_THAT(refusal(R"({"pruned_heads": {"0": [1]}})"), HasSubstr("pruned_heads"));
  EXPECT_THAT(refusal(R"({"rope_scaling": {"rope_type": "linear", "factor": 2.0}})"),
              HasSubstr("rope type \"linear\""));
  EXPECT_THAT(refusal(R"({"layer_types": ["chunked_attention"]})"),
              HasSubstr("layer_types[0]: \"chunked_attention\" is not supported"));
}

TEST(SmolLm3, KeysThatMeanNothingHereAreSilent) {
  const CapturedLog log;
  family().read_spec(
      changed(R"({"pruned_heads": {}, "quantization_config": null, "dtype": "bfloat16",
                                 "hidden_act": "swish", "_name_or_path": "x", "use_cache": true})"));
  EXPECT_THAT(log.lines(), IsEmpty());
}

TEST(SmolLm3, UnknownKeysAreWarnedOfAndNotRefused) {
  const CapturedLog log;
  family().read_spec(changed(R"({"qk_norm_of_the_future": 1})"));
  EXPECT_THAT(log.lines(), ElementsAre(HasSubstr("qk_norm_of_the_future is unknown")));
}

TEST(SmolLm3, SizesThatAreMissingAreNamedAndNotGuessed) {
  for (const std::string key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
        "num_attention_heads", "num_key_value_heads", "max_position_embeddings", "rms_norm_eps"}) {
    EXPECT_EQ(complaint(ErrorCode::kInvalidArgument, without(key)), "\"" + key + "\" is missing");
  }
}

TEST(SmolLm3, ValuesOfTheWrongKindAreNamed) {
  const auto refusal = [](std::string_view changes) {
    return complaint(ErrorCode::kInvalidArgument, changed(changes));
  };
  EXPECT_THAT(refusal(R"({"hidden_size": "2048"})"), HasSubstr("hidden_size: a string"));
  EXPECT_THAT(refusal(R"({"hidden_size": 2048.5})"), HasSubstr("hidden_size: a number"));
  EXPECT_THAT(refusal(R"({"num_hidden_layers": 0})"), HasSubstr("num_hidden_layers: 0"));
  EXPECT_THAT(refusal(R"({"num_hidden_layers": 99999999999999999999})"),
              HasSubstr("num_hidden_layers: a number beyond 64 bits"));
  EXPECT_THAT(refusal(R"({"rms_norm_eps": -1})"), HasSubstr("RMS norm epsilon is -1"));
  EXPECT_THAT(refusal(R"({"tie_word_embeddings": 1})"),
              HasSubstr("tie_word_embeddings: an integer"));
  EXPECT_THAT(refusal(R"({"num_attention_heads": 3})"),
              HasSubstr("hidden_size: 2048, expected a multiple of num_attention_heads"));
  EXPECT_THAT(refusal(R"({"num_key_value_heads": 5})"), HasSubstr("KV heads is 5"));
  EXPECT_THAT(refusal(R"({"no_rope_layers": [1, 1, 1, 0]})"),
              HasSubstr("no_rope_layers: 4 entries, expected one for each of the 36 layers"));
}

TEST(SmolLm3, AWindowThatContradictsItselfIsRefused) {
  const auto refusal = [](std::string_view changes) {
    Json config = changed(changes);
    config.set("num_hidden_layers", 4);
    config.set("no_rope_layers", Json());
    return complaint(ErrorCode::kInvalidArgument, config);
  };
  constexpr std::string_view kLast =
      R"("layer_types": ["full_attention", "full_attention", "full_attention", "sliding_attention"]})";
  EXPECT_THAT(refusal(R"({"sliding_window": 8, )" + std::string(kLast)),
              HasSubstr("layer_types[3]: \"sliding_attention\", but use_sliding_window is false"));
  EXPECT_THAT(refusal(R"({"use_sliding_window": true, )" + std::string(kLast)),
              HasSubstr("layer_types[3]: \"sliding_attention\", but sliding_window is not given"));
  EXPECT_THAT(refusal(R"({"use_sliding_window": true, "sliding_window": 0, )" + std::string(kLast)),
              HasSubstr("sliding_window: 0, expected 1"));
  EXPECT_THAT(refusal("{}"), HasSubstr("layer_types: 36 entries, expected one for each of the 4"));
}

TEST(SmolLm3, TheRulesNameThe326PublishedTensors) {
  const DecoderSpec spec = family().read_spec(published_config());
  const std::vector<TensorRule> rules = family().tensor_rules(spec);
  EXPECT_EQ(rules.size(), 326u);
  std::map<std::string, Shape> shapes;
  for (const TensorRule& rule : rules) {
    ASSERT_EQ(rule.sources.size(), 1u);
    EXPECT_TRUE(shapes.emplace(rule.sources[0], rule.shape).second) << rule.sources[0];
    EXPECT_EQ(rule.quantizable, rule.shape.size() == 2) << rule.sources[0];
  }
  EXPECT_EQ(shapes.at("model.embed_tokens.weight"), (Shape{128256, 2048}));
  EXPECT_EQ(shapes.at("model.norm.weight"), (Shape{2048}));
  EXPECT_EQ(shapes.at("model.layers.35.self_attn.q_proj.weight"), (Shape{2048, 2048}));
  EXPECT_EQ(shapes.at("model.layers.35.self_attn.k_proj.weight"), (Shape{512, 2048}));
  EXPECT_EQ(shapes.at("model.layers.35.self_attn.v_proj.weight"), (Shape{512, 2048}));
  EXPECT_EQ(shapes.at("model.layers.35.self_attn.o_proj.weight"), (Shape{2048, 2048}));
  EXPECT_EQ(shapes.at("model.layers.0.mlp.gate_proj.weight"), (Shape{11008, 2048}));
  EXPECT_EQ(shapes.at("model.layers.0.mlp.up_proj.weight"), (Shape{11008, 2048}));
  EXPECT_EQ(shapes.at("model.layers.0.mlp.down_proj.weight"), (Shape{2048, 11008}));
  EXPECT_EQ(shapes.at("model.layers.0.input_layernorm.weight"), (Shape{2048}));
  EXPECT_EQ(shapes.at("model.layers.0.post_attention_layernorm.weight"), (Shape{2048}));
}

TEST(SmolLm3, EachRoleHasItsOwnSource) {
  const DecoderSpec spec = family().read_spec(changed(R"({"tie_word_embeddings": false})"));
  std::map<std::string, std::string> sources;
  for (const TensorRule& rule : family().tensor_rules(spec))
    sources[to_string(rule.key)] = rule.sources[0];
  EXPECT_EQ(sources.at("embedding"), "model.embed_tokens.weight");
  EXPECT_EQ(sources.at("lm_head"), "lm_head.weight");
  EXPECT_EQ(sources.at("final_norm"), "model.norm.weight");
  EXPECT_EQ(sources.at("layers.3.attention_norm"), "model.layers.3.input_layernorm.weight");
  EXPECT_EQ(sources.at("layers.3.mlp_norm"), "model.layers.3.post_attention_layernorm.weight");
  EXPECT_EQ(sources.at("layers.3.q_proj"), "model.layers.3.self_attn.q_proj.weight");
  EXPECT_EQ(sources.at("layers.3.k_proj"), "model.layers.3.self_attn.k_proj.weight");
  EXPECT_EQ(sources.at("layers.3.v_proj"), "model.layers.3.self_attn.v_proj.weight");
  EXPECT_EQ(sources.at("layers.3.o_proj"), "model.layers.3.self_attn.o_proj.weight");
  EXPECT_EQ(sources.at("layers.3.gate_proj"), "model.layers.3.mlp.gate_proj.weight");
  EXPECT_EQ(sources.at("layers.3.up_proj"), "model.layers.3.mlp.up_proj.weight");
  EXPECT_EQ(sources.at("layers.3.down_proj"), "model.layers.3.mlp.down_proj.weight");
}

TEST(SmolLm3, OnlyATiedModelIgnoresAnOutputProjection) {
  EXPECT_THAT(family().ignored_tensors(family().read_spec(published_config())),
              ElementsAre("lm_head.weight"));
  EXPECT_THAT(
      family().ignored_tensors(family().read_spec(changed(R"({"tie_word_embeddings": false})"))),
      IsEmpty());
}

// Every rule finds a tensor of its shape, and nothing is left over.
void expect_rules_match(const Checkpoint& checkpoint) {
  const DecoderSpec spec = family().read_spec(checkpoint.config());
  std::vector<std::string> names;
  for (const TensorRule& rule : family().tensor_rules(spec)) {
    const auto tensor = checkpoint.tensor(rule.sources[0]);
    ASSERT_TRUE(tensor) << rule.sources[0];
    EXPECT_EQ(tensor->shape, rule.shape) << rule.sources[0];
    names.push_back(rule.sources[0]);
  }
  EXPECT_THAT(checkpoint.tensor_names(), ::testing::UnorderedElementsAreArray(names));
}

TEST(SmolLm3, TheEmbeddedModelIsDescribedByItsRules) {
  const CapturedLog log;
  const auto checkpoint = open_hf_directory(kSource / "models/smollm3-tiny");
  expect_rules_match(*checkpoint);
  EXPECT_THAT(log.lines(), IsEmpty());
  const GenerationDefaults defaults = family().defaults(*checkpoint);
  EXPECT_THAT(defaults.stop_ids, ElementsAre(10222, 10233));  // <|end_of_text|>, <|im_end|>
  EXPECT_EQ(defaults.sampling.temperature, 0.6);
  EXPECT_EQ(defaults.sampling.top_p, 0.95);
  EXPECT_EQ(family().markers(*checkpoint),
            (OutputMarkers{"<think>", "</think>", "<tool_call>", "</tool_call>"}));
}

// A folder with the published text files `names` besides tiny weights, which nobody reads here.
GenerationDefaults defaults_of(const std::vector<std::string>& names) {
  const TemporaryFolder folder;
  write_tiny_checkpoint(folder.path());
  for (const std::string& name : names) {
    std::filesystem::copy_file(kPublished / name, folder.path() / name,
                               std::filesystem::copy_options::overwrite_existing);
  }
  return family().defaults(*open_hf_directory(folder.path()));
}

TEST(SmolLm3, ThePublishedModelStopsAtEndOfTurnAndEndOfText) {
  const GenerationDefaults defaults =
      defaults_of({"config.json", "generation_config.json", "tokenizer_config.json"});
  EXPECT_THAT(defaults.stop_ids, ElementsAre(128001, 128012));
  EXPECT_EQ(defaults.sampling.temperature, 0.6);
  EXPECT_EQ(defaults.sampling.top_p, 0.95);
  EXPECT_EQ(defaults.sampling.top_k, 0);
}

TEST(SmolLm3, ABaseModelStopsWhereItsFilesSay) {
  const TemporaryFolder folder;
  write_tiny_checkpoint(folder.path(), {.tokenizer = false});
  write_text(folder.path() / "config.json", changed(R"({"eos_token_id": 128001})").dump());
  std::filesystem::remove(folder.path() / "generation_config.json");
  const GenerationDefaults defaults = family().defaults(*open_hf_directory(folder.path()));
  EXPECT_THAT(defaults.stop_ids, ElementsAre(128001));
  EXPECT_EQ(defaults.sampling, SamplingParams());
}

TEST(SmolLm3, UntiedModelsWithOddHeadsAreDescribedByTheirRules) {
  const TemporaryFolder folder;
  write_tiny_checkpoint(folder.path(), {.num_layers = 3,
                                        .hidden_size = 40,
                                        .num_heads = 6,
                                        .num_kv_heads = 3,
                                        .head_dim = 10,
                                        .tied = false,
                                        .sharded = true});
  expect_rules_match(*open_hf_directory(folder.path()));
}

TEST(SmolLm3, ANoRopeLayerShowsNoRotationInItsTrace) {
  const TemporaryFolder folder;
  write_tiny_checkpoint(folder.path());
  const std::string trace =
      trace_decoder(family().read_spec(open_hf_directory(folder.path())->config()));
  const auto layer = [&](const std::string& from, const std::string& to) {
    const size_t begin = trace.find(from);
    return trace.substr(begin, trace.find(to) - begin);
  };
  EXPECT_THAT(layer("layers.2.attention_norm", "layers.3.attention_norm"), HasSubstr("rope("));
  EXPECT_THAT(layer("layers.3.attention_norm", "final_norm"), ::testing::Not(HasSubstr("rope(")));
}

}  // namespace
}  // namespace trtmc
