// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "noderuntime/cli/child.h"
#include "noderuntime/cli/offline/files.h"
#include "noderuntime/cli/work_dir.h"

namespace sluice::bench {
namespace {

cli::CommandOutput Papers(const std::vector<std::string>& arguments) {
  cli::SpawnOptions options;
  options.argv = {std::getenv("SLUICE_TEST_PAPERS")};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  auto output = cli::RunCommand(options);
  EXPECT_TRUE(output.ok()) << output.status().message();
  return output.ok() ? *output : cli::CommandOutput();
}

TEST(PapersProgram, PrintsAndKeepsSmallTables) {
  auto work = cli::WorkDir::Create("");
  ASSERT_TRUE(work.ok());
  const auto run =
      Papers({"waterwave-figure2", "waterwave-table2", "--json", work->File("all.json"), "--csv",
              work->path(), "--markdown", work->path(), "--svg", work->path()});
  EXPECT_TRUE(run.status.ok()) << run.out << run.err;
  const auto read = [&](const char* name) {
    const auto text = cli::ReadWholeFile(work->File(name));
    EXPECT_TRUE(text.ok()) << text.status().message();
    return text.ok() ? *text : std::string();
  };
  const auto json = nlohmann::json::parse(read("all.json"), nullptr, false);
  EXPECT_EQ(json["simulated"], true);
  ASSERT_EQ(json["tables"].size(), 2u);
  const auto& figure2 = json["tables"]["waterwave-figure2"]["rows"];
  ASSERT_EQ(figure2.size(), 2u);
  // The paper: 2.4 times as much when frees count only when the GPU is done.
  EXPECT_GT(figure2[1]["over scheduled"].get<double>(), 2);
  EXPECT_EQ(figure2[0]["over scheduled"], 1.0);
  const auto& pairs = json["tables"]["waterwave-table2"]["rows"];
  ASSERT_EQ(pairs.size(), 3u);
  for (const auto& pair : pairs) {
    EXPECT_GT(pair["bound/alone"].get<double>(), pair["paper: /alone"].get<double>());
    EXPECT_GT(pair["auto/turns"].get<double>(), 1.03);
    EXPECT_LT(pair["paging/turns"].get<double>(), 0.5);
  }
  EXPECT_NE(run.out.find("when computed"), std::string::npos);
  EXPECT_NE(read("waterwave-figure2.csv").find("when computed,13.0,"), std::string::npos);
  EXPECT_NE(read("waterwave-table2.md").find("| resnet50 + bert-base |"), std::string::npos);
  EXPECT_NE(read("waterwave-figure2.svg").find("<polyline"), std::string::npos);
}

TEST(PapersProgram, ShowsMemoryOverTime) {
  auto work = cli::WorkDir::Create("");
  ASSERT_TRUE(work.ok());
  const auto run = Papers({"zico-figure9", "zico-figure10", "zico-table1", "--json",
                           work->File("all.json"), "--svg", work->path()});
  EXPECT_TRUE(run.status.ok()) << run.out << run.err;
  const auto text = cli::ReadWholeFile(work->File("all.json"));
  ASSERT_TRUE(text.ok()) << text.status().message();
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  const auto& together = json["tables"]["zico-figure9"]["rows"];
  ASSERT_EQ(together.size(), 2u);
  EXPECT_EQ(together[0]["by"], "timeshift");
  EXPECT_GT(together[0]["iterations a while of nasnetalarge's"].get<double>(), 1.1)
      << "as in the paper, of the paper's policy";
  const auto& budgets = json["tables"]["zico-figure10"]["rows"];
  ASSERT_EQ(budgets.size(), 6u);
  for (size_t i = 0; i < budgets.size(); ++i) {
    EXPECT_LE(budgets[i]["held/card"].get<double>(), budgets[i]["budget/card"].get<double>());
    EXPECT_GT(budgets[i]["iterations"].get<int>(), 0);
    if (i % 3 == 1) {
      EXPECT_GT(budgets[i]["gap ms"].get<double>(), 2 * budgets[i - 1]["gap ms"].get<double>());
    }
  }
  // Who marks each launch pays where the host is what takes the time, and nobody gains.
  for (const auto& row : json["tables"]["zico-table1"]["rows"]) {
    EXPECT_LE(row["all"].get<double>(), row["8 MiB"].get<double>() + 0.005);
    EXPECT_LE(row["256 MiB"].get<double>(), 1.005);
    if (row["model"] == "nasnetalarge" && row["a mark costs"] == "12 us") {
      EXPECT_LT(row["all"].get<double>(), 0.95);
    }
  }
  const auto svg = cli::ReadWholeFile(work->File("zico-figure9-timeshift.svg"));
  ASSERT_TRUE(svg.ok()) << svg.status().message();
  EXPECT_NE(svg->find("resnet110"), std::string::npos);
}

TEST(PapersProgram, NamesWhatIsWrong) {
  const auto unknown = Papers({"waterwave-table3"});
  EXPECT_FALSE(unknown.status.ok());
  EXPECT_NE((unknown.out + unknown.err).find("waterwave-table1"), std::string::npos)
      << "what there is";
  EXPECT_FALSE(Papers({}).status.ok());
  const auto folder = Papers({"zico-table2", "--csv", "/no/such/folder"});
  EXPECT_FALSE(folder.status.ok());
  EXPECT_NE((folder.out + folder.err).find("--csv"), std::string::npos);
  const auto file = Papers({"zico-table2", "--json", "/no/such/folder/file"});
  EXPECT_FALSE(file.status.ok());
  EXPECT_NE(file.err.find("/no/such/folder/file"), std::string::npos);
}

}  // namespace
}  // namespace sluice::bench
