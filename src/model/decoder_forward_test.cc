#include <gtest/gtest.h>

#include "model/trace_ops.h"

namespace trtmc {
namespace {

// Layer 2 has no rope, layer 3 a window.
DecoderSpec four_layers() {
  return {.vocab_size = 11,
          .hidden_size = 16,
          .intermediate_size = 24,
          .num_heads = 4,
          .num_kv_heads = 2,
          .head_dim = 4,
          .context_length = 32,
          .rms_norm_eps = 0.5F,
          .tied_embeddings = true,
          .rope = {.theta = 10000, .rotary_dim = 4, .scaling = {}},
          .layers = {{true, 0}, {true, 0}, {false, 0}, {true, 8}}};
}

// Written by hand from the definition of the architecture: Llama's layer, with the rotation left
// out where Transformers' modeling_smollm3.py skips apply_rotary_pos_emb.
constexpr const char* kFourLayerTrace = R"(%0 = embed(embedding)
%1 = rms_norm(%0, layers.0.attention_norm, 0.5)
%2 = linear(%1, layers.0.q_proj)
%3 = linear(%1, layers.0.k_proj)
%4 = linear(%1, layers.0.v_proj)
%5 = rope(%2, heads 4, theta 10000)
%6 = rope(%3, heads 2, theta 10000)
%7 = attention(%5, %6, %4, layer 0)
%8 = linear(%7, layers.0.o_proj)
%9 = add(%0, %8)
%10 = rms_norm(%9, layers.0.mlp_norm, 0.5)
%11 = linear(%10, layers.0.gate_proj)
%12 = linear(%10, layers.0.up_proj)
%13 = swiglu(%11, %12)
%14 = linear(%13, layers.0.down_proj)
%15 = add(%9, %14)
%16 = rms_norm(%15, layers.1.attention_norm, 0.5)
%17 = linear(%16, layers.1.q_proj)
%18 = linear(%16, layers.1.k_proj)
%19 = linear(%16, layers.1.v_proj)
%20 = rope(%17, heads 4, theta 10000)
%21 = rope(%18, heads 2, theta 10000)
%22 = attention(%20, %21, %19, layer 1)
%23 = linear(%22, layers.1.o_proj)
%24 = add(%15, %23)
%25 = rms_norm(%24, layers.1.mlp_norm, 0.5)
%26 = linear(%25, layers.1.gate_proj)
%27 = linear(%25, layers.1.up_proj)
%28 = swiglu(%26, %27)
%29 = linear(%28, layers.1.down_proj)
%30 = add(%24, %29)
%31 = rms_norm(%30, layers.2.attention_norm, 0.5)
%32 = linear(%31, layers.2.q_proj)
%33 = linear(%31, layers.2.k_proj)
%34 = linear(%31, layers.2.v_proj)
%35 = attention(%32, %33, %34, layer 2)
%36 = linear(%35, layers.2.o_proj)
%37 = add(%30, %36)
%38 = rms_norm(%37, layers.2.mlp_norm, 0.5)
%39 = linear(%38, layers.2.gate_proj)
%40 = linear(%38, layers.2.up_proj)
%41 = swiglu(%39, %40)
%42 = linear(%41, layers.2.down_proj)
%43 = add(%37, %42)
%44 = rms_norm(%43, layers.3.attention_norm, 0.5)
%45 = linear(%44, layers.3.q_proj)
%46 = linear(%44, layers.3.k_proj)
%47 = linear(%44, layers.3.v_proj)
%48 = rope(%45, heads 4, theta 10000)
%49 = rope(%46, heads 2, theta 10000)
%50 = attention(%48, %49, %47, layer 3, window 8)
%51 = linear(%50, layers.3.o_proj)
%52 = add(%43, %51)
%53 = rms_norm(%52, layers.3.mlp_norm, 0.5)
%54 = linear(%53, layers.3.gate_proj)
%55 = linear(%53, layers.3.up_proj)
%56 = swiglu(%54, %55)
%57 = linear(%56, layers.3.down_proj)
%58 = add(%52, %57)
%59 = select_rows(%58)
%60 = rms_norm(%59, final_norm, 0.5)
%61 = linear(%60, embedding)
)";

TEST(DecoderForward, OfFourLayersRotatesAllButTheThird) {
  EXPECT_EQ(trace_decoder(four_layers()), kFourLayerTrace);
}

TEST(DecoderForward, ProjectsWithItsOwnHeadWhenNotTied) {
  DecoderSpec spec = four_layers();
  spec.layers.clear();
  spec.tied_embeddings = false;
  EXPECT_EQ(trace_decoder(spec),
            "%0 = embed(embedding)\n"
            "%1 = select_rows(%0)\n"
            "%2 = rms_norm(%1, final_norm, 0.5)\n"
            "%3 = linear(%2, lm_head)\n");
}

TEST(DecoderForward, NamesTheScalingOfItsRotation) {
  DecoderSpec spec = four_layers();
  spec.layers.resize(1);
  spec.rope.scaling = YarnScaling{.factor = 4,
                                  .beta_fast = 32,
                                  .beta_slow = 1,
                                  .attention_factor = 1,
                                  .original_context = 8,
                                  .truncate = true};
  EXPECT_NE(trace_decoder(spec).find("%5 = rope(%2, heads 4, theta 10000, yarn)\n"),
            std::string::npos);
}

}  // namespace
}  // namespace trtmc
