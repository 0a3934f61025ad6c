// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/server/plugin_server.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "deviceplugin/server/plugin_service.h"

namespace sluice::deviceplugin {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(500);

}  // namespace

struct PluginServer::Parts {
  Parts(const Offer* offer, const Allocator* allocator, Preference preference, Figures* figures)
      : service(offer, allocator, std::move(preference), figures) {}
  std::string path;
  PluginService service;
  std::unique_ptr<grpc::Server> server;
};

PluginServer::PluginServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Result<std::unique_ptr<PluginServer>> PluginServer::Start(const std::string& path,
                                                          const Offer* offer,
                                                          const Allocator* allocator,
                                                          Preference preference, Figures* figures) {
  auto parts = std::make_unique<Parts>(offer, allocator, std::move(preference), figures);
  ::unlink(path.c_str());
  // No bound on threads: gRPC refuses a call for which it has none, and that pod would not start.
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix://" + path, grpc::InsecureServerCredentials());
  builder.RegisterService(&parts->service);
  parts->server = builder.BuildAndStart();
  if (parts->server == nullptr) {
    return Status(StatusCode::kUnavailable, "cannot listen at " + path);
  }
  parts->path = path;
  return std::unique_ptr<PluginServer>(new PluginServer(std::move(parts)));
}

PluginServer::~PluginServer() {
  parts_->server->Shutdown(std::chrono::system_clock::now() + kPatience);
  parts_->server->Wait();
  ::unlink(parts_->path.c_str());
}

}  // namespace sluice::deviceplugin
