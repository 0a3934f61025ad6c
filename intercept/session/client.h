// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "intercept/base/lock.h"
#include "intercept/blocks/arena.h"
#include "intercept/blocks/owners.h"
#include "intercept/gate/credit.h"
#include "intercept/gate/gate_memory.h"
#include "intercept/gate/matcher.h"
#include "intercept/gate/standstill.h"
#include "intercept/lookup/driver_table.h"
#include "intercept/outside/holdings.h"
#include "intercept/session/client_settings.h"
#include "intercept/session/context_scope.h"
#include "intercept/session/job_report.h"
#include "intercept/session/open_releases.h"
#include "intercept/session/session.h"
#include "intercept/streams/open_captures.h"
#include "intercept/streams/stream_table.h"

namespace sluice {

struct KnownStream;

/// What the hooks ask: one per process. Serves the application's memory calls from the arena,
/// follows its launches, and speaks with the daemon.
///
/// Locks, in the order in which they may be taken:
///   settle_lock_   what is charged for driver pools follows what the driver reports of them
///   pools_lock_    no pool is destroyed while it is asked for its figures
///   request_lock_  one request to the daemon at a time; the only one held while waiting for it
///   contexts_lock_ no context ends while all are waited for, or another one ends; held while the
///                  GPU is waited for
///   send_lock_     keeps "took units out of the arena" and "told the daemon" in one order
///   mark_locks_    one per stream slot, over the queueing of a mark: its marks enter in order.
///                  A stream enters a capture under its own
///   state_lock_    arena, streams, records, matcher, credit; tens of nanoseconds, no driver call
///   outside_lock_  what the program holds outside the arena; like the state lock, inside it: no
///                  driver call, either
/// Frees and queries take the last two only (frees: a mark is queued without waiting for another
/// thread that queues one), waits for events beside a capture the mark lock of their stream.
/// cuMemFree beside other contexts waits for those, too, under contexts_lock_.
class Client {
 public:
  constexpr Client() = default;

  using Settings = ClientSettings;
  /// `socket_path` outlives the client. Empty: nobody granted this process anything, so it gets no
  /// memory.
  void Configure(const DriverTable* driver, const char* socket_path, const Settings& settings);
  /// False: every hook passes its call to the driver and does nothing else.
  bool engaged() const {
    const State state = state_.load(std::memory_order_acquire);
    return state != State::kOff && state != State::kForked && state != State::kAside;
  }
  /// The GPU is the job's alone, as the daemon says to a process that shows itself.
  bool LeftAlone() {
    if (!has_session()) ShowPresence();
    return !engaged();
  }
  bool has_session() const {
    const State state = state_.load(std::memory_order_acquire);
    return state == State::kReady || state == State::kAway || state == State::kLost;
  }
  void AfterForkInChild();
  const DriverTable& driver() const { return *driver_; }
  /// What the daemon tells of this job, session or not.
  JobReport& report() { return report_; }
  /// Says once to the daemon that this process, which has a context now, has the library.
  void ShowPresence();

  // Memory. Streams are normalised: never null.
  CUresult Alloc(CUdeviceptr* out, size_t bytes);
  CUresult AllocPitch(CUdeviceptr* out, size_t* pitch, size_t width, size_t height,
                      unsigned element_bytes);
  CUresult AllocAsync(CUdeviceptr* out, size_t bytes, CUstream stream);
  CUresult AllocFromPool(CUdeviceptr* out, size_t bytes, CUmemoryPool pool, CUstream stream);
  CUresult Free(CUdeviceptr address);
  CUresult FreeAsync(CUdeviceptr address, CUstream stream);

  // Memory outside the pool: charged before the driver is asked (`issue`), given up when it has it
  // back. Counted: nobody is charged.
  template <class Key, class Issue>
  CUresult AllocOutside(protocol::Family family, Thing thing, const Key* key, uint64_t bytes,
                        Issue issue);
  template <class Key, class Issue>
  CUresult AllocCounted(protocol::Family family, Thing thing, const Key* key, uint64_t bytes,
                        Issue issue);
  template <class Key, class Issue>
  CUresult FreeOutside(Thing thing, Key key, Issue issue);
  CUresult AllocManaged(CUdeviceptr* out, size_t bytes, unsigned flags);
  /// The program was given a driver function that the library does not know. Takes no lock.
  void CountUnseen(bool new_name);
  /// Memory of another process, whose size the driver tells afterwards.
  template <class Issue>
  CUresult OpenForeign(CUdeviceptr* out, Issue issue) {
    const CUresult result = issue();
    if (result == CUDA_SUCCESS) KeepForeign(*out);
    return result;
  }

