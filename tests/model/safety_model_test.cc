// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "tests/model/search.h"

namespace sluice::scheduler::model {
namespace {

ClientModel Resident(Units at, Units claim, Units limit) {
  ClientModel client;
  client.request = 1;
  client.limit = limit;
  client.claim = claim;
  client.base = {{at, 1}};
  return client;
}

void Print(const ModelConfig& config, const SearchResult& result) {
  std::printf("%-28s %8zu states %9zu edges, lent %zu, denials %zu, evictions %zu, sums only %zu,",
              config.name.c_str(), result.states, result.edges, result.lent, result.denials,
              result.evictions, result.sums_only);
  std::printf(" spare %zu", result.spare_kept);
  if (result.evictions > 0) std::printf(", begun while away %zu", result.begun_while_away);
  std::printf("\n");
  for (const auto& [finding, count] : result.counts) {
    std::printf("  %s: %zu, first: %s\n", FindingName(finding), count,
                result.first.at(finding).c_str());
  }
}

SearchResult Explore(const ModelConfig& config) {
  SearchResult result = Search(config);
  Print(config, result);
  EXPECT_TRUE(result.complete) << config.name << ": more than " << config.max_states << " states";
  return result;
}

/// How often somebody is evicted.
size_t ExpectSound(const ModelConfig& config) {
  const SearchResult result = Explore(config);
  for (const auto& [finding, count] : result.counts) {
    ADD_FAILURE() << config.name << ": " << FindingName(finding) << " x " << count
                  << ", first: " << result.first.at(finding);
  }
  return result.evictions;
}

ModelConfig Three(const std::string& name) {
  ModelConfig config;
  config.name = name;
  config.pool = 6;
  config.clients = {Resident(0, 3, 4), Resident(1, 3, 4), Resident(2, 3, 4)};
  return config;
}

/// Each job may take all that the others' bases leave.
ModelConfig Tight(const std::string& name) {
  ModelConfig config;
  config.name = name;
  config.pool = 6;
  config.clients = {Resident(0, 4, 4), Resident(1, 4, 4), Resident(2, 4, 4)};
  return config;
}

TEST(SafetyModel, Tight) { ExpectSound(Tight("tight")); }

TEST(SafetyModel, TightLanesPieces) {
  ModelConfig config = Tight("tight, three lanes, pieces");
  config.policy.lanes = 3;
  config.deaths = 0;
  for (ClientModel& client : config.clients) client.piece = 2;
  ExpectSound(config);
}

TEST(SafetyModel, ThreeJobs) { ExpectSound(Three("three jobs")); }

TEST(SafetyModel, ThreeLanes) {
  ModelConfig config = Three("three lanes");
  config.policy.lanes = 3;
  ExpectSound(config);
}

TEST(SafetyModel, Temporal) {
  ModelConfig config = Three("temporal");
  config.policy.policy = "temporal";
  ExpectSound(config);
}

TEST(SafetyModel, SmallPieces) {
  ModelConfig config = Three("small pieces");
  for (ClientModel& client : config.clients) client.piece = 1;
  config.policy.lanes = 3;
  ExpectSound(config);
}

/// Where runs do not matter and nobody deviates, nothing ever has to be denied.
TEST(SafetyModel, NoDenialNeeded) {
  ModelConfig config = Tight("no denial needed");
  for (ClientModel& client : config.clients) client.piece = 1;
  config.deny_at_rest = false;
  ExpectSound(config);
}

/// One takes no turns where there is room for all, and goes on while another is measured.
TEST(SafetyModel, Collectives) {
  for (const Units limit : {Units{2}, Units{3}}) {
    ModelConfig config;
    config.name = limit == 2 ? "collectives, room for all" : "collectives";
    config.pool = 6;
    config.clients = {Resident(0, 2, 2), Resident(1, 2, limit), Resident(2, 2, limit)};
    config.clients[0].collective = true;
    config.clients[2].newcomer = true;
    config.policy.policy = "temporal";
    config.deaths = 0;
    config.ask_at_gate = false;
    ExpectSound(config);
  }
}

/// Two that take no turns, and a third that does.
TEST(SafetyModel, TwoCollectivesAndAnother) {
  for (const Units limit : {Units{2}, Units{3}}) {
    for (const bool newcomer : {false, true}) {
      ModelConfig config;
      config.name = std::string("two collectives") + (newcomer ? ", newcomer" : "") +
                    (limit == 2 ? ", room for all" : "");
      config.pool = 6;
      config.clients = {Resident(0, 2, 2), Resident(1, 2, 2), Resident(2, 2, limit)};
      config.clients[0].collective = config.clients[1].collective = true;
      config.clients[2].newcomer = newcomer;
      config.policy.policy = "temporal";
      config.deaths = 0;
      config.ask_at_gate = false;
      ExpectSound(config);
    }
  }
}

/// Where there is room for all a newcomer begins beside one that was to be measured alone.
TEST(SafetyModel, TwoNewcomersOneQuiet) {
  for (const Units limit : {Units{2}, Units{3}}) {
    ModelConfig config;
    config.name = limit == 2 ? "newcomers, room for all" : "newcomers";
    config.pool = 5;
    config.clients = {Resident(0, 2, limit), Resident(1, 2, limit)};
    for (ClientModel& client : config.clients) {
      client.newcomer = client.idles = client.collective = true;
    }
    config.deaths = 0;
    ExpectSound(config);
  }
}

/// Bases apart: the free units are no single run, contiguity binds.
TEST(SafetyModel, ContiguityBinds) {
  ModelConfig config;
  config.name = "contiguity binds";
  config.pool = 6;
  config.clients = {Resident(0, 3, 4), Resident(3, 3, 4)};
  config.policy.lanes = 2;
  ExpectSound(config);
}

TEST(SafetyModel, ContiguityBindsPieces) {
  ModelConfig config;
  config.name = "contiguity binds, pieces";
  config.pool = 6;
  config.clients = {Resident(0, 4, 5), Resident(2, 3, 5)};
  for (ClientModel& client : config.clients) client.piece = 2;
  ExpectSound(config);
}

TEST(SafetyModel, Grower) {
  ModelConfig config = Three("one grows");
  config.clients[2].grows = true;
  ExpectSound(config);
}

TEST(SafetyModel, GrowerIsEvicted) {
  ModelConfig config = Three("one grows and is evicted");
  config.clients[2].grows = config.clients[2].insured = true;
  EXPECT_GT(ExpectSound(config), 0u);
}

/// Blocks lie where they lay, whatever the others did meanwhile.
TEST(SafetyModel, TwoGrowersAreEvicted) {
  ModelConfig config = Tight("two grow and are evicted");
  config.clients.resize(2);
  config.clients[0] = Resident(0, 3, 5);
  config.clients[1] = Resident(1, 3, 5);
  for (ClientModel& client : config.clients) client.grows = client.insured = true;
  EXPECT_GT(ExpectSound(config), 0u);
}

/// Bases in host memory by turns.
ModelConfig ByTurns(const std::string& name, size_t jobs, uint32_t residents) {
  ModelConfig config;
  config.name = name;
  config.pool = static_cast<Units>(jobs) + 2;
  for (Units i = 0; i < jobs; ++i) config.clients.push_back(Resident(i, 3, 3));
  for (ClientModel& client : config.clients) client.swaps = true;
  config.policy.residents = residents;
  return config;
}

TEST(SafetyModel, TwoBasesGoByTurns) {
  EXPECT_GT(ExpectSound(ByTurns("two bases by turns", 2, 1)), 0u);
}

TEST(SafetyModel, ThreeBasesGoByTurns) {
  for (const uint32_t residents : {1u, 2u}) {
    ModelConfig config = ByTurns("three bases by turns", 3, residents);
    config.deaths = 0;
    config.ask_at_gate = false;
    for (ClientModel& client : config.clients) client.piece = 1;
    EXPECT_GT(ExpectSound(config), 0u);
  }
}

/// A newcomer begins when everybody is back, and what it keeps is in nobody's place.
TEST(SafetyModel, BasesByTurnsAndANewcomer) {
  ModelConfig config = ByTurns("bases by turns, newcomer", 3, 1);
  config.deaths = 0;
  config.ask_at_gate = false;
  for (ClientModel& client : config.clients) client.piece = 1;
  config.clients[2].newcomer = true;
  EXPECT_GT(ExpectSound(config), 0u);
}

/// One loses its profile, and may compute nothing then.
TEST(SafetyModel, BasesByTurnsAndOneThatLosesItsProfile) {
  ModelConfig config = ByTurns("bases by turns, mismatch", 2, 1);
  config.clients[0].mismatches = config.clients[0].idles = true;
  EXPECT_GT(ExpectSound(config), 0u);
}

/// One keeps another unit at its trough than before, which is the place of one that is away: they
/// are there by turns.
TEST(SafetyModel, BasesByTurnsAndADrifter) {
  ModelConfig config = ByTurns("bases by turns, drifter", 2, 1);
  config.deaths = 0;
  config.clients[0].drifts = true;
  for (ClientModel& client : config.clients) client.piece = 1;
  EXPECT_GT(ExpectSound(config), 0u);
}

/// One grows where the others' bases were, is evicted, and they come back to its place.
TEST(SafetyModel, BasesByTurnsAndAGrower) {
  ModelConfig config = ByTurns("bases by turns, grower", 2, 1);
  config.deaths = 0;
  config.clients[0].claim = 2;
  config.clients[0].grows = config.clients[0].insured = true;
  EXPECT_GT(ExpectSound(config), 0u);
}

/// Two jobs in a pool that holds one's limit beside the other's base.
ModelConfig OneIsEvicted(const std::string& name) {
  ModelConfig config;
  config.name = name;
  config.pool = 6;
  config.clients = {Resident(0, 3, 5), Resident(1, 3, 5)};
  config.clients[0].grows = config.clients[0].insured = true;
  config.deaths = 0;
  return config;
}

/// What brings a job back is that nobody keeps anything where it lay. A neighbour that leaves its
/// profile and keeps another unit at each trough can: for as long as it does there is no bound.
TEST(SafetyModel, WhoDriftsCanKeepAnEvictedJobAway) {
  ModelConfig config = OneIsEvicted("one grows, one drifts");
  config.clients[1].drifts = true;
  const SearchResult result = Explore(config);
  EXPECT_GT(result.evictions, 0u);
  EXPECT_EQ(result.counts.count(Finding::kKeptAway), 1u);
  EXPECT_EQ(result.counts.count(Finding::kInvariant), 0u);
}

/// But where it goes to host memory itself when it is in the way.
TEST(SafetyModel, WhoDriftsIsMovedOutOfTheWay) {
  ModelConfig config = OneIsEvicted("one grows, one drifts and is moved");
  config.clients[1].drifts = config.clients[1].swaps = true;
  for (ClientModel& client : config.clients) client.piece = 1;
  const SearchResult result = Explore(config);
  EXPECT_GT(result.evictions, 0u);
  EXPECT_EQ(result.counts.count(Finding::kKeptAway), 0u);
  EXPECT_EQ(result.counts.count(Finding::kNoWayOn), 0u);
  EXPECT_EQ(result.counts.count(Finding::kInvariant), 0u);
}

/// Doing as if there were less memory is a policy's matter: every promise holds as without.
TEST(SafetyModel, SoftBudget) {
  for (const Units budget : {2u, 4u}) {
    ModelConfig config = Three("soft budget of " + std::to_string(budget));
    config.policy.soft_budget = budget;
    config.policy.lanes = 3;
    config.deaths = 0;
    ExpectSound(config);
    config = OneIsEvicted("the same, one is evicted");
    config.policy.soft_budget = budget;
    EXPECT_GT(ExpectSound(config), 0u);
  }
}

TEST(SafetyModel, Newcomer) {
  ModelConfig config = Three("newcomer");
  config.clients[2].newcomer = true;
  ExpectSound(config);
}

/// The first job runs without pressure and comes to its trough with all it has; then others arrive.
TEST(SafetyModel, AloneAtFirst) {
  ModelConfig config;
  config.name = "alone at first";
  config.pool = 5;
  config.clients = {Resident(0, 3, 3), Resident(1, 2, 3), Resident(2, 2, 2)};
  config.clients[1].newcomer = config.clients[2].newcomer = true;
  config.deaths = 0;
  config.most_asked = 2;
  config.ask_at_gate = false;
  ExpectSound(config);
}

TEST(SafetyModel, Mismatch) {
  ModelConfig config = Three("mismatch");
  config.clients[2].mismatches = true;
  ExpectSound(config);
}

/// A job that keeps other units at its trough than before has broken the promise that others got in
/// runs. In number nothing is lost: where runs do not matter, nobody notices.
TEST(SafetyModel, DriftInNumbers) {
  ModelConfig config = Three("drift, small pieces");
  for (ClientModel& client : config.clients) client.piece = 1;
  config.clients[2].drifts = true;
  config.deaths = 0;
  ExpectSound(config);
}

/// Where runs matter, a conforming job may meet the hole that another one left. Nobody is stuck for
/// it.
TEST(SafetyModel, DriftInRuns) {
  ModelConfig config = Three("drift");
  config.clients.pop_back();
  config.clients[1].drifts = true;
  SearchResult result = Explore(config);
  result.counts.erase(Finding::kConformingDenied);
  EXPECT_TRUE(result.counts.empty());
}

/// The one case in which I3 in runs is not to be had: a gate opens on the number alone, for one job
/// at a time.
TEST(SafetyModel, BaseInTheMiddle) {
  ModelConfig config;
  config.name = "base in the middle";
  config.pool = 6;
  config.clients = {Resident(0, 5, 5), Resident(3, 5, 5)};
  const SearchResult result = Explore(config);
  EXPECT_TRUE(result.counts.empty());
  EXPECT_GT(result.sums_only, 0u);
}

/// The search drops a state that it has seen. That is right only if nothing tells the two apart.
TEST(SafetyModel, CopiesOfAStateBehaveAlike) {
  ModelConfig middle;
  middle.name = "copies, base in the middle";
  middle.pool = 6;
  middle.clients = {Resident(0, 5, 5), Resident(3, 5, 5)};
  middle.compare_copies = true;
  ExpectSound(middle);
  ModelConfig arrives = middle;
  arrives.name = "copies, a newcomer";
  arrives.pool = 5;
  arrives.clients = {Resident(0, 3, 4), Resident(1, 2, 3)};
  arrives.clients[1].newcomer = true;
  arrives.clients[0].grows = true;
  ExpectSound(arrives);
}

/// A dead job's child lives on for ever. Nobody gets its memory and everybody gets on all the same:
/// at its trough with what is there, or past its gate with a refusal.
TEST(SafetyModel, ADeadJobsChildStays) {
  ModelConfig config = Three("a child stays");
  config.holders_stay = true;
  ExpectSound(config);
  config = Tight("a child stays, tight, two deaths");
  config.holders_stay = true;
  config.deaths = 2;
  config.ask_at_gate = false;
  ExpectSound(config);
}

TEST(SafetyModel, ADeadJobsChildStaysBesideANewcomer) {
  ModelConfig config = Three("a child stays, newcomer");
  config.clients[2].newcomer = true;
  config.holders_stay = true;
  config.ask_at_gate = false;
  ExpectSound(config);
}

/// It computes nothing where it has no profile; the others go on beside it, and its claim holds.
TEST(SafetyModel, QuietWithoutAProfile) {
  ModelConfig config = Three("quiet newcomer");
  config.clients[2].newcomer = config.clients[2].idles = true;
  config.deaths = 0;
  config.ask_at_gate = false;
  ExpectSound(config);
  config = Three("quiet after a mismatch");
  config.clients[2].mismatches = config.clients[2].idles = true;
  config.deaths = 0;
  ExpectSound(config);
}

/// It comes to a standstill in its iteration, and what it was promised stays promised.
TEST(SafetyModel, QuietInItsIteration) {
  ModelConfig config = Three("quiet in its iteration");
  config.clients[1].idles = true;
  config.deaths = 0;
  ExpectSound(config);
}

TEST(SafetyModel, TwoDeaths) {
  ModelConfig config = Three("two deaths");
  config.deaths = 2;
  ExpectSound(config);
}

// seeded bugs: the same search, one rule switched off, has to notice

void ExpectCaught(const ModelConfig& config, const std::set<Finding>& expected) {
  const SearchResult result = Explore(config);
  for (const Finding finding : expected) {
    EXPECT_GT(result.counts.count(finding), 0u) << config.name << ": no " << FindingName(finding);
  }
}

TEST(SeededBug, UnfencedNotCounted) {
  ModelConfig config = Three("bug: unfenced not counted");
  config.deaths = 0;
  config.rules.count_unfenced = false;
  ExpectCaught(config, {Finding::kOverBudget});
}

TEST(SeededBug, GrantWheneverFree) {
  ModelConfig config = Tight("bug: grant whenever free");
  config.deaths = 0;
  config.rules.check_safety = false;
  ExpectCaught(config, {Finding::kUnsafe, Finding::kConformingDenied});
}

/// The same bug without the last resort: jobs wait for each other for ever. Shows that dead ends
/// are found.
TEST(SeededBug, GrantWheneverFreeDeadlocks) {
  ModelConfig config = Tight("bug: grant whenever free, no denials");
  config.rules.check_safety = false;
  config.deny_at_rest = false;
  config.deaths = 0;
  ExpectCaught(config, {Finding::kNoWayOn});
}

TEST(SeededBug, NoAdmission) {
  ModelConfig config;
  config.name = "I0 refuses the newcomer";
  config.pool = 6;
  config.clients = {Resident(0, 5, 5), Resident(1, 4, 4), Resident(2, 3, 3)};
  config.clients[2].newcomer = true;
  config.deaths = 0;
  config.ask_at_gate = false;
  ExpectSound(config);
  config.name = "bug: no I0";
  config.cut_claims = false;  // a smaller claim would hide that the promises do not fit
  config.rules.check_admission = false;
  ExpectCaught(config, {Finding::kConformingDenied});
}

TEST(SeededBug, RaiseWithoutSafety) {
  ModelConfig config = Three("raise of a job that keeps");
  config.clients[2].grows = true;
  config.clients[2].returns = false;  // what it gets beyond its claim does not come back by itself
  config.most_asked = 2;
  config.deaths = 0;
  ExpectSound(config);
  config.name = "bug: raise without I3";
  config.rules.check_raise = false;
  ExpectCaught(config, {Finding::kUnsafe});
}

/// Somebody waits for more memory, and the others take turns for ever.
TEST(SeededBug, OvertakenWithoutBound) {
  ModelConfig config = Three("overtaken at most four times");
  config.clients[2].grows = true;
  config.deaths = 0;
  ExpectSound(config);
  config.name = "bug: overtaken without bound";
  config.policy.max_overtakes = 1'000'000;
  ExpectCaught(config, {Finding::kOvertaken});
}

TEST(SeededBug, MeasuredInCompany) {
  ModelConfig config = Three("bug: measured in company");
  config.clients[2].newcomer = true;
  config.deaths = 0;
  config.rules.measure_alone = false;
  ExpectCaught(config, {Finding::kNotAlone});
}

/// Nobody notices that a dead job's child lives on: whoever waits for its memory waits for ever.
TEST(SeededBug, TheDeadAreWaitedFor) {
  ModelConfig config = Three("bug: the dead are waited for");
  config.holders_stay = true;
  config.notices_holders = false;
  ExpectCaught(config, {Finding::kNoWayOn});
}

/// Fenced units that become free at once, wherever they lie: the job's remaining claim grows, the
/// run that it was promised does not.
TEST(SeededBug, SpareNotKept) {
  ModelConfig config = Tight("bug: spare not kept");
  config.deaths = 0;
  config.rules.keep_spare = false;
  ExpectCaught(config, {Finding::kUnsafe});
}

}  // namespace
}  // namespace sluice::scheduler::model
