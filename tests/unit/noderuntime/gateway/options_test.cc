// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/options.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::gateway {
namespace {

Result<std::optional<Options>> Read(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "sluice-gateway");
  int status = -1;
  return ReadCommandLine(static_cast<int>(arguments.size()), arguments.data(), &status);
}

TEST(ReadCommandLine, TakesWhatIsSaid) {
  const auto options = Read(
      {"--runtime-dir", "/run/x", "--metrics=127.0.0.1:0", "--admin-socket=/run/x/admin.sock"});
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ((*options)->runtime_dir, "/run/x");
  EXPECT_EQ((*options)->metrics, "127.0.0.1:0");
  EXPECT_EQ((*options)->admin_socket, "/run/x/admin.sock");
  EXPECT_EQ((*Read({"--runtime-dir", "/run/x"}))->metrics, "0.0.0.0:9452");
}

TEST(ReadCommandLine, NamesWhatIsWrong) {
  const auto error = [](std::vector<const char*> arguments) {
    return Read(std::move(arguments)).status().message();
  };
  EXPECT_EQ(error({"--runtime-dir", "x"}), "--runtime-dir 'x': allowed: an absolute path");
  for (const char* bad : {"--metrics=9452", "--metrics=:1", "--metrics=a:b", "--metrics=a:70000"}) {
    EXPECT_NE(error({"--runtime-dir", "/x", bad}).find("allowed: ADDRESS:PORT"), std::string::npos)
        << bad;
  }
  EXPECT_NE(error({"--runtime-dir", "/x", "--admin-socket", "a"}).find("an absolute path"),
            std::string::npos);
  EXPECT_EQ(error({"--runtime-dir", "/x", "--metrics=off"}),
            "--metrics, --admin-socket: allowed: at least one of them");
  EXPECT_FALSE(Read({"--what"}).ok());
}

}  // namespace
}  // namespace sluice::gateway
