// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/record/reason.h"

namespace sluice::scheduler {

std::string_view ReasonName(WaitReason reason) {
  switch (reason) {
    case WaitReason::kAdmission:
      return "admission";
    case WaitReason::kMeasurement:
      return "measurement";
    case WaitReason::kStandstill:
      return "standstill";
    case WaitReason::kTurn:
      return "turn";
    case WaitReason::kMemory:
      return "memory";
    case WaitReason::kPlace:
      return "place";
    case WaitReason::kBudget:
      return "budget";
    case WaitReason::kHostMemory:
      return "host-memory";
    case WaitReason::kFence:
      return "fence";
  }
  return "unknown";
}

std::string_view ReasonName(RefusalReason reason) {
  switch (reason) {
    case RefusalReason::kOverLimit:
      return "over-limit";
    case RefusalReason::kExhausted:
      return "exhausted";
    case RefusalReason::kGate:
      return "gate";
    case RefusalReason::kRefused:
      return "refused";
    case RefusalReason::kOutside:
      return "outside";
    case RefusalReason::kSecondProcess:
      return "second-process";
    case RefusalReason::kInternal:
      return "internal";
  }
  return "unknown";
}

std::string_view ReasonName(DeviationReason reason) {
  switch (reason) {
    case DeviationReason::kLaunches:
      return "launches";
    case DeviationReason::kThreads:
      return "threads";
    case DeviationReason::kStreams:
      return "streams";
    case DeviationReason::kCycle:
      return "cycle";
    case DeviationReason::kKept:
      return "kept";
    case DeviationReason::kRestart:
      return "restart";
    case DeviationReason::kPolicy:
      return "policy";
    case DeviationReason::kCollectives:
      return "collectives";
  }
  return "unknown";
}

}  // namespace sluice::scheduler
