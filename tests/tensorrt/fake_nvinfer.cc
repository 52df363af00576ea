#include "tests/tensorrt/fake_nvinfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/check.h"
#include "nvinfer_stubs.h"
#include "tests/tensorrt/fake_cuda.h"
#include "tests/tensorrt/fake_graph.h"

namespace trtmc::fake_nvinfer {

void unexpected(const char* function) {
  std::fprintf(stderr, "the fake of TensorRT has no %s\n", function);
  std::abort();
}

Counts& counts() {
  static Counts kCounts;
  return kCounts;
}

namespace {

std::string last_build_text;

Lengths lengths_of(const Dims& dims) { return {dims.d, dims.d + dims.nbDims}; }

Dims dims_of(const Lengths& lengths) {
  Dims dims{};
  for (const int64_t length : lengths) dims.d[dims.nbDims++] = length;
  return dims;
}

std::vector<int> order_of(const Permutation& permutation, int rank) {
  return {permutation.order, permutation.order + rank};
}

class FakeNetwork;

// ---- Tensors and layers: views of a node.

class Tensor final : public ITensor {
 public:
  Tensor(FakeNetwork& network, int node) : impl_(network, node) { mImpl = &impl_; }
  ~Tensor() noexcept override = default;
  int node() const { return impl_.node; }

 private:
  struct Impl final : StubTensor {
    Impl(FakeNetwork& owner, int number) : network(owner), node(number) {}
    void setName(const char* text) noexcept override;
    Dims getDimensions() const noexcept override;
    FakeNetwork& network;
    int node;
  };
  Impl impl_;
};

struct LayerImpl final : StubLayer {
  ITensor* getOutput(int32_t index) const noexcept override {
    TRTMC_CHECK(index == 0, "one output");
    return output;
  }
  void setName(const char* /*text*/) noexcept override {}
  void setInput(int32_t index, ITensor& tensor) noexcept override {
    TRTMC_CHECK(index == 2, "a slice's size");
    node->inputs.push_back(static_cast<Tensor&>(tensor).node());
  }
  ITensor* output = nullptr;
  Node* node = nullptr;
};

struct LayerBase {
  virtual ~LayerBase() = default;
};

template <typename Interface, typename Impl>
class Layer final : public Interface, public LayerBase {
 public:
  Layer(ITensor* output, Node* node, Impl impl) : impl_(std::move(impl)) {
    base_.output = output;
    base_.node = node;
    this->mImpl = &impl_;
    this->mLayer = &base_;
  }
  ~Layer() noexcept override = default;

 private:
  Impl impl_;
  LayerImpl base_;
};

struct ShuffleImpl final : StubShuffleLayer {
  explicit ShuffleImpl(std::shared_ptr<ShuffleSettings> kept) : settings(std::move(kept)) {}
  void setFirstTranspose(const Permutation& order) noexcept override {
    settings->first = order_of(order, 4);
  }
  void setSecondTranspose(const Permutation& order) noexcept override {
    settings->second = order_of(order, 4);
  }
  void setReshapeDimensions(const Dims& dims) noexcept override {
    settings->reshape = lengths_of(dims);
  }
  std::shared_ptr<ShuffleSettings> settings;
};

struct SliceImpl final : StubSliceLayer {
  explicit SliceImpl(std::shared_ptr<SliceSettings> kept) : settings(std::move(kept)) {}
  void setAxes(const Dims& axes) noexcept override {
    TRTMC_CHECK(axes.nbDims == 1, "slices along one axis");
    settings->axis = static_cast<int>(axes.d[0]);
  }
  std::shared_ptr<SliceSettings> settings;
};

struct ConcatenationImpl final : StubConcatenationLayer {
  explicit ConcatenationImpl(std::shared_ptr<int> kept) : axis(std::move(kept)) {}
  void setAxis(int32_t value) noexcept override { *axis = value; }
  std::shared_ptr<int> axis;
};

class Attention final : public IAttention, public LayerBase {
 public:
  Attention(ITensor* output, Node* node) : impl_(output, node) { mImpl = &impl_; }
  ~Attention() noexcept override = default;

 private:
  struct Impl final : StubAttention {
    Impl(ITensor* result, Node* made) : output(result), node(made) {}
    ITensor* getOutput(int32_t /*index*/) const noexcept override { return output; }
    bool setMask(ITensor& mask) noexcept override {
      node->inputs.push_back(static_cast<Tensor&>(mask).node());
      return true;
    }
    bool setDecomposable(bool /*decomposable*/) noexcept override { return true; }
    ITensor* output;
    Node* node;
  };
  Impl impl_;
};

// ---- The network.

class FakeNetwork final : public INetworkDefinition {
 public:
  FakeNetwork() : impl_(*this) { mImpl = &impl_; }

