#include "bundle/bundle_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "bundle/quant_scheme.h"

namespace trtmc {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");
static_assert(sizeof(size_t) == sizeof(uint64_t), "a bundle is mapped whole, whatever its size");

// As PNG's: not text, and damaged by whatever translates line ends.
constexpr std::array<unsigned char, 8> kMagic{0x89, 'T', 'R', 'T', 'M', 'C', '\r', '\n'};

struct FileHead {
  std::array<unsigned char, 8> magic;
  uint32_t version;
  uint32_t num_sections;
  uint64_t manifest_bytes;
  uint64_t file_bytes;
  Sha256Digest sha256;  // Of the header without this field.
};
static_assert(sizeof(FileHead) == 64);
constexpr size_t kHashedHeadBytes = offsetof(FileHead, sha256);

struct TableEntry {
  std::array<char, kMaxSectionName + 1> name;
  uint32_t kind, dtype, layout, rank;
  std::array<uint64_t, 2> shape;
  uint64_t offset, bytes;
  Sha256Digest sha256;
};
static_assert(sizeof(TableEntry) == 144);

[[noreturn]] void corrupt(const std::string& what) { throw Error(ErrorCode::kCorrupt, what); }

uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

uint64_t table_offset(uint64_t manifest_bytes) {
  return sizeof(FileHead) + align_up(manifest_bytes, 8);
}

// Where the first section starts. Both counts are within their limits.
uint64_t header_bytes(uint64_t manifest_bytes, uint64_t num_sections) {
  return align_up(table_offset(manifest_bytes) + num_sections * sizeof(TableEntry),
                  kSectionAlignment);
}

std::string over_limit(uint64_t manifest_bytes, uint64_t num_sections) {
  return fmt::format("a manifest of {} bytes and {} sections, the limits are {} and {}",
                     manifest_bytes, num_sections, kMaxManifestBytes, kMaxSections);
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

Sha256Digest hash_header(std::span<const std::byte> header) {
  Sha256 hash;
  hash.update(header.first(kHashedHeadBytes));
  hash.update(header.subspan(sizeof(FileHead)));
  return hash.finish();
}

TableEntry to_entry(const Section& section) {
  TableEntry entry{};
  std::copy(section.name.begin(), section.name.end(), entry.name.begin());
  entry.kind = static_cast<uint32_t>(section.kind);
  entry.dtype = static_cast<uint32_t>(section.dtype);
  entry.layout = static_cast<uint32_t>(section.layout);
  entry.rank = static_cast<uint32_t>(section.shape.size());
  std::copy(section.shape.begin(), section.shape.end(), entry.shape.begin());
  entry.offset = section.offset;
  entry.bytes = section.bytes;
  entry.sha256 = section.sha256;
  return entry;
}

Section to_section(const TableEntry& entry, size_t index) {
  const auto end = std::find(entry.name.begin(), entry.name.end(), '\0');
  Section section{.name = std::string(entry.name.begin(), end),
                  .kind = static_cast<SectionKind>(entry.kind),
                  .dtype = static_cast<DType>(entry.dtype),
                  .layout = static_cast<TensorLayout>(entry.layout),
                  .shape = {},
                  .offset = entry.offset,
                  .bytes = entry.bytes,
                  .sha256 = entry.sha256};
  if (!std::all_of(end, entry.name.end(), [](char c) { return c == '\0'; }) ||
      end == entry.name.end() || entry.rank > entry.shape.size()) {
    corrupt(fmt::format("section {}: its entry in the table is malformed", index));
  }
  for (size_t i = 0; i < entry.shape.size(); ++i) {
    const uint64_t extent = entry.shape[i];
    if (i >= entry.rank ? extent != 0 : extent == 0 || extent > uint64_t{kMaxDimension}) {
      corrupt(fmt::format("section {}: dimension {} is {}", index, i, extent));
    }
    if (i < entry.rank) section.shape.push_back(static_cast<int64_t>(extent));
  }
  return section;
}

FileHead read_head(std::span<const std::byte> file) {
  FileHead head{};
  if (!file.empty()) std::memcpy(&head, file.data(), std::min(file.size(), sizeof(FileHead)));
  if (head.magic != kMagic) {
    throw Error(ErrorCode::kCorrupt, "not a trtmc bundle: it does not start like one",
                "`trtmc build` makes a bundle from a checkpoint");
  }
  if (file.size() < sizeof(FileHead)) {
    corrupt(fmt::format("{} bytes, cut off within its header", file.size()));
  }
  if (head.version > kBundleVersion) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("bundle format version {}, this trtmc reads up to version {}",
                            head.version, kBundleVersion),
                "use a newer trtmc, or build the bundle again with this one");
  }
  if (head.version == 0) corrupt("bundle format version 0, expected 1");
  if (head.file_bytes != file.size()) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{} bytes, its header says {}", file.size(), head.file_bytes),
                "the file may have been copied or downloaded in part");
  }
  if (head.num_sections > kMaxSections || head.manifest_bytes > kMaxManifestBytes) {
    corrupt(over_limit(head.manifest_bytes, head.num_sections));
  }
  if (header_bytes(head.manifest_bytes, head.num_sections) > file.size()) {
    corrupt("the header goes past the end of the file");
  }
  return head;
}

