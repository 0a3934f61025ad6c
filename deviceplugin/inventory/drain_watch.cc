// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/inventory/drain_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "deviceplugin/granule/drained.h"

namespace sluice::deviceplugin {

Result<std::unique_ptr<DrainWatch>> DrainWatch::Start(const GrantStore* store, const DeviceIds* ids,
                                                      Keep keep) {
  Result<FolderWatch> folder = FolderWatch::Open(store->drain_folder());
  if (!folder.ok()) return folder.status();
  // A grant that ends frees ids of a GPU that nobody new may have.
  if (Status s = folder->Add(store->record_folder()); !s.ok()) return s;
  UniqueFd stop(::eventfd(0, EFD_CLOEXEC));
  if (!stop.valid()) return Status::FromErrno(errno, "eventfd");
  std::unique_ptr<DrainWatch> watch(
      new DrainWatch(store, ids, std::move(keep), std::move(*folder), std::move(stop)));
  watch->Look();
  watch->thread_ = std::thread([self = watch.get()] { self->Run(); });
  return watch;
}

DrainWatch::DrainWatch(const GrantStore* store, const DeviceIds* ids, Keep keep, FolderWatch folder,
                       UniqueFd stop)
    : store_(store),
      ids_(ids),
      keep_(std::move(keep)),
      folder_(std::move(folder)),
      stop_(std::move(stop)) {}

DrainWatch::~DrainWatch() {
  const uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof one);
  thread_.join();
}

void DrainWatch::Look() {
  const Result<GrantStore::Listed> listed = store_->List();
  if (listed.ok()) keep_(Drained(*ids_, store_->DrainedGpus(), listed->grants));
}

void DrainWatch::Run() {
  for (;;) {
    pollfd polled[] = {{folder_.fd(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    ::poll(polled, 2, -1);
    if (polled[1].revents != 0) return;
    (void)folder_.Read();
    Look();
  }
}

}  // namespace sluice::deviceplugin