  Graph graph;

  // -1 where a length differs from run to run. Asked for when the layer's settings are made.
  const Lengths& inferred(int node) {
    const auto found = lengths_.find(node);
    if (found != lengths_.end()) return found->second;
    std::vector<Lengths> inputs;
    for (const int input : graph.nodes[static_cast<size_t>(node)]->inputs) {
      inputs.push_back(inferred(input));
    }
    return lengths_[node] = graph.nodes[static_cast<size_t>(node)]->infer(inputs);
  }

 private:
  struct Impl final : StubNetworkDefinition {
    explicit Impl(FakeNetwork& owner) : network(owner) {}

    ITensor* addInput(const char* name, DataType type, const Dims& dims) noexcept override {
      Node node{.name = name, .type = type, .is_input = true};
      node.infer = [lengths = lengths_of(dims)](const auto&) { return lengths; };
      return network.tensor(network.add(std::move(node)));
    }
    void markOutput(ITensor& tensor) noexcept override {
      network.graph.outputs.push_back(node_of(tensor));
    }
    IConstantLayer* addConstant(const Dims& dims, Weights weights) noexcept override {
      Node node{.type = weights.type, .is_weights = true};
      node.infer = [lengths = lengths_of(dims)](const auto&) { return lengths; };
      TRTMC_CHECK(elements(lengths_of(dims)) == weights.count, "weights of another shape");
      network.unnamed_[weights.values] = network.add(std::move(node));
      return network.layer<IConstantLayer>(StubConstantLayer());
    }
    bool setWeightsName(Weights weights, const char* name) noexcept override {
      const auto* bytes = static_cast<const std::byte*>(weights.values);
      network.node(network.unnamed_.at(weights.values)).name = name;
      network.graph.weights[name] = {
          bytes, bytes + static_cast<size_t>(weights.count) * bytes_of(weights.type)};
      return true;
    }
    IShuffleLayer* addShuffle(ITensor& x) noexcept override {
      auto settings = std::make_shared<ShuffleSettings>();
      network.add(shuffle(node_of(x), settings), type_of(x));
      return network.layer<IShuffleLayer>(ShuffleImpl(settings));
    }
    ISliceLayer* addSlice(ITensor& x, const Dims& start, const Dims& size,
                          const Dims& /*stride*/) noexcept override {
      auto settings =
          std::make_shared<SliceSettings>(SliceSettings{.start = start.d[0], .size = size.d[0]});
      network.add(slice(node_of(x), settings), type_of(x));
      return network.layer<ISliceLayer>(SliceImpl(settings));
    }
    IGatherLayer* addGather(ITensor& table, ITensor& indices, int32_t axis) noexcept override {
      if (type_of(indices) != DataType::kINT32) return nullptr;
      network.add(gather(node_of(table), node_of(indices), axis), type_of(table));
      return network.layer<IGatherLayer>(StubGatherLayer());
    }
    // Strongly typed: both sides have one type.
    IElementWiseLayer* addElementWise(ITensor& a, ITensor& b,
                                      ElementWiseOperation operation) noexcept override {
      if (type_of(a) != type_of(b)) return nullptr;
      network.add(element_wise(node_of(a), node_of(b), operation), type_of(a));
      return network.layer<IElementWiseLayer>(StubElementWiseLayer());
    }
    IUnaryLayer* addUnary(ITensor& x, UnaryOperation operation) noexcept override {
      TRTMC_CHECK(operation == UnaryOperation::kSQRT, "square roots only");
      network.add(each(node_of(x), [](float value) { return std::sqrt(value); }), type_of(x));
      return network.layer<IUnaryLayer>(StubUnaryLayer());
    }
    IActivationLayer* addActivation(ITensor& x, ActivationType type) noexcept override {
      TRTMC_CHECK(type == ActivationType::kSIGMOID, "sigmoids only");
      network.add(each(node_of(x), [](float value) { return 1 / (1 + std::exp(-value)); }),
                  type_of(x));
      return network.layer<IActivationLayer>(StubActivationLayer());
    }
    ICastLayer* addCast(ITensor& x, DataType type) noexcept override {
      network.add(each(node_of(x), [](float value) { return value; }), type);
      return network.layer<ICastLayer>(StubCastLayer());
    }
    IReduceLayer* addReduce(ITensor& x, ReduceOperation operation, uint32_t axes,
                            bool keep) noexcept override {
      TRTMC_CHECK(operation == ReduceOperation::kAVG && axes == 4 && keep,
                  "means of the last axis");
      network.add(mean_of_last(node_of(x)), type_of(x));
      return network.layer<IReduceLayer>(StubReduceLayer());
    }
    IConcatenationLayer* addConcatenation(ITensor* const* inputs, int32_t count) noexcept override {
      std::vector<int> nodes;
      for (int32_t i = 0; i < count; ++i) nodes.push_back(node_of(*inputs[i]));
      auto axis = std::make_shared<int>(0);
      network.add(concatenation(nodes, axis), type_of(*inputs[0]));
      return network.layer<IConcatenationLayer>(ConcatenationImpl(axis));
    }
    IMatrixMultiplyLayer* addMatrixMultiply(ITensor& a, MatrixOperation of_a, ITensor& b,
                                            MatrixOperation of_b) noexcept override {
      if (type_of(a) != type_of(b)) return nullptr;
      TRTMC_CHECK(of_a == MatrixOperation::kNONE && of_b == MatrixOperation::kTRANSPOSE, "x W^T");
      network.add(product_transposed(node_of(a), node_of(b)), type_of(a));
      return network.layer<IMatrixMultiplyLayer>(StubMatrixMultiplyLayer());
    }
    IShapeLayer* addShape(ITensor& x) noexcept override {
      network.add(shape_of(node_of(x)), DataType::kINT64);
      return network.layer<IShapeLayer>(StubShapeLayer());
    }
    IAttention* add_attention(ITensor& q, ITensor& k, ITensor& v) noexcept {
      if (type_of(q) != type_of(k) || type_of(q) != type_of(v)) return nullptr;
      network.add(attention(node_of(q), node_of(k), node_of(v)), type_of(q));
      return network.attention_layer();
    }
#if NV_TENSORRT_MAJOR > 10 || NV_TENSORRT_MINOR >= 16
    IAttention* addAttentionV2(ITensor& q, ITensor& k, ITensor& v, AttentionNormalizationOp /*op*/,
                               CausalMaskKind kind) noexcept override {
      TRTMC_CHECK(kind == CausalMaskKind::kNONE, "masks are given");
      return add_attention(q, k, v);
    }
#else
    IAttention* addAttention(ITensor& q, ITensor& k, ITensor& v, AttentionNormalizationOp /*op*/,
                             bool causal) noexcept override {
      TRTMC_CHECK(!causal, "masks are given");
      return add_attention(q, k, v);
    }
#endif
#if NV_TENSORRT_MAJOR > 10 || NV_TENSORRT_MINOR >= 15
    IKVCacheUpdateLayer* addKVCacheUpdate(ITensor& cache, ITensor& update, ITensor& index,
                                          KVCacheMode /*mode*/) noexcept override {
      if (type_of(cache) != type_of(update)) return nullptr;
      network.add(cache_update(node_of(cache), node_of(update), node_of(index)), type_of(cache));
      return network.layer<IKVCacheUpdateLayer>(StubKVCacheUpdateLayer());
    }
#endif

