// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/ctl/stats.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <vector>

#include "common/bytes.h"
#include "simgpu/sharing/device_token.h"

namespace sluice::simgpu {
namespace {

struct ProcessRow {
  int pid;
  std::string name;
  bool running;
  uint64_t kernels;
  uint64_t busy_ns;
  uint64_t bytes_now;
  uint64_t bytes_peak;
  struct Bytes {
    uint64_t requested;
    uint64_t held;
  } family[kFamilies];
};

struct Stats {
  uint64_t clock_ns = 0;
  uint64_t busy_ns = 0;
  uint64_t idle_ns = 0;
  uint64_t kernels = 0;
  uint64_t token_switches = 0;
  uint64_t faults = 0;
  uint64_t violations = 0;
  uint64_t stalls = 0;
  std::vector<Violation> last_violations;
  struct Injected {
    std::string name;
    uint64_t calls;
    uint64_t hits;
  };
  std::vector<Injected> injected;
  GpuState::Memory memory;
  bool enforced = false;
  std::vector<ProcessRow> processes;
};

Stats Collect(GpuState* gpu) {
  gpu->Reap();
  Stats stats;
  stats.clock_ns = DeviceClockNs(*gpu);
  stats.memory = gpu->MemoryNow();
  StatePage* page = gpu->page();
  const StateLock lock(page);
  stats.busy_ns = page->busy_ns;
  if (page->first_start_ns != UINT64_MAX && page->last_end_ns > page->first_start_ns) {
    const uint64_t span = page->last_end_ns - page->first_start_ns;
    stats.idle_ns = span - std::min(span, page->busy_ns);
  }
  stats.kernels = page->kernels;
  stats.token_switches = page->token_switches;
  stats.faults = page->faults;
  stats.stalls = page->time.stalls;
  stats.violations = page->oracle_violations;
  stats.enforced = page->kernel_enforced != 0;
  const uint64_t kept = std::min<uint64_t>(page->oracle_violations, kKeptViolations);
  for (uint64_t i = page->oracle_violations - kept; i < page->oracle_violations; ++i) {
    stats.last_violations.push_back(page->violation[i % kKeptViolations]);
  }
  for (uint32_t i = 0; i < page->injections.load(); ++i) {
    const InjectionSlot& slot = page->injection[i];
    stats.injected.push_back({slot.rule.name, slot.calls.load(), slot.hits.load()});
  }
  for (const ProcessEntry& p : page->process) {
    if (p.state == ProcessEntry::kFree) continue;
    stats.processes.push_back({p.id.pid,
                               p.name,
                               p.state == ProcessEntry::kRunning,
                               p.kernels.load(),
                               p.busy_ns.load(),
                               p.bytes_now.load(),
                               p.bytes_peak.load(),
                               {}});
    for (uint32_t i = 0; i < kFamilies; ++i) {
      stats.processes.back().family[i] = {p.family[i].requested.load(), p.family[i].held.load()};
    }
  }
  return stats;
}

__attribute__((format(printf, 2, 3))) void Append(std::string* text, const char* format, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  *text += buffer;
}

/// Names come from programs: anything may be in them.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (u < 0x20 || u > 0x7e) {
      Append(&quoted, "\\u%04x", u);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

unsigned long long U(uint64_t value) { return value; }

}  // namespace

std::string StatsJson(GpuState* gpu) {
  const Stats s = Collect(gpu);
  std::string text;
  Append(&text,
         "{\"device_clock_ns\": %llu, \"busy_ns\": %llu, \"idle_ns\": %llu, \"kernels\": %llu, "
         "\"token_switches\": %llu, \"faults\": %llu, \"oracle_violations\": %llu, "
         "\"stalls\": %llu, \"last_violations\": [",
         U(s.clock_ns), U(s.busy_ns), U(s.idle_ns), U(s.kernels), U(s.token_switches), U(s.faults),
         U(s.violations), U(s.stalls));
  for (size_t i = 0; i < s.last_violations.size(); ++i) {
    const Violation& v = s.last_violations[i];
    Append(&text, "%s{\"pid\": %d, \"kernel\": %s, \"pool_offset\": %llu}", i == 0 ? "" : ", ",
           v.pid, Quoted(v.kernel).c_str(), U(v.pool_offset));
  }
  Append(&text,
         "], \"memory_total\": %llu, \"memory_used\": %llu, \"kernel_enforced\": %s, "
         "\"injections\": [",
         U(s.memory.total), U(s.memory.total - s.memory.free), s.enforced ? "true" : "false");
  for (size_t i = 0; i < s.injected.size(); ++i) {
    Append(&text, "%s{\"name\": %s, \"calls\": %llu, \"hits\": %llu}", i == 0 ? "" : ", ",
           Quoted(s.injected[i].name).c_str(), U(s.injected[i].calls), U(s.injected[i].hits));
  }
  text += "], \"processes\": [";
  for (size_t i = 0; i < s.processes.size(); ++i) {
    const ProcessRow& p = s.processes[i];
    Append(&text,
           "%s{\"pid\": %d, \"name\": %s, \"running\": %s, \"kernels\": %llu, \"busy_ns\": %llu, "
           "\"bytes_now\": %llu, \"bytes_peak\": %llu, \"families\": {",
           i == 0 ? "" : ", ", p.pid, Quoted(p.name).c_str(), p.running ? "true" : "false",
           U(p.kernels), U(p.busy_ns), U(p.bytes_now), U(p.bytes_peak));
    for (uint32_t f = 0; f < kFamilies; ++f) {
      Append(&text, "%s\"%s\": {\"requested\": %llu, \"held\": %llu}", f == 0 ? "" : ", ",
             kFamilyNames[f], U(p.family[f].requested), U(p.family[f].held));
    }
    text += "}}";
  }
  return text + "]}\n";
}

std::string StatsText(GpuState* gpu) {
  const Stats s = Collect(gpu);
  std::string text;
  const auto ms = [](uint64_t ns) { return static_cast<double>(ns) / 1e6; };
  Append(&text, "memory      %s of %s used%s\n",
         FormatBytes(s.memory.total - s.memory.free).c_str(), FormatBytes(s.memory.total).c_str(),
         s.enforced ? "" : " (counted only, not enforced by the kernel)");
  Append(&text, "clock       %.3f ms, busy %.3f ms, idle %.3f ms (simulated)\n", ms(s.clock_ns),
         ms(s.busy_ns), ms(s.idle_ns));
  Append(&text, "kernels     %llu, %llu switches between processes\n", U(s.kernels),
         U(s.token_switches));
  Append(&text, "faults      %llu, oracle violations %llu\n", U(s.faults), U(s.violations));
  if (s.stalls != 0) {
    Append(&text, "stalls      %llu times virtual time went on without a program\n", U(s.stalls));
  }
  for (const Violation& v : s.last_violations) {
    Append(&text, "            pid %d, %s, pool offset %llu\n", v.pid, v.kernel, U(v.pool_offset));
  }
  for (const Stats::Injected& i : s.injected) {
    Append(&text, "injection   %s: %llu calls seen, %llu met\n", i.name.c_str(), U(i.calls),
           U(i.hits));
  }
  for (const ProcessRow& p : s.processes) {
    Append(&text, "process %7d %-16s %s  %llu kernels, busy %.3f ms, %s now, %s at most\n", p.pid,
           p.name.c_str(), p.running ? "running " : "finished", U(p.kernels), ms(p.busy_ns),
           FormatBytes(p.bytes_now).c_str(), FormatBytes(p.bytes_peak).c_str());
    for (uint32_t f = 0; f < kFamilies; ++f) {
      const ProcessRow::Bytes& b = p.family[f];
      if (b.requested == 0 && b.held == 0) continue;
      Append(&text, "        %-9s %s asked for, %s held\n", kFamilyNames[f],
             FormatBytes(b.requested).c_str(), FormatBytes(b.held).c_str());
    }
  }
  return text;
}

}  // namespace sluice::simgpu
