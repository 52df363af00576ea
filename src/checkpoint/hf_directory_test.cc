#include "checkpoint/hf_directory.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_checkpoint.h"

namespace trtmc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::string_view kShard1 = "model-00001-of-00002.safetensors";
constexpr std::string_view kShard2 = "model-00002-of-00002.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";

class HfDirectoryTest : public ::testing::Test {
 protected:
  // Why the folder is refused; fails unless it is, with `code`.
  std::string refusal(ErrorCode code) {
    try {
      open_hf_directory(path_);
      ADD_FAILURE() << "it was opened";
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      hint_ = error.hint();
      return error.what();
    }
  }

  // Replaces `from`, which must be there, in a text file of the folder.
  void edit(std::string_view file, const std::string& from, const std::string& to) {
    std::string text = read_file(path_ / file);
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write_text(path_ / file, text.replace(at, from.size(), to));
  }

  void write_sharded() { write_tiny_checkpoint(path_, {.sharded = true}); }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "model";
  std::string hint_;
};

TEST_F(HfDirectoryTest, ShardsHoldTheSameTensorsAsOneFile) {
  write_tiny_checkpoint(folder_.path() / "single");
  write_sharded();
  const auto single = open_hf_directory(folder_.path() / "single");
  const auto sharded = open_hf_directory(path_);
  EXPECT_EQ(single->tensor_names(), sharded->tensor_names());
  EXPECT_EQ(single->tensor_names().size(), 4u * 9 + 2);
  for (const std::string& name : single->tensor_names()) {
    EXPECT_EQ(as_text(single->tensor(name)->bytes), as_text(sharded->tensor(name)->bytes)) << name;
  }
}

TEST_F(HfDirectoryTest, ALayerMayStraddleTheShards) {
  write_sharded();
  const std::string index = read_file(path_ / kIndex);
  EXPECT_THAT(
      index,
      AllOf(HasSubstr(fmt::format("\"model.layers.2.mlp.down_proj.weight\": \"{}\"", kShard1)),
            HasSubstr(fmt::format("\"model.layers.2.mlp.up_proj.weight\": \"{}\"", kShard2))));
  const auto checkpoint = open_hf_directory(path_);
  EXPECT_TRUE(checkpoint->tensor("model.layers.2.mlp.down_proj.weight"));
  EXPECT_TRUE(checkpoint->tensor("model.layers.2.mlp.up_proj.weight"));
}

TEST_F(HfDirectoryTest, ValuesAreThoseWritten) {
  const TinyCheckpointOptions options{.head_dim = 8, .tied = false, .dtype = DType::kF32};
  write_tiny_checkpoint(path_, options);
  const auto checkpoint = open_hf_directory(path_);
  const auto weights = tiny_weights(options);
  EXPECT_EQ(checkpoint->tensor_names().size(), weights.size());
  for (const auto& [name, values] : weights) {
    const CheckpointTensor tensor = *checkpoint->tensor(name);
    std::vector<float> read(values.size());
    read_floats({tensor.dtype, tensor.shape, tensor.bytes}, 0, read);
    EXPECT_EQ(read, values) << name;
  }
  EXPECT_EQ(checkpoint->tensor("lm_head.weight")->shape, (Shape{320, 64}));
  EXPECT_EQ(checkpoint->tensor("model.layers.0.self_attn.k_proj.weight")->shape, (Shape{16, 64}));
}

TEST_F(HfDirectoryTest, TheTextFilesAreGivenAsTheyAre) {
  write_tiny_checkpoint(path_, {.chat_template = "{{ x }}\n"});
  const auto checkpoint = open_hf_directory(path_);
  EXPECT_EQ(checkpoint->text_file("chat_template.jinja"), "{{ x }}\n");
  EXPECT_FALSE(checkpoint->text_file("vocab.txt"));
  EXPECT_EQ(*checkpoint->config().find("hidden_size")->integer(), 64);
  EXPECT_EQ(*checkpoint->generation_config().find("temperature")->real(), 0.6);
}

