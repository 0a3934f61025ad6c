// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/model/world.h"

#include <algorithm>

#include "scheduler/ledger/limits.h"
#include "scheduler/safety/safety.h"

namespace sluice::scheduler::model {

namespace {

constexpr ReleaseId kRelease = 1;  // one release per client is in flight at a time

ClientState Left(Stage stage) {
  ClientState client;
  client.stage = stage;
  return client;
}

JobId IdOf(size_t client) { return static_cast<JobId>(client + 1); }

/// Collects the actions that lead out of one world.
class Actions {
 public:
  Actions(const ModelConfig& config, const World& world) : config_(config), world_(world) {}

  std::vector<Step> All() {
    for (size_t i = 0; i < config_.clients.size(); ++i) OfClient(i);
    return std::move(steps_);
  }

 private:
  void OfClient(size_t i) {
    const ClientState& client = world_.clients[i];
    const JobId id = IdOf(i);
    switch (client.stage) {
      case Stage::kGone:
        return;
      case Stage::kAbsent:
        Arrive(i);
        return;
      case Stage::kDying: {
        LiveOn(i);
        Step step = Begin(i, "last holder gone");
        step.helps = !config_.holders_stay;
        Must(step, step.world.ledger.LastHolderGone(id));
        step.world.clients[i] = Left(Stage::kGone);
        End(std::move(step));
        return;
      }
      case Stage::kLiving:
        break;
    }
    if (!client.on_gpu.empty()) Fence(i);
    if (world_.deaths < config_.deaths) DieNow(i);
    Copied(i);
    SliceEnds(i);
    if (world_.Waits(id)) return;  // blocked: it frees nothing
    const Job& job = *world_.ledger.Find(id);
    if (config_.clients[i].idles && job.past_gate()) TurnQuiet(i, !job.quiet);
    if (job.phase == Phase::kParked) AskGate(i);
    if (!job.past_gate()) return;
    AskLease(i, job);
    ReleaseOne(i, job);
    Trough(i, job, false);
    if (job.phase == Phase::kRunning && !job.terms.returns) Undrained(i);
    if (config_.clients[i].drifts) Trough(i, job, true);
    if (config_.clients[i].mismatches && job.phase == Phase::kRunning && !client.deviated)
      Mismatch(i);
  }

  void Arrive(size_t i) {
    const ClientModel& model = config_.clients[i];
    Step step = Begin(i, "arrives");
    if (!step.world.ledger
             .Admit(IdOf(i), std::string(1, static_cast<char>('a' + i)), model.request, model.limit)
             .ok()) {
      step.world.clients[i].stage = Stage::kGone;  // refused, and told so
    } else {
      step.world.clients[i].stage = Stage::kLiving;
      if (model.collective) Must(step, step.world.ledger.SetCollective(IdOf(i)));
      Ask(&step.world, i, RequestKind::kNewcomer, 0, 0);
    }
    End(std::move(step));
  }

  void Fence(size_t i) {
    Step step = Begin(i, "fence reached");
    Must(step, step.world.ledger.Fenced(IdOf(i), kRelease));
    step.world.clients[i].on_gpu.clear();
    End(std::move(step));
  }

  void DieNow(size_t i) {
    Step step = Begin(i, "dies");
    Must(step, step.world.ledger.Die(IdOf(i)));
    std::erase_if(step.world.waiting, [id = IdOf(i)](const Request& r) { return r.job == id; });
    step.world.clients[i] = Left(Stage::kDying);
    ++step.world.deaths;
    step.helps = false;
    End(std::move(step));
  }

  /// It stands still, and what it has is in host memory.
  void Copied(size_t i) {
    for (size_t k = 0; k < world_.waiting.size(); ++k) {
      if (world_.waiting[k].job != IdOf(i) || !world_.clients[i].on_gpu.empty() ||
          world_.waiting[k].insurance != Insurance::kLeaving)
        continue;
      Step step = Begin(i, "is copied");
      Must(step, step.world.ledger.Evict(IdOf(i)));
      const bool by_turns = step.world.waiting[k].kind == RequestKind::kGate0;
      step.world.waiting[k].kind = by_turns ? RequestKind::kSwapIn : RequestKind::kBringBack;
      step.world.waiting[k].insurance = Insurance::kNone;
      End(std::move(step));
    }
  }

