// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstring>

#include "simgpu/driver/box_copy.h"
#include "simgpu/driver/driver.h"
#include "simgpu/driver/event_wait.h"
#include "simgpu/driver/graph_launch.h"
#include "simgpu/driver/graph_params.h"
#include "simgpu/driver/graph_state.h"
#include "simgpu/driver/mem_ops.h"

namespace sluice::simgpu {
namespace {

using Steps = std::vector<uint32_t>;

/// Copies the rows of a box between the program's memory, where they are packed, and one of the
/// host that the GPU cannot reach.
struct HostRows {
  unsigned char* host;
  uint64_t row, rows, layers, pitch, layer;
  void Copy(unsigned char* packed, bool out) const {
    for (uint64_t z = 0; z < layers; ++z) {
      for (uint64_t y = 0; y < rows; ++y, packed += row) {
        unsigned char* at = host + z * layer + y * pitch;
        memcpy(out ? at : packed, out ? packed : at, row);
      }
    }
  }
};

class Lowering {
 public:
  Lowering(Context* context, PreparedLaunch* out) : context_(context), out_(out) {}

  /// The steps of a graph behind `before`; what must be over when it is over.
  Steps Graph(CUgraph graph, const Steps& before);
  Steps Wait(uint64_t mark);
  CUresult result() const { return result_; }

 private:
  Steps Node(CUgraphNode node, const Steps& before);
  Steps Kernel(const KernelWork& work, const Steps& before);
  Steps Copy(const CopyWork& work, const Steps& before);
  Steps Memset(const MemsetWork& work, const Steps& before);
  Steps Ops(const MemOpsWork& work, const Steps& before);
  Steps Host(std::function<void(unsigned char*)> function, const Steps& before);
  Steps Add(const Command& command, const Steps& before) {
    return {out_->program.Add(command, before)};
  }
  bool Here(const Context* context);