    int node_of(ITensor& tensor) const { return static_cast<Tensor&>(tensor).node(); }
    DataType type_of(ITensor& tensor) const { return network.node(node_of(tensor)).type; }
    FakeNetwork& network;
  };

  friend class Tensor;

  int add(Node node) {
    graph.nodes.push_back(std::make_shared<Node>(std::move(node)));
    return static_cast<int>(graph.nodes.size()) - 1;
  }
  int add(Node node, DataType type) {
    node.type = type;
    return add(std::move(node));
  }
  Node& node(int number) const { return *graph.nodes[static_cast<size_t>(number)]; }
  ITensor* tensor(int number) {
    tensors_.push_back(std::make_unique<Tensor>(*this, number));
    return tensors_.back().get();
  }
  // Of the node that was added last.
  template <typename Interface, typename Impl>
  Interface* layer(Impl impl) {
    const int last = static_cast<int>(graph.nodes.size()) - 1;
    auto made =
        std::make_unique<Layer<Interface, Impl>>(tensor(last), &node(last), std::move(impl));
    Interface* interface = made.get();
    layers_.push_back(std::move(made));
    return interface;
  }
  IAttention* attention_layer() {
    const int last = static_cast<int>(graph.nodes.size()) - 1;
    auto made = std::make_unique<Attention>(tensor(last), &node(last));
    IAttention* interface = made.get();
    layers_.push_back(std::move(made));
    return interface;
  }

