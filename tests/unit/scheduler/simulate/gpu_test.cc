// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/simulate/gpu.h"

#include <cmath>

#include "tests/unit/scheduler/simulate/models.h"

namespace sluice::scheduler::simulate {
namespace {

Workload Kernels(std::vector<std::pair<double, double>> of_ns_and_share) {
  Workload workload;
  for (const auto& [ns, share] : of_ns_and_share) {
    workload.kernels.push_back({ns, {share, 0}, 0});
    workload.alone_ns += ns;
  }
  return workload;
}

/// Lets the GPU run until it is idle; {job, time} of each end.
std::vector<std::pair<size_t, double>> RunDry(Gpu* gpu) {
  std::vector<std::pair<size_t, double>> ends;
  double now = 0;
  for (double next = gpu->UntilNext(); std::isfinite(next); next = gpu->UntilNext()) {
    std::vector<size_t> ended;
    gpu->Advance(next, &ended);
    now += next;
    for (const size_t job : ended) ends.emplace_back(job, now);
  }
  return ends;
}

using Ends = std::vector<std::pair<size_t, double>>;

TEST(Gpu, KernelsOfAStreamFollowEachOther) {
  const Workload one = Kernels({{100, 1}, {50, 1}});
  const Machine machine = PlainMachine();
  Gpu gpu(machine, {&one});
  EXPECT_TRUE(std::isinf(gpu.UntilNext()));
  for (int i = 0; i < 3; ++i) gpu.Launch(0);
  EXPECT_EQ(gpu.queued(0), 3u);
  EXPECT_EQ(gpu.queued_ns(0), 250);
  EXPECT_EQ(RunDry(&gpu), (Ends{{0, 100}, {0, 150}, {0, 250}})) << "and begin anew";
  EXPECT_EQ(gpu.done(0), 3u);
  EXPECT_EQ(gpu.done_ns(0), 250);
  EXPECT_EQ(gpu.queued_ns(0), 0);
}

TEST(Gpu, ThoseWhoFitTogetherRunAtFullSpeed) {
  const Workload half = Kernels({{100, 0.5}});
  const Workload full = Kernels({{100, 1}});
  const Machine machine = PlainMachine();
  Gpu fits(machine, {&half, &half});
  fits.Launch(0);
  fits.Launch(1);
  EXPECT_EQ(RunDry(&fits), (Ends{{0, 100}, {1, 100}}));
  Gpu halves(machine, {&full, &full});
  halves.Launch(0);
  halves.Launch(1);
  EXPECT_EQ(RunDry(&halves), (Ends{{0, 200}, {1, 200}}));
  // Shares are dealt anew when a kernel ends: 100 ns at half the speed, then 50 alone.
  const Workload brief = Kernels({{50, 1}});
  Gpu uneven(machine, {&brief, &full});
  uneven.Launch(0);
  uneven.Launch(1);
  EXPECT_EQ(RunDry(&uneven), (Ends{{0, 100}, {1, 150}}));
  EXPECT_EQ(uneven.busy_ns(0), 100);
}

TEST(Gpu, TimeSlicesTakeTurnsAndPayForSwitches) {
  const Workload full = Kernels({{100, 0.5}});
  Machine machine = PlainMachine();
  machine.sharing = Sharing::kTimeSlice;
  machine.quantum_ns = 60;
  machine.switch_ns = 10;
  Gpu gpu(machine, {&full, &full});
  gpu.Launch(0);
  gpu.Launch(1);
  // Job 0 has the GPU from 10 to 70, job 1 from 80 to 140, job 0 its rest to 190, job 1 to 240.
  EXPECT_EQ(RunDry(&gpu), (Ends{{0, 190}, {1, 240}}));
}

TEST(Gpu, AJobThatIsAloneKeepsItsSlice) {
  const Workload full = Kernels({{1000, 1}});
  Machine machine = PlainMachine();
  machine.sharing = Sharing::kTimeSlice;
  machine.quantum_ns = 60;
  machine.switch_ns = 10;
  Gpu gpu(machine, {&full, &full});
  gpu.Launch(0);
  EXPECT_EQ(RunDry(&gpu), (Ends{{0, 1010}}));
  gpu.Launch(0);
  EXPECT_EQ(RunDry(&gpu), (Ends{{0, 1000}})) << "its context is there already";
}

}  // namespace
}  // namespace sluice::scheduler::simulate
