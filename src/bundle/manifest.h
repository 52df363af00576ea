// The JSON at the head of a bundle: what the model is and where it came from. docs/bundle_format.md
// is normative. Strict both ways: an unknown key is refused, a missing one too.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/token.h"
#include "model/decoder_spec.h"
#include "model/sampling.h"
#include "text/output_markers.h"

namespace trtmc {

struct FileHash {
  std::string name;  // Relative to the checkpoint.
  uint64_t bytes;
  std::string sha256;  // Hexadecimal.
  bool operator==(const FileHash&) const = default;
};

struct Manifest {
  std::string family;           // "smollm3"
  std::string strategy;         // "smollm3_decoder_kv_cache"
  std::string source;           // Hub id, or the name of the checkpoint's folder.
  std::string source_revision;  // A commit, or empty if unknown.
  std::string producer;         // "trtmc 0.1.0"
  std::string licence;          // As the model's card says, or empty.
  std::vector<FileHash> source_files;
  std::string unicode_version;  // Of the tokenizer's character classes.
  DecoderSpec spec;
  std::string quantization;  // One of quant_schemes().
  std::vector<TokenId> stop_ids;
  SamplingParams default_sampling;
  OutputMarkers markers;
  std::map<std::string, std::string> special_tokens;  // By the name that the chat template uses.

  bool operator==(const Manifest&) const = default;
};

// Throws kInvalidArgument naming the key that makes no sense, kUnsupported for a quantization that
// this version does not know. Besides the spec and the sampling parameters: names are there, hashes
// are hashes, stop ids are sorted ids of the vocabulary, markers come in pairs, the sampling
// defaults have neither seed nor bias (those belong to a request).
void validate(const Manifest& manifest);

Json to_json(const Manifest& manifest);
// Throws kCorrupt naming the key, kUnsupported as validate().
Manifest manifest_from_json(const Json& json);

// The spec alone, as it stands under "spec": also what `inspect --json` prints.
Json to_json(const DecoderSpec& spec);

}  // namespace trtmc
