// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/admin_service.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "noderuntime/gateway/api/admin.grpc.pb.h"

namespace sluice::gateway {
namespace {

namespace api = ::sluice::admin::v1;

grpc::Status Failed(const Status& status) {
  const auto code = [&] {
    switch (status.code()) {
      case StatusCode::kInvalidArgument:
        return grpc::StatusCode::INVALID_ARGUMENT;
      case StatusCode::kNotFound:
        return grpc::StatusCode::NOT_FOUND;
      case StatusCode::kResourceExhausted:
      case StatusCode::kFailedPrecondition:
        return grpc::StatusCode::FAILED_PRECONDITION;
      default:
        return grpc::StatusCode::UNAVAILABLE;
    }
  }();
  return grpc::Status(code, status.message());
}

void Fill(const JobView& job, api::Job* out) {
  out->set_id(job.id);
  out->set_name(job.name);
  out->set_phase(job.phase);
  out->set_request_bytes(job.request_bytes.value_or(0));
  out->set_limit_bytes(job.limit_bytes.value_or(0));
  out->set_held_bytes(job.held_bytes.value_or(0));
  out->set_peak_held_bytes(job.peak_held_bytes.value_or(0));
  out->set_outside_bytes(job.outside_bytes.value_or(0));
  out->set_waits_for(job.waits_for);
  out->set_waits_ms(job.waits_ms);
}

void Fill(const GpuView& gpu, api::Gpu* out) {
  out->set_number(gpu.number);
  out->set_uuid(gpu.uuid);
  out->set_name(gpu.name);
  out->set_pool_bytes(gpu.pool_bytes.value_or(0));
  out->set_budget_bytes(gpu.budget_bytes.value_or(0));
  out->set_free_bytes(gpu.free_bytes.value_or(0));
  out->set_policy(gpu.policy);
  out->set_lanes(gpu.lanes);
  out->set_draining(gpu.draining.value_or(false));
  out->set_bypassed_pods(gpu.bypassed_pods.value_or(0));
  out->set_bypassed_others(gpu.bypassed_others.value_or(0));
  for (const JobView& job : gpu.jobs) Fill(job, out->add_jobs());
}

class AdminService final : public api::Admin::Service {
 public:
  explicit AdminService(const Node* node) : node_(node) {}

  grpc::Status List(grpc::ServerContext*, const api::ListRequest*, api::ListReply* reply) override {
    for (const GpuView& gpu : node_->Look()) {
      if (gpu.up) Fill(gpu, reply->add_gpus());
    }
    if (reply->gpus_size() > 0) return grpc::Status::OK;
    return Failed(Status(StatusCode::kUnavailable, "no daemon of this node answers"));
  }

  grpc::Status SetLimit(grpc::ServerContext*, const api::SetLimitRequest* request,
                        api::SetLimitReply* reply) override {
    const Result<Node::Found> found = node_->Find(request->job());
    if (!found.ok()) return Failed(found.status());
    Result<cli::DaemonClient> daemon = node_->Connect(found->gpu.number);
    if (!daemon.ok()) return Failed(daemon.status());
    const auto limit = daemon->SetLimit(found->gpu.jobs[found->job].id, request->bytes());
    if (!limit.ok()) return Failed(limit.status());
    reply->set_bytes(*limit);
    return grpc::Status::OK;
  }

  grpc::Status Drain(grpc::ServerContext*, const api::DrainRequest* request,
                     api::DrainReply* reply) override {
    return ToAll(Numbers(*request), [&](cli::DaemonClient* daemon) -> Status {
      const auto drained = daemon->Drain(request->on());
      if (!drained.ok()) return drained.status();
      reply->set_jobs(reply->jobs() + drained->jobs);
      return {};
    });
  }

  grpc::Status SetPolicy(grpc::ServerContext*, const api::SetPolicyRequest* request,
                         api::SetPolicyReply* reply) override {
    return ToAll(Numbers(*request), [&](cli::DaemonClient* daemon) -> Status {
      const auto lanes = daemon->SetPolicy(request->policy(), request->lanes());
      if (!lanes.ok()) return lanes.status();
      reply->set_lanes(*lanes);
      return {};
    });
  }

  grpc::Status SetBudget(grpc::ServerContext*, const api::SetBudgetRequest* request,
                         api::SetBudgetReply* reply) override {
    Result<cli::DaemonClient> daemon = node_->Connect(request->gpu());
    if (!daemon.ok()) return Failed(daemon.status());
    const auto budget = daemon->SetBudget(request->bytes());
    if (!budget.ok()) return Failed(budget.status());
    reply->set_bytes(budget->bytes);
    reply->set_in_force(budget->in_force);
    return grpc::Status::OK;
  }

  grpc::Status Explain(grpc::ServerContext*, const api::ExplainRequest* request,
                       api::ExplainReply* reply) override {
    const Result<Node::Found> found = node_->Find(request->job());
    if (!found.ok()) return Failed(found.status());
    Fill(found->gpu.jobs[found->job], reply->mutable_job());
    Fill(found->gpu, reply->mutable_gpu());
    return grpc::Status::OK;
  }

 private:
  template <typename Request>
  std::vector<uint32_t> Numbers(const Request& request) const {
    return node_->Numbers({request.gpus().begin(), request.gpus().end()});
  }

  /// To each of these GPUs' daemons, whatever becomes of it at the others. An error names those
  /// where it is not done; it is theirs where all say the same, and else may be tried again.
  template <typename Order>
  grpc::Status ToAll(const std::vector<uint32_t>& gpus, const Order& order) const {
    std::vector<Status> failed;
    std::string text;
    for (const uint32_t gpu : gpus) {
      Result<cli::DaemonClient> daemon = node_->Connect(gpu);
      const Status done = daemon.ok() ? order(&*daemon) : daemon.status();
      if (done.ok()) continue;
      failed.push_back(done);
      text += (text.empty() ? "GPU " : "; GPU ") + std::to_string(gpu) + ": " + done.message();
    }
    if (failed.empty()) return grpc::Status::OK;
    const auto like_the_first = [&failed](const Status& status) {
      return status.code() == failed.front().code();
    };
    const bool all_alike =
        failed.size() == gpus.size() && std::all_of(failed.begin(), failed.end(), like_the_first);
    return Failed(Status(all_alike ? failed.front().code() : StatusCode::kUnavailable,
                         "not done on " + std::to_string(failed.size()) + " of " +
                             std::to_string(gpus.size()) + " GPUs: " + text));
  }

  const Node* node_;
};

}  // namespace

struct AdminServer::Parts {
  explicit Parts(const Node* node) : service(node) {}
  std::string path;
  AdminService service;
  std::unique_ptr<grpc::Server> server;
};

AdminServer::AdminServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Result<std::unique_ptr<AdminServer>> AdminServer::Start(const std::string& path, const Node* node) {
  auto parts = std::make_unique<Parts>(node);
  ::unlink(path.c_str());
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix://" + path, grpc::InsecureServerCredentials());
  builder.RegisterService(&parts->service);
  // Nobody else's from the moment that it is there.
  const mode_t mask = ::umask(0177);
  parts->server = builder.BuildAndStart();
  ::umask(mask);
  if (parts->server == nullptr) {
    return Status(StatusCode::kUnavailable, "cannot listen at " + path);
  }
  parts->path = path;
  return std::unique_ptr<AdminServer>(new AdminServer(std::move(parts)));
}

AdminServer::~AdminServer() {
  parts_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(500));
  parts_->server->Wait();
  ::unlink(parts_->path.c_str());
}

}  // namespace sluice::gateway
