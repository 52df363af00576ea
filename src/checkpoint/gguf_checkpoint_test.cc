#include "checkpoint/gguf_checkpoint.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "checkpoint/open_checkpoint.h"
#include "tests/support/captured_log.h"
#include "tests/support/error_of.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The keys that a model of one layer with two heads of four and one KV head needs.
void add_keys(GgufBytes& file, const std::string& architecture = "llama") {
  file.string("general.architecture", architecture);
  const auto key = [&](const char* name) { return architecture + "." + name; };
  file.u32(key("context_length"), 64);
  file.u32(key("embedding_length"), 8);
  file.u32(key("block_count"), 1);
  file.u32(key("feed_forward_length"), 16);
  file.u32(key("attention.head_count"), 2);
  file.u32(key("attention.head_count_kv"), 1);
  file.f32(key("attention.layer_norm_rms_epsilon"), 1e-5F);
  file.f32(key("rope.freq_base"), 500000);
}

std::vector<float> counted(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.F);
  return values;
}

void add_embedding(GgufBytes& file) { file.f32_tensor("token_embd.weight", {8, 3}, counted(24)); }

class GgufCheckpoint : public testing::Test {
 protected:
  std::filesystem::path save(const GgufBytes& file, const std::string& name = "model.gguf") {
    write_text(folder_.path() / name, file.bytes());
    return folder_.path() / name;
  }
  std::shared_ptr<const Checkpoint> open(const std::function<void(GgufBytes&)>& fill) {
    GgufBytes file;
    fill(file);
    return open_checkpoint(save(file));
  }
  Json config(const std::function<void(GgufBytes&)>& fill) {
    return open([&](GgufBytes& file) {
             add_keys(file);
             add_embedding(file);
             fill(file);
           })
        ->config();
  }
  std::string complaint(ErrorCode code, const std::function<void(GgufBytes&)>& fill) {
    const CapturedLog log;
    const Error error = error_of([&] { config(fill); });
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }

  TemporaryFolder folder_;
};

std::vector<float> values_of(const Checkpoint& checkpoint, std::string_view name) {
  const CheckpointTensor tensor = checkpoint.tensor(name).value();
  std::vector<std::byte> buffer;
  std::vector<float> values(static_cast<size_t>(num_elements(tensor.shape)));
  read_floats({tensor.dtype, tensor.shape, tensor.rows(0, tensor.shape[0], buffer)}, 0, values);
  return values;
}

TEST_F(GgufCheckpoint, SaysWhatAConfigWouldSay) {
  const CapturedLog log;
  EXPECT_EQ(config([](GgufBytes&) {}),
            Json::parse(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
      "attention_bias": false, "mlp_bias": false, "hidden_act": "silu", "vocab_size": 3,
      "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
      "num_key_value_heads": 1, "head_dim": 4, "max_position_embeddings": 64,
      "rms_norm_eps": 9.999999747378752e-06, "tie_word_embeddings": true,
      "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}})"));
  EXPECT_THAT(log.lines(), IsEmpty());
}

TEST_F(GgufCheckpoint, ReadsYarnAndHeadsOfTheirOwnSize) {
  const Json json = config([](GgufBytes& file) {
    file.u32("llama.attention.key_length", 6);
    file.u32("llama.attention.value_length", 6);
    file.u32("llama.rope.dimension_count", 6);
    file.string("llama.rope.scaling.type", "yarn");
    file.f32("llama.rope.scaling.factor", 4);
    file.u32("llama.rope.scaling.original_context_length", 16);
    file.f32_tensor("output.weight", {8, 3}, counted(24));
  });
  const JsonCursor cursor(json);
  EXPECT_EQ(cursor.at("head_dim").integer(), 6);
  EXPECT_EQ(cursor.at("tie_word_embeddings").boolean(), false);
  EXPECT_EQ(cursor.at("rope_parameters").json(), Json::parse(R"({"rope_type": "yarn", "factor": 4.0,
                            "original_max_position_embeddings": 16, "rope_theta": 500000.0,
                            "partial_rotary_factor": 1.0})"));
}

