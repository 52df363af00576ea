#include "builder/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <thread>

#include "base/error.h"
#include "checkpoint/hf_directory.h"
#include "tensor/quantize.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_checkpoint.h"

namespace trtmc {
namespace {

using ::testing::HasSubstr;

class Build : public ::testing::Test {
 protected:
  std::filesystem::path checkpoint() const { return folder_.path() / "checkpoint"; }
  std::filesystem::path output(std::string_view name = "out.trtmc") const {
    return folder_.path() / "out" / name;
  }

  Build() { std::filesystem::create_directory(folder_.path() / "out"); }

  BuildPlan plan(const TinyCheckpointOptions& options) const {
    write_tiny_checkpoint(checkpoint(), options);
    return plan_build(open_hf_directory(checkpoint()), {});
  }

  void build(const BuildPlan& plan, std::string_view name = "out.trtmc", int threads = 2,
             const BuildProgress& progress = {}) const {
    ThreadPool pool(threads);
    build_bundle(plan, output(name), AtomicFile::IfExists::kRefuse, pool, progress);
  }

  bool left_nothing() const { return std::filesystem::is_empty(folder_.path() / "out"); }

  TemporaryFolder folder_;
};

float rounded(float value, DType dtype) {
  if (dtype == DType::kBF16) return bf16_to_float(float_to_bf16(value));
  if (dtype == DType::kF16) return f16_to_float(float_to_f16(value));
  return value;
}

std::vector<float> values_of(const Bundle& bundle, const TensorKey& key) {
  const WeightView weight = bundle.weight(key);
  std::vector<float> values(static_cast<size_t>(num_elements(weight.shape)));
  if (weight.layout == TensorLayout::kPlain) {
    read_floats({weight.dtype, weight.shape, weight.bytes}, 0, values);
    return values;
  }
  const PackedLayout layout = weight.packed();
  for (int64_t row = 0; row < layout.rows; ++row) {
    unpack_row(layout, weight.bytes, row,
               std::span(values).subspan(static_cast<size_t>(row * layout.cols),
                                         static_cast<size_t>(layout.cols)));
  }
  return values;
}

// Every value of the bundle is that of the checkpoint in its own type, norms and matrices alike.
void expect_weights_of(const Bundle& bundle, const BuildPlan& plan,
                       const TinyCheckpointOptions& options) {
  const auto weights = tiny_weights(options);
  for (const PlannedTensor& tensor : plan.tensors) {
    std::vector<float> expected = weights.at(tensor.sources.at(0));
    for (float& value : expected) value = rounded(value, options.dtype);
    EXPECT_EQ(values_of(bundle, tensor.key), expected) << to_string(tensor.key);
  }
}

struct Case {
  const char* name;
  TinyCheckpointOptions options;
};

class BuiltFrom : public Build, public ::testing::WithParamInterface<Case> {};

TEST_P(BuiltFrom, TheBundleHasTheCheckpointsValues) {
  const BuildPlan plan = this->plan(GetParam().options);
  build(plan);
  const Bundle bundle(output());
  bundle.verify_hashes();
  expect_weights_of(bundle, plan, GetParam().options);
  EXPECT_EQ(bundle.file_bytes(), plan.bundle_bytes);
}

INSTANTIATE_TEST_SUITE_P(
    Checkpoints, BuiltFrom,
    ::testing::Values(Case{"tied_bf16", {.dtype = DType::kBF16}},
                      Case{"untied_f32", {.tied = false, .dtype = DType::kF32}},
                      Case{"f16", {.dtype = DType::kF16}}, Case{"sharded", {.sharded = true}},
                      Case{"odd_sizes",
                           {.hidden_size = 44,
                            .intermediate_size = 75,
                            .num_heads = 2,
                            .num_kv_heads = 1,
                            .vocab_size = 331,
                            .tied = false}}),
    [](const auto& test) { return test.param.name; });

// What quantize_panel() makes of a matrix of the checkpoint.
std::vector<std::byte> quantized(const PackedLayout& layout, std::span<const float> values) {
  std::vector<std::byte> packed;
  std::vector<std::byte> panel(layout.panel_bytes());
  const auto cols = static_cast<size_t>(layout.cols);
  for (size_t first = 0; first < values.size(); first += 16 * cols) {
    std::vector<std::span<const float>> rows;
    for (size_t at = first; at < std::min(first + 16 * cols, values.size()); at += cols) {
      rows.emplace_back(values.subspan(at, cols));
    }
    quantize_panel(layout, rows, panel);
    packed.insert(packed.end(), panel.begin(), panel.end());
  }
  return packed;
}

class Quantized : public Build, public ::testing::WithParamInterface<const char*> {};

TEST_P(Quantized, EachWeightHasTheTypeOfItsRoleAndTheValuesOfTheCheckpoint) {
  const TinyCheckpointOptions options{.hidden_size = 44,
                                      .intermediate_size = 75,
                                      .num_heads = 2,
                                      .num_kv_heads = 1,
                                      .vocab_size = 331,
                                      .tied = false};
  write_tiny_checkpoint(checkpoint(), options);
  const BuildPlan plan = plan_build(open_hf_directory(checkpoint()), {.quantization = GetParam()});
  build(plan, "one.trtmc", 1);
  build(plan, "three.trtmc", 3);
  EXPECT_EQ(read_file(output("one.trtmc")), read_file(output("three.trtmc")));
  const Bundle bundle(output("one.trtmc"));
  EXPECT_EQ(bundle.manifest().quantization, GetParam());
  EXPECT_EQ(bundle.file_bytes(), plan.bundle_bytes);
  const auto weights = tiny_weights(options);
  for (const PlannedTensor& tensor : plan.tensors) {
    std::vector<float> values = weights.at(tensor.sources.at(0));
    for (float& value : values) value = rounded(value, options.dtype);
    const WeightView weight = bundle.weight(tensor.key);
    if (is_norm(tensor.key.role)) {
      EXPECT_EQ(values_of(bundle, tensor.key), values) << to_string(tensor.key);
    } else {
      EXPECT_EQ(weight.dtype, tensor.dtype);
      EXPECT_TRUE(std::ranges::equal(weight.bytes, quantized(weight.packed(), values)))
          << to_string(tensor.key);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, Quantized, ::testing::Values("q8", "q6", "q4_q6", "q4"),
                         [](const auto& test) { return test.param; });

TEST_F(Build, AWeightThatIsNotFiniteIsNotQuantised) {
  write_tiny_checkpoint(checkpoint(), {.dtype = DType::kF32});
  std::string file = read_file(checkpoint() / "model.safetensors");
  const std::string name = "model.layers.0.mlp.down_proj.weight";
  const size_t at = file.find(as_text(open_hf_directory(checkpoint())->tensor(name)->bytes));
  const float infinity = std::numeric_limits<float>::infinity();
  std::memcpy(file.data() + at + 165 * sizeof(float), &infinity, sizeof(float));  // Row 1 of 160.
  write_text(checkpoint() / "model.safetensors", file);
  try {
    build(plan_build(open_hf_directory(checkpoint()), {.quantization = "q4"}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.what(),
                HasSubstr("down_proj.weight\": row 1 has a weight that is not finite or "
                          "beyond 65504"));
  }
  EXPECT_TRUE(left_nothing());
}

TEST_F(Build, CarriesTokenizerAndTemplate) {
  const BuildPlan plan = this->plan({.chat_template = "{{ messages[0].content }}"});
  build(plan);
  const Bundle bundle(output());
  EXPECT_EQ(bundle.chat_template(), "{{ messages[0].content }}");
  EXPECT_TRUE(std::ranges::equal(bundle.tokenizer_tables(), plan.tokenizer_tables));
}

TEST_F(Build, RecordsTheHashOfEveryFile) {
  build(plan({.sharded = true}));
  const Bundle bundle(output());
  EXPECT_EQ(bundle.manifest().source_files.size(),
            7U);  // Two configs, two of text, three of weights.
  for (const FileHash& file : bundle.manifest().source_files) {
    const std::string content = read_file(checkpoint() / file.name);
    EXPECT_EQ(file.bytes, content.size()) << file.name;
    EXPECT_EQ(file.sha256, to_hex(sha256(as_bytes(content)))) << file.name;
  }
}

TEST_F(Build, TheBytesDoNotDependOnThreadsOrPlace) {
  build(plan({}), "one.trtmc", 1);
  const std::string one = read_file(output("one.trtmc"));
  build(plan_build(open_hf_directory(checkpoint()), {}), "five.trtmc", 5);
  EXPECT_EQ(read_file(output("five.trtmc")), one);
  std::filesystem::create_directory(folder_.path() / "elsewhere");
  std::filesystem::rename(checkpoint(), folder_.path() / "elsewhere" / "checkpoint");
  build(plan_build(open_hf_directory(folder_.path() / "elsewhere" / "checkpoint"), {}),
        "moved.trtmc", 2);
  EXPECT_EQ(read_file(output("moved.trtmc")), one);
}

TEST_F(Build, StacksSeveralSourcesIntoOneTensor) {
  // Layer 0's k and v, 32 rows each, as if a file had them in halves of another tensor.
  BuildPlan plan = this->plan({});
  PlannedTensor& q = plan.tensors[2];
  ASSERT_EQ(q.key, (TensorKey{Role::kQProj, 0}));
  q.sources = {"model.layers.0.self_attn.k_proj.weight", "model.layers.0.self_attn.v_proj.weight"};
  build(plan);
  const auto weights = tiny_weights({});
  std::vector<float> expected = weights.at(q.sources[0]);
  const std::vector<float>& second = weights.at(q.sources[1]);
  expected.insert(expected.end(), second.begin(), second.end());
  for (float& value : expected) value = rounded(value, DType::kBF16);
  EXPECT_EQ(values_of(Bundle(output()), q.key), expected);
}

TEST_F(Build, ReportsProgressOnTheCallersThreadToTheEnd) {
  std::vector<std::pair<uint64_t, uint64_t>> reports;
  const std::thread::id caller = std::this_thread::get_id();
  build(plan({}), "out.trtmc", 3, [&](uint64_t done, uint64_t total) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    reports.emplace_back(done, total);
  });
  ASSERT_FALSE(reports.empty());
  EXPECT_TRUE(std::ranges::is_sorted(reports));
  EXPECT_EQ(reports.back().first, reports.back().second);
  EXPECT_EQ(reports.front().second, reports.back().second);
}

TEST_F(Build, AnExceptionOfTheCallerEndsItAndLeavesNothing) {
  struct Interrupted {};
  EXPECT_THROW(build(plan({}), "out.trtmc", 2, [](uint64_t, uint64_t) { throw Interrupted(); }),
               Interrupted);
  EXPECT_TRUE(left_nothing());
}

TEST_F(Build, AFileThatVanishesMeanwhileEndsItAndLeavesNothing) {
  const BuildPlan plan = this->plan({});
  std::filesystem::remove(checkpoint() / "tokenizer.json");
  try {
    build(plan);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("tokenizer.json"));
  }
  EXPECT_TRUE(left_nothing());
}

TEST_F(Build, DoesNotReplaceAFileUnlessTold) {
  write_text(output(), "precious");
  const BuildPlan plan = this->plan({});
  EXPECT_THROW(build(plan), Error);
  EXPECT_EQ(read_file(output()), "precious");
  ThreadPool pool(1);
  build_bundle(plan, output(), AtomicFile::IfExists::kReplace, pool, {});
  EXPECT_EQ(Bundle(output()).manifest().family, "smollm3");
}

}  // namespace
}  // namespace trtmc
