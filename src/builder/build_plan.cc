#include "builder/build_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/error.h"
#include "builder/text_assets.h"
#include "bundle/bundle_writer.h"
#include "bundle/quant_scheme.h"
#include "model/rope_table.h"

namespace trtmc {
namespace {

// Transformers' values where a YaRN configuration gives none.
constexpr double kYarnBetaFast = 32;
constexpr double kYarnBetaSlow = 1;

constexpr int kMaxContext = 1 << 28;

// Extends the spec's own context by YaRN. The context follows unless it is given too.
void apply_yarn(double factor, DecoderSpec& spec) {
  if (!std::holds_alternative<std::monostate>(spec.rope.scaling)) {
    throw Error(ErrorCode::kInvalidArgument,
                "the checkpoint's config.json scales its rotary positions already, a second "
                "scaling would contradict it",
                "leave out --rope-scaling, or change rope_scaling in config.json");
  }
  const double context = factor * spec.context_length;
  if (!(factor >= 1 && context <= kMaxContext)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a YaRN factor of {}, expected 1 or more and a context of at most {}",
                            factor, kMaxContext));
  }
  spec.rope.scaling = YarnScaling{.factor = factor,
                                  .beta_fast = kYarnBetaFast,
                                  .beta_slow = kYarnBetaSlow,
                                  .attention_factor = yarn_attention_factor(factor, 0, 0),
                                  .original_context = spec.context_length,
                                  .truncate = true};
  spec.context_length = static_cast<int>(context);
}

DecoderSpec plan_spec(const ModelFamily& family, const Json& config, const BuildOptions& options,
                      std::vector<std::string>& warnings) {
  DecoderSpec spec = with_context("config.json", [&] { return family.read_spec(config); });
  if (options.yarn_factor) apply_yarn(*options.yarn_factor, spec);
  if (options.context_length) {
    if (*options.context_length > spec.context_length) {
      warnings.push_back(
          fmt::format("a context of {} tokens, but the model was configured for {}: beyond that "
                      "its answers may "
                      "be nonsense",
                      *options.context_length, spec.context_length));
    }
    spec.context_length = *options.context_length;
  }
  validate(spec);
  return spec;
}

CheckpointTensor find_tensor(const Checkpoint& checkpoint, const std::string& name) {
  std::optional<CheckpointTensor> tensor = checkpoint.tensor(name);
  if (!tensor) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("tensor \"{}\" is missing from the checkpoint", name),
                "the checkpoint may be incomplete, or its config.json may be another model's");
  }
  return *std::move(tensor);
}

[[noreturn]] void refuse_shape(const std::string& name, const Shape& shape, const Shape& expected) {
  throw Error(ErrorCode::kCorrupt,
              fmt::format("tensor \"{}\" has shape {}, config.json asks for {}", name,
                          to_string(shape), to_string(expected)));
}

// The sources' rows, one below the other, must make the rule's shape.
PlannedTensor plan_tensor(const Checkpoint& checkpoint, const TensorRule& rule,
                          const std::string& quantization) {
  PlannedTensor planned{.key = rule.key,
                        .sources = rule.sources,
                        .encodings = {},
                        .dtype = DType::kF32,
                        .layout = TensorLayout::kPlain,
                        .shape = rule.shape};
  int64_t rows = 0;
  std::optional<DType> dtype;
  for (const std::string& name : rule.sources) {
    const CheckpointTensor tensor = find_tensor(checkpoint, name);
    const bool last = &name == &rule.sources.back();
    Shape expected = rule.shape;
    // All but the last of several may have any number of rows.
    if (!tensor.shape.empty()) expected[0] = last ? rule.shape[0] - rows : tensor.shape[0];
    if (tensor.shape != expected || rows + expected[0] > rule.shape[0] || expected[0] < 1) {
      refuse_shape(name, tensor.shape, expected);
    }
    if (dtype.value_or(tensor.dtype) != tensor.dtype) {
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("tensor \"{}\" is {}, but \"{}\", stored in one with it, is {}", name,
                              dtype_name(tensor.dtype), rule.sources[0], dtype_name(*dtype)));
    }
    dtype = tensor.dtype;
    planned.encodings.emplace_back(tensor.encoding);
    rows += expected[0];
  }
  if (!is_norm(rule.key.role)) {
    planned.dtype = quantized_type(quantization, rule.key.role).value_or(*dtype);
    planned.layout = TensorLayout::kPanels16;
  }
  return planned;
}

