// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/collect/pod_resources.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <chrono>
#include <limits>

#include "deviceplugin/kubelet/podresources.grpc.pb.h"

namespace sluice::deviceplugin {

namespace {

constexpr auto kPatience = std::chrono::seconds(1);

std::unique_ptr<v1::PodResourcesLister::Stub> Kubelet(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // All pods of the node with all their devices: other plugins may have many.
  arguments.SetMaxReceiveMessageSize(std::numeric_limits<int>::max());
  return v1::PodResourcesLister::NewStub(
      grpc::CreateCustomChannel("unix://" + socket, grpc::InsecureChannelCredentials(), arguments));
}

Status Away(const std::string& socket, const grpc::Status& status) {
  return Status(StatusCode::kUnavailable, "kubelet at " + socket + ": " + status.error_message());
}

Result<v1::ListPodResourcesResponse> ListPods(const std::string& socket) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::ListPodResourcesResponse list;
  const grpc::Status status = Kubelet(socket)->List(&context, {}, &list);
  if (!status.ok()) return Away(socket, status);
  return list;
}

void AddDevices(const v1::ContainerDevices& devices, const std::string& own,
                const std::string& owner, std::vector<ForeignDevice>* all) {
  if (devices.resource_name() == own) return;
  for (const std::string& id : devices.device_ids()) {
    all->push_back({devices.resource_name(), id, owner});
  }
}

}  // namespace

Result<std::vector<pods::Owned>> OwnersOfIds(const std::string& socket,
                                             const std::string& resource) {
  const Result<v1::ListPodResourcesResponse> list = ListPods(socket);
  if (!list.ok()) return list.status();
  std::vector<pods::Owned> owners;
  for (const auto& pod : list->pod_resources()) {
    for (const auto& container : pod.containers()) {
      pods::Owned owned = {pod.namespace_() + "/" + pod.name() + "/" + container.name(), {}};
      for (const auto& devices : container.devices()) {
        if (devices.resource_name() != resource) continue;
        owned.ids.insert(owned.ids.end(), devices.device_ids().begin(), devices.device_ids().end());
      }
      if (!owned.ids.empty()) owners.push_back(std::move(owned));
    }
  }
  return owners;
}

Result<std::vector<ForeignDevice>> DevicesOfOthers(const std::string& socket,
                                                   const std::string& own) {
  const Result<v1::ListPodResourcesResponse> list = ListPods(socket);
  if (!list.ok()) return list.status();
  std::vector<ForeignDevice> all;
  for (const auto& pod : list->pod_resources()) {
    for (const auto& container : pod.containers()) {
      const std::string owner = pod.namespace_() + "/" + pod.name() + "/" + container.name();
      for (const auto& devices : container.devices()) AddDevices(devices, own, owner, &all);
    }
  }
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::AllocatableResourcesResponse offered;
  const grpc::Status status = Kubelet(socket)->GetAllocatableResources(&context, {}, &offered);
  // Before 1.23, or switched off.
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) return all;
  if (!status.ok()) return Away(socket, status);
  for (const auto& devices : offered.devices()) AddDevices(devices, own, "", &all);
  return all;
}

}  // namespace sluice::deviceplugin
