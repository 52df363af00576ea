#include "server/openai_completions.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "server/completion_request.h"
#include "server/completion_writer.h"
#include "server/generation_task.h"

namespace trtmc {
namespace {

GenerationJob completion_job(std::shared_ptr<Exchange> exchange, std::shared_ptr<ServedModel> model,
                             CompletionRequest request) {
  const LoadedModel& loaded = model->loaded;
  GenerationJob job;
  job.model = model;
  for (const CompletionPrompt& prompt : request.prompts) {
    check_room(loaded, prompt.field, prompt.ids);
    job.requests.push_back(make_request(loaded.bundle().manifest(), request.sampling, prompt.ids));
    job.requests.back().echo_logprobs = request.echo && request.logprobs;
  }
  if (!request.stream.stream) check_kept_logprobs(loaded, job.requests);
  job.writer =
      make_completion_writer(std::move(exchange), {.model = std::move(model),
                                                   .prompts = std::move(request.prompts),
                                                   .n = request.sampling.n,
                                                   .echo = request.echo,
                                                   .is_empty = request.is_empty,
                                                   .logprobs = request.logprobs.has_value(),
                                                   .keep_special = request.sampling.keep_special,
                                                   .stream = request.stream});
  return job;
}

void complete(const ServerContext& context, const std::shared_ptr<Exchange>& exchange) {
  const Json json = parse_body(exchange->take_body());
  const JsonCursor request(json);
  auto model = requested_model(context.models, request);
  CompletionRequest wish = read_completion_request(request, model->loaded.engine_model());
  // Trying again later would not help.
  if (const int most = model->engine_options.max_queued;
      wish.prompts.size() > static_cast<size_t>(most)) {
    request.at("prompt").fail(
        fmt::format("{} prompts, but only {} requests may wait here", wish.prompts.size(), most));
  }
  start_generation(context.pump, exchange,
                   completion_job(exchange, std::move(model), std::move(wish)));
}

}  // namespace

void add_openai_completions(Router& router, const ServerContext& context) {
  router.add({"POST", "/v1/completions",
              [context](const auto& exchange) { complete(context, exchange); }});
}

}  // namespace trtmc
