// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/support/restart_bed.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/bytes.h"

namespace sluice::testing {

BedOptions SmallBed() {
  BedOptions options;
  options.gpu_memory = "64MiB";
  options.pool = "16MiB";
  options.keeper = true;
  return options;
}

cli::JobProcess StartHolding(TestBed& bed, InputPipe& input, std::vector<std::string> extra) {
  std::vector<std::string> command = {Program("WORKLOAD"), "--one-shot", "--block-bytes", "6MiB",
                                      "--hold"};
  command.insert(command.end(), extra.begin(), extra.end());
  cli::JobProcess job = bed.Start({.label = "holder",
                                   .command = command,
                                   .run_flags = {"--limit", "8MiB", "--request", "2MiB"},
                                   .input = input.read_end.get()});
  input.read_end.reset();
  AwaitStatus(bed, [](const nlohmann::json& status) {
    const auto& jobs = status.at("jobs");
    return !jobs.empty() && jobs[0].at("held_bytes").get<uint64_t>() >= 6 * kMiB;
  });
  return job;
}

void RunUntilHoldingAndKill(TestBed& bed, InputPipe& input) {
  cli::JobGroup group;
  group.Add(StartHolding(bed, input, {"--fork-at-launch", "1"}));
  Finish(group, 60'000, [](cli::JobGroup& running) {
    const cli::JobProcess& victim = running.jobs().front();
    const auto& out = victim.out();
    if (std::find(out.begin(), out.end(), "holding") != out.end() && !victim.ended()) {
      victim.Signal(SIGKILL);
    }
  });
}

bool Quarantined(const nlohmann::json& status) {
  const auto& jobs = status.at("jobs");
  return jobs.size() == 1 && jobs[0].at("phase") == "dying" &&
         jobs[0].at("held_bytes").get<uint64_t>() >= 6 * kMiB;
}

UniqueFd ConnectToKeeper(const TestBed& bed) {
  const std::string path = bed.runtime_dir() + "/keeper.sock";
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    socket.reset();
  }
  return socket;
}

pid_t KeeperIn(const nlohmann::json& status) {
  const nlohmann::json& pid = status.at("keeper").at("pid");
  return pid.is_number() ? pid.get<pid_t>() : 0;
}

pid_t AwaitKeeper(TestBed& bed, pid_t last) {
  return KeeperIn(AwaitStatus(bed, [last](const nlohmann::json& status) {
    const pid_t keeper = KeeperIn(status);
    return keeper != 0 && keeper != last;
  }));
}

pid_t KeeperOf(const TestBed& bed) {
  const UniqueFd socket = ConnectToKeeper(bed);
  if (!socket.valid()) return 0;
  ucred credentials = {};
  socklen_t length = sizeof credentials;
  EXPECT_EQ(::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &length), 0);
  return credentials.pid;
}

}  // namespace sluice::testing
