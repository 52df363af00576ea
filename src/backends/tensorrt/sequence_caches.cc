#include "backends/tensorrt/sequence_caches.h"

#include <numeric>

#include "base/check.h"

namespace trtmc::tensorrt {
namespace {

constexpr uint64_t kAlignment = 256;  // Of what TensorRT reads and writes.

uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::vector<uint64_t> offsets_of(const DecoderSpec& spec, const std::vector<DType>& types,
                                 int capacity) {
  std::vector<uint64_t> offsets{0};
  for (const DType type : types) {
    const uint64_t bytes = aligned(static_cast<uint64_t>(capacity) *
                                   static_cast<uint64_t>(spec.kv_width()) * element_bytes(type));
    offsets.push_back(offsets.back() + bytes);  // Keys.
    offsets.push_back(offsets.back() + bytes);  // Values.
  }
  return offsets;
}

}  // namespace

SequenceCaches::SequenceCaches(const DecoderSpec& spec, const std::vector<DType>& types,
                               int capacity, int num_slots, bool in_place)
    : num_kv_heads_(spec.num_kv_heads),
      head_dim_(spec.head_dim),
      types_(types),
      in_place_(in_place),
      offsets_(offsets_of(spec, types, capacity)),
      places_(static_cast<size_t>(num_slots)),
      lengths_(static_cast<size_t>(num_slots), 0) {
  std::iota(places_.begin(), places_.end(), 0);
  if (!in_place) spare_ = num_slots;
  const auto num_places = static_cast<uint64_t>(num_slots) + (in_place ? 0 : 1);
  // Zeroed: what a mask hides is multiplied by 0, which must not be a NaN.
  memory_ = cuda::DeviceBuffer<std::byte>(num_places * offsets_.back(),
                                          "memory for keys and values", true);
}

uint64_t SequenceCaches::slot_bytes(const DecoderSpec& spec, const std::vector<DType>& types,
                                    int capacity) {
  return offsets_of(spec, types, capacity).back();
}

void* SequenceCaches::address(int place, int layer, Part part) const {
  const size_t entry = static_cast<size_t>(layer) * 2 + static_cast<size_t>(part);
  return memory_.data() + static_cast<uint64_t>(place) * offsets_.back() + offsets_[entry];
}

size_t SequenceCaches::row_bytes(int layer) const {
  return static_cast<size_t>(head_dim_) * element_bytes(types_[static_cast<size_t>(layer)]);
}

void SequenceCaches::keep_first(int slot, int num_past, cudaStream_t stream) {
  int& length = lengths_[index(slot)];
  TRTMC_CHECK(num_past <= length, "a run after tokens that were never computed");
  if (num_past == length) return;
  if (!in_place_ && num_past > 0) {
    for (int layer = 0; layer < static_cast<int>(types_.size()); ++layer) {
      for (const Part part : {kKey, kValue}) {
        const size_t row = row_bytes(layer);
        const size_t to_pitch = static_cast<size_t>(num_past) * row;
        cuda::check_cuda(
            cudaMemcpy2DAsync(address(spare_, layer, part), to_pitch, past(slot, layer, part),
                              static_cast<size_t>(length) * row, to_pitch,
                              static_cast<size_t>(num_kv_heads_), cudaMemcpyDeviceToDevice, stream),
            "keeping the first tokens");
      }
    }
    std::swap(places_[index(slot)], spare_);
  }
  length = num_past;
}

void* SequenceCaches::present(int slot, int layer, Part part) const {
  return address(in_place_ ? places_[index(slot)] : spare_, layer, part);
}

void SequenceCaches::advance(int slot, int num_tokens) {
  if (!in_place_) std::swap(places_[index(slot)], spare_);
  lengths_[index(slot)] = num_tokens;
}

void SequenceCaches::copy(int from, int to, cudaStream_t stream) {
  cuda::check_cuda(
      cudaMemcpyAsync(address(places_[index(to)], 0, kKey), address(places_[index(from)], 0, kKey),
                      offsets_.back(), cudaMemcpyDeviceToDevice, stream),
      "copying keys and values");
  lengths_[index(to)] = lengths_[index(from)];
}

}  // namespace trtmc::tensorrt