  void SliceEnds(size_t i) {
    for (size_t k = 0; k < world_.waiting.size(); ++k) {
      const Request& request = world_.waiting[k];
      if (request.job != IdOf(i) || request.kind != RequestKind::kSwapIn || request.due) continue;
      Step step = Begin(i, "has been away for its slice");
      step.world.waiting[k].due = true;
      End(std::move(step));
    }
  }

  /// The clock goes on beside a dead client's last holder.
  void LiveOn(size_t i) {
    const Linger linger = world_.ledger.Find(IdOf(i))->linger;
    if (!config_.holders_stay || !config_.notices_holders || linger == Linger::kForGood) return;
    const bool first = linger == Linger::kNot;
    Step step = Begin(i, first ? "has a child that lives on" : "has a child that stays");
    Must(step, step.world.ledger.SetLinger(IdOf(i), first ? Linger::kAWhile : Linger::kForGood));
    End(std::move(step));
  }

  void TurnQuiet(size_t i, bool quiet) {
    Step step = Begin(i, quiet ? "is quiet" : "computes again");
    Must(step, step.world.ledger.SetQuiet(IdOf(i), quiet));
    End(std::move(step));
  }

  void AskGate(size_t i) {
    const Units room =
        config_.clients[i].claim - std::min(config_.clients[i].claim, world_.ledger.held(IdOf(i)));
    for (Units units = 0; units <= std::min(room, config_.ask_at_gate ? 1u : 0u); ++units) {
      Step step = Begin(i, "asks for gate 0 with " + std::to_string(units));
      Ask(&step.world, i, RequestKind::kGate0, units, units);
      End(std::move(step));
    }
  }

  void AskLease(size_t i, const Job& job) {
    const ClientModel& model = config_.clients[i];
    const Units bound = model.grows ? job.limit : job.terms.claim;
    const Units knows = job.leased + job.unfenced;
    if (knows >= bound) return;
    for (Units units = 1; units <= std::min(bound - knows, config_.most_asked); ++units) {
      const Units longest = std::min(units, job.terms.piece);
      for (const Units contiguous : {Units{1}, longest}) {
        Step step = Begin(i, "asks for " + std::to_string(units) + " with a run of " +
                                 std::to_string(contiguous));
        Ask(&step.world, i, RequestKind::kLease, units, contiguous);
        if (knows + units > job.terms.claim) step.world.clients[i].deviated = true;
        End(std::move(step));
        if (longest == 1) break;
      }
    }
  }

  void ReleaseOne(size_t i, const Job& job) {
    if (!world_.clients[i].on_gpu.empty()) return;
    const Extents loose = Subtract(world_.ledger.map().Held(job.id, UnitState::kLeased), job.base);
    for (const Extent& extent : loose) {
      for (Units unit = extent.offset; unit < extent.end(); ++unit) {
        Step step = Begin(i, "releases unit " + std::to_string(unit));
        GiveBack(&step, i, {{unit, 1}});
        End(std::move(step));
      }
    }
  }

  /// Drained: it keeps as much as it requested, in units where it has had its base before; the rest
  /// is released and fenced in one go. A client that drifts keeps its lowest transient unit instead
  /// of one of those.
  void Trough(size_t i, const Job& job, bool drift) {
    const Extents leased = world_.ledger.map().Held(job.id, UnitState::kLeased);
    const Units request = config_.clients[i].request;
    // At a newcomer's first trough that is the lowest it holds.
    Extents keep =
        First(world_.clients[i].measured ? Intersect(leased, job.base) : leased, request);
    if (drift) {
      const Extents loose = First(Subtract(leased, job.base), 1);
      if (loose.empty() || keep.empty()) return;
      keep = Union(First(keep, request - 1), loose);
    }
    Step step = Begin(i, drift ? "is at its trough, drifted" : "is at its trough");
    if (!world_.clients[i].on_gpu.empty()) {
      Must(step, step.world.ledger.Fenced(IdOf(i), kRelease));
      step.world.clients[i].on_gpu.clear();
    }
    const Extents rest = Subtract(leased, keep);
    if (!rest.empty()) {
      GiveBack(&step, i, rest);
      Must(step, step.world.ledger.Fenced(IdOf(i), kRelease));
      step.world.clients[i].on_gpu.clear();
    }
    Must(step, step.world.ledger.ReachTrough(IdOf(i), true));
    ClientState& client = step.world.clients[i];
    client.sums_only = client.deviated = false;
    client.measured = true;
    client.released.clear();
    if (drift) step.world.promises_broken = true;
    End(std::move(step));
  }

