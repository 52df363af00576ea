#include "graph/decoder_route.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "tests/support/error_of.h"

namespace trtmc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kGiga = 1'000'000'000;

// SmolLM3-3B: 3 075 098 624 parameters, 73 728 keys and values a token.
RouteQuestion smollm3() {
  DecoderSpec spec{.vocab_size = 128256,
                   .hidden_size = 2048,
                   .intermediate_size = 11008,
                   .num_heads = 16,
                   .num_kv_heads = 4,
                   .head_dim = 128,
                   .context_length = 65536,
                   .rms_norm_eps = 1e-6F,
                   .tied_embeddings = true,
                   .rope = {.theta = 5'000'000, .rotary_dim = 128, .scaling = {}},
                   .layers = {}};
  for (int i = 0; i < 36; ++i) spec.layers.push_back({.rope = i % 4 != 3, .sliding_window = 0});
  RouteQuestion question;
  question.spec = spec;
  return question;
}

const RouteVerdict& verdict(const RouteDecision& decision, DecoderRoute route) {
  return decision.verdicts.at(static_cast<size_t>(route));
}

// The subjects that speak against the route.
std::vector<std::string> against(const RouteDecision& decision, DecoderRoute route) {
  std::vector<std::string> subjects;
  for (const RouteReason& reason : verdict(decision, route).reasons) {
    if (!reason.in_favour) subjects.push_back(reason.subject);
  }
  return subjects;
}

std::string text_of(const RouteDecision& decision, DecoderRoute route, const std::string& subject) {
  for (const RouteReason& reason : verdict(decision, route).reasons) {
    if (reason.subject == subject) return reason.text;
  }
  return "no such subject";
}

struct RouteCase {
  std::string name;
  std::function<void(RouteQuestion&)> change;
  std::optional<DecoderRoute> taken;
  std::vector<std::string> native, standard, dual;  // The subjects against each.
};

void PrintTo(const RouteCase& route_case, std::ostream* out) { *out << route_case.name; }

class DecoderRoutes : public testing::TestWithParam<RouteCase> {};

TEST_P(DecoderRoutes, AreTakenForTheReasonsGiven) {
  RouteQuestion question = smollm3();
  GetParam().change(question);
  const RouteDecision decision = choose_decoder_route(question);
  EXPECT_EQ(decision.taken(), GetParam().taken);
  EXPECT_EQ(against(decision, DecoderRoute::kNativeKv), GetParam().native);
  EXPECT_EQ(against(decision, DecoderRoute::kStandard), GetParam().standard);
  EXPECT_EQ(against(decision, DecoderRoute::kDualProfile), GetParam().dual);
}

constexpr auto kNativeKv = DecoderRoute::kNativeKv;
constexpr auto kStandard = DecoderRoute::kStandard;
constexpr auto kDualProfile = DecoderRoute::kDualProfile;

