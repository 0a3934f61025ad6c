// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "common/byte_codec.h"
#include "scheduler/ledger/ledger.h"

/// A ledger as bytes, for a daemon that takes over from one that died.
namespace sluice::scheduler {

void WriteLedger(const Ledger& ledger, ByteWriter* out);

/// The ledger as it was. Everything is checked: bytes of another kind are an error, and so is a
/// ledger that breaks an invariant.
Result<Ledger> ReadLedger(ByteReader* in, Rules rules = {});

void WriteExtents(const Extents& extents, ByteWriter* out);
Extents ReadExtents(ByteReader* in);

}  // namespace sluice::scheduler
