// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/registrar/registration.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <chrono>

#include "deviceplugin/kubelet/deviceplugin.grpc.pb.h"

namespace sluice::deviceplugin {

Status RegisterWithKubelet(const std::string& kubelet_socket, const std::string& endpoint,
                           const std::string& resource) {
  grpc::ChannelArguments arguments;
  // One that is shared would remember that the last kubelet hung up, and wait before it tries
  // again.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto channel = grpc::CreateCustomChannel("unix://" + kubelet_socket,
                                                 grpc::InsecureChannelCredentials(), arguments);
  const auto kubelet = v1beta1::Registration::NewStub(channel);
  v1beta1::RegisterRequest request;
  request.set_version("v1beta1");
  request.set_endpoint(endpoint);
  request.set_resource_name(resource);
  request.mutable_options()->set_get_preferred_allocation_available(true);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(1));
  v1beta1::Empty nothing;
  const grpc::Status status = kubelet->Register(&context, request, &nothing);
  if (status.ok()) return {};
  const bool away = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                    status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  return Status(away ? StatusCode::kUnavailable : StatusCode::kFailedPrecondition,
                "kubelet at " + kubelet_socket + ": " + status.error_message());
}

}  // namespace sluice::deviceplugin
