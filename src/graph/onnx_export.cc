#include "graph/onnx_export.h"

#include "base/file.h"
#include "graph/decoder_route.h"
#include "graph/onnx_sink.h"
#include "trtmc/version.h"

namespace trtmc {
namespace {

void write_data(const OnnxSink& sink, const WeightStream& weights, AtomicFile& file,
                const ExportProgress& progress) {
  for (const OnnxData& data : sink.data()) {
    uint64_t offset = data.offset;
    const auto write = [&](std::span<const std::byte> piece) {
      file.write_at(offset, piece);
      offset += piece.size();
      progress(offset, sink.data_bytes());
    };
    if (const auto* matrix = std::get_if<OnnxData::Matrix>(&data.content)) {
      weights.read(matrix->key, matrix->type, matrix->order, write);
    } else if (const auto* part = std::get_if<OnnxData::Part>(&data.content)) {
      weights.read_part(part->key, part->part, part->order, write);
    } else {
      write(std::as_bytes(std::span(std::get<std::vector<float>>(data.content))));
    }
  }
}

}  // namespace

uint64_t export_onnx(const Bundle& bundle, const OnnxOptions& options,
                     const std::filesystem::path& folder, ThreadPool& pool,
                     const ExportProgress& progress) {
  check_fp32_layers(bundle.spec(), options.fp32_layers);
  const GraphForm form{
      .type = options.type, .fp32_layers = options.fp32_layers, .logits_type = options.type};
  OnnxSink sink(bundle, form, options.composed);
  record_decoder(bundle.spec(), form, sink);
  AtomicFile data(folder / kOnnxDataFile, sink.data_bytes(), AtomicFile::IfExists::kRefuse);
  write_data(sink, WeightStream(bundle, pool), data, progress);
  const std::string model =
      sink.graph().encode(bundle.manifest().family, TRTMC_VERSION_STRING, kOnnxDataFile);
  AtomicFile file(folder / kOnnxFile, model.size(), AtomicFile::IfExists::kRefuse);
  file.write_at(0, as_bytes(model));
  data.commit();
  file.commit();
  return sink.data_bytes() + model.size();
}

}  // namespace trtmc
