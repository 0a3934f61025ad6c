// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/driver/driver.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "simgpu/driver/graph_state.h"
#include "simgpu/sharing/futex.h"

namespace sluice::simgpu {
namespace {

std::mutex g_init_mutex;
std::atomic<Driver*> g_driver{nullptr};
/// A page that the kernel clears in a forked child: tells parent and child apart without a system
/// call per driver call, however the child was made.
std::atomic<unsigned char>* g_alive = nullptr;

bool MakeForkMark() {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK) != 0) return false;
  g_alive = static_cast<std::atomic<unsigned char>*>(page);
  g_alive->store(1);
  return true;
}

}  // namespace

CUresult Driver::Init() {
  // A forked child keeps the parent's pointers but may not use them.
  if (g_alive != nullptr && g_alive->load() == 0) return CUDA_ERROR_NOT_INITIALIZED;
  const std::lock_guard lock(g_init_mutex);
  if (g_driver.load() != nullptr) return CUDA_SUCCESS;
  const char* dir = getenv("SLUICE_SIMGPU");
  if (dir == nullptr || *dir == 0) {
    fprintf(stderr,
            "simulated GPU: SLUICE_SIMGPU is not set: no device (simgpu-ctl up DIR makes one)\n");
    return CUDA_ERROR_NO_DEVICE;
  }
  Result<std::vector<std::unique_ptr<GpuState>>> gpus = OpenGpus(dir);
  if (!gpus.ok()) {
    fprintf(stderr, "simulated GPU: %s\n", gpus.status().message().c_str());
    return CUDA_ERROR_NO_DEVICE;
  }
  std::vector<std::string> uuids;
  for (const auto& gpu : *gpus) uuids.push_back(gpu->UuidText());
  const std::vector<uint32_t> visible = VisibleGpus(getenv("CUDA_VISIBLE_DEVICES"), uuids);
  if (visible.empty()) {
    fprintf(stderr, "simulated GPU: CUDA_VISIBLE_DEVICES leaves none of the %zu GPUs\n",
            uuids.size());
    return CUDA_ERROR_NO_DEVICE;
  }
  if (!MakeForkMark()) return CUDA_ERROR_OPERATING_SYSTEM;
  std::unique_ptr<VirtualHost> virtual_time;
  if (gpus->front()->machine().virtual_time) {
    Result<std::unique_ptr<VirtualHost>> joined = VirtualHost::Join(gpus->front().get());
    if (!joined.ok()) {
      fprintf(stderr, "simulated GPU: %s\n", joined.status().message().c_str());
      return CUDA_ERROR_NO_DEVICE;
    }
    virtual_time = std::move(*joined);
  }
  auto* driver = new Driver;
  driver->virtual_time = std::move(virtual_time);
  driver->gpus = std::move(*gpus);
  driver->AddDevices(visible);
  driver->virtual_memory =
      std::make_unique<VirtualMemory>(&driver->uses, &driver->space, &driver->executors);
  driver->graphs = new GraphState(driver);
  driver->host_memory = std::make_unique<HostMemory>(&driver->executors);
  driver->foreign_memory =
      std::make_unique<ForeignMemory>(&driver->uses, &driver->space, &driver->executors);
  g_driver.store(driver);
  return CUDA_SUCCESS;
}

void Driver::AddDevices(const std::vector<uint32_t>& visible) {
  const ProcessId self = SelfProcess();
  const std::string name = ProcessName(self.pid);
  const char* draws = getenv("SLUICE_SIMGPU_DRAWS");
  for (const uint32_t index : visible) {
    auto device = std::make_unique<Device>();
    GpuState* gpu = gpus[index].get();
    const auto ordinal = static_cast<int>(devices.size());
    device->use = {gpu,
                   gpu->RegisterProcess(self, name, draws != nullptr && strcmp(draws, "1") == 0),
                   ordinal};
    device->index = index;
    device->graph_memory = std::make_unique<GraphMemory>(device->use, &space, &executors);
    CUmemPoolProps memory{};
    memory.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    memory.location = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal};
    device->default_pool = NewPool(memory);
    device->default_pool->is_default = true;
    device->current_pool = device->default_pool;
    uses.push_back(device->use);
    devices.push_back(std::move(device));
  }
}

Device* Driver::FindDevice(CUdevice ordinal) const {
  const auto place = static_cast<size_t>(ordinal);
  return place < devices.size() ? devices[place].get() : nullptr;
}

