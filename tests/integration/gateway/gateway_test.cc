// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// sluice-gateway before real daemons: what operators' programs and Prometheus get.
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/bytes.h"
#include "common/metrics/exposer.h"
#include "noderuntime/gateway/admin_service.h"
#include "noderuntime/gateway/api/admin.grpc.pb.h"
#include "noderuntime/gateway/metrics.h"
#include "tests/support/restart_bed.h"
#include "tests/support/scrape.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

namespace api = ::sluice::admin::v1;

/// Where sluice-node would have started the bed's daemon.
void MakeFolderOfGpu(const TestBed& bed, const std::string& folder) {
  std::filesystem::create_directory(folder);
  std::filesystem::create_symlink(cli::DaemonSocket(bed.runtime_dir()), folder + "/noded.sock");
}

class Gateway : public ::testing::Test {
 protected:
  Gateway() {
    auto admin = gateway::AdminServer::Start(socket_, &node_);
    EXPECT_TRUE(admin.ok()) << admin.status().message();
    admin_ = std::move(*admin);
    stub_ = api::Admin::NewStub(
        grpc::CreateChannel("unix://" + socket_, grpc::InsecureChannelCredentials()));
  }
  /// Both beds as GPUs 0 and 1 of one node, in an admin service of its own.
  std::unique_ptr<gateway::AdminServer> ServeWith(const TestBed& other) {
    std::filesystem::create_directory(temp_ / "node");
    MakeFolderOfGpu(bed_, temp_ / "node/0");
    MakeFolderOfGpu(other, temp_ / "node/1");
    auto admin = gateway::AdminServer::Start(temp_ / "both.sock", &both_);
    EXPECT_TRUE(admin.ok()) << admin.status().message();
    stub_ = api::Admin::NewStub(
        grpc::CreateChannel("unix://" + (temp_ / "both.sock"), grpc::InsecureChannelCredentials()));
    return std::move(*admin);
  }
  template <typename Request, typename Reply>
  grpc::Status Call(grpc::Status (api::Admin::Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Reply*),
                    const Request& request, Reply* reply) {
    grpc::ClientContext context;
    return (stub_.get()->*method)(&context, request, reply);
  }

  Result<std::unique_ptr<metrics::Exposer>> Serve() {
    return metrics::Exposer::Start("127.0.0.1:0",
                                   [this] { return gateway::MetricsOf("n1", node_.Look()); });
  }

  TestBed bed_{SmallBed()};
  const TempFolder temp_;
  const std::string socket_ = temp_ / "admin.sock";
  const gateway::Node node_{bed_.runtime_dir()};
  const gateway::Node both_{temp_ / "node"};
  std::unique_ptr<gateway::AdminServer> admin_;
  std::unique_ptr<api::Admin::Stub> stub_;
};

TEST_F(Gateway, TellsAndChangesWhatTheDaemonsDo) {
  InputPipe input = MakeInputPipe();
  cli::JobGroup jobs;
  jobs.Add(bed_.Start({.label = "job",
                       .command = {Program("WORKLOAD"), "--one-shot", "--hold"},
                       .run_flags = {"--limit", "8MiB", "--request", "4MiB"},
                       .input = input.read_end.get()}));
  Finish(jobs, 60'000, [&](cli::JobGroup& running) {
    const auto& out = running.jobs().front().out();
    if (!input.write_end.valid() || std::find(out.begin(), out.end(), "holding") == out.end()) {
      return;
    }
    api::ListReply list;
    ASSERT_TRUE(Call(&api::Admin::Stub::List, api::ListRequest(), &list).ok());
    ASSERT_EQ(list.gpus_size(), 1);
    ASSERT_EQ(list.gpus(0).jobs_size(), 1);
    const api::Job& job = list.gpus(0).jobs(0);
    EXPECT_EQ(job.limit_bytes(), 8 * kMiB);
    EXPECT_GT(job.held_bytes(), 0u);

    api::SetLimitRequest limit;
    limit.set_job(job.name());
    limit.set_bytes(10 * kMiB);
    api::SetLimitReply limited;
    EXPECT_TRUE(Call(&api::Admin::Stub::SetLimit, limit, &limited).ok());
    EXPECT_EQ(limited.bytes(), 10 * kMiB);
    limit.set_bytes(1 * kMiB);
    const grpc::Status refused = Call(&api::Admin::Stub::SetLimit, limit, &limited);
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_NE(refused.error_message().find("(its request)"), std::string::npos);

    api::ExplainRequest which;
    which.set_job(std::to_string(job.id()));
    api::ExplainReply why;
    EXPECT_TRUE(Call(&api::Admin::Stub::Explain, which, &why).ok());
    EXPECT_EQ(why.job().limit_bytes(), 10 * kMiB);
    EXPECT_EQ(why.gpu().jobs_size(), 1);
    which.set_job("nobody");
    EXPECT_EQ(Call(&api::Admin::Stub::Explain, which, &why).error_code(),
              grpc::StatusCode::NOT_FOUND);
    input.write_end.reset();
  });
}