  /// Nobody pressed it when its gate opened: it comes with all it has.
  void Undrained(size_t i) {
    Step step = Begin(i, "is at its trough, not drained");
    Must(step, step.world.ledger.ReachTrough(IdOf(i), false));
    ClientState& client = step.world.clients[i];
    client.sums_only = client.deviated = false;
    client.released.clear();
    End(std::move(step));
  }

  void Mismatch(size_t i) {
    Step step = Begin(i, "loses its profile");
    Must(step, step.world.ledger.LoseProfile(IdOf(i)));
    step.world.clients[i].deviated = true;
    step.world.promises_broken = true;
    End(std::move(step));
  }

  // the parts of an action

  Step Begin(size_t i, const std::string& what) {
    return Step{world_, std::string(1, static_cast<char>('a' + i)) + " " + what, true, {}};
  }

  void Ask(World* world, size_t i, RequestKind kind, Units units, Units contiguous) {
    Request request;
    request.job = IdOf(i);
    request.kind = kind;
    request.units = units;
    request.contiguous = contiguous;
    request.piece = config_.clients[i].piece;
    request.ticket = world->waiting.size();
    const bool past = kind == RequestKind::kLease;
    // Who asks has moved; without a profile that is no sign that it computes.
    const Job* job = world->ledger.Find(request.job);
    if (job->quiet && job->phase == Phase::kRunning) {
      (void)world->ledger.SetQuiet(request.job, false).ok();
    }
    if (past && config_.clients[i].insured) request.insurance = Insurance::kEvictable;
    world->waiting.push_back(request);
  }

  void GiveBack(Step* step, size_t i, const Extents& extents) {
    Must(*step, step->world.ledger.Release(IdOf(i), extents, kRelease));
    ClientState& client = step->world.clients[i];
    client.on_gpu = extents;
    client.released = Union(client.released, extents);
  }

  static Extents First(const Extents& extents, Units units) {
    Extents result;
    for (const Extent& extent : extents) {
      const Units take = std::min(units, extent.length);
      if (take > 0) result.push_back({extent.offset, take});
      units -= take;
    }
    return result;
  }

  void Must(Step& step, const Status& status) {
    if (!status.ok())
      step.findings.emplace_back(Finding::kInvariant, "refused: " + status.message());
  }

  /// As the daemon does before each decision: what a gate opens with is what holds when it opens.
  void UpdateTerms(World* world) {
    for (Request& request : world->waiting) {
      const Job* job = world->ledger.Find(request.job);
      if (job == nullptr || (request.kind != RequestKind::kGate0 && job->away.empty())) continue;
      const ClientModel& model = config_.clients[request.job - 1];
      request.returns = model.returns && PressureOn(world->ledger, request.job, false);
      if (!job->away.empty()) continue;
      if (request.insurance != Insurance::kLeaving && model.swaps) {
        const bool at_rest = job->phase == Phase::kParked && job->leased > 0 && job->unfenced == 0;
        if (job->phase == Phase::kParked) (void)world->ledger.SetStays(request.job, !at_rest).ok();
        request.insurance = at_rest ? Insurance::kEvictable : Insurance::kNone;
      }
      request.claim = model.claim;
      if (!config_.cut_claims) continue;
      const Units most = std::min(job->limit, LargestClaim(world->ledger, request.job));
      request.claim = std::max(std::min(model.claim, most), job->held());
    }
  }

  /// The policy decides all it can, then the state is judged and kept.
  void End(Step step) {
    World& world = step.world;
    UpdateTerms(&world);
    while (const auto decision = Next(world.ledger, world.waiting, config_.policy)) {
      if (!config_.deny_at_rest && decision->kind == Decision::Kind::kDeny &&
          decision->code != DenyCode::kOverLimit)
        break;
      step.label += Decided(&step, *decision);
      UpdateTerms(&world);
    }
    std::sort(world.waiting.begin(), world.waiting.end(),
              [](const Request& a, const Request& b) { return a.ticket < b.ticket; });
    for (size_t i = 0; i < world.waiting.size(); ++i) {
      Request& request = world.waiting[i];
      request.ticket = i;
      // One more than is allowed has been found already: the number must not grow for ever.
      request.overtaken = std::min(request.overtaken, config_.overtakes);
    }
    Judge(&step);
    steps_.push_back(std::move(step));
  }

