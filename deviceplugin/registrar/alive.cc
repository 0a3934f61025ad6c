// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/registrar/alive.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <chrono>

#include "deviceplugin/kubelet/deviceplugin.grpc.pb.h"

namespace sluice::deviceplugin {

Status AskPlugin(const std::string& socket) {
  const auto plugin = v1beta1::DevicePlugin::NewStub(
      grpc::CreateChannel("unix://" + socket, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(3));
  v1beta1::DevicePluginOptions options;
  const grpc::Status status = plugin->GetDevicePluginOptions(&context, {}, &options);
  if (status.ok()) return {};
  return Status(StatusCode::kUnavailable,
                "the plugin at " + socket + ": " + status.error_message());
}

}  // namespace sluice::deviceplugin
