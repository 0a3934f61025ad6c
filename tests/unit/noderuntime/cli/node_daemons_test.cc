// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/node_daemons.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

TEST(DaemonsIn, AFolderWithADaemonIsThatOne) {
  const testing::TempFolder temp;
  std::ofstream(temp.path() + "/noded.sock") << "";
  fs::create_directory(temp.path() + "/0");
  const NodeDaemons found = DaemonsIn(temp.path());
  EXPECT_EQ(found.folders, std::vector<std::string>{temp.path()});
  EXPECT_FALSE(found.of_node);
}

TEST(DaemonsIn, ANodesFolderIsAllOfThemByNumber) {
  const testing::TempFolder temp;
  for (const char* name : {"10", "2", "0", "jobs", "1x"}) {
    fs::create_directory(temp.path() + "/" + name);
  }
  std::ofstream(temp.path() + "/3") << "a file";
  const NodeDaemons found = DaemonsIn(temp.path());
  const std::vector<std::string> folders = {temp.path() + "/0", temp.path() + "/2",
                                            temp.path() + "/10"};
  EXPECT_EQ(found.folders, folders);
  EXPECT_TRUE(found.of_node);
}

TEST(DaemonsIn, WhereNothingIsItIsTheFolderAndNobodyAnswers) {
  const testing::TempFolder temp;
  const std::string nowhere = temp.path() + "/nowhere";
  const NodeDaemons found = DaemonsIn(nowhere);
  ASSERT_EQ(found.folders, std::vector<std::string>{nowhere});
  EXPECT_NE(ConnectIn(nowhere).status().message().find("no daemon runs in " + nowhere),
            std::string::npos);
}

}  // namespace
}  // namespace sluice::cli
