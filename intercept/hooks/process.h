// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "intercept/lookup/driver_table.h"
#include "intercept/session/client.h"
#include "intercept/session/job_report.h"

/// What belongs to this process as a whole, found out at the first driver call: nothing is done
/// when the library is loaded, because every shell and every helper of a job loads it.
namespace sluice {

/// The real driver, once it is loaded into the process; null before. `may_load` loads it.
const DriverTable* LoadedDriver(bool may_load);

/// The job's socket, as the process was started with it; empty: it belongs to no job.
const char* JobSocket();

/// The program was given a driver function that the library does not know.
void CountUnseen(bool new_name);

/// What the daemon says of the job.
JobReport& ReportOfJob();

/// One per call of a hook. A call that the driver makes to its own exported functions, or that our
/// own work leads to, finds the thread inside already and goes straight to the driver.
class HookScope {
 public:
  HookScope();
  ~HookScope();
  HookScope(const HookScope&) = delete;
  HookScope& operator=(const HookScope&) = delete;

  const DriverTable& driver() const { return *driver_; }
  /// Null: pass the call through.
  Client* client() const { return client_; }

 private:
  const DriverTable* driver_;
  Client* client_;
  bool outermost_;
};

}  // namespace sluice