// In the bundle's order. A rule missing or one too many is the family's bug.
std::vector<PlannedTensor> plan_tensors(const Checkpoint& checkpoint, const DecoderSpec& spec,
                                        const std::vector<TensorRule>& rules,
                                        const std::string& quantization) {
  const std::vector<TensorKey> keys = tensor_keys(spec);
  TRTMC_CHECK(rules.size() == keys.size(), "a family has one rule for each tensor");
  std::vector<PlannedTensor> tensors;
  for (const TensorKey& key : keys) {
    const auto rule = std::find_if(rules.begin(), rules.end(), [&](const TensorRule& candidate) {
      return candidate.key == key;
    });
    TRTMC_CHECK(rule != rules.end() && rule->shape == tensor_shape(spec, key),
                "a family's rule has the tensor's shape");
    tensors.push_back(plan_tensor(checkpoint, *rule, quantization));
  }
  return tensors;
}

bool same_values(const CheckpointTensor& a, const CheckpointTensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape || a.shape.empty()) return false;
  std::vector<std::byte> a_buffer, b_buffer;
  for (int64_t row = 0; row < a.shape[0]; ++row) {
    const auto a_row = a.rows(row, row + 1, a_buffer), b_row = b.rows(row, row + 1, b_buffer);
    if (!std::equal(a_row.begin(), a_row.end(), b_row.begin(), b_row.end())) return false;
  }
  return true;
}

// A tied checkpoint may hold its output projection nevertheless. Transformers ignores it, which is
// worth a word if it is not what stands in its place.
void compare_with_embedding(const Checkpoint& checkpoint, const std::string& name,
                            const PlannedTensor& embedding, std::vector<std::string>& warnings) {
  const CheckpointTensor ignored = find_tensor(checkpoint, name);
  const CheckpointTensor used = find_tensor(checkpoint, embedding.sources[0]);
  if (same_values(ignored, used)) return;
  warnings.push_back(fmt::format(
      "tensor \"{}\" is ignored, as tie_word_embeddings says, though it differs from \"{}\"", name,
      embedding.sources[0]));
}

// Every tensor of the checkpoint is used, or known and left out, or refused: what nobody reads
// would be lost without a word.
void account_for_others(const Checkpoint& checkpoint, const ModelFamily& family,
                        const DecoderSpec& spec, const std::vector<PlannedTensor>& tensors,
                        std::vector<std::string>& warnings) {
  std::set<std::string> used;
  for (const PlannedTensor& tensor : tensors) {
    used.insert(tensor.sources.begin(), tensor.sources.end());
  }
  const std::vector<std::string> ignored = family.ignored_tensors(spec);
  std::vector<std::string> unknown;
  size_t num_frequencies = 0;
  for (const std::string& name : checkpoint.tensor_names()) {
    if (used.contains(name)) continue;
    if (std::find(ignored.begin(), ignored.end(), name) != ignored.end()) {
      compare_with_embedding(checkpoint, name, tensors.front(), warnings);
    } else if (name.ends_with("rotary_emb.inv_freq")) {
      ++num_frequencies;  // A buffer that old versions of Transformers saved.
    } else {
      unknown.push_back(name);
    }
  }
  if (num_frequencies > 0) {
    warnings.push_back(
        fmt::format("{} saved rotary_emb.inv_freq ignored: the frequencies follow from config.json",
                    num_frequencies));
  }
  if (unknown.empty()) return;
  const size_t shown = std::min<size_t>(unknown.size(), 3);
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format(
          "the checkpoint has {} that a {} model of this config.json does not use: "
          "\"{}\"{}",
          unknown.size() == 1 ? "a tensor" : fmt::format("{} tensors", unknown.size()), family.name,
          fmt::join(unknown.begin(), unknown.begin() + static_cast<ptrdiff_t>(shown), "\", \""),
          unknown.size() > shown ? ", …" : ""),
      "building without them would change the model's answers");
}

// A GGUF's own blocks are decoded and quantised again, since they mean other values than ours can.
void warn_of_second_rounding(const std::vector<PlannedTensor>& tensors,
                             std::vector<std::string>& warnings) {
  const auto rounded_already = [](const std::string& encoding) {
    return encoding != "F32" && encoding != "F16" && encoding != "BF16";
  };
  size_t count = 0;
  const std::string* encoding = nullptr;
  for (const PlannedTensor& tensor : tensors) {
    if (!is_quantized(tensor.dtype)) continue;
    const auto found = std::ranges::find_if(tensor.encodings, rounded_already);
    if (found == tensor.encodings.end()) continue;
    if (++count == 1) encoding = &*found;
  }
  if (count == 0) return;
  warnings.push_back(fmt::format(
      "{} of {} tensors are quantised in the checkpoint already (\"{}\"): they are decoded and "
      "quantised again, which loses more than quantising the original weights would",
      count, tensors.size(), *encoding));
}