// Each section starts at the first aligned byte behind the one before it, the last ends the file.
void check_places(std::span<const Section> sections, uint64_t start, uint64_t file_bytes) {
  uint64_t end = start;
  for (const Section& section : sections) {
    const uint64_t expected = align_up(end, kSectionAlignment);
    if (section.offset != expected) {
      corrupt(fmt::format("section \"{}\" starts at {}, expected {}", section.name, section.offset,
                          expected));
    }
    if (section.offset > file_bytes || section.bytes > file_bytes - section.offset) {
      corrupt(fmt::format("section \"{}\" of {} bytes at {} goes past the end of the file, {}",
                          section.name, section.bytes, section.offset, file_bytes));
    }
    end = section.offset + section.bytes;
  }
  if (end != file_bytes) {
    corrupt(fmt::format("the last section ends at {}, the file at {}", end, file_bytes));
  }
}

// Whether a tensor of this role may have this type: what the scheme says, or what a checkpoint can
// have had.
bool may_have(const Manifest& manifest, Role role, DType dtype) {
  if (is_norm(role)) return dtype == DType::kF32;
  const std::optional<DType> quantized = quantized_type(manifest.quantization, role);
  return quantized ? dtype == *quantized : dtype <= DType::kBF16;
}

void check_tensor(const Manifest& manifest, const TensorKey& key, const Section& section) {
  const Shape shape = tensor_shape(manifest.spec, key);
  const bool norm = is_norm(key.role);
  if (section.kind != SectionKind::kTensor || section.shape != shape) {
    corrupt(fmt::format("section \"{}\" has shape {}, the model needs {}", section.name,
                        to_string(section.shape), to_string(shape)));
  }
  if (!may_have(manifest, key.role, section.dtype) ||
      section.layout != (norm ? TensorLayout::kPlain : TensorLayout::kPanels16)) {
    corrupt(fmt::format(
        "section \"{}\" has type {} and layout {}, which such a tensor can't have where the "
        "quantization is \"{}\"",
        section.name, static_cast<uint32_t>(section.dtype), static_cast<uint32_t>(section.layout),
        manifest.quantization));
  }
  const uint64_t bytes = tensor_section_bytes(section);
  if (section.bytes != bytes) {
    corrupt(fmt::format("section \"{}\" has {} bytes, {} of {} needs {}", section.name,
                        section.bytes, to_string(shape), dtype_name(section.dtype), bytes));
  }
}

void check_asset(const Section& section, SectionKind kind, uint64_t max_bytes) {
  if (section.kind != kind || section.dtype != DType{} || section.layout != TensorLayout{} ||
      !section.shape.empty() || section.bytes == 0 || section.bytes > max_bytes) {
    corrupt(fmt::format("section \"{}\" of {} bytes is not what its name says", section.name,
                        section.bytes));
  }
}

}  // namespace

uint64_t tensor_section_bytes(const Section& section) {
  for (const int64_t extent : section.shape) {
    if (extent < 1 || extent > kMaxDimension) {
      corrupt(fmt::format("section \"{}\" has shape {}, no dimension may be over {}", section.name,
                          to_string(section.shape), kMaxDimension));
    }
  }
  const bool plain = section.layout == TensorLayout::kPlain;
  if (section.shape.size() != (plain ? 1 : 2)) {
    corrupt(
        fmt::format("section \"{}\" has shape {}, expected a vector in plain layout or a matrix "
                    "in panels",
                    section.name, to_string(section.shape)));
  }
  if (plain) {
    return static_cast<uint64_t>(num_elements(section.shape)) * element_bytes(section.dtype);
  }
  return PackedLayout{section.dtype, section.shape[0], section.shape[1]}.total_bytes();
}

