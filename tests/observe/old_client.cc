// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// observe_old_client GPU-UUID: a library of the protocol's version before this one, as far as a
// daemon sees it: it opens the session of the job that it was started for (`sluice run`), prints
// "ready" and stays until its standard input ends.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/support/raw_client.h"

int main(int argc, char** argv) {
  const char* socket = std::getenv("SLUICE_SOCKET");
  if (argc != 2 || socket == nullptr) {
    std::fputs("observe_old_client: allowed: sluice run -- observe_old_client GPU-UUID\n", stderr);
    return 2;
  }
  std::vector<uint8_t> bytes = sluice::testing::HelloBytes(argv[1]);
  sluice::protocol::Hello hello = {};
  std::memcpy(&hello, bytes.data(), sizeof hello);
  --hello.minor;
  std::memcpy(bytes.data(), &hello, sizeof hello);
  const sluice::testing::RawClient client(socket);
  constexpr int kPatienceMs = 20'000;
  if (!client.Send(bytes)) return 1;
  const auto welcome = client.Receive(kPatienceMs);
  if (!welcome.has_value() || welcome->type() != sluice::protocol::FrameType::kWelcome) return 1;
  std::puts("ready");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
