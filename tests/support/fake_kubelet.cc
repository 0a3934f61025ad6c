// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/support/fake_kubelet.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "deviceplugin/kubelet/deviceplugin.grpc.pb.h"
#include "deviceplugin/kubelet/podresources.grpc.pb.h"

namespace sluice::testing {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);

Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return {};
  StatusCode code = StatusCode::kInternal;
  if (status.error_code() == grpc::StatusCode::INVALID_ARGUMENT)
    code = StatusCode::kInvalidArgument;
  if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
    code = StatusCode::kResourceExhausted;
  }
  return Status(code, status.error_message());
}

}  // namespace

/// An id for each entry, as some kubelets do.
struct Lister final : v1::PodResourcesLister::Service {
  grpc::Status List(grpc::ServerContext* /*context*/,
                    const v1::ListPodResourcesRequest* /*request*/,
                    v1::ListPodResourcesResponse* response) override {
    const std::lock_guard lock(mutex);
    *response = list;
    return grpc::Status::OK;
  }
  grpc::Status GetAllocatableResources(grpc::ServerContext* /*context*/,
                                       const v1::AllocatableResourcesRequest* /*request*/,
                                       v1::AllocatableResourcesResponse* response) override {
    const std::lock_guard lock(mutex);
    for (const auto& [resource, ids] : offered) {
      for (const std::string& id : ids) {
        v1::ContainerDevices* devices = response->add_devices();
        devices->set_resource_name(resource);
        devices->add_device_ids(id);
      }
    }
    return grpc::Status::OK;
  }
  std::mutex mutex;
  std::map<std::string, std::vector<std::string>> offered;  // by resource
  v1::ListPodResourcesResponse list;
};

struct FakeKubelet::Parts final : v1beta1::Registration::Service {
  grpc::Status Register(grpc::ServerContext* /*context*/, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty* /*response*/) override {
    const std::lock_guard lock(mutex);
    ++count;
    changed.notify_all();
    if (!refusal.empty()) return {grpc::StatusCode::UNKNOWN, refusal};
    // It goes on with who is registered already; the tests have one plugin at a time.
    registered = {request->version(), request->endpoint(), request->resource_name(),
                  request->options().get_preferred_allocation_available()};
    current.reset();
    auto context = std::make_shared<grpc::ClientContext>();
    contexts.push_back(context);
    watchers.emplace_back(
        [this, context, path = folder + "/" + request->endpoint()] { Watch(context.get(), path); });
    return grpc::Status::OK;
  }

  static std::unique_ptr<v1beta1::DevicePlugin::Stub> Plugin(const std::string& path) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return v1beta1::DevicePlugin::NewStub(
        grpc::CreateCustomChannel("unix://" + path, grpc::InsecureChannelCredentials(), arguments));
  }

  void Watch(grpc::ClientContext* context, const std::string& path) {
    const auto plugin = Plugin(path);
    const auto stream = plugin->ListAndWatch(context, {});
    v1beta1::ListAndWatchResponse list;
    while (stream->Read(&list)) {
      Devices devices;
      devices.message_bytes = list.ByteSizeLong();
      for (const auto& device : list.devices()) {
        devices.healthy[device.id()] = device.health() == "Healthy";
      }
      const std::lock_guard lock(mutex);
      latest = std::move(devices);
      changed.notify_all();
    }
    // A plugin that goes away takes its devices with it.
    const std::lock_guard lock(mutex);
    latest.reset();
    changed.notify_all();
  }

  /// Whoever registered last, over one connection, as kubelet asks.
  std::shared_ptr<v1beta1::DevicePlugin::Stub> Current() {
    const std::lock_guard lock(mutex);
    if (current == nullptr)
      current = Plugin(folder + "/" + (registered ? registered->endpoint : "nobody"));
    return current;
  }

  std::string folder;
  Lister lister;
  std::unique_ptr<grpc::Server> server;
  std::mutex mutex;
  std::condition_variable changed;
  size_t count = 0;
  std::string refusal;
  std::optional<Registration> registered;
  std::shared_ptr<v1beta1::DevicePlugin::Stub> current;
  std::optional<Devices> latest;
  std::vector<std::shared_ptr<grpc::ClientContext>> contexts;
  std::vector<std::thread> watchers;
};