void check_sections(const Manifest& manifest, std::span<const Section> sections) {
  const DecoderSpec& spec = manifest.spec;
  size_t next = 0;
  if (spec.layers.size() > sections.size()) {
    corrupt(fmt::format("{} layers in {} sections", spec.layers.size(), sections.size()));
  }
  for (const TensorKey& key : tensor_keys(spec)) {
    const std::string name = to_string(key);
    if (next == sections.size() || sections[next].name != name) {
      corrupt(fmt::format(
          "section {} is {}, expected \"{}\"", next,
          next == sections.size() ? "missing" : fmt::format("\"{}\"", sections[next].name), name));
    }
    check_tensor(manifest, key, sections[next++]);
  }
  if (next < sections.size() && sections[next].name == kTokenizerSection) {
    check_asset(sections[next++], SectionKind::kTokenizer, UINT64_MAX);
  }
  if (next < sections.size() && sections[next].name == kChatTemplateSection) {
    check_asset(sections[next++], SectionKind::kText, kMaxTextBytes);
  }
  if (next < sections.size()) {
    corrupt(fmt::format("section {} is \"{}\", which is unknown or out of order", next,
                        sections[next].name));
  }
}

uint64_t place_sections(uint64_t manifest_bytes, std::span<Section> sections) {
  if (sections.size() > kMaxSections || manifest_bytes > kMaxManifestBytes) {
    throw Error(ErrorCode::kInvalidArgument, over_limit(manifest_bytes, sections.size()));
  }
  uint64_t end = header_bytes(manifest_bytes, sections.size());
  for (Section& section : sections) {
    section.offset = align_up(end, kSectionAlignment);
    end = section.offset + section.bytes;
  }
  return end;
}

std::vector<std::byte> encode_header(std::string_view manifest_json,
                                     std::span<const Section> sections, uint64_t file_bytes) {
  FileHead head{.magic = kMagic,
                .version = kBundleVersion,
                .num_sections = static_cast<uint32_t>(sections.size()),
                .manifest_bytes = manifest_json.size(),
                .file_bytes = file_bytes,
                .sha256 = {}};
  std::vector<std::byte> header(header_bytes(manifest_json.size(), sections.size()));
  std::memcpy(header.data() + sizeof head, manifest_json.data(), manifest_json.size());
  std::byte* table = header.data() + table_offset(manifest_json.size());
  for (size_t i = 0; i < sections.size(); ++i) {
    const TableEntry entry = to_entry(sections[i]);
    std::memcpy(table + i * sizeof entry, &entry, sizeof entry);
  }
  std::memcpy(header.data(), &head, sizeof head);
  head.sha256 = hash_header(header);
  std::memcpy(header.data(), &head, sizeof head);
  return header;
}

BundleHeader decode_header(std::span<const std::byte> file) {
  const FileHead head = read_head(file);
  const auto header = file.first(header_bytes(head.manifest_bytes, head.num_sections));
  if (hash_header(header) != head.sha256) {
    corrupt("its header is damaged: the hash of the header differs from the recorded one");
  }
  const uint64_t table = table_offset(head.manifest_bytes);
  const uint64_t table_end = table + uint64_t{head.num_sections} * sizeof(TableEntry);
  const uint64_t manifest_end = sizeof(FileHead) + head.manifest_bytes;
  if (!all_zero(header.subspan(manifest_end, table - manifest_end)) ||
      !all_zero(header.subspan(table_end))) {
    corrupt("the padding of its header is not zero");
  }
  BundleHeader result{.manifest = {}, .sections = {}, .identity = head.sha256};
  with_context("manifest", [&] {
    const std::string_view text = as_text(header.subspan(sizeof(FileHead), head.manifest_bytes));
    Json json;
    try {
      json = Json::parse(text, 8, Json::EqualKeys::kRefuse);
    } catch (const Error& error) {
      corrupt(error.what());
    }
    result.manifest = manifest_from_json(json);
  });
  for (size_t i = 0; i < head.num_sections; ++i) {
    TableEntry entry{};
    std::memcpy(&entry, header.data() + table + i * sizeof entry, sizeof entry);
    result.sections.push_back(to_section(entry, i));
  }
  check_sections(result.manifest, result.sections);
  check_places(result.sections, header.size(), file.size());
  return result;
}

void verify_section(std::span<const std::byte> file, std::span<const Section> sections,
                    size_t index) {
  const Section& section = sections[index];
  if (sha256(file.subspan(section.offset, section.bytes)) != section.sha256) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("section \"{}\" is damaged: its hash differs from the recorded one",
                            section.name),
                "build or download the bundle again");
  }
  const uint64_t end = section.offset + section.bytes;
  const uint64_t next = index + 1 < sections.size() ? sections[index + 1].offset : file.size();
  if (!all_zero(file.subspan(end, next - end))) {
    corrupt(fmt::format("the padding after section \"{}\" is not zero", section.name));
  }
}

bool is_bundle_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::ifstream file(path, std::ios::binary);
  std::array<unsigned char, 8> magic{};
  file.read(reinterpret_cast<char*>(magic.data()), magic.size());
  return file.good() && magic == kMagic;
}

}  // namespace trtmc