TEST_F(Gateway, OrdersToTheNode) {
  api::DrainRequest drain;
  drain.set_on(true);
  api::DrainReply drained;
  EXPECT_TRUE(Call(&api::Admin::Stub::Drain, drain, &drained).ok());
  EXPECT_EQ(bed_.Status().at("draining"), true);
  api::SetPolicyRequest policy;
  policy.set_policy("temporal");
  api::SetPolicyReply decided;
  EXPECT_TRUE(Call(&api::Admin::Stub::SetPolicy, policy, &decided).ok());
  EXPECT_EQ(bed_.Status().at("policy"), "temporal");
  policy.set_policy("luck");
  EXPECT_EQ(Call(&api::Admin::Stub::SetPolicy, policy, &decided).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  api::SetBudgetRequest budget;
  budget.set_bytes(8 * kMiB);
  api::SetBudgetReply lent;
  EXPECT_TRUE(Call(&api::Admin::Stub::SetBudget, budget, &lent).ok());
  EXPECT_EQ(lent.in_force(), 8 * kMiB);
}

TEST_F(Gateway, OneThatDoesNotAnswerKeepsNoOrderFromTheOthers) {
  const TestBed other(SmallBed());
  const auto admin = ServeWith(other);
  bed_.StopDaemon();
  const auto only_the_first = [](const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(status.error_message().find("not done on 1 of 2 GPUs: GPU 0: no daemon runs in "), 0u)
        << status.error_message();
    EXPECT_EQ(status.error_message().find("GPU 1"), std::string::npos) << status.error_message();
  };
  api::DrainRequest drain;
  drain.set_on(true);
  api::DrainReply drained;
  only_the_first(Call(&api::Admin::Stub::Drain, drain, &drained));
  EXPECT_EQ(other.Status().at("draining"), true);
  api::SetPolicyRequest policy;
  policy.set_policy("temporal");
  api::SetPolicyReply decided;
  only_the_first(Call(&api::Admin::Stub::SetPolicy, policy, &decided));
  EXPECT_EQ(other.Status().at("policy"), "temporal");
}

TEST_F(Gateway, OnlyItsOwnerReachesTheSocket) {
  struct stat info = {};
  ASSERT_EQ(::stat(socket_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(Gateway, MetricsAreAskedForAnewAndSayWhenADaemonIsGone) {
  const auto metrics = Serve();
  ASSERT_TRUE(metrics.ok()) << metrics.status().message();
  const std::string up = Scrape((*metrics)->port());
  EXPECT_NE(up.find("200 OK"), std::string::npos) << up;
  EXPECT_NE(up.find("sluice_up{node=\"n1\",gpu=\"0\"} 1\n"), std::string::npos) << up;
  const std::string switches = "sluice_policy_switches_total{";
  EXPECT_NE(up.find(switches), std::string::npos) << up;
  EXPECT_EQ(up.find("of=\"pod\"}"), std::string::npos) << "without grants nobody looks for them";
  EXPECT_NE(up.find("sluice_keeper_up{"), std::string::npos) << up;
  bed_.StopDaemon();
  EXPECT_FALSE(node_.Look().front().there);
  const std::string down = Scrape((*metrics)->port());
  EXPECT_NE(down.find("sluice_up{node=\"n1\",gpu=\"0\"} 0\n"), std::string::npos) << down;
  EXPECT_EQ(down.find(switches), std::string::npos) << "a counter that is unknown is no 0";
  api::ListReply list;
  EXPECT_EQ(Call(&api::Admin::Stub::List, api::ListRequest(), &list).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(Gateway, ADaemonThatHangsHidesNoOther) {
  const TestBed other(SmallBed());
  MakeFolderOfGpu(bed_, temp_ / "0");
  MakeFolderOfGpu(other, temp_ / "1");
  ASSERT_EQ(::kill(bed_.daemon_pid(), SIGSTOP), 0);
  const auto began = std::chrono::steady_clock::now();
  const std::vector<gateway::GpuView> gpus = gateway::Node(temp_.path()).Look();
  const auto took = std::chrono::steady_clock::now() - began;
  ASSERT_EQ(::kill(bed_.daemon_pid(), SIGCONT), 0);
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_FALSE(gpus[0].up);
  EXPECT_TRUE(gpus[0].there) << "which tells it from one that is gone";
  EXPECT_TRUE(gpus[1].up);
  // What Prometheus waits for, with room for a machine that is busy.
  EXPECT_LT(took, std::chrono::seconds(8));
  EXPECT_LT(gpus[1].look_ns, gpus[0].look_ns);
}

TEST_F(Gateway, WhoConnectsAndSaysNothingKeepsNobodyFromTheMetrics) {
  const auto metrics = Serve();
  ASSERT_TRUE(metrics.ok()) << metrics.status().message();
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 6; ++i) silent.push_back(Dial((*metrics)->port()));
  EXPECT_NE(Scrape((*metrics)->port()).find("200 OK"), std::string::npos);
}

TEST_F(Gateway, APortThatIsTakenIsNamed) {
  const auto first = Serve();
  ASSERT_TRUE(first.ok());
  const std::string address = "127.0.0.1:" + std::to_string((*first)->port());
  const auto second =
      metrics::Exposer::Start(address, [] { return std::vector<prometheus::MetricFamily>(); });
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("--metrics " + address), std::string::npos);
}

}  // namespace
}  // namespace sluice::testing
