#include "builder/build_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "checkpoint/hf_directory.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_checkpoint.h"

namespace trtmc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kTemplate = "{% for m in messages %}{{ m.content }}{% endfor %}";

class Plan : public ::testing::Test {
 protected:
  std::filesystem::path checkpoint() const { return folder_.path() / "Tiny-Model"; }

  // A checkpoint with nothing to warn of.
  void write(TinyCheckpointOptions options = {}) {
    if (options.chat_template.empty()) options.chat_template = kTemplate;
    write_tiny_checkpoint(checkpoint(), options);
  }

  void write_file(std::string_view name, std::string_view text) const {
    write_text(checkpoint() / name, text);
  }

  BuildPlan plan(const BuildOptions& options = {}) const {
    return plan_build(open_hf_directory(checkpoint()), options);
  }

  std::string complaint(ErrorCode code, const BuildOptions& options = {}) const {
    try {
      plan(options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    return "none";
  }

  // Writes the weights again, after `edit`.
  void rewrite_weights(const TinyCheckpointOptions& options,
                       const std::function<void(std::vector<OwnedTensor>&)>& edit) const {
    const auto source = open_hf_directory(checkpoint());
    std::vector<OwnedTensor> tensors;
    for (const std::string& name : source->tensor_names()) {
      const CheckpointTensor view = *source->tensor(name);
      tensors.push_back({name, view.dtype, view.shape, {view.bytes.begin(), view.bytes.end()}});
    }
    edit(tensors);
    ASSERT_FALSE(options.sharded);
    std::filesystem::remove(checkpoint() / "model.safetensors");
    write_safetensors(checkpoint() / "model.safetensors", tensors);
  }

  TemporaryFolder folder_;
};

OwnedTensor& named(std::vector<OwnedTensor>& tensors, std::string_view name) {
  return *std::find_if(tensors.begin(), tensors.end(),
                       [&](const OwnedTensor& tensor) { return tensor.name == name; });
}

TEST_F(Plan, SaysWhereEachTensorComesFromAndHowItIsStored) {
  write({.num_layers = 4, .dtype = DType::kBF16});
  const BuildPlan plan = this->plan();
  EXPECT_EQ(plan.family->name, "smollm3");
  EXPECT_THAT(plan.warnings, IsEmpty());
  ASSERT_EQ(plan.tensors.size(), 2U + 4 * 9);
  const PlannedTensor& embedding = plan.tensors[0];
  EXPECT_EQ(embedding.key, TensorKey{Role::kEmbedding});
  EXPECT_THAT(embedding.sources, ElementsAre("model.embed_tokens.weight"));
  EXPECT_EQ(embedding.dtype, DType::kBF16);
  EXPECT_EQ(embedding.layout, TensorLayout::kPanels16);
  const PlannedTensor& norm = plan.tensors[1 + 9];
  EXPECT_EQ(norm.key, (TensorKey{Role::kAttentionNorm, 1}));
  EXPECT_THAT(norm.sources, ElementsAre("model.layers.1.input_layernorm.weight"));
  EXPECT_EQ(norm.dtype, DType::kF32);
  EXPECT_EQ(norm.layout, TensorLayout::kPlain);
}

TEST_F(Plan, QuantisesByRole) {
  write();
  struct Scheme {
    const char* name;
    DType attention, mlp;
  };
  for (const auto& [name, attention, mlp] :
       {Scheme{"q8", DType::kQ8, DType::kQ8}, Scheme{"q6", DType::kQ6, DType::kQ6},
        Scheme{"q4_q6", DType::kQ6, DType::kQ4}, Scheme{"q4", DType::kQ4, DType::kQ4}}) {
    const BuildPlan plan = this->plan({.quantization = name});
    EXPECT_EQ(plan.manifest.quantization, name);
    EXPECT_THAT(plan.warnings, IsEmpty());
    for (const PlannedTensor& tensor : plan.tensors) {
      const Role role = tensor.key.role;
      const bool is_attention = role == Role::kQProj || role == Role::kKProj ||
                                role == Role::kVProj || role == Role::kOProj;
      const DType expected = is_norm(role)              ? DType::kF32
                             : role == Role::kEmbedding ? DType::kQ8
                             : is_attention             ? attention
                                                        : mlp;
      EXPECT_EQ(tensor.dtype, expected) << name << " " << to_string(tensor.key);
    }
  }
}

TEST_F(Plan, CountsParameters) {
  write({.num_layers = 2,
         .hidden_size = 64,
         .intermediate_size = 160,
         .num_heads = 4,
         .num_kv_heads = 2,
         .vocab_size = 320});
  // Embedding, final norm; per layer two norms, q and o of 64 x 64, k and v of 32 x 64, three of
  // 160 x 64.
  EXPECT_EQ(plan().parameters,
            320U * 64 + 64 + 2 * (2 * 64 + 2 * 64 * 64 + 2 * 32 * 64 + 3 * 160 * 64));
}

TEST_F(Plan, TheManifestSaysWhatTheModelIs) {
  write();
  write_file("README.md",
             "---\nlibrary_name: transformers\nlicense: apache-2.0\n---\nlicense: no\n");
  const Manifest manifest = plan().manifest;
  EXPECT_EQ(manifest.family, "smollm3");
  EXPECT_EQ(manifest.strategy, "smollm3_decoder_kv_cache");
  EXPECT_EQ(manifest.source, "Tiny-Model");
  EXPECT_EQ(manifest.producer, "trtmc 0.1.0");
  EXPECT_EQ(manifest.licence, "apache-2.0");
  EXPECT_EQ(manifest.quantization, "none");
  EXPECT_FALSE(manifest.unicode_version.empty());
  EXPECT_EQ(manifest.default_sampling.temperature, 0.6);
  EXPECT_EQ(manifest.default_sampling.top_p, 0.95);
  EXPECT_EQ(manifest.markers.think_open, "<think>");
  std::vector<std::string> files;
  for (const FileHash& file : manifest.source_files) files.push_back(file.name);
  EXPECT_THAT(files, ElementsAre("chat_template.jinja", "config.json", "generation_config.json",
                                 "model.safetensors", "tokenizer.json", "tokenizer_config.json"));
}

TEST_F(Plan, TheSourcesNameAndRevisionCanBeGiven) {
  write();
  const Manifest manifest =
      plan({.source_name = "HuggingFaceTB/SmolLM3-3B", .source_revision = "a07cc9a0"}).manifest;
  EXPECT_EQ(manifest.source, "HuggingFaceTB/SmolLM3-3B");
  EXPECT_EQ(manifest.source_revision, "a07cc9a0");
}

TEST_F(Plan, NoPathGetsIntoTheManifest) {
  write();
  EXPECT_THAT(to_json(plan().manifest).dump(), ::testing::Not(HasSubstr(folder_.path().string())));
  EXPECT_EQ(plan_build(open_hf_directory(checkpoint() / ""), {}).manifest.source, "Tiny-Model");
}

TEST_F(Plan, StopIdsAreThoseOfBothConfigsAndTheEndOfText) {
  write({.config = Json::Object{{"eos_token_id", 270}},
         .generation_config = Json::Object{{"eos_token_id", Json::Array{268, 5}}}});
  EXPECT_THAT(plan().manifest.stop_ids, ElementsAre(5, 257, 268, 270));
}

TEST_F(Plan, WithoutAStopIdThereIsAWarning) {
  write({.tokenizer = false, .config = Json::Object{{"eos_token_id", Json()}}});
  write_file("generation_config.json", "{}");
  const BuildPlan plan = this->plan();
  EXPECT_THAT(plan.manifest.stop_ids, IsEmpty());
  EXPECT_THAT(plan.warnings, ElementsAre(HasSubstr("no token that ends an answer"),
                                         HasSubstr("no tokenizer.json")));
}

TEST_F(Plan, YarnTakesTheDefaultsOfTransformers) {
  write({.context_length = 512});
  const DecoderSpec spec = plan({.yarn_factor = 2.0}).manifest.spec;
  EXPECT_EQ(spec.context_length, 1024);
  const auto& yarn = std::get<YarnScaling>(spec.rope.scaling);
  EXPECT_EQ(yarn.factor, 2);
  EXPECT_EQ(yarn.beta_fast, 32);
  EXPECT_EQ(yarn.beta_slow, 1);
  EXPECT_DOUBLE_EQ(yarn.attention_factor, 1.0693147180559945);  // 0.1 ln 2 + 1
  EXPECT_EQ(yarn.original_context, 512);
  EXPECT_TRUE(yarn.truncate);
}

TEST_F(Plan, TheContextCanBeGiven) {
  write({.context_length = 512});
  EXPECT_EQ(plan({.context_length = 100}).manifest.spec.context_length, 100);
  const BuildPlan scaled = plan({.context_length = 800, .yarn_factor = 2.0});
  EXPECT_EQ(scaled.manifest.spec.context_length, 800);
  EXPECT_EQ(std::get<YarnScaling>(scaled.manifest.spec.rope.scaling).original_context, 512);
  EXPECT_THAT(scaled.warnings, IsEmpty());
  EXPECT_THAT(plan({.context_length = 513}).warnings, ElementsAre(HasSubstr("configured for 512")));
  EXPECT_THAT(complaint(ErrorCode::kInvalidArgument, {.context_length = 0}), HasSubstr("context"));
}

TEST_F(Plan, RefusesAYarnFactorThatMakesNoSense) {
  write();
  for (const double factor : {0.5, 0.0, -1.0, 1e9, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(complaint(ErrorCode::kInvalidArgument, {.yarn_factor = factor}),
                HasSubstr("YaRN factor"));
  }
}

TEST_F(Plan, RefusesASecondScaling) {
  write(
      {.config = Json::Object{{"rope_scaling", Json::Object{{"type", "yarn"}, {"factor", 4.0}}}}});
  EXPECT_THAT(complaint(ErrorCode::kInvalidArgument, {.yarn_factor = 2.0}),
              HasSubstr("scales its rotary positions already"));
}

TEST_F(Plan, NamesAMissingTensor) {
  write();
  rewrite_weights({}, [](std::vector<OwnedTensor>& tensors) {
    std::erase_if(tensors,
                  [](const auto& t) { return t.name == "model.layers.2.mlp.up_proj.weight"; });
  });
  EXPECT_THAT(complaint(ErrorCode::kNotFound),
              HasSubstr("\"model.layers.2.mlp.up_proj.weight\" is missing"));
}

TEST_F(Plan, NamesATensorOfTheWrongShape) {
  write();
  rewrite_weights({}, [](std::vector<OwnedTensor>& tensors) {
    named(tensors, "model.layers.1.self_attn.k_proj.weight").shape = {64, 32};
  });
  EXPECT_THAT(complaint(ErrorCode::kCorrupt),
              AllOf(HasSubstr("model.layers.1.self_attn.k_proj.weight"),
                    HasSubstr("has shape [64, 32], config.json asks for [32, 64]")));
  rewrite_weights({}, [](std::vector<OwnedTensor>& tensors) {
    named(tensors, "model.layers.1.self_attn.k_proj.weight").shape = {2048};
  });
  EXPECT_THAT(complaint(ErrorCode::kCorrupt), HasSubstr("has shape [2048]"));
}

TEST_F(Plan, RefusesTensorsThatNobodyWouldRead) {
  write();
  rewrite_weights({}, [](std::vector<OwnedTensor>& tensors) {
    tensors.push_back(
        make_tensor("model.layers.0.self_attn.q_proj.bias", DType::kF32, {2}, {1, 2}));
  });
  EXPECT_THAT(complaint(ErrorCode::kUnsupported),
              HasSubstr("\"model.layers.0.self_attn.q_proj.bias\""));
}

TEST_F(Plan, RefusesLayersBeyondTheConfigured) {
  write({.num_layers = 4,
         .config = Json::Object{{"num_hidden_layers", 3},
                                {"layer_types", nullptr},
                                {"no_rope_layers", Json::Array{1, 1, 1}}}});
  EXPECT_THAT(complaint(ErrorCode::kUnsupported),
              AllOf(HasSubstr("9 tensors"), HasSubstr("model.layers.3.")));
}

TEST_F(Plan, IgnoresSavedRotaryFrequenciesWithANote) {
  write();
  rewrite_weights({}, [](std::vector<OwnedTensor>& tensors) {
    tensors.push_back(
        make_tensor("model.layers.0.self_attn.rotary_emb.inv_freq", DType::kF32, {2}, {1, 2}));
  });
  EXPECT_THAT(plan().warnings, ElementsAre(HasSubstr("rotary_emb.inv_freq")));
}

TEST_F(Plan, ATiedCheckpointsOwnHeadIsIgnored) {
  write({.tied = true});
  const auto add_head = [](std::vector<OwnedTensor>& tensors) {
    OwnedTensor head = named(tensors, "model.embed_tokens.weight");
    head.name = "lm_head.weight";
    tensors.push_back(head);
  };
  rewrite_weights({}, add_head);
  EXPECT_THAT(plan().warnings, IsEmpty());
  EXPECT_EQ(plan().tensors.size(), 2U + 4 * 9);
  rewrite_weights({}, [](std::vector<OwnedTensor>& tensors) {
    named(tensors, "lm_head.weight").bytes[7] ^= std::byte{1};
  });
  EXPECT_THAT(plan().warnings,
              ElementsAre(AllOf(HasSubstr("lm_head.weight"), HasSubstr("differs"))));
}

TEST_F(Plan, AnUntiedCheckpointNeedsItsHead) {
  write({.tied = false});
  EXPECT_EQ(plan().tensors.back().key, TensorKey{Role::kLmHead});
  rewrite_weights({}, [](std::vector<OwnedTensor>& tensors) {
    std::erase_if(tensors, [](const auto& t) { return t.name == "lm_head.weight"; });
  });
  EXPECT_THAT(complaint(ErrorCode::kNotFound), HasSubstr("\"lm_head.weight\" is missing"));
}

TEST_F(Plan, WithoutATokenizerThereIsAWarning) {
  write({.tokenizer = false});
  const BuildPlan plan = this->plan();
  EXPECT_TRUE(plan.tokenizer_tables.empty());
  EXPECT_THAT(plan.warnings, ElementsAre(HasSubstr("no tokenizer.json")));
}

TEST_F(Plan, RefusesATokenizerWithMoreIdsThanTheModel) {
  write({.vocab_size = 270});
  EXPECT_THAT(
      complaint(ErrorCode::kInvalidArgument),
      HasSubstr("tokenizer.json: has token ids up to 274, but the model's vocab_size is 270"));
}

TEST_F(Plan, TakesTheTemplateOfTheTemplateFileFirst) {
  write();
  write_file("tokenizer_config.json", R"({"chat_template": "of the config"})");
  EXPECT_EQ(plan().chat_template, kTemplate);
  std::filesystem::remove(checkpoint() / "chat_template.jinja");
  EXPECT_EQ(plan().chat_template, "of the config");
  write_text(folder_.path() / "mine.jinja", "mine");
  EXPECT_EQ(plan({.chat_template = folder_.path() / "mine.jinja"}).chat_template, "mine");
}

TEST_F(Plan, TakesTheDefaultOfSeveralTemplates) {
  write();
  std::filesystem::remove(checkpoint() / "chat_template.jinja");
  write_file("tokenizer_config.json",
             R"({"chat_template": [{"name": "tool_use", "template": "tools"},)"
             R"( {"name": "default", "template": "plain"}]})");
  EXPECT_EQ(plan().chat_template, "plain");
}

TEST_F(Plan, WithoutATemplateThereIsAWarning) {
  write();
  std::filesystem::remove(checkpoint() / "chat_template.jinja");
  for (const std::string_view config :
       {"{}", R"({"chat_template": null})", R"({"chat_template": ""})",
        R"({"chat_template": [{"name": "rag", "template": "x"}]})"}) {
    write_file("tokenizer_config.json", config);
    const BuildPlan plan = this->plan();
    EXPECT_EQ(plan.chat_template, std::nullopt) << config;
    EXPECT_THAT(plan.warnings, ElementsAre(HasSubstr("no chat template"))) << config;
  }
}

TEST_F(Plan, RefusesABrokenTemplateAndNamesItsFile) {
  write({.chat_template = "{% if messages %}never closed"});
  EXPECT_THAT(complaint(ErrorCode::kInvalidArgument), HasSubstr("chat_template.jinja: line 1"));
  write_text(folder_.path() / "mine.jinja", "\xff");
  EXPECT_THAT(
      complaint(ErrorCode::kInvalidArgument, {.chat_template = folder_.path() / "mine.jinja"}),
      HasSubstr("mine.jinja: byte 0 is not UTF-8"));
}

TEST_F(Plan, AnUnknownFamilyIsUnsupported) {
  write();
  EXPECT_THAT(complaint(ErrorCode::kUnsupported, {.family = "bloom"}), HasSubstr("bloom"));
}

TEST_F(Plan, ReadsNoLicenceOutsideOfTheFrontMatter) {
  write();
  for (const std::string_view card :
       {"license: mit\n", "---\nlicence: mit\n---\nlicense: mit\n", "---\n", ""}) {
    write_file("README.md", card);
    EXPECT_EQ(plan().manifest.licence, "") << card;
  }
}

}  // namespace
}  // namespace trtmc