  // Physical memory of the program's own, and where it is mapped.
  CUresult CreatePhysical(CUmemGenericAllocationHandle* handle, size_t bytes,
                          const CUmemAllocationProp* prop, unsigned long long flags);
  CUresult ImportPhysical(CUmemGenericAllocationHandle* handle, void* os_handle,
                          CUmemAllocationHandleType type);
  CUresult RetainPhysical(CUmemGenericAllocationHandle* handle, void* address);
  CUresult ReleasePhysical(CUmemGenericAllocationHandle handle);
  CUresult MapPhysical(CUdeviceptr address, size_t bytes, size_t offset,
                       CUmemGenericAllocationHandle handle, unsigned long long flags);
  CUresult UnmapPhysical(CUdeviceptr address, size_t bytes);
  CUresult ExportPhysical(void* shareable, CUmemGenericAllocationHandle handle,
                          CUmemAllocationHandleType type, unsigned long long flags);
  CUresult PhysicalProperties(CUmemAllocationProp* prop, CUmemGenericAllocationHandle handle);
  /// CUDA_SUCCESS: the driver may be asked.
  CUresult BindMulticast(CUmemGenericAllocationHandle handle);
  CUresult ShareRange(CUdeviceptr address, size_t bytes);

  // Physical memory behind parts of sparse arrays.
  template <class Issue>
  CUresult MapArrays(const CUarrayMapInfo* parts, unsigned count, Issue issue) {
    if (const CUresult refused = CheckTiles(parts, count); refused != CUDA_SUCCESS) return refused;
    const CUresult result = issue();
    if (result == CUDA_SUCCESS) KeepTiles(parts, count);
    return result;
  }
  template <class Key, class Issue>
  CUresult DestroyArray(Key array, Issue issue) {
    // Before the driver may give the handle to somebody else.
    NameTiles(KeyOf(array), KeyOf(array) | kEnding);
    const CUresult result = FreeOutside(Thing::kArray, array, issue);
    if (result == CUDA_SUCCESS) {
      DropTiles(KeyOf(array) | kEnding, 0);
    } else {
      NameTiles(KeyOf(array) | kEnding, KeyOf(array));
    }
    return result;
  }

  // Memory pools.
  CUresult PoolCreate(CUmemoryPool* pool, const CUmemPoolProps* props);
  CUresult PoolImportPointer(CUdeviceptr* out, CUmemoryPool pool, CUmemPoolPtrExportData* data);
  CUresult PoolDestroy(CUmemoryPool pool);
  template <class Issue>
  CUresult PoolSelect(CUdevice device, CUmemoryPool pool, Issue issue) {
    const CUresult result = issue();
    if (result == CUDA_SUCCESS && device == selected_device_.load(std::memory_order_relaxed)) {
      selected_pool_.store(pool, std::memory_order_relaxed);
    }
    return result;
  }

  CUresult PoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count);

