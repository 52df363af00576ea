#include "families/rope_config.h"

#include <gmock/gmock.h>

#include "tests/support/captured_log.h"
#include "tests/support/error_of.h"

namespace trtmc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kHeadDim = 128;
constexpr int kContext = 65536;
constexpr double kDefaultTheta = 2000000;

RopeSpec read(std::string_view config, int context = kContext) {
  const Json json = Json::parse(config);
  return read_rope(JsonCursor(json), kHeadDim, context, kDefaultTheta);
}

YarnScaling read_yarn(std::string_view config, int context = kContext) {
  return std::get<YarnScaling>(read(config, context).scaling);
}

std::string complaint(ErrorCode code, std::string_view config) {
  const CapturedLog log;
  const Error error = error_of([&] { read(config); });
  EXPECT_EQ(error.code(), code) << error.what();
  return error.what();
}

TEST(RopeConfig, BothStylesOfTransformersSayTheSame) {
  const RopeSpec four = read(
      R"({"rope_theta": 5000000.0, "rope_scaling":
          {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 65536}})",
      131072);
  const RopeSpec five = read(
      R"({"rope_parameters": {"rope_theta": 5000000.0, "rope_type": "yarn", "factor": 2.0,
                              "original_max_position_embeddings": 65536}})",
      131072);
  EXPECT_EQ(four, five);
  EXPECT_EQ(four.theta, 5000000);
  EXPECT_EQ(four.rotary_dim, 128);
  EXPECT_EQ(std::get<YarnScaling>(four.scaling),
            (YarnScaling{.factor = 2,
                         .beta_fast = 32,
                         .beta_slow = 1,
                         .attention_factor = 1.0693147180559945,
                         .original_context = 65536,
                         .truncate = true}));
}

TEST(RopeConfig, TheCardsRecipeUsesTheLegacyKeyType) {
  const CapturedLog log;
  const YarnScaling yarn = read_yarn(
      R"({"rope_theta": 5e6, "rope_scaling":
          {"factor": 2.0, "original_max_position_embeddings": 65536, "type": "yarn"}})",
      131072);
  EXPECT_EQ(yarn.factor, 2);
  EXPECT_THAT(log.lines(), IsEmpty());
}

TEST(RopeConfig, NullAndEmptySettingsAreNone) {
  for (const std::string_view settings : {"null", "{}"}) {
    const RopeSpec rope =
        read(R"({"rope_theta": 10000, "rope_scaling": )" + std::string(settings) + "}");
    EXPECT_EQ(rope, (RopeSpec{.theta = 10000, .rotary_dim = 128, .scaling = {}}));
  }
}

TEST(RopeConfig, AMissingThetaIsTheClassDefaultWithAWarning) {
  const CapturedLog log;
  EXPECT_EQ(read(R"({"rope_scaling": null})").theta, 2000000);
  EXPECT_THAT(log.lines(), ElementsAre(HasSubstr("rope_theta is missing")));
}

TEST(RopeConfig, TwoThetasMustAgree) {
  EXPECT_EQ(
      read(
          R"({"rope_theta": 5e6, "rope_parameters": {"rope_type": "default", "rope_theta": 5000000}})")
          .theta,
      5000000);
  EXPECT_THAT(complaint(ErrorCode::kInvalidArgument,
                        R"({"rope_theta": 1e4, "rope_parameters": {"rope_theta": 5e6}})"),
              HasSubstr("rope_parameters.rope_theta: 5000000, but the configuration's own "
                        "rope_theta is 10000"));
}

TEST(RopeConfig, ScalingAndParametersMustAgree) {
  constexpr std::string_view kYarn =
      R"({"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 32768})";
  const std::string both =
      R"({"rope_theta": 5e6, "rope_scaling": )" + std::string(kYarn) + R"(, "rope_parameters": )";
  EXPECT_EQ(read_yarn(both + std::string(kYarn) + "}").factor, 2);
  EXPECT_THAT(complaint(ErrorCode::kInvalidArgument, both + R"({"rope_type": "default"}})"),
              HasSubstr("rope_scaling: contradicts rope_parameters"));
}

TEST(RopeConfig, TypeAndRopeTypeMustAgree) {
  EXPECT_THAT(complaint(ErrorCode::kInvalidArgument,
                        R"({"rope_scaling": {"rope_type": "yarn", "type": "linear"}})"),
              HasSubstr(R"(rope_scaling.rope_type: "yarn", but type is "linear")"));
}

TEST(RopeConfig, AFactorWithoutATypeIsRefused) {
  EXPECT_THAT(complaint(ErrorCode::kInvalidArgument, R"({"rope_scaling": {"factor": 2.0}})"),
              HasSubstr("rope_scaling: \"factor\" is given, but no rope_type"));
}

TEST(RopeConfig, UnknownTypesAreRefusedByName) {
  for (const std::string type : {"linear", "dynamic", "longrope", "proportional", "YARN", ""}) {
    EXPECT_THAT(complaint(ErrorCode::kUnsupported,
                          R"({"rope_scaling": {"factor": 2.0, "rope_type": ")" + type + "\"}}"),
                AllOf(HasSubstr("rope_scaling: rope type \"" + type + "\" is not supported"),
                      HasSubstr("default, yarn or llama3")));
  }
}

TEST(RopeConfig, SettingsPerLayerTypeAreRefusedByName) {
  EXPECT_THAT(complaint(ErrorCode::kUnsupported,
                        R"({"rope_parameters": {"full_attention": {"rope_type": "default"}}})"),
              HasSubstr("rope_parameters.full_attention: "));
}

