// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/collect/pod_resources.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <chrono>
#include <limits>

#include "deviceplugin/kubelet/podresources.grpc.pb.h"

namespace sluice::deviceplugin {

Result<std::vector<pods::Owned>> OwnersOfIds(const std::string& socket,
                                             const std::string& resource) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // All pods of the node with all their devices: other plugins may have many.
  arguments.SetMaxReceiveMessageSize(std::numeric_limits<int>::max());
  const auto kubelet = v1::PodResourcesLister::NewStub(
      grpc::CreateCustomChannel("unix://" + socket, grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(1));
  v1::ListPodResourcesResponse list;
  const grpc::Status status = kubelet->List(&context, {}, &list);
  if (!status.ok()) {
    return Status(StatusCode::kUnavailable, "kubelet at " + socket + ": " + status.error_message());
  }
  std::vector<pods::Owned> owners;
  for (const auto& pod : list.pod_resources()) {
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

}  // namespace sluice::deviceplugin
