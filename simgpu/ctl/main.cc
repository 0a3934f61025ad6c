// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/bytes.h"
#include "common/machine_file.h"
#include "common/program_files.h"
#include "simgpu/ctl/lifecycle.h"
#include "simgpu/ctl/stats.h"
#include "simgpu/sharing/gpu_folders.h"
#include "simgpu/sharing/nvml_switches.h"

namespace {

using sluice::Status;
using sluice::simgpu::kMaxGpus;
using GpuStates = std::vector<std::unique_ptr<sluice::simgpu::GpuState>>;

constexpr char kUsage[] =
    "simgpu-ctl: simulated GPUs for machines that have none\n"
    "  simgpu-ctl up DIR [--gpus N] [--memory SIZE] [--machine FILE]\n"
    "                                                     make N of them, 1 to 8 and alike; "
    "SLUICE_SIMGPU=DIR selects them\n"
    "  simgpu-ctl machine FILE                            what a machine file says, and why\n"
    "  simgpu-ctl stats DIR [--gpu I] [--json]            clock, kernels, memory, processes\n"
    "  simgpu-ctl xid DIR CODE [--gpu I]                  report an error to who watches the GPU\n"
    "  simgpu-ctl mig DIR on|off [--gpu I]                what NVML says of its MIG mode\n"
    "  simgpu-ctl lose DIR on|off [--gpu I]               NVML does not reach it, as if it had "
    "fallen\n"
    "                                                     off the bus\n"
    "  simgpu-ctl inject DIR RULES [--gpu I]              delay calls of the driver or let them "
    "fail;\n"
    "                                                     RULES: "
    "NAME[@FIRST[+COUNT]]=ERROR|DELAY; ...\n"
    "  simgpu-ctl down DIR                                remove it\n"
    "  simgpu-ctl run [--gpus N] [--memory SIZE] [--machine FILE] -- PROGRAM ARGS...\n"
    "                                                     run a program on one of its own\n"
    "up and run also take --virtual-time (the clock follows from the program's calls alone) and, "
    "with\n"
    "it, --participants N (of N processes, each with its rank 0 to N-1 in SLUICE_SIMGPU_RANK).\n"
    "FILE is a path or the name of a GPU (h200, p100-16, v100-32); without --memory it has the "
    "GPU's "
    "size.\n"
    "Without --gpu, stats tells of all GPUs (JSON: one line each), xid, mig, lose and inject mean "
    "GPU "
    "0.\n";

constexpr int kUsageError = 2;

struct Options {
  std::string command;
  std::string dir;
  std::string memory;
  std::string machine;
  std::string participants;
  bool virtual_time = false;
  std::string xid;
  std::string mode;  // of mig, of lose
  std::string rules;
  uint32_t gpus = 1;
  std::optional<uint32_t> gpu;
  bool has_rules = false;
  bool json = false;
  std::vector<char*> program;
};

int Fail(const std::string& message, int code = 1) {
  fprintf(stderr, "simgpu-ctl: %s\n", message.c_str());
  return code;
}

/// `text` as a number from `low` to `high`.
std::optional<uint32_t> Number(const std::string& text, uint32_t low, uint32_t high) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number >= low && number <= high ? std::optional(number) : std::nullopt;
}

/// How many GPUs, or which. Empty, or what is wrong.
std::string SetCount(const std::string& argument, const std::string& value, Options* options) {
  const uint32_t low = argument == "--gpus" ? 1 : 0;
  const uint32_t high = argument == "--gpus" ? kMaxGpus : kMaxGpus - 1;
  const std::optional<uint32_t> number = Number(value, low, high);
  if (!number) {
    return argument + " '" + value + "': allowed is a number from " + std::to_string(low) + " to " +
           std::to_string(high);
  }
  if (argument == "--gpus") {
    options->gpus = *number;
  } else {
    options->gpu = *number;
  }
  return {};
}

