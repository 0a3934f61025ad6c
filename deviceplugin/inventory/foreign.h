// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/pods/pod.h"

/// Which GPUs of a node are somebody else's: another device plugin's, or those of NVIDIA's
/// fractions. Two that give out one GPU's memory promise it twice. Pure values; nothing here
/// synchronises.
namespace sluice::deviceplugin {

/// A device that another plugin has told kubelet of.
struct ForeignDevice {
  std::string resource;  // as pods ask for it: "nvidia.com/gpu"
  std::string id;        // as that plugin has it: "GPU-...", "GPU-...::3", "MIG-..."
  std::string owner;     // namespace/pod/container that has it; empty: it may be given out
};

/// Whether an id of another plugin speaks of this GPU: its UUID, alone or with something before or
/// behind it that does not belong to the name ("GPU-...::3", "GPU-...-3", "MIG-GPU-.../1/0").
bool IsOfGpu(std::string_view id, std::string_view uuid);

/// What was seen in one look at the node.
struct ForeignView {
  std::vector<ForeignDevice> devices;          // of all resources but our own
  std::map<std::string, std::string> parents;  // UUIDs of GPUs, by that of a MIG device of theirs
  std::vector<pods::Pod> pods;                 // of this node; none where no cluster is asked
};

/// Who manages each GPU, in words ("nvidia.com/gpu offers it"), by its place in `uuids`; empty:
/// nobody else does. An assignment goes before an offer, a device before a daemon of the node.
std::vector<std::string> ForeignManagers(const std::vector<std::string>& uuids,
                                         const ForeignView& view);

/// Follows the looks. A GPU is refused at once, and comes back when several looks in a row have
/// shown nobody else: a kubelet that was restarted does not know for a moment whose devices are.
/// For one thread.
class ForeignBook {
 public:
  static constexpr unsigned kLooksToComeBack = 3;

  explicit ForeignBook(size_t gpus) : gpus_(gpus) {}

  /// Places of the GPUs for which Manager has changed.
  std::vector<size_t> OnLook(const std::vector<std::string>& managers);
  /// Who manages it; empty: it may be offered.
  const std::string& Manager(size_t gpu) const { return gpus_[gpu].manager; }

 private:
  struct Gpu {
    std::string manager;
    unsigned clear = 0;  // looks in a row without anybody
  };
  std::vector<Gpu> gpus_;
};

/// In the place of a manager: what the GPU itself stands in the way with.
inline constexpr std::string_view kInMigMode = "its MIG mode is on";

/// What is said of a GPU that is refused: its name, who manages it and what is allowed; of one in
/// MIG mode, that its memory is that of its parts.
std::string ForeignRefusal(const std::string& uuid, const std::string& manager);

}  // namespace sluice::deviceplugin
