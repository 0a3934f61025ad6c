// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/driver/context.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdio>

#include "simgpu/driver/driver.h"
#include "simgpu/driver/graph_state.h"
#include "simgpu/sharing/futex.h"

namespace sluice::simgpu {

CUresult Context::Create(Driver* driver, Device* device, std::unique_ptr<Context>* out) {
  std::unique_ptr<Context> context(new Context(driver, device));
  const GpuState* gpu = device->gpu();
  const int ordinal = device->ordinal();
  Result<std::unique_ptr<ExecutorLink>> link =
      ExecutorLink::Start(*gpu, device->use.process, ordinal);
  if (!link.ok()) {
    if (link.status().code() == StatusCode::kResourceExhausted) return CUDA_ERROR_OUT_OF_MEMORY;
    fprintf(stderr, "simulated GPU: no context: %s\n", link.status().message().c_str());
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  context->link_ = std::move(*link);
  context->queue_ =
      std::make_unique<CommandQueue>(context->link_.get(), gpu, driver->virtual_time.get());
  context->streams_.resize(kStreams, nullptr);
  context->slot_last_.resize(kStreams, 0);
  CUstream legacy = driver->streams.New();
  legacy->context = context.get();
  legacy->slot = kLegacyStream;
  legacy->blocking = true;
  legacy->per_thread = false;
  legacy->green = nullptr;
  legacy->number = driver->next_stream_id.fetch_add(1);
  legacy->last.store(0);
  legacy->follows.assign(kStreams, 0);
  context->StartCaptureState(legacy);
  context->streams_[kLegacyStream] = legacy;
  ExecutorLink* executor = context->link_.get();
  CUresult result = driver->virtual_memory->Replay(executor, ordinal);
  if (result == CUDA_SUCCESS) result = driver->host_memory->Replay(executor);
  if (result == CUDA_SUCCESS) result = driver->foreign_memory->Replay(executor);
  for (const auto& other : driver->devices) {
    if (result == CUDA_SUCCESS) result = other->graph_memory->Replay(executor, ordinal);
  }
  if (result == CUDA_SUCCESS) result = driver->views.Add(executor, ordinal);
  if (result != CUDA_SUCCESS) {
    context->EndCharge();
    return result;
  }
  driver->executors.Add(executor, ordinal);
  *out = std::move(context);
  return CUDA_SUCCESS;
}

Context::~Context() = default;

void Context::Destroy() {
  std::vector<uint64_t> marks;
  {
    const std::lock_guard lock(mutex);
    marks = AllMarks();
  }
  WaitFor(marks);
  if (destroyed_.exchange(true)) return;
  {
    const std::lock_guard graphs(driver_->graphs->mutex);
    driver_->graphs->captures.Abandon(&driver_->graphs->store, this);
  }
  stop_.store(true);
  if (host_thread_.joinable()) {
    queue_->channel()->host_function_bell.fetch_add(1);
    FutexWakeAll(&queue_->channel()->host_function_bell);
    host_thread_.join();
  }
  const std::lock_guard driver_lock(driver_->mutex);
  const std::lock_guard lock(mutex);
  driver_->executors.Remove(link_.get());
  driver_->views.Remove(link_.get());
  driver_->host_memory->DropAllOf(link_.get());
  for (CUstream& stream : streams_) {
    if (stream != nullptr) driver_->streams.Delete(stream);
    stream = nullptr;
  }
  plain_heap_.reset();
  array_heap_.reset();
  while (!pool_heaps_.empty()) DropPoolHeap(pool_heaps_.begin());
  queue_.reset();
  link_.reset();
  EndReserve();
  EndCharge();
}

/// The executor charged what the context costs and is gone.
void Context::EndCharge() {
  const uint64_t bytes = device_->gpu()->machine().context_bytes;
  const Payer payer = device_->use.PayerFor(Family::kContext);
  device_->gpu()->CountRequested(-static_cast<int64_t>(bytes), payer);
  device_->gpu()->Uncharge(bytes, payer);
}

bool Context::Completed(const StreamMark& mark) const { return queue_->Done(mark.stream, mark.id); }

bool Context::Follows(uint32_t stream, const StreamMark& mark) const {
  const CUstream s = streams_[stream];
  return s != nullptr && s->follows[mark.stream] >= mark.id;
}

CUstream Context::PerThreadStream() {
  CUstream& stream = per_thread_[std::this_thread::get_id()];
  if (stream == nullptr && NewStream(&stream, true, 0) == CUDA_SUCCESS) stream->per_thread = true;
  return stream;
}

CUresult Context::Lookup(CUstream handle, bool per_thread, CUstream* out) {
  if (handle == CU_STREAM_PER_THREAD || (handle == nullptr && per_thread)) {
    *out = PerThreadStream();
    return *out == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  }
  if (handle == CU_STREAM_LEGACY || handle == nullptr) {
    *out = streams_[kLegacyStream];
    return CUDA_SUCCESS;
  }
  if (!IsLive(handle)) return CUDA_ERROR_INVALID_HANDLE;
  if (handle->context != this) return CUDA_ERROR_INVALID_CONTEXT;
  if (handle->green != nullptr && handle->green->destroyed.load()) {
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  *out = handle;
  return CUDA_SUCCESS;
}

CUresult Context::ResolveToCapture(CUstream handle, bool per_thread, CUstream* out,
                                   bool* capturing) {
  const CUresult result = Lookup(handle, per_thread, out);
  if (result != CUDA_SUCCESS) return result;
  return driver_->graphs->captures.Use((*out)->capture, (*out)->slot == kLegacyStream, capturing);
}

CUresult Context::Resolve(CUstream handle, bool per_thread, CUstream* out) {
  bool capturing = false;
  const CUresult result = ResolveToCapture(handle, per_thread, out, &capturing);
  return capturing ? driver_->graphs->captures.Refuse((*out)->capture) : result;
}

void Context::StartCaptureState(CUstream stream) {
  stream->capture.context = this;
  stream->capture.blocking = stream->blocking;
  stream->capture.session.store(0);
  stream->capture.tips.clear();
}

CUresult Context::NewStream(CUstream* out, bool blocking, int priority) {
  uint32_t slot = 1;
  // A slot is free again when the operations of its former stream are over: they must not hold up
  // the new one.
  while (slot < kStreams && (streams_[slot] != nullptr || !queue_->Done(slot, slot_last_[slot]))) {
    ++slot;
  }
  if (slot == kStreams) return CUDA_ERROR_OUT_OF_MEMORY;
  CUstream stream = driver_->streams.New();
  stream->context = this;
  stream->slot = slot;
  stream->blocking = blocking;
  stream->per_thread = false;
  stream->priority = priority;
  stream->green = nullptr;
  stream->number = driver_->next_stream_id.fetch_add(1);
  stream->last.store(slot_last_[slot]);
  stream->follows.assign(kStreams, 0);
  StartCaptureState(stream);
  streams_[slot] = stream;
  *out = stream;
  return CUDA_SUCCESS;
}

void Context::DeleteStream(CUstream stream) {
  streams_[stream->slot] = nullptr;
  driver_->streams.Delete(stream);
}

std::vector<uint64_t> Context::MarksOf(CUstream stream) {
  std::vector<uint64_t> marks{PackMark(stream->slot, stream->last.load())};
  if (stream->slot != kLegacyStream) return marks;
  for (const CUstream other : streams_) {
    if (other != nullptr && other->blocking && other->slot != kLegacyStream) {
      marks.push_back(PackMark(other->slot, other->last.load()));
    }
  }
  return marks;
}

std::vector<uint64_t> Context::AllMarks() {
  std::vector<uint64_t> marks;
  for (uint32_t slot = 0; slot < kStreams; ++slot) {
    if (slot_last_[slot] != 0) marks.push_back(PackMark(slot, slot_last_[slot]));
  }
  return marks;
}

CUresult Context::WaitFor(const std::vector<uint64_t>& marks) {
  const WaitCost cost(driver_->virtual_time.get());
  for (const uint64_t mark : marks) {
    if (!queue_->Wait(MarkStream(mark), MarkId(mark))) return queue_->error();
  }
  return CUDA_SUCCESS;
}

bool Context::Reached(const std::vector<uint64_t>& marks) const {
  return std::all_of(marks.begin(), marks.end(), [this](uint64_t mark) {
    return queue_->Done(MarkStream(mark), MarkId(mark));
  });
}

uint64_t Context::Issue(CUstream stream, Command* command, CommandQueue::Lock& held) {
  command->stream = stream->slot;
  if (stream->blocking) command->flags |= kBlocking;
  const uint64_t id = queue_->Submit(*command, held);
  if (id == 0) return 0;
  stream->last.store(id);
  slot_last_[stream->slot] = id;
  return id;
}

CUresult Context::NewEvent(CUevent* out, unsigned flags) {
  uint32_t slot = kEventSlots;
  if ((flags & CU_EVENT_DISABLE_TIMING) == 0) {
    // A destroyed event's slot is free once its last record can no longer write to it.
    std::erase_if(retired_events_, [this](const std::pair<uint64_t, uint32_t>& r) {
      if (r.first != 0 && !queue_->Done(MarkStream(r.first), MarkId(r.first))) return false;
      free_events_.push_back(r.second);
      return true;
    });
    if (!free_events_.empty()) {
      slot = free_events_.back();
      free_events_.pop_back();
    } else if (next_event_ < kEventSlots) {
      slot = next_event_++;
    } else {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  CUevent event = driver_->events.New();
  event->context = this;
  event->flags = flags;
  event->slot = slot;
  event->mark.store(0);
  event->capture.session.store(0);
  event->shared = {};
  *out = event;
  return CUDA_SUCCESS;
}

void Context::DeleteEvent(CUevent event) {
  if (event->slot < kEventSlots) retired_events_.emplace_back(event->mark.load(), event->slot);
  driver_->events.Delete(event);
}

std::unique_ptr<Heap> Context::NewHeap(Family family) {
  return Heap::Create(device_->use, family, &driver_->space, &driver_->views, link_.get(), this,
                      {});
}

Heap* Context::plain_heap() {
  if (plain_heap_ == nullptr) plain_heap_ = NewHeap(Family::kSync);
  return plain_heap_.get();
}

Heap* Context::array_heap() {
  if (array_heap_ == nullptr) array_heap_ = NewHeap(Family::kArray);
  return array_heap_.get();
}

Heap* Context::FindPoolHeap(CUmemoryPool pool) const {
  const auto found = pool_heaps_.find(pool);
  return found == pool_heaps_.end() ? nullptr : found->second.get();
}

Heap* Context::pool_heap(CUmemoryPool pool) {
  if (Heap* known = FindPoolHeap(pool)) return known;
  const DeviceUse& home = driver_->uses[static_cast<size_t>(pool->props.location.id)];
  Heap::Window window;
  window.access.emplace();
  for (size_t i = 0; i < window.access->size(); ++i) (*window.access)[i] = pool->access[i].load();
  if (!pool->is_default) {
    const uint64_t index = pool->windows.fetch_add(1);
    if (index >= CUmemPoolHandle_st::kWindows) return nullptr;
    window.file = UniqueFd(fcntl(pool->file.get(), F_DUPFD_CLOEXEC, 0));
    window.offset = index * Heap::WindowBytes(*home.gpu);
    window.shared = true;
    if (pool->props.maxSize != 0) window.limit = pool->props.maxSize;
    if (!window.file.valid()) return nullptr;
  }
  std::unique_ptr<Heap> heap = Heap::Create(home, Family::kAsync, &driver_->space, &driver_->views,
                                            link_.get(), this, std::move(window));
  if (heap == nullptr) return nullptr;
  pool->references.fetch_add(1);
  return (pool_heaps_[pool] = std::move(heap)).get();
}

Heap* Context::HeapAt(uint64_t address, CUmemoryPool* pool) const {
  *pool = nullptr;
  if (plain_heap_ != nullptr && plain_heap_->Contains(address)) return plain_heap_.get();
  for (const auto& [owner, heap] : pool_heaps_) {
    if (!heap->Contains(address)) continue;
    *pool = owner;
    return heap.get();
  }
  return nullptr;
}

void Context::TrimPools() {
  for (auto it = pool_heaps_.begin(); it != pool_heaps_.end();) {
    const CUmemoryPool pool = it->first;
    const uint64_t keep = pool->destroyed.load() ? 0 : pool->release_threshold.load();
    if (it->second->pool().reserved() > keep) it->second->Trim(keep);
    if (pool->destroyed.load() && it->second->pool().reserved() == 0) {
      it = DropPoolHeap(it);
    } else {
      ++it;
    }
  }
}

Context::PoolHeaps::iterator Context::DropPoolHeap(PoolHeaps::iterator heap) {
  const CUmemoryPool pool = heap->first;
  const auto next = pool_heaps_.erase(heap);
  driver_->ReleasePool(pool);
  return next;
}

void Context::EmptyPools() {
  for (const auto& [pool, heap] : pool_heaps_) heap->Trim(0);
}

uint32_t Context::PeerOf(Context* other) {
  uint32_t& number = peers_[other];
  if (number != 0) return number;
  ControlRequest request{};
  request.op = ControlOp::kMapPeer;
  number = static_cast<uint32_t>(link_->Call(request, other->link_->channel_fd()).a);
  return number;
}

uint64_t Context::ExpectHostFunction(std::function<void()> function) {
  const std::lock_guard lock(host_mutex_);
  const uint64_t ticket = next_ticket_++;
  host_functions_[ticket] = std::move(function);
  if (!host_thread_.joinable()) host_thread_ = std::thread([this] { HostFunctionLoop(); });
  return ticket;
}

void Context::ForgetHostFunction(uint64_t ticket) {
  const std::lock_guard lock(host_mutex_);
  host_functions_.erase(ticket);
}

void Context::HostFunctionLoop() {
  InHostFunction() = true;
  Channel* channel = queue_->channel();
  constexpr uint64_t kLookAgainNs = 50'000'000;
  for (;;) {
    const uint32_t bell = channel->host_function_bell.load();
    if (stop_.load()) return;
    const uint64_t ticket = channel->host_function.load();
    std::function<void()> function;
    if (ticket != channel->host_function_done.load()) {
      const std::lock_guard lock(host_mutex_);
      const auto found = host_functions_.find(ticket);
      if (found != host_functions_.end()) {
        function = std::move(found->second);
        host_functions_.erase(found);
      }
    }
    if (!function) {
      FutexWait(&channel->host_function_bell, bell, kLookAgainNs);
      continue;
    }
    function();
    channel->host_function_done.store(ticket);
    queue_->FunctionReturned();
  }
}

}  // namespace sluice::simgpu
