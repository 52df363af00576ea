#include "backends/tensorrt/library_version.h"

#include <gtest/gtest.h>

namespace trtmc::tensorrt {
namespace {

TEST(LibraryVersion, IsReadFromItsNumber) {
  EXPECT_EQ(version_of(101401), (TensorRtVersion{10, 14}));
  EXPECT_EQ(version_name(101401), "10.14.1");
  EXPECT_EQ(version_of(110100), (TensorRtVersion{11, 1}));
}

TEST(LibraryVersion, OfTheSameMajorAndNotOlderIsTaken) {
  EXPECT_EQ(version_refusal(101400, {10, 14}), std::nullopt);
  EXPECT_EQ(version_refusal(109999, {10, 14}), std::nullopt);
}

TEST(LibraryVersion, OfAnotherMajorIsRefused) {
  EXPECT_EQ(version_refusal(110100, {10, 14}),
            "TensorRT 11.1.0 is installed, but this build goes with TensorRT 10");
  EXPECT_EQ(version_refusal(101401, {11, 1}),
            "TensorRT 10.14.1 is installed, but this build goes with TensorRT 11");
}

TEST(LibraryVersion, ThatIsOlderIsRefused) {
  EXPECT_EQ(version_refusal(101399, {10, 14}),
            "TensorRT 10.13.99 is installed, but this build needs 10.14 at least");
}

TEST(Library, ThatIsMissingSaysWhatToInstall) {
  EXPECT_EQ(missing_library(10, "libnvinfer.so.10: cannot open shared object file"),
            "TensorRT 10 is not installed: libnvinfer.so.10: cannot open shared object file; "
            "NVIDIA's TensorRT SDK has it, and LD_LIBRARY_PATH says where");
}

}  // namespace
}  // namespace trtmc::tensorrt