  Impl impl_;
  std::vector<std::unique_ptr<Tensor>> tensors_;
  std::vector<std::unique_ptr<LayerBase>> layers_;
  std::map<const void*, int> unnamed_;
  std::map<int, Lengths> lengths_;
};

void Tensor::Impl::setName(const char* text) noexcept { network.node(node).name = text; }
Dims Tensor::Impl::getDimensions() const noexcept { return dims_of(network.inferred(node)); }

// ---- The builder.

struct Range {
  Lengths least, usual, most;
};
using Profile = std::map<std::string, Range>;

// What a plan stands for.
struct Plan {
  Graph graph;
  std::vector<Profile> profiles;
  bool stripped = false;
};
std::vector<std::shared_ptr<Plan>>& plans() {
  static std::vector<std::shared_ptr<Plan>> kPlans;
  return kPlans;
}

class FakeProfile final : public IOptimizationProfile {
 public:
  FakeProfile() { mImpl = &impl_; }
  ~FakeProfile() noexcept override = default;
  const Profile& profile() const { return impl_.profile; }

 private:
  struct Impl final : StubOptimizationProfile {
    bool setDimensions(const char* name, OptProfileSelector selector,
                       const Dims& dims) noexcept override {
      Range& range = profile[name];
      (selector == OptProfileSelector::kMIN   ? range.least
       : selector == OptProfileSelector::kOPT ? range.usual
                                              : range.most) = lengths_of(dims);
      return true;
    }
    Profile profile;
  };
  Impl impl_;
};

class Memory final : public IHostMemory {
 public:
  explicit Memory(std::string bytes) : impl_(std::move(bytes)) { mImpl = &impl_; }

 private:
  struct Impl final : StubHostMemory {
    explicit Impl(std::string kept) : bytes(std::move(kept)) {}
    void* data() const noexcept override { return const_cast<char*>(bytes.data()); }
    std::size_t size() const noexcept override { return bytes.size(); }
    std::string bytes;
  };
  Impl impl_;
};

class TimingCache final : public ITimingCache {
 public:
  TimingCache() { mImpl = &impl_; }

 private:
  struct Impl final : StubTimingCache {
    IHostMemory* serialize() const noexcept override { return new Memory("times"); }
  };
  Impl impl_;
};

class Config final : public IBuilderConfig {
 public:
  Config() { mImpl = &impl_; }
  uint32_t flags() const { return impl_.flags; }
  const std::vector<Profile>& profiles() const { return impl_.profiles; }
  const std::string& times() const { return impl_.times; }

 private:
  struct Impl final : StubBuilderConfig {
    void setFlag(BuilderFlag flag) noexcept override { flags |= 1U << static_cast<uint32_t>(flag); }
    void clearFlag(BuilderFlag flag) noexcept override {
      flags &= ~(1U << static_cast<uint32_t>(flag));
    }
    void setMaxAuxStreams(int32_t count) noexcept override {
      TRTMC_CHECK(count == 0, "one stream");
    }
    int32_t addOptimizationProfile(const IOptimizationProfile* profile) noexcept override {
      profiles.push_back(static_cast<const FakeProfile*>(profile)->profile());
      return static_cast<int32_t>(profiles.size()) - 1;
    }
    ITimingCache* createTimingCache(const void* blob, std::size_t size) const noexcept override {
      times.assign(static_cast<const char*>(blob), size);
      return new TimingCache;
    }
    bool setTimingCache(const ITimingCache& /*cache*/, bool /*ignore*/) noexcept override {
      return true;
    }
    const ITimingCache* getTimingCache() const noexcept override { return &measured; }
    uint32_t flags = 1U << static_cast<uint32_t>(BuilderFlag::kTF32);  // On, says NvInfer.h.
    std::vector<Profile> profiles;
    mutable std::string times;
    TimingCache measured;
  };
  Impl impl_;
};

bool has_flag(const Config& config, BuilderFlag flag) {
  return (config.flags() >> static_cast<uint32_t>(flag) & 1U) != 0;
}

class Builder final : public IBuilder {
 public:
  Builder() { mImpl = &impl_; }

