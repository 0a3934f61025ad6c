// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/bytes.h"
#include "tests/clients/client_runs.h"

namespace sluice::testing {
namespace {

/// Debian's ffmpeg, which hands frames to the GPU and takes them back; each frame's checksum is
/// printed. No kernel is launched.
class FfmpegFrames : public ClientTest {
 protected:
  static ClientRun Run(const std::string& filters, std::vector<std::string> device = {}) {
    ClientRun run{.label = "ffmpeg", .command = {Ffmpeg(), "-nostdin", "-v", "error"}};
    run.command.insert(run.command.end(), device.begin(), device.end());
    run.command.insert(run.command.end(),
                       {"-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=25:duration=2", "-vf",
                        filters, "-f", "framemd5", "-"});
    return run;
  }
  static ClientRun OnTheCpu() { return Run("format=nv12"); }
  static ClientRun OnTheGpu() {
    return Run("format=nv12,hwupload,hwdownload,format=nv12",
               {"-init_hw_device", "cuda=gpu", "-filter_hw_device", "gpu"});
  }
};

TEST_F(FfmpegFrames, ComeBackAsTheyWent) {
  const Lines expected = RunUnhooked(OnTheCpu());
  EXPECT_EQ(RunUnhooked(OnTheGpu()), expected);
  RunHooked({OnTheGpu()}, {expected}, 32 * kMiB);
}

TEST_F(FfmpegFrames, TwoShareAPoolThatDoesNotHoldBoth) {
  const Lines expected = RunUnhooked(OnTheCpu());
  ExpectPeaksDoNotFit(RunHooked({OnTheGpu(), OnTheGpu()}, {expected, expected}, 2 * kMiB));
}

}  // namespace
}  // namespace sluice::testing
