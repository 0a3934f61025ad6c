// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/cluster_command.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "tests/support/temp_folder.h"

namespace sluice::cli {
namespace {

TEST(ParseClusterCommand, OptionsStandBeforeTheCommand) {
  const auto parsed = ParseClusterCommand(
      {"-n", "gpu", "--context=lab", "--kubeconfig", "/a", "--node", "n1", "drain", "on"});
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->space, "gpu");
  EXPECT_EQ(parsed->node, "n1");
  EXPECT_EQ(parsed->access, (std::vector<std::string>{"--context=lab", "--kubeconfig=/a"}));
  EXPECT_EQ(parsed->command, (std::vector<std::string>{"drain", "on"}));
  EXPECT_TRUE(ParseClusterCommand({"--all-nodes", "policy", "flow"}).ok());
  EXPECT_TRUE(ParseClusterCommand({"--help"})->wants_help);
}

TEST(ParseClusterCommand, NamesWhatIsWrong) {
  const auto error = [](std::vector<std::string> arguments) {
    return ParseClusterCommand(arguments).status().message();
  };
  EXPECT_EQ(error({}),
            "a command is needed; allowed: status, explain, top, limit, drain, policy, budget");
  EXPECT_EQ(error({"run"}),
            "'run' is no command for a cluster; allowed: status, explain, top, limit, drain, "
            "policy, budget");
  EXPECT_EQ(error({"drain", "on"}),
            "drain changes a node; allowed: with --node NODE or --all-nodes");
  EXPECT_EQ(error({"--node", "a", "--all-nodes", "status"}),
            "--node, --all-nodes: allowed: one of them");
  EXPECT_EQ(error({"--node"}), "--node without a value");
  EXPECT_NE(error({"--as=root", "status"}).find("--as: allowed before the command"),
            std::string::npos);
  EXPECT_NE(error({"status", "--runtime-dir=/x"}).find("allowed: --node"), std::string::npos);
}

TEST(ParseClusterCommand, AJobIsAPodsBecauseEachNodeHasItsOwnNumbers) {
  for (const char* word : {"limit", "explain"}) {
    EXPECT_TRUE(ParseClusterCommand({word, "ns/pod", "4GiB"}).ok());
    EXPECT_TRUE(ParseClusterCommand({word, "--json", "ns/pod/main"}).ok());
    for (const char* job : {"3", "pod", "/pod", "ns/", "ns//main", "a/b/c/d", "--json"}) {
      const Status refused = ParseClusterCommand({word, job}).status();
      EXPECT_NE(refused.message().find("allowed on a cluster: NAMESPACE/POD"), std::string::npos)
          << job << ": " << refused.message();
    }
  }
}

TEST(NodePodsOf, ThoseThatRunByNode) {
  const auto pods = NodePodsOf(R"({"items": [
    {"metadata": {"namespace": "s", "name": "b"}, "spec": {"nodeName": "n2"}, "status": {"phase": "Running"}},
    {"metadata": {"namespace": "s", "name": "c"}, "spec": {}, "status": {"phase": "Pending"}},
    {"metadata": {"namespace": "s", "name": "a"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}]})");
  ASSERT_TRUE(pods.ok());
  EXPECT_EQ(*pods, (std::vector<NodePod>{{"s", "a", "n1"}, {"s", "b", "n2"}}));
  EXPECT_FALSE(NodePodsOf("[]").ok());
  EXPECT_FALSE(NodePodsOf("no").ok());
}

/// A cluster of two nodes: a script in the place of kubectl, which writes down what it is asked.
class ClusterOfTwo : public ::testing::Test {
 protected:
  ClusterOfTwo() {
    std::ofstream(kubectl_) << R"(#!/bin/sh
echo "$@" >>")" << asked_ << R"("
case "$*" in
  *"get pods"*) echo '{"items": [
    {"metadata": {"namespace": "s", "name": "p1"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}},
    {"metadata": {"namespace": "s", "name": "p2"}, "spec": {"nodeName": "n2"}, "status": {"phase": "Running"}}]}';;
  *p1*limit*) echo "job: there is none" >&2; exit 1;;
  *p1*drain*) echo "disk full" >&2; exit 1;;
  *p1*budget*) echo "of GPU 0"; echo "GPU 1 is silent" >&2; exit 1;;
  *p1*top*--json*) echo "[{}]"; echo "GPU 1 is silent" >&2; exit 1;;
  *--json*) echo "[{}]";;
  *) echo "done";;
esac
)";
    ::chmod(kubectl_.c_str(), 0755);
  }
  int Run(const std::vector<std::string>& arguments) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = RunClusterCommand(arguments, Environment::Current(), kubectl_);
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return code;
  }
  std::string Asked() const {
    std::ostringstream text;
    text << std::ifstream(asked_).rdbuf();
    return text.str();
  }

  const testing::TempFolder temp_;
  const std::string kubectl_ = temp_.path() + "/kubectl";
  const std::string asked_ = temp_.path() + "/asked";
  std::string out_;
  std::string err_;
};

TEST_F(ClusterOfTwo, StatusIsThatOfAllNodes) {
  EXPECT_EQ(Run({"--context", "lab", "status"}), 0) << err_;
  EXPECT_EQ(out_, "node n1\ndone\nnode n2\ndone\n");
  EXPECT_NE(Asked().find("--context=lab get pods -o json --selector app.kubernetes.io/name=sluice,"
                         "app.kubernetes.io/component=node --all-namespaces"),
            std::string::npos)
      << Asked();
  EXPECT_NE(Asked().find("--context=lab exec --namespace=s p2 --container=node -- sluice status "
                         "--runtime-dir=/run/sluice-node"),
            std::string::npos)
      << Asked();
  EXPECT_EQ(Run({"status", "--json"}), 0);
  EXPECT_EQ(out_, "[{\"node\": \"n1\", \"gpus\": [{}]},\n{\"node\": \"n2\", \"gpus\": [{}]}]\n");
}

TEST_F(ClusterOfTwo, AJobIsOnOneNode) {
  EXPECT_EQ(Run({"limit", "ns/pod", "4GiB"}), 0) << err_;
  EXPECT_EQ(out_, "node n2\ndone\n");
  EXPECT_EQ(err_, "");
}

TEST_F(ClusterOfTwo, ANodeThatFailsIsNamed) {
  EXPECT_EQ(Run({"--all-nodes", "drain", "on"}), 1);
  EXPECT_EQ(out_, "node n2\ndone\n");
  EXPECT_EQ(err_, "n1: disk full\n");
  EXPECT_EQ(Run({"drain", "on"}), 2);
}

TEST_F(ClusterOfTwo, WhatTheOtherDaemonsOfANodeSaidIsShown) {
  EXPECT_EQ(Run({"--all-nodes", "budget", "1GiB"}), 1);
  EXPECT_EQ(out_, "node n1\nof GPU 0\nnode n2\ndone\n");
  EXPECT_EQ(err_, "n1: GPU 1 is silent\n");
  EXPECT_EQ(Run({"top", "--json"}), 1);
  EXPECT_EQ(out_, "[{\"node\": \"n1\", \"gpus\": [{}]},\n{\"node\": \"n2\", \"gpus\": [{}]}]\n");
}

}  // namespace
}  // namespace sluice::cli
