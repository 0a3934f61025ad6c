// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include "simgpu/module/image.h"
#include "simgpu/module/kernel_abi.h"
#include "tests/unit/simgpu/nvrtc_module.h"

// The image that a program gets from NVRTC is the one that the driver reads.

namespace sluice::simgpu::nvrtc {
namespace {

TEST(NvrtcImageTest, IsTextThatTheDriverReads) {
  Program program("extern \"C\" __global__ void k(int* x) { *x = 1; }", "a.cu", {});
  ASSERT_EQ(program.Compile({}), NVRTC_SUCCESS) << program.log();
  const std::string& image = program.image();
  EXPECT_TRUE(image.starts_with(SIMGPU_MODULE_MAGIC));
  for (char c : image) EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
  const auto object = DecodeImage(image.c_str());
  ASSERT_TRUE(object.ok()) << object.status().message();
  EXPECT_TRUE(object->starts_with("\177ELF"));
  EXPECT_EQ(DecodeBase64(image.substr(image.find('\n'))), *object);
}

TEST(NvrtcImageTest, KeepsEveryByte) {
  for (size_t size : {1000u, 1001u, 1002u}) {
    std::string bytes = "\177ELF";
    while (bytes.size() < size) bytes += static_cast<char>(bytes.size() * 37);
    const std::string image = EncodeImage(bytes);
    EXPECT_EQ(DecodeBase64(image.substr(image.find('\n'))), bytes);
    EXPECT_EQ(*DecodeImage(image.c_str()), bytes);
  }
}

}  // namespace
}  // namespace sluice::simgpu::nvrtc
