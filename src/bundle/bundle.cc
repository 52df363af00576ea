#include "bundle/bundle.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "bundle/bundle_header.h"

namespace trtmc {

Bundle::Bundle(const std::filesystem::path& path) : file_(path) {
  with_context(path.string(), [&] {
    BundleHeader header = decode_header(file_.bytes());
    manifest_ = std::move(header.manifest);
    sections_ = std::move(header.sections);
    identity_ = header.identity;
    for (size_t i = 0; i < sections_.size(); ++i) {
      if (sections_[i].kind != SectionKind::kText) continue;
      // Copied before it is hashed, since a file may change under its mapping.
      chat_template_ = as_text(bytes(sections_[i]));
      trtmc::verify_section(file_.bytes(), sections_, i);
    }
  });
}

const Section* Bundle::find(std::string_view name) const {
  const auto found = std::find_if(sections_.begin(), sections_.end(),
                                  [&](const Section& section) { return section.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

std::span<const std::byte> Bundle::bytes(const Section& section) const {
  return file_.bytes().subspan(section.offset, section.bytes);
}

WeightView Bundle::weight(const TensorKey& key) const {
  const Section* section = find(to_string(key));
  TRTMC_CHECK(section != nullptr, "a weight that a decoder of this spec does not have");
  return {section->dtype, section->layout, section->shape, bytes(*section)};
}

std::span<const std::byte> Bundle::tokenizer_tables() const {
  const Section* section = find(kTokenizerSection);
  if (section == nullptr) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: has no tokenizer, so it takes token ids only", path().string()),
                "its checkpoint had no tokenizer.json; add one and build again");
  }
  return bytes(*section);
}

std::optional<std::string_view> Bundle::chat_template() const { return chat_template_; }

void Bundle::verify_section(size_t index) const {
  with_context(path().string(), [&] { trtmc::verify_section(file_.bytes(), sections_, index); });
}

void Bundle::verify_hashes() const {
  for (size_t i = 0; i < sections_.size(); ++i) verify_section(i);
}

}  // namespace trtmc
