#include "bundle/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "base/error.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_bundle.h"

namespace trtmc {
namespace {

using ::testing::HasSubstr;

// Offsets after docs/bundle_format.md.
constexpr size_t kVersion = 8, kNumSections = 12, kManifestBytes = 16, kFileBytes = 24,
                 kHeaderHash = 32, kManifest = 64;
constexpr size_t kEntryBytes = 144, kKind = 64, kDType = 68, kLayout = 72, kRank = 76, kShape = 80,
                 kOffset = 96, kBytes = 104, kHash = 112;

template <typename Value>
Value get(const std::string& file, size_t at) {
  Value value;
  std::memcpy(&value, file.data() + at, sizeof value);
  return value;
}

template <typename Value>
void put(std::string& file, size_t at, Value value) {
  std::memcpy(file.data() + at, &value, sizeof value);
}

size_t entry(const std::string& file, size_t index) {
  return kManifest + (get<uint64_t>(file, kManifestBytes) + 7) / 8 * 8 + index * kEntryBytes;
}

void replace(std::string& file, std::string_view from, std::string_view to) {
  ASSERT_EQ(from.size(), to.size());
  const size_t at = file.find(from);
  ASSERT_NE(at, std::string::npos);
  file.replace(at, from.size(), to);
}

class BundleFile : public ::testing::Test {
 protected:
  BundleFile() {
    write_tiny_bundle(path());
    file_ = read_file(path());
    header_bytes_ = get<uint64_t>(file_, entry(file_, 0) + kOffset);
  }

  std::filesystem::path path() const { return folder_.path() / "tiny.trtmc"; }

  // Makes the header's hash right again.
  void seal() {
    Sha256 hash;
    hash.update(as_bytes(file_).first(kHeaderHash));
    hash.update(as_bytes(file_).subspan(kManifest, header_bytes_ - kManifest));
    put(file_, kHeaderHash, hash.finish());
  }

  void open_and_verify() {
    write_text(path(), file_);
    Bundle(path()).verify_hashes();
  }

  // What opening and verifying says of the file after `edit`, with its header sealed again.
  std::string complaint(const std::function<void()>& edit, bool sealed = true) {
    const std::string whole = file_;
    edit();
    if (sealed) seal();
    std::string message = "none";
    try {
      open_and_verify();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.what();
      message = error.what();
    }
    file_ = whole;
    return message;
  }

  TemporaryFolder folder_;
  std::string file_;
  size_t header_bytes_ = 0;
};

TEST_F(BundleFile, GivesBackWhatWasWritten) {
  const Bundle bundle(path());
  EXPECT_EQ(bundle.manifest(), tiny_manifest(true));
  EXPECT_EQ(bundle.spec(), tiny_spec(true));
  EXPECT_EQ(bundle.file_bytes(), file_.size());
  EXPECT_EQ(bundle.chat_template(), "{{ messages[0] }}\n");
  EXPECT_EQ(as_text(bundle.tokenizer_tables()), "not really tables");
  const WeightView norm = bundle.weight({Role::kAttentionNorm, 1});
  EXPECT_EQ(norm.dtype, DType::kF32);
  EXPECT_EQ(norm.layout, TensorLayout::kPlain);
  EXPECT_EQ(norm.shape, (Shape{24}));
  EXPECT_EQ(norm.bytes[2], std::byte{7 * 10 + 1 + 2});  // The tenth section.
  const WeightView down = bundle.weight({Role::kDownProj, 0});
  EXPECT_EQ(down.dtype, DType::kBF16);
  EXPECT_EQ(down.shape, (Shape{24, 40}));
  EXPECT_EQ(down.bytes.size(), 32U * 40 * 2);  // Two panels of 16 rows.
  bundle.verify_hashes();
}

TEST_F(BundleFile, SectionsStartAtMultiplesOf4096AndTheLastEndsTheFile) {
  const Bundle bundle(path());
  uint64_t end = header_bytes_;
  for (const Section& section : bundle.sections()) {
    EXPECT_EQ(section.offset, (end + 4095) / 4096 * 4096) << section.name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bundle.bytes(section).data()) % 4096, 0U);
    end = section.offset + section.bytes;
  }
  EXPECT_EQ(end, bundle.file_bytes());
}

