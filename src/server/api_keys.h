// The keys that let requests in.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "server/http_message.h"

namespace trtmc {

class ApiKeys {
 public:
  ApiKeys() = default;  // None: every request may pass.

  // A file with a key a line; empty lines and those that begin with "#" are none. Throws kNotFound,
  // kInvalidArgument for a file without a key, or with one that a header can't carry, naming its
  // line. Warns of a file that others may read.
  explicit ApiKeys(const std::filesystem::path& file);

  // Whether the request has one of them, as "Authorization: Bearer KEY" or, without that scheme, as
  // "x-api-key: KEY". How long that takes tells nothing of the keys.
  bool let_in(const HttpRequest& request) const;

 private:
  bool has(std::string_view key) const;

  std::vector<Sha256Digest> digests_;
};

}  // namespace trtmc
