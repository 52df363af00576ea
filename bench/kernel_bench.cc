// One kernel, one thread: bytes and operations a second of each instruction set.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "backends/cpu/kernels/dispatch.h"
#include "tensor/packed_layout.h"

namespace trtmc::cpu {
namespace {

constexpr int64_t kColumns = 2048;

// W [rows, 2048] times `num_tokens` tokens.
void multiply(benchmark::State& state, const KernelTable* kernels, DType dtype, int64_t rows,
              int num_tokens) {
  const PackedLayout layout{dtype, rows, kColumns};
  std::vector<std::byte> panels(layout.total_bytes());
  const auto tiles = round_up(num_tokens, kernels->tile_tokens);
  std::vector<float> x(static_cast<size_t>(tiles * kColumns), 1.0F);
  std::vector<float> bytes(static_cast<size_t>(tiles * quantized_width(kColumns)));
  kernels->quantize_tokens(x.data(), num_tokens, kColumns, kColumns, bytes.data(), nullptr);
  std::vector<float> y(static_cast<size_t>(num_tokens * rows));
  MatmulArgs args{.panels = panels.data(),
                  .panel_bytes = static_cast<int64_t>(layout.panel_bytes()),
                  .num_panels = 8,
                  .k = kColumns,
                  .x = is_quantized(dtype) ? bytes.data() : x.data(),
                  .x_width = is_quantized(dtype) ? quantized_width(kColumns) : kColumns,
                  .num_tokens = num_tokens,
                  .y = y.data(),
                  .y_stride = rows};
  const MatmulKernel kernel = matmul_of(*kernels, dtype);
  for (auto _ : state) {
    for (int64_t panel = 0; panel < layout.num_panels(); panel += args.num_panels) {
      args.panels = panels.data() + static_cast<size_t>(panel) * layout.panel_bytes();
      args.y = y.data() + panel * kPanelRows;
      kernel(args);
    }
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(panels.size()));
  state.counters["flops"] =
      benchmark::Counter(2.0 * static_cast<double>(rows * kColumns * num_tokens),
                         benchmark::Counter::kIsIterationInvariantRate);
}

void quantize(benchmark::State& state, const KernelTable* kernels) {
  const int tokens = kernels->tile_tokens;
  const std::vector<float> x(static_cast<size_t>(tokens * kColumns), 1.0F);
  std::vector<float> bytes(static_cast<size_t>(tokens * quantized_width(kColumns)));
  for (auto _ : state) {
    kernels->quantize_tokens(x.data(), tokens, kColumns, kColumns, bytes.data(), nullptr);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * tokens * kColumns);
}

using AttendKernel = decltype(KernelTable::attend_f32);

void attend(benchmark::State& state, AttendKernel kernel) {
  constexpr int kHeads = 4;
  constexpr int kHeadDim = 128;
  const std::vector<float> cache(2 * kKvBlockSize * kHeadDim);
  const std::vector<float> q(kHeads * kHeadDim);
  std::vector<float> mixed(q.size()), largest(kHeads), sum(kHeads);
  const AttentionArgs args{.q = q.data(),
                           .num_heads = kHeads,
                           .head_dim = kHeadDim,
                           .keys = cache.data(),
                           .values = cache.data() + kKvBlockSize * kHeadDim,
                           .first = 0,
                           .last = kKvBlockSize,
                           .scale = 0.1F,
                           .largest = largest.data(),
                           .sum = sum.data(),
                           .mixed = mixed.data()};
  for (auto _ : state) {
    kernel(args);
    benchmark::ClobberMemory();
  }
  state.counters["flops"] = benchmark::Counter(4.0 * kHeads * kHeadDim * kKvBlockSize,
                                               benchmark::Counter::kIsIterationInvariantRate);
}

void register_all() {
  for (const KernelTable* kernels : available_kernels()) {
    const std::string isa = kernels->name;
    for (const DType dtype :
         {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8, DType::kQ6, DType::kQ4}) {
      const std::string name = isa + "/" + std::string(dtype_name(dtype));
      // 128 rows are what a thread works on at a time; 262 144 come from memory.
      benchmark::RegisterBenchmark((name + "/one_token_from_memory").c_str(), multiply, kernels,
                                   dtype, 262144, 1)
          ->Unit(benchmark::kMillisecond);
      for (const int tokens : {1, 2, 4, 8, 12, 96}) {
        benchmark::RegisterBenchmark((name + "/tokens:" + std::to_string(tokens)).c_str(), multiply,
                                     kernels, dtype, 128, tokens);
      }
    }
    benchmark::RegisterBenchmark((isa + "/quantize").c_str(), quantize, kernels);
    benchmark::RegisterBenchmark((isa + "/attend_f32").c_str(), attend, kernels->attend_f32);
    benchmark::RegisterBenchmark((isa + "/attend_bf16").c_str(), attend, kernels->attend_bf16);
    benchmark::RegisterBenchmark((isa + "/attend_q8").c_str(), attend, kernels->attend_q8);
  }
}

}  // namespace
}  // namespace trtmc::cpu

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  trtmc::cpu::register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
