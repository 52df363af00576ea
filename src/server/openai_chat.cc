#include "server/openai_chat.h"

#include <memory>
#include <utility>

#include "api/question.h"
#include "server/chat_messages.h"
#include "server/chat_request.h"
#include "server/chat_writer.h"
#include "server/generation_task.h"

namespace trtmc {
namespace {

GenerationJob chat_job(std::shared_ptr<Exchange> exchange, std::shared_ptr<ServedModel> model,
                       ChatRequest request) {
  const LoadedModel& loaded = model->loaded;
  const std::string prompt =
      render_with_system_messages(loaded.chat_template(), std::move(request.input));
  Question question = chat_question(loaded, prompt, request.parse_tools);
  check_room(loaded, "messages", question.ids);
  GenerationJob job;
  job.model = model;
  job.parser = question.parser;
  job.requests.push_back(
      make_request(loaded.bundle().manifest(), request.sampling, std::move(question.ids)));
  if (!request.stream.stream) check_kept_logprobs(loaded, job.requests);
  job.writer =
      make_chat_writer(std::move(exchange), {.model = std::move(model),
                                             .parser = std::move(*question.parser),
                                             .num_choices = request.sampling.n,
                                             .logprobs = request.logprobs,
                                             .keep_special = request.sampling.keep_special,
                                             .parallel_tool_calls = request.parallel_tool_calls,
                                             .stream = request.stream});
  return job;
}

void chat(const ServerContext& context, const std::shared_ptr<Exchange>& exchange) {
  const Json json = parse_body(exchange->take_body());
  const JsonCursor request(json);
  auto model = requested_model(context.models, request);
  ChatRequest wish = read_chat_request(request, model->loaded.bundle().manifest());
  start_generation(context.pump, exchange, chat_job(exchange, std::move(model), std::move(wish)));
}

}  // namespace

void add_openai_chat(Router& router, const ServerContext& context) {
  router.add({"POST", "/v1/chat/completions",
              [context](const auto& exchange) { chat(context, exchange); }});
}

}  // namespace trtmc
