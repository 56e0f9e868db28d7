#pragma once

/// @file
/// Includes all headers of the core and, if installed, of the components `models`, `planning` and
/// `stash`. It does not include the C headers, the headers of devices, and those for other
/// libraries.

/// @mainpage
/// - MemoryPool allocates blocks for any thread; get_global_memory_pool() is the process's pool.
/// - PooledAllocation, PooledArray and make_pooled_unique() own blocks of pools, arenas, devices
/// and other sources; Allocator and PoolResource serve containers.
/// - Arena, Scratch and Context allocate memory that is released all at once.
/// - plan_memory() packs buffers with known lifetimes; PlannedArena learns them from a loop.
/// - Runtime provides memory, streams and events of the CPU, of CUDA and of simulated devices.
/// - ModelFile and MappedFile map files of weights.
/// - stash() compresses a tensor at rest or moves it to a file; StashedMap does so for those that
///   are used least.
/// - PoolStatistics, take_snapshot() and StatisticsReader report where memory is.
/// - tensorpool.h, tensorpool_arena.h and tensorpool_models.h are for C.
/// - eigen.hpp, opencv.hpp, xtensor.hpp, armadillo.hpp, dlpack.hpp and torch.hpp serve libraries.

/// @namespace tensorpool
/// Everything that the library declares for C++.

#include <tensorpool/allocator.hpp>
#include <tensorpool/arena.hpp>
#include <tensorpool/arena_objects.hpp>
#include <tensorpool/arena_options.hpp>
#include <tensorpool/arena_statistics.hpp>
#include <tensorpool/budget.hpp>
#include <tensorpool/budget_statistics.hpp>
#include <tensorpool/context.hpp>
#include <tensorpool/data_type.hpp>
#include <tensorpool/device_statistics.hpp>
#include <tensorpool/errors.hpp>
#include <tensorpool/growth_policy.hpp>
#include <tensorpool/heap_profile.hpp>
#include <tensorpool/holder_request.hpp>
#include <tensorpool/live_trace.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/memory_resource.hpp>
#include <tensorpool/memory_source.hpp>
#include <tensorpool/metrics.hpp>
#include <tensorpool/planned_arena_statistics.hpp>
#include <tensorpool/pool_options.hpp>
#include <tensorpool/pooled_allocation.hpp>
#include <tensorpool/pooled_array.hpp>
#include <tensorpool/pooled_pointer.hpp>
#include <tensorpool/process_snapshot.hpp>
#include <tensorpool/profile_request.hpp>
#include <tensorpool/scope_statistics.hpp>
#include <tensorpool/scratch.hpp>
#include <tensorpool/scratch_report.hpp>
#include <tensorpool/snapshot.hpp>
#include <tensorpool/statistics.hpp>
#include <tensorpool/statistics_reader.hpp>
#include <tensorpool/statistics_scope.hpp>
#include <tensorpool/system_memory.hpp>
#include <tensorpool/tensor_allocation.hpp>
#include <tensorpool/timeline.hpp>
#include <tensorpool/trim_request.hpp>

#if __has_include(<tensorpool/model_file.hpp>)
#include <tensorpool/mapped_file.hpp>
#include <tensorpool/memory_lock.hpp>
#include <tensorpool/model_estimate.hpp>
#include <tensorpool/model_file.hpp>
#include <tensorpool/model_hyperparameters.hpp>
#endif
#if __has_include(<tensorpool/stash.hpp>)
#include <tensorpool/freeze.hpp>
#include <tensorpool/stash.hpp>
#include <tensorpool/stashed_map.hpp>
#endif
#if __has_include(<tensorpool/planned_arena.hpp>)
#include <tensorpool/memory_plan.hpp>
#include <tensorpool/planned_arena.hpp>
#include <tensorpool/planned_arena_options.hpp>
#include <tensorpool/serve_scope.hpp>
#endif
