#include "backends/cuda/kernels/kv_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/kv_type.h"

namespace trtmc::cuda {
namespace {

class KvLayout : public testing::TestWithParam<KvType> {
 protected:
  static int place(const KvCacheView& view, int position, int d) {
    switch (view.type) {
      case KvType::kF32:
        return view.place<KvType::kF32>(position, d);
      case KvType::kBF16:
        return view.place<KvType::kBF16>(position, d);
      default:
        return view.place<KvType::kFp8>(position, d);
    }
  }
};

// Whatever the width: every component and scale lies within its head, on a multiple of what it is,
// and on nobody else's bytes.
TEST_P(KvLayout, HasAPlaceOfItsOwnForEachComponent) {
  const int bytes = kv_component_bytes(GetParam());
  for (const int head_dim : {2, 16, 24, 64, 80, 128}) {
    const KvCacheView view = KvCacheView::of(GetParam(), 3, 2, head_dim);
    std::vector<int> taken(static_cast<size_t>(view.head_bytes));
    const auto take = [&](int at, int size) {
      ASSERT_EQ(at % size, 0);
      ASSERT_LE(at + size, view.head_bytes);
      for (int i = at; i < at + size; ++i) ++taken[static_cast<size_t>(i)];
    };
    for (int position = 0; position < KvCacheView::kBlockSize; ++position) {
      for (int d = 0; d < view.padded_dim; ++d) take(place(view, position, d), bytes);
      if (GetParam() == KvType::kFp8) take(view.scale_place(position), 4);
    }
    EXPECT_EQ(taken, std::vector<int>(taken.size(), 1)) << head_dim;
  }
}

// What a thread loads at once: 16 bytes of one position, wherever a run begins.
TEST_P(KvLayout, HasRunsOf16Bytes) {
  const int values = 16 / kv_component_bytes(GetParam());
  const KvCacheView view = KvCacheView::of(GetParam(), 1, 1, 128);
  for (int position = 0; position < KvCacheView::kBlockSize; ++position) {
    for (int d = 0; d < view.padded_dim; ++d) {
      const int run = d / values * values;
      EXPECT_EQ(place(view, position, run) % 16, 0);
      EXPECT_EQ(place(view, position, d) - place(view, position, run),
                (d - run) * kv_component_bytes(GetParam()));
    }
  }
}

TEST_P(KvLayout, HasHeadsBehindEachOther) {
  KvCacheView view = KvCacheView::of(GetParam(), 3, 2, 24);
  std::vector<std::byte> blocks(static_cast<size_t>(2 * view.block_bytes()));
  const std::byte* memory = view.memory = blocks.data();
  EXPECT_EQ(view.head_bytes % 16, 0);
  int64_t next = 0;
  for (int block = 0; block < 2; ++block) {
    EXPECT_EQ(view.head(block, 0, 0, 0) - memory, block * view.block_bytes());
    for (int layer = 0; layer < 3; ++layer) {
      for (int side = 0; side < 2; ++side) {
        for (int head = 0; head < 2; ++head, next += view.head_bytes) {
          EXPECT_EQ(view.head(block, layer, side, head) - memory, next);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, KvLayout,
                         testing::Values(KvType::kF32, KvType::kBF16, KvType::kFp8),
                         [](const auto& type) { return std::string(kv_type_name(type.param)); });

// 36 layers, a key and a value of 4 heads, each of 128 bytes and a scale of 4.
TEST(KvLayoutBytes, OfSmolLm3InFp8HasAScaleForEachHead) {
  EXPECT_EQ(KvCacheView::of(KvType::kFp8, 36, 4, 128).block_bytes(), 36 * 2 * 4 * 132 * 32);
  EXPECT_EQ(KvCacheView::of(KvType::kBF16, 36, 4, 128).block_bytes(), 36 * 2 * 4 * 256 * 32);
}

}  // namespace
}  // namespace trtmc::cuda