const RouteCase kCases[] = {
    {"Published", [](RouteQuestion&) {}, kNativeKv, {}, {}, {}},
    {"F32", [](RouteQuestion& q) { q.precision = DType::kF32; }, kStandard, {"precision"}, {}, {}},
    {"F16", [](RouteQuestion& q) { q.precision = DType::kF16; }, kStandard, {"precision"}, {}, {}},
    {"Q8", [](RouteQuestion& q) { q.quantization = "q8"; }, kStandard, {"quantisation"}, {}, {}},
    {"Q4", [](RouteQuestion& q) { q.quantization = "q4"; }, kStandard, {"quantisation"}, {}, {}},
    {"Q6", [](RouteQuestion& q) { q.quantization = "q6"; }, kStandard, {"quantisation"}, {}, {}},
    {"Gelu",
     [](RouteQuestion& q) { q.activation = "gelu"; },
     std::nullopt,
     {"activation"},
     {"activation"},
     {"activation"}},
    {"Biases",
     [](RouteQuestion& q) { q.biases = true; },
     std::nullopt,
     {"biases"},
     {"biases"},
     {"biases"}},
    {"HeadsOf64", [](RouteQuestion& q) { q.spec.head_dim = 64; }, kNativeKv, {}, {}, {}},
    {"HeadsOf96", [](RouteQuestion& q) { q.spec.head_dim = 96; }, kStandard, {"heads"}, {}, {}},
    {"HeadsOf256", [](RouteQuestion& q) { q.spec.head_dim = 256; }, kStandard, {"heads"}, {}, {}},
    {"OneWindow",
     [](RouteQuestion& q) { q.spec.layers[7].sliding_window = 4096; },
     kStandard,
     {"attention"},
     {},
     {}},
    {"Yarn",
     [](RouteQuestion& q) {
       q.spec.rope.scaling = YarnScaling{2, 32, 1, 1.0693147180559945, 65536, true};
     },
     kNativeKv,
     {},
     {},
     {}},
    {"Llama3Scaling",
     [](RouteQuestion& q) {
       q.spec.rope.scaling = Llama3Scaling{8, 1, 4, 8192};
     },
     kNativeKv,
     {},
     {},
     {}},
    {"EveryLayerRotates",
     [](RouteQuestion& q) {
       for (LayerSpec& layer : q.spec.layers) layer.rope = true;
     },
     kNativeKv,
     {},
     {},
     {}},
    {"Float32Layers",
     [](RouteQuestion& q) {
       q.fp32_layers = {0, 35};
     },
     kNativeKv,
     {},
     {},
     {}},
    {"ShortCapacity", [](RouteQuestion& q) { q.capacity = 1; }, kNativeKv, {}, {}, {}},
    {"TooManyKeys",
     [](RouteQuestion& q) { q.spec.context_length = 4'194'304; },  // Times 512: 2^31.
     std::nullopt,
     {"capacity"},
     {"capacity"},
     {"capacity"}},
    {"AsManyKeysAsGo",
     [](RouteQuestion& q) { q.spec.context_length = 4'194'303; },
     kNativeKv,
     {},
     {},
     {}},
    // Weights of 6.15 GB, 4.83 GB of keys and values: 10.98, 21.96 and 15.81 GB.
    {"RoomForAll", [](RouteQuestion& q) { q.device_bytes = 22 * kGiga; }, kNativeKv, {}, {}, {}},
    {"RoomForNativeAlone",
     [](RouteQuestion& q) { q.device_bytes = 11 * kGiga; },
     kNativeKv,
     {},
     {"memory"},
     {"memory"}},
    {"RoomForOneEngine",
     [](RouteQuestion& q) {
       q.device_bytes = 16 * kGiga;
       q.version = {10, 14};
     },
     kDualProfile,
     {"TensorRT"},
     {"memory"},
     {}},
    {"NoRoom",
     [](RouteQuestion& q) { q.device_bytes = 10 * kGiga; },
     std::nullopt,
     {"memory"},
     {"memory"},
     {"memory"}},
    {"RoomForAShortContext",
     [](RouteQuestion& q) {
       q.device_bytes = 10 * kGiga;
       q.capacity = 4096;
     },
     kNativeKv,
     {},
     {"memory"},
     {}},
    {"TensorRt9",
     [](RouteQuestion& q) {
       q.version = {9, 3};
     },
     std::nullopt,
     {"TensorRT"},
     {"TensorRT"},
     {"TensorRT"}},
    {"TensorRt10_13",
     [](RouteQuestion& q) {
       q.version = {10, 13};
     },
     std::nullopt,
     {"TensorRT"},
     {"TensorRT"},
     {"TensorRT"}},
    {"TensorRt10_14",
     [](RouteQuestion& q) {
       q.version = {10, 14};
     },
     kStandard,
     {"TensorRT"},
     {},
     {}},
    {"TensorRt10_15",
     [](RouteQuestion& q) {
       q.version = {10, 15};
     },
     kNativeKv,
     {},
     {},
     {}},
    {"TensorRt12",
     [](RouteQuestion& q) {
       q.version = {12, 0};
     },
     std::nullopt,
     {"TensorRT"},
     {"TensorRT"},
     {"TensorRT"}},
    {"SeveralReasons",
     [](RouteQuestion& q) {
       q.precision = DType::kF16;
       q.spec.head_dim = 80;
       q.version = {10, 14};
     },
     kStandard,
     {"precision", "heads", "TensorRT"},
     {},
     {}},
};

INSTANTIATE_TEST_SUITE_P(Of, DecoderRoutes, testing::ValuesIn(kCases),
                         [](const auto& route_case) { return route_case.param.name; });

TEST(DecoderRoute, HasANameInReports) {
  EXPECT_EQ(decoder_route_name(DecoderRoute::kNativeKv), "native_kv");
  EXPECT_EQ(decoder_route_name(DecoderRoute::kStandard), "standard");
  EXPECT_EQ(decoder_route_name(DecoderRoute::kDualProfile), "dual_profile");
}

