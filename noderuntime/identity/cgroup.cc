// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/identity/cgroup.h"

#include <algorithm>
#include <vector>

namespace sluice::identity {
namespace {

constexpr size_t kContainerDigits = 64;
constexpr size_t kUidWithDashes = 36;
constexpr size_t kUidOfStaticPod = 32;

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::vector<std::string_view> Split(std::string_view text, std::string_view at) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(at), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// "3f2e1d0c-...": the driver systemd writes it with underscores.
std::optional<std::string> Uid(std::string_view text) {
  std::string uid(text);
  std::replace(uid.begin(), uid.end(), '_', '-');
  if (uid.size() == kUidOfStaticPod && IsHex(uid)) return uid;
  if (uid.size() != kUidWithDashes) return std::nullopt;
  for (size_t i = 0; i < uid.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? uid[i] != '-' : !IsHex(uid.substr(i, 1))) return std::nullopt;
  }
  return uid;
}

/// "podUID", "kubepods-burstable-podUID.slice", "kubepods-podUID.slice".
std::optional<std::string> PodOf(std::string_view part) {
  constexpr std::string_view kSlice = ".slice";
  if (part.ends_with(kSlice)) {
    part.remove_suffix(kSlice.size());
    const size_t pod = part.rfind("-pod");
    if (!part.starts_with("kubepods") || pod == std::string_view::npos) return std::nullopt;
    part.remove_prefix(pod + 1);
  }
  if (!part.starts_with("pod")) return std::nullopt;
  return Uid(part.substr(3));
}

/// "ID", "cri-containerd-ID.scope", "crio-ID.scope", "docker-ID.scope".
std::optional<std::string> ContainerIn(std::string_view part) {
  constexpr std::string_view kScope = ".scope";
  if (part.ends_with(kScope)) {
    part.remove_suffix(kScope.size());
    // CRI-O's own process for the container stands beside it.
    if (part.starts_with("crio-conmon-")) return std::nullopt;
    const size_t dash = part.rfind('-');
    if (dash != std::string_view::npos) part.remove_prefix(dash + 1);
  }
  if (part.size() != kContainerDigits || !IsHex(part)) return std::nullopt;
  return std::string(part);
}

/// Of one path.
std::optional<ContainerOf> FromPath(std::string_view path) {
  // containerd with the driver cgroupfs that is given a name of systemd's joins them by colons.
  const std::vector<std::string_view> parts = Split(path, "/:");
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::optional<std::string> pod = PodOf(parts[i]);
    if (!pod.has_value()) continue;
    for (size_t below = i + 1; below < parts.size(); ++below) {
      const std::optional<std::string> container = ContainerIn(parts[below]);
      if (container.has_value()) return ContainerOf{*pod, *container};
    }
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ContainerOf> ContainerFromCgroup(std::string_view text) {
  std::optional<ContainerOf> found;
  for (const std::string_view line : Split(text, "\n")) {
    // "4:memory:/path", "0::/path"; a path may have colons of its own.
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::optional<ContainerOf> here = FromPath(line.substr(second + 1));
    if (!here.has_value()) continue;
    if (found.has_value() && *found != *here) return std::nullopt;
    found = here;
  }
  return found;
}

}  // namespace sluice::identity
