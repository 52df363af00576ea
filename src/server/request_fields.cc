#include "server/request_fields.h"

#include <fmt/format.h>

#include "base/error.h"

namespace trtmc {
namespace {

constexpr int kMaxBodyDepth = 128;  // Of arrays and objects in each other.

constexpr UnsupportedField kUnsupportedStreamOptions[] = {{"continuous_usage_stats", "false"}};

// 1 and 1.0 are one number in JSON.
bool same_value(const Json& a, const Json& b) {
  const auto number = [](const Json& json) -> std::optional<double> {
    if (json.integer() != nullptr) return static_cast<double>(*json.integer());
    if (json.real() != nullptr) return *json.real();
    return std::nullopt;
  };
  const auto x = number(a), y = number(b);
  return x && y ? *x == *y : a == b;
}

}  // namespace

Json parse_body(std::string_view body) {
  Json json = with_context("request body", [&] {
    // A filter in front may have read the first of two equal keys.
    return Json::parse(body, kMaxBodyDepth, Json::EqualKeys::kRefuse);
  });
  if (json.object()) return json;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("request body: {}, expected an object", json.kind_name()));
}

std::shared_ptr<ServedModel> requested_model(const ModelCatalogue& models,
                                             const JsonCursor& request) {
  return models.find(optional_text(request, "model").value_or(""));
}

JsonCursor required(const JsonCursor& request, std::string_view field) {
  const auto value = request.find_set(field);
  if (value) return *value;
  throw FieldError::missing(request.path(), field);
}

bool optional_flag(const JsonCursor& request, std::string_view field, bool otherwise) {
  const auto value = request.find_set(field);
  return value ? value->boolean() : otherwise;
}

std::optional<int> optional_int(const JsonCursor& request, std::string_view field, int low,
                                int high) {
  const auto value = request.find_set(field);
  if (!value) return std::nullopt;
  return static_cast<int>(value->integer_in(low, high));
}

std::optional<std::string> optional_text(const JsonCursor& request, std::string_view field) {
  const auto value = request.find_set(field);
  if (!value) return std::nullopt;
  return value->string();
}

std::vector<TokenId> read_ids(const JsonCursor& tokens, int num_ids) {
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

void refuse_unsupported(const JsonCursor& request, std::span<const UnsupportedField> fields) {
  for (const auto& [name, harmless] : fields) {
    const auto field = request.find_set(name);
    if (!field) continue;
    if (harmless.empty()) field->fail("not supported", ErrorCode::kUnsupported);
    if (same_value(field->json(), Json::parse(harmless))) continue;
    field->fail(fmt::format("not supported, except {}", harmless), ErrorCode::kUnsupported);
  }
}

StreamFields read_stream_fields(const JsonCursor& request) {
  StreamFields fields{.stream = optional_flag(request, "stream")};
  const auto options = request.find_set("stream_options");
  if (!options) return fields;
  fields.include_usage = optional_flag(*options, "include_usage");
  refuse_unsupported(*options, kUnsupportedStreamOptions);
  if (!fields.stream) options->fail("given without \"stream\": true");
  return fields;
}

}  // namespace trtmc