TEST_F(BundleFile, AnUntiedDecoderHasAnOutputProjection) {
  write_tiny_bundle(path(), {.tied = false, .dtype = DType::kF16});
  const Bundle bundle(path());
  EXPECT_EQ(bundle.weight({Role::kLmHead}).shape, (Shape{40, 24}));
  EXPECT_EQ(bundle.weight({Role::kLmHead}).dtype, DType::kF16);
}

TEST_F(BundleFile, WorksWithoutTokenizerAndTemplate) {
  write_tiny_bundle(path(), {.tokenizer = "", .chat_template = ""});
  const Bundle bundle(path());
  EXPECT_EQ(bundle.chat_template(), std::nullopt);
  try {
    bundle.tokenizer_tables();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  }
}

TEST_F(BundleFile, TheSameInputGivesTheSameBytes) {
  const std::filesystem::path again = folder_.path() / "again.trtmc";
  write_tiny_bundle(again);
  EXPECT_EQ(read_file(again), file_);
}

TEST_F(BundleFile, IdentityIsTheHeadersHash) {
  const Bundle bundle(path());
  EXPECT_EQ(bundle.identity(), get<Sha256Digest>(file_, kHeaderHash));
  write_tiny_bundle(path(), {.chat_template = "another"});
  EXPECT_NE(Bundle(path()).identity(), bundle.identity());
}

TEST_F(BundleFile, AMissingFileIsNotFound) {
  try {
    Bundle(folder_.path() / "none.trtmc");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  }
}

TEST_F(BundleFile, ANewerVersionIsUnsupportedAndSaysSo) {
  put(file_, kVersion, uint32_t{2});
  try {
    open_and_verify();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.what(),
                HasSubstr("bundle format version 2, this trtmc reads up to version 1"));
  }
}

TEST_F(BundleFile, OtherFilesAreNotBundles) {
  for (const std::string& content :
       {std::string(), std::string("<html>"), std::string(5000, ' ')}) {
    EXPECT_THAT(complaint([&] { file_ = content; }, false), HasSubstr("not a trtmc bundle"));
  }
}

TEST_F(BundleFile, TheHeaderIsHashed) {
  for (const size_t at : {kManifest, entry(file_, 3) + kHash, header_bytes_ - 1, kHeaderHash}) {
    EXPECT_THAT(complaint([&] { file_[at] = static_cast<char>(file_[at] ^ 4); }, false),
                HasSubstr("header is damaged"));
  }
}

TEST_F(BundleFile, CountsAndSizesAreBounded) {
  EXPECT_THAT(complaint([&] { file_ += ' '; }), HasSubstr("its header says"));
  EXPECT_THAT(complaint([&] { file_.pop_back(); }), HasSubstr("its header says"));
  EXPECT_THAT(complaint([&] { put(file_, kFileBytes, UINT64_MAX); }), HasSubstr("header says"));
  EXPECT_THAT(complaint([&] { put(file_, kVersion, uint32_t{0}); }), HasSubstr("version 0"));
  EXPECT_THAT(complaint([&] { put(file_, kNumSections, uint32_t{65537}); }), HasSubstr("limits"));
  EXPECT_THAT(complaint([&] { put(file_, kNumSections, UINT32_MAX); }), HasSubstr("limits"));
  EXPECT_THAT(complaint([&] { put(file_, kNumSections, uint32_t{65536}); }),
              HasSubstr("past the end of the file"));
  EXPECT_THAT(complaint([&] { put(file_, kManifestBytes, (uint64_t{1} << 20) + 1); }),
              HasSubstr("limits"));
  EXPECT_THAT(complaint([&] { put(file_, kManifestBytes, UINT64_MAX); }), HasSubstr("limits"));
  EXPECT_THAT(complaint([&] { put(file_, kManifestBytes, uint64_t{1} << 20); }),
              HasSubstr("past the end of the file"));
}