  std::string Decided(Step* step, const Decision& decision) {
    World& world = step->world;
    const size_t i = decision.job - 1;
    ClientState& client = world.clients[i];
    const std::string who(1, static_cast<char>('a' + i));
    if (decision.kind == Decision::Kind::kEvict) {
      ++step->evictions;
      if (!client.deviated && world.waiting[decision.request].kind != RequestKind::kGate0)
        step->findings.emplace_back(Finding::kConformingDenied, who + " is evicted in its claim");
      world.waiting[decision.request].insurance = Insurance::kLeaving;
      return "; " + who + " is to leave";
    }
    if (decision.kind == Decision::Kind::kDeny) {
      ++step->denials;
      const Request request = world.waiting[decision.request];
      world.waiting.erase(world.waiting.begin() + static_cast<std::ptrdiff_t>(decision.request));
      const Job& job = *world.ledger.Find(decision.job);
      const bool past = request.kind == RequestKind::kLease;
      // What it was promised: so many units, in such runs. More needs a raise or meets its own
      // fragmentation.
      const bool promised = !past || (request.units + job.held() <= job.terms.claim &&
                                      request.contiguous <= job.terms.piece);
      // Whoever is past its gate may have been promised what a dead job's child keeps for good, and
      // the limit of a newcomer may not fit beside that. For a gate 0 there is always a claim.
      const bool beside_the_dead = request.kind != RequestKind::kGate0 && KeptForGood(world);
      if (promised && !client.deviated && !client.sums_only && !beside_the_dead) {
        step->findings.emplace_back(Finding::kConformingDenied, decision.reason);
      }
      if (past) return "; " + who + " is denied";  // the program lives with it or dies later
      Must(*step, world.ledger.Die(decision.job));
      client = Left(Stage::kDying);
      return "; " + who + " is refused";
    }
    JudgeOpening(step, decision);
    CountOvertaken(decision, &world.waiting);
    Must(*step, Apply(decision, world.waiting, &world.ledger));
    if (decision.kind == Decision::Kind::kReclaim) return "; " + who + "'s spare is freed";
    if (decision.sums_only) {
      client.sums_only = true;
      ++step->sums_only;
    }
    for (size_t other = 0; other < world.clients.size(); ++other) {
      if (other == i) continue;
      ClientState& lender = world.clients[other];
      const Extents taken = Intersect(lender.released, decision.extents);
      if (!taken.empty()) ++step->lent;
      lender.released = Subtract(lender.released, taken);
    }
    if (world.waiting[decision.request].kind == RequestKind::kBringBack) {
      world.waiting[decision.request].kind = RequestKind::kLease;
      return "; " + who + " is back";
    }
    if (Request& back = world.waiting[decision.request]; back.kind == RequestKind::kSwapIn) {
      back.kind = RequestKind::kGate0;
      back.due = false;
      back.overtaken = 0;
      return "; " + who + "'s base is back";
    }
    world.waiting.erase(world.waiting.begin() + static_cast<std::ptrdiff_t>(decision.request));
    return "; " + who + " is granted";
  }

  static bool KeptForGood(const World& world) {
    return std::any_of(world.ledger.jobs().begin(), world.ledger.jobs().end(),
                       [](const Job& job) { return job.linger == Linger::kForGood; });
  }

  /// Something comes back without a decision. In the model's own words: the policy has its own.
  bool Moves(const World& world) const {
    for (size_t i = 0; i < world.clients.size(); ++i) {
      const ClientState& client = world.clients[i];
      if (!client.on_gpu.empty() || world.Leaves(IdOf(i))) return true;
      if (client.stage != Stage::kLiving && client.stage != Stage::kDying) continue;
      const Job& job = *world.ledger.Find(IdOf(i));
      if (client.stage == Stage::kDying && job.linger == Linger::kNot) return true;
      if (client.stage == Stage::kDying || world.Waits(IdOf(i))) continue;
      if ((job.past_gate() && !job.quiet) ||
          (job.phase == Phase::kParked && !job.drained && !world.ledger.map().Held(job.id).empty()))
        return true;
    }
    return false;
  }

