#include "graph/network_sink.h"

#include <array>

#include "base/check.h"

namespace trtmc {

std::string_view element_type_name(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return "f32";
    case ElementType::kFloat16:
      return "f16";
    case ElementType::kBFloat16:
      return "bf16";
    case ElementType::kInt32:
      return "i32";
    case ElementType::kInt64:
      return "i64";
    case ElementType::kBool:
      return "bool";
  }
  TRTMC_CHECK(false, "not an element type");
}

size_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
    case ElementType::kInt32:
      return 4;
    case ElementType::kFloat16:
    case ElementType::kBFloat16:
      return 2;
    case ElementType::kInt64:
      return 8;
    case ElementType::kBool:
      return 1;
  }
  TRTMC_CHECK(false, "not an element type");
}

NetworkTensor NetworkSink::rms_norm(NetworkTensor x, NetworkTensor weight, float epsilon) {
  const NetworkTensor added = constant("epsilon", {1, 1, 1}, {epsilon});
  const NetworkTensor mean_square = mean(binary(Binary::kMultiply, x, x));
  const NetworkTensor root = unary(Unary::kSquareRoot, binary(Binary::kAdd, mean_square, added));
  return binary(Binary::kMultiply, binary(Binary::kDivide, x, root), weight);
}

NetworkTensor NetworkSink::rotate(NetworkTensor x, NetworkTensor cos, NetworkTensor sin,
                                  int rotary_dim, int head_dim) {
  const int half = rotary_dim / 2;
  const NetworkTensor c = split_heads(cos, 1);
  const NetworkTensor s = split_heads(sin, 1);
  const NetworkTensor a = slice(x, 0, half);
  const NetworkTensor b = slice(x, half, half);
  const auto product = [&](NetworkTensor left, NetworkTensor right) {
    return binary(Binary::kMultiply, left, right);
  };
  // Named, so that every compiler records them in this order.
  const NetworkTensor ac = product(a, c);
  const NetworkTensor bs = product(b, s);
  const NetworkTensor bc = product(b, c);
  const NetworkTensor as = product(a, s);
  const NetworkTensor first = binary(Binary::kSubtract, ac, bs);
  const NetworkTensor second = binary(Binary::kAdd, bc, as);
  constexpr int kLastAxis = 3;
  if (rotary_dim == head_dim) return concat(std::array{first, second}, kLastAxis);
  const NetworkTensor rest = slice(x, rotary_dim, head_dim - rotary_dim);
  return concat(std::array{first, second, rest}, kLastAxis);
}

NetworkTensor NetworkSink::silu(NetworkTensor x) {
  return binary(Binary::kMultiply, x, unary(Unary::kSigmoid, x));
}

}  // namespace trtmc