TEST_F(BundleFile, TheManifestIsStrict) {
  EXPECT_THAT(complaint([&] { replace(file_, "\"family\"", "\"famili\""); }),
              HasSubstr("manifest: famili: unknown key"));
  EXPECT_THAT(complaint([&] { replace(file_, "{\"family\"", "[\"family\""); }),
              HasSubstr("not valid JSON"));
  EXPECT_THAT(complaint([&] { replace(file_, "\"hidden_size\":24", "\"hidden_size\":0 "); }),
              HasSubstr("hidden_size"));
  EXPECT_THAT(complaint([&] { replace(file_, "[3,39]", "[3,99]"); }), HasSubstr("stop_ids"));
}

TEST_F(BundleFile, ThePaddingOfTheHeaderIsZero) {
  EXPECT_THAT(complaint([&] { file_[header_bytes_ - 1] = 1; }), HasSubstr("padding"));
  const size_t manifest_end = kManifest + get<uint64_t>(file_, kManifestBytes);
  ASSERT_NE(manifest_end % 8, 0U) << "the manifest has no padding to test";
  EXPECT_THAT(complaint([&] { file_[manifest_end] = 1; }), HasSubstr("padding"));
}

TEST_F(BundleFile, TheTableHoldsTheTensorsOfTheModelInOrder) {
  const size_t first = entry(file_, 0), second = entry(file_, 1);
  EXPECT_THAT(complaint([&] { file_[first] = 'E'; }), HasSubstr("expected \"embedding\""));
  EXPECT_THAT(complaint([&] { file_[first + 63] = 'x'; }), HasSubstr("section 0"));
  EXPECT_THAT(complaint([&] {
                for (size_t i = 0; i < kEntryBytes; ++i)
                  std::swap(file_[first + i], file_[second + i]);
              }),
              HasSubstr("expected \"embedding\""));
  EXPECT_THAT(complaint([&] { put(file_, second + kKind, uint32_t{1}); }), HasSubstr("norm"));
  EXPECT_THAT(complaint([&] { put(file_, first + kKind, uint32_t{3}); }), HasSubstr("embedding"));
  EXPECT_THAT(complaint([&] { put(file_, first + kDType, uint32_t{3}); }), HasSubstr("type 3"));
  EXPECT_THAT(complaint([&] { put(file_, second + kDType, uint32_t{2}); }), HasSubstr("type 2"));
  EXPECT_THAT(complaint([&] { put(file_, first + kDType, uint32_t{0}); }), HasSubstr("bytes"));
  EXPECT_THAT(complaint([&] { put(file_, first + kLayout, uint32_t{0}); }), HasSubstr("layout 0"));
  EXPECT_THAT(complaint([&] { put(file_, second + kLayout, uint32_t{1}); }), HasSubstr("layout 1"));
  EXPECT_THAT(complaint([&] { put(file_, first + kRank, uint32_t{3}); }), HasSubstr("section 0"));
  EXPECT_THAT(complaint([&] { put(file_, first + kRank, uint32_t{1}); }), HasSubstr("dimension 1"));
  EXPECT_THAT(complaint([&] { put(file_, first + kShape, uint64_t{41}); }), HasSubstr("[41, 24]"));
  EXPECT_THAT(complaint([&] { put(file_, first + kShape, uint64_t{1} << 63); }),
              HasSubstr("dimension 0"));
  EXPECT_THAT(complaint([&] { put(file_, first + kShape, uint64_t{0}); }), HasSubstr("dimension"));
}

class QuantizedBundleFile : public BundleFile {
 protected:
  // The scheme's name is as long as another's, so that one can take its place.
  QuantizedBundleFile() {
    write_tiny_bundle(path(), {.tied = false, .quantization = "q4"});
    file_ = read_file(path());
    header_bytes_ = get<uint64_t>(file_, entry(file_, 0) + kOffset);
  }
};

TEST_F(QuantizedBundleFile, HasTheTypesOfItsScheme) {
  const Bundle bundle(path());
  EXPECT_EQ(bundle.manifest().quantization, "q4");
  EXPECT_EQ(bundle.weight({Role::kEmbedding}).dtype, DType::kQ8);
  EXPECT_EQ(bundle.weight({Role::kLmHead}).dtype, DType::kQ8);
  EXPECT_EQ(bundle.weight({Role::kAttentionNorm, 0}).dtype, DType::kF32);
  const WeightView down = bundle.weight({Role::kDownProj, 1});
  EXPECT_EQ(down.dtype, DType::kQ4);
  EXPECT_EQ(down.bytes.size(), 2U * 576);  // Two panels of one group: 24 rows, 40 columns.
  EXPECT_EQ(bundle.weight({Role::kEmbedding}).bytes.size(), 3U * 1088);
  bundle.verify_hashes();
}

