// A bundle that was cut off or changed: every time a sentence, never a crash, never silence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <set>

#include "base/error.h"
#include "bundle/bundle.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_bundle.h"

namespace trtmc {
namespace {

// Where docs/bundle_format.md has the format version, the one field that may say "unsupported".
constexpr size_t kVersionBegin = 8, kVersionEnd = 12;

class BundleDamage : public ::testing::Test {
 protected:
  BundleDamage() {
    write_tiny_bundle(path());
    whole_ = read_file(path());
  }

  std::filesystem::path path() const { return folder_.path() / "x.trtmc"; }

  // The error of opening and verifying a file of this content, or nothing.
  std::optional<ErrorCode> error_of(std::string_view content) const {
    write_text(path(), content);
    try {
      Bundle(path()).verify_hashes();
    } catch (const Error& error) {
      return error.code();
    }
    return std::nullopt;
  }

  TemporaryFolder folder_;
  std::string whole_;
};

TEST_F(BundleDamage, IsFoundWhereverTheFileIsCutOff) {
  std::set<size_t> lengths;
  for (size_t length = 0; length < 300; ++length) lengths.insert(length);
  const Bundle bundle(path());
  for (const Section& section : bundle.sections()) {
    for (const uint64_t border : {section.offset, section.offset + section.bytes}) {
      lengths.insert({border - 1, border, border + 1});
    }
  }
  lengths.erase(lengths.lower_bound(whole_.size()), lengths.end());
  EXPECT_GT(lengths.size(), 400U);
  for (const size_t length : lengths) {
    ASSERT_EQ(error_of(std::string_view(whole_).substr(0, length)), ErrorCode::kCorrupt) << length;
  }
}

TEST_F(BundleDamage, OpeningAloneFindsACut) {
  write_text(path(), whole_.substr(0, whole_.size() - 1));
  EXPECT_THROW(Bundle{path()}, Error);
}

TEST_F(BundleDamage, IsFoundWhereverABitIsFlipped) {
  std::mt19937 random(1);
  std::vector<size_t> places;
  for (size_t at = 0; at < 64; ++at) places.push_back(at);
  for (int i = 0; i < 400; ++i) places.push_back(random() % whole_.size());
  std::string file = whole_;
  for (const size_t at : places) {
    file[at] = static_cast<char>(file[at] ^ (1 << random() % 8));
    const std::optional<ErrorCode> code = error_of(file);
    const bool version = at >= kVersionBegin && at < kVersionEnd;
    ASSERT_TRUE(code == ErrorCode::kCorrupt || (version && code == ErrorCode::kUnsupported)) << at;
    file[at] = whole_[at];
  }
  EXPECT_EQ(error_of(file), std::nullopt);
}

TEST_F(BundleDamage, InAForgedHeaderNeverCrashes) {
  std::mt19937 random(2);
  const size_t header_bytes = Bundle(path()).sections()[0].offset;
  for (int i = 0; i < 400; ++i) {
    std::string file = whole_;
    for (int change = 0; change < 3; ++change) {
      file[random() % header_bytes] = static_cast<char>(random());
    }
    Sha256 hash;
    hash.update(as_bytes(file).first(32));
    hash.update(as_bytes(file).subspan(64, header_bytes - 64));
    const Sha256Digest digest = hash.finish();
    std::copy(digest.begin(), digest.end(), std::as_writable_bytes(std::span(file)).begin() + 32);
    error_of(file);  // Whatever it says.
  }
}

}  // namespace
}  // namespace trtmc
