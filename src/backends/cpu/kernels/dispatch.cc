#include "backends/cpu/kernels/dispatch.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "base/check.h"
#include "base/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace trtmc::cpu {

namespace generic {
const KernelTable& kernel_table();
}
#if defined(__x86_64__)
namespace avx2 {
const KernelTable& kernel_table();
}
namespace avxvnni {
const KernelTable& kernel_table();
}
namespace avx512 {
const KernelTable& kernel_table();
}
namespace avx512vnni {
const KernelTable& kernel_table();
}
#elif defined(__aarch64__)
namespace neon {
const KernelTable& kernel_table();
}
namespace neon_dotprod {
const KernelTable& kernel_table();
}
#endif

namespace {

struct InstructionSet {
  std::string_view name;
  bool runs_here;
  const KernelTable& (*kernels)();  // Null for other processors' sets, which never run here.
};

constexpr size_t kNumSets = 7;

#if defined(__x86_64__)

bool has_bits(uint32_t value, std::initializer_list<int> bits) {
  for (const int bit : bits) {
    if ((value >> bit & 1) == 0) return false;
  }
  return true;
}

// The state that the operating system saves for us (Intel SDM volume 1, 13.3): a unit whose
// registers it does not save must not be used, whatever CPUID says of it.
uint32_t saved_state() {
  uint32_t low = 0;
  uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

struct X86Features {
  bool avx2 = false;        // With FMA and F16C.
  bool avxvnni = false;     // Byte dot products in 256 bits, and the above.
  bool avx512 = false;      // F, BW, VL, DQ, and avx2.
  bool avx512vnni = false;  // Byte dot products in 512 bits, and the above.
};

// Bits of leaves 1 and 7 (Intel SDM volume 2, CPUID).
X86Features x86_features() {
  X86Features features;
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
  // OSXSAVE, AVX, FMA, F16C.
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || !has_bits(ecx, {27, 28, 12, 29})) {
    return features;
  }
  const uint32_t state = saved_state();
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return features;
  features.avx2 = has_bits(state, {1, 2}) && has_bits(ebx, {5});
  // The mask registers and both parts of the wide ones; F, DQ, BW, VL.
  features.avx512 = features.avx2 && has_bits(state, {5, 6, 7}) && has_bits(ebx, {16, 17, 30, 31});
  features.avx512vnni = features.avx512 && has_bits(ecx, {11});
  if (__get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) == 0) return features;
  features.avxvnni = features.avx2 && has_bits(eax, {4});
  return features;
}

std::array<InstructionSet, kNumSets> instruction_sets() {
  static const X86Features kFeatures = x86_features();
  return {{{"avx512vnni", kFeatures.avx512vnni, avx512vnni::kernel_table},
           {"avx512", kFeatures.avx512, avx512::kernel_table},
           {"avxvnni", kFeatures.avxvnni, avxvnni::kernel_table},
           {"avx2", kFeatures.avx2, avx2::kernel_table},
           {"neon_dotprod", false, nullptr},
           {"neon", false, nullptr},
           {"generic", true, generic::kernel_table}}};
}

#else

#if defined(__aarch64__)
constexpr bool kHasNeon = true;  // Linux runs on 64-bit ARM only where there is NEON.
constexpr auto kNeon = neon::kernel_table;
constexpr auto kNeonDotprod = neon_dotprod::kernel_table;
bool has_dotprod() { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; }
#else
constexpr bool kHasNeon = false;
constexpr const KernelTable& (*kNeon)() = nullptr;
constexpr const KernelTable& (*kNeonDotprod)() = nullptr;
bool has_dotprod() { return false; }
#endif

std::array<InstructionSet, kNumSets> instruction_sets() {
  return {{{"avx512vnni", false, nullptr},
           {"avx512", false, nullptr},
           {"avxvnni", false, nullptr},
           {"avx2", false, nullptr},
           {"neon_dotprod", has_dotprod(), kNeonDotprod},
           {"neon", kHasNeon, kNeon},
           {"generic", true, generic::kernel_table}}};
}

#endif

}  // namespace

std::vector<const KernelTable*> available_kernels() {
  std::vector<const KernelTable*> tables;
  for (const InstructionSet& set : instruction_sets()) {
    if (set.runs_here) tables.push_back(&set.kernels());
  }
  return tables;
}

const KernelTable& choose_kernels(std::string_view name) {
  std::string names;
  for (const KernelTable* table : available_kernels()) {
    if (name.empty() || name == table->name) return *table;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", table->name);
  }
  for (const InstructionSet& set : instruction_sets()) {
    if (name != set.name) continue;
    throw Error(ErrorCode::kUnsupported,
                fmt::format("this machine can't run {}, only {}", name, names));
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("there is no instruction set \"{}\", only {}", name, names));
}

MatmulKernel matmul_of(const KernelTable& kernels, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return kernels.matmul_f32;
    case DType::kF16:
      return kernels.matmul_f16;
    case DType::kBF16:
      return kernels.matmul_bf16;
    case DType::kQ8:
      return kernels.matmul_q8;
    case DType::kQ6:
      return kernels.matmul_q6;
    case DType::kQ4:
      return kernels.matmul_q4;
  }
  TRTMC_CHECK(false, "not an element type");
}

}  // namespace trtmc::cpu