TEST_F(QuantizedBundleFile, AGroupOfQ6Has832Bytes) {
  write_tiny_bundle(path(), {.tied = false, .quantization = "q6"});
  const Bundle bundle(path());
  const WeightView down = bundle.weight({Role::kDownProj, 1});
  EXPECT_EQ(down.dtype, DType::kQ6);
  EXPECT_EQ(down.bytes.size(), 2U * 832);
  EXPECT_EQ(bundle.weight({Role::kEmbedding}).dtype, DType::kQ8);
  bundle.verify_hashes();
}

TEST_F(QuantizedBundleFile, OtherTypesThanItsSchemesAreRefused) {
  const size_t embedding = entry(file_, 0), norm = entry(file_, 1), q = entry(file_, 2);
  const auto with_type = [&](size_t at, uint32_t type) {
    return complaint([&] { put(file_, at + kDType, type); });
  };
  EXPECT_THAT(with_type(norm, 4), HasSubstr("attention_norm\" has type 4"));
  EXPECT_THAT(with_type(norm, 3), HasSubstr("attention_norm\" has type 3"));
  EXPECT_THAT(with_type(embedding, 4), HasSubstr("embedding\" has type 4"));
  EXPECT_THAT(with_type(embedding, 2), HasSubstr("embedding\" has type 2"));
  EXPECT_THAT(with_type(q, 3), HasSubstr("q_proj\" has type 3"));
  EXPECT_THAT(with_type(q, 2), HasSubstr("quantization is \"q4\""));
  EXPECT_THAT(with_type(q, 5), HasSubstr("has type 5"));
  EXPECT_THAT(with_type(q, 6), HasSubstr("has type 6"));
  EXPECT_THAT(with_type(q, UINT32_MAX), HasSubstr("has type 4294967295"));
  EXPECT_THAT(complaint([&] { put(file_, q + kLayout, uint32_t{0}); }), HasSubstr("layout 0"));
  const std::string q4 = R"("quantization":"q4")";
  EXPECT_THAT(complaint([&] { replace(file_, q4, R"("quantization":"q8")"); }),
              HasSubstr("q_proj\" has type 4"));
}

TEST_F(QuantizedBundleFile, SectionsHaveTheSizeOfTheirGroups) {
  const size_t q = entry(file_, 2);
  const auto bytes = get<uint64_t>(file_, q + kBytes);
  EXPECT_EQ(bytes, 2U * 576);
  for (const uint64_t wrong : {bytes - 1, bytes + 576, uint64_t{0}, UINT64_MAX}) {
    EXPECT_THAT(complaint([&] { put(file_, q + kBytes, wrong); }), HasSubstr("of q4 needs 1152"));
  }
}

// As an older version does with the schemes of this one.
TEST_F(QuantizedBundleFile, ASchemeOfANewerVersionIsUnsupportedAndSaysSo) {
  replace(file_, R"("quantization":"q4")", R"("quantization":"q5")");
  seal();
  try {
    open_and_verify();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr("quantization: \"q5\", this version of trtmc reads "
                                        "\"none\", \"q8\", \"q6\", \"q4_q6\", \"q4\""));
  }
}

TEST_F(BundleFile, SectionsNeitherOverlapNorLeaveGapsNorTheFile) {
  const size_t third = entry(file_, 2);
  const auto offset = get<uint64_t>(file_, third + kOffset);
  const auto bytes = get<uint64_t>(file_, third + kBytes);
  for (const uint64_t wrong :
       {offset - 4096, offset + 4096, offset + 64, uint64_t{0}, UINT64_MAX, UINT64_MAX - 4095}) {
    EXPECT_THAT(complaint([&] { put(file_, third + kOffset, wrong); }), HasSubstr("starts at"));
  }
  for (const uint64_t wrong : {bytes - 1, bytes + 1, uint64_t{0}, UINT64_MAX}) {
    EXPECT_THAT(complaint([&] { put(file_, third + kBytes, wrong); }), HasSubstr("bytes"));
  }
  // The tokenizer's size follows from nothing else.
  const size_t tokenizer = entry(file_, 20);
  ASSERT_EQ(file_.compare(tokenizer, 9, "tokenizer"), 0);
  EXPECT_THAT(complaint([&] { put(file_, tokenizer + kBytes, UINT64_MAX); }),
              HasSubstr("past the end of the file"));
  EXPECT_THAT(complaint([&] { put(file_, tokenizer + kBytes, uint64_t{0}); }),
              HasSubstr("not what its name says"));
  EXPECT_THAT(complaint([&] { put(file_, tokenizer + kBytes, uint64_t{4097}); }),
              HasSubstr("chat_template\" starts at"));
}

