// What the dialects of OpenAI's API share when they read a request. Fields that are null count as
// left out; every complaint is a FieldError.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/token.h"
#include "server/model_catalogue.h"

namespace trtmc {

// A request's body, which must be an object. Throws kInvalidArgument.
Json parse_body(std::string_view body);

// The model that `request` names in "model". Throws as ModelCatalogue::find.
std::shared_ptr<ServedModel> requested_model(const ModelCatalogue& models,
                                             const JsonCursor& request);

JsonCursor required(const JsonCursor& request, std::string_view field);
bool optional_flag(const JsonCursor& request, std::string_view field, bool otherwise = false);
std::optional<int> optional_int(const JsonCursor& request, std::string_view field, int low,
                                int high);
std::optional<std::string> optional_text(const JsonCursor& request, std::string_view field);

// An array of token ids, each less than `num_ids`. Without a cursor for each, of which there may be
// millions.
std::vector<TokenId> read_ids(const JsonCursor& tokens, int num_ids);

// A field whose meaning the server does not have. Ignoring it would give another answer than the
// one asked for, unless its value is `harmless`, which is JSON; empty: no value is.
struct UnsupportedField {
  std::string_view name;
  std::string_view harmless{};
};

// Throws kUnsupported naming the first of `fields` that is there with another value.
void refuse_unsupported(const JsonCursor& request, std::span<const UnsupportedField> fields);

// How the answer is to be sent.
struct StreamFields {
  bool stream = false;
  bool include_usage = false;  // A last piece of the stream says what was used.
};

// "stream" and "stream_options".
StreamFields read_stream_fields(const JsonCursor& request);

}  // namespace trtmc
