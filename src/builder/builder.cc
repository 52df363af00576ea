#include "builder/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "base/check.h"
#include "base/error.h"
#include "builder/parallel_tasks.h"
#include "bundle/bundle_writer.h"
#include "tensor/block_formats.h"
#include "tensor/quantize.h"

namespace trtmc {
namespace {

// What one thread reads or writes at a time: large for the system's sake, small for the caches'.
constexpr size_t kChunkBytes = size_t{1} << 20;

// Read instead of mapped, so that a file of any size takes one buffer of memory.
Sha256Digest hash_file(const std::filesystem::path& path, Advance advance) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> buffer(kChunkBytes);
  Sha256 hash;
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const auto got = static_cast<size_t>(file.gcount());
    hash.update(std::as_bytes(std::span(buffer).first(got)));
    advance(got);
  }
  if (!file.eof()) {
    throw Error(ErrorCode::kNotFound, fmt::format("{}: can't read it", path.string()));
  }
  return hash.finish();
}

// The rows of a planned tensor's sources, one below the other.
class SourceRows {
 public:
  SourceRows(const Checkpoint& checkpoint, const PlannedTensor& planned) : checkpoint_(checkpoint) {
    for (const std::string& name : planned.sources) {
      std::optional<CheckpointTensor> tensor = checkpoint.tensor(name);
      TRTMC_CHECK(tensor && !tensor->shape.empty(), "the plan has checked its sources");
      tensors_.push_back(*std::move(tensor));
    }
  }

  // Calls visit(bytes, dtype) with rows [first, last), those of one source at a time. The bytes
  // live until the next call.
  template <typename Visit>
  void for_each_part(int64_t first, int64_t last, Visit visit) {
    buffers_.resize(tensors_.size());
    int64_t start = 0;  // Which of all rows is this tensor's first.
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const CheckpointTensor& tensor = tensors_[i];
      const int64_t end = start + tensor.shape[0];
      const int64_t from = std::max(first, start), to = std::min(last, end);
      if (from < to) visit(tensor.rows(from - start, to - start, buffers_[i]), tensor.dtype);
      start = end;
    }
  }

  // Rows [first, last), each in its bytes, which live until the next call.
  std::vector<std::span<const std::byte>> rows(int64_t first, int64_t last) {
    const size_t row_bytes = tensors_[0].row_bytes();
    std::vector<std::span<const std::byte>> result;
    for_each_part(first, last, [&](std::span<const std::byte> part, DType) {
      for (size_t at = 0; at < part.size(); at += row_bytes) {
        result.push_back(part.subspan(at, row_bytes));
      }
    });
    return result;
  }

  // Rows [first, last) won't be read again.
  void release(int64_t first, int64_t last) const {
    int64_t start = 0;
    for (const CheckpointTensor& tensor : tensors_) {
      const int64_t end = start + tensor.shape[0];
      const int64_t from = std::max(first, start), to = std::min(last, end);
      if (from < to) checkpoint_.release(tensor, from - start, to - start);
      start = end;
    }
  }

 private:
  const Checkpoint& checkpoint_;
  std::vector<CheckpointTensor> tensors_;
  std::vector<std::vector<std::byte>> buffers_;  // A buffer for each.
};

// Calls fill(first, last, out) for the rows [first, last) of each panel of a matrix, and writes
// what is in `out` then, many panels at a time: what is written starts its way to the disk in large
// parts, and what was read is given back so.
void write_filled(const PackedLayout& layout, SourceRows& source, Advance advance,
                  FunctionRef<void(std::span<const std::byte>)> write,
                  FunctionRef<void(int64_t, int64_t, std::span<std::byte>)> fill) {
  const size_t panel_bytes = layout.panel_bytes();
  const size_t panels_at_once = std::max<size_t>(1, kChunkBytes / panel_bytes);
  const int64_t rows_at_once = static_cast<int64_t>(panels_at_once) * PackedLayout::kPanelRows;
  std::vector<std::byte> buffer(panels_at_once * panel_bytes);
  for (int64_t start = 0; start < layout.rows; start += rows_at_once) {
    const int64_t end = std::min(start + rows_at_once, layout.rows);
    size_t filled = 0;
    for (int64_t first = start; first < end; first += PackedLayout::kPanelRows) {
      fill(first, std::min(first + PackedLayout::kPanelRows, end),
           std::span(buffer).subspan(filled, panel_bytes));
      filled += panel_bytes;
    }
    write(std::span(buffer).first(filled));
    source.release(start, end);
    advance(filled);
  }
}