/// Empty, or what is wrong.
std::string Parse(int argc, char** argv, Options* options) {
  options->command = argv[1];
  const bool has_memory = options->command == "up" || options->command == "run";
  if (!has_memory && options->command != "stats" && options->command != "down" &&
      options->command != "xid" && options->command != "mig" && options->command != "lose" &&
      options->command != "inject" && options->command != "machine") {
    return "unknown command '" + options->command +
           "': allowed are up, stats, xid, mig, lose, inject, machine, down, run";
  }
  const bool has_gpu = options->command == "stats" || options->command == "xid" ||
                       options->command == "mig" || options->command == "lose" ||
                       options->command == "inject";
  const bool has_mode = options->command == "mig" || options->command == "lose";
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--" && options->command == "run") {
      options->program.assign(argv + i + 1, argv + argc);
      break;
    }
    if (has_memory &&
        (argument == "--memory" || argument == "--machine" || argument == "--participants")) {
      if (i + 1 == argc) return argument + " needs a value";
      (argument == "--memory"    ? options->memory
       : argument == "--machine" ? options->machine
                                 : options->participants) = argv[++i];
    } else if (has_memory && argument == "--virtual-time") {
      options->virtual_time = true;
    } else if ((has_memory && argument == "--gpus") || (has_gpu && argument == "--gpu")) {
      if (i + 1 == argc) return argument + " needs a value";
      const std::string wrong = SetCount(argument, argv[++i], options);
      if (!wrong.empty()) return wrong;
    } else if (argument == "--json" && options->command == "stats") {
      options->json = true;
    } else if (options->command == "xid" && !options->dir.empty() && options->xid.empty()) {
      options->xid = argument;
    } else if (has_mode && !options->dir.empty() && options->mode.empty()) {
      options->mode = argument;
    } else if (options->command == "inject" && !options->dir.empty() && !options->has_rules) {
      options->rules = argument;
      options->has_rules = true;
    } else if (argument.starts_with("-") || !options->dir.empty() || options->command == "run") {
      return "unexpected argument '" + argument + "'";
    } else {
      options->dir = argument;
    }
  }
  if (options->command == "machine") {
    std::swap(options->dir, options->machine);
    if (options->machine.empty()) return "the machine file FILE is missing";
    return {};
  }
  if (has_memory && options->memory.empty() && options->machine.empty()) {
    return "--memory is missing, for example 64MiB";
  }
  const std::string& n = options->participants;
  const bool number = n.size() <= 2 && n.find_first_not_of("0123456789") == std::string::npos;
  if (!n.empty() && (!number || std::stoi(n) < 1 || std::stoi(n) > 16)) {
    return "--participants " + n + ": allowed: 1 to 16";
  }
  if (options->command != "run" && options->dir.empty()) return "the folder DIR is missing";
  if (options->command == "xid" &&
      (options->xid.empty() || options->xid.size() > 4 ||
       options->xid.find_first_not_of("0123456789") != std::string::npos)) {
    return "CODE is a number from 0 to 9999, for example 79";
  }
  if (has_mode && options->mode != "on" && options->mode != "off") {
    return "the mode '" + options->mode + "': allowed are on, off";
  }
  if (options->command == "inject" && !options->has_rules) {
    return "RULES are missing, for example 'cuMemCreate@3=CUDA_ERROR_OUT_OF_MEMORY' ('' for none)";
  }
  if (options->command == "run" && options->program.empty()) return "no program after --";
  return {};
}

/// The folder of the driver libraries of this build; empty: it cannot be told.
std::string LibraryFolder() {
  const sluice::Result<std::string> bin = sluice::ProgramFolder();
  return bin.ok() ? sluice::SimulatedGpuFolder(*bin) : "";
}

/// The text of --machine with `more` lines, and what it means.
sluice::Result<std::pair<std::string, sluice::Machine>> ReadMachine(const std::string& file,
                                                                    const std::string& more = "") {
  sluice::Result<std::string> text{std::string()};
  if (!file.empty()) text = sluice::ReadMachineText(file, LibraryFolder());
  if (!text.ok()) return text.status();
  if (!more.empty()) *text += "\n" + more;
  sluice::Result<sluice::Machine> machine = sluice::ParseMachine(*text, file);
  if (!machine.ok()) return machine.status();
  return std::pair(std::move(*text), std::move(*machine));
}

int Up(const Options& options) {
  std::string more;
  if (options.virtual_time) more += "time = virtual | assumed, by --virtual-time\n";
  if (!options.participants.empty()) {
    more += "participants = " + options.participants + " | assumed, by --participants\n";
  }
  auto machine = ReadMachine(options.machine, more);
  if (!machine.ok()) return Fail(machine.status().message());
  uint64_t memory = machine->second.memory;
  if (!options.memory.empty()) {
    const sluice::Result<uint64_t> bytes = sluice::ParseBytes(options.memory, "--memory");
    if (!bytes.ok()) return Fail(bytes.status().message(), kUsageError);
    memory = *bytes;
  }
  if (memory == 0) {
    return Fail("--memory is missing, and " + options.machine + " does not say it", kUsageError);
  }
  if (machine->second.virtual_time && options.gpus > 1) {
    return Fail("--gpus " + std::to_string(options.gpus) +
                    ": with time = virtual allowed is 1: several GPUs have a clock each",
                kUsageError);
  }
  bool enforced = false;
  const Status status =
      sluice::simgpu::BringUp(options.dir, options.gpus, memory, machine->first, &enforced);
  if (!status.ok()) return Fail(status.message());
  if (!enforced) {
    fprintf(stderr,
            "simgpu-ctl: no right to mount a tmpfs: the capacity is counted per process instead of "
            "enforced by the kernel (weaker: bytes of a dead process count as free even if another "
            "process still maps them)\n");
  }
  return 0;
}

