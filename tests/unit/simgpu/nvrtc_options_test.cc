// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include "simgpu/nvrtc/options.h"

namespace sluice::simgpu::nvrtc {
namespace {

using Strings = std::vector<std::string>;

std::string ErrorOf(const Strings& arguments) {
  Options options;
  std::string error;
  return ParseOptions(arguments, &options, &error) ? "" : error;
}

TEST(NvrtcOptionsTest, ReadsBothForms) {
  Options options;
  std::string error;
  ASSERT_TRUE(
      ParseOptions({"--gpu-architecture=sm_90", "-I/one", "-I", "/two", "-DA=1", "--define-macro=B",
                    "--std=c++20", "--fmad=false", "-default-device", "--minimal"},
                   &options, &error))
      << error;
  EXPECT_EQ(options.arch, 90);
  EXPECT_TRUE(options.real_arch);
  EXPECT_EQ(options.standard, "gnu++20");
  EXPECT_EQ(options.compiler_flags, (Strings{"-I/one", "-I/two", "-DA=1", "-DB"}));
  ASSERT_TRUE(ParseOptions({"-arch", "compute_80"}, &options, &error)) << error;
  EXPECT_EQ(options.arch, 80);
  EXPECT_FALSE(options.real_arch);
}

TEST(NvrtcOptionsTest, NamesWhatItRefuses) {
  EXPECT_NE(ErrorOf({"--no-such-option"}).find("--no-such-option"), std::string::npos);
  EXPECT_NE(ErrorOf({"--gpu-architecture=sm_10"}).find("sm_10"), std::string::npos);
  EXPECT_NE(ErrorOf({"--gpu-architecture=90"}).find("compute_NN"), std::string::npos);
  EXPECT_NE(ErrorOf({"--std=c++98"}).find("c++17"), std::string::npos);
  EXPECT_NE(ErrorOf({"--fmad=maybe"}).find("true and false"), std::string::npos);
  EXPECT_NE(ErrorOf({"-I"}).find("needs a value"), std::string::npos);
  EXPECT_NE(ErrorOf({"--minimal=1"}).find("--minimal=1"), std::string::npos);
}

}  // namespace
}  // namespace sluice::simgpu::nvrtc