TEST(RopeConfig, PartialRotationIsRefused) {
  EXPECT_EQ(read(R"({"rope_theta": 1e4, "partial_rotary_factor": 1.0})").rotary_dim, 128);
  EXPECT_THAT(complaint(ErrorCode::kUnsupported, R"({"partial_rotary_factor": 0.5})"),
              HasSubstr("partial_rotary_factor: 0.5, expected 1"));
  EXPECT_THAT(
      complaint(ErrorCode::kUnsupported, R"({"rope_parameters": {"partial_rotary_factor": 0.25}})"),
      HasSubstr("rope_parameters.partial_rotary_factor: 0.25, expected 1"));
}

TEST(RopeConfig, ValuesOfTheWrongKindAreNamed) {
  EXPECT_THAT(complaint(ErrorCode::kInvalidArgument, R"({"rope_theta": "5e6"})"),
              HasSubstr("rope_theta: a string, expected a number"));
  EXPECT_THAT(complaint(ErrorCode::kInvalidArgument,
                        R"({"rope_scaling": {"rope_type": "yarn", "factor": "2"}})"),
              HasSubstr("rope_scaling.factor: a string, expected a number"));
  EXPECT_THAT(complaint(ErrorCode::kInvalidArgument,
                        R"({"rope_scaling": {"rope_type": "yarn", "factor": 2, "truncate": 1}})"),
              HasSubstr("rope_scaling.truncate: an integer, expected true or false"));
  EXPECT_THAT(complaint(ErrorCode::kInvalidArgument, R"({"rope_scaling": "yarn"})"),
              HasSubstr("rope_scaling: a string, expected an object"));
  EXPECT_THAT(complaint(ErrorCode::kInvalidArgument, R"({"rope_scaling": {"rope_type": "yarn",
                "factor": 2, "original_max_position_embeddings": 4294967296}})"),
              HasSubstr("rope_scaling.original_max_position_embeddings: 4294967296"));
}

TEST(RopeConfig, TheExplicitFactorCountsAndADisagreementIsLogged) {
  const CapturedLog log;
  const YarnScaling yarn = read_yarn(
      R"({"rope_theta": 5e6, "rope_scaling":
          {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 65536}})",
      65536);
  EXPECT_EQ(yarn.factor, 2);
  EXPECT_THAT(log.lines(), ElementsAre(AllOf(HasSubstr("rope_scaling.factor is 2"),
                                             HasSubstr("is 1; the factor counts"))));
}

TEST(RopeConfig, WithoutAFactorItIsTheRatioOfTheContexts) {
  for (const std::string_view factor : {"", R"("factor": null, )"}) {
    const YarnScaling yarn =
        read_yarn(R"({"rope_theta": 5e6, "rope_scaling": {)" + std::string(factor) +
                      R"("rope_type": "yarn",
                                              "original_max_position_embeddings": 65536}})",
                  196608);
    EXPECT_EQ(yarn.factor, 3);
    EXPECT_DOUBLE_EQ(yarn.attention_factor, 1.109861228866811);  // 0.1 ln 3 + 1
  }
}

TEST(RopeConfig, TheOriginalContextMayStandOutsideAndMustAgree) {
  EXPECT_EQ(read_yarn(R"({"rope_theta": 5e6, "original_max_position_embeddings": 32768,
                          "rope_scaling": {"rope_type": "yarn", "factor": 2}})")
                .original_context,
            32768);
  EXPECT_THAT(complaint(ErrorCode::kInvalidArgument,
                        R"({"original_max_position_embeddings": 4096, "rope_scaling":
              {"rope_type": "yarn", "factor": 2, "original_max_position_embeddings": 8192}})"),
              HasSubstr("original_max_position_embeddings: 8192, but the configuration's own"));
}

TEST(RopeConfig, WithoutAnOriginalContextItIsTheContext) {
  const CapturedLog log;
  const YarnScaling yarn =
      read_yarn(R"({"rope_theta": 5e6, "rope_scaling": {"rope_type": "yarn", "factor": 2}})");
  EXPECT_EQ(yarn.original_context, kContext);
  EXPECT_THAT(log.lines(), IsEmpty());
}

TEST(RopeConfig, KeysWithoutMeaningAreWarnedOf) {
  const CapturedLog log;
  read(
      R"({"rope_theta": 5e6, "rope_scaling": {"rope_type": "yarn", "factor": 2, "attn_factor": 3}})");
  read(R"({"rope_theta": 5e6, "rope_scaling": {"rope_type": "default", "factor": 2}})");
  EXPECT_THAT(log.lines(),
              ElementsAre(HasSubstr("rope_scaling.attn_factor: has no meaning for rope type yarn"),
                          HasSubstr("rope_scaling.factor: has no meaning for rope type default")));
}

TEST(RopeConfig, Llama3NeedsItsThreeFactors) {
  const RopeSpec rope = read(
      R"({"rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
          "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}})",
      131072);
  EXPECT_EQ(std::get<Llama3Scaling>(rope.scaling), (Llama3Scaling{8, 1, 4, 8192}));
  EXPECT_THAT(complaint(ErrorCode::kInvalidArgument,
                        R"({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}})"),
              HasSubstr("rope_scaling: \"low_freq_factor\" is missing"));
}

}  // namespace
}  // namespace trtmc
