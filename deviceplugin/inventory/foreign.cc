// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/inventory/foreign.h"

#include <cctype>

namespace sluice::deviceplugin {
namespace {

bool IsOfName(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool Speaks(const ForeignDevice& device, const std::string& uuid, const ForeignView& view) {
  if (IsOfGpu(device.id, uuid)) return true;
  // A MIG device has a UUID of its own; a replica of one has something behind it.
  for (const auto& [part, parent] : view.parents) {
    if (parent == uuid && IsOfGpu(device.id, part)) return true;
  }
  return false;
}

/// The daemons of NVIDIA's fractions serve every GPU of the node that they run on.
std::string DaemonOf(const std::vector<pods::Pod>& pods) {
  for (const pods::Pod& pod : pods) {
    if (pod.manages_gpus.empty() || pod.over) continue;
    return pod.manages_gpus + " (pod " + pod.space + "/" + pod.name + ") manages all of the node";
  }
  return "";
}

}  // namespace

bool IsOfGpu(std::string_view id, std::string_view uuid) {
  if (uuid.empty()) return false;
  for (size_t at = id.find(uuid); at != std::string_view::npos; at = id.find(uuid, at + 1)) {
    const size_t end = at + uuid.size();
    const bool begins = at == 0 || !IsOfName(id[at - 1]);
    const bool ends = end == id.size() || !IsOfName(id[end]);
    if (begins && ends) return true;
  }
  return false;
}

std::vector<std::string> ForeignManagers(const std::vector<std::string>& uuids,
                                         const ForeignView& view) {
  const std::string daemon = DaemonOf(view.pods);
  std::vector<std::string> managers;
  for (const std::string& uuid : uuids) {
    std::string assigned;
    std::string offered;
    for (const ForeignDevice& device : view.devices) {
      std::string& words = device.owner.empty() ? offered : assigned;
      if (!words.empty() || !Speaks(device, uuid, view)) continue;
      words = device.owner.empty() ? device.resource + " offers it"
                                   : device.resource + " gave it to " + device.owner;
    }
    managers.push_back(!assigned.empty() ? assigned : !offered.empty() ? offered : daemon);
  }
  return managers;
}

std::vector<size_t> ForeignBook::OnLook(const std::vector<std::string>& managers) {
  std::vector<size_t> changed;
  for (size_t i = 0; i < gpus_.size(); ++i) {
    Gpu& gpu = gpus_[i];
    gpu.clear = managers[i].empty() ? gpu.clear + 1 : 0;
    if (managers[i] == gpu.manager) continue;
    if (managers[i].empty() && gpu.clear < kLooksToComeBack) continue;
    gpu.manager = managers[i];
    changed.push_back(i);
  }
  return changed;
}

std::string ForeignRefusal(const std::string& uuid, const std::string& manager) {
  if (manager == kInMigMode) {
    return uuid + " is not offered: " + manager +
           ", so that nobody gets memory of the whole of it; allowed: a GPU in one piece "
           "(nvidia-smi -i " +
           uuid + " -mig 0, then start this node's sluice-node again)";
  }
  return uuid + " is not offered: " + manager +
         "; allowed: a GPU that nobody else manages (leave it out there or here, or say "
         "--foreign-gpus share)";
}

}  // namespace sluice::deviceplugin