  Context* context_;
  PreparedLaunch* out_;
  CUresult result_ = CUDA_SUCCESS;
};

bool Lowering::Here(const Context* context) {
  if (context != context_)
    result_ = NotSupported("launching a graph with nodes of another context");
  return context == context_;
}

Steps Lowering::Graph(CUgraph graph, const Steps& before) {
  CUgraphNode cycle = nullptr;
  const auto order = TopologicalOrder(graph, &cycle);
  if (!order) {
    result_ = CUDA_ERROR_INVALID_VALUE;
    return {};
  }
  std::map<CUgraphNode, Steps> last;
  Steps end;
  for (const CUgraphNode node : *order) {
    Steps after;
    for (const Link& link : node->dependencies) {
      const Steps& steps = last.at(link.node);
      after.insert(after.end(), steps.begin(), steps.end());
    }
    if (node->dependencies.empty()) after = before;
    last[node] = Node(node, after);
    if (result_ != CUDA_SUCCESS) return {};
    if (node->dependents.empty()) end.insert(end.end(), last[node].begin(), last[node].end());
  }
  return order->empty() ? before : end;
}

Steps Lowering::Node(CUgraphNode node, const Steps& before) {
  Command nothing{};
  nothing.kind = CommandKind::kNothing;
  if (!node->enabled) return Add(nothing, before);
  if (const auto* kernel = std::get_if<KernelWork>(&node->work)) return Kernel(*kernel, before);
  if (const auto* copy = std::get_if<CopyWork>(&node->work)) return Copy(*copy, before);
  if (const auto* area = std::get_if<MemsetWork>(&node->work)) return Memset(*area, before);
  if (const auto* ops = std::get_if<MemOpsWork>(&node->work)) return Ops(*ops, before);
  if (const auto* host = std::get_if<HostWork>(&node->work)) {
    return Host([work = *host](unsigned char*) { work.function(work.user_data); }, before);
  }
  if (const auto* child = std::get_if<ChildWork>(&node->work)) {
    // One step at each end, so that wide graphs in a row do not multiply their edges.
    return Add(nothing, Graph(child->graph, Add(nothing, before)));
  }
  if (const auto* record = std::get_if<RecordWork>(&node->work)) {
    if (!IsLive(record->event) || !Here(record->event->context)) {
      if (result_ == CUDA_SUCCESS) result_ = CUDA_ERROR_INVALID_HANDLE;
      return {};
    }
    if (record->event->is_shared()) {
      result_ = NotSupported("a graph node that records an event of several processes");
      return {};
    }
    out_->records.push_back(record->event);
    Command command{};
    command.kind = CommandKind::kRecordEvent;
    command.event.slot = record->event->slot;
    return Add(command, before);
  }
  if (const auto* wait = std::get_if<WaitWork>(&node->work)) {
    Command command{};
    result_ = IsLive(wait->event) ? WaitCommand(context_, wait->event, &command)
                                  : CUDA_ERROR_INVALID_HANDLE;
    return result_ == CUDA_SUCCESS ? Add(command, before) : Steps{};
  }
  return Add(nothing, before);  // empty nodes, and those about memory, which take no time
}

Steps Lowering::Wait(uint64_t mark) {
  if (mark == 0) return {};
  Command command{};
  command.kind = CommandKind::kWaitEvent;
  command.wait_event.stream = MarkStream(mark);
  command.wait_event.id = MarkId(mark);
  return Add(command, {});
}

Steps Lowering::Kernel(const KernelWork& work, const Steps& before) {
  if (!IsLive(work.function)) {
    result_ = CUDA_ERROR_INVALID_HANDLE;
    return {};
  }
  if (!Here(work.context)) return {};
  Command command{};
  command.kind = CommandKind::kKernel;
  command.kernel.function = work.function->function;
  memcpy(command.kernel.grid, work.grid, sizeof work.grid);
  memcpy(command.kernel.block, work.block, sizeof work.block);
  command.kernel.shared_bytes = work.shared_bytes;
  command.kernel.arg_bytes = static_cast<uint32_t>(work.args.size());
  if (work.args.size() <= kInlineArgs) {
    if (!work.args.empty()) memcpy(command.kernel.args, work.args.data(), work.args.size());
    return Add(command, before);
  }
  command.flags = kSourceStaged;
  const Steps step = Add(command, before);
  out_->program.UseData(step[0], out_->program.AddData(work.args));
  return step;
}

Steps Lowering::Copy(const CopyWork& work, const Steps& before) {
  if (!Here(work.context)) return {};
  Box box;
  result_ = ResolveBox(work.context, work.box, &box);
  if (result_ != CUDA_SUCCESS) return {};
  Command command{};
  command.kind = CommandKind::kCopy;
  auto& c = command.copy;
  c.target = box.target.address;
  c.source = box.source.address;
  c.bytes = box.width;
  c.rows = box.rows;
  c.layers = box.layers;
  c.target_pitch = box.target.pitch;
  c.target_layer = box.target.layer;
  c.source_pitch = box.source.pitch;
  c.source_layer = box.source.layer;
  const bool source = !box.source.pageable;
  const bool target = !box.target.pageable;
  if (source && target) return Add(command, before);
  // From or to memory that the GPU cannot reach: the driver carries it, when its turn comes.
  const auto pointer = [](uint64_t address) {
    return reinterpret_cast<unsigned char*>(address);  // NOLINT(performance-no-int-to-ptr)
  };
  const HostRows from{pointer(c.source), c.bytes, c.rows, c.layers, c.source_pitch, c.source_layer};
  const HostRows to{pointer(c.target), c.bytes, c.rows, c.layers, c.target_pitch, c.target_layer};
  const uint64_t room = out_->program.AddRoom(c.bytes * c.rows * c.layers);
  ProgramBuilder* program = &out_->program;
  const auto carry = [room, program](HostRows rows, bool out) {
    return [room, program, rows, out](unsigned char* memory) {
      rows.Copy(memory + program->DataOffset(room), out);
    };
  };
  Steps last = before;
  if (!source) {
    last = Host(carry(from, false), last);
    command.flags = kSourceStaged;
    c.source_pitch = c.bytes;
    c.source_layer = c.bytes * c.rows;
  }
  if (source || target) {
    if (!target) {
      command.flags = kTargetStaged;
      c.target_pitch = c.bytes;
      c.target_layer = c.bytes * c.rows;
    }
    last = Add(command, last);
    program->UseData(last[0], room);
  }
  return target ? last : Host(carry(to, true), last);
}

Steps Lowering::Memset(const MemsetWork& work, const Steps& before) {
  if (!Here(work.context)) return {};
  const CUDA_MEMSET_NODE_PARAMS_v1& a = work.area;
  Command command{};
  command.kind = CommandKind::kMemset;
  command.memset = {a.dst, a.width, a.value, a.elementSize, a.height, a.pitch};
  return Add(command, before);
}

Steps Lowering::Ops(const MemOpsWork& work, const Steps& before) {
  if (!Here(work.context)) return {};
  Steps last = before;
  for (const CUstreamBatchMemOpParams& op : work.ops) {
    Command command{};
    result_ = MemOpCommand(op, &command);
    if (result_ != CUDA_SUCCESS) return {};
    last = Add(command, last);
  }
  return last;
}

Steps Lowering::Host(std::function<void(unsigned char*)> function, const Steps& before) {
  Command command{};
  command.kind = CommandKind::kHostFunction;
  const Steps step = Add(command, before);
  out_->calls.push_back({step[0], std::move(function)});
  return step;
}

}  // namespace

CUresult PrepareLaunch(CUgraphExec exec, Context* context, CUstream stream, PreparedLaunch* out) {
  Lowering lowering(context, out);
  Steps before;
  if (exec->context == context && MarkStream(exec->mark) != stream->slot) {
    // Launches of one executable graph do not overlap, whatever their streams.
    before = lowering.Wait(exec->mark);
  }
  lowering.Graph(exec->graph, before);
  return lowering.result();
}

}  // namespace sluice::simgpu
