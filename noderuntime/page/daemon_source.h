// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "noderuntime/page/source.h"

namespace sluice::page {

/// The daemons below a runtime folder: that of a workstation, or sluice-node's. Looks for them anew
/// each time, so that they may come and go.
class DaemonSource final : public Source {
 public:
  explicit DaemonSource(std::string runtime_dir) : runtime_dir_(std::move(runtime_dir)) {}

  std::vector<uint32_t> Gpus() const override;
  Result<std::unique_ptr<LiveConnection>> Connect(uint32_t gpu) const override;
  Result<std::string> Status(uint32_t gpu) const override;
  Result<uint32_t> SetPolicy(uint32_t gpu, const std::string& policy,
                             uint32_t lanes) const override;

 private:
  std::string runtime_dir_;
};

}  // namespace sluice::page
