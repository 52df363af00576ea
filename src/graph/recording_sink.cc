#include "graph/recording_sink.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace trtmc {
namespace {

std::string name(NetworkTensor tensor) { return fmt::format("%{}", static_cast<int>(tensor)); }

std::string list(std::span<const Axis> axes) {
  std::vector<std::string> texts;
  for (const Axis& axis : axes) {
    texts.push_back(axis.length > 0 ? fmt::to_string(axis.length) : std::string(axis.name));
  }
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

// A NetworkTensor is the number of the line that made it.
class RecordingSink final : public NetworkSink {
 public:
  explicit RecordingSink(bool composed) : composed_(composed) {}

  NetworkTensor input(std::string_view text, ElementType type,
                      std::span<const Axis> axes) override {
    return line("input {} {} {}", text, element_type_name(type), list(axes));
  }
  void output(std::string_view text, ElementType /*type*/, NetworkTensor x,
              std::span<const Axis> axes) override {
    text_ += fmt::format("output {} {} {}\n", text, name(x), list(axes));
  }
  NetworkTensor embed(NetworkTensor ids, const TensorKey& table) override {
    return line("embed({}, {})", name(ids), to_string(table));
  }
  NetworkTensor linear(NetworkTensor x, const TensorKey& weight) override {
    return line("linear({}, {})", name(x), to_string(weight));
  }
  NetworkTensor vector(const TensorKey& weight) override {
    return line("vector({})", to_string(weight));
  }
  NetworkTensor constant(std::string_view text, const Shape& shape,
                         std::vector<float> values) override {
    if (values.size() == 1) return line("constant {} {}", text, values[0]);
    return line("constant {} {}", text, to_string(shape));
  }
  NetworkTensor binary(Binary operation, NetworkTensor a, NetworkTensor b) override {
    constexpr std::string_view kNames[] = {"add", "subtract", "multiply", "divide"};
    return line("{}({}, {})", kNames[static_cast<size_t>(operation)], name(a), name(b));
  }
  NetworkTensor unary(Unary operation, NetworkTensor x) override {
    return line("{}({})", operation == Unary::kSquareRoot ? "square_root" : "sigmoid", name(x));
  }
  NetworkTensor cast(NetworkTensor x, ElementType type) override {
    return line("cast({}, {})", name(x), element_type_name(type));
  }
  NetworkTensor mean(NetworkTensor x) override { return line("mean({})", name(x)); }
  NetworkTensor gather(NetworkTensor table, NetworkTensor indices) override {
    return line("gather({}, {})", name(table), name(indices));
  }
  NetworkTensor select_tokens(NetworkTensor x, NetworkTensor rows) override {
    return line("select_tokens({}, {})", name(x), name(rows));
  }
  NetworkTensor split_heads(NetworkTensor x, int heads) override {
    return line("split_heads({}, {})", name(x), heads);
  }
  NetworkTensor merge_heads(NetworkTensor x) override { return line("merge_heads({})", name(x)); }
  NetworkTensor slice(NetworkTensor x, int first, int count) override {
    return line("slice({}, {}, {})", name(x), first, count);
  }
  NetworkTensor concat(std::span<const NetworkTensor> parts, int axis) override {
    std::string names;
    for (const NetworkTensor part : parts) names += name(part) + ", ";
    return line("concat({}axis {})", names, axis);
  }
  NetworkTensor attention(NetworkTensor q, NetworkTensor k, NetworkTensor v, NetworkTensor mask,
                          ElementType /*type*/) override {
    return line("attention({}, {}, {}, mask {})", name(q), name(k), name(v), name(mask));
  }
  NetworkTensor update_cache(NetworkTensor cache, NetworkTensor update,
                             NetworkTensor write_indices) override {
    return line("update_cache({}, {}, at {})", name(cache), name(update), name(write_indices));
  }
  NetworkTensor causal_mask(NetworkTensor attention_mask, NetworkTensor ids, int window) override {
    const std::string bound = window > 0 ? fmt::format(", window {}", window) : "";
    return line("causal_mask({}, {}{})", name(attention_mask), name(ids), bound);
  }
  NetworkTensor rms_norm(NetworkTensor x, NetworkTensor weight, float epsilon) override {
    if (composed_) return NetworkSink::rms_norm(x, weight, epsilon);
    return line("rms_norm({}, {}, {})", name(x), name(weight), epsilon);
  }
  NetworkTensor rotate(NetworkTensor x, NetworkTensor cos, NetworkTensor sin, int rotary_dim,
                       int head_dim) override {
    if (composed_) return NetworkSink::rotate(x, cos, sin, rotary_dim, head_dim);
    return line("rotate({}, {}, {}, first {})", name(x), name(cos), name(sin), rotary_dim);
  }
  NetworkTensor silu(NetworkTensor x) override {
    if (composed_) return NetworkSink::silu(x);
    return line("silu({})", name(x));
  }

  std::string take_text() { return std::move(text_); }

 private:
  template <typename... Args>
  NetworkTensor line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format("%{} = ", num_lines_);
    text_ += fmt::format(format, std::forward<Args>(args)...);
    text_ += '\n';
    return NetworkTensor{num_lines_++};
  }

  bool composed_;
  std::string text_;
  int num_lines_ = 0;
};

}  // namespace

std::string record_as_text(const DecoderSpec& spec, const GraphForm& form, bool composed) {
  RecordingSink sink(composed);
  record_decoder(spec, form, sink);
  return sink.take_text();
}

}  // namespace trtmc
