// The head of a bundle file, byte by byte: what docs/bundle_format.md says, as code. Private to
// this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "bundle/bundle.h"

namespace trtmc {

inline constexpr uint64_t kSectionAlignment = 4096;
inline constexpr uint64_t kMaxManifestBytes = uint64_t{1} << 20;
inline constexpr size_t kMaxSections = 65536;
inline constexpr size_t kMaxSectionName = 63;
inline constexpr int64_t kMaxDimension = int64_t{1} << 30;
inline constexpr uint64_t kMaxTextBytes = uint64_t{16} << 20;

struct BundleHeader {
  Manifest manifest;
  std::vector<Section> sections;
  Sha256Digest identity;
};

// Throws kCorrupt unless the sections are those of a decoder of the manifest's spec and
// quantization, in their order: name, kind, type, layout, shape and size of each.
void check_sections(const Manifest& manifest, std::span<const Section> sections);

// The size of a tensor's section. Throws kCorrupt if its shape is out of bounds.
uint64_t tensor_section_bytes(const Section& section);

// Gives each section its offset behind a manifest of `manifest_bytes`; returns the file's size.
// Throws kInvalidArgument if the header would be over its limits.
uint64_t place_sections(uint64_t manifest_bytes, std::span<Section> sections);

// Everything in front of the first section, with its hash.
std::vector<std::byte> encode_header(std::string_view manifest_json,
                                     std::span<const Section> sections, uint64_t file_bytes);

// Checks and reads the header at the start of `file`. What it returns is within the file's bounds.
BundleHeader decode_header(std::span<const std::byte> file);

// Throws kCorrupt unless section `index` has its hash and the bytes up to the next one are zero.
void verify_section(std::span<const std::byte> file, std::span<const Section> sections,
                    size_t index);

}  // namespace trtmc
