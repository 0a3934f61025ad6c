// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/graph/capture.h"

#include <algorithm>
#include <utility>

namespace sluice::simgpu {
namespace {

void AddTip(Links* tips, const Link& tip) {
  const bool known =
      std::any_of(tips->begin(), tips->end(), [&](const Link& t) { return t.node == tip.node; });
  if (!known) tips->push_back(tip);
}

}  // namespace

Captures::Session* Captures::Find(uint64_t id) {
  const auto found = id == 0 ? sessions_.end() : sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second.get();
}

void Captures::Enter(Session* session, uint64_t id, StreamCapture* stream, Links tips) {
  session->streams.push_back(stream);
  stream->tips = std::move(tips);
  stream->session.store(id);
}

void Captures::Leave(GraphStore* store, Session* session, bool keep_graph) {
  for (StreamCapture* member : session->streams) {
    member->tips.clear();
    member->session.store(0);
  }
  session->graph->capturing = false;
  if (!keep_graph && session->own_graph) store->Destroy(session->graph);
}

CUresult Captures::Begin(GraphStore* store, StreamCapture* origin, CUstreamCaptureMode mode,
                         CUgraph graph, Links tips) {
  const std::lock_guard lock(mutex_);
  if (origin->session.load() != 0) return CUDA_ERROR_ILLEGAL_STATE;
  auto session = std::make_unique<Session>();
  session->own_graph = graph == nullptr;
  session->graph = graph == nullptr ? store->NewGraph() : graph;
  session->graph->capturing = true;
  session->mode = mode;
  session->thread = std::this_thread::get_id();
  const uint64_t id = next_id_++;
  Enter(session.get(), id, origin, std::move(tips));
  sessions_[id] = std::move(session);
  count_.store(sessions_.size());
  return CUDA_SUCCESS;
}

CUresult Captures::End(GraphStore* store, StreamCapture* stream, CUgraph* out) {
  const std::lock_guard lock(mutex_);
  *out = nullptr;
  const uint64_t id = stream->session.load();
  Session* session = Find(id);
  if (session == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (session->streams.front() != stream) {
    session->valid = false;
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  CUresult result = session->valid ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  // That ends it, too.
  if (session->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      session->thread != std::this_thread::get_id()) {
    result = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  const auto check = [&](const Links& tips) {
    for (const Link& tip : tips) {
      if (result != CUDA_SUCCESS || IsBefore(tip.node, stream->tips)) continue;
      result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    }
  };
  for (const StreamCapture* member : session->streams) check(member->tips);
  check(session->left);
  if (result == CUDA_SUCCESS) *out = session->graph;
  Leave(store, session, result == CUDA_SUCCESS);
  sessions_.erase(id);
  count_.store(sessions_.size());
  return result;
}

CUresult Captures::Add(GraphStore* store, StreamCapture* stream, NodeWork work, CUgraphNode* out) {
  const std::lock_guard lock(mutex_);
  Session* session = Find(stream->session.load());
  if (session == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (!session->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  const CUresult result = store->Add(session->graph, stream->tips, std::move(work), out);
  if (result == CUDA_SUCCESS) {
    stream->tips = {{*out, {}}};
  } else {
    session->valid = false;  // a node that tips name was taken out of the graph
  }
  return result;
}

/// The legacy stream has an implicit dependency on blocking streams, which a capture cannot have.
CUresult Captures::CheckLegacy(const Context* context, bool invalidate) {
  CUresult result = CUDA_SUCCESS;
  for (const auto& [id, session] : sessions_) {
    for (const StreamCapture* member : session->streams) {
      if (member->context != context || !member->blocking) continue;
      result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
      if (invalidate) session->valid = false;
    }
  }
  return result;
}

CUresult Captures::Use(const StreamCapture& stream, bool legacy, bool* capturing) {
  *capturing = false;
  if (count_.load() == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(mutex_);
  if (legacy) return CheckLegacy(stream.context, true);
  const Session* session = Find(stream.session.load());
  *capturing = session != nullptr;
  return session == nullptr || session->valid ? CUDA_SUCCESS
                                              : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

CUresult Captures::Refuse(const StreamCapture& stream) {
  const std::lock_guard lock(mutex_);
  Session* session = Find(stream.session.load());
  if (session == nullptr) return CUDA_SUCCESS;
  if (!std::exchange(session->valid, false)) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult Captures::RefuseIn(const Context* context) {
  if (count_.load() == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(mutex_);
  CUresult result = CUDA_SUCCESS;
  for (const auto& [id, session] : sessions_) {
    const bool concerned =
        std::any_of(session->streams.begin(), session->streams.end(),
                    [&](const StreamCapture* member) { return member->context == context; });
    if (!concerned) continue;
    session->valid = false;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult Captures::CheckUnsafeCall(CUstreamCaptureMode thread_mode) {
  if (count_.load() == 0 || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  const std::lock_guard lock(mutex_);
  CUresult result = CUDA_SUCCESS;
  for (const auto& [id, session] : sessions_) {
    const bool mine = session->thread == std::this_thread::get_id();
    const bool forbids = mine ? session->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                              : session->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                                    thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!forbids) continue;
    session->valid = false;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

void Captures::Record(const StreamCapture& stream, EventCapture* event) {
  const std::lock_guard lock(mutex_);
  event->tips = stream.tips;
  event->session.store(stream.session.load());
}

CUresult Captures::Join(StreamCapture* stream, const EventCapture& event, bool legacy) {
  const std::lock_guard lock(mutex_);
  const uint64_t id = event.session.load();
  Session* session = Find(id);
  // An event of a sequence that is over stands for nothing that could be waited for.
  if (session == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!session->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (legacy) {
    session->valid = false;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  Session* other = Find(stream->session.load());
  if (other == nullptr) {
    Enter(session, id, stream, event.tips);
    return CUDA_SUCCESS;
  }
  if (other != session) {
    session->valid = other->valid = false;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  for (const Link& tip : event.tips) AddTip(&stream->tips, tip);
  return CUDA_SUCCESS;
}

CUresult Captures::Isolate(const StreamCapture& stream) {
  const std::lock_guard lock(mutex_);
  if (Session* session = Find(stream.session.load())) session->valid = false;
  return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
}

CUresult Captures::QueryEvent(const EventCapture& event) {
  if (event.session.load() == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(mutex_);
  Session* session = Find(event.session.load());
  if (session == nullptr) return CUDA_ERROR_INVALID_VALUE;  // it is over, and left nothing to ask
  session->valid = false;
  return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult Captures::Look(StreamCapture* stream, bool legacy, State* out) {
  *out = {};
  if (count_.load() == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(mutex_);
  if (legacy) return CheckLegacy(stream->context, false);
  const uint64_t id = stream->session.load();
  const Session* session = Find(id);
  if (session == nullptr) return CUDA_SUCCESS;
  out->status =
      session->valid ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  out->id = id;
  out->graph = session->graph;
  stream->shown.clear();
  stream->shown_data.clear();
  for (const Link& tip : stream->tips) {
    stream->shown.push_back(tip.node);
    stream->shown_data.push_back(tip.data);
  }
  return CUDA_SUCCESS;
}

void Captures::Abandon(GraphStore* store, const Context* context) {
  const std::lock_guard lock(mutex_);
  std::erase_if(sessions_, [&](const auto& entry) {
    Session& session = *entry.second;
    const bool concerned =
        std::any_of(session.streams.begin(), session.streams.end(),
                    [&](const StreamCapture* member) { return member->context == context; });
    if (!concerned) return false;
    Leave(store, &session, false);
    return true;
  });
  count_.store(sessions_.size());
}

void Captures::Abandon(GraphStore* store, StreamCapture* stream) {
  const std::lock_guard lock(mutex_);
  const uint64_t id = stream->session.load();
  Session* session = Find(id);
  if (session == nullptr) return;
  if (session->streams.front() == stream) {
    Leave(store, session, false);
    sessions_.erase(id);
    count_.store(sessions_.size());
    return;
  }
  // The sequence goes on without it, as on a real driver; what it did has to be joined all the
  // same.
  for (const Link& tip : stream->tips) AddTip(&session->left, tip);
  std::erase(session->streams, stream);
  stream->tips.clear();
  stream->session.store(0);
}

CUresult Captures::SetTips(StreamCapture* stream, const Links& tips, bool replace) {
  const std::lock_guard lock(mutex_);
  const Session* session = Find(stream->session.load());
  if (session == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (!session->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  for (const Link& tip : tips) {
    if (!IsLive(tip.node) || tip.node->graph != session->graph) return CUDA_ERROR_INVALID_VALUE;
  }
  if (replace) stream->tips.clear();
  for (const Link& tip : tips) AddTip(&stream->tips, tip);
  return CUDA_SUCCESS;
}

}  // namespace sluice::simgpu
