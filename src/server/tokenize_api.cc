#include "server/tokenize_api.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/question.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "text/tokenizer.h"

namespace trtmc {
namespace {

bool flag(const JsonCursor& body, std::string_view key, bool otherwise) {
  const auto value = body.find_set(key);
  return value ? value->boolean() : otherwise;
}

JsonCursor required(const JsonCursor& body, const char* key) {
  if (const auto value = body.find_set(key)) return *value;
  throw FieldError(ErrorCode::kInvalidArgument, key, "missing");
}

std::shared_ptr<ServedModel> model_for(const ModelCatalogue& models, const JsonCursor& body) {
  const auto name = body.find_set("model");
  return models.find(name ? std::string_view(name->string()) : std::string_view());
}

// The prompt of the conversation in `body`.
std::string conversation_prompt(const ServedModel& model, const JsonCursor& body) {
  if (flag(body, "continue_final_message", false)) {
    body.at("continue_final_message").fail("is not supported", ErrorCode::kUnsupported);
  }
  Json conversation;
  for (const char* key : {"messages", "tools", "add_generation_prompt", "chat_template_kwargs"}) {
    if (const auto value = body.find_set(key)) conversation.set(key, value->json());
  }
  return render_prompt(model.loaded.chat_template(),
                       chat_input_from_json(conversation, local_time_now()));
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
  const Json json = Json::parse(exchange.request().body);
  const JsonCursor body(json);
  const auto model = model_for(models, body);
  const bool from_conversation = is_conversation(body);
  const bool add_special = flag(body, "add_special_tokens", !from_conversation);
  const bool wants_texts = flag(body, "return_token_strs", false);
  const Tokenizer& tokenizer = model->loaded.tokenizer();
  const auto ids = tokenizer.encode(
      from_conversation ? conversation_prompt(*model, body) : body.at("prompt").string(),
      {.add_special = add_special});
  Json answer = tokens_json(*model, ids);
  if (wants_texts) answer.set("token_strs", texts_of(tokenizer, ids));
  exchange.respond(json_response(200, answer));
}

void render(const ModelCatalogue& models, Exchange& exchange) {
  const Json json = Json::parse(exchange.request().body);
  const JsonCursor body(json);
  const auto model = model_for(models, body);
  required(body, "messages");
  const bool add_special = flag(body, "add_special_tokens", false);
  std::string prompt = conversation_prompt(*model, body);
  Json answer =
      tokens_json(*model, model->loaded.tokenizer().encode(prompt, {.add_special = add_special}));
  answer.set("prompt", std::move(prompt));
  exchange.respond(json_response(200, answer));
}

// Without a cursor for each element, of which there may be millions.
std::vector<TokenId> ids_of(const JsonCursor& tokens, int num_ids) {
  const Json::Array* const array = tokens.json().array();
  if (array == nullptr) tokens.elements();  // Says what it is.
  std::vector<TokenId> ids;
  ids.reserve(array->size());
  for (const Json& element : *array) {
    const auto path = [&] { return fmt::format("{}[{}]", tokens.path(), ids.size()); };
    const int64_t* const id = element.integer();
    ids.push_back(
        static_cast<TokenId>(id != nullptr && *id >= 0 && *id < num_ids
                                 ? *id
                                 : JsonCursor(element, path()).integer_in(0, num_ids - 1)));
  }
  return ids;
}

void detokenize(const ModelCatalogue& models, Exchange& exchange) {
  const Json json = Json::parse(exchange.request().body);
  const JsonCursor body(json);
  const auto model = model_for(models, body);
  const Tokenizer& tokenizer = model->loaded.tokenizer();
  const bool skip_special = flag(body, "skip_special_tokens", false);
  Json answer;
  answer.set("prompt",
             tokenizer.decode(ids_of(required(body, "tokens"), tokenizer.num_ids()), skip_special));
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