TEST_F(HfDirectoryTest, FilesAreThoseOfTheModelInOrder) {
  write_sharded();
  write_text(path_ / "notes.txt", "not part of it");
  std::vector<std::string> names;
  for (const auto& file : open_hf_directory(path_)->files()) names.push_back(file.filename());
  EXPECT_THAT(names,
              ::testing::ElementsAre("config.json", "generation_config.json", kShard1, kShard2,
                                     kIndex, "tokenizer.json", "tokenizer_config.json"));
}

TEST_F(HfDirectoryTest, WithoutGenerationConfigItIsNull) {
  write_tiny_checkpoint(path_);
  std::filesystem::remove(path_ / "generation_config.json");
  EXPECT_TRUE(open_hf_directory(path_)->generation_config().is_null());
}

TEST_F(HfDirectoryTest, ASingleFileWinsOverAnIndexAsInTransformers) {
  write_sharded();
  write_safetensors(path_ / "model.safetensors", {make_tensor("x", DType::kF32, {1}, {1})});
  EXPECT_THAT(open_hf_directory(path_)->tensor_names(), ::testing::ElementsAre("x"));
}

TEST_F(HfDirectoryTest, WhatIsNoFolderOrHasNoConfigIsRefused) {
  EXPECT_THAT(refusal(ErrorCode::kNotFound), HasSubstr("no such folder"));
  write_text(path_, "x");
  EXPECT_THAT(refusal(ErrorCode::kInvalidArgument), HasSubstr("a file, expected a checkpoint's"));
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_THAT(refusal(ErrorCode::kNotFound), HasSubstr("no config.json"));
  EXPECT_THAT(hint_, HasSubstr("config.json and model.safetensors"));
}

TEST_F(HfDirectoryTest, PyTorchWeightsAreRefusedWithTheWayOut) {
  write_tiny_checkpoint(path_);
  std::filesystem::rename(path_ / "model.safetensors", path_ / "pytorch_model.bin");
  EXPECT_THAT(refusal(ErrorCode::kUnsupported), HasSubstr("PyTorch files (pytorch_model.bin)"));
  EXPECT_THAT(hint_, HasSubstr("save_pretrained()"));
  std::filesystem::remove(path_ / "pytorch_model.bin");
  EXPECT_THAT(refusal(ErrorCode::kNotFound), HasSubstr("no weights, expected model.safetensors"));
}

TEST_F(HfDirectoryTest, ACommentPastedFromTheModelCardIsNamed) {
  write_tiny_checkpoint(path_);
  edit("config.json", "\"rope_scaling\": null",
       "\"rope_scaling\": {\"factor\": 2.0, #2x65536=131 072 \n"
       "\"original_max_position_embeddings\": 65536, \"type\": \"yarn\"}");
  EXPECT_THAT(refusal(ErrorCode::kInvalidArgument),
              AllOf(HasSubstr("config.json: byte "), HasSubstr("the file has a comment")));
  EXPECT_THAT(hint_, HasSubstr("delete from the #"));
}

TEST_F(HfDirectoryTest, AHashInsideAStringIsNoComment) {
  write_tiny_checkpoint(path_);
  write_text(path_ / "config.json", R"({"name": "a \"#1\" model", })");
  EXPECT_THAT(refusal(ErrorCode::kInvalidArgument),
              AllOf(HasSubstr("config.json: byte "), ::testing::Not(HasSubstr("comment"))));
  write_text(path_ / "config.json", "[1]");
  EXPECT_THAT(refusal(ErrorCode::kInvalidArgument), HasSubstr("an array, expected an object"));
}

// As a hub cache has it whose files were deleted: the model must not be built without them.
TEST_F(HfDirectoryTest, ALinkThatLeadsNowhereIsNotTakenForAnAbsentFile) {
  write_tiny_checkpoint(path_);
  for (const char* name : {"generation_config.json", "tokenizer.json", "chat_template.jinja"}) {
    std::filesystem::remove(path_ / name);
    std::filesystem::create_symlink("nothing", path_ / name);
    EXPECT_THAT(refusal(ErrorCode::kNotFound), AllOf(HasSubstr(name), HasSubstr("the link")));
    std::filesystem::remove(path_ / name);
    std::filesystem::create_directory(path_ / name);
    EXPECT_THAT(refusal(ErrorCode::kInvalidArgument),
                AllOf(HasSubstr(name), HasSubstr("not a regular file")));
    std::filesystem::remove(path_ / name);
  }
}