// The factors that llama.cpp's converter writes for Llama 3.2 with heads of 64 (float32):
// wavelengths up to 2048 stay, those beyond 8192 are stretched by 32.
TEST_F(GgufCheckpoint, FindsLlama3sScalingInItsFactors) {
  std::vector<float> factors;
  for (int i = 0; i < 32; ++i) {
    const double frequency = std::pow(500000.0, -i / 32.0);
    const double wavelength = 2 * 3.14159265358979 / frequency;
    const double smooth = (8192 / wavelength - 1) / 3;
    factors.push_back(wavelength < 2048   ? 1.F
                      : wavelength > 8192 ? 32.F
                                          : static_cast<float>(1 / ((1 - smooth) / 32 + smooth)));
  }
  const auto scaled = [&](GgufBytes& file) {
    file.u32("llama.attention.key_length", 64);
    file.f32_tensor("rope_freqs.weight", {32}, factors);
  };
  const Json json = config(scaled);
  EXPECT_EQ(JsonCursor(json).at("rope_parameters").json(),
            Json::parse(R"({"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0,
                            "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
                            "rope_theta": 500000.0})"));
  factors[14] = 3;
  EXPECT_THAT(complaint(ErrorCode::kUnsupported, scaled),
              HasSubstr("factors that no known scaling of Llama 3 gives"));
  factors.assign(32, 1.F);
  EXPECT_EQ(JsonCursor(config(scaled)).at("rope_parameters").at("rope_type").string(), "default");
}

TEST_F(GgufCheckpoint, SmolLm3sEveryFourthLayerDoesNotRotate) {
  const auto checkpoint = open([](GgufBytes& file) {
    add_keys(file, "smollm3");
    add_embedding(file);
  });
  const JsonCursor config(checkpoint->config());
  EXPECT_EQ(config.at("architectures").elements().at(0).string(), "SmolLM3ForCausalLM");
  EXPECT_EQ(config.at("no_rope_layer_interval").integer(), 4);
}

TEST_F(GgufCheckpoint, MathsThatIsNotImplementedIsRefusedByName) {
  const auto unsupported = ErrorCode::kUnsupported;
  EXPECT_EQ(complaint(unsupported, [](GgufBytes& file) { file.u32("llama.expert_count", 8); }),
            "model.gguf: key \"llama.expert_count\" is not supported");
  EXPECT_EQ(complaint(unsupported, [](GgufBytes& file) { file.f32("llama.rope.scale_linear", 2); }),
            "model.gguf: key \"llama.rope.scale_linear\" is not supported, expected 1");
  EXPECT_EQ(complaint(unsupported,
                      [](GgufBytes& file) {
                        file.u32("llama.attention.key_length", 6);
                        file.u32("llama.attention.value_length", 4);
                      }),
            "model.gguf: heads of 6 for keys and of 4 for values, expected one size");
  // Heads of four are what add_keys() says by 8 and 2.
  EXPECT_EQ(
      complaint(unsupported, [](GgufBytes& file) { file.u32("llama.attention.value_length", 6); }),
      "model.gguf: heads of 4 for keys and of 6 for values, expected one size");
  EXPECT_EQ(
      complaint(unsupported, [](GgufBytes& file) { file.flag("llama.attention.causal", false); }),
      "model.gguf: key \"llama.attention.causal\": false is not supported, expected true");
  const Error error = error_of([&] {
    open([](GgufBytes& file) {
      add_keys(file, "qwen2");
      add_embedding(file);
    });
  });
  EXPECT_EQ(error.code(), unsupported);
  EXPECT_STREQ(error.what(),
               "model.gguf: the architecture \"qwen2\" is not supported, expected "
               "\"llama\" or \"smollm3\"");
}

TEST_F(GgufCheckpoint, BiasesAreTheFamilysToRefuse) {
  const Json json = config([](GgufBytes& file) {
    file.f32_tensor("blk.0.attn_q.bias", {8}, counted(8));
    file.f32_tensor("blk.0.ffn_up.bias", {16}, counted(16));
  });
  EXPECT_TRUE(JsonCursor(json).at("attention_bias").boolean());
  EXPECT_TRUE(JsonCursor(json).at("mlp_bias").boolean());
}

TEST_F(GgufCheckpoint, EveryEndIsAStop) {
  const auto checkpoint = open([](GgufBytes& file) {
    add_keys(file);
    add_embedding(file);
    file.u32("tokenizer.ggml.eos_token_id", 2);
    file.u32("tokenizer.ggml.eot_token_id", 1);
    file.u32("tokenizer.ggml.eom_token_id", 2);
    file.string("tokenizer.chat_template", "{{ x }}");
    file.string("general.license", "mit");
  });
  EXPECT_EQ(checkpoint->generation_config(), Json::parse(R"({"eos_token_id": [2, 1]})"));
  EXPECT_EQ(checkpoint->text_file("chat_template.jinja"), "{{ x }}");
  EXPECT_EQ(checkpoint->text_file("README.md"), "---\nlicense: mit\n---\n");
  EXPECT_EQ(checkpoint->text_file("tokenizer.json"), std::nullopt);
  EXPECT_EQ(checkpoint->name(), "model");
}

