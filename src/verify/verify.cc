#include "verify/verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/backend_loader.h"
#include "base/error.h"
#include "verify/golden_comparison.h"
#include "verify/goldens.h"

namespace trtmc {
namespace {

// The context that the longest sequence of the goldens needs: KV memory follows it.
int context_needed(const std::vector<Golden>& goldens) {
  size_t longest = 1;
  for (const Golden& golden : goldens) {
    for (const GoldenCase& of : golden.cases) {
      size_t continuation = 0;
      for (const auto* record : {&of.float32, &of.bfloat16}) {
        if (*record) continuation = std::max(continuation, (*record)->continuation.size());
      }
      longest = std::max(longest, of.prompt.size() + continuation);
    }
    if (golden.perplexity) {
      longest = std::max(longest, static_cast<size_t>(golden.perplexity->window));
    }
  }
  return static_cast<int>(longest);
}

void refuse_another_model(const Golden& golden, const DecoderSpec& spec) {
  if (golden.vocab_size == spec.vocab_size && golden.hidden_size == spec.hidden_size &&
      golden.num_layers == spec.num_layers()) {
    return;
  }
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("golden \"{}\" is of {} layers, hidden size {}, {} tokens, but the bundle "
                  "has {}, {} and {}",
                  golden.name, golden.num_layers, golden.hidden_size, golden.vocab_size,
                  spec.num_layers(), spec.hidden_size, spec.vocab_size));
}

std::vector<Golden> parse_all(const Json& goldens) {
  std::vector<Golden> out;
  if (const Json* list = goldens.find("goldens")) {
    for (const JsonCursor& golden : JsonCursor(*list, "goldens").elements()) {
      out.push_back(parse_golden(golden.json()));
    }
  } else {
    out.push_back(parse_golden(goldens));
  }
  return out;
}

GoldenThresholds thresholds_of(const Json& goldens) {
  if (const Json* thresholds = goldens.find("thresholds")) return parse_thresholds(*thresholds);
  throw Error(ErrorCode::kInvalidArgument, "the goldens come without thresholds",
              "give the E2E manifest that lists them, such as tests/e2e/smollm3/smollm3-tiny.json");
}

}  // namespace

bool VerifyReport::passed() const {
  return !checks.empty() &&
         std::all_of(checks.begin(), checks.end(), [](const Check& c) { return c.passed(); });
}

VerifyReport verify_hashes(const Bundle& bundle) {
  int damaged = 0;
  std::string first;
  for (size_t i = 0; i < bundle.sections().size(); ++i) {
    try {
      bundle.verify_section(i);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCorrupt) throw;
      if (++damaged == 1) first = fmt::format("first \"{}\"", bundle.sections()[i].name);
    }
  }
  if (damaged == 0) first = fmt::format("of {}", bundle.sections().size());
  return {{{"damaged sections", static_cast<double>(damaged), 0, true, first}}};
}

VerifyReport verify_goldens(const Bundle& bundle, std::string_view backend,
                            const ExecutorOptions& options, const Json& goldens) {
  const GoldenThresholds thresholds = thresholds_of(goldens);
  const std::vector<Golden> parsed = parse_all(goldens);
  for (const Golden& golden : parsed) refuse_another_model(golden, bundle.spec());

  if (options.kv_type != KvType::kF32 && options.kv_type != KvType::kBF16) {
    throw Error(ErrorCode::kUnsupported, "the goldens are of keys and values in f32 and bf16",
                fmt::format("leave out --kv-type {}; trtmc score --against shows what it changes",
                            kv_type_name(options.kv_type)));
  }

  const int context = context_needed(parsed);
  if (context > bundle.spec().context_length) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: a context of {} tokens, but the goldens have sequences of {}",
                            bundle.path().string(), bundle.spec().context_length, context),
                "build the bundle with the context that its config.json gives");
  }
  HiddenComparison hidden;
  ExecutorOptions ours = options;
  if (ours.context_length == 0) ours.context_length = context;
  ours.hidden_state_probe = [&](int layer, std::span<const float> states) {
    hidden.observe(layer, states);
    if (options.hidden_state_probe) options.hidden_state_probe(layer, states);
  };
  const auto executor = find_backend(backend, bundle.manifest()).load(bundle, ours);
  GoldenComparison comparison(thresholds, options.kv_type, hidden);
  for (const Golden& golden : parsed) comparison.compare(golden, *executor);
  return {comparison.checks()};
}

}  // namespace trtmc