 private:
  struct Impl final : StubBuilder {
    IBuilderConfig* createBuilderConfig() noexcept override { return new Config; }
    INetworkDefinition* createNetworkV2(NetworkDefinitionCreationFlags flags) noexcept override {
      TRTMC_CHECK(
          flags == 1U << static_cast<uint32_t>(NetworkDefinitionCreationFlag::kSTRONGLY_TYPED),
          "a strongly typed network");
      return new FakeNetwork;
    }
    IOptimizationProfile* createOptimizationProfile() noexcept override {
      profiles.push_back(std::make_unique<FakeProfile>());
      return profiles.back().get();
    }
    IHostMemory* buildSerializedNetwork(INetworkDefinition& network,
                                        IBuilderConfig& with) noexcept override {
      const auto& config = static_cast<const Config&>(with);
      auto plan = std::make_shared<Plan>();
      plan->graph = static_cast<FakeNetwork&>(network).graph;
      plan->profiles = config.profiles();
      plan->stripped = has_flag(config, BuilderFlag::kSTRIP_PLAN);
      last_build_text =
          fmt::format("profiles {}\nTF32 {}\nstripped {}\nidentical refit {}\ntimes \"{}\"\n",
                      plan->profiles.size(), has_flag(config, BuilderFlag::kTF32), plan->stripped,
                      has_flag(config, BuilderFlag::kREFIT_IDENTICAL), config.times());
      plans().push_back(std::move(plan));
      ++counts().builds;
      return new Memory(fmt::format("plan {}", plans().size() - 1));
    }
    std::vector<std::unique_ptr<FakeProfile>> profiles;
  };
  Impl impl_;
};

// ---- The engine.

struct EngineState {
  std::shared_ptr<Plan> plan;
  std::map<std::string, std::vector<std::byte>, std::less<>> weights;
  bool complete = false;
};

bool within(const Range& range, const Lengths& lengths) {
  bool fits = lengths.size() == range.least.size();
  for (size_t i = 0; fits && i < lengths.size(); ++i) {
    fits = range.least[i] <= lengths[i] && lengths[i] <= range.most[i];
  }
  return fits;
}

class Context final : public IExecutionContext {
 public:
  explicit Context(std::shared_ptr<EngineState> engine) : impl_(std::move(engine)) {
    mImpl = &impl_;
  }

 private:
  struct Impl final : StubExecutionContext {
    explicit Impl(std::shared_ptr<EngineState> kept) : engine(std::move(kept)) {}

    bool setOptimizationProfileAsync(int32_t index, cudaStream_t /*stream*/) noexcept override {
      profile = &engine->plan->profiles.at(static_cast<size_t>(index));
      return true;
    }
    bool setInputShape(const char* name, const Dims& dims) noexcept override {
      const auto range = profile->find(name);
      if (range == profile->end() || !within(range->second, lengths_of(dims))) return false;
      shapes[name] = lengths_of(dims);
      return true;
    }
    bool setInputTensorAddress(const char* name, const void* data) noexcept override {
      return setTensorAddress(name, const_cast<void*>(data));
    }
    bool setTensorAddress(const char* name, void* data) noexcept override {
      constexpr uintptr_t kAlignment = 256;
      if (reinterpret_cast<uintptr_t>(data) % kAlignment != 0) return false;
      addresses[name] = data;
      return true;
    }
    bool enqueueV3(cudaStream_t /*stream*/) noexcept override {
      if (!engine->complete) return false;
      fake_cuda::run_or_capture([engine = engine, shapes = shapes, addresses = addresses] {
        run(*engine, shapes, addresses);
      });
      return true;
    }

    static void run(const EngineState& engine, const std::map<std::string, Lengths>& shapes,
                    const std::map<std::string, void*>& addresses) {
      const Graph& graph = engine.plan->graph;
      std::vector<Array> arrays(graph.nodes.size());
      for (size_t n = 0; n < graph.nodes.size(); ++n) {
        const Node& node = *graph.nodes[n];
        if (node.is_input) {
          arrays[n] = read_array(addresses.at(node.name), node.type, shapes.at(node.name));
          continue;
        }
        if (node.is_weights) {
          arrays[n] = read_array(engine.weights.at(node.name).data(), node.type, node.infer({}));
          continue;
        }
        std::vector<Array> inputs;
        for (const int input : node.inputs) inputs.push_back(arrays[static_cast<size_t>(input)]);
        arrays[n] = node.compute(inputs);
        round_to(node.type, arrays[n].values);
        if (node.inputs.size() == 4) {  // Attention.
          ++counts().attentions;
          counts().attended += inputs[1].lengths[2];
        }
      }
      for (const int output : graph.outputs) {
        const Node& node = *graph.nodes[static_cast<size_t>(output)];
        if (node.in_place_of >= 0) {
          const Node& cache = *graph.nodes[static_cast<size_t>(node.in_place_of)];
          TRTMC_CHECK(addresses.at(node.name) == addresses.at(cache.name), "a cache that moves");
        }
        write_array(arrays[static_cast<size_t>(output)], node.type, addresses.at(node.name));
      }
    }

