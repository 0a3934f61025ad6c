// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/demo_console.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "common/printable.h"
#include "noderuntime/cli/demo_stages.h"

namespace sluice::cli {
namespace {

/// Stages as lines; the iterations done as one line that is rewritten on a terminal, and as a line
/// per quarter elsewhere.
class ConsoleProgress : public DemoProgress {
 public:
  /// Results go to stdout; with JSON nothing else may.
  explicit ConsoleProgress(bool json)
      : stream_(json ? stderr : stdout), terminal_(::isatty(::fileno(stream_)) != 0) {}

  void Stage(const std::string& title) override {
    ClearLine();
    std::fprintf(stream_, "[%zu/%zu] %s (%.0f s)\n", ++stage_, kStages, title.c_str(), Elapsed());
    std::fflush(stream_);
  }

  void Advance(const std::string& what, size_t done, size_t total) override {
    if (what != what_) {
      what_ = what;
      shown_ = 0;
    }
    const size_t step = terminal_ ? kTerminalSteps : kLogSteps;
    const size_t reached = total == 0 ? 0 : done * step / total;
    if (reached == shown_) return;
    shown_ = reached;
    std::fprintf(stream_, "%s      %s: %zu of %zu iterations%s", terminal_ ? "\r" : "",
                 what.c_str(), done, total, terminal_ ? "" : "\n");
    std::fflush(stream_);
    line_open_ = terminal_;
  }

  void Note(const std::string& text) override {
    ClearLine();
    std::fprintf(stream_, "      %s\n", text.c_str());
    std::fflush(stream_);
  }

  void ClearLine() {
    if (line_open_) std::fprintf(stream_, "\r\x1b[K");
    line_open_ = false;
  }

 private:
  static constexpr size_t kStages = 5;
  static constexpr size_t kTerminalSteps = 100;
  static constexpr size_t kLogSteps = 4;

  double Elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  }

  std::FILE* stream_;
  bool terminal_;
  bool line_open_ = false;
  size_t stage_ = 0;
  std::string what_;
  size_t shown_ = 0;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

int Fail(const Status& status) {
  std::fprintf(stderr, "sluice: demo: %s\n", PrintableLines(status.message()).c_str());
  return status.code() == StatusCode::kInvalidArgument ? 2 : 1;
}

}  // namespace

int RunDemo(const DemoOptions& options, const Layout& layout) {
  // Before anything exists that would have to be taken down.
  const Result<Interrupts> interrupts = Interrupts::Catch();
  if (!interrupts.ok()) return Fail(interrupts.status());
  const Result<WorkDir> work = WorkDir::Create(options.keep);
  if (!work.ok()) return Fail(work.status());

  ConsoleProgress progress(options.json);
  Demo demo(options, layout, *work, *interrupts, progress);
  const Result<DemoResult> result = demo.Run();
  progress.ClearLine();
  if (interrupts->Pending()) {
    std::fprintf(stderr, "sluice: demo: interrupted; everything was taken down\n");
    return 130;
  }
  if (!result.ok()) return Fail(result.status());

  const bool colour = ::isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  const std::string text =
      options.json ? RenderJson(*result) : "\n" + RenderReport(*result, colour);
  std::fputs(text.c_str(), stdout);
  const std::vector<std::string> failed = FailedAssertions(*result);
  std::fflush(stdout);
  for (const std::string& line : failed) {
    std::fprintf(stderr, "sluice: demo: assertion failed: %s\n", line.c_str());
  }
  if (failed.empty() && !options.json) std::puts("\nok: everything the demo promises was kept");
  return failed.empty() ? 0 : 1;
}

}  // namespace sluice::cli
