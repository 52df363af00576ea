#include "backends/cpu/reserved_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/error.h"

namespace trtmc::cpu {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kHugePage = 2 * kMiB;

// Bytes of `memory` that the system has taken for it (mincore(2)).
size_t taken_bytes(const ReservedMemory& memory) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((memory.bytes() + page - 1) / page);
  EXPECT_EQ(::mincore(memory.data(), memory.bytes(), pages.data()), 0);
  const auto taken = std::ranges::count_if(pages, [](unsigned char of) { return (of & 1) != 0; });
  return static_cast<size_t>(taken) * page;
}

TEST(ReservedMemory, IsTakenWhereItIsWritten) {
  const ReservedMemory memory(1024 * kMiB);
  EXPECT_EQ(taken_bytes(memory), 0u);
  constexpr size_t kWritten = 5 * kMiB;
  std::fill_n(memory.data(), kWritten, std::byte{1});
  EXPECT_GE(taken_bytes(memory), kWritten);
  EXPECT_LE(taken_bytes(memory), kWritten + kHugePage);
  memory.data()[700 * kMiB] = std::byte{1};  // Far away.
  EXPECT_LE(taken_bytes(memory), kWritten + 2 * kHugePage);
}

TEST(ReservedMemory, ReadsAsZero) {
  const ReservedMemory memory(64 * kMiB);
  memory.data()[3] = std::byte{1};
  EXPECT_EQ(memory.data()[2], std::byte{0});
  EXPECT_EQ(memory.data()[kHugePage + 1], std::byte{0});
  EXPECT_EQ(memory.data()[memory.bytes() - 1], std::byte{0});
}

TEST(ReservedMemory, IsRefusedBeyondTheAddressSpace) {
  EXPECT_THROW(ReservedMemory(SIZE_MAX / 2), Error);
}

}  // namespace
}  // namespace trtmc::cpu