// Two query heads of four rows: the file has (0, 2, 1, 3) of each.
TEST_F(GgufCheckpoint, QueryAndKeyRowsAreInTransformersOrderAgain) {
  const auto checkpoint = open([](GgufBytes& file) {
    add_keys(file);
    add_embedding(file);
    file.f32_tensor("blk.0.attn_q.weight", {1, 8}, std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7});
    file.f32_tensor("blk.0.attn_k.weight", {1, 4}, std::vector<float>{0, 2, 1, 3});
    file.f32_tensor("blk.0.attn_v.weight", {1, 4}, counted(4));
  });
  const auto projection = [&](const char* name) {
    return values_of(*checkpoint, fmt::format("model.layers.0.self_attn.{}_proj.weight", name));
  };
  EXPECT_EQ(projection("q"), counted(8));
  EXPECT_EQ(projection("k"), counted(4));
  EXPECT_EQ(projection("v"), counted(4));
}

TEST_F(GgufCheckpoint, MatricesTakeTheNarrowestTypeThatHoldsThemExactly) {
  const auto checkpoint = open([](GgufBytes& file) {
    add_keys(file);
    add_embedding(file);
    file.f32_tensor("blk.0.ffn_up.weight", {2, 1}, std::vector<float>{1.F + 0x1p-10F, -2});
    file.f32_tensor("blk.0.ffn_gate.weight", {2, 1}, std::vector<float>{1, 1.F + 0x1p-20F});
    file.f32_tensor("blk.0.ffn_down.weight", {2, 1}, std::vector<float>{0x1p100F, -0.F});
    file.f32_tensor("blk.0.ffn_norm.weight", {2}, counted(2));
    // d = 1, quants 0 to 31: bf16 holds them. The scale 0x3C01 is 1 + 2^-10.
    std::string block = GgufBytes::number(uint16_t{0x3C00});
    for (char q = 0; q < 32; ++q) block += q;
    file.tensor("blk.0.attn_v.weight", {32, 1}, 8, block);
    block.replace(0, 2, GgufBytes::number(uint16_t{0x3C01}));
    file.tensor("blk.0.attn_output.weight", {32, 1}, 8, block);
  });
  const auto dtype_of = [&](const std::string& name) {
    return checkpoint->tensor("model.layers.0." + name + ".weight").value().dtype;
  };
  EXPECT_EQ(dtype_of("mlp.up_proj"), DType::kF16);
  EXPECT_EQ(dtype_of("mlp.gate_proj"), DType::kF32);
  EXPECT_EQ(dtype_of("mlp.down_proj"), DType::kBF16);
  EXPECT_EQ(dtype_of("post_attention_layernorm"), DType::kF32);
  EXPECT_EQ(dtype_of("self_attn.v_proj"), DType::kBF16);
  EXPECT_EQ(dtype_of("self_attn.o_proj"), DType::kF32);
  EXPECT_EQ(values_of(*checkpoint, "model.layers.0.self_attn.v_proj.weight"), counted(32));
  EXPECT_EQ(values_of(*checkpoint, "model.layers.0.mlp.up_proj.weight"),
            (std::vector<float>{1.F + 0x1p-10F, -2}));
  EXPECT_EQ(values_of(*checkpoint, "model.layers.0.self_attn.o_proj.weight")[31],
            31 * (1.F + 0x1p-10F));
  EXPECT_EQ(checkpoint->tensor("model.layers.0.self_attn.o_proj.weight").value().encoding, "Q8_0");
}

TEST_F(GgufCheckpoint, TensorsThatMeanNothingHereKeepTheirNames) {
  const auto checkpoint = open([](GgufBytes& file) {
    add_keys(file);
    add_embedding(file);
    file.f32_tensor("blk.0.attn_q_norm.weight", {4}, counted(4));
    file.f32_tensor("blk..weight", {4}, counted(4));
  });
  EXPECT_THAT(checkpoint->tensor_names(),
              ElementsAre("blk..weight", "blk.0.attn_q_norm.weight", "model.embed_tokens.weight"));
  EXPECT_FALSE(checkpoint->tensor("token_embd.weight"));
}

