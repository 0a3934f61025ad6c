// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include "simgpu/module/kernel_abi.h"
#include "simgpu/nvrtc/image.h"
#include "tests/unit/simgpu/nvrtc_module.h"

namespace sluice::simgpu::nvrtc {
namespace {

TEST(NvrtcImageTest, EncodesTheVectorsOfRfc4648) {
  EXPECT_EQ(EncodeBase64(""), "");
  EXPECT_EQ(EncodeBase64("f"), "Zg==");
  EXPECT_EQ(EncodeBase64("fo"), "Zm8=");
  EXPECT_EQ(EncodeBase64("foo"), "Zm9v");
  EXPECT_EQ(EncodeBase64("foobar"), "Zm9vYmFy");
}

TEST(NvrtcImageTest, KeepsEveryByte) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += static_cast<char>(i * 37);
  const std::string image = MakeImage(bytes);
  EXPECT_TRUE(image.starts_with(SIMGPU_MODULE_MAGIC));
  EXPECT_EQ(image.find('\0'), std::string::npos);
  EXPECT_EQ(DecodeBase64(image.substr(image.find('\n'))), bytes);
}

}  // namespace
}  // namespace sluice::simgpu::nvrtc
