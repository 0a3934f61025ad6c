// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "noderuntime/cli/child.h"
#include "noderuntime/mps/control_daemon.h"
#include "noderuntime/mps/namespaces.h"
#include "noderuntime/supervisor/restarts.h"
#include "noderuntime/supervisor/signs.h"

namespace sluice::supervisor {

/// A daemon for each GPU, started again when it ends. The supervisor knows nothing of what they do:
/// what outlives a daemon is with its keeper (ADR 9). In a container it is the first process, so
/// that the end of a daemon is not the end of its keeper. For one thread.
class Supervisor {
 public:
  struct Plan {
    std::string noded;
    std::string runtime_dir;
    std::vector<uint32_t> gpus;
    std::vector<std::string> arguments;
    std::vector<mps::Control> controls = {};  // MPS control daemons beside them
  };

  /// `namespaces`: with MPS v3 one for each of the plan's controls, in their order; otherwise none.
  Supervisor(Plan plan, Signs signs, std::vector<mps::Namespaces> namespaces = {});

  /// Until `signals` (a signalfd of SIGTERM, SIGINT and SIGCHLD) says that it is over: then the
  /// daemons end, too. kInvalidArgument: a daemon did not accept its command line, which the next
  /// one would not either; it has said why.
  Status Run(int signals);

 private:
  struct Daemon {
    uint32_t gpu = 0;
    std::optional<cli::Child> child;
    UniqueFd ready;  // it writes there once it serves; closed since
    bool serves = false;
    uint64_t since_ns = 0;  // of its start
    uint64_t next_ns = 0;   // when it is to be started
    Restarts restarts;
  };

  void Start(Daemon* daemon, uint64_t now_ns);
  Status Look(Daemon* daemon, uint64_t now_ns);
  void ReadReady(Daemon* daemon);
  void ShowReady();
  void EndAll();

  const Plan plan_;
  Signs signs_;
  std::vector<Daemon> daemons_;
  /// What becomes of one changes nothing for the daemons: a GPU without MPS is one in time slices.
  std::vector<mps::ControlDaemon> controls_;
  std::vector<mps::Namespaces> namespaces_;
  bool shown_ready_ = false;
};

}  // namespace sluice::supervisor