TEST_F(GgufCheckpoint, TensorsThatContradictTheKeysAreRefused) {
  const auto refusal = [&](const std::function<void(GgufBytes&)>& fill) {
    return complaint(ErrorCode::kCorrupt, fill);
  };
  EXPECT_EQ(refusal([](GgufBytes& file) {
              file.f32_tensor("blk.0.attn_q.weight", {1, 7}, counted(7));
            }),
            "model.gguf: tensor \"blk.0.attn_q.weight\": 7 rows are no 2 heads of an even size");
  EXPECT_EQ(refusal([](GgufBytes& file) { file.f32_tensor("rope_freqs.weight", {3}, counted(3)); }),
            "model.gguf: tensor \"rope_freqs.weight\" has 3 factors, expected 2 for heads of 4");
  EXPECT_EQ(refusal([](GgufBytes& file) {
              file.f32_tensor("model.norm.weight", {8}, counted(8));
              file.f32_tensor("output_norm.weight", {8}, counted(8));
            }),
            "model.gguf: tensor \"model.norm.weight\" is there under two names");
  const Error error = error_of([&] { open([](GgufBytes& file) { add_keys(file); }); });
  EXPECT_STREQ(error.what(), "model.gguf: tensor \"token_embd.weight\" is missing");
}

class SplitGguf : public GgufCheckpoint {
 protected:
  void part(int number, int claimed, int claimed_count, const std::string& tensor) {
    GgufBytes file;
    if (number == 1) {
      add_keys(file);
      add_embedding(file);
      file.pair("split.tensors.count", 5, GgufBytes::number(int32_t{3}));
    }
    file.pair("split.no", 2, GgufBytes::number(static_cast<uint16_t>(claimed - 1)));
    file.pair("split.count", 2, GgufBytes::number(static_cast<uint16_t>(claimed_count)));
    if (!tensor.empty()) file.f32_tensor(tensor, {8}, counted(8));
    save(file, fmt::format("big-{:05}-of-00002.gguf", number));
  }
  std::filesystem::path path(int number) {
    return folder_.path() / fmt::format("big-{:05}-of-00002.gguf", number);
  }
};

TEST_F(SplitGguf, IsOneCheckpointWhicheverPartIsNamed) {
  part(1, 1, 2, "output_norm.weight");
  part(2, 2, 2, "blk.0.attn_norm.weight");
  for (const int named : {1, 2}) {
    const auto checkpoint = open_checkpoint(path(named));
    EXPECT_THAT(checkpoint->tensor_names(),
                ElementsAre("model.embed_tokens.weight", "model.layers.0.input_layernorm.weight",
                            "model.norm.weight"));
    EXPECT_THAT(checkpoint->files(), ElementsAre(path(1), path(2)));
    EXPECT_EQ(checkpoint->name(), "big");
  }
}

TEST_F(SplitGguf, ANameThatNoPartCanHaveIsOfAFileAlone) {
  for (const std::string name : {"x-00001-of-00000.gguf", "x-00000-of-00001.gguf",
                                 "x-00005-of-00001.gguf", "x--0001-of--0001.gguf"}) {
    SCOPED_TRACE(name);
    GgufBytes file;
    add_keys(file);
    add_embedding(file);
    const auto checkpoint = open_checkpoint(save(file, name));
    EXPECT_THAT(checkpoint->files(), ElementsAre(folder_.path() / name));
  }
}

TEST_F(SplitGguf, APartThatIsALinkToItselfIsNotThere) {
  part(1, 1, 2, "output_norm.weight");
  std::filesystem::create_symlink(path(2), path(2));
  EXPECT_EQ(error_of([&] { open_checkpoint(path(1)); }).code(), ErrorCode::kNotFound);
}

TEST_F(SplitGguf, PartsThatAreMissingOrDontFitAreNamed) {
  const auto complaint_of = [&](ErrorCode code) {
    const Error error = error_of([&] { open_checkpoint(path(1)); });
    EXPECT_EQ(error.code(), code) << error.what();
    return std::string(error.what());
  };
  part(1, 1, 2, "output_norm.weight");
  EXPECT_THAT(complaint_of(ErrorCode::kNotFound),
              HasSubstr("big-00002-of-00002.gguf: part 2 of 2 is not there"));
  part(2, 1, 2, "blk.0.attn_norm.weight");
  EXPECT_THAT(complaint_of(ErrorCode::kCorrupt),
              HasSubstr("big-00002-of-00002.gguf says that it is part 1 of 2, its name that it is "
                        "2 of 2"));
  part(2, 2, 3, "blk.0.attn_norm.weight");
  EXPECT_THAT(complaint_of(ErrorCode::kCorrupt), HasSubstr("says that it is part 2 of 3"));
  part(2, 2, 2, "output_norm.weight");
  EXPECT_THAT(complaint_of(ErrorCode::kCorrupt),
              HasSubstr("tensor \"output_norm.weight\" is in two parts"));
  part(2, 2, 2, "");
  EXPECT_THAT(complaint_of(ErrorCode::kCorrupt), HasSubstr("2 tensors in all parts, expected 3"));
}

}  // namespace
}  // namespace trtmc
