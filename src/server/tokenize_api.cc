#include "server/tokenize_api.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "server/chat_messages.h"
#include "server/chat_request.h"
#include "server/request_fields.h"
#include "text/tokenizer.h"

namespace trtmc {
namespace {

// The prompt of the conversation in `body`, as a chat would have it.
std::string conversation_prompt(const LoadedModel& model, const JsonCursor& body) {
  return render_with_system_messages(model.chat_template(),
                                     read_chat_input(body, model.bundle().manifest()));
}

Json texts_of(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  Json::Array texts;
  for (const TokenId id : ids) texts.emplace_back(replace_invalid_utf8(tokenizer.token_bytes(id)));
  return texts;
}

Json tokens_json(const ServedModel& model, const std::vector<TokenId>& ids) {
  Json json;
  json.set("count", static_cast<int64_t>(ids.size()));
  json.set("max_model_len", model.loaded.context_length());
  json.set("tokens", Json::Array(ids.begin(), ids.end()));
  return json;
}

// A body has a text or a conversation, and not both.
bool is_conversation(const JsonCursor& body) {
  const bool has_prompt = body.find_set("prompt").has_value();
  const auto messages = body.find_set("messages");
  if (has_prompt && messages) messages->fail("stands beside prompt, expected one of the two");
  if (!messages) required(body, "prompt");
  return messages.has_value();
}

void tokenize(const ModelCatalogue& models, Exchange& exchange) {
  const Json json = parse_body(exchange.take_body());
  const JsonCursor body(json);
  const auto model = requested_model(models, body);
  const bool from_conversation = is_conversation(body);
  const bool add_special = optional_flag(body, "add_special_tokens", !from_conversation);
  const bool wants_texts = optional_flag(body, "return_token_strs", false);
  const Tokenizer& tokenizer = model->loaded.tokenizer();
  const auto ids = tokenizer.encode(
      from_conversation ? conversation_prompt(model->loaded, body) : body.at("prompt").string(),
      {.add_special = add_special});
  Json answer = tokens_json(*model, ids);
  if (wants_texts) answer.set("token_strs", texts_of(tokenizer, ids));
  exchange.respond(json_response(200, answer));
}

void render(const ModelCatalogue& models, Exchange& exchange) {
  const Json json = parse_body(exchange.take_body());
  const JsonCursor body(json);
  const auto model = requested_model(models, body);
  const bool add_special = optional_flag(body, "add_special_tokens", false);
  std::string prompt = conversation_prompt(model->loaded, body);
  Json answer =
      tokens_json(*model, model->loaded.tokenizer().encode(prompt, {.add_special = add_special}));
  answer.set("prompt", std::move(prompt));
  exchange.respond(json_response(200, answer));
}

void detokenize(const ModelCatalogue& models, Exchange& exchange) {
  const Json json = parse_body(exchange.take_body());
  const JsonCursor body(json);
  const auto model = requested_model(models, body);
  const Tokenizer& tokenizer = model->loaded.tokenizer();
  const bool skip_special = optional_flag(body, "skip_special_tokens", false);
  Json answer;
  answer.set("prompt", tokenizer.decode(read_ids(required(body, "tokens"), tokenizer.num_ids()),
                                        skip_special));
  exchange.respond(json_response(200, answer));
}

}  // namespace

void add_tokenize_api(Router& router, const ServerContext& context) {
  const ModelCatalogue& models = context.models;
  router.add({"POST", "/tokenize", [&models](const auto& x) { tokenize(models, *x); }});
  router.add({"POST", "/detokenize", [&models](const auto& x) { detokenize(models, *x); }});
  router.add({"POST", "/render", [&models](const auto& x) { render(models, *x); }});
}

}  // namespace trtmc
