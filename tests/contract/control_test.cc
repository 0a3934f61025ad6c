// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// simgpu-ctl, and what the driver says when there is no usable GPU.
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "tests/contract/fixture.h"

namespace sluice::contract {
namespace {

struct Outcome {
  int code = -1;
  std::string text;  // stdout and stderr
};

Outcome RunCommand(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  char buffer[4096];
  size_t n = 0;
  while ((n = fread(buffer, 1, sizeof buffer, pipe)) > 0) outcome.text.append(buffer, n);
  outcome.code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

const std::string kCtl = SLUICE_SIMGPU_CTL;

class Control : public ::testing::Test {
 protected:
  void SetUp() override {
    OnlySimulated("it is about simgpu-ctl");
    char folder[] = "/tmp/sluice-control-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    dir_ = folder_ + "/gpu";
  }
  void TearDown() override {
    if (RealDriver()) return;
    RunCommand(kCtl + " down " + dir_);
    RunCommand("rm -r " + folder_);
  }
  void Expect(const std::string& arguments, int code, const std::string& needle) {
    const Outcome outcome = RunCommand(kCtl + " " + arguments);
    EXPECT_EQ(outcome.code, code) << arguments << ": " << outcome.text;
    EXPECT_NE(outcome.text.find(needle), std::string::npos) << arguments << ": " << outcome.text;
  }
  /// Whether all memory is given back, within some seconds.
  bool ComesToNothing() const {
    for (int asked = 0; asked < 1000; ++asked) {
      const Outcome stats = RunCommand(kCtl + " stats " + dir_ + " --json");
      if (stats.text.find("\"memory_used\": 0,") != std::string::npos) return true;
    }
    return false;
  }
  std::string folder_;
  std::string dir_;
};

TEST_F(Control, GoesUpAndDown) {
  Expect("up " + dir_ + " --memory 8MiB", 0, "");
  Expect("stats " + dir_ + " --json", 0, "\"memory_total\": 8388608, \"memory_used\": 0");
  Expect("stats " + dir_, 0, "8.0 MiB");
  Expect("up " + dir_ + " --memory 8MiB", 1, "already");
  Expect("down " + dir_, 0, "");
  Expect("down " + dir_, 1, "no simulated GPU");
  EXPECT_NE(access(dir_.c_str(), F_OK), 0);
}

TEST_F(Control, SeveralGpusGoUpAndDownTogether) {
  Expect("up " + dir_ + " --gpus 3 --memory 8MiB", 0, "");
  Expect("stats " + dir_, 0, "GPU 2\nmemory ");
  const Outcome all = RunCommand(kCtl + " stats " + dir_ + " --json");
  EXPECT_EQ(std::count(all.text.begin(), all.text.end(), '\n'), 3) << all.text;  // a line each
  Expect("inject " + dir_ + " cuInit=1ms --gpu 2", 0, "");
  for (const char* gpu : {"0", "1", "2"}) {
    const std::string one = " --gpu " + std::string(gpu);
    Expect("stats " + dir_ + " --json" + one, 0, "{\"device_clock_ns\"");
    const bool injected =
        RunCommand(kCtl + " stats " + dir_ + one).text.find("cuInit") != std::string::npos;
    EXPECT_EQ(injected, one.back() == '2') << gpu;
  }
  Expect("xid " + dir_ + " 79 --gpu 1", 0, "");
  Expect("stats " + dir_ + " --gpu 3", 2, "has 3 GPU(s), numbered from 0");
  Expect("up " + dir_ + " --memory 8MiB", 1, "already");
  Expect("down " + dir_, 0, "");
  EXPECT_NE(access(dir_.c_str(), F_OK), 0);
}

TEST_F(Control, NamesWhatIsWrong) {
  Expect("", 2, "simgpu-ctl up DIR");
  Expect("fly " + dir_, 2, "allowed are up, stats, xid, mig, lose, inject, machine, down, run");
  Expect("up " + dir_, 2, "--memory is missing");
  Expect("up " + dir_ + " --memory", 2, "needs a value");
  Expect("up " + dir_ + " --memory lots", 2, "--memory");
  Expect("up " + dir_ + " --memory 8MiB --colour red", 2, "--colour");
  Expect("stats", 2, "DIR");
  Expect("up " + dir_ + " --memory 8MiB --gpus 9", 2,
         "--gpus '9': allowed is a number from 1 to 8");
  Expect("up " + dir_ + " --memory 8MiB --gpus two", 2, "--gpus 'two'");
  Expect("run --memory 8MiB --gpus", 2, "--gpus needs a value");
  Expect("stats " + dir_ + " --gpu -1", 2, "--gpu '-1': allowed is a number from 0 to 7");
  Expect("down " + dir_ + " --gpu 1", 2, "unexpected argument '--gpu'");
  Expect("stats " + dir_, 1, "simgpu-ctl up");
  Expect("run --memory 8MiB", 2, "--");
  Expect("run --memory 8MiB -- /no/such/program", 127, "/no/such/program");
  Expect("run --memory 8MiB -- sh -c 'exit 7'", 7, "");
  std::ofstream(folder_ + "/machine") << "launch_queue = 0\n";
  Expect("up " + dir_ + " --memory 8MiB --machine " + folder_ + "/machine", 1, "1 to 65536");
  Expect("up " + dir_ + " --memory 8MiB --machine /no/such/file", 1, "/no/such/file");
}

TEST_F(Control, KnowsGpusByName) {
  Expect("machine v100-32", 0, "sm_count = 80 | datasheet");
  Expect("machine p100-16", 0, "memory = 17179869184 | datasheet");
  Expect("machine h200", 0, "compute_capability = 9.0");
  Expect("machine v101", 1, "2080ti-11, demo, h200, p100-16, v100-32");
  Expect("machine", 2, "FILE");
  std::ofstream(folder_ + "/machine") << "sources = required\nsm_count = 80\n";
  Expect("machine " + folder_ + "/machine", 1, "machine:2: 'sm_count = 80': allowed: after");
  std::ofstream(folder_ + "/machine") << "sm_count = 80\n";
  Expect("up " + dir_ + " --machine " + folder_ + "/machine", 2, "does not say it");
  Expect("up " + dir_ + " --machine v100-32 --memory 8MiB", 0, "");
  Expect("stats " + dir_ + " --json", 0, "\"memory_total\": 8388608");
}

/// Prints what cuInit answers.
int Init() {
  printf("cuInit=%d\n", static_cast<int>(cuInit(0)));
  return 0;
}
const bool kInit = AddRole("init", Init);

TEST_F(Control, WithoutAGpuThereIsNoDevice) {
  char self[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", self, sizeof self - 1), 0);
  const Outcome unset = RunCommand(std::string("SLUICE_SIMGPU= ") + self + " --role=init");
  EXPECT_NE(unset.text.find("cuInit=100"), std::string::npos) << unset.text;
  EXPECT_NE(unset.text.find("SLUICE_SIMGPU is not set"), std::string::npos) << unset.text;
  const Outcome wrong = RunCommand("SLUICE_SIMGPU=" + folder_ + " " + self + " --role=init");
  EXPECT_NE(wrong.text.find("cuInit=100"), std::string::npos) << wrong.text;
  EXPECT_NE(wrong.text.find("no simulated GPU"), std::string::npos) << wrong.text;
  std::ofstream(folder_ + "/state") << "not a state page";
  // Nor where the environment hides it.
  const Outcome hidden =
      RunCommand("CUDA_VISIBLE_DEVICES=-1 " + std::string(self) + " --role=init");
  EXPECT_NE(hidden.text.find("cuInit=100"), std::string::npos) << hidden.text;
  EXPECT_NE(hidden.text.find("CUDA_VISIBLE_DEVICES leaves none"), std::string::npos) << hidden.text;
  const Outcome garbage = RunCommand("SLUICE_SIMGPU=" + folder_ + " " + self + " --role=init");
  EXPECT_NE(garbage.text.find("cuInit=100"), std::string::npos) << garbage.text;
}

/// Takes 6 MiB of a GPU of 8 MiB, tries 6 more, and prints the answers.
int Fill() {
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  cuInit(0);
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  const int first = cuMemAlloc_v2(&memory, 6u << 20);
  const int second = cuMemAlloc_v2(&memory, 6u << 20);
  printf("first=%d second=%d\n", first, second);
  return 0;
}
const bool kFill = AddRole("fill", Fill);

// An unprivileged user cannot mount: the capacity is then counted in the state page.
TEST_F(Control, WithoutMountRightsTheCapacityIsCounted) {
  if (getuid() != 0 || RunCommand("setpriv --version").code != 0)
    GTEST_SKIP() << "needs root and setpriv";
  char self[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", self, sizeof self - 1), 0);
  std::ofstream(folder_ + "/machine") << "context_bytes = 1MiB\n";
  const std::string unprivileged = "setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin ";
  const Outcome up = RunCommand(unprivileged + kCtl + " up " + dir_ + " --memory 8MiB --machine " +
                                folder_ + "/machine");
  EXPECT_EQ(up.code, 0) << up.text;
  EXPECT_NE(up.text.find("weaker"), std::string::npos) << up.text;
  for (int i = 0; i < 2; ++i) {  // twice: a finished process gives its bytes back
    const Outcome fill =
        RunCommand("SLUICE_SIMGPU=" + dir_ + " " + std::string(self) + " --role=fill");
    EXPECT_NE(fill.text.find("first=0 second=2"), std::string::npos) << fill.text;
    ASSERT_TRUE(ComesToNothing()) << "its executor ends right after it";
  }
  Expect("stats " + dir_ + " --json", 0, "\"kernel_enforced\": false");
}

}  // namespace
}  // namespace sluice::contract
