// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "intercept/session/client.h"

// Client's members for memory outside the pool that take the driver's call as a function. The rest
// of what it does for that memory is in client_outside.cc.

namespace sluice {

template <class Key, class Issue>
CUresult Client::AllocOutside(protocol::Family family, Thing thing, const Key* key, uint64_t bytes,
                              Issue issue) {
  if (bytes == 0) return issue();
  if (const CUresult result = EnsureSession(); result != CUDA_SUCCESS) return result;
  const CUresult charged = Charge(family, bytes, session_.device());
  if (charged != CUDA_SUCCESS) return charged;
  const CUresult result = issue();
  if (result == CUDA_SUCCESS) {
    Keep({KeyOf(*key), bytes, 0, 0, static_cast<uint32_t>(family), 1, 0, thing});
  } else {
    Uncharge(family, bytes);
  }
  return result;
}

template <class Key, class Issue>
CUresult Client::AllocCounted(protocol::Family family, Thing thing, const Key* key, uint64_t bytes,
                              Issue issue) {
  const CUresult result = issue();
  if (result == CUDA_SUCCESS) KeepCounted(thing, KeyOf(*key), bytes, family);
  return result;
}

template <class Key, class Issue>
CUresult Client::FreeOutside(Thing thing, Key key, Issue issue) {
  // Taken out before the driver has it back: a moment later the handle may be somebody else's.
  Holding held{};
  const bool known = Forget(thing, KeyOf(key), &held);
  const CUresult result = issue();
  if (known) result == CUDA_SUCCESS ? GiveUp(held) : Keep(held);
  return result;
}

}  // namespace sluice