// A matrix whose elements keep their type, so their bits too.
void write_panels(const PlannedTensor& planned, SourceRows& source, Advance advance,
                  FunctionRef<void(std::span<const std::byte>)> write) {
  const PackedLayout layout{planned.dtype, planned.shape[0], planned.shape[1]};
  write_filled(layout, source, advance, write,
               [&](int64_t first, int64_t last, std::span<std::byte> out) {
                 pack_panel_bytes(layout, source.rows(first, last), out);
               });
}

// Rows as floats that a quantised type can hold.
class QuantizableRows {
 public:
  QuantizableRows(const PlannedTensor& planned, SourceRows& source)
      : name_(planned.sources.front()),
        source_(source),
        cols_(static_cast<size_t>(planned.shape[1])),
        values_(static_cast<size_t>(PackedLayout::kPanelRows) * cols_) {}

  // Rows [first, last) of a panel, which live until the next call.
  std::vector<std::span<const float>> read(int64_t first, int64_t last) {
    size_t at = 0;
    source_.for_each_part(first, last, [&](std::span<const std::byte> part, DType dtype) {
      const size_t count = part.size() / element_bytes(dtype);
      read_floats({dtype, {static_cast<int64_t>(count)}, part}, 0,
                  std::span(values_).subspan(at, count));
      at += count;
    });
    std::vector<std::span<const float>> rows;
    for (size_t start = 0; start < at; start += cols_) {
      rows.emplace_back(std::span(values_).subspan(start, cols_));
      if (!is_quantizable(rows.back())) refuse(first + static_cast<int64_t>(rows.size()) - 1);
    }
    return rows;
  }

 private:
  [[noreturn]] void refuse(int64_t row) const {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("tensor \"{}\": row {} has a weight that is not finite or beyond {}, "
                            "which no quantised type holds",
                            name_, row, kMaxQuantizedMagnitude),
                "build it without --quant, which keeps every weight as it is");
  }

  const std::string& name_;
  SourceRows& source_;
  size_t cols_;
  std::vector<float> values_;  // Of a panel.
};

void write_quantized(const PlannedTensor& planned, SourceRows& source, Advance advance,
                     FunctionRef<void(std::span<const std::byte>)> write) {
  const PackedLayout layout{planned.dtype, planned.shape[0], planned.shape[1]};
  QuantizableRows floats(planned, source);
  write_filled(layout, source, advance, write,
               [&](int64_t first, int64_t last, std::span<std::byte> out) {
                 quantize_panel(layout, floats.read(first, last), out);
               });
}

// A vector, as f32.
void write_floats(const PlannedTensor& planned, SourceRows& source, Advance advance,
                  FunctionRef<void(std::span<const std::byte>)> write) {
  source.for_each_part(0, planned.shape[0], [&](std::span<const std::byte> part, DType dtype) {
    std::vector<float> values(part.size() / element_bytes(dtype));
    read_floats({dtype, {static_cast<int64_t>(values.size())}, part}, 0, values);
    write(std::as_bytes(std::span(values)));
    advance(values.size() * sizeof(float));
  });
}

void write_tensor(const BuildPlan& plan, size_t index, BundleWriter& writer, Advance advance) {
  const PlannedTensor& planned = plan.tensors[index];
  SourceRows source(*plan.checkpoint, planned);
  const auto write = [&](std::span<const std::byte> bytes) { writer.append(index, bytes); };
  if (is_quantized(planned.dtype)) {
    write_quantized(planned, source, advance, write);
  } else if (planned.layout == TensorLayout::kPanels16) {
    write_panels(planned, source, advance, write);
  } else {
    write_floats(planned, source, advance, write);
  }
}

}  // namespace

void build_bundle(const BuildPlan& plan, const std::filesystem::path& path,
                  AtomicFile::IfExists if_exists, ThreadPool& pool, const BuildProgress& progress) {
  const std::vector<std::filesystem::path> files = plan.checkpoint->files();
  TRTMC_CHECK(files.size() == plan.manifest.source_files.size(), "the plan is of this checkpoint");
  BundleWriter writer(path, plan.manifest, planned_sections(plan), if_exists);

  std::vector<ParallelTask> tasks;
  for (size_t i = 0; i < files.size(); ++i) {
    tasks.push_back({plan.manifest.source_files[i].bytes, [&, i](Advance advance) {
                       writer.set_file_hash(i, hash_file(files[i], advance));
                     }});
  }
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    tasks.push_back({writer.sections()[i].bytes,
                     [&, i](Advance advance) { write_tensor(plan, i, writer, advance); }});
  }
  run_tasks(std::move(tasks), pool, progress);
  size_t next = plan.tensors.size();
  if (!plan.tokenizer_tables.empty()) writer.append(next++, plan.tokenizer_tables);
  if (plan.chat_template) writer.append(next++, as_bytes(*plan.chat_template));
  writer.commit();
}

}  // namespace trtmc
