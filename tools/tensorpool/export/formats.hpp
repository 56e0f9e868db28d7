#pragma once

/// @file
/// What other tools read. Each throws CommandError where the file cannot be written.

#include <cstdint>

#include "export/moment.hpp"
#include "inspect/written_file.hpp"

namespace tensorpool::command::export_ {

using inspect::WrittenFile;

/// A memory snapshot of PyTorch (torch.cuda.memory._snapshot) for memory_viz: each process is a
/// device, and behind those each allocator of device memory is one. What pools took are segments,
/// and so are slabs; the last `max_entries` calls up to the moment are a device's history. Returns
/// how many calls were left out of that.
std::uint64_t write_snapshot(const History& history, Moment moment, std::uint64_t max_entries,
                             WrittenFile& file);

/// A heap profile of gperftools, for jeprof and pprof: what was alive at the moment, and what was
/// asked for up to then, by sampled call stacks. Where none were sampled, by pool and scope, whose
/// names stand in it then.
void write_heap_profile(const History& history, Moment moment, WrittenFile& file);

/// A trace for Chrome's and Perfetto's viewers: bytes alive of each pool, arena, scratch and
/// device, scopes, and requests that were not met.
void write_chrome_trace(const History& history, WrittenFile& file);

/// A log as RMM's logging_resource_adaptor writes it: each block's beginning and end. Those made
/// before the recording begin in its first lines, and one that is resized ends and begins again.
/// Addresses of the second process are moved by 2^48, of the third by twice that, and so on; those
/// of each device's allocator likewise, behind the processes.
void write_rmm_log(const History& history, WrittenFile& file);

}  // namespace tensorpool::command::export_