TEST_F(HfDirectoryTest, AMissingShardIsNamed) {
  write_sharded();
  std::filesystem::remove(path_ / kShard2);
  EXPECT_THAT(refusal(ErrorCode::kNotFound), HasSubstr(fmt::format("names {}", kShard2)));
}

TEST_F(HfDirectoryTest, ATensorOfTheIndexThatNoShardHasIsNamed) {
  write_sharded();
  edit(kIndex, "\"model.norm.weight\":",
       fmt::format("\"model.extra.weight\": \"{}\",\n\"model.norm.weight\":", kShard2));
  EXPECT_THAT(refusal(ErrorCode::kCorrupt),
              HasSubstr(fmt::format("{}: tensor \"model.extra.weight\" is missing", kShard2)));
}

TEST_F(HfDirectoryTest, ATensorUnderAnotherNameThanTheIndexSaysIsNamed) {
  write_sharded();
  edit(kIndex, "\"model.norm.weight\":", "\"model.norm.scale\":");
  EXPECT_THAT(refusal(ErrorCode::kCorrupt),
              HasSubstr("tensor \"model.norm.weight\" is here, but model.safetensors.index.json "
                        "does not name it"));
}

TEST_F(HfDirectoryTest, ATensorInTwoShardsIsNamed) {
  write_sharded();
  const auto first = make_tensor("model.norm.weight", DType::kF32, {1}, {1});
  write_text(path_ / kIndex,
             fmt::format(R"({{"weight_map": {{"model.norm.weight": "{}", "y": "{}"}}}})", kShard1,
                         kShard2));
  write_safetensors(path_ / kShard1, {first});
  write_safetensors(path_ / kShard2, {first, make_tensor("y", DType::kF32, {1}, {1})});
  EXPECT_THAT(refusal(ErrorCode::kCorrupt),
              HasSubstr(fmt::format("{}: tensor \"model.norm.weight\" is here, but {} says that it "
                                    "is in {}",
                                    kShard2, kIndex, kShard1)));
}

TEST_F(HfDirectoryTest, AnIndexCannotLeaveTheFolder) {
  write_sharded();
  const auto outside = folder_.path() / "outside.safetensors";
  write_safetensors(outside, {make_tensor("x", DType::kF32, {1}, {1})});
  for (const std::string& name :
       {std::string("../outside.safetensors"), outside.string(), std::string("sub/x.safetensors"),
        std::string("..\\\\x.safetensors"), std::string(".."), std::string("")}) {
    write_text(path_ / kIndex, fmt::format(R"({{"weight_map": {{"x": "{}"}}}})", name));
    EXPECT_THAT(refusal(ErrorCode::kInvalidArgument),
                AllOf(HasSubstr("weight_map.x"), HasSubstr("the name of a file in this folder")));
  }
}

TEST_F(HfDirectoryTest, AnIndexThatIsNoneIsRefused) {
  write_sharded();
  write_text(path_ / kIndex, R"({"metadata": {}})");
  EXPECT_THAT(refusal(ErrorCode::kInvalidArgument), HasSubstr("\"weight_map\" is missing"));
  write_text(path_ / kIndex, R"({"weight_map": {}})");
  EXPECT_THAT(refusal(ErrorCode::kInvalidArgument), HasSubstr("names no tensor"));
  write_text(path_ / kIndex, R"({"weight_map": {"x": "pytorch_model.bin"}})");
  EXPECT_THAT(refusal(ErrorCode::kInvalidArgument), HasSubstr("expected a .safetensors file"));
  write_text(path_ / kIndex, R"({"weight_map": {"x": "a.safetensors", "x": "b.safetensors"}})");
  EXPECT_THAT(refusal(ErrorCode::kInvalidArgument), HasSubstr("\"x\" stands twice"));
}

TEST_F(HfDirectoryTest, ADamagedShardIsNamed) {
  write_sharded();
  std::filesystem::resize_file(path_ / kShard1, 5000);
  EXPECT_THAT(refusal(ErrorCode::kCorrupt), HasSubstr(kShard1));
}

}  // namespace
}  // namespace trtmc
