// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// sluice-keeper RUNTIME-DIR LINGER-SECONDS READY-FD: started by sluice-noded, never by hand.
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "noderuntime/keeper/server.h"
#include "noderuntime/session/socket.h"

namespace {

constexpr int kLookMs = 500;

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "sluice-keeper belongs to sluice-noded, which starts it\n");
    return 2;
  }
  const std::string path = std::string(argv[1]) + "/keeper.sock";
  const int64_t linger_ms = std::atoll(argv[2]) * 1000;
  const int ready = std::atoi(argv[3]);
  rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // no core file with other people's descriptors
  // It outlives the terminal and the daemon. SIGTERM ends it: whoever sends that means it.
  for (const int number : {SIGHUP, SIGINT, SIGPIPE}) ::signal(number, SIG_IGN);
  const std::string fresh = std::string(argv[1]) + "/keeper." + std::to_string(::getpid());
  sluice::Result<sluice::UniqueFd> listener = sluice::session::ListenAt(fresh);
  if (!listener.ok()) {
    std::fprintf(stderr, "sluice-keeper: %s\n", listener.status().message().c_str());
    return 1;
  }
  // A daemon that has given us up in the meantime has another keeper, with its socket there. Else
  // it holds the folder's lock, and a socket that is there is a dead keeper's.
  pollfd reader = {ready, 0, 0};
  const bool given_up = ::poll(&reader, 1, 0) == 1;
  struct stat own = {};
  if (given_up || ::stat(fresh.c_str(), &own) != 0 || ::rename(fresh.c_str(), path.c_str()) != 0) {
    ::unlink(fresh.c_str());
    return given_up ? 0 : 1;
  }
  static sluice::keeper::Server server(std::move(*listener), linger_ms);
  const bool told = ::write(ready, "k", 1) == 1;
  ::close(ready);
  while (told && server.RunOnce(sluice::keeper::NowMs(), kLookMs)) {
  }
  // A daemon that gave this keeper up has put another one's socket there.
  struct stat now = {};
  if (::stat(path.c_str(), &now) == 0 && now.st_ino == own.st_ino && now.st_dev == own.st_dev) {
    ::unlink(path.c_str());
  }
  return 0;
}