TEST_F(BundleFile, OnlyKnownSectionsFollowTheTensors) {
  const size_t tokenizer = entry(file_, 20), chat_template = entry(file_, 21);
  EXPECT_THAT(complaint([&] { file_[tokenizer] = 'T'; }), HasSubstr("unknown or out of order"));
  EXPECT_THAT(complaint([&] { put(file_, chat_template + kKind, uint32_t{1}); }),
              HasSubstr("not what its name says"));
  EXPECT_THAT(complaint([&] { put(file_, chat_template + kDType, uint32_t{1}); }),
              HasSubstr("not what its name says"));
}

TEST_F(BundleFile, OpeningHashesTheTemplate) {
  file_.back() = 'x';
  write_text(path(), file_);
  EXPECT_THROW(Bundle{path()}, Error);
}

TEST_F(BundleFile, VerifyingFindsAFlippedWeightAndNamesItsSection) {
  const auto offset = get<uint64_t>(file_, entry(file_, 2) + kOffset);
  file_[offset + 5] = static_cast<char>(file_[offset + 5] ^ 1);
  write_text(path(), file_);
  const Bundle bundle(path());
  try {
    bundle.verify_hashes();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_THAT(error.what(), HasSubstr("layers.0.q_proj"));
  }
}

TEST_F(BundleFile, VerifyingLooksAtThePadding) {
  const auto next = get<uint64_t>(file_, entry(file_, 2) + kOffset);
  EXPECT_THAT(complaint([&] { file_[next - 1] = 1; }),
              HasSubstr("padding after section \"layers.0.attention_norm\""));
}

TEST(BundleWriter, RefusesWhatCouldNotBeReadBack) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "x.trtmc";
  const auto refused = [&](const Manifest& manifest, const std::vector<Section>& sections) {
    try {
      BundleWriter(path, manifest, sections, AtomicFile::IfExists::kRefuse);
    } catch (const Error& error) {
      return error.code() == ErrorCode::kInvalidArgument;
    }
    return false;
  };
  const std::vector<Section> good = tiny_sections({});
  EXPECT_FALSE(refused(tiny_manifest(true), good));
  EXPECT_TRUE(refused(tiny_manifest(false), good));  // lm_head is missing.
  std::vector<Section> swapped = good;
  std::swap(swapped[2], swapped[3]);
  EXPECT_TRUE(refused(tiny_manifest(true), swapped));
  std::vector<Section> flat = good;
  flat[0].shape = {960};
  EXPECT_TRUE(refused(tiny_manifest(true), flat));
  Manifest nameless = tiny_manifest(true);
  nameless.family = "";
  EXPECT_TRUE(refused(nameless, good));
}

TEST(BundleWriter, TakesFileHashesLate) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "x.trtmc";
  Manifest manifest = tiny_manifest(true);
  manifest.source_files[0].sha256 = "";
  const std::vector<Section> sections = tiny_sections({});
  BundleWriter writer(path, manifest, sections, AtomicFile::IfExists::kRefuse);
  for (size_t i = 0; i < sections.size(); ++i) {
    writer.append(i, std::vector<std::byte>(sections[i].bytes));
  }
  writer.set_file_hash(0, sha256(as_bytes("abc")));  // FIPS 180-2, appendix B.1.
  writer.commit();
  EXPECT_EQ(Bundle(path).manifest().source_files[0].sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(std::filesystem::file_size(path), bundle_bytes(manifest, sections));
}

}  // namespace
}  // namespace trtmc
