#include "cli/model_card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trtmc {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(ModelCard, NamesLicenceAndSource) {
  Manifest manifest{};
  manifest.source = "owner/a_model-3B";
  manifest.source_revision = "0123abc";
  manifest.licence = "apache-2.0";
  manifest.quantization = "none";
  const std::string card = model_card(manifest, "f16");
  EXPECT_THAT(card, StartsWith("---\nlicense: \"apache-2.0\"\ntags: [onnx]\n---\n\n"
                               "# owner/a_model-3B as ONNX\n\n"
                               "The decoder of owner/a_model-3B@0123abc as an ONNX model of opset "
                               "23 in f16, "));
  EXPECT_THAT(card, HasSubstr("Weights were not quantised in the bundle."));
}

TEST(ModelCard, TakesNoMarkupFromTheManifest) {
  Manifest manifest{};
  manifest.source = "a\n# b<script>[c](d)";
  manifest.licence = "mit\nextra: \"yes\"\n---";
  manifest.quantization = "q4";
  const std::string card = model_card(manifest, "f32");
  EXPECT_THAT(card, StartsWith(R"(---
license: "mit\nextra: \"yes\"\n---"
tags: [onnx]
---

# a # b script  c  d  as ONNX

)"));
}

}  // namespace
}  // namespace trtmc