CUresult CheckDevice(CUdevice ordinal, Device** out) {
  const Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  *out = driver->FindDevice(ordinal);
  return *out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

Driver* Driver::Get() {
  Driver* driver = g_driver.load(std::memory_order_acquire);
  return driver != nullptr && g_alive->load(std::memory_order_relaxed) == 1 ? driver : nullptr;
}

CUresult Driver::NewContext(Device* device, Context** out) {
  const std::lock_guard lock(mutex);
  std::unique_ptr<Context> context;
  const CUresult result = Context::Create(this, device, &context);
  if (result != CUDA_SUCCESS) return result;
  *out = context.get();
  contexts.push_back(std::move(context));
  return CUDA_SUCCESS;
}

CUresult Driver::RetainPrimary(Device* device, Context** out) {
  {
    const std::lock_guard lock(mutex);
    if (device->primary != nullptr) {
      ++device->primary_references;
      *out = device->primary;
      return CUDA_SUCCESS;
    }
    std::unique_ptr<Context> context;
    const CUresult result = Context::Create(this, device, &context);
    if (result != CUDA_SUCCESS) return result;
    device->primary = context.get();
    device->primary_references = 1;
    contexts.push_back(std::move(context));
    *out = device->primary;
  }
  return CUDA_SUCCESS;
}

CUresult Driver::ReleasePrimary(Device* device, bool all) {
  Context* gone = nullptr;
  {
    const std::lock_guard lock(mutex);
    if (device->primary == nullptr) return all ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    device->primary_references = all ? 0 : device->primary_references - 1;
    if (device->primary_references == 0) std::swap(gone, device->primary);
  }
  if (gone != nullptr) gone->Destroy();
  return CUDA_SUCCESS;
}

bool Driver::Pinned(uint64_t address, uint64_t bytes) {
  const std::lock_guard lock(mutex);
  return host_memory->Pinned(address, bytes);
}

bool Driver::Given(uint64_t address) {
  const std::lock_guard lock(mutex);
  return space.Contains(address, 1) && virtual_memory->Accessible(address);
}

CUmemoryPool Driver::NewPool(const CUmemPoolProps& props) {
  CUmemoryPool pool = pools.New();
  pool->props = props;
  pool->is_default = false;
  pool->imported = false;
  pool->file.reset();
  pool->release_threshold.store(0);
  for (std::atomic<int>& reuse : pool->reuse) reuse.store(1);
  for (std::atomic<uint8_t>& access : pool->access) access.store(CU_MEM_ACCESS_FLAGS_PROT_NONE);
  // The GPU that the memory is on always has access to it.
  pool->access[static_cast<size_t>(props.location.id)].store(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  pool->windows.store(0);
  pool->destroyed.store(false);
  pool->references.store(1);
  return pool;
}

void Driver::ReleasePool(CUmemoryPool pool) {
  if (pool->references.fetch_sub(1) != 1) return;
  pool->file.reset();
  pools.Delete(pool);
}

Context* Driver::FindContext(CUcontext handle, CUgreenCtx* green) {
  const std::lock_guard lock(mutex);
  if (green != nullptr) *green = nullptr;
  for (const auto& context : contexts) {
    if (reinterpret_cast<CUcontext>(context.get()) == handle) return context.get();
  }
  for (const auto& known : green_contexts) {
    if (reinterpret_cast<CUcontext>(known.get()) != handle || known->destroyed.load()) continue;
    if (green != nullptr) *green = known.get();
    return known->context;
  }
  return nullptr;
}

EventBoard* Driver::Events() {
  const std::lock_guard lock(mutex);
  if (event_board == nullptr) event_board = EventBoard::Open(*gpus.front());
  return event_board.get();
}

std::vector<StackedContext>& ContextStack() {
  static thread_local std::vector<StackedContext> stack;
  return stack;
}

bool& InHostFunction() {
  static thread_local bool inside = false;
  return inside;
}

CUresult CurrentContext(Context** out) {
  if (Driver::Get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (InHostFunction()) return CUDA_ERROR_NOT_PERMITTED;
  const std::vector<StackedContext>& stack = ContextStack();
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  const CUgreenCtx green = stack.back().green;
  *out = stack.back().context;
  if ((*out)->destroyed() || (green != nullptr && green->destroyed.load())) {
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  return (*out)->queue().error();
}

CUresult ContextOfStream(CUstream handle, Context** out) {
  const CUresult result = CurrentContext(out);
  return result == CUDA_SUCCESS ? StreamsOwnContext(handle, out) : result;
}

CUresult StreamsOwnContext(CUstream handle, Context** out) {
  if (Driver::Get() == nullptr || InHostFunction() || handle <= CU_STREAM_PER_THREAD ||
      !IsLive(handle)) {
    return CurrentContext(out);
  }
  *out = handle->context;
  return (*out)->destroyed() ? CUDA_ERROR_CONTEXT_IS_DESTROYED : (*out)->queue().error();
}

CUresult NamedContext(CUcontext handle, Context** out) {
  if (handle == nullptr) return CurrentContext(out);
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  *out = driver->FindContext(handle);
  if (*out == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if ((*out)->destroyed()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return (*out)->queue().error();
}

CUresult NotSupported(const char* name) {
  static std::mutex mutex;
  static std::set<std::string>* said = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  if (said->insert(name).second) {
    fprintf(stderr, "simulated GPU: %s is not supported\n", name);
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

void AskDevice(const Driver& driver) {
  if (driver.virtual_time != nullptr) driver.virtual_time->Ask();
}

void SpendDriverTime(const Driver& driver, uint64_t simulated_ns) {
  if (driver.virtual_time != nullptr) {
    driver.virtual_time->Spend(simulated_ns);
    return;
  }
  const double ns = static_cast<double>(simulated_ns) * driver.machine().time_scale;
  SpinFor(static_cast<uint64_t>(ns));
}

void SpendMappingTime(const Driver& driver, uint64_t simulated_ns) {
  if (simulated_ns == 0 || !driver.machine().serialised) {
    SpendDriverTime(driver, simulated_ns);
    return;
  }
  if (driver.virtual_time != nullptr) {
    driver.virtual_time->SpendInTurn(simulated_ns);
    return;
  }
  // A process that is killed inside leaves nothing half done.
  const std::lock_guard turn(driver.gpus.front()->page()->mapping_turn);
  SpendDriverTime(driver, simulated_ns);
}

}  // namespace sluice::simgpu
