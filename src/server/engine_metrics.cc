#include "server/engine_metrics.h"

#include <prometheus/client_metric.h>

#include <string>
#include <utility>

namespace trtmc {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// A model at one moment.
struct Observed {
  std::string name;
  bool healthy;
  MemoryUse memory;
  EngineStats stats;
};

struct Figure {
  const char* name;
  const char* help;
  MetricType type;
  double (*value)(const Observed& model);
};

double real(auto value) { return static_cast<double>(value); }

constexpr auto kGauge = MetricType::Gauge;
constexpr auto kCounter = MetricType::Counter;

const Figure kFigures[] = {
    {"trtmc_engine_healthy", "1, or 0 once the engine has lost its device", kGauge,
     [](const Observed& m) { return m.healthy ? 1.0 : 0.0; }},
    {"trtmc_requests_queued", "Requests of which nothing has been computed yet", kGauge,
     [](const Observed& m) { return real(m.stats.queued_requests); }},
    {"trtmc_sequences_running", "Answers that are being computed", kGauge,
     [](const Observed& m) { return real(m.stats.running_sequences); }},
    {"trtmc_kv_blocks", "KV blocks there are", kGauge,
     [](const Observed& m) { return real(m.stats.kv_blocks); }},
    {"trtmc_kv_blocks_used", "KV blocks that answers hold", kGauge,
     [](const Observed& m) { return real(m.stats.kv_blocks_used); }},
    {"trtmc_kv_blocks_cached", "KV blocks that the prefix cache alone holds", kGauge,
     [](const Observed& m) { return real(m.stats.kv_blocks_cached); }},
    {"trtmc_kv_block_tokens", "Tokens a KV block has room for", kGauge,
     [](const Observed& m) { return real(m.stats.block_size); }},
    {"trtmc_kv_memory_bytes", "Memory that the KV blocks may take", kGauge,
     [](const Observed& m) { return real(m.memory.kv_budget_bytes); }},
    {"trtmc_weight_memory_bytes", "Weights, mapped or copied", kGauge,
     [](const Observed& m) { return real(m.memory.weight_bytes); }},
    {"trtmc_steps_total", "Steps of the engine", kCounter,
     [](const Observed& m) { return real(m.stats.steps); }},
    {"trtmc_failed_steps_total", "Steps that failed", kCounter,
     [](const Observed& m) { return real(m.stats.failed_steps); }},
    {"trtmc_computed_tokens_total", "Tokens computed: of prompts, answers and drafts", kCounter,
     [](const Observed& m) { return real(m.stats.computed_tokens); }},
    {"trtmc_prompt_tokens_total", "Tokens of the prompts that have been read", kCounter,
     [](const Observed& m) { return real(m.stats.prompt_tokens); }},
    {"trtmc_cached_prompt_tokens_total", "Of the prompts' tokens, those the prefix cache knew",
     kCounter, [](const Observed& m) { return real(m.stats.cached_tokens); }},
    {"trtmc_generated_tokens_total", "Tokens of answers", kCounter,
     [](const Observed& m) { return real(m.stats.generated_tokens); }},
    {"trtmc_preemptions_total", "Times an answer gave up its KV blocks to be computed anew",
     kCounter, [](const Observed& m) { return real(m.stats.preemptions); }},
    {"trtmc_draft_tokens_total", "Tokens that were guessed and computed", kCounter,
     [](const Observed& m) { return real(m.stats.proposed_drafts); }},
    {"trtmc_accepted_draft_tokens_total", "Of the guessed tokens, the right ones", kCounter,
     [](const Observed& m) { return real(m.stats.accepted_drafts); }},
};

// What routers in front of several servers read (docs/decisions/0018-metrics-have-our-names.md).
const Figure kRouterFigures[] = {
    {"vllm:num_requests_waiting", "trtmc_requests_queued, by the name that routers know", kGauge,
     [](const Observed& m) { return real(m.stats.queued_requests); }},
    {"vllm:num_requests_running", "trtmc_sequences_running, by the name that routers know", kGauge,
     [](const Observed& m) { return real(m.stats.running_sequences); }},
    {"vllm:kv_cache_usage_perc", "Share of the KV blocks that answers hold, from 0 to 1", kGauge,
     [](const Observed& m) {
       return m.stats.kv_blocks == 0 ? 0.0 : real(m.stats.kv_blocks_used) / real(m.stats.kv_blocks);
     }},
};

ClientMetric metric_of(const Figure& figure, const char* label, const Observed& model) {
  ClientMetric metric;
  metric.label = {{label, model.name}};
  (figure.type == kCounter ? metric.counter.value : metric.gauge.value) = figure.value(model);
  return metric;
}

MetricFamily family_of(const Figure& figure, const char* label,
                       const std::vector<Observed>& models) {
  MetricFamily family{figure.name, figure.help, figure.type, {}};
  for (const Observed& model : models) family.metric.push_back(metric_of(figure, label, model));
  return family;
}

MetricFamily batch_sizes(const std::vector<Observed>& models) {
  MetricFamily family{"trtmc_step_sequences",
                      "Answers and prompts that a step worked on",
                      MetricType::Histogram,
                      {}};
  for (const Observed& model : models) {
    const EngineStats& stats = model.stats;
    ClientMetric metric;
    metric.label = {{"model", model.name}};
    metric.histogram.sample_count = static_cast<uint64_t>(stats.steps);
    metric.histogram.sample_sum = real(stats.step_sequences);
    uint64_t sum = 0;
    for (size_t i = 0; i + 1 < stats.steps_by_batch_size.size(); ++i) {
      sum += static_cast<uint64_t>(stats.steps_by_batch_size[i]);
      metric.histogram.bucket.push_back({sum, real(uint64_t{1} << i)});
    }
    family.metric.push_back(std::move(metric));
  }
  return family;
}

// Its value is in its labels.
MetricFamily cache_config(const std::vector<Observed>& models) {
  MetricFamily family{
      "vllm:cache_config_info", "Tokens a KV block and blocks, as labels", kGauge, {}};
  for (const Observed& model : models) {
    ClientMetric metric;
    metric.label = {{"block_size", std::to_string(model.stats.block_size)},
                    {"model_name", model.name},
                    {"num_gpu_blocks", std::to_string(model.stats.kv_blocks)}};
    metric.gauge.value = 1;
    family.metric.push_back(std::move(metric));
  }
  return family;
}

}  // namespace

void append_engine_metrics(const ModelCatalogue& models, std::vector<MetricFamily>& families) {
  std::vector<Observed> observed;
  for (const auto& model : models.all()) {
    observed.push_back(
        {model->name, model->engine.healthy(), model->memory, model->engine.stats()});
  }
  if (observed.empty()) return;
  for (const Figure& figure : kFigures) families.push_back(family_of(figure, "model", observed));
  families.push_back(batch_sizes(observed));
  for (const Figure& figure : kRouterFigures) {
    families.push_back(family_of(figure, "model_name", observed));
  }
  families.push_back(cache_config(observed));
}

}  // namespace trtmc
