// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

/// What a pod's annotations say of its share of a GPU: the one place where they are checked. Pure
/// values. What cannot be understood or kept is an error with its field, its value and what is
/// allowed, never a grant without it.
namespace sluice::pods {

using Annotations = std::map<std::string, std::string>;

/// kGuaranteed: what it may have is what it was granted, whoever else is there. kBurst: it may have
/// more while others do not need it.
enum class Class : uint8_t { kGuaranteed, kBurst };

struct Terms {
  uint64_t limit_bytes = 0;  // most that it may hold
  int32_t priority = 0;      // higher goes first
  std::string share_group;   // empty: that of its namespace
  Class sharing = Class::kGuaranteed;
  std::optional<uint64_t> host_memory_bytes;  // for what is moved out of the way; none: the node's
  bool inject = true;                         // the library is to be in its programs
};

/// What one of our annotations is about.
struct Field {
  std::string container;  // empty: each of the pod
  std::string key;
};

/// Nothing: it is none of ours, or its key is none of those below.
std::optional<Field> FieldOf(std::string_view annotation);

/// For people, with an end.
std::string Quoted(std::string_view text);

/// A container and what kubelet gave it.
struct Container {
  std::string name;
  uint64_t granted_bytes = 0;
};

/// The terms of one container of a pod. An annotation of the pod, `sluice.dev/KEY`, holds for each
/// of its containers; `sluice.dev/container.NAME.KEY` for that one, and goes before. Keys:
///
///   memory-limit   quantity, from what was granted: most that it may hold
///   priority       -1000 to 1000
///   share-group    a DNS label: only jobs of one group in one namespace share
///   class          guaranteed, burst
///   host-memory    quantity, 0: none
///   inject         true, false
///
/// NVIDIA's `nvidia.com/container.NAME.gpu-memory.request` and `.limit` mean the same as what was
/// granted and as memory-limit, and must not say otherwise.
///
/// `containers`: the names of all of them. kInvalidArgument: every error of the whole pod that has
/// to do with this container, one per line, sorted by field.
Result<Terms> TermsOf(const Annotations& annotations, const std::vector<std::string>& containers,
                      const Container& container);

}  // namespace sluice::pods
