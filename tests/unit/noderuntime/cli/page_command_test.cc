// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/page_command.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "noderuntime/page/page_file.h"
#include "tests/support/temp_folder.h"

namespace sluice::cli {
namespace {

class PageCommand : public ::testing::Test {
 protected:
  /// What is started in the place of sluice-gateway.
  void Gateway(const std::string& script) {
    std::filesystem::create_directory(folder_ / "bin");
    const std::string path = folder_ / "bin/sluice-gateway";
    std::ofstream(path) << "#!/bin/bash\n" << script;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  Result<std::string> Url(int gpu = -1) {
    return PageUrlOf({run_, gpu}, Layout::At(folder_ / "bin"), Environment::Current());
  }
  void MakeRunDir() {
    std::filesystem::create_directory(run_);
    std::filesystem::permissions(run_, std::filesystem::perms::owner_all);
  }

  sluice::testing::TempFolder folder_;
  std::string run_ = folder_ / "run";
};

TEST_F(PageCommand, FindsThePageThatIsServed) {
  MakeRunDir();
  const auto file = page::PageFile::Claim(run_);
  ASSERT_TRUE(file.ok() && file->Write({"127.0.0.1:7", "t"}).ok());
  const auto url = Url();
  ASSERT_TRUE(url.ok()) << url.status().message();
  EXPECT_EQ(*url, "http://127.0.0.1:7/#token=t");
  EXPECT_NE(Url(2).status().message().find("--gpu 2: allowed: none"), std::string::npos);
}

TEST_F(PageCommand, OnANodeItStartsNoneAndSaysWhoServesIt) {
  MakeRunDir();
  std::filesystem::create_directory(run_ + "/0");
  std::filesystem::create_directory(run_ + "/1");
  const auto none = Url();
  EXPECT_EQ(none.status().code(), StatusCode::kNotFound);
  EXPECT_NE(none.status().message().find("--page 127.0.0.1:PORT"), std::string::npos);
  const auto file = page::PageFile::Claim(run_);
  ASSERT_TRUE(file.ok() && file->Write({"127.0.0.1:7", "t"}).ok());
  EXPECT_EQ(*Url(1), "http://127.0.0.1:7/?gpu=1#token=t");
}

TEST_F(PageCommand, SaysWhyNoneCouldBeStarted) {
  Gateway("echo 'sluice-gateway: the port is taken' >&2; exit 1\n");
  const auto failed = Url();
  EXPECT_EQ(failed.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(failed.status().message(), "sluice-gateway: the port is taken");
}

TEST_F(PageCommand, StartsOneOnLoopbackThatEndsByItself) {
  // Says what it was told, serves nothing, and so is not found.
  Gateway("echo \"$@\" > \"$2/told\"; for last; do :; done; echo -n 1 >&$last\n");
  EXPECT_EQ(Url().status().code(), StatusCode::kNotFound);
  std::string told;
  std::ifstream file(run_ + "/told");
  std::getline(file, told);
  EXPECT_EQ(told.find("--runtime-dir " + run_ +
                      " --metrics off --page 127.0.0.1:0 --page-idle-exit 120 --ready-fd "),
            0u)
      << told;
}

}  // namespace
}  // namespace sluice::cli