TEST(DecoderRoute, IsAskedAboutTheSameSubjectsOnEachRoute) {
  const RouteDecision decision = choose_decoder_route(smollm3());
  ASSERT_EQ(decision.verdicts.size(), 3);
  for (const RouteVerdict& route : decision.verdicts) {
    std::vector<std::string> subjects;
    for (const RouteReason& reason : route.reasons) subjects.push_back(reason.subject);
    EXPECT_THAT(subjects,
                ElementsAre("precision", "quantisation", "activation", "biases", "heads",
                            "attention", "rope", "fp32 layers", "capacity", "memory", "TensorRT"));
  }
}

TEST(DecoderRoute, NamesTheScalingOfTheRotation) {
  RouteQuestion question = smollm3();
  question.spec.rope.scaling = YarnScaling{2, 32, 1, 1.0693147180559945, 65536, true};
  const RouteDecision decision = choose_decoder_route(question);
  for (const RouteVerdict& route : decision.verdicts) {
    EXPECT_EQ(text_of(decision, route.route, "rope"),
              "YaRN by 2, as tables of cos and sin; 9 of 36 layers do not rotate");
  }
}

TEST(DecoderRoute, SaysWhatADeviceHasNoRoomFor) {
  RouteQuestion question = smollm3();
  question.device_bytes = 16 * kGiga;
  const RouteDecision decision = choose_decoder_route(question);
  EXPECT_EQ(text_of(decision, DecoderRoute::kNativeKv, "memory"),
            "11 GB: weights once, keys and values once, of 16 GB free");
  EXPECT_EQ(text_of(decision, DecoderRoute::kStandard, "memory"),
            "22 GB: weights twice, keys and values twice, but there are only 16 GB free");
}

TEST(DecoderRoute, SaysWhichTensorRtIsTheFirst) {
  RouteQuestion question = smollm3();
  question.version = {10, 13};
  const RouteDecision decision = choose_decoder_route(question);
  EXPECT_EQ(text_of(decision, DecoderRoute::kNativeKv, "TensorRT"),
            "10.13, but 10.15 is the first with KV-update layers");
  EXPECT_EQ(text_of(decision, DecoderRoute::kStandard, "TensorRT"),
            "10.13, but 10.14 is the first with attention layers");
}

TEST(DecoderRoute, CountsFloat32LayersAtFourBytes) {
  RouteQuestion question = smollm3();
  question.capacity = 1;
  // A layer has 78 123 008 weights: 36 of them add 5.62 GB to 6.15.
  for (int layer = 0; layer < 36; ++layer) question.fp32_layers.push_back(layer);
  EXPECT_THAT(text_of(choose_decoder_route(question), DecoderRoute::kNativeKv, "memory"),
              HasSubstr("11.8 GB"));
}

TEST(DecoderRoute, ThatNoneIsTakenIsOneSentence) {
  RouteQuestion question = smollm3();
  question.biases = true;
  EXPECT_EQ(choose_decoder_route(question).refusal(),
            "native_kv: biases: projections have some, but the graph has none; "
            "standard: biases: projections have some, but the graph has none; "
            "dual_profile: biases: projections have some, but the graph has none");
}

TEST(DecoderRoute, RefusesACapacityBeyondTheContext) {
  RouteQuestion question = smollm3();
  question.capacity = 65537;
  const Error error = error_of([&] { choose_decoder_route(question); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("65537 tokens was asked for, but the model has 65536"));
}

TEST(LayerPrecisions, AreFloat32WhereItIsAskedFor) {
  DecoderSpec spec = smollm3().spec;
  spec.layers.resize(4);
  EXPECT_THAT(layer_precisions(spec, DType::kBF16, {0, 3}),
              ElementsAre(DType::kF32, DType::kBF16, DType::kBF16, DType::kF32));
}

TEST(LayerPrecisions, RefuseALayerThatIsNotThere) {
  const DecoderSpec spec = smollm3().spec;
  for (const int layer : {-1, 36}) {
    EXPECT_THAT(error_of([&] { layer_precisions(spec, DType::kBF16, {layer}); }).what(),
                HasSubstr("the model has layers 0 to 35"));
  }
}

TEST(LayerPrecisions, RefuseLayersThatDoNotRise) {
  const DecoderSpec spec = smollm3().spec;
  EXPECT_EQ(error_of([&] {
              layer_precisions(spec, DType::kBF16, {3, 3});
            }).code(),
            ErrorCode::kInvalidArgument);
}

TEST(LayerPrecisions, RefuseAQuantisedPrecision) {
  const DecoderSpec spec = smollm3().spec;
  EXPECT_EQ(error_of([&] { layer_precisions(spec, DType::kQ8, {}); }).code(),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace trtmc
