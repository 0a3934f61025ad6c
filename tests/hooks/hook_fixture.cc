// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/hooks/hook_fixture.h"

#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "noderuntime/cli/daemon_client.h"

namespace sluice::hooks {
namespace {

/// mutation_test shortens it for tests that are to fail.
int PatienceMs() {
  const char* text = getenv("SLUICE_TEST_PATIENCE_MS");
  return text == nullptr ? 10'000 : atoi(text);
}

}  // namespace

nlohmann::json Hook::Job() {
  const std::string socket = std::string(getenv("SLUICE_RUNTIME_DIR")) + "/noded.sock";
  const auto fetch = [&socket]() -> Result<std::string> {
    auto client = cli::DaemonClient::Connect(socket);
    if (!client.ok()) return client.status();
    return client->FetchStatus();
  };
  auto text = fetch();
  // It may just be replaced (accounting_test).
  for (int waited = 0; waited < PatienceMs() && !text.ok(); waited += 5) {
    poll(nullptr, 0, 5);
    text = fetch();
  }
  if (!text.ok()) throw std::runtime_error(text.status().message());
  const auto status = nlohmann::json::parse(*text);
  for (const auto& job : status.at("jobs")) {
    if (job.at("pid") == getpid()) return job;
  }
  throw std::runtime_error("the daemon does not know this job: " + *text);
}

uint64_t Hook::Says(const std::string& key) { return Job().at(key).get<uint64_t>(); }

uint64_t Hook::Outside(const std::string& family) { return Job().at("outside").value(family, 0u); }

void Hook::ExpectSoon(const std::function<uint64_t()>& value, uint64_t expected) {
  // Asked once each time: the daemon that gave the right answer may be replaced before the next.
  uint64_t found = value();
  for (int waited = 0; waited < PatienceMs() && found != expected; waited += 5) {
    poll(nullptr, 0, 5);
    found = value();
  }
  EXPECT_EQ(found, expected);
}

void Hook::Begin() {
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemAlloc_v2(&at, 4096));
  ASSERT_CU(cuMemFree_v2(at));
}

void Hook::Block(CUstream stream, const SharedWord& word) {
  EXPECT_CU(cuStreamWaitValue64_v2(stream, word.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
}

}  // namespace sluice::hooks
