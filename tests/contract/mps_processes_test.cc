// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// Who uses a GPU that is shared through MPS: what proves that a dead job's memory is free has to
// see the clients of MPS too, which are in a list of their own.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "common/nvml.h"
#include "tests/contract/answers.h"
#include "tests/contract/fixture.h"

namespace sluice::contract {

const char* MachineFile() { return SLUICE_MACHINE_MPS; }

namespace {

class MpsProcesses : public ContextTest {
 protected:
  void SetUp() override {
    OnlySimulated("needs a GPU that is shared through MPS, and ids of this process's namespace");
    ContextTest::SetUp();
  }
};

TEST_F(MpsProcesses, ClientsAreSeen) {
  CUuuid name{};
  ASSERT_CU(cuDeviceGetUuid_v2(&name, 0));
  Nvml::Uuid uuid{};
  memcpy(uuid.data(), name.bytes, uuid.size());
  auto nvml = Nvml::Load();
  ASSERT_TRUE(nvml.ok()) << nvml.status().message();
  const auto pids = (*nvml)->ComputeProcesses(uuid);
  ASSERT_TRUE(pids.ok()) << pids.status().message();
  EXPECT_EQ(std::count(pids->begin(), pids->end(), getpid()), 1);
}

}  // namespace
}  // namespace sluice::contract
