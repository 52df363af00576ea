#include "base/utf8.h"
#include "bundle/bundle.h"
#include "cli/commands.h"
#include "text/tokenizer.h"

namespace trtmc {
namespace {

// [{"id": 1, "piece": "Once", "bytes": [79, …]}, …]. `piece` shows U+FFFD for a part of a code
// point; `bytes` are exact.
Json pieces_json(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
  Json::Array array;
  for (const TokenId id : ids) {
    const std::string_view piece = tokenizer.token_bytes(id);
    Json::Array bytes;
    for (const char byte : piece) bytes.push_back(int{static_cast<unsigned char>(byte)});
    Json json;
    json.set("id", id);
    json.set("piece", replace_invalid_utf8(piece));
    json.set("bytes", std::move(bytes));
    array.push_back(std::move(json));
  }
  return array;
}

}  // namespace

void execute(const TokenizeCommand& command, Console& console) {
  console.configure_log(command.log);
  const Bundle bundle(command.bundle);
  const Tokenizer tokenizer(bundle.tokenizer_tables());
  const std::string text = read_text(command.file, "the text");
  const std::vector<TokenId> ids = tokenizer.encode(
      text, {.add_special = command.add_special, .match_added = !command.plain_text});
  console.print_json(command.pieces ? pieces_json(tokenizer, ids)
                                    : Json(Json::Array(ids.begin(), ids.end())));
}

void execute(const DetokenizeCommand& command, Console& console) {
  console.configure_log(command.log);
  const Bundle bundle(command.bundle);
  const Tokenizer tokenizer(bundle.tokenizer_tables());
  const Json json = read_json(command.file, "a JSON array of ids");
  std::vector<TokenId> ids;
  for (const JsonCursor& id : JsonCursor(json, "ids").elements()) {
    ids.push_back(static_cast<TokenId>(id.integer_in(0, tokenizer.num_ids() - 1)));
  }
  console.print(tokenizer.decode(ids, command.skip_special));
}

}  // namespace trtmc
