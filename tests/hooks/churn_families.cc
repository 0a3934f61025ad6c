// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/contract/lent_memory.h"
#include "tests/hooks/churn_worker.h"

// Managed and physical memory, what jobs send each other, and graphs.

namespace sluice::hooks {

using contract::ReadWrite;

Exchange::Exchange(const std::string& own, std::string peer) : own_(own), peer_(std::move(peer)) {
  if (own_.empty()) return;
  socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  own_.copy(address.sun_path, sizeof address.sun_path - 1);
  EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
}

Exchange::~Exchange() {
  if (socket_ < 0) return;
  close(socket_);
  unlink(own_.c_str());
}

void Exchange::AwaitPeer() const {
  constexpr int kPatienceMs = 60'000;
  if (peer_.empty()) return;
  for (int waited = 0; access(peer_.c_str(), F_OK) != 0; waited += 5) {
    ASSERT_LT(waited, kPatienceMs) << "the other job does not come";
    poll(nullptr, 0, 5);
  }
}

bool Exchange::Send(int fd) const {
  if (socket_ < 0) return false;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  peer_.copy(address.sun_path, sizeof address.sun_path - 1);
  return contract::SendDescriptor(socket_, fd, &address);
}

int Exchange::Receive() const { return socket_ < 0 ? -1 : contract::ReceiveDescriptor(socket_); }

void Worker::AllocManaged() {
  ManagedOf made{0, 1 + Pick(300'000)};
  if (!Served(cuMemAllocManaged(&made.at, made.bytes, CU_MEM_ATTACH_GLOBAL))) return;
  managed_.push_back(made);
  tally_.managed += made.bytes;
}

void Worker::FreeManaged() {
  const ManagedOf gone = TakeAt(&managed_, Pick(managed_.size()));
  EXPECT_CU(cuMemFree_v2(gone.at));
  ++calls_;
  tally_.managed -= gone.bytes;
}

void Worker::CreatePhysical() {
  const CUmemAllocationProp prop = DeviceMemory();
  PhysicalOf made{0, -1, false};
  if (shared_.leases_exportable) return;  // churn_leased.cc has those
  if (!Served(cuMemCreate(&made.handle, kPhysical, &prop, 0))) return;
  // The mapping alone holds it from here on, as allocators do it.
  if (Pick(4) > 0 && MapAnywhere(&made) && Pick(2) == 0) {
    EXPECT_CU(cuMemRelease(made.handle));
    made.handle = 0;
  }
  physical_.push_back(made);
  tally_.physical += kPhysical;
}

/// False: no place is left.
bool Worker::MapAnywhere(PhysicalOf* memory) {
  for (size_t slot = 0; slot < kRangeSlots; ++slot) {
    if (mapped_[slot]) continue;
    const CUdeviceptr at = range_ + slot * kPhysical;
    const CUmemAccessDesc access = ReadWrite();
    EXPECT_CU(cuMemMap(at, kPhysical, 0, memory->handle, 0));
    EXPECT_CU(cuMemSetAccess(at, kPhysical, &access, 1));
    calls_ += 2;
    mapped_[slot] = true;
    memory->slot = static_cast<int>(slot);
    return true;
  }
  return false;
}

void Worker::ReleasePhysical() {
  const PhysicalOf gone = TakeAt(&physical_, Pick(physical_.size()));
  if (gone.slot >= 0) {
    const auto slot = static_cast<size_t>(gone.slot);
    EXPECT_CU(cuMemUnmap(range_ + slot * kPhysical, kPhysical));
    ++calls_;
    mapped_[slot] = false;
  }
  if (gone.handle != 0) {
    EXPECT_CU(cuMemRelease(gone.handle));
    ++calls_;
  }
  (gone.imported ? tally_.imported : tally_.physical) -= kPhysical;
}

/// To the other job, if that takes it.
void Worker::ExportPhysical() {
  const PhysicalOf& memory = physical_[Pick(physical_.size())];
  if (memory.handle == 0 || memory.imported) return;
  int fd = -1;
  EXPECT_CU(cuMemExportToShareableHandle(&fd, memory.handle,
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  ++calls_;
  static_cast<void>(shared_.exchange->Send(fd));
  close(fd);
}

/// Counted from the first mapping on, so it is mapped at once.
void Worker::ImportPhysical() {
  const int fd = shared_.exchange->Receive();
  if (fd < 0) return;
  PhysicalOf made{0, -1, true};
  EXPECT_CU(cuMemImportFromShareableHandle(&made.handle,
                                           reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  ++calls_;
  close(fd);
  if (!MapAnywhere(&made)) {
    EXPECT_CU(cuMemRelease(made.handle));
    ++calls_;
    return;
  }
  physical_.push_back(made);
  tally_.imported += kPhysical;
  ++imports_;
}

/// Blocks of the arena are lent, so nobody else may have them.
void Worker::ShareBlock() {
  CUipcMemHandle handle{};
  EXPECT_EQ(cuIpcGetMemHandle(&handle, blocks_[Pick(blocks_.size())].at), CUDA_ERROR_INVALID_VALUE);
  ++calls_;
}

/// A graph out of a capture, with memory of its own. What is not on the capturing stream is served
/// as ever.
void Worker::CaptureGraph() {
  const size_t on = Pick(2);
  const CUstream stream = streams_[on];
  EXPECT_CU(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CUdeviceptr at = 0;
  EXPECT_CU(cuMemAllocAsync(&at, 4096 + Pick(100'000), stream));
  uint32_t value = 9;
  uint64_t count = 64;
  void* params[] = {&at, &value, &count};
  EXPECT_CU(cuLaunchKernel(shared_.fill, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr));
  BlockOf beside{0, 1 + Pick(20'000), streams_[1 - on]};
  beside.live = Granules(beside.bytes);
  if (Served(cuMemAllocAsync(&beside.at, beside.bytes, beside.stream))) {
    blocks_.push_back(beside);
    tally_.live += beside.live;
  }
  EXPECT_CU(cuMemFreeAsync(at, stream));
  CUgraph graph = nullptr;
  EXPECT_CU(cuStreamEndCapture(stream, &graph));
  calls_ += 5;
  if (graph != nullptr) KeepGraph(graph);
}

/// The same, node by node.
void Worker::BuildGraph() {
  CUgraph graph = nullptr;
  EXPECT_CU(cuGraphCreate(&graph, 0));
  CUDA_MEM_ALLOC_NODE_PARAMS_v1 memory{};
  memory.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  memory.bytesize = 4096 + Pick(400'000);
  CUgraphNode alloc = nullptr;
  EXPECT_CU(cuGraphAddMemAllocNode(&alloc, graph, nullptr, 0, &memory));
  uint32_t value = 11;
  uint64_t count = 64;
  void* arguments[] = {&memory.dptr, &value, &count};
  CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
  kernel.func = shared_.fill;
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
  kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = arguments;
  CUgraphNode fill = nullptr;
  EXPECT_CU(cuGraphAddKernelNode_v2(&fill, graph, &alloc, 1, &kernel));
  CUgraphNode free = nullptr;
  EXPECT_CU(cuGraphAddMemFreeNode(&free, graph, &fill, 1, memory.dptr));
  calls_ += 4;
  KeepGraph(graph);
}

/// Launched once at once: from then on what it needs is the driver's to say. Before it is charged
/// for what it may need, which the device does not count.
void Worker::KeepGraph(CUgraph graph) {
  CUgraphExec exec = nullptr;
  if (Served(cuGraphInstantiateWithFlags(&exec, graph, 0))) {
    graphs_.push_back(exec);
    ++graphs_made_;
    if (!Served(cuGraphLaunch(exec, streams_[Pick(2)]))) DestroyGraph(graphs_.size() - 1);
  }
  EXPECT_CU(cuGraphDestroy(graph));
  ++calls_;
}

void Worker::LaunchGraph() {
  static_cast<void>(Served(cuGraphLaunch(graphs_[Pick(graphs_.size())], streams_[Pick(2)])));
}

void Worker::DestroyGraph(size_t which) {
  EXPECT_CU(cuGraphExecDestroy(TakeAt(&graphs_, which)));
  ++calls_;
  if (Pick(4) == 0) {
    EXPECT_CU(cuDeviceGraphMemTrim(0));
    ++calls_;
  }
}

}  // namespace sluice::hooks
