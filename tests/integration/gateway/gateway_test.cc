// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// sluice-gateway before real daemons: what operators' programs and Prometheus get.
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "common/bytes.h"
#include "noderuntime/gateway/admin_service.h"
#include "noderuntime/gateway/api/admin.grpc.pb.h"
#include "noderuntime/gateway/metrics_server.h"
#include "tests/support/restart_bed.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

namespace api = ::sluice::admin::v1;

/// GET /metrics, to its end.
std::string Scrape(int port) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return "";
  const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
  if (::write(fd.get(), request.data(), request.size()) < 0) return "";
  std::string text;
  char part[4096];
  for (ssize_t got = 0; (got = ::read(fd.get(), part, sizeof part)) > 0;) {
    text.append(part, static_cast<size_t>(got));
  }
  return text;
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
  template <typename Request, typename Reply>
  grpc::Status Call(grpc::Status (api::Admin::Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Reply*),
                    const Request& request, Reply* reply) {
    grpc::ClientContext context;
    return (stub_.get()->*method)(&context, request, reply);
  }

  TestBed bed_{SmallBed()};
  const TempFolder temp_;
  const std::string socket_ = temp_ / "admin.sock";
  const gateway::Node node_{bed_.runtime_dir()};
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

TEST_F(Gateway, OnlyItsOwnerReachesTheSocket) {
  struct stat info = {};
  ASSERT_EQ(::stat(socket_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(Gateway, MetricsAreAskedForAnewAndSayWhenADaemonIsGone) {
  const auto metrics = gateway::MetricsServer::Start("127.0.0.1:0", &node_);
  ASSERT_TRUE(metrics.ok()) << metrics.status().message();
  const std::string up = Scrape((*metrics)->port());
  EXPECT_NE(up.find("200 OK"), std::string::npos) << up;
  EXPECT_NE(up.find("sluice_up{gpu=\"0\"} 1\n"), std::string::npos) << up;
  EXPECT_NE(up.find("of=\"pod\"} 0\n"), std::string::npos) << up;
  bed_.StopDaemon();
  const std::string down = Scrape((*metrics)->port());
  EXPECT_NE(down.find("sluice_up{gpu=\"0\"} 0\n"), std::string::npos) << down;
  EXPECT_EQ(down.find("of=\"pod\"} 0\n"), std::string::npos) << "a counter that is unknown is no 0";
  api::ListReply list;
  EXPECT_EQ(Call(&api::Admin::Stub::List, api::ListRequest(), &list).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace sluice::testing