pid_t g_child = -1;
void PassOn(int signal_number) {
  if (g_child > 0) kill(g_child, signal_number);
}

int Run(Options options) {
  std::string dir = "/tmp/simgpu-XXXXXX";
  if (mkdtemp(dir.data()) == nullptr) return Fail("cannot make a folder in /tmp");
  options.dir = dir;
  // In a mount namespace of its own, where that is permitted: the memory then goes away with the
  // last process even if this one is killed before it can clean up.
  if (unshare(CLONE_NEWNS) == 0) mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  const int up = Up(options);
  if (up != 0) {
    rmdir(dir.c_str());
    return up;
  }
  // The program decides what an interrupt means; this process must live to remove the GPU.
  signal(SIGINT, SIG_IGN);
  signal(SIGQUIT, SIG_IGN);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("SLUICE_SIMGPU", dir.c_str(), 1);
    std::string libraries = LibraryFolder();
    const char* old = getenv("LD_LIBRARY_PATH");
    if (old != nullptr && *old != 0) libraries += std::string(":") + old;
    setenv("LD_LIBRARY_PATH", libraries.c_str(), 1);
    options.program.push_back(nullptr);
    execvp(options.program[0], options.program.data());
    fprintf(stderr, "simgpu-ctl: %s: %s\n", options.program[0], strerror(errno));
    _exit(127);
  }
  g_child = child;
  signal(SIGTERM, PassOn);
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const Status down = sluice::simgpu::BringDown(dir);
  if (child < 0) return Fail("cannot start a process");
  if (!down.ok()) return Fail(down.message());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string Stats(sluice::simgpu::GpuState* gpu, bool json) {
  return json ? sluice::simgpu::StatsJson(gpu) : sluice::simgpu::StatsText(gpu);
}

/// The counters of the GPU that is asked for, or of all.
int PrintStats(const Options& options, const GpuStates& gpus) {
  for (uint32_t i = 0; i < gpus.size(); ++i) {
    if (options.gpu && *options.gpu != i) continue;
    const bool title = !options.json && !options.gpu && gpus.size() > 1;
    if (title) printf("%sGPU %u\n", i == 0 ? "" : "\n", i);
    fputs(Stats(gpus[i].get(), options.json).c_str(), stdout);
  }
  return 0;
}

/// What needs a machine that is up.
int Use(const Options& options) {
  auto gpus = sluice::simgpu::OpenGpus(options.dir);
  if (!gpus.ok()) return Fail(gpus.status().message());
  if (options.gpu && *options.gpu >= gpus->size()) {
    return Fail("--gpu " + std::to_string(*options.gpu) + ": '" + options.dir + "' has " +
                    std::to_string(gpus->size()) + " GPU(s), numbered from 0",
                kUsageError);
  }
  if (options.command == "stats") return PrintStats(options, *gpus);
  sluice::simgpu::GpuState* gpu = (*gpus)[options.gpu.value_or(0)].get();
  if (options.command == "xid") {
    gpu->ReportXid(strtoull(options.xid.c_str(), nullptr, 10));
    return 0;
  }
  if (options.command == "mig" || options.command == "lose") {
    const bool on = options.mode == "on";
    const Status set = options.command == "mig" ? sluice::simgpu::SetMigMode(gpu->dir(), on)
                                                : sluice::simgpu::SetLost(gpu->dir(), on);
    return set.ok() ? 0 : Fail(set.message());
  }
  const auto rules = sluice::simgpu::ParseInjections(options.rules);
  if (!rules.ok()) return Fail(rules.status().message(), kUsageError);
  gpu->Inject(*rules);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
    fputs(kUsage, argc < 2 ? stderr : stdout);
    return argc < 2 ? kUsageError : 0;
  }
  Options options;
  const std::string wrong = Parse(argc, argv, &options);
  if (!wrong.empty()) {
    Fail(wrong, kUsageError);
    fputs(kUsage, stderr);
    return kUsageError;
  }
  if (options.command == "up") return Up(options);
  if (options.command == "run") return Run(options);
  if (options.command == "machine") {
    const auto machine = ReadMachine(options.machine);
    if (!machine.ok()) return Fail(machine.status().message());
    fputs(sluice::DescribeMachine(machine->second).c_str(), stdout);
    return 0;
  }
  if (options.command == "down") {
    const Status status = sluice::simgpu::BringDown(options.dir);
    return status.ok() ? 0 : Fail(status.message());
  }
  return Use(options);
}
