// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/driver/heap_views.h"

#include <iterator>

namespace sluice::simgpu {
namespace {

constexpr uint8_t kNone = CU_MEM_ACCESS_FLAGS_PROT_NONE;
constexpr uint8_t kAll = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

CUresult Call(ExecutorLink* link, ControlOp op, uint64_t address, uint64_t bytes, uint64_t c = 0,
              int home = 0, int fd = -1) {
  ControlRequest request{};
  request.op = op;
  request.a = address;
  request.b = bytes;
  request.c = c;
  request.d = static_cast<uint64_t>(home);
  return static_cast<CUresult>(link->Call(request, fd).result);
}

}  // namespace

HeapViews::Viewer* HeapViews::Find(const ExecutorLink* link) {
  for (Viewer& viewer : viewers_) {
    if (viewer.link == link) return &viewer;
  }
  return nullptr;
}

uint8_t HeapViews::WantedAccess(const Viewer& viewer, const Heap& heap) {
  if (heap.pool_access) return (*heap.pool_access)[static_cast<size_t>(viewer.ordinal)];
  return viewer.link == heap.owner || viewer.peers.contains(heap.owner) ? kAll : kNone;
}

CUresult HeapViews::Update(Viewer* viewer, const Heap& heap) {
  const Place& place = heap.place;
  View& view = viewer->views[place.base];
  const uint8_t wanted = WantedAccess(*viewer, heap);
  const bool mapped = wanted != kNone || viewer->link == heap.owner;
  if (mapped && !view.mapped) {
    const CUresult result = Call(viewer->link, ControlOp::kMapMemory, place.base, place.bytes,
                                 place.offset, place.home, place.file);
    if (result != CUDA_SUCCESS) return result;
    view = {true, kNone, view.shadow};
  } else if (!mapped && view.mapped) {
    static_cast<void>(Call(viewer->link, ControlOp::kUnmapMemory, place.base, place.bytes));
    view = {false, kNone, view.shadow};
  }
  if (view.access != wanted) {
    for (const auto& [start, end] : heap.backed.ranges()) {
      const CUresult result =
          Call(viewer->link, ControlOp::kProtect, place.base + start, end - start, wanted);
      if (result != CUDA_SUCCESS) return result;
    }
    view.access = wanted;
  }
  if (view.shadow || heap.pool_access || !viewer->copies.contains(heap.owner)) return CUDA_SUCCESS;
  const CUresult result = Call(viewer->link, ControlOp::kMapShadow, place.base, place.bytes,
                               place.offset, place.home, place.file);
  if (result != CUDA_SUCCESS) return result;
  view.shadow = true;
  for (const auto& [start, end] : heap.backed.ranges()) {
    const CUresult opened =
        Call(viewer->link, ControlOp::kProtectShadow, place.base + start, end - start, kAll);
    if (opened != CUDA_SUCCESS) return opened;
  }
  return CUDA_SUCCESS;
}

CUresult HeapViews::UpdateAll(Viewer* viewer, const ExecutorLink* owner) {
  for (const auto& [base, heap] : heaps_) {
    if (heap.owner != owner) continue;
    const CUresult result = Update(viewer, heap);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult HeapViews::Add(ExecutorLink* link, int ordinal) {
  const std::lock_guard lock(mutex_);
  Viewer& viewer = viewers_.emplace_back(Viewer{link, ordinal, {}, {}, {}});
  for (const auto& [base, heap] : heaps_) {
    const CUresult result = Update(&viewer, heap);
    if (result == CUDA_SUCCESS) continue;
    viewers_.pop_back();
    return result;
  }
  return CUDA_SUCCESS;
}

void HeapViews::Remove(const ExecutorLink* link) {
  const std::lock_guard lock(mutex_);
  viewers_.remove_if([link](const Viewer& viewer) { return viewer.link == link; });
  // Another executor may be at the same place in memory later.
  for (Viewer& viewer : viewers_) {
    viewer.peers.erase(link);
    viewer.copies.erase(link);
  }
}

CUresult HeapViews::Publish(const Place& place, ExecutorLink* owner,
                            const std::optional<DeviceAccess>& access) {
  const std::lock_guard lock(mutex_);
  const Heap& heap = heaps_[place.base] = {place, owner, access, {}};
  for (Viewer& viewer : viewers_) {
    const CUresult result = Update(&viewer, heap);
    // What others cannot see is no reason not to have it.
    if (result != CUDA_SUCCESS && viewer.link == owner) return result;
  }
  return CUDA_SUCCESS;
}

void HeapViews::Withdraw(uint64_t base) {
  const std::lock_guard lock(mutex_);
  const auto found = heaps_.find(base);
  if (found == heaps_.end()) return;
  for (Viewer& viewer : viewers_) {
    const auto view = viewer.views.find(base);
    if (view == viewer.views.end()) continue;
    if (view->second.mapped) {
      static_cast<void>(
          Call(viewer.link, ControlOp::kUnmapMemory, base, found->second.place.bytes));
    }
    if (view->second.shadow) {
      static_cast<void>(Call(viewer.link, ControlOp::kUnmapShadow, base, 0));
    }
    viewer.views.erase(view);
  }
  heaps_.erase(found);
}

CUresult HeapViews::Back(uint64_t base, uint64_t offset, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  Heap& heap = heaps_.at(base);
  for (Viewer& viewer : viewers_) {
    const View& view = viewer.views[base];
    CUresult result = CUDA_SUCCESS;
    if (view.access != kNone) {
      result = Call(viewer.link, ControlOp::kProtect, base + offset, bytes, view.access);
    }
    if (view.shadow && result == CUDA_SUCCESS) {
      result = Call(viewer.link, ControlOp::kProtectShadow, base + offset, bytes, kAll);
    }
    if (result != CUDA_SUCCESS && viewer.link == heap.owner) return result;
  }
  heap.backed.Add(offset, offset + bytes);
  return CUDA_SUCCESS;
}

void HeapViews::Unback(uint64_t base, uint64_t offset, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  for (Viewer& viewer : viewers_) {
    const View& view = viewer.views[base];
    if (view.access != kNone) {
      static_cast<void>(Call(viewer.link, ControlOp::kProtect, base + offset, bytes, kNone));
    }
    if (view.shadow) {
      static_cast<void>(Call(viewer.link, ControlOp::kProtectShadow, base + offset, bytes, kNone));
    }
  }
  heaps_.at(base).backed.Remove(offset, offset + bytes);
}

CUresult HeapViews::SetAccess(uint64_t base, int ordinal, uint8_t access) {
  const std::lock_guard lock(mutex_);
  Heap& heap = heaps_.at(base);
  if (!heap.pool_access) return CUDA_ERROR_INVALID_VALUE;
  (*heap.pool_access)[static_cast<size_t>(ordinal)] = access;
  for (Viewer& viewer : viewers_) {
    const CUresult result = Update(&viewer, heap);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult HeapViews::EnablePeer(ExecutorLink* link, ExecutorLink* owner) {
  const std::lock_guard lock(mutex_);
  Viewer* viewer = Find(link);
  if (viewer == nullptr || Find(owner) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!viewer->peers.insert(owner).second) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  return UpdateAll(viewer, owner);
}

CUresult HeapViews::DisablePeer(ExecutorLink* link, ExecutorLink* owner) {
  const std::lock_guard lock(mutex_);
  Viewer* viewer = Find(link);
  if (viewer == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (viewer->peers.erase(owner) == 0) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  return UpdateAll(viewer, owner);
}

void HeapViews::AllowCopies(const ExecutorLink* link, uint64_t address) {
  const std::lock_guard lock(mutex_);
  if (viewers_.size() < 2) return;
  const auto next = heaps_.upper_bound(address);
  if (next == heaps_.begin()) return;
  const Heap& heap = std::prev(next)->second;
  Viewer* viewer = Find(link);
  if (viewer == nullptr || heap.pool_access || heap.owner == link ||
      address - heap.place.base >= heap.place.bytes || viewer->copies.contains(heap.owner)) {
    return;
  }
  viewer->copies.insert(heap.owner);
  // Where it cannot be mapped the copy faults, as one of memory that nobody has.
  static_cast<void>(UpdateAll(viewer, heap.owner));
}

std::set<const ExecutorLink*> HeapViews::UsersOf(const ExecutorLink* owner) {
  const std::lock_guard lock(mutex_);
  std::set<const ExecutorLink*> users;
  for (const Viewer& viewer : viewers_) {
    if (viewer.peers.contains(owner) || viewer.copies.contains(owner)) users.insert(viewer.link);
  }
  return users;
}

}  // namespace sluice::simgpu