  /// Whether all who have begun, this one, and the newcomers that were overtaken often enough may
  /// hold their limits side by side.
  bool RoomForAll(const World& world, JobId begins) const {
    uint64_t limits = 0;
    for (const Job& job : world.ledger.jobs()) {
      const bool overdue =
          std::any_of(world.waiting.begin(), world.waiting.end(), [&](const Request& request) {
            return request.job == job.id && request.overtaken >= config_.overtakes;
          });
      if (job.phase == Phase::kWaiting && job.id != begins && !overdue) continue;
      limits += job.phase == Phase::kDying ? job.held() : job.limit;
    }
    return limits <= world.ledger.pool_units();
  }

  /// I6 and I7 bind the decision that opens a gate: nothing that a job does can break them.
  void JudgeOpening(Step* step, const Decision& decision) {
    const World& world = step->world;
    if (decision.kind != Decision::Kind::kGrant) return;
    const Request& opened = world.waiting[decision.request];
    const bool past_gate = opened.kind == RequestKind::kGate || opened.kind == RequestKind::kLease;
    if (past_gate || opened.kind == RequestKind::kSwapIn) return;
    if (opened.kind != RequestKind::kBringBack) step->begins = true;
    const bool room = RoomForAll(world, opened.job);
    const bool takes_no_turn =
        opened.kind == RequestKind::kGate0 && room && world.ledger.Find(opened.job)->collective;
    for (const Job& other : world.ledger.jobs()) {
      // Nothing is measured while it computes nothing.
      const bool goes_on = opened.kind == RequestKind::kGate0 ||
                           (opened.kind == RequestKind::kNewcomer && room && other.collective);
      const bool passes = takes_no_turn || (other.quiet && goes_on && !world.Waits(other.id));
      if (other.id != opened.job && other.phase == Phase::kUnprofiled && !other.settled &&
          !passes) {
        step->findings.emplace_back(Finding::kNotAlone,
                                    "a gate opens while " + other.Title() + " is measured");
      }
    }
    // Where nothing moves, whoever can go on does: otherwise nobody would.
    if (!Moves(world)) return;
    for (const Request& other : world.waiting) {
      // Who wants to begin, too, finds room beside it.
      const bool inside = other.kind == RequestKind::kGate || other.kind == RequestKind::kLease;
      if (takes_no_turn && !inside) continue;
      const bool waits_long =
          other.kind == RequestKind::kSwapIn ? other.due : other.overtaken >= config_.overtakes;
      if (other.ticket < opened.ticket && waits_long) {
        step->findings.emplace_back(Finding::kOvertaken,
                                    "job " + std::to_string(other.job) + " is passed once more");
      }
    }
  }

  void Judge(Step* step) {
    const World& world = step->world;
    for (const Job& job : world.ledger.jobs()) {
      if (job.phase == Phase::kParked && job.drained && job.held() > job.request)
        step->findings.emplace_back(Finding::kInvariant, "I2: " + job.Title() + " keeps too much");
      // No step both ends an iteration and begins one. That a raise is safe is I3's matter.
      const Job* before = world_.ledger.Find(job.id);
      if (before != nullptr && before->phase == Phase::kRunning && job.past_gate() &&
          job.terms.claim < before->terms.claim)
        step->findings.emplace_back(Finding::kInvariant,
                                    "I5: the claim of " + job.Title() + " fell");
    }
    const Status status = world.ledger.CheckInvariants();
    if (!status.ok()) step->findings.emplace_back(Finding::kInvariant, status.message());
    bool sums_only = false;
    for (size_t i = 0; i < world.clients.size(); ++i) {
      sums_only |= world.clients[i].sums_only;
      for (size_t other = 0; other < world.clients.size(); ++other) {
        if (other == i) continue;
        if (!Intersect(world.clients[i].on_gpu, world.ledger.map().Held(IdOf(other))).empty()) {
          step->findings.emplace_back(Finding::kOverBudget, "two jobs use one unit");
        }
      }
    }
    if (!world.promises_broken &&
        !IsSafe(world.ledger, sums_only ? Measure::kSums : Measure::kExtents)) {
      step->findings.emplace_back(Finding::kUnsafe, "no order completes everybody");
    }
  }

