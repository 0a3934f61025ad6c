// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "intercept/lookup/driver_table.h"

namespace sluice::test {

/// A driver table for the interception library whose GPU moves only when the test says so (or at
/// once, with `immediate`). One at a time: the table's functions are plain functions.
class FakeDriver {
 public:
  FakeDriver();
  ~FakeDriver();

  const DriverTable& table() const { return table_; }
  DriverTable& table() { return table_; }

  static CUstream Stream(int n) { return reinterpret_cast<CUstream>(0x1000 + 0x10 * n); }
  static CUfunction Function(const char* name) {
    return reinterpret_cast<CUfunction>(const_cast<char*>(name));
  }

  /// Lets the GPU do up to `operations` of a stream, or everything on all streams.
  void Run(CUstream stream, size_t operations = ~size_t{0});
  void RunAll();
  /// Everything on the streams of the current context.
  void RunContext();
  void RunOf(CUcontext whose);
  size_t Pending(CUstream stream);

  /// What the application would have queued: something the marks have to wait behind.
  void Enqueue(CUstream stream, std::function<void()> operation);

  std::mutex mutex;
  bool immediate = false;
  CUcontext context = reinterpret_cast<CUcontext>(0xc0);
  std::map<CUstream, CUcontext> stream_context;  // of streams of other contexts than the first
  CUcontext ContextOf(CUstream stream) const {
    const auto known = stream_context.find(stream);
    return known != stream_context.end() ? known->second : reinterpret_cast<CUcontext>(0xc0);
  }
  std::vector<CUcontext> pushed;  // below the current one
  CUdevice device = 0;
  std::map<CUcontext, CUdevice> device_of;  // of contexts on another one
  CUcontext registered_in = nullptr;        // where the page of marks is registered
  bool unregistered_mark = false;           // a mark was queued, or left, for a page that is not
  std::set<CUstream> capturing;
  std::map<CUstream, uint64_t> reused_ids;  // a handle that stands for a new stream
  int ids_asked = 0;                        // of streams
  int synchronised = 0;
  CUresult synchronise_result = CUDA_SUCCESS;
  CUresult import_result = CUDA_SUCCESS;
  CUresult register_result = CUDA_SUCCESS;
  CUresult retain_result = CUDA_SUCCESS;
  CUresult destroy_result = CUDA_SUCCESS;
  bool destroy_drops = false;      // what is queued when a context ends is never done
  std::function<void()> on_write;  // a mark is about to be queued
  std::function<void()> on_map;
  std::function<void()> on_unmap;
  std::function<void()> on_physical;   // each call about physical memory; stays
  std::function<void()> on_destroyed;  // the context is gone, and nobody has heard of it yet
  int marks = 0;
  std::map<CUstream, int> marks_of;
  std::function<void()> on_stream_destroyed;  // its handle is free, and nobody has heard of it yet
  CUresult stream_destroy_result = CUDA_SUCCESS;
  std::atomic<int> capture_questions{0};
  static constexpr CUdeviceptr kGraphMemory = 0x77000;  // what the driver itself allocates
  int mapped = 0;
  uint64_t reserved_bytes = 0;
  std::vector<uint64_t> foreign_frees;
  uint64_t next_handle = 0x500;           // of physical memory and managed pointers
  CUresult create_result = CUDA_SUCCESS;  // of everything outside the arena
  std::map<CUcontext, int> attached;      // references beside the first
  std::map<CUdevice, bool> primary_active;
  int primary_references = 0;
  static CUcontext Primary() { return reinterpret_cast<CUcontext>(0xd0); }
  /// Of the green context that there may be; the primary one is waited for with it.
  static CUcontext GreenView() { return reinterpret_cast<CUcontext>(0xee); }
  struct Memset {
    CUdeviceptr address;
    unsigned value;
    size_t words;
    CUstream stream;
  };
  std::vector<Memset> memsets;
  int relaxed_depth = 0;        // inside cuThreadExchangeStreamCaptureMode pairs
  bool unrelaxed_call = false;  // a call that must be inside such a pair was not

  static FakeDriver& Get();

  struct StreamQueue {
    std::deque<std::function<void()>> operations;
  };
  std::map<CUstream, StreamQueue> queues;
  /// Events, done or not; they go with the driver, as a context's events do.
  std::deque<std::atomic<bool>> events;

 private:
  DriverTable table_ = {};
};

}  // namespace sluice::test
