// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stddef.h>

#include "common/cuda/driver_api.h"

namespace sluice {

/// The real driver's entry points; null where this driver has none. The library calls the driver
/// only through this table, never by name: a call by name would land in its own hook.
struct DriverTable {
#define CU_FUNCTION(symbol, base, version, per_thread, params, names) PFN_##symbol symbol;
#include "common/cuda/functions.def"
#undef CU_FUNCTION
};

/// One row of common/cuda/functions.def.
struct DriverFunction {
  const char* symbol;
  const char* base;
  int version;
  bool per_thread;
  size_t offset;  // of the pointer in DriverTable
};

inline constexpr DriverFunction kDriverFunctions[] = {
#define CU_FUNCTION(symbol, base, version, per_thread, params, names) \
  {#symbol, #base, version, (per_thread) != 0, offsetof(DriverTable, symbol)},
#include "common/cuda/functions.def"
#undef CU_FUNCTION
};

inline void** EntryOf(DriverTable& table, size_t offset) {
  return reinterpret_cast<void**>(reinterpret_cast<char*>(&table) + offset);
}
inline void* EntryOf(const DriverTable& table, size_t offset) {
  return *reinterpret_cast<void* const*>(reinterpret_cast<const char*>(&table) + offset);
}

/// Around the library's own calls to the driver: a registration or an event query by one thread
/// would break a capture that another thread of the application has open in global mode. (Handles
/// and mappings would not with driver 580; no page promises that.)
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const DriverTable& driver) : driver_(driver) { Exchange(); }
  ~RelaxedCapture() { Exchange(); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  void Exchange() {
    if (driver_.cuThreadExchangeStreamCaptureMode != nullptr) {
      static_cast<void>(driver_.cuThreadExchangeStreamCaptureMode(&mode_));
    }
  }
  const DriverTable& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace sluice
