#pragma once

namespace perf {

/// Pins the calling thread to the core number `index`, from 0, of those that this process may use.
/// Returns false if there are fewer cores. Measurements of two threads need two cores: on one core
/// the threads would alternate and never run at once.
bool stay_on_core(int index) noexcept;

/// Returns whether the process may use two cores or more, so that two threads can run at once.
bool two_cores() noexcept;

}  // namespace perf