  // Reports.
  CUresult MemGetInfo(size_t* free_bytes, size_t* total_bytes);
  CUresult DeviceTotalMem(size_t* bytes, CUdevice device);
  CUresult PoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value);
  CUresult PoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value);
  CUresult PoolTrimTo(CUmemoryPool pool, size_t keep_bytes);
  CUresult AddressRange(CUdeviceptr* base, size_t* bytes, CUdeviceptr address);
  CUresult PointerAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address);
  CUresult PointerAttributes(unsigned count, CUpointer_attribute* attributes, void** values,
                             CUdeviceptr address);
  CUresult IpcHandle(CUipcMemHandle* handle, CUdeviceptr address);

  // Streams and contexts.
  CUresult StreamDestroy(CUstream stream);
  CUresult StreamSynchronize(CUstream stream);
  CUresult ContextSynchronize(CUcontext which);
  CUresult EventSynchronize(CUevent event);
  template <class Issue>
  CUresult ContextCreate(CUcontext* out, Issue issue) {
    const bool charged = has_session();
    if (charged) {
      const CUresult result = ChargeInSession(protocol::Family::kContext, 1);
      if (result != CUDA_SUCCESS) return result;
    }
    const CUresult result = issue();
    if (result == CUDA_SUCCESS) {
      KeepContext(*out, charged);
      ShowPresence();
    } else if (charged) {
      Uncharge(protocol::Family::kContext, 1);
    }
    return result;
  }
  CUresult PrimaryContextRetain(CUcontext* out, CUdevice device);
  CUresult ContextDestroy(CUcontext context);
  CUresult ContextAttach(CUcontext* out, unsigned flags);
  CUresult ContextDetach(CUcontext context);
  CUresult PrimaryContextReset(CUdevice device);
  CUresult PrimaryContextRelease(CUdevice device) { return ReleasePrimary(device, nullptr); }
  CUresult GreenCreate(CUgreenCtx* out, CUdevResourceDesc desc, CUdevice device, unsigned flags);
  CUresult GreenDestroy(CUgreenCtx green);
  /// Code goes, and the handles of its functions may come again.
  template <class Issue>
  CUresult Unload(Issue issue) {
    const CUresult result = issue();
    if (has_session()) gate_->functions.Forget();
    return result;
  }

  // Stream capture. What is called on a capturing stream goes into a graph and does not happen: it
  // passes through untouched, unseen and unmarked.
  template <class Issue>
  CUresult CaptureBegin(CUstream stream, Issue issue);
  template <class Issue>
  CUresult CaptureEnd(CUstream stream, Issue issue);
  /// The stream may join the capture that the event was recorded in.
  template <class Issue>
  CUresult StreamWait(CUstream stream, Issue issue);

  uint32_t open_captures() const { return captures_.load(); }

  // Work. `issue` calls the driver.
  template <class Issue>
  CUresult Launch(CUfunction function, CUstream stream, Issue issue) {
    return LaunchAs(has_session() ? gate_->functions.Of(*driver_, function) : 0, stream, issue);
  }
  /// Takes the memory that the first launch would take.
  template <class Issue>
  CUresult UploadGraph(CUgraphExec exec, CUstream stream, Issue issue);
  /// A graph is one launch, whatever is in it.
  template <class Issue>
  CUresult LaunchGraph(CUgraphExec exec, CUstream stream, Issue issue) {
    return UploadGraph(exec, stream, [&, this] {
      return LaunchAs(has_session() ? GraphId(exec) : 0, stream, issue);
    });
  }
  template <class Issue>
  CUresult GraphInstantiate(CUgraphExec* exec, CUgraph graph, Issue issue);
  CUresult GraphExecDestroy(CUgraphExec exec);
  CUresult GraphMemTrim(CUdevice device);
  template <class Issue>
  CUresult Copy(size_t bytes, CUstream stream, Issue issue);

 private:
  enum class State : uint32_t {
    kOff,     // not configured: pass everything through
    kIdle,    // no allocation yet
    kReady,   // in conversation
    kAway,    // the daemon died and may come back: as kLost, but whoever needs it asks for it
    kLost,    // the daemon is gone: what is held stays, nothing is added, gates are open
    kFailed,  // could not be had: allocations fail
    kForked,  // a child of the process that has the session
    kAside,   // the GPU is the job's alone, as it is: as kOff
  };
  /// What an allocation asks of the arena.
  struct Want {
    uint32_t granules;
    uint32_t slot = kNoSlot;  // kNoSlot: for any stream
    StreamName stream = {};   // that had the slot
    bool sync = false;        // freeing it synchronises
    uint64_t context = 0;     // `sync`: with which it ends
    bool whole_unit = false;  // one unit from its bound; `granules` is not looked at
  };
  struct Ticket {
    CUstream stream;
    uint64_t function;
    uint32_t slot;
    uint32_t timed;
  };

  // client.cc: life, requests, what the daemon gave
  CUresult EnsureSession();
  CUresult EnsureSessionOn(CUdevice device);
  CUresult BeginSession(CUdevice device);
  CUresult BeginInPrimary(CUdevice device);
  bool OnAnotherGpu(CUdevice device);
  bool IsDevice(CUdevice device) const;
  CUresult RefuseDevice(CUdevice device) const;
  CUresult OpenSession(CUdevice device);
  void StartSession();
  void EndSession();
  bool Parted();
  void EndSessionLocked(bool away);
  bool CloseSessionLocked(bool clean);
  void MarkLost(const char* reason);
  bool ApplyPending();
  void PublishHeld();
  /// Sends a request that was prepared under `send_lock_`, waits, applies. request_lock_ is held.
  /// `keeps`: what is free here is for it.
  Answer::Kind Request(protocol::Header* header, Answer* answer, bool keeps = false);
  void SendMismatch(uint32_t profile);
  uint32_t ReleaseUnits(uint32_t max_units, uint32_t max_terms = protocol::kMaxFenceTerms,
                        uint32_t spared_granules = 0);

  // client_resume.cc: the daemon died, and another one takes its place
  bool Present();
  bool Resume();
  bool FillPart(protocol::ResumePart part, uint32_t* unit);
  const char* Declare(uint32_t rejected);
  uint32_t RejectedProfile();
  bool Returned(bool said, uint32_t rejected);

  // client_memory.cc
  CUresult AllocFromArena(CUdeviceptr* out, size_t bytes, CUstream stream);
  bool ServedFromArena(CUstream stream, Want* want);
  CUresult AllocateBlock(size_t bytes, Want& want, CUdeviceptr* out);  // fills in the granules
  bool MoreThanPool(size_t bytes) const;
  CUresult LeaseFor(const Want& want, uint32_t units, CUdeviceptr* out);
  CUresult AllocateWithoutDaemon(const Want& want, bool stitches, CUdeviceptr* out);
  bool TryAllocate(const Want& want, CUdeviceptr* out, bool* mark_due);
  bool LendsInStep() const;
  void Enter(const Want& want, uint32_t id, uint32_t slot, CUdeviceptr* out, bool* mark_due);
  void FreeFound(uint32_t id, bool done);
  CUdeviceptr AddressOf(const Block& block) const;
  uint32_t FindLiveAt(CUdeviceptr address) const;
  bool OwnAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address);
  bool Poison(const Block& block, CUstream stream);
  void HideHandleTypes(void* value, CUpointer_attribute attribute, CUdeviceptr address);
  // client_stitch.cc
  uint32_t Missing(const Want& want);
  uint32_t MissingFor(const Want& want, uint32_t slot);
  bool BeginWindow(const Want& want, uint32_t* slot, Arena::Window* window);
  bool Stitch(const Want& want, CUdeviceptr* out, bool* mark_due);
  bool MapWindow(const Arena::Window& window);
  void UnmapVacantWindows();
  // client_driver_memory.cc
  uint64_t PoolsReserved();
  uint64_t GraphsReserved();
  uint64_t GraphsPending();
  CUresult SettleOne(protocol::Family family, std::atomic<uint64_t>& charged, uint64_t due,
                     bool may_grow);
  CUresult SettleLocked(bool may_grow);
  void SettleDriverMemory();
  // client_graphs.cc
  uint64_t GraphNeed(CUgraph graph, int depth, CUdevice* device);
  CUresult ChargeLaunch(CUgraphExec exec, CUstream stream);
  bool TakePending(CUgraphExec exec, bool launched);
  void SettleLaunch();
  void KeepGraph(CUgraphExec exec, CUgraph graph, uint64_t need, uint64_t pending);
  uint64_t GraphHash(CUgraph graph);
  uint64_t GraphId(CUgraphExec exec);
  // client_pools.cc
  bool FromArena(CUmemoryPool pool);
  CUdevice OtherDeviceOf(CUmemoryPool pool);
  CUdevice DeviceOfPool(CUmemoryPool pool);
  uint32_t DeviceNumber() const { return static_cast<uint32_t>(session_.device()); }
  void OrphanBlocks(CUmemoryPool pool);
  CUresult AllocFromDriverPool(CUdeviceptr* out, size_t bytes, CUmemoryPool pool, CUstream stream);
  void NotePoolBlock(CUdeviceptr at, uint64_t bytes, CUmemoryPool pool);
  void ForgetPoolBlock(CUdeviceptr at);
  void ForgetPoolBlocks();
  CUmemoryPool PoolOfBlock(CUdeviceptr at);
  void SelectPool(CUdevice device);

  // client_outside.cc
  bool Accounted() const;
  CUresult ChargeInSession(protocol::Family family, uint64_t bytes);
  CUresult ChargeLocked(protocol::Family family, uint64_t bytes);
  CUresult Charge(protocol::Family family, uint64_t bytes, CUdevice device);
  void Uncharge(protocol::Family family, uint64_t bytes);
  void Keep(const Holding& holding);
  void KeepCounted(Thing thing, uint64_t key, uint64_t bytes, protocol::Family family);
  void KeepForeign(CUdeviceptr at);
  void KeepContext(CUcontext context, bool charged);
  bool Forget(Thing thing, uint64_t key, Holding* out);
  void GiveUp(const Holding& holding);
  void Count(protocol::Family family, int64_t change);
  void SendUnsent(bool wait = false);
  void SayUnsaid();
  void CollectUnseen();
  CUresult DeclareOutside();
  uint64_t BeginContextEnd(CUcontext context, bool certain = true);
  void NameContext(uint64_t from, uint64_t to);
  void FreeOwned(uint64_t context);
  void NameStreams(uint64_t from, uint64_t to, bool active, bool await_marks = true);
  uint64_t NextContext(uint64_t last);
  void FinishContextEnd(uint64_t ending, bool certain, bool ended);
  void LivingOutside(uint64_t* bytes);
  CUresult SettleAccount(bool may_grow);
  void LeaveAccount();
  void KeepAccount(uint64_t* left);
  void ForgetAccount();
  void SendUnsentAlone(uint32_t family);
  uint64_t OutsideInLimit() const;
  void KeepPhysical(CUmemGenericAllocationHandle handle, uint64_t bytes, protocol::Family family);
  void KeepHandle(CUmemGenericAllocationHandle handle, uint64_t memory);
  void DropMemory(uint64_t memory, bool mapping);

  // client_tiles.cc
  CUresult CheckTiles(const CUarrayMapInfo* parts, unsigned count);
  void KeepTiles(const CUarrayMapInfo* parts, unsigned count);
  void NameTiles(uint64_t from, uint64_t to);
  void DropTiles(uint64_t array, uint64_t context);

  // client_contexts.cc
  template <class Issue>
  CUresult EndContext(CUcontext context, CUdevice shared, const Holding* green, Issue issue);
  struct ContextEnd {
    bool session_over = false;
    uint32_t unpaced = 0;  // the profile that is not followed any more
  };
  template <class Issue>
  CUresult EndContextLocked(CUcontext context, CUdevice shared, const Holding* green, Issue issue,
                            ContextEnd* end);
  void AfterContextEnd(const ContextEnd& end);
  bool AddReference(Thing how, CUcontext context);
  bool DropReference(Thing how, CUcontext context);
  bool HasReference(Thing how, CUcontext context);
  bool PrimaryContextActive(CUdevice device) const;
  CUresult HoldPrimary(CUdevice device, CUcontext* out);
  void LetGoOfPrimary();
  CUcontext RetainHeldPrimary(CUdevice device);
  void ReleaseHeldPrimary();
  CUcontext Survivor(CUcontext ending);
  bool HoldMarks(uint64_t alive, uint64_t ending);
  void ReleaseMarks();
  uint64_t MarksSum(uint32_t slots) const;
  template <class Issue>
  CUresult RetainShared(CUdevice device, CUcontext* out, Issue issue);
  bool MoveSession(CUcontext next);
  uint32_t LosePacing(uint64_t ending);

  // client_leased.cc
  bool Leasable(const CUmemAllocationProp& prop, size_t bytes) const;
  CUresult LeasePhysical(CUmemGenericAllocationHandle* handle, size_t bytes);
  CUresult MapLeased(CUdeviceptr address, size_t bytes, size_t offset,
                     CUmemGenericAllocationHandle handle, unsigned long long flags);
  void FreePieces(uint64_t memory, uint32_t pieces, bool used);
  bool KeepPiece(uint64_t memory, uint32_t piece, CUdeviceptr at, uint64_t session);
  CUresult MapPiece(CUdeviceptr address, uint64_t memory, uint32_t piece);
  CUresult UnmapPieces(CUdeviceptr address, size_t bytes, uint64_t unit);
  bool HasLeased();
  bool IsLeasedMapping(const Holding& mapping);
  bool TouchesLeased(CUdeviceptr address, size_t bytes);
  CUresult UnmapOneByOne(CUdeviceptr address, size_t bytes);
  bool EndLeased(bool idle);

  // client_streams.cc
  const KnownStream* Known(CUstream stream) const;
  CUresult SlotOf(CUstream stream, uint32_t* slot);
  CUresult FindSlot(CUstream stream, uint32_t* slot);
  bool Capturing(CUstream stream) const;
  CUcontext CurrentContext() const;
  CUcontext ContextOf(CUstream stream) const;
  CUcontext ElsewhereOf(CUstream stream) const;
  static constexpr CUdevice kNoDevice = -1;
  CUdevice DeviceOf(CUcontext context) const;
  bool Mark(uint32_t slot, bool required);
  bool Drain();
  bool WaitForMarks(const uint64_t* targets, uint32_t slots);
  bool SynchroniseContexts(bool own);
  bool SynchroniseCurrent(CUresult* result);
  bool SynchroniseContext(CUcontext context);
  void CollectEverything(uint64_t free_seq);
  void CollectContext(CUcontext context, uint64_t free_seq);
  CUresult ReleasePrimary(CUdevice device, const Holding* green);

  // client_green.cc
  CUcontext PrimaryContextOf(CUdevice device) const;
  CUcontext HomeOf(CUcontext context);
  uint64_t HomeLocked(uint64_t context);
  void KeepGreen(const Holding& green);
  bool ForgetGreen(CUgreenCtx green, Holding* out);
  uint64_t BeginGreenEnd(const Holding& green);
  void FinishGreenEnd(uint64_t ending, bool ended);
  void Record(protocol::OpKind kind, uint32_t slot, uint32_t detail, uint64_t value);

  // client_quiet.cc: standing still while the daemon moves memory
  void StandStill(uint32_t seq);
  void LoseMemory();
  protocol::QuietReason BecomeQuiet();
  /// Work that may touch memory of the arena, from any thread.
  template <class Issue>
  CUresult Moving(Issue issue);

  // client_launch.cc
  template <class Issue>
  CUresult GraphWithMemory(CUgraphExec* exec, CUgraph graph, uint64_t need, CUdevice device,
                           Issue issue);
  template <class Issue>
  CUresult LaunchAs(uint64_t function, CUstream stream, Issue issue);
  bool BeforeLaunch(uint64_t function, CUstream stream, Ticket* ticket);
  bool InSessionContext(uint32_t slot);
  void AfterLaunch(const Ticket& ticket, bool issued);
  void NoteCopy(size_t bytes, CUstream stream);
  void RefreshProfile();
  void PassTrough();
  void PassGate(uint32_t gate, uint32_t profile);
  void AskGate(uint32_t gate, uint32_t profile, bool drained);
  void MarkFrees();
  void ReleaseExcess(bool waits);
  void AwaitSynchronised();
  template <class Issue>
  CUresult Unmarked(CUstream stream, Issue issue);
  uint32_t SlotByHandle(CUstream stream);
  bool TakeTrough(uint32_t slot);
  bool AheadOfCredit(uint32_t slot, uint64_t* wait_for);
  void WaitForCredit();
  bool Pressure() const {
    return state_.load(std::memory_order_relaxed) == State::kReady &&
           (session_.daemon_page().flags.load(std::memory_order_relaxed) & protocol::kPressure) !=
               0;
  }
  bool Unbounded() const;

  // client_reports.cc
  bool IsOf(const protocol::Told& told, CUdevice device) const;
  bool ToldOf(CUdevice device, protocol::Told* told);

  std::atomic<State> state_{State::kOff};
  std::atomic<bool> opening_{false};
  const DriverTable* driver_ = nullptr;
  const char* socket_path_ = nullptr;
  Settings settings_;

  Lock request_lock_;
  Lock contexts_lock_;
  Lock send_lock_;
  Locks<protocol::kStreamSlots> mark_locks_;
  std::atomic<bool> marks_held_{false};  // none is queued: the session moves to another context
  BriefLock state_lock_;
  Lock outside_lock_;

  Session session_;
  Standstill standstill_;
  JobReport report_;
  std::atomic<bool> present_ = false;        // the daemon was told of this process
  std::atomic<CUcontext> context_{nullptr};  // the session's; changed under contexts_lock_
  std::atomic<bool> context_gone_{false};    // the same: its session is about to end
  // Of this GPU the library itself has a reference of the primary context, beside the program's,
  // which are all counted then (kRetained). Under contexts_lock_.
  CUdevice held_primary_ = kNoDevice;
  std::atomic<bool> many_contexts_{false};
  std::atomic<uint32_t> greens_{0};  // green contexts that are there
  CUmemoryPool default_pool_ = nullptr;
  std::atomic<uint64_t> stream_generation_{0};  // handles remembered before may have been reused

  // Under state_lock_.
  Arena arena_;
  Owners owners_;  // of what cuMemAlloc gave
  StreamTable streams_;
  Matcher matcher_;
  Credit credit_;
  GateMemory* gate_ = nullptr;
  uint64_t ring_tail_ = 0;
  uint32_t launch_number_ = 0;
  uint64_t used_high_granules_ = 0;
  uint32_t reserved_high_units_ = 0;
  std::atomic<uint32_t> profile_seq_{0};
  std::atomic<bool> trough_due_{false};  // the matcher may have one pending
  bool pressed_ = false;                 // there was pressure at the last launch
  bool marked_ = false;                  // since it was last looked what can be given back
  uint32_t unlooked_launches_ = 0;       // since then
  uint32_t rejected_profile_ = 0;        // not followed (any more)

  // The pool that cuMemAllocAsync takes from, on the session's device.
  std::atomic<CUmemoryPool> selected_pool_{nullptr};
  std::atomic<CUdevice> selected_device_{0};
  std::atomic<uint32_t> pool_blocks_{0};    // live blocks of pools beside the default one
  std::atomic<bool> driver_served_{false};  // it keeps, or kept, memory for pools or graphs
  Lock pools_lock_;                         // inside settle_lock_; over the driver's calls alone
  Lock settle_lock_;                        // before request_lock_
  std::atomic<bool> settle_again_{false};
  std::atomic<uint64_t> pools_charged_{0};   // changed under settle_lock_
  std::atomic<uint64_t> graphs_charged_{0};  // the same

  uint64_t memories_made_ = 0;  // under outside_lock_
  uint32_t leased_pieces_ = 0;  // the same, and the next two: units that are handed out
  bool leased_ever_ = false;    // as physical memory
  uint32_t tiles_ = 0;
  uint64_t sessions_ended_ = 0;
  OpenCaptures captures_;
  Holdings holdings_;                       // under outside_lock_
  std::atomic<uint64_t> outside_bytes_{0};  // charged, contexts apart
  // By family, under outside_lock_. Charged: as the daemon has it; contexts are counted. Unsent: of
  // that, what it has not been told to be gone; for counted families 1 when it has to be told.
  uint64_t charged_[protocol::kMaxOutsideFamilies] = {};
  uint64_t unsent_[protocol::kMaxOutsideFamilies] = {};
  static constexpr size_t kCountedFamilies = 5;
  std::atomic<uint64_t> counted_[kCountedFamilies] = {};
  std::atomic<bool> unsaid_ = false;  // some of `unsent_` may still be to be said
  std::atomic<bool> unseen_unsaid_ = false;

  // Under request_lock_ or send_lock_.
  uint64_t iteration_ = 0;
  uint32_t declared_rejected_ = 0;  // the profile that the last declaration named as not followed
  UnitRelease release_ = {};
  protocol::Release release_frame_ = {};
  protocol::Resume resume_frame_ = {};
  OpenReleases open_releases_;
  uint64_t next_resume_ns_ = 0;
};

}  // namespace sluice

#include "intercept/session/client_calls.h"
#include "intercept/session/client_captures.h"
#include "intercept/session/client_graphs.h"
#include "intercept/session/client_outside.h"
