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
#include "tests/contract/nvml.h"

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

TEST_F(MpsProcesses, AnOlderDriverHasNoLimitsOfMemory) {
  auto nvml = Nvml::Load();
  ASSERT_TRUE(nvml.ok()) << nvml.status().message();
  EXPECT_EQ(*(*nvml)->DriverVersion(), "580.65.06");
  EXPECT_EQ((*nvml)->ParentOfMig("MIG-1").status().code(), StatusCode::kNotFound);
  nvmlDevice_t device = nullptr;
  ASSERT_EQ(NVML(nvmlInit_v2)(), NVML_SUCCESS);
  ASSERT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2)(0, &device), NVML_SUCCESS);
  nvmlSetMemoryLimits_v1_t set = {"/a", 0, 1};
  nvmlGetMemoryLimits_v1_t get = {"/a", 0, 0, 0};
  EXPECT_EQ(NVML(nvmlDeviceSetMemoryLimits_v1)(device, &set), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(NVML(nvmlDeviceGetMemoryLimits_v1)(device, &get), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(NVML(nvmlShutdown)(), NVML_SUCCESS);
}

}  // namespace
}  // namespace sluice::contract
