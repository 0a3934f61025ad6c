// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "scheduler/ledger/types.h"
#include "scheduler/profile/gates.h"

namespace sluice::scheduler {

/// From when to when a job holds so much: from when its host comes to a gate until its GPU has
/// passed the group behind it. Zico's lifespan of a region (Lim et al., 5.1), with what is held
/// instead of a region, so that several may overlap.
struct Lifespan {
  double from_ns = 0;
  double until_ns = 0;
  Units units = 0;
};

/// What a job holds over time: `units` from `from_ns` until the next one begins, and `after` from
/// the end of the last one. Sorted, no gaps.
struct UseOverTime {
  struct Step {
    double from_ns = 0;
    Units units = 0;
  };
  std::vector<Step> steps;
};

/// Neighbours that differ by at most `within` units as one that holds the most of them, so that
/// there is less to look at.
std::vector<Lifespan> Merge(const std::vector<Lifespan>& lifespans, Units within);

/// The most of overlapping lifespans at each time from 0 on, `least` where there is none and
/// behind the last. `lifespans` in order: neither their begins nor their ends fall.
UseOverTime OverTime(const std::vector<Lifespan>& lifespans, Units least);

/// Of a course: gates between which memory grows or falls by no more than a part of the peak.
struct GateGroup {
  size_t first = 0;
  Units high_water = 0;
  bool takes = false;  // more than is held before it
  friend bool operator==(const GateGroup&, const GateGroup&) = default;
};

/// The group that gate `gate` lies in. A group ends where memory has grown by a part of `peak`
/// since it began or fallen by as much from the group's high water. `units`: held behind each gate.
GateGroup GroupAt(const std::vector<Units>& units, Units base, Units peak, size_t gate,
                  uint32_t groups_per_peak);

/// In how many parts of the peak a course is cut unless it is told otherwise.
inline constexpr uint32_t kGroupsPerPeak = 10;

/// What is expected of a job's iteration, and how far it is. Expectations begin with what was
/// measured alone and follow what is measured beside others (the feedback of Zico 5.3). Times are
/// nanoseconds of any one clock; nothing here reads one.
class Course {
 public:
  Course() = default;
  /// `gate_ns[k]`: GPU time alone from the trough to the launch of gate k. `base`: held at the
  /// trough.
  /// `groups_per_peak`: of the groups that are asked for mostly, which are kept.
  Course(const CyclePlan& plan, const std::vector<double>& gate_ns, double iteration_ns, Units base,
         uint32_t groups_per_peak = kGroupsPerPeak);

  size_t gates() const { return expected_.size(); }
  /// Most that is held behind the gate, up to the next one.
  Units units(size_t gate) const { return expected_[gate].units; }
  Units base() const { return base_; }
  Units peak() const { return peak_; }
  /// The group that the gate lies in.
  GateGroup GroupOf(size_t gate, uint32_t groups_per_peak) const;

  /// Gate 0 has opened.
  void Open(double now_ns);
  /// The host has passed gate `gate` of the iteration.
  void Pass(size_t gate, double now_ns);
  /// The GPU has done `launches` of the iteration. True: it has come to another gate.
  bool Reach(uint32_t launches, double now_ns);
  /// Back at the trough: what was measured counts for the next iteration.
  void End(double now_ns);

  bool open() const { return open_; }
  double opened_ns() const { return opened_ns_; }
  /// The part of the iteration, in GPU time alone, that lies before the gate that the GPU has come
  /// to.
  double done() const { return reached_ < parts_.size() ? parts_[reached_] : 0; }
  size_t passed() const { return passed_; }    // by the host
  size_t reached() const { return reached_; }  // by the GPU
  uint64_t iterations() const { return iterations_; }

  /// What is held in an iteration, from gate 0 on.
  const UseOverTime& Whole() const { return whole_; }
  /// How far along it is, open, on its own time: in `t` from now it holds what Whole() has at
  /// Along(now) + t. While it is late that time stands still; where its GPU is early it jumps.
  double Along(double now_ns) const;

 private:
  std::vector<uint32_t> launches_;  // before each gate
  std::vector<double> parts_;       // of the GPU time alone, before each gate
  std::vector<Lifespan> expected_;  // one per gate, since gate 0 opened
  std::vector<Lifespan> measured_;  // this iteration; negative: not yet
  UseOverTime whole_;
  std::vector<GateGroup> groups_;  // per gate, in groups_per_peak_
  uint32_t groups_per_peak_ = kGroupsPerPeak;
  Units base_ = 0;
  Units peak_ = 0;
  bool open_ = false;
  double opened_ns_ = 0;
  size_t passed_ = 0;
  size_t reached_ = 0;
  uint64_t iterations_ = 0;
};

/// What a policy may know beside the ledger.
struct Outlook {
  double now_ns = 0;
  /// Of the jobs that have a profile; nothing is known of others. nullptr: of nobody.
  const std::map<JobId, Course>* courses = nullptr;

  const Course* Of(JobId job) const;
};

}  // namespace sluice::scheduler
