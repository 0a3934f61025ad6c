// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/look/top.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <vector>

#include "noderuntime/cli/daemon_commands.h"
#include "noderuntime/cli/look/explain.h"
#include "noderuntime/cli/look/terminal.h"
#include "noderuntime/cli/look/which_gpu.h"
#include "noderuntime/cli/node_daemons.h"

namespace sluice::cli {
namespace {

/// A daemon that is looked at again and again; one that was replaced is found again.
class Looker {
 public:
  explicit Looker(std::string folder) : folder_(std::move(folder)) {}

  Status Look(LiveView* view) {
    if (!client_.has_value()) {
      Result<DaemonClient> client = ConnectIn(folder_, kLookPatience);
      if (!client.ok()) return client.status();
      client_.emplace(std::move(*client));
    }
    const Result<std::string> answer = client_->FetchLive(view->cursor());
    const Status status = answer.ok() ? view->Take(*answer) : answer.status();
    if (!status.ok()) client_.reset();
    return status;
  }

 private:
  std::string folder_;
  std::optional<DaemonClient> client_;
};

std::string GpuName(const NodeDaemons& daemons, size_t at) {
  if (!daemons.of_node) return "";
  return "GPU " + std::filesystem::path(daemons.folders[at]).filename().string();
}

/// Of all that answer; 1: one did not.
int PrintOnce(const NodeDaemons& daemons) {
  int code = 0;
  for (size_t i = 0; i < daemons.folders.size(); ++i) {
    LiveView view;
    if (Status s = Looker(daemons.folders[i]).Look(&view); !s.ok()) {
      code = Complain(s.message(), 1);
      continue;
    }
    TopState state;
    state.rows = 24 + view.jobs().size();
    state.columns = 120;
    state.gpu = GpuName(daemons, i);
    TopScreen screen = RenderTop(view, state);
    // Nobody presses keys here.
    screen.lines.pop_back();
    for (const std::string& line : screen.lines) std::printf("%s\n", line.c_str());
  }
  return code;
}

/// False: it is over.
bool Obey(Terminal::Key key, size_t jobs, size_t gpus, TopState* state, size_t* gpu) {
  using Key = Terminal::Key;
  switch (key) {
    case Key::kQuit:
      return false;
    case Key::kPause:
      state->paused = !state->paused;
      break;
    case Key::kUp:
      if (state->selected > 0) --state->selected;
      break;
    case Key::kDown:
      if (state->selected + 1 < jobs) ++state->selected;
      break;
    case Key::kNumber:
      state->order = TopState::Order::kNumber;
      break;
    case Key::kHeld:
      state->order = TopState::Order::kHeld;
      break;
    case Key::kWaits:
      state->order = TopState::Order::kWaits;
      break;
    case Key::kNextGpu:
      *gpu = (*gpu + 1) % gpus;
      state->selected = 0;
      break;
    case Key::kOther:
      break;
  }
  return true;
}

}  // namespace

int RunTop(const TopOptions& options) {
  const NodeDaemons daemons = DaemonsIn(options.runtime_dir);
  if (options.once) return PrintOnce(daemons);
  const size_t gpus = daemons.folders.size();
  std::vector<LiveView> views(gpus);
  std::vector<Looker> lookers(daemons.folders.begin(), daemons.folders.end());
  // Before the terminal is taken over: that nobody is there is said where it stays to be read.
  size_t gpu = 0;
  Status answers = lookers[gpu].Look(&views[gpu]);
  while (!answers.ok() && gpu + 1 < gpus) {
    ++gpu;
    answers = lookers[gpu].Look(&views[gpu]);
  }
  if (!answers.ok()) return Complain(answers.message(), 1);
  Result<Terminal> terminal = Terminal::Open();
  if (!terminal.ok()) return Complain(terminal.status().message(), 1);
  TopState state;
  auto next = std::chrono::steady_clock::now();
  for (;;) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= next) {
      next = now + std::chrono::milliseconds(options.interval_ms);
      if (!state.paused) {
        const Status looked = lookers[gpu].Look(&views[gpu]);
        state.gone = looked.ok() ? "" : looked.message();
      }
    }
    state.columns = terminal->columns();
    state.rows = terminal->rows();
    state.gpu = GpuName(daemons, gpu);
    terminal->Show(RenderTop(views[gpu], state));
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        next - std::chrono::steady_clock::now());
    const auto key = terminal->Wait(static_cast<int>(std::max<int64_t>(1, left.count())));
    if (!key.has_value()) continue;
    const size_t before = gpu;
    if (!Obey(*key, views[gpu].jobs().size(), gpus, &state, &gpu)) return 0;
    if (gpu != before) next = std::chrono::steady_clock::now();
  }
}

int RunExplain(const ExplainOptions& options) {
  const NodeDaemons daemons = DaemonsIn(options.runtime_dir);
  std::vector<GpuStatus> gpus;
  for (const std::string& folder : daemons.folders) {
    // Without a node's folders there is one daemon, whose GPU is 0 as on the page.
    const std::string number =
        daemons.of_node ? std::filesystem::path(folder).filename().string() : "0";
    if (options.gpu.has_value() && number != std::to_string(*options.gpu)) continue;
    Result<DaemonClient> client = ConnectIn(folder);
    gpus.push_back({number, client.ok() ? client->FetchStatus() : client.status()});
  }
  if (gpus.empty()) {
    return Complain("--gpu: '" + std::to_string(*options.gpu) + "': there is none in " +
                        options.runtime_dir + "; allowed: a number that sluice status names",
                    1);
  }
  const Result<size_t> which = WhichGpu(gpus, options.job);
  if (!which.ok()) return Complain(which.status().message(), 1);
  const std::string& status = *gpus[*which].status;
  const Result<std::string> text =
      options.json ? ExplainJson(status, options.job) : Explain(status, options.job);
  if (!text.ok()) return Complain(text.status().message(), 1);
  std::fputs(text->c_str(), stdout);
  return 0;
}

}  // namespace sluice::cli