  const ModelConfig& config_;
  const World& world_;
  std::vector<Step> steps_;
};

}  // namespace

World::World(const ModelConfig& config) : ledger(config.pool, 1, config.rules) {
  clients.resize(config.clients.size());
  for (size_t i = 0; i < clients.size(); ++i) {
    const ClientModel& model = config.clients[i];
    if (model.newcomer) continue;
    Status status = ledger.Admit(IdOf(i), std::string(1, static_cast<char>('a' + i)), model.request,
                                 model.limit);
    if (status.ok() && model.collective) status = ledger.SetCollective(IdOf(i));
    if (status.ok()) status = ledger.StartUnprofiled(IdOf(i));
    if (status.ok() && !model.base.empty()) status = ledger.Grant(IdOf(i), model.base);
    if (status.ok()) status = ledger.ReachTrough(IdOf(i), true);
    if (!status.ok()) continue;
    clients[i].stage = Stage::kLiving;
    clients[i].measured = true;
  }
}

bool World::Waits(JobId job) const {
  return std::any_of(waiting.begin(), waiting.end(),
                     [job](const Request& r) { return r.job == job; });
}

bool World::Leaves(JobId job) const {
  return std::any_of(waiting.begin(), waiting.end(), [job](const Request& r) {
    return r.job == job && r.insurance == Insurance::kLeaving;
  });
}

bool World::IsDue(const Job& job) const {
  if (job.away_from != Phase::kParked) return true;
  return std::any_of(waiting.begin(), waiting.end(),
                     [&job](const Request& r) { return r.job == job.id && r.due; });
}

std::string World::Key() const {
  std::string key;
  auto put = [&key](Units value) { key.push_back(static_cast<char>(value & 0xff)); };
  auto put_extents = [&put](const Extents& extents) {
    put(static_cast<Units>(extents.size()));
    for (const Extent& extent : extents) {
      put(extent.offset);
      put(extent.length);
    }
  };
  for (const Span& span : ledger.map().spans()) {
    put(span.length);
    put(static_cast<Units>(span.state));
    put(span.holder);
  }
  put(0xfe);
  for (const Job& job : ledger.jobs()) {
    put(job.id);
    put(static_cast<Units>(job.phase));
    const bool terms = job.past_gate() || job.phase == Phase::kEvicted;
    put(terms ? job.terms.claim : 0);
    put(terms ? static_cast<Units>(job.terms.end) : 0);
    put(terms ? std::min<Units>(job.terms.piece, 0xff) : 0);
    put_extents(job.away);
    put(static_cast<Units>(job.away_from));
    // Only who came back before whom counts.
    put(static_cast<Units>(
            std::count_if(ledger.jobs().begin(), ledger.jobs().end(),
                          [&job](const Job& other) { return other.came_back < job.came_back; })) |
        (job.fresh ? 16u : 0u) | (job.stays ? 32u : 0u));
    put((job.drained ? 1u : 0u) | (job.past_gate() && job.terms.returns ? 2u : 0u) |
        (job.settled ? 4u : 0u) | (job.quiet ? 8u : 0u) | (static_cast<Units>(job.linger) << 4));
    put_extents(job.base);
    put_extents(job.last_trough);
  }
  put(0xfd);
  for (const ClientState& client : clients) {
    put(static_cast<Units>(client.stage) | (client.sums_only ? 8u : 0u) |
        (client.deviated ? 16u : 0u) | (client.measured ? 32u : 0u));
    put_extents(client.on_gpu);
  }
  for (const Request& request : waiting) {
    put(request.job);
    put(static_cast<Units>(request.kind));
    put(request.units);
    put(request.contiguous);
    put(request.claim);
    put(std::min<Units>(request.piece, 0xff));
    put((request.returns ? 1u : 0u) | (static_cast<Units>(request.insurance) << 1) |
        (request.due ? 8u : 0u));
    put(request.overtaken);  // and its ticket is its place in the list
  }
  put(static_cast<Units>(deaths) | (promises_broken ? 16u : 0u));
  return key;
}

std::vector<Step> NextSteps(const ModelConfig& config, const World& world) {
  return Actions(config, world).All();
}

bool GotOn(const World& world, JobId job) {
  if (world.clients[job - 1].stage != Stage::kLiving) return true;
  const Job* known = world.ledger.Find(job);
  return known != nullptr && known->phase == Phase::kParked && !world.Waits(job);
}

}  // namespace sluice::scheduler::model
