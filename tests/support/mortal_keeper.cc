// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "noderuntime/keeper/server.h"
#include "noderuntime/session/socket.h"

namespace {

constexpr int kLookMs = 500;

}  // namespace

/// sluice-keeper that is lost at a moment of the test's choice. The file `keeper-dies` in its
/// folder holds a number (it dies when it has been given that many descriptors) or "drop" (when it
/// has let go of the first one). It answers before it dies, so that the daemon notices with the
/// next request, and removes the file: its successor lives.
int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string dir = argv[1];
  const std::string order = dir + "/keeper-dies";
  std::string text;
  std::ifstream(order) >> text;
  const size_t full = text.empty() || text == "drop" ? 0 : std::stoul(text);
  for (const int number : {SIGHUP, SIGINT, SIGPIPE}) ::signal(number, SIG_IGN);
  ::unlink((dir + "/keeper.sock").c_str());
  sluice::Result<sluice::UniqueFd> listener = sluice::session::ListenAt(dir + "/keeper.sock");
  if (!listener.ok()) return 1;
  static sluice::keeper::Server server(std::move(*listener), std::atoll(argv[2]) * 1000);
  const int ready = std::atoi(argv[3]);
  if (::write(ready, "k", 1) != 1) return 1;
  ::close(ready);
  size_t before = 0;
  while (server.RunOnce(sluice::keeper::NowMs(), kLookMs)) {
    const size_t now = server.table().size();
    if ((full > 0 && now >= full) || (text == "drop" && now < before)) {
      ::unlink(order.c_str());
      return 0;  // leaves its socket behind, as whoever is killed does
    }
    before = now;
  }
  ::unlink((dir + "/keeper.sock").c_str());
  return 0;
}