std::vector<FileHash> list_files(const Checkpoint& checkpoint) {
  std::vector<FileHash> files;
  for (const std::filesystem::path& path : checkpoint.files()) {
    files.push_back({path.lexically_relative(checkpoint.path()).generic_string(),
                     std::filesystem::file_size(path),
                     {}});
  }
  return files;
}

std::string source_name(const Checkpoint& checkpoint, const BuildOptions& options) {
  if (!options.source_name.empty()) return options.source_name;
  const std::string name = checkpoint.name();
  return name.empty() ? "checkpoint" : name;
}

// Tokenizer, template and what they mean for the manifest.
void plan_text(const BuildOptions& options, BuildPlan& plan) {
  Manifest& manifest = plan.manifest;
  if (auto tokenizer = read_tokenizer(*plan.checkpoint, manifest.spec.vocab_size)) {
    plan.tokenizer_tables = std::move(tokenizer->tables);
    manifest.unicode_version = std::move(tokenizer->unicode_version);
  } else {
    plan.warnings.emplace_back(
        "the checkpoint has no tokenizer.json: the bundle will take token ids only, no text");
  }
  plan.chat_template = read_chat_template(*plan.checkpoint, options.chat_template);
  if (!plan.chat_template) {
    plan.warnings.emplace_back(
        "the checkpoint has no chat template: the bundle will complete texts, but not chat");
  }
}

Section section_of(const PlannedTensor& tensor) {
  return {.name = to_string(tensor.key),
          .kind = SectionKind::kTensor,
          .dtype = tensor.dtype,
          .layout = tensor.layout,
          .shape = tensor.shape,
          .offset = 0,
          .bytes = 0,
          .sha256 = {}};
}

Section section_of(std::string_view name, SectionKind kind, uint64_t bytes) {
  return {.name = std::string(name),
          .kind = kind,
          .dtype = {},
          .layout = {},
          .shape = {},
          .offset = 0,
          .bytes = bytes,
          .sha256 = {}};
}

}  // namespace

BuildPlan plan_build(std::shared_ptr<const Checkpoint> checkpoint, const BuildOptions& options) {
  const ModelFamily& family = find_family(checkpoint->config(), options.family);
  BuildPlan plan{.checkpoint = std::move(checkpoint),
                 .family = &family,
                 .manifest = {},
                 .tensors = {},
                 .tokenizer_tables = {},
                 .chat_template = {},
                 .warnings = {},
                 .parameters = 0,
                 .bundle_bytes = 0};
  const Checkpoint& source = *plan.checkpoint;
  const DecoderSpec spec = plan_spec(family, source.config(), options, plan.warnings);
  plan.tensors = plan_tensors(source, spec, family.tensor_rules(spec), options.quantization);
  account_for_others(source, family, spec, plan.tensors, plan.warnings);
  warn_of_second_rounding(plan.tensors, plan.warnings);
  for (const PlannedTensor& tensor : plan.tensors) {
    plan.parameters += static_cast<uint64_t>(num_elements(tensor.shape));
  }
  GenerationDefaults defaults = family.defaults(source);
  plan.manifest = {.family = std::string(family.name),
                   .strategy = std::string(family.strategy),
                   .source = source_name(source, options),
                   .source_revision = options.source_revision,
                   .producer = "trtmc " TRTMC_VERSION,
                   .licence = read_licence(source),
                   .source_files = list_files(source),
                   .unicode_version = {},
                   .spec = spec,
                   .quantization = options.quantization,
                   .stop_ids = std::move(defaults.stop_ids),
                   .default_sampling = std::move(defaults.sampling),
                   .markers = family.markers(source),
                   .special_tokens = read_special_tokens(source)};
  if (plan.manifest.stop_ids.empty()) {
    plan.warnings.emplace_back(
        "the checkpoint names no token that ends an answer: it goes on to its limit");
  }
  plan_text(options, plan);
  plan.bundle_bytes = bundle_bytes(plan.manifest, planned_sections(plan));
  return plan;
}

std::vector<Section> planned_sections(const BuildPlan& plan) {
  std::vector<Section> sections;
  for (const PlannedTensor& tensor : plan.tensors) sections.push_back(section_of(tensor));
  if (!plan.tokenizer_tables.empty()) {
    sections.push_back(
        section_of(kTokenizerSection, SectionKind::kTokenizer, plan.tokenizer_tables.size()));
  }
  if (plan.chat_template) {
    sections.push_back(
        section_of(kChatTemplateSection, SectionKind::kText, plan.chat_template->size()));
  }
  return sections;
}

}  // namespace trtmc
