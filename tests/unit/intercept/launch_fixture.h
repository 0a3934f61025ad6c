// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <memory>
#include <vector>

#include "tests/unit/intercept/client_fixture.h"

namespace sluice::test {

inline const char* const kCycle[] = {"conv", "relu", "pool", "dense",
                                     "loss", "back", "grad", "step"};
inline constexpr uint32_t kPeriod = 8;

inline uint64_t NameHash(const char* name) {
  uint64_t id = 0xcbf29ce484222325u;
  for (; *name != 0; ++name) id = (id ^ static_cast<unsigned char>(*name)) * 0x100000001b3u;
  return id;
}

/// A program that launches the same eight kernels over and over.
class ClientLaunch : public ClientTest {
 protected:
  struct Gate {
    uint32_t launch;
    uint32_t need;
  };

  void Publish(protocol::TroughPlace place, uint32_t need0, const std::vector<Gate>& gates = {},
               uint64_t credit_ns = ~uint64_t{0}, uint32_t launch_ns = 1000) {
    daemon->WaitReady();
    auto image = std::make_unique<protocol::ProfileImage>();
    image->profile_id = ++profile_;
    image->period = kPeriod;
    image->pacing_slot = pacing_;
    image->window = 6;
    image->trough_place = place;
    image->trough_hash = protocol::kHashSeed;
    for (uint32_t i = kPeriod - 6; i < kPeriod; ++i) {
      image->trough_hash = protocol::FoldLaunch(image->trough_hash, NameHash(kCycle[i]));
    }
    image->credit_ns = credit_ns;
    image->gate_count = 1;
    image->gates[0] = {0, need0};
    for (const Gate& gate : gates) image->gates[image->gate_count++] = {gate.launch, gate.need};
    for (uint32_t i = 0; i < kPeriod; ++i) image->launch_ns[i] = launch_ns;
    protocol::PublishProfile(*daemon->daemon, *image);
  }

  void Launches(uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; ++i) Launch(kCycle[i]);
  }
  void Iteration() { Launches(0, kPeriod); }

  std::vector<protocol::Gate> Gates(size_t count) {
    std::vector<protocol::Gate> gates;
    for (const auto& frame : daemon->Wait(protocol::FrameType::kGate, count)) {
      gates.push_back(*reinterpret_cast<const protocol::Gate*>(frame.data()));
    }
    return gates;
  }

  uint32_t pacing_ = 1;  // slot 0 is the legacy stream; the first allocation's stream is 1
  uint32_t profile_ = 0;
};

}  // namespace sluice::test