FakeKubelet::FakeKubelet(const std::string& folder) : parts_(std::make_unique<Parts>()) {
  parts_->folder = folder;
  std::filesystem::create_directories(folder);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::filesystem::remove(entry.path());
  }
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix://" + folder + "/kubelet.sock", grpc::InsecureServerCredentials());
  builder.AddListeningPort("unix://" + pod_resources(), grpc::InsecureServerCredentials());
  builder.RegisterService(parts_.get());
  builder.RegisterService(&parts_->lister);
  parts_->server = builder.BuildAndStart();
  if (parts_->server == nullptr) throw std::runtime_error("kubelet.sock: cannot listen");
}

FakeKubelet::~FakeKubelet() {
  parts_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
  parts_->server->Wait();
  for (const auto& context : parts_->contexts) context->TryCancel();
  for (std::thread& watcher : parts_->watchers) watcher.join();
  std::filesystem::remove(parts_->folder + "/kubelet.sock");
}

std::optional<FakeKubelet::Registration> FakeKubelet::AwaitRegistration() {
  std::unique_lock lock(parts_->mutex);
  parts_->changed.wait_for(lock, kPatience, [this] { return parts_->registered.has_value(); });
  return parts_->registered;
}

bool FakeKubelet::AwaitCalls(size_t count) {
  std::unique_lock lock(parts_->mutex);
  return parts_->changed.wait_for(lock, kPatience, [&] { return parts_->count >= count; });
}

void FakeKubelet::Own(const std::string& resource, const std::string& id,
                      const std::string& container) {
  const std::lock_guard lock(parts_->lister.mutex);
  v1::ListPodResourcesResponse& list = parts_->lister.list;
  if (list.pod_resources().empty()) list.add_pod_resources();
  v1::PodResources* pod = list.mutable_pod_resources(0);
  pod->set_name("pod");
  pod->set_namespace_("default");
  v1::ContainerResources* entry = pod->add_containers();
  entry->set_name(container);
  v1::ContainerDevices* devices = entry->add_devices();
  devices->set_resource_name(resource);
  devices->add_device_ids(id);
}

void FakeKubelet::OfferOf(const std::string& resource, const std::vector<std::string>& ids) {
  const std::lock_guard lock(parts_->lister.mutex);
  parts_->lister.offered[resource] = ids;
}

std::string FakeKubelet::pod_resources() const { return parts_->folder + "/pod-resources.sock"; }

void FakeKubelet::Refuse(const std::string& text) {
  const std::lock_guard lock(parts_->mutex);
  parts_->refusal = text;
}

std::optional<FakeKubelet::Devices> FakeKubelet::AwaitDevices(
    const std::function<bool(const Devices&)>& good) {
  std::unique_lock lock(parts_->mutex);
  const bool came = parts_->changed.wait_for(
      lock, kPatience, [&] { return parts_->latest.has_value() && good(*parts_->latest); });
  return came ? parts_->latest : std::nullopt;
}

Result<std::vector<FakeKubelet::Container>> FakeKubelet::Allocate(
    const std::vector<std::vector<std::string>>& containers) {
  v1beta1::AllocateRequest request;
  for (const auto& ids : containers) {
    request.add_container_requests()->mutable_devices_ids()->Assign(ids.begin(), ids.end());
  }
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1beta1::AllocateResponse response;
  const Status status = FromGrpc(parts_->Current()->Allocate(&context, request, &response));
  if (!status.ok()) return status;
  std::vector<Container> given;
  for (const auto& container : response.container_responses()) {
    Container& out = given.emplace_back();
    out.environment.insert(container.envs().begin(), container.envs().end());
    for (const auto& mount : container.mounts()) {
      out.mounts.emplace_back(mount.host_path(), mount.container_path());
    }
  }
  return given;
}

Result<std::vector<std::string>> FakeKubelet::Prefer(const std::vector<std::string>& available,
                                                     const std::vector<std::string>& must,
                                                     int size) {
  v1beta1::PreferredAllocationRequest request;
  auto* container = request.add_container_requests();
  container->mutable_available_deviceids()->Assign(available.begin(), available.end());
  container->mutable_must_include_deviceids()->Assign(must.begin(), must.end());
  container->set_allocation_size(size);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1beta1::PreferredAllocationResponse response;
  const Status status =
      FromGrpc(parts_->Current()->GetPreferredAllocation(&context, request, &response));
  if (!status.ok()) return status;
  const auto& ids = response.container_responses(0).deviceids();
  return std::vector<std::string>(ids.begin(), ids.end());
}

}  // namespace sluice::testing