    std::shared_ptr<EngineState> engine;
    const Profile* profile = nullptr;
    std::map<std::string, Lengths> shapes;
    std::map<std::string, void*> addresses;
  };
  Impl impl_;
};

class Engine final : public ICudaEngine {
 public:
  explicit Engine(std::shared_ptr<Plan> plan) {
    impl_.state = std::make_shared<EngineState>();
    impl_.state->complete = !plan->stripped;
    impl_.state->plan = std::move(plan);
    mImpl = &impl_;
  }
  const std::shared_ptr<EngineState>& state() const { return impl_.state; }

 private:
  struct Impl final : StubCudaEngine {
    IExecutionContext* createExecutionContext(
        ExecutionContextAllocationStrategy /*strategy*/) noexcept override {
      return new Context(state);
    }
    int64_t getDeviceMemorySizeV2() const noexcept override { return 0; }
    std::shared_ptr<EngineState> state;
  };
  Impl impl_;
};

class Runtime final : public IRuntime {
 public:
  Runtime() { mImpl = &impl_; }

 private:
  struct Impl final : StubRuntime {
    ICudaEngine* deserializeCudaEngine(const void* blob, std::size_t size) noexcept override {
      const std::string text(static_cast<const char*>(blob), size);
      if (!text.starts_with("plan ")) return nullptr;
      const size_t index = std::strtoul(text.c_str() + 5, nullptr, 10);
      return index < plans().size() ? new Engine(plans()[index]) : nullptr;
    }
    ICudaEngine* deserializeCudaEngine(IStreamReader& /*reader*/) noexcept override {
      unexpected("deserializeCudaEngine(IStreamReader&)");
    }
  };
  Impl impl_;
};

class Refitter final : public IRefitter {
 public:
  explicit Refitter(Engine& engine) : impl_(engine) { mImpl = &impl_; }

 private:
  struct Impl final : StubRefitter {
    explicit Impl(Engine& of) : engine(of) {}
    int32_t getAllWeights(int32_t size, const char** names) noexcept override {
      int32_t count = 0;
      for (const auto& [name, weights] : engine.state()->plan->graph.weights) {
        if (count < size) names[count] = name.c_str();
        ++count;
      }
      return count;
    }
    // Only the values that the engine was built with are allowed.
    bool setNamedWeights(const char* name, Weights weights) noexcept override {
      const std::vector<std::byte>& built = engine.state()->plan->graph.weights.at(name);
      const auto* bytes = static_cast<const std::byte*>(weights.values);
      if (!std::equal(built.begin(), built.end(), bytes)) return false;
      engine.state()->weights[name] = {bytes, bytes + built.size()};
      return true;
    }
    bool refitCudaEngine() noexcept override {
      EngineState& state = *engine.state();
      state.complete = state.weights.size() == state.plan->graph.weights.size();
      ++counts().refits;
      return state.complete;
    }
    Engine& engine;
  };
  Impl impl_;
};

int library_version = 0;

}  // namespace

const std::string& last_build() { return last_build_text; }

tensorrt::NvInferLibrary library(int version) {
  library_version = version;
  return tensorrt::NvInferLibrary(
      {.create_builder = [](void* /*logger*/, int32_t /*version*/) noexcept -> void* {
         return static_cast<IBuilder*>(new Builder);
       },
       .create_runtime = [](void* /*logger*/, int32_t /*version*/) noexcept -> void* {
         return static_cast<IRuntime*>(new Runtime);
       },
       .create_refitter = [](void* engine, void* /*logger*/,
                             int32_t /*version*/) noexcept -> void* {
         return static_cast<IRefitter*>(
             new Refitter(static_cast<Engine&>(*static_cast<ICudaEngine*>(engine))));
       },
       .version = []() noexcept -> int32_t { return library_version; }});
}

}  // namespace trtmc::fake_nvinfer
