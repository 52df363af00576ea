#include "cli/route_report.h"

#include <fmt/format.h>

namespace trtmc {

RouteQuestion route_question(const Bundle& bundle, const RouteOptions& options) {
  RouteQuestion question;
  question.spec = bundle.spec();
  question.quantization = bundle.manifest().quantization;
  question.precision = options.precision.value_or(stored_precision(bundle));
  question.fp32_layers = options.fp32_layers;
  question.capacity = options.context_length;
  question.version = options.tensorrt;
  question.device_bytes = options.gpu_memory_bytes;
  return question;
}

Json to_json(const RouteDecision& decision) {
  Json::Array routes;
  for (const RouteVerdict& verdict : decision.verdicts) {
    Json::Array reasons;
    for (const RouteReason& reason : verdict.reasons) {
      Json json;
      json.set("subject", reason.subject);
      json.set("for", reason.in_favour);
      json.set("text", reason.text);
      reasons.push_back(std::move(json));
    }
    Json json;
    json.set("name", decoder_route_name(verdict.route));
    json.set("taken", decision.taken() == verdict.route);
    json.set("possible", verdict.possible());
    json.set("reasons", std::move(reasons));
    routes.push_back(std::move(json));
  }
  return routes;
}

std::string to_text(const RouteDecision& decision) {
  std::string text;
  for (const RouteVerdict& verdict : decision.verdicts) {
    const bool taken = decision.taken() == verdict.route;
    text += fmt::format("  {:<14} {}\n", decoder_route_name(verdict.route),
                        taken                ? "taken"
                        : verdict.possible() ? "possible"
                                             : "not possible");
    for (const RouteReason& reason : verdict.reasons) {
      text += fmt::format("    {:<12} {:<3} {}\n", reason.subject, reason.in_favour ? "yes" : "no",
                          reason.text);
    }
  }
  return text;
}

}  // namespace trtmc
