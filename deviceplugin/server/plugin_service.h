// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <utility>

#include "deviceplugin/granule/preferred.h"
#include "deviceplugin/kubelet/deviceplugin.grpc.pb.h"
#include "deviceplugin/metrics/figures.h"
#include "deviceplugin/server/allocator.h"
#include "deviceplugin/server/offer.h"

namespace sluice::deviceplugin {

/// Kubelet's calls, each turned into one of ours. For gRPC's threads; offer, allocator and figures
/// outlive it.
class PluginService final : public v1beta1::DevicePlugin::Service {
 public:
  PluginService(const Offer* offer, const Allocator* allocator, Preference preference,
                Figures* figures)
      : offer_(offer),
        allocator_(allocator),
        preference_(std::move(preference)),
        figures_(figures) {}

  grpc::Status GetDevicePluginOptions(grpc::ServerContext* context, const v1beta1::Empty* request,
                                      v1beta1::DevicePluginOptions* response) override;
  grpc::Status ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty* request,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override;
  grpc::Status GetPreferredAllocation(grpc::ServerContext* context,
                                      const v1beta1::PreferredAllocationRequest* request,
                                      v1beta1::PreferredAllocationResponse* response) override;
  grpc::Status Allocate(grpc::ServerContext* context, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* response) override;
  grpc::Status PreStartContainer(grpc::ServerContext* context,
                                 const v1beta1::PreStartContainerRequest* request,
                                 v1beta1::PreStartContainerResponse* response) override;

 private:
  grpc::Status Grant(const v1beta1::AllocateRequest& request, v1beta1::AllocateResponse* response);

  const Offer* offer_;
  const Allocator* allocator_;
  const Preference preference_;
  Figures* const figures_;
};

}  // namespace sluice::deviceplugin
