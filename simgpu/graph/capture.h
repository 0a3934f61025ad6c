// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "simgpu/graph/graph.h"

namespace sluice::simgpu {

/// What capturing adds to a stream. The next node captured there stands behind `tips`.
struct StreamCapture {
  const Context* context = nullptr;
  bool blocking = true;  // takes part in the legacy stream's barriers
  std::atomic<uint64_t> session{0};
  Links tips;
  std::vector<CUgraphNode> shown;  // what a query handed out
  std::vector<CUgraphEdgeData> shown_data;
};

/// What an event stands for that was last recorded in a capturing stream.
struct EventCapture {
  std::atomic<uint64_t> session{0};  // 0: it was not
  Links tips;
};

/// The capture sequences of a process, by the rules of cuda.h (cuStreamBeginCapture,
/// cuThreadExchangeStreamCaptureMode) and of the programming guide: an operation that a capture
/// does not allow answers why and invalidates the sequences that it concerns. Thread-safe; calls
/// that take a GraphStore want the lock of the graphs held as well.
class Captures {
 public:
  /// `graph` null: a new one. Otherwise captured nodes go there, the first one behind `tips`.
  CUresult Begin(GraphStore* store, StreamCapture* origin, CUstreamCaptureMode mode, CUgraph graph,
                 Links tips);
  /// Whatever happens but for a call on the wrong stream: the sequence is over, and `*out` is its
  /// graph or null.
  CUresult End(GraphStore* store, StreamCapture* stream, CUgraph* out);
  /// Captures one operation of a capturing stream.
  CUresult Add(GraphStore* store, StreamCapture* stream, NodeWork work, CUgraphNode* out);

  /// Whether `stream` may be used, and whether that would be captured. With `legacy` the stream is
  /// the legacy one, which stands behind all blocking streams of its context.
  CUresult Use(const StreamCapture& stream, bool legacy, bool* capturing);
  /// For operations that cannot be captured, like waiting for a stream.
  CUresult Refuse(const StreamCapture& stream);
  /// For those that concern all streams of a context.
  CUresult RefuseIn(const Context* context);
  /// For those that an ongoing capture forbids some threads (cuThreadExchangeStreamCaptureMode).
  CUresult CheckUnsafeCall(CUstreamCaptureMode thread_mode);

  void Record(const StreamCapture& stream, EventCapture* event);
  /// The stream waits for an event that was recorded in a capture: it joins that sequence.
  CUresult Join(StreamCapture* stream, const EventCapture& event, bool legacy);
  /// The stream captures and waits for an event that was not: never.
  CUresult Isolate(const StreamCapture& stream);
  /// Asking for the state of a captured event.
  CUresult QueryEvent(const EventCapture& event);

  struct State {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    uint64_t id = 0;
    CUgraph graph = nullptr;
  };
  /// Also copies the tips to where they may be shown.
  CUresult Look(StreamCapture* stream, bool legacy, State* out);
  /// The context goes, and with it all sequences that have a stream there.
  void Abandon(GraphStore* store, const Context* context);
  /// The stream goes: what it began ends, what it joined is invalidated.
  void Abandon(GraphStore* store, StreamCapture* stream);
  /// cuStreamUpdateCaptureDependencies.
  CUresult SetTips(StreamCapture* stream, const Links& tips, bool replace);

 private:
  struct Session {
    CUgraph graph = nullptr;
    bool own_graph = true;
    bool valid = true;
    Links left;  // tips of streams that were destroyed meanwhile
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    std::thread::id thread;
    std::vector<StreamCapture*> streams;  // the first one is where it began
  };
  Session* Find(uint64_t id);
  CUresult CheckLegacy(const Context* context, bool invalidate);
  static void Leave(GraphStore* store, Session* session, bool keep_graph);
  void Enter(Session* session, uint64_t id, StreamCapture* stream, Links tips);

  std::mutex mutex_;
  std::atomic<size_t> count_{0};
  std::map<uint64_t, std::unique_ptr<Session>> sessions_;
  uint64_t next_id_ = 1;
};

}  // namespace sluice::simgpu
