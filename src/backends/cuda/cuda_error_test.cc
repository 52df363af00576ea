#include "backends/cuda/cuda_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trtmc::cuda {
namespace {

using testing::HasSubstr;

DeviceProbe h200() {
  return {.status = kSuccess,
          .driver_version = 13000,
          .name = "NVIDIA H200",
          .architecture = 90,
          .kernel_status = kSuccess};
}

TEST(Device, ThatFitsIsNotRefused) { EXPECT_EQ(refusal(h200()), std::nullopt); }

TEST(Device, WithoutADriverSaysSo) {
  DeviceProbe probe;
  probe.status = kInsufficientDriver;  // What the runtime says without a driver, too.
  EXPECT_EQ(refusal(probe), "no NVIDIA driver is installed");
}

TEST(Device, WithAnOldDriverSaysWhichIsNeeded) {
  DeviceProbe probe;
  probe.status = kInsufficientDriver;
  probe.driver_version = 12040;
  EXPECT_EQ(refusal(probe), "the NVIDIA driver is for CUDA 12.4, but at least 13.0 is needed");
}

TEST(Device, ThatIsNotThereSaysSo) {
  DeviceProbe probe = h200();
  probe.status = kNoDevice;
  EXPECT_EQ(refusal(probe), "there is no CUDA device");
}

TEST(Device, OfMixedDriverVersionsSaysSo) {
  DeviceProbe probe = h200();
  probe.status = kSystemDriverMismatch;
  EXPECT_EQ(refusal(probe), "the NVIDIA driver and its kernel module are of different versions");
}

TEST(Device, WithAnyOtherTroubleGivesItsNumber) {
  DeviceProbe probe = h200();
  probe.status = 802;
  EXPECT_EQ(refusal(probe), "the CUDA device can't be used (CUDA error 802)");
}

TEST(Device, OfAnOldArchitectureSaysWhichIsNeeded) {
  DeviceProbe probe = h200();
  probe.name = "Tesla T4";
  probe.architecture = 75;
  EXPECT_EQ(refusal(probe), "Tesla T4 has compute capability 7.5, but at least 8.0 is needed");
}

TEST(Device, ThatTheBuildHasNoCodeForSaysSo) {
  DeviceProbe probe = h200();
  probe.architecture = 121;
  probe.kernel_status = kNoKernelImage;
  EXPECT_EQ(refusal(probe), "this build has no code for NVIDIA H200, compute capability 12.1");
}

TEST(Failure, OfMemoryIsExhausted) {
  const Error error = failure(kMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory",
                              "memory for keys and values");
  EXPECT_EQ(error.code(), ErrorCode::kExhausted);
  EXPECT_STREQ(error.what(), "memory for keys and values: the GPU has too little free memory");
}

TEST(Failure, OfALaunchMeansThatTheDeviceIsLost) {
  const Error error =
      failure(700, "cudaErrorIllegalAddress", "an illegal memory access was encountered", "a step");
  EXPECT_EQ(error.code(), ErrorCode::kInternal);  // What the engine turns unhealthy on.
  EXPECT_THAT(error.what(), HasSubstr("the GPU is lost to this process: a step: CUDA error 700, "
                                      "cudaErrorIllegalAddress"));
}

TEST(Failure, ForWantOfCodeIsUnsupported) {
  EXPECT_EQ(failure(kNoKernelImage, "", "", "a step").code(), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace trtmc::cuda
