// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/server/plugin_service.h"

#include <algorithm>

#include "common/log/log.h"
#include "deviceplugin/daemon/clock.h"

namespace sluice::deviceplugin {
namespace {

/// A stream that kubelet has given up is noticed this soon.
constexpr int kLookForCancelMs = 500;

template <typename List>
std::vector<std::string> Strings(const List& list) {
  return {list.begin(), list.end()};
}

grpc::Status ToGrpc(const Status& status) {
  grpc::StatusCode code = grpc::StatusCode::INTERNAL;
  if (status.code() == StatusCode::kInvalidArgument) code = grpc::StatusCode::INVALID_ARGUMENT;
  if (status.code() == StatusCode::kResourceExhausted) code = grpc::StatusCode::RESOURCE_EXHAUSTED;
  return {code, status.message()};
}

void Fill(const Access& access, v1beta1::ContainerAllocateResponse* response) {
  for (const auto& [name, value] : access.environment) (*response->mutable_envs())[name] = value;
  for (const Mount& mount : access.mounts) {
    v1beta1::Mount* out = response->add_mounts();
    out->set_host_path(mount.host);
    out->set_container_path(mount.container);
    out->set_read_only(mount.read_only);
  }
}

}  // namespace

grpc::Status PluginService::GetDevicePluginOptions(grpc::ServerContext* /*context*/,
                                                   const v1beta1::Empty* /*request*/,
                                                   v1beta1::DevicePluginOptions* response) {
  response->set_get_preferred_allocation_available(true);
  return grpc::Status::OK;
}

grpc::Status PluginService::ListAndWatch(
    grpc::ServerContext* context, const v1beta1::Empty* /*request*/,
    grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) {
  uint64_t told = 0;
  while (!context->IsCancelled() && !offer_->closed()) {
    const Offer::List list = offer_->Await(told, kLookForCancelMs);
    if (list.version == told) continue;
    v1beta1::ListAndWatchResponse response;
    for (const Offer::Entry& entry : list.entries) {
      v1beta1::Device* device = response.add_devices();
      device->set_id(*entry.id);
      device->set_health(entry.healthy ? "Healthy" : "Unhealthy");
    }
    if (!writer->Write(response)) break;
    told = list.version;
  }
  return grpc::Status::OK;
}

grpc::Status PluginService::GetPreferredAllocation(
    grpc::ServerContext* /*context*/, const v1beta1::PreferredAllocationRequest* request,
    v1beta1::PreferredAllocationResponse* response) {
  for (const auto& container : request->container_requests()) {
    const Result<std::vector<std::string>> chosen =
        PreferredIds(offer_->ids(), Strings(container.available_deviceids()),
                     Strings(container.must_include_deviceids()),
                     static_cast<size_t>(std::max(0, container.allocation_size())), preference_);
    if (!chosen.ok()) return ToGrpc(chosen.status());
    auto* ids = response->add_container_responses()->mutable_deviceids();
    ids->Assign(chosen->begin(), chosen->end());
  }
  return grpc::Status::OK;
}

grpc::Status PluginService::Allocate(grpc::ServerContext* /*context*/,
                                     const v1beta1::AllocateRequest* request,
                                     v1beta1::AllocateResponse* response) {
  const uint64_t began_ns = SteadyNs();
  grpc::Status status = Grant(*request, response);
  figures_->allocate.Add(SteadyNs() - began_ns);
  ++(status.ok()                                         ? figures_->allocations_granted
     : status.error_code() == grpc::StatusCode::INTERNAL ? figures_->allocations_failed
                                                         : figures_->allocations_refused);
  return status;
}

grpc::Status PluginService::Grant(const v1beta1::AllocateRequest& request,
                                  v1beta1::AllocateResponse* response) {
  std::vector<std::vector<std::string>> containers;
  for (const auto& container : request.container_requests()) {
    containers.push_back(Strings(container.devices_ids()));
    // Kubelet may have chosen before it was told.
    if (const std::string why = offer_->Refusal(containers.back()); !why.empty()) {
      logging::Warn("refused: {}", why);
      return {grpc::StatusCode::FAILED_PRECONDITION, why};
    }
  }
  const Result<std::vector<Access>> given = allocator_->Allocate(containers, Since1970Ns());
  if (!given.ok()) {
    logging::Warn("refused: {}", given.status().message());
    return ToGrpc(given.status());
  }
  for (const Access& access : *given) Fill(access, response->add_container_responses());
  return grpc::Status::OK;
}

grpc::Status PluginService::PreStartContainer(grpc::ServerContext* /*context*/,
                                              const v1beta1::PreStartContainerRequest* /*request*/,
                                              v1beta1::PreStartContainerResponse* /*response*/) {
  return grpc::Status::OK;
}

}  // namespace sluice::deviceplugin
