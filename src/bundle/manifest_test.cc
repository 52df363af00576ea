#include "bundle/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "tests/support/tiny_bundle.h"

namespace trtmc {
namespace {

using ::testing::HasSubstr;

// The manifest of tests/support/tiny_bundle, written by hand after docs/bundle_format.md.
constexpr std::string_view kTinyManifest =
    R"({"family":"smollm3","strategy":"smollm3_decoder_kv_cache","source":"tiny",)"
    R"("source_revision":"","source_files":[{"name":"config.json","bytes":12,"sha256":)"
    R"("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}],)"
    R"("producer":"trtmc 0.1.0","licence":"apache-2.0","unicode_version":"16.0.0",)"
    R"("spec":{"vocab_size":40,"hidden_size":24,"intermediate_size":40,"num_heads":6,)"
    R"("num_kv_heads":2,"head_dim":4,"context_length":128,"rms_norm_eps":1e-06,)"
    R"("tied_embeddings":true,"rope":{"theta":10000.0,"rotary_dim":4,"scaling":null},)"
    R"("layers":[{"rope":true,"sliding_window":0},{"rope":false,"sliding_window":16}]},)"
    R"("quantization":"none","stop_ids":[3,39],"sampling":{"temperature":0.6,"top_k":0,)"
    R"("top_p":0.95,"min_p":0.0,"repetition_penalty":1.0,"presence_penalty":0.0,)"
    R"("frequency_penalty":0.0},"markers":{"think_open":"<think>","think_close":"</think>",)"
    R"("tool_open":"","tool_close":""}})";

