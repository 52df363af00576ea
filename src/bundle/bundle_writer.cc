#include "bundle/bundle_writer.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"
#include "bundle/bundle_header.h"

namespace trtmc {
namespace {

// A hash that is not known yet takes as many digits as one that is.
Manifest with_placeholders(Manifest manifest) {
  for (FileHash& file : manifest.source_files) {
    if (file.sha256.empty()) file.sha256 = to_hex(Sha256Digest{});
  }
  return manifest;
}

struct Layout {
  std::vector<Section> sections;
  uint64_t file_bytes;
};

// Checks all that decode_header() will, and says it as what it is here: a wrong argument.
Layout lay_out(const Manifest& manifest, std::vector<Section> sections) {
  try {
    validate(manifest);
    for (Section& section : sections) {
      if (section.kind == SectionKind::kTensor) section.bytes = tensor_section_bytes(section);
    }
    check_sections(manifest, sections);
  } catch (const Error& error) {
    throw Error(ErrorCode::kInvalidArgument, error.what(), error.hint());
  }
  const uint64_t file_bytes = place_sections(to_json(manifest).dump().size(), sections);
  return {std::move(sections), file_bytes};
}

}  // namespace

uint64_t bundle_bytes(const Manifest& manifest, std::vector<Section> sections) {
  return lay_out(with_placeholders(manifest), std::move(sections)).file_bytes;
}

struct BundleWriter::State {
  // What has been written of a section.
  struct Written {
    uint64_t bytes = 0;
    Sha256 hash;
  };

  State(const std::filesystem::path& path, Manifest manifest_in, std::vector<Section> sections_in,
        AtomicFile::IfExists if_exists)
      : manifest(with_placeholders(std::move(manifest_in))),
        layout(lay_out(manifest, std::move(sections_in))),
        written(layout.sections.size()),
        file(path, layout.file_bytes, if_exists) {}

  Manifest manifest;
  Layout layout;
  std::vector<Written> written;
  AtomicFile file;
};

BundleWriter::BundleWriter(const std::filesystem::path& path, Manifest manifest,
                           std::vector<Section> sections, AtomicFile::IfExists if_exists)
    : state_(std::make_unique<State>(path, std::move(manifest), std::move(sections), if_exists)) {}

BundleWriter::~BundleWriter() = default;

void BundleWriter::append(size_t index, std::span<const std::byte> bytes) {
  TRTMC_CHECK(index < state_->layout.sections.size(), "no such section");
  const Section& section = state_->layout.sections[index];
  State::Written& written = state_->written[index];
  TRTMC_CHECK(bytes.size() <= section.bytes - written.bytes, "more than the section holds");
  state_->file.write_at(section.offset + written.bytes, bytes);
  written.hash.update(bytes);
  written.bytes += bytes.size();
}

void BundleWriter::set_file_hash(size_t index, const Sha256Digest& digest) {
  state_->manifest.source_files.at(index).sha256 = to_hex(digest);
}

void BundleWriter::commit() {
  std::vector<Section>& sections = state_->layout.sections;
  for (size_t i = 0; i < sections.size(); ++i) {
    TRTMC_CHECK(state_->written[i].bytes == sections[i].bytes, "a section is not whole");
    sections[i].sha256 = state_->written[i].hash.finish();
  }
  state_->file.write_at(
      0, encode_header(to_json(state_->manifest).dump(), sections, state_->layout.file_bytes));
  state_->file.commit();
}

uint64_t BundleWriter::file_bytes() const { return state_->layout.file_bytes; }

std::span<const Section> BundleWriter::sections() const { return state_->layout.sections; }

}  // namespace trtmc
