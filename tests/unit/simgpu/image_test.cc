// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/module/image.h"

#include <gtest/gtest.h>

#include "simgpu/module/kernel_abi.h"

namespace sluice::simgpu {
namespace {

TEST(Image, ComesBackAsItWas) {
  for (size_t length = 4; length < 300; ++length) {
    std::string object =
        "\x7f"
        "ELF";
    for (size_t i = object.size(); i < length; ++i) object.push_back(static_cast<char>(i * 37));
    const std::string text = EncodeImage(object);
    EXPECT_TRUE(text.starts_with(SIMGPU_MODULE_MAGIC));
    const Result<std::string> back = DecodeImage(text.c_str());
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(*back, object);
  }
}

TEST(Image, CodeOfRealGpusIsToldApartFromDamage) {
  const auto code = [](const char* text) { return DecodeImage(text).status().code(); };
  EXPECT_EQ(code(".version 8.0\n.target sm_90"), StatusCode::kFailedPrecondition);
  EXPECT_EQ(code("\x50\xed\x55\xba"), StatusCode::kFailedPrecondition);
  EXPECT_EQ(code(""), StatusCode::kFailedPrecondition);
  EXPECT_EQ(code("// simgpu-module 1\n"), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("// simgpu-module 1\nf0VMRg=="), StatusCode::kOk);
  EXPECT_EQ(code("// simgpu-module 1\nf0VM*g=="), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("// simgpu-module 1\nf0VMR"), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("// simgpu-module 1\nAAAAAAAA"), StatusCode::kInvalidArgument);
  EXPECT_FALSE(DecodeImage(nullptr).ok());
}

}  // namespace
}  // namespace sluice::simgpu
