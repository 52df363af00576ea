#include "base/hash.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace trtmc {
namespace {

// FIPS 180-4's example messages.
TEST(Hash, Sha256OfTheStandardsExamples) {
  EXPECT_EQ(to_hex(sha256(as_bytes("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Hash, Sha256InPiecesEqualsSha256OfTheWhole) {
  Sha256 pieces;
  pieces.update(as_bytes("a"));
  pieces.update(as_bytes(""));
  pieces.update(as_bytes("bc"));
  EXPECT_EQ(pieces.finish(), sha256(as_bytes("abc")));
}

// FIPS 180-4's example message, and git's name of an empty file (`git hash-object /dev/null`).
TEST(Hash, Sha1OfTheStandardsExamples) {
  Sha1 hash;
  hash.update(as_bytes("a"));
  hash.update(as_bytes("bc"));
  EXPECT_EQ(to_hex(hash.finish()), "a9993e364706816aba3e25717850c26c9cd0d89d");
  Sha1 empty;
  empty.update(as_bytes(std::string_view("blob 0\0", 7)));
  EXPECT_EQ(to_hex(empty.finish()), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
}

// XXH3_64bits of no bytes and seed 0, from the xxHash specification's test vectors.
TEST(Hash, Hash64IsXxh3) { EXPECT_EQ(hash64({}), 0x2D06800538D394C2u); }

TEST(Hash, Hash64ChainsThroughItsSeed) {
  const uint64_t a = hash64(as_bytes("a"));
  EXPECT_NE(hash64(as_bytes("b"), a), hash64(as_bytes("b")));
}

}  // namespace
}  // namespace trtmc
