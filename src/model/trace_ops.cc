#include "model/trace_ops.h"

#include <fmt/format.h>

namespace trtmc {
namespace {

// A Value is the number of the line that made it.
class TraceOps final : public DecoderOps {
 public:
  Value embed(TensorKey table) override { return line("embed({})", to_string(table)); }
  Value rms_norm(Value x, TensorKey weight, float eps) override {
    return line("rms_norm({}, {}, {})", name(x), to_string(weight), eps);
  }
  Value linear(Value x, TensorKey weight) override {
    return line("linear({}, {})", name(x), to_string(weight));
  }
  Value rope(Value x, const RopeSpec& rope, int num_heads) override {
    return line("rope({}, heads {}, theta {}{})", name(x), num_heads, rope.theta,
                scaling_name(rope));
  }
  Value attention(Value q, Value k, Value v, int layer, const LayerSpec& spec) override {
    const std::string window =
        spec.sliding_window > 0 ? fmt::format(", window {}", spec.sliding_window) : "";
    return line("attention({}, {}, {}, layer {}{})", name(q), name(k), name(v), layer, window);
  }
  Value swiglu(Value gate, Value up) override {
    return line("swiglu({}, {})", name(gate), name(up));
  }
  Value add(Value a, Value b) override { return line("add({}, {})", name(a), name(b)); }
  Value select_rows(Value x) override { return line("select_rows({})", name(x)); }

  std::string take_text() { return std::move(text_); }

 private:
  static std::string name(Value value) { return fmt::format("%{}", static_cast<int>(value)); }

  static std::string_view scaling_name(const RopeSpec& rope) {
    if (std::holds_alternative<YarnScaling>(rope.scaling)) return ", yarn";
    if (std::holds_alternative<Llama3Scaling>(rope.scaling)) return ", llama3";
    return "";
  }

  template <typename... Args>
  Value line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format("%{} = ", num_lines_);
    text_ += fmt::format(format, std::forward<Args>(args)...);
    text_ += '\n';
    return Value{num_lines_++};
  }

  std::string text_;
  int num_lines_ = 0;
};

}  // namespace

std::string trace_decoder(const DecoderSpec& spec) {
  TraceOps ops;
  decoder_forward(spec, ops);
  return ops.take_text();
}

}  // namespace trtmc
