// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/page/page_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "tests/support/temp_folder.h"

namespace sluice::page {
namespace {

TEST(PageFile, IsFoundWhileItsGatewayLivesAndIsItsUsersAlone) {
  const testing::TempFolder folder;
  EXPECT_EQ(FindPage(folder.path()).status().code(), StatusCode::kNotFound);
  {
    const auto file = PageFile::Claim(folder.path());
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_FALSE(FindPage(folder.path()).ok()) << "claimed, but not served yet";
    ASSERT_TRUE(file->Write({"127.0.0.1:4711", "secret"}).ok());
    struct stat info = {};
    ASSERT_EQ(::stat((folder / "page.json").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    const auto found = FindPage(folder.path());
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found->authority, "127.0.0.1:4711");
    EXPECT_EQ(found->token, "secret");
  }
  EXPECT_FALSE(FindPage(folder.path()).ok());
  EXPECT_FALSE(std::filesystem::exists(folder / "page.json"));
}

TEST(PageFile, OnlyOneGatewayServesAFolder) {
  const testing::TempFolder folder;
  auto first = std::make_optional(PageFile::Claim(folder.path()));
  ASSERT_TRUE((*first)->Write({"127.0.0.1:1", "a"}).ok());
  const auto second = PageFile::Claim(folder.path());
  EXPECT_EQ(second.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(second.status().message().find("another sluice-gateway"), std::string::npos);
  EXPECT_TRUE(FindPage(folder.path()).ok()) << "to be refused takes nothing away";
  first.reset();
  EXPECT_TRUE(PageFile::Claim(folder.path()).ok());
}

TEST(PageFile, WhatAKilledGatewayLeftDoesNotCount) {
  const testing::TempFolder folder;
  std::ofstream(folder / "page.json") << R"({"address": "127.0.0.1:1", "token": "old"})";
  std::ofstream(folder / "page.lock") << "";
  EXPECT_EQ(FindPage(folder.path()).status().code(), StatusCode::kNotFound);
}

TEST(PageFile, IsNotWrittenThroughALink) {
  const testing::TempFolder folder;
  std::ofstream(folder / "victim") << "kept";
  std::filesystem::create_symlink(folder / "victim", folder / "page.json.new");
  const auto file = PageFile::Claim(folder.path());
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Write({"127.0.0.1:1", "a"}).ok());
  std::string text;
  std::ifstream(folder / "victim") >> text;
  EXPECT_EQ(text, "kept");
}

TEST(MakeToken, IsLongAndNeverTheSame) {
  const auto one = MakeToken();
  const auto other = MakeToken();
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(one->size(), 32u);
  EXPECT_EQ(one->find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(*one, *other);
}

TEST(PageUrl, HasTheTokenInTheFragmentAlone) {
  EXPECT_EQ(PageUrl({"127.0.0.1:80", "t"}, 3), "http://127.0.0.1:80/?gpu=3#token=t");
  EXPECT_EQ(PageUrl({"127.0.0.1:80", ""}, -1), "http://127.0.0.1:80/");
}

}  // namespace
}  // namespace sluice::page
