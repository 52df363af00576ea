// What differs between the versions of TensorRT that this can be compiled against: 10.14 to 11.
#pragma once

#include <NvInfer.h>

#include "base/error.h"

namespace trtmc::tensorrt {

// Attention without a mask of its own and without a scale; null if it is refused.
inline nvinfer1::IAttention* add_attention(nvinfer1::INetworkDefinition& network,
                                           nvinfer1::ITensor& q, nvinfer1::ITensor& k,
                                           nvinfer1::ITensor& v) {
  constexpr auto kSoftmax = nvinfer1::AttentionNormalizationOp::kSOFTMAX;
#if NV_TENSORRT_MAJOR > 10 || NV_TENSORRT_MINOR >= 16  // Where the older one is deprecated.
  return network.addAttentionV2(q, k, v, kSoftmax, nvinfer1::CausalMaskKind::kNONE);
#else
  return network.addAttention(q, k, v, kSoftmax, false);
#endif
}

// Writes `update` into `cache` at `write_indices`; null if it is refused.
#if NV_TENSORRT_MAJOR > 10 || NV_TENSORRT_MINOR >= 15
inline nvinfer1::ILayer* add_cache_update(nvinfer1::INetworkDefinition& network,
                                          nvinfer1::ITensor& cache, nvinfer1::ITensor& update,
                                          nvinfer1::ITensor& write_indices) {
  return network.addKVCacheUpdate(cache, update, write_indices, nvinfer1::KVCacheMode::kLINEAR);
}
#else
// Never asked for: the route in place is not taken with these versions.
inline nvinfer1::ILayer* add_cache_update(nvinfer1::INetworkDefinition& /*network*/,
                                          nvinfer1::ITensor& /*cache*/,
                                          nvinfer1::ITensor& /*update*/,
                                          nvinfer1::ITensor& /*write_indices*/) {
  return nullptr;
}
#endif

}  // namespace trtmc::tensorrt