std::string complaint(const Json& json, ErrorCode code = ErrorCode::kCorrupt) {
  try {
    manifest_from_json(json);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "none";
}

// The tiny manifest after `edit`.
std::string complaint_after(const std::function<void(Manifest&)>& edit,
                            ErrorCode code = ErrorCode::kCorrupt) {
  Manifest manifest = tiny_manifest(true);
  edit(manifest);
  return complaint(to_json(manifest), code);
}

Manifest with_scaling(decltype(RopeSpec::scaling) scaling) {
  Manifest manifest = tiny_manifest(true);
  manifest.spec.rope.scaling = scaling;
  return manifest;
}

constexpr YarnScaling kYarn{.factor = 2.5,
                            .beta_fast = 32,
                            .beta_slow = 1,
                            .attention_factor = 1.0625,
                            .original_context = 64,
                            .truncate = true};
constexpr Llama3Scaling kLlama3{
    .factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_context = 64};

TEST(Manifest, IsThisText) { EXPECT_EQ(to_json(tiny_manifest(true)).dump(), kTinyManifest); }

TEST(Manifest, ReadsBackEqual) {
  EXPECT_EQ(manifest_from_json(Json::parse(kTinyManifest)), tiny_manifest(true));
  for (const Manifest& manifest : {with_scaling(kYarn), with_scaling(kLlama3)}) {
    EXPECT_EQ(manifest_from_json(Json::parse(to_json(manifest).dump())), manifest);
  }
}

TEST(Manifest, SpecialTokensFollowTheMarkersAndMayBeMissing) {
  Manifest manifest = tiny_manifest(true);
  manifest.special_tokens = {{"eos_token", "</s>"}, {"bos_token", "<s>"}};
  const std::string text = to_json(manifest).dump();
  EXPECT_THAT(text, HasSubstr(R"("tool_close":""},"special_tokens":{"bos_token":"<s>",)"
                              R"("eos_token":"</s>"}})"));
  EXPECT_EQ(manifest_from_json(Json::parse(text)), manifest);
}

TEST(Manifest, ScalingsHaveTheirTypesName) {
  EXPECT_THAT(to_json(with_scaling(kYarn)).dump(),
              HasSubstr(R"("scaling":{"type":"yarn","factor":2.5,"beta_fast":32.0,"beta_slow":1.0,)"
                        R"("attention_factor":1.0625,"original_context":64,)"
                        R"("truncate":true})"));
  EXPECT_THAT(to_json(with_scaling(kLlama3)).dump(),
              HasSubstr(R"("scaling":{"type":"llama3","factor":8.0,"low_freq_factor":1.0,)"
                        R"("high_freq_factor":4.0,"original_context":64})"));
}

TEST(Manifest, EveryEpsilonSurvives) {
  Manifest manifest = tiny_manifest(true);
  for (const float eps : {1e-5F, 1e-6F, 9.99999997e-7F, 3.4567891e-8F}) {
    manifest.spec.rms_norm_eps = eps;
    EXPECT_EQ(manifest_from_json(Json::parse(to_json(manifest).dump())).spec.rms_norm_eps, eps);
  }
}

// Calls visit(object) for every object in the tree.
void for_each_object(Json& json, const std::function<void(Json&)>& visit) {
  if (json.object() != nullptr) {
    visit(json);
    for (auto& [key, value] : *json.object()) for_each_object(value, visit);
  } else if (json.array() != nullptr) {
    for (Json& value : *json.array()) for_each_object(value, visit);
  }
}

TEST(Manifest, AMissingKeyIsRefusedAtEveryPlace) {
  for (const Manifest& manifest : {with_scaling(kYarn), with_scaling(kLlama3)}) {
    Json json = to_json(manifest);
    for_each_object(json, [&](Json& object) {
      const Json::Object whole = *object.object();
      for (size_t i = 0; i < whole.size(); ++i) {
        object.object()->erase(object.object()->begin() + static_cast<ptrdiff_t>(i));
        EXPECT_THAT(complaint(json), HasSubstr("\"" + whole[i].first + "\" is missing"));
        *object.object() = whole;
      }
    });
  }
}

TEST(Manifest, AnUnknownKeyIsRefusedAtEveryPlace) {
  for (const Manifest& manifest : {with_scaling(kYarn), with_scaling(kLlama3)}) {
    Json json = to_json(manifest);
    for_each_object(json, [&](Json& object) {
      object.set("extra", 1);
      EXPECT_THAT(complaint(json), HasSubstr("extra: unknown key"));
      object.object()->pop_back();
    });
  }
}

TEST(Manifest, AValueOfTheWrongKindIsRefusedAtEveryPlace) {
  for (const Manifest& manifest : {with_scaling(kYarn), with_scaling(kLlama3)}) {
    Json json = to_json(manifest);
    for_each_object(json, [&](Json& object) {
      for (auto& [key, value] : *object.object()) {
        const Json right = value;
        value = value.string() != nullptr ? Json(5) : Json("5");
        EXPECT_THAT(complaint(json), HasSubstr(key)) << key;
        value = right;
      }
    });
  }
}

TEST(Manifest, NamesTheValueThatIsOutOfRange) {
  EXPECT_THAT(complaint_after([](Manifest& m) { m.family = ""; }), HasSubstr("family"));
  EXPECT_THAT(complaint_after([](Manifest& m) { m.source = ""; }), HasSubstr("source"));
  EXPECT_THAT(complaint_after([](Manifest& m) { m.spec.num_kv_heads = 4; }), HasSubstr("KV heads"));
  EXPECT_THAT(complaint_after([](Manifest& m) { m.spec.vocab_size = 0; }),
              HasSubstr("spec.vocab_size"));
  EXPECT_THAT(complaint_after([](Manifest& m) { m.default_sampling.top_p = 1.5; }),
              HasSubstr("top_p"));
  EXPECT_THAT(complaint_after([](Manifest& m) {
                m.stop_ids = {3, 40};
              }),
              HasSubstr("40, expected rising ids below vocab_size 40"));
  EXPECT_THAT(complaint_after([](Manifest& m) { m.stop_ids = {3, 3}; }), HasSubstr("stop_ids"));
  EXPECT_THAT(complaint_after([](Manifest& m) { m.stop_ids = {-1}; }), HasSubstr("stop_ids"));
  EXPECT_THAT(complaint_after([](Manifest& m) { m.source_files[0].sha256.back() = 'G'; }),
              HasSubstr("config.json"));
  EXPECT_THAT(complaint_after([](Manifest& m) { m.source_files[0].sha256.pop_back(); }),
              HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(complaint_after([](Manifest& m) { m.markers.think_close = ""; }),
              HasSubstr("markers"));
}

TEST(Manifest, AnUnknownQuantizationIsUnsupported) {
  EXPECT_THAT(complaint_after([](Manifest& m) { m.quantization = "q3"; }, ErrorCode::kUnsupported),
              HasSubstr("\"q3\""));
}

TEST(Manifest, KeepsNoSeedAndNoBias) {
  Manifest manifest = tiny_manifest(true);
  manifest.default_sampling.seed = 7;
  EXPECT_THROW(validate(manifest), Error);
  manifest = tiny_manifest(true);
  manifest.default_sampling.logit_bias = {{1, 2.0F}};
  EXPECT_THROW(validate(manifest), Error);
}

}  // namespace
}  // namespace trtmc
