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
  const auto defaults = Read({"--runtime-dir", "/run/x"});
  EXPECT_EQ((*defaults)->metrics, "127.0.0.1:9452") << "nobody else's, unless somebody says so";
  EXPECT_NE((*defaults)->node, "");
  EXPECT_EQ((*Read({"--runtime-dir", "/run/x", "--node", "n1", "--metrics=[::]:9452"}))->node,
            "n1");
}

TEST(ReadCommandLine, ServesThePageToThisMachineAlone) {
  EXPECT_EQ((*Read({"--runtime-dir", "/x"}))->page, "off");
  const auto options = Read({"--runtime-dir", "/x", "--metrics=off", "--page=127.0.0.1:0",
                             "--page-idle-exit=60", "--ready-fd=5"});
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ((*options)->page, "127.0.0.1:0");
  EXPECT_EQ((*options)->page_idle_exit_s, 60u);
  EXPECT_EQ((*options)->ready_fd, 5);
  for (const char* bad : {"--page=0.0.0.0:80", "--page=10.1.2.3:80", "--page=80"}) {
    EXPECT_NE(Read({"--runtime-dir", "/x", bad})
                  .status()
                  .message()
                  .find("allowed: 127.0.0.1:PORT or [::1]:PORT"),
              std::string::npos)
        << bad;
  }
  EXPECT_EQ(Read({"--runtime-dir", "/x", "--page-idle-exit=60"}).status().message(),
            "--page-idle-exit: means nothing without --page");
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
            "--metrics, --admin-socket, --page: allowed: at least one of them");
  EXPECT_NE(error({"--runtime-dir", "/x", "--node", ""}).find("--node ''"), std::string::npos);
  EXPECT_FALSE(Read({"--what"}).ok());
}

TEST(ReadCommandLine, DescribesTheMetrics) {
  ::testing::internal::CaptureStdout();
  const auto options = Read({"--describe-metrics"});
  const std::string text = ::testing::internal::GetCapturedStdout();
  ASSERT_TRUE(options.ok());
  EXPECT_FALSE(options->has_value());
  EXPECT_NE(text.find("| `sluice_pool_bytes` | gauge |"), std::string::npos) << text;
}

}  // namespace
}  // namespace sluice::gateway
